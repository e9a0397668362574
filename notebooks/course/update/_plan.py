"""What an update will do, found out before anything is changed."""

from __future__ import annotations

import warnings
from collections import defaultdict
from pathlib import Path, PurePosixPath

import nbformat
from nbformat import NotebookNode

from course import build
from course.exercises import _store

from ._finish import UpdateError
from ._lesson import (
    HEADING,
    Lesson,
    bare,
    combine,
    exercise_id,
    exercises_of,
    is_answered,
    tell_apart,
)
from ._versions import Versions, files_of

LESSONS, LOOK, FILES, NEXT = SECTIONS = ("Lessons", "Look at these", "Files", "Next")


class Plan:
    """All that an update does, found out before anything is changed.

    put    : for each path the finished file, as bytes or as the path of a file
    remove : paths of the course's that the newer version does not have
    backup : paths of this copy whose content is the learner's, or may be
    report : lines, by section
    """

    def __init__(self, root: Path, versions: Versions):
        self.root, self.versions = root, versions
        self.new, self.base = files_of(versions.new), files_of(versions.base)
        self.put: dict[str, bytes | Path] = {}
        self.remove: list[str] = []
        self.backup: set[str] = set()
        self.report: dict[str, list[str]] = {name: [] for name in SECTIONS}
        lessons = self._lessons()
        self._plan_lessons(lessons)
        self._plan_files({one.path for one in lessons} | set(self.new_lessons))
        self._plan_rest()

    def mine(self, path: str) -> bytes | None:
        return _bytes(self.root / path)

    def is_as_shipped(self, path: str) -> bool:
        """Whether a file is known to be as the old version had it."""
        if path not in self.base:
            return False
        return _same(self.mine(path), _bytes(self.versions.base / path))

    def is_in_both(self, path: str) -> bool:
        """Whether the newer version leaves a file as it was."""
        return path in self.base & self.new and _same(
            _bytes(self.versions.base / path), _bytes(self.versions.new / path)
        )

    def say(self, section: str, line: str) -> None:
        if line not in self.report[section]:
            self.report[section].append(line)

    # ------------------------------------------------------------ lessons

    def _lessons(self) -> list[Lesson]:
        """The course's lessons in this copy, and the new lesson that each became."""
        new, here = self.versions.new, (self.root / "notebooks").glob("*.ipynb")
        self.new_lessons = {path: _read(new / path)[0] for path in _lesson_paths(self.new)}
        for path, notebook in self.new_lessons.items():
            if notebook is None or any(
                not build.is_blank(build.exercise_definition(notebook.cells[index].source))
                for index in exercises_of(notebook).values()
            ):
                raise UpdateError(
                    f"{path} of the newer version cannot be read, or has answers in it: expected a "
                    "fresh copy of the course."
                )
        found = []
        for path in _lesson_paths({f"notebooks/{path.name}" for path in here}):
            notebook, problem = _read(self.root / path)
            base = _read(self.versions.base / path)[0] if path in self.base else None
            worked = _worked(self.root, path)
            if path not in self.base and not self._is_lesson(path, notebook, worked):
                continue  # the learner's own notebook
            lesson = Lesson(path, notebook or nbformat.v4.new_notebook(), base, problem)
            lesson.target = self._target(lesson)
            if problem:
                lesson.notebook = self._from_store(lesson.target)
            known = [base, worked, self.new_lessons.get(lesson.target)]
            tell_apart(lesson, [one for one in known if one is not None])
            found.append(lesson)
        return found

    def _is_lesson(self, path, notebook, worked) -> bool:
        if notebook is None:
            return path in self.new
        ids = {cell.get("id") for cell in notebook.cells}
        others = [*self.new_lessons.values(), *([worked] if worked is not None else [])]
        return any(ids & {cell.id for cell in other.cells} for other in others)

    def _from_store(self, target: str | None) -> NotebookNode:
        """In place of a notebook that cannot be read: the answers as they were last run."""
        made = nbformat.v4.new_notebook()
        for name in exercises_of(self.new_lessons.get(target, made)):
            source = _store.answer(name)
            if source:
                made.cells.append(nbformat.v4.new_code_cell(source, id=exercise_id(name)))
        return made

    def _target(self, lesson: Lesson) -> str | None:
        """The lesson of the same name, else the one that has most of its exercises and cells."""
        if lesson.path in self.new_lessons:
            return lesson.path
        shipped = lesson.base if lesson.base is not None else lesson.notebook
        ids = {cell.get("id") for cell in shipped.cells}
        tasks = {one for one in ids if one and one.startswith("exercise-")}
        best = (0, 0, "")
        for path, notebook in self.new_lessons.items():
            shared = ids & {cell.id for cell in notebook.cells}
            if 2 * len(shared & tasks) >= max(len(tasks), 1) or 2 * len(shared) >= len(ids):
                best = max(best, (len(shared & tasks), len(shared), path))
        return best[2] or None

    def _plan_lessons(self, lessons: list[Lesson]) -> None:
        asked = {
            name: notebook.cells[index].source
            for notebook in self.new_lessons.values()
            for name, index in exercises_of(notebook).items()
        }
        places = {
            name: path for path, one in self.new_lessons.items() for name in exercises_of(one)
        }
        answers: dict[str, Lesson] = {}
        for lesson in lessons:
            for name in lesson.exercises:
                if not is_answered(lesson, name, asked.get(name)):
                    continue
                if answers.setdefault(name, lesson) is not lesson:
                    self.say(LOOK, f"`{name}` is answered in two notebooks. The answer in "
                             f"`{answers[name].path}` was taken; the one in `{lesson.path}` is in "
                             "the backup.")
                elif name in places and lesson.target != places[name]:
                    self.say(LESSONS, f"The exercise `{name}` moved to `{places[name]}`, and your "
                             "answer with it.")
        gone = set(answers) - set(asked)
        for lesson in lessons:
            if lesson.target == lesson.path:
                continue
            self.remove.append(lesson.path)
            if not self.is_as_shipped(lesson.path):
                self.backup.add(lesson.path)
            if lesson.target:
                became = "is now" if self.mine(lesson.target) is None else "went into"
                self.say(LESSONS, f"`{lesson.path}` {became} `{lesson.target}`.")
                committed = self.versions.git["paths"] if self.versions.git else []
                if lesson.path in committed:
                    committed.append(lesson.target)
                continue
            lost = [name for name in gone if answers[name] is lesson]
            yours = f"Yours, with answers to {_listed(lost)}," if lost else "Yours"
            self.say(LESSONS, f"`{lesson.path}` is no longer a part of the course."
                     + (f" {yours} is in the backup." if lesson.path in self.backup else ""))
        for path, notebook in self.new_lessons.items():
            self._plan_lesson(
                path, notebook, [one for one in lessons if one.target == path], answers, gone
            )
        waiting = sorted(
            name for name in set(asked) - set(answers) if (_store.answer(name) or "").strip()
        )
        if waiting:
            self.say(LOOK, f"`notebooks/.learner/answers` holds answers to {_listed(waiting)}, "
                     "whose cells were empty. They were left empty.")

    def _plan_lesson(self, path, new, mine, answers, gone) -> None:
        there = [one for one in mine if one.path == path]
        damaged = any(one.problem for one in mine)
        if self.is_in_both(path) and len(there) == len(mine) and not damaged:
            return  # untouched, with all that the learner has in it
        if not mine:
            if self.mine(path) is None:
                self.put[path] = self.versions.new / path
                self.say(LESSONS, f"`{path}` is new in your copy.")
            else:
                self._replace(path)
            return
        said = defaultdict(list)
        made = combine(
            new, mine, answers, gone, lambda kind, name="", why="": said[kind].append((name, why))
        )
        if there and len(mine) == 1 and not damaged and _cells(made) == _cells(there[0].notebook):
            return
        untouched = _cells(made) == _cells(new) and made.metadata == new.metadata
        self.put[path] = self.versions.new / path if untouched else build.dumps(made).encode()
        self.backup |= {one.path for one in mine if not self.is_as_shipped(one.path)}
        for lesson in mine:
            if lesson.problem:
                self.say(LOOK, f"`{lesson.path}` could not be read ({lesson.problem}). It is in "
                         "the backup. Answers were taken from `notebooks/.learner/answers`, as "
                         f"you last ran them: {_listed(list(lesson.exercises)) or 'none'}.")
        counts = [
            _count(len(said["answer"]), "answer"),
            _count(len(said["own"]), "cell") + " of your own" if said["own"] else "",
        ]
        if any(counts):
            self.say(LESSONS, f"`{path}`: put back {' and '.join(filter(None, counts))}.")
        for name, why in said["beside"]:
            self.say(LOOK, f"`{path}`, `{name}`: {why}. Your old cell stands below, as comments.")
        for name, _ in said["gone"]:
            self.say(LOOK, f"`{path}`: the exercise `{name}` no longer exists. Your answer stands "
                     "at the end, as comments.")
        for line, _ in said["edited"]:
            self.say(LOOK, f"`{path}`: you had changed the cell that begins “{line}”. The new one "
                     "stands there, and yours below it.")
        if any(cell.id == HEADING.id for cell in made.cells):
            self.say(LOOK, f"`{path}`: what has no place in the new lesson stands at its end, "
                     "under “Your own cells”.")

    # ------------------------------------------------------------ all other files

    def _plan_files(self, done: set[str]) -> None:
        for path in sorted((self.new | self.base | self._old_modules()) - done):
            mine = self.mine(path)
            new = _bytes(self.versions.new / path) if path in self.new else None
            if _same(mine, new):
                continue
            if path in self.new and mine is not None:
                self._replace(path)
            elif path in self.new:
                # What the learner deleted stays away, as long as the course leaves it alone.
                if not self.is_in_both(path) or path.startswith("solutions/"):
                    self.put[path] = self.versions.new / path
            else:
                self.remove.append(path)
                if not self.is_as_shipped(path):
                    self.backup.add(path)
                    self.say(FILES, f"`{path}` is not in the newer version: moved to the backup.")

    def _replace(self, path: str) -> None:
        """Plan the newer version of a file that is here."""
        if not self.is_as_shipped(path):
            if self.is_in_both(path) and not path.startswith("solutions/"):
                self.say(FILES, f"`{path}`: you changed it and the update does not; left as it is.")
                return
            self.backup.add(path)
            if self.versions.base is not None:
                self.say(FILES, f"`{path}`: replaced by the newer version; yours is in the backup.")
        self.put[path] = self.versions.new / path

    def _old_modules(self) -> set[str]:
        """Where the old version is not known: code of this copy that would be in the way."""
        if self.versions.base is not None:
            return set()
        return {
            path
            for path in files_of(self.root)
            if path.startswith(("notebooks/course/", "solutions/"))
            and path.endswith((".py", "_solution.ipynb"))
        }

    def _plan_rest(self) -> None:
        kept = {path.casefold() for path in self.new}  # on some disks a and A are one file
        self.remove = [path for path in self.remove if path.casefold() not in kept]
        for path in self.put:
            parts = [self.root / one for one in PurePosixPath(path).parents]
            if (self.root / path).is_dir() or any(one.is_file() for one in parts):
                raise UpdateError(
                    f"the newer version has a file {path}, and in its place or above it you have "
                    "something else. Move that away and run this again."
                )
        if self.versions.base is None and self.backup:
            self.say(FILES, f"{_count(len(self.backup), 'file')} replaced or removed. Without git "
                     "it is not known which of them you changed: all are in the backup.")
        if self.versions.git and self.versions.git["merge"]:
            self.say(FILES, "Your commits stay. One that joins them with the newer version is put "
                     "on top; it holds the files that you had committed, as they are now.")
        if "requirements.txt" in self.put:
            self.say(NEXT, "The requirements changed: run `pip install -r requirements.txt`.")
        self.say(NEXT, "Close the notebooks that are open in JupyterLab and open them again (where "
                 "it asks, choose Revert, not Overwrite), with their kernels restarted. Outputs "
                 "come back when you run the cells.")

    def text(self, title: str, backup: Path | None) -> str:
        """The report, in Markdown."""
        lines = [f"# {title}", "", f"`{self.root}`, from {self.versions.title}"]
        for section, said in self.report.items():
            if said:
                lines += ["", f"## {section}", "", *(f"- {line}" for line in said)]
        count = len(self.put) + len(self.remove)
        lines += ["", f"{_count(count, 'file')} changed in all."]
        if backup is not None:
            lines += ["", f"Backup: `{backup}`"]
        return "\n".join(lines) + "\n"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}" if number else ""


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _same(one: bytes | None, other: bytes | None) -> bool:
    """Equal but for the ends of lines, which git may have changed."""
    if one is None or other is None:
        return one is other
    return one.replace(b"\r\n", b"\n") == other.replace(b"\r\n", b"\n")


def _cells(notebook: NotebookNode) -> list[tuple]:
    return [(c.cell_type, c.get("id"), bare(c)) for c in notebook.cells if bare(c)]


def _read(path: Path) -> tuple[NotebookNode | None, str]:
    """A notebook, and why it cannot be read where it cannot."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cells without ids are given some
            notebook = build.read(path)
        if all(bare(cell) is not None and "metadata" in cell for cell in notebook.cells):
            return notebook, ""
        return None, "not a notebook"
    except Exception as error:  # whatever a damaged file may set off
        return None, (str(error) or type(error).__name__).splitlines()[0][:120]


def _worked(root: Path, path: str) -> NotebookNode | None:
    return _read(root / "solutions" / f"{PurePosixPath(path).stem}_solution.ipynb")[0]


def _lesson_paths(paths: set[str]) -> list[str]:
    """Those of the paths that are lessons: notebooks/NN_name.ipynb."""
    split = {path: PurePosixPath(path) for path in sorted(paths)}
    return [
        path
        for path, one in split.items()
        if one.parts[:-1] == ("notebooks",)
        and one.suffix == ".ipynb"
        and build.LESSON.match(one.stem)
    ]
