"""What an update will do, found out before anything is changed."""

from __future__ import annotations

import re
import warnings
from pathlib import Path, PurePosixPath

import nbformat
from nbformat import NotebookNode

from course import build
from course.exercises import _store

from ._finish import UpdateError
from ._lesson import (
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
        self.put: dict[str, bytes | Path] = {}
        self.remove: list[str] = []
        self.backup: set[str] = set()
        self.report: dict[str, list[str]] = {name: [] for name in SECTIONS}
        self.new = files_of(versions.new)
        self.new_lessons = self._new_lessons()
        lessons = self._lessons()
        self._plan_lessons(lessons)
        if versions.base is not None:
            old = files_of(versions.base)
        else:  # code of this copy that would be in the way
            code = re.compile(r"(notebooks/course|solutions)/.*(\.py|_solution\.ipynb)")
            old = {path for path in files_of(root) if code.fullmatch(path)}
        self._plan_files((self.new | old) - set(self.new_lessons) - {one.path for one in lessons})
        self._plan_rest()

    def versions_of(self, path: str) -> tuple[bytes | None, bytes | None, bytes | None]:
        """A file as it was shipped, as it is here, and as it will be; None where there is none."""
        base = _text(self.versions.base / path) if self.versions.base is not None else None
        return base, _text(self.root / path), _text(self.versions.new / path)

    def say(self, section: str, line: str) -> None:
        if line not in self.report[section]:
            self.report[section].append(line)

    # ------------------------------------------------------------ lessons

    def _new_lessons(self) -> dict[str, NotebookNode]:
        found = {path: _read(self.versions.new / path)[0] for path in _lesson_paths(self.new)}
        for path, notebook in found.items():
            if notebook is None or any(
                not build.is_blank(build.exercise_definition(notebook.cells[index].source))
                for index in exercises_of(notebook).values()
            ):
                raise UpdateError(
                    f"{path} of the newer version cannot be read, or has answers in it: expected a "
                    "fresh copy of the course."
                )
        return found

    def _lessons(self) -> list[Lesson]:
        """The course's lessons in this copy, and the new lesson that each became."""
        found = []
        here = (self.root / "notebooks").glob("*.ipynb")
        for path in _lesson_paths({f"notebooks/{path.name}" for path in here}):
            notebook, problem = _read(self.root / path)
            base = self.versions.base and _read(self.versions.base / path)[0]
            lesson = Lesson(path, notebook or nbformat.v4.new_notebook(), base, problem)
            lesson.target = self._target(lesson)
            worked = self.root / "solutions" / f"{PurePosixPath(path).stem}_solution.ipynb"
            shipped = base or _read(worked)[0]  # whose cells have the same ids
            if shipped is None and lesson.target is None:
                continue  # the learner's own notebook
            target = self.new_lessons.get(lesson.target, nbformat.v4.new_notebook())
            if problem:
                lesson.notebook = _from_store(target)
            tell_apart(lesson, [target, shipped or target])
            found.append(lesson)
        return found

    def _target(self, lesson: Lesson) -> str | None:
        """The lesson of the same name, else the one that has most of its exercises and cells."""
        if lesson.path in self.new_lessons:
            return lesson.path
        ids = {cell.id for cell in (lesson.base or lesson.notebook).cells}
        tasks = {one for one in ids if one.startswith("exercise-")}
        best = (0, 0, None)
        for path, notebook in self.new_lessons.items():
            shared = ids & {cell.id for cell in notebook.cells}
            if 2 * len(shared & tasks) >= max(len(tasks), 1) or 2 * len(shared) >= max(len(ids), 1):
                best = max(best, (len(shared & tasks), len(shared), path))
        return best[2]

    def _plan_lessons(self, lessons: list[Lesson]) -> None:
        asked = {
            name: (path, notebook.cells[index].source)
            for path, notebook in self.new_lessons.items()
            for name, index in exercises_of(notebook).items()
        }
        answers: dict[str, Lesson] = {}
        for lesson in lessons:
            for name in lesson.exercises:
                place, blank = asked.get(name, (lesson.target, None))
                if not is_answered(lesson, name, blank):
                    continue
                if answers.setdefault(name, lesson) is not lesson:
                    self.say(LOOK, f"`{name}` is answered in two notebooks. The answer in "
                             f"`{answers[name].path}` was taken; the one in `{lesson.path}` is in "
                             "the backup.")
                elif lesson.target != place:
                    self.say(LESSONS, f"The exercise `{name}` moved to `{place}`, and your answer "
                             "with it.")
        gone = set(answers) - set(asked)
        for lesson in lessons:
            if lesson.target != lesson.path:
                self._plan_renamed(lesson, [name for name in gone if answers[name] is lesson])
        for path, new in self.new_lessons.items():
            mine = [one for one in lessons if one.target == path]
            if mine:
                self._plan_lesson(path, new, mine, answers, gone)
            elif self.versions_of(path)[0] != self.versions_of(path)[2]:  # else: deleted here
                self.put[path] = self.versions.new / path
                self.say(LESSONS, f"`{path}` is new in your copy.")
        empty = sorted(set(asked) - set(answers))
        waiting = [name for name in empty if (_store.answer(name) or "").strip()]
        if waiting:
            self.say(LOOK, f"`notebooks/.learner/answers` holds answers to {_listed(waiting)}, "
                     "whose cells were empty. They were left empty.")

    def _plan_renamed(self, lesson: Lesson, lost: list[str]) -> None:
        """A lesson that has another name in the newer version, or is not in it."""
        path, target = lesson.path, lesson.target
        self.remove.append(path)
        base, mine, _ = self.versions_of(path)
        if mine != base:
            self.backup.add(path)
        if target:
            became = "went into" if (self.root / target).is_file() else "is now"
            self.say(LESSONS, f"`{path}` {became} `{target}`.")
            if self.versions.git and path in self.versions.git["paths"]:
                self.versions.git["paths"].append(target)
            return
        yours = f"Yours, with answers to {_listed(lost)}," if lost else "Yours"
        self.say(LESSONS, f"`{path}` is no longer a part of the course."
                 + (f" {yours} is in the backup." if path in self.backup else ""))

    def _plan_lesson(self, path, new, mine, answers, gone) -> None:
        """The new lesson with all that the learner has of it."""
        old, here, newer = self.versions_of(path)
        alone = [one.path for one in mine] == [path] and not mine[0].problem
        if alone and old == newer:
            return  # untouched, with all that the learner has in it
        made, answered, own, look = combine(new, mine, answers, gone)
        if alone and _cells(made) == _cells(mine[0].notebook):
            return
        untouched = _cells(made) == _cells(new) and made.metadata == new.metadata
        self.put[path] = self.versions.new / path if untouched else build.dumps(made).encode()
        if here not in (None, old):
            self.backup.add(path)
        for lesson in mine:
            if lesson.problem:
                self.say(LOOK, f"`{lesson.path}` could not be read ({lesson.problem}). It is in "
                         "the backup. Answers were taken from `notebooks/.learner/answers`, as "
                         f"you last ran them: {_listed(list(lesson.exercises)) or 'none'}.")
        counts = [_count(answered, "answer")] if answered else []
        counts += [f"{_count(own, 'cell')} of your own"] if own else []
        if counts:
            self.say(LESSONS, f"`{path}`: put back {' and '.join(counts)}.")
        for line in look:
            self.say(LOOK, f"`{path}`{line}")

    # ------------------------------------------------------------ all other files

    def _plan_files(self, paths: set[str]) -> None:
        for path in sorted(paths):
            base, mine, new = self.versions_of(path)
            # What the learner changed or deleted stays so, as long as the course leaves it alone.
            theirs = base is not None and base == new and not path.startswith("solutions/")
            if mine == new or (mine is None and theirs):
                continue
            if mine not in (None, base):
                if theirs:
                    self.say(FILES, f"`{path}`: you changed it and the update does not; left as it "
                             "is.")
                    continue
                self.backup.add(path)
                if new is None:
                    self.say(FILES, f"`{path}` is not in the newer version: moved to the backup.")
                elif self.versions.base is not None:
                    self.say(FILES, f"`{path}`: replaced by the newer version; yours is in the "
                             "backup.")
            if new is None:
                self.remove.append(path)
            else:
                self.put[path] = self.versions.new / path

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
    return f"{number} {what}{'' if number == 1 else 's'}"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _text(path: Path) -> bytes | None:
    """A file's bytes but for the ends of lines, which git may have changed."""
    return path.read_bytes().replace(b"\r\n", b"\n") if path.is_file() else None


def _cells(notebook: NotebookNode) -> list[tuple]:
    return [(cell.cell_type, cell.id, bare(cell)) for cell in notebook.cells if bare(cell)]


def _read(path: Path) -> tuple[NotebookNode | None, str]:
    """A notebook, and why it cannot be read where it cannot."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about cells without ids
            notebook = build.read(path)
        for cell in notebook.cells:
            cell.setdefault("id", "")
            _ = bare(cell), cell.metadata  # what every cell has
        return notebook, ""
    except Exception as error:  # whatever a damaged file may set off
        return None, (str(error) or type(error).__name__).splitlines()[0][:120]


def _from_store(new: NotebookNode) -> NotebookNode:
    """In place of a notebook that cannot be read: the answers as they were last run."""
    saved = {name: _store.answer(name) for name in exercises_of(new)}
    return nbformat.v4.new_notebook(cells=[
        nbformat.v4.new_code_cell(source, id=exercise_id(name))
        for name, source in saved.items() if source
    ])  # fmt: skip


def _lesson_paths(paths: set[str]) -> list[str]:
    """Those of the paths that are lessons."""
    return sorted(one for one in paths if re.fullmatch(r"notebooks/\d\d_[a-z0-9_]+\.ipynb", one))
