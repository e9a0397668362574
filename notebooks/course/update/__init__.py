"""Bring this copy of the course to a newer version, and keep the learner's answers.

    python -m course update                  the newer version from git: what `git pull` would fetch
    python -m course update --from FOLDER    from a newer copy, such as an unpacked download
    python -m course update --dry-run        say what would happen; changes nothing

Three states of every file are compared: as the course shipped it (base; not known without git), as
it is in this copy (mine), and as the newer version has it (new). From them all finished files are
made aside, with a backup and a report (`_plan`, `_lesson`). Only then are they put in place
(`_finish`), in steps that can be done again after an interruption.
"""

from __future__ import annotations

import argparse
import json
import runpy
import shutil
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from course import build
from course.exercises import _store

from . import _finish
from ._finish import git
from ._plan import FILES, Plan
from ._versions import from_folder, from_git


def prepare(plan: Plan, home: Path) -> Path:
    """Write the backup, the report, the finished files and the steps; changes nothing of the copy.

    It appears in the backups under its name in one step, once all of it is there.
    """
    now = datetime.now()
    folder = home / "backups" / ".preparing"
    final = folder.with_name(f"{now:%Y-%m-%d-%H%M%S-%f}")
    if folder.exists():  # left by a run that did not get far
        shutil.rmtree(folder)
    new = folder / "update" / "new"
    new.mkdir(parents=True)
    keep = _finish.copy_in_one_step
    for path in sorted(plan.backup):
        keep(plan.root / path, folder / "files" / path)
    shutil.copytree(home, folder / "learner", ignore=shutil.ignore_patterns("backups", ".lock"))
    for path, content in plan.put.items():
        if isinstance(content, Path):
            keep(content, new / path)
        else:
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).write_bytes(content)
    # The package last: until then the old one is whole, and can start again.
    paths = sorted(plan.put, key=lambda path: (path.startswith("notebooks/course/"), path))
    files = [
        [path, _finish.digest(plan.root / path), _finish.digest(new / path)]
        for path in [*paths, *plan.remove]
    ]
    steps = {"root": str(plan.root.resolve()), "files": files, "git": plan.versions.git}
    keep(Path(_finish.__file__), folder / "update" / "finish.py")
    (folder / "update" / "plan.json").write_text(json.dumps(steps, indent=1), encoding="utf-8")
    report = plan.text(f"Update of {now:%Y-%m-%d, %H:%M}", final)
    (folder / "report.md").write_text(report, encoding="utf-8", newline="\n")
    return folder.rename(final)


def keep_staged(plan: Plan) -> None:
    """The move of the branch unstages what is staged in git: keep a commit of it under a ref."""
    if git(plan.root, "diff", "--cached", "--name-only"):
        commit = git(plan.root, "stash", "create")
        name = f"refs/course-update/{commit[:9]}"
        git(plan.root, "update-ref", name, commit)
        plan.say(FILES, f"What you had staged in git is kept as `{name}^2`, and is not staged now.")


def finish(backup: Path, root: Path) -> None:
    """Do the steps of a prepared update, by the code that prepared them, and print the report."""
    runpy.run_path(str(backup / "update" / "finish.py"))["finish"](backup, root)
    print((backup / "report.md").read_text(encoding="utf-8"), end="")


def run(root: Path, source: Path | None, dry_run: bool) -> None:
    """The command; UpdateError says why nothing, or not all, was done."""
    home = _store.home()
    begun = list((home / "backups").glob("[!.]*/update/plan.json"))  # one at the most
    if begun:
        print(f"The update of {begun[0].parents[1].name} was interrupted.")
        if not dry_run:
            finish(begun[0].parents[1], root)
        again = "It would be finished first." if dry_run else "It is finished now."
        print(f"\n{again} Run the command again to look for a still newer version.")
        return
    with tempfile.TemporaryDirectory(prefix="encoder-course-update-") as folder:
        if source is None:
            versions = from_git(root, Path(folder))
        else:
            versions = from_folder(root, source, Path(folder))
        if versions is None:
            return
        plan = Plan(root, versions)
        if not plan.put and not plan.remove and not versions.git:
            print(f"Nothing to do: this copy has all that {versions.title} has.")
            return
        if dry_run:
            print(plan.text("Dry run: nothing was changed. An update would do this:", None), end="")
            return
        if versions.git:
            keep_staged(plan)
        backup = prepare(plan, home)
    print(
        "Putting the newer version in place. Should this be interrupted, run the same command "
        f"again; if it does not start, python {backup / 'update' / 'finish.py'}\n",
        flush=True,
    )
    finish(backup, root)


def main(arguments=None, root: Path = build.ROOT) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m course update", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FOLDER", help="a newer copy, unpacked"
    )
    parser.add_argument("--dry-run", action="store_true", help="change nothing, say what would be")
    given = parser.parse_args(arguments)
    try:
        run(root, given.source, given.dry_run)
    except KeyboardInterrupt:
        print("Interrupted; nothing is lost. Run the same command again.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
