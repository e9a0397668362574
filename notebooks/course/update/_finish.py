"""The second half of `python -m course update`: put in place what `course.update` prepared.

Only the standard library is needed here. A copy of this file lies beside every prepared update, so
that an update which was interrupted while `course` itself was being replaced can be finished with
`python finish.py` by any Python.

    BACKUP/report.md          what the update does, for the learner
    BACKUP/files/             the learner's files as they were
    BACKUP/update/plan.json   the steps; it is gone once all of them are done
    BACKUP/update/new/        the files to put, answers in them
    BACKUP/update/finish.py   this file

Every step can be done twice. A file is replaced in one step, and one that is neither as it was
before the update nor as it is to be (someone worked on after an interruption) is copied first.
"""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path


class UpdateError(SystemExit):
    """The update cannot go on: Python prints the message, which says why and what to do."""


def finish(backup: Path, root: Path | None = None) -> None:
    """Do the steps of the update prepared in `backup`, all or what an interruption left.

    root: the copy of the course, where it was moved since. UpdateError where a file cannot be
    replaced; once the cause is gone, call it again.
    """
    prepared = backup / "update"
    plan = json.loads((prepared / "plan.json").read_text(encoding="utf-8"))
    root = root or Path(plan["root"])
    try:
        for path, before, after in plan["files"]:  # digests; None where there is no file
            now = digest(root / path)
            if now == after:
                continue
            if now not in (None, before):
                kept = f"later-{now[:8]}/{path}"
                copy_in_one_step(root / path, backup / kept)
                _add_to_report(
                    backup,
                    f"`{path}` was changed after the update was interrupted; that state is kept "
                    f"as `{kept}` in the backup.",
                )
            if after is None:
                (root / path).unlink()
            else:
                copy_in_one_step(prepared / "new" / path, root / path)
    except OSError as error:
        raise UpdateError(
            f"{error.filename or path}: {error.strerror or error}. The update is half done and "
            "nothing is lost: close what uses this file (JupyterLab?), make room if the disk is "
            "full, and run the same command again."
        ) from error
    if plan["git"]:
        _move_branch(root, plan["git"], prepared, backup)
    (prepared / "plan.json").unlink()  # from here on there is nothing left to do
    shutil.rmtree(prepared, ignore_errors=True)


def digest(path: Path) -> str | None:
    """The SHA-256 of a file's bytes, None where there is no file."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def copy_in_one_step(source: Path, target: Path) -> None:
    """Copy a file so that at any moment the target is the old one or the new one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.update")  # left by a kill, the next run takes it
    shutil.copyfile(source, draft)
    shutil.copymode(source, draft)
    with open(draft, "r+b") as file:
        os.fsync(file.fileno())
    os.replace(draft, target)


def git(root: Path, *arguments: str, given: str | None = None, **environment: str) -> str:
    """What git prints; UpdateError with git's own words where it fails or is not there."""
    try:
        done = subprocess.run(
            ["git", "-c", "core.quotepath=off", *arguments], cwd=root, input=given,
            capture_output=True, encoding="utf-8", errors="surrogateescape",
            env={**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **environment},
        )  # fmt: skip
    except FileNotFoundError:
        raise UpdateError(
            "git is not installed. Install it, or download the newer version, unpack it, and run "
            "python -m course update --from FOLDER."
        ) from None
    if done.returncode != 0:
        raise UpdateError(f"git {arguments[0]}: {' '.join(done.stderr.split())}")
    return done.stdout.rstrip("\n")


def _move_branch(root: Path, plan: dict, prepared: Path, backup: Path) -> None:
    """Bring the branch to the new version, and leave the files as they are now."""
    head, *parents = git(root, "rev-list", "--parents", "-n1", "HEAD").split()
    if head == plan["head"]:
        target = _merged(root, plan, prepared) if plan["merge"] else plan["new"]
    elif head == plan["new"] or parents == [plan["head"], plan["new"]]:
        target = head  # done before an interruption, except perhaps for the index
    else:
        _add_to_report(
            backup,
            "The branch was moved by something else while the update was interrupted. The files "
            "are those of the new version; the branch was left where it is.",
        )
        return
    git(root, "reset", "--quiet", "--mixed", target)


def _merged(root: Path, plan: dict, prepared: Path) -> str:
    """A commit on top of the learner's: the new version, and their files as they are now."""
    index = {"GIT_INDEX_FILE": str(prepared / "index")}
    git(root, "read-tree", plan["new"], **index)
    listed = "".join(f"{path}\0" for path in plan["paths"])
    git(root, "update-index", "--add", "--remove", "-z", "--stdin", given=listed, **index)
    tree = git(root, "write-tree", **index)
    # Whoever made the last commit: perhaps no name is set here.
    name, mail = git(root, "log", "-1", "--format=%an%n%ae").split("\n")
    who = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail,
           "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": mail}  # fmt: skip
    parents = ("-p", plan["head"], "-p", plan["new"])
    return git(root, "commit-tree", tree, *parents, "-m", plan["message"], **who)


def _add_to_report(backup: Path, line: str) -> None:
    report = backup / "report.md"
    text = report.read_text(encoding="utf-8")
    draft = report.with_name(".report.update")
    draft.write_text(f"{text}\n- {line}\n", encoding="utf-8", newline="\n")
    os.replace(draft, report)


if __name__ == "__main__":
    _backup = Path(__file__).resolve().parents[1]
    finish(_backup)
    print(f"The update is finished. What it did: {_backup / 'report.md'}")
