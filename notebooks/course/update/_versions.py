"""The three versions of the course that an update compares, as folders."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from ._finish import UpdateError, git

SKIPPED = (".git", ".learner", ".venv", "venv", ".cache", "__pycache__", ".ipynb_checkpoints",
           ".pytest_cache", ".ruff_cache", "build", "dist", "node_modules")  # fmt: skip


@dataclass
class Versions:
    """The newer version and the one that this copy came from, as folders."""

    new: Path
    base: Path | None
    title: str
    git: dict | None = None  # how to move the branch: see _finish._move_branch


def from_git(root: Path, folder: Path) -> Versions | None:
    """Fetch, and write both versions below `folder`; None where there is nothing newer."""
    _usable_checkout(root)
    try:
        git(root, "symbolic-ref", "--quiet", "HEAD")
    except UpdateError:
        raise UpdateError(
            "no branch is checked out here (git calls it a detached HEAD). Go back to your branch, "
            "such as with `git switch main`, and run this again."
        ) from None
    upstream = _upstream(root)
    remote = upstream.split("/")[0]
    try:
        git(root, "fetch", "--quiet", remote)
    except UpdateError as error:
        raise UpdateError(
            f"the newer version could not be fetched from {remote} ({error}). Nothing was changed. "
            "Try again with a network, or unpack a download and name it with --from."
        ) from None
    head, new = git(root, "rev-parse", "HEAD", upstream).splitlines()
    try:
        base = git(root, "merge-base", head, new)
    except UpdateError:
        raise UpdateError(
            f"your branch and {upstream} have no common history. Clone the course into another "
            "folder, and name that folder with --from."
        ) from None
    if base == new:
        print(f"There is nothing newer: this copy has all of {upstream}.")
        return None
    changed = git(root, "diff", "--name-only", "--no-renames", "-z", base, head)
    day = git(root, "log", "-1", "--format=%cs", new)
    return Versions(
        _checkout(root, new, folder / "new"),
        _checkout(root, base, folder / "base"),
        f"{upstream}, version {new[:9]} of {day}; before: {base[:9]}",
        {
            "head": head, "new": new, "merge": base != head,
            "paths": [path for path in changed.split("\0") if path],
            "message": f"Update the course to {new[:9]}, answers put back",
        },
    )  # fmt: skip


def from_folder(root: Path, source: Path, folder: Path) -> Versions:
    """A newer copy of the course in the folder `source`."""
    source = source.resolve()
    if source == root.resolve():
        raise UpdateError(f"{source} is this copy itself. Name the folder of the newer one.")
    if not (source / "notebooks" / "course" / "__init__.py").is_file():
        raise UpdateError(
            f"{source} holds no copy of the course: expected a folder with notebooks/course in it."
        )
    base = None
    with contextlib.suppress(UpdateError):  # without git the course's old files are not known
        _usable_checkout(root)
        head = git(root, "rev-parse", "HEAD")
        with contextlib.suppress(UpdateError):
            head = git(root, "merge-base", head, _upstream(root))
        base = _checkout(root, head, folder / "base")
    return Versions(source, base, str(source))


def _usable_checkout(root: Path) -> None:
    """UpdateError where git does not know this folder, or is in the middle of something."""
    other = "Unpack a newer copy and run python -m course update --from FOLDER."
    try:
        top, folder = git(root, "rev-parse", "--show-toplevel", "--absolute-git-dir").splitlines()
    except UpdateError as error:
        if "not a git repository" in str(error):
            raise UpdateError(f"this copy is not a git clone. {other}") from None
        raise
    if Path(top).resolve() != root.resolve():
        raise UpdateError(f"this copy lies within another git repository, {top}. {other}")
    for name, undo in (
        ("MERGE_HEAD", "merge"), ("rebase-merge", "rebase"), ("rebase-apply", "rebase"),
        ("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert"),
    ):  # fmt: skip
        if Path(folder, name).exists():
            raise UpdateError(
                f"a git {undo} stopped half-way here. Take it back with `git {undo} --abort`, "
                "which keeps what you committed, and run this again."
            )
    conflicts = git(root, "diff", "--name-only", "--diff-filter=U").splitlines()
    if conflicts:
        raise UpdateError(
            f"`git stash pop` left conflicts in {', '.join(conflicts)}. Your work is still in the "
            "stash. Go back to where you put it there, `git reset --hard refs/stash~1` and then "
            "`git stash pop`, and run this again."
        )


def _upstream(root: Path) -> str:
    """The branch to update from, as `origin/main`: the tracked one, else the clone's own."""
    for name in ("@{upstream}", "origin/HEAD", "origin/main"):
        with contextlib.suppress(UpdateError):
            full = git(root, "rev-parse", "--symbolic-full-name", name)
            if full.startswith("refs/remotes/"):  # a tracked branch may be one of this clone
                return full.removeprefix("refs/remotes/")
    raise UpdateError(
        "this clone does not say where newer versions come from. Add the course's address with "
        "`git remote add origin ADDRESS` and `git fetch origin`, or unpack a newer copy and name "
        "it with --from."
    )


def _checkout(root: Path, commit: str, folder: Path) -> Path:
    """Write the files of a commit into a new folder, as git would check them out."""
    folder.mkdir()
    index = {"GIT_INDEX_FILE": str(folder.with_suffix(".index"))}
    git(root, "read-tree", commit, **index)
    git(root, "checkout-index", "--all", f"--prefix={folder.as_posix()}/", **index)
    return folder


def files_of(folder: Path | None) -> set[str]:
    """The course's files in a folder, as paths with `/`; nothing that a run or an editor made."""
    found = set()
    for place, folders, names in os.walk(folder) if folder is not None else ():
        folders[:] = [one for one in folders if one not in SKIPPED and not one.endswith("egg-info")]
        inside = Path(place).relative_to(folder)
        found |= {(inside / name).as_posix() for name in names if not name.endswith(".pyc")}
    return found
