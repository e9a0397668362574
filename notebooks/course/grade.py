"""Grade a folder of notebooks: a row a person and exercise.

    python -m course grade FOLDER                    every lesson that somebody handed in
    python -m course grade FOLDER --lesson 01        one lesson (may be given several times)
    python -m course grade FOLDER --csv grades.csv   for a spreadsheet

FOLDER holds a folder a person (`ada/01_attention.ipynb`, at any depth), or notebooks whose names
say whose they are (`ada_01_attention.ipynb`).

Each answer runs in a process of its own, with limits of time and memory, together with what it
uses from the cells above it: imports, helper functions, constants. Other exercises' names stand
for the references, so that one mistake is counted once. What comes back is a short JSON text with
a token drawn for that process. This keeps answers that hang, crash or print without end away from
each other and from you. It is no wall against someone who means harm: an answer can read what you
can read, and the solutions are public (one that simply calls the reference is pointed out).
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import csv
import functools
import json
import linecache
import multiprocessing
import os
import re
import secrets
import signal
import symtable
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import connection
from pathlib import Path

from course import build

STATUSES = ("passed", "wrong", "error", "time out", "not started", "no such exercise")
LARGEST_FILE = 50_000_000
MESSAGE = 4_000  # bytes: fits into a pipe's buffer, so that no writer waits for its reader
START_UP = 120.0  # seconds for a process to import the course on a busy machine


class GradeError(Exception):
    """Nothing can be graded; the message says what was expected and what was found."""


@dataclass
class Answer:
    """The function under `@exercise` in a notebook, and the cells above it."""

    name: str
    cell: int  # index among the code cells
    node: ast.stmt | None  # None where the cell is no valid Python
    problem: str = ""  # the syntax error, where there is one

    @property
    def blank(self) -> bool:
        from course.exercises._registry import _is_placeholder

        return self.node is not None and all(map(_is_placeholder, self.node.body))


@dataclass
class Submission:
    """One notebook of one person."""

    person: str
    path: Path
    lesson: str = ""
    cells: list[str] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    problem: str = ""  # why it cannot be graded

    @property
    def answered(self) -> int:
        return sum(not one.blank for one in self.answers.values())


@dataclass
class Row:
    """One line of the table."""

    person: str
    lesson: str
    exercise: str
    status: str
    note: str = ""
    file: str = ""
    seconds: float = 0.0


# ---------------------------------------------------------------- reading what was handed in


def submissions(folder: Path) -> list[Submission]:
    """Every notebook below `folder`, with its person and lesson, in order of person and path."""
    if not folder.is_dir():
        kind = "a file" if folder.exists() else "nothing"
        raise GradeError(f"expected a folder with notebooks, found {kind} at {folder}")
    paths = [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() == ".ipynb"
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    if not paths:
        raise GradeError(f"there are no notebooks (*.ipynb) in {folder} or in folders below it")
    stems = [lesson.name for lesson in build.lessons()]
    return [_read(folder, path, stems) for path in paths]


def person_of(folder: Path, path: Path, stems: list[str]) -> str:
    """Whose notebook it is: the first folder below `folder`, else the file's name."""
    parts = path.relative_to(folder).parts
    if len(parts) > 1:
        return parts[0]
    stem = path.stem
    for lesson in stems:
        if lesson in stem:
            stem = stem.replace(lesson, "", 1)
            break
    else:
        stem = re.sub(r"(?<!\d)\d\d_\w+$", "", stem) or stem
    stem = re.sub(r"[-_ ]*(solution|[Cc]opy\d*|\(\d+\))$", "", stem).strip("-_ .")
    return stem or folder.resolve().name


def _read(folder: Path, path: Path, stems: list[str]) -> Submission:
    from course.exercises._registry import find

    made = Submission(person_of(folder, path, stems), path)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise build.BuildError(f"larger than {LARGEST_FILE // 10**6} MB")
        notebook = build.read(path)
        made.cells = [str(cell.source) for cell in build.code_cells(notebook)]
    except (build.BuildError, OSError, AttributeError) as error:
        made.problem = f"not a notebook: {_line(str(error).split('not a notebook: ')[-1])}"
        return made
    for index, source in enumerate(made.cells):
        for answer in answers_in(source, index):
            before = made.answers.get(answer.name)
            if before is not None:
                keep = before if answer.blank and not before.blank else answer
                made.notes[answer.name] = (
                    f"stands more than once: code cell {keep.cell + 1} was taken"
                )
                answer = keep
            made.answers[answer.name] = answer
    lessons = Counter(known.lesson for name in made.answers if (known := find(name)))
    if lessons:
        made.lesson = lessons.most_common(1)[0][0]
    else:
        parts = path.relative_to(folder).parts
        made.lesson = next(
            (stem[:2] for stem in stems for part in reversed(parts) if stem in part), ""
        )
    if not made.answers:
        made.problem = "no exercise is in this notebook"
    return made


_DEFINITION = re.compile(
    r"^@(?:\w+\.)?exercise\b.*\n(?:@.*\n|\s*\n|#.*\n)*def\s+(\w+)", re.MULTILINE
)


def answers_in(source: str, index: int = 0) -> list[Answer]:
    """The exercises of one cell; where it is no valid Python, those whose heads can be read."""
    if "exercise" not in source:
        return []
    tree, problem = parse(source)
    if tree is None:
        return [Answer(name, index, None, problem) for name in _DEFINITION.findall(source)]
    return [Answer(node.name, index, node) for node in tree.body if is_exercise(node)]


def is_exercise(node: ast.stmt) -> bool:
    """Whether a statement is a function under `@exercise`."""
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
        map(build._is_exercise, node.decorator_list)
    )


def plain(source: str) -> str:
    """A cell's source as Python: magics that time or capture a cell go, lines keep their place."""
    if re.match(r"\s*%%(time|timeit|capture|prun)\b", source):
        source = re.sub(r"%%.*", "", source, count=1)
    try:
        ast.parse(source)
    except SyntaxError:
        if "%" in source or "!" in source or "?" in source:
            from IPython.core.inputtransformer2 import TransformerManager

            with contextlib.suppress(Exception):
                return TransformerManager().transform_cell(source)
    except (ValueError, RecursionError, MemoryError):
        pass
    return source


def parse(source: str) -> tuple[ast.Module | None, str]:
    """The syntax tree of a cell, or None and what is wrong with it."""
    try:
        return ast.parse(plain(source)), ""
    except SyntaxError as error:
        return None, f"{type(error).__name__} in line {error.lineno} of the cell: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return None, f"no valid Python: {error}"


def chosen(found: list[Submission]) -> tuple[dict[tuple[str, str], Submission], list[Row]]:
    """One notebook a person and lesson: the one with most answers; rows for what is left out."""
    taken: dict[tuple[str, str], Submission] = {}
    rows = []
    for one in found:
        if one.problem:
            rows.append(Row(one.person, one.lesson, "", "not graded", one.problem, str(one.path)))
            continue
        other = taken.get((one.person, one.lesson))
        if other is None:
            taken[one.person, one.lesson] = one
            continue
        best, rest = (one, other) if _rank(one) > _rank(other) else (other, one)
        taken[one.person, one.lesson] = best
        said = f"another copy of the lesson; {best.path.name} was taken, it has "
        said += "more answers" if best.answered > rest.answered else "as many answers"
        rows.append(Row(one.person, one.lesson, "", "not graded", said, str(rest.path)))
    return taken, rows


def _rank(one: Submission):
    named = bool(re.fullmatch(r"(.*_)?\d\d_[a-z0-9_]+", one.path.stem))
    return one.answered, named, one.path.stat().st_mtime


# ---------------------------------------------------------------- what an answer needs


def binds(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement gives a value to; {"*"} for `from x import *`."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((one.asname or one.name).split(".")[0] for one in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            names.update(one.id for one in ast.walk(node.value) if isinstance(one, ast.Name))
    return names


def uses(statement: ast.stmt) -> set[str]:
    """The global names that a top-level statement reads, inside its functions as well."""
    text = ast.unparse(statement)
    found = set()

    def visit(table, top):
        for one in table.get_symbols():
            if one.is_referenced() and (top or one.is_global()):
                found.add(one.get_name())
        for child in table.get_children():
            visit(child, False)

    visit(symtable.symtable(text, "<cell>", "exec"), True)
    return found


def needed(statements: list[ast.stmt], wanted: ast.stmt) -> list[bool]:
    """Which statements have to run for `wanted` to find every name that it uses."""
    names = uses(wanted)
    keep = [one is wanted for one in statements]
    again = True
    while again:
        again = False
        for place, one in enumerate(statements):
            if not keep[place] and binds(one) & (names | {"*"}):
                keep[place] = again = True
                if not is_exercise(one):  # another exercise stands for its reference
                    names |= uses(one)
    return keep


# ---------------------------------------------------------------- inside an answer's own process


def _work(pipe, token: str, job: dict) -> None:
    """Run in a new process: judge one answer, send the result, end without further ado."""
    result = {"status": "error", "note": "the check itself failed"}
    try:
        from course.exercises import exercises

        exercises()
        _fence(job)
        pipe.send_bytes(b"ready")
        result = judge(job["name"], job["above"], job["source"], job["imports"])
    except MemoryError:
        result = {"status": "error", "note": "the answer asks for more memory than it may have"}
    except BaseException as error:
        result = {"status": "error", "note": f"{type(error).__name__}: {error}"[:300]}
    finally:
        result["note"] = _line(result["note"])
        result["token"] = token
        pipe.send_bytes(json.dumps(result).encode())
        os._exit(0)  # whatever threads or handlers the answer left behind


def _fence(job: dict) -> None:
    """Limits that the operating system keeps, as far as it has them."""
    os.environ["COURSE_HOME"] = job["home"]
    os.environ["COURSE_STRICT"] = ""
    os.makedirs(job["home"], exist_ok=True)
    os.chdir(job["home"])
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    if hasattr(os, "setsid"):
        os.setsid()  # so that what it starts ends with it
    with contextlib.suppress(ImportError):
        import resource

        for name, most in (
            ("RLIMIT_AS", job["memory"]),
            ("RLIMIT_FSIZE", 20_000_000),
            ("RLIMIT_CORE", 0),
        ):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                resource.setrlimit(getattr(resource, name), (most, most))


def judge(name: str, above: list[str], source: str, imports: list[str]) -> dict:
    """Run an answer's cell with what it needs, and check it: {"status", "note"}.

    above: the code cells before it. source: its own cell. imports: the lesson's own statements.
    """
    import numpy as np

    from course.exercises import check, get
    from course.exercises._registry import find

    exercise = get(name)
    cells = [(f"<ipython-input-{i}>", one) for i, one in enumerate([*above, source])]
    statements, places = [], []
    for file, text in cells:
        tree, _ = parse(text)
        for one in tree.body if tree else ():
            statements.append(one)
            places.append(file)
        linecache.cache[file] = (len(text), None, plain(text).splitlines(keepends=True), file)
    own = max(
        place
        for place, one in enumerate(statements)
        if is_exercise(one) and one.name == name and places[place] == cells[-1][0]
    )
    mine = statements[own]
    mine.decorator_list = [one for one in mine.decorator_list if not build._is_exercise(one)]
    keep = needed(statements, mine)
    names = set().union(*(uses(one) for one, kept in zip(statements, keep, strict=True) if kept))
    scope = {"__name__": "__main__", "__builtins__": builtins}
    with np.errstate():  # a cell may set it for the whole process
        _begin(scope, names, imports, exercise.lesson)
        for place, one in enumerate(statements):
            if not keep[place]:
                continue
            if place != own and is_exercise(one):
                other = find(one.name)
                if other is not None and one.name != name:
                    scope[one.name] = other.reference
                continue
            code = compile(ast.Module([one], []), places[place], "exec")
            try:
                exec(code, scope)
            except Exception as error:
                if place == own:
                    return {"status": "error", "note": f"{type(error).__name__}: {error}"}
    report = check(name, scope.get(name))
    status = "time out" if report.timed_out else report.status
    note = "" if report.passed else report.message
    if report.mistake:
        note = note.split("\n")[0]  # what to mend; where it shows is the learner's to look at
    if borrows(mine, exercise.reference, scope, name):
        note = f"calls the course's own {exercise.reference.__name__}. {note}".strip()
    return {"status": status, "note": note}


@functools.cache
def lesson_imports(lesson: str) -> list[str]:
    """The import statements of a lesson as the course has it, in order."""
    return [
        ast.unparse(node)
        for one in build.lessons()
        if one.number == lesson
        for cell in build.code_cells(build.read(one.blank))
        for node in (parse(cell.source)[0] or ast.Module([], [])).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]


def _begin(scope: dict, names: set[str], imports: list[str], lesson: str) -> None:
    """What the lesson itself imports, and the references of its exercises, as far as needed."""
    from course.exercises._registry import find

    for text in imports:
        if binds(ast.parse(text).body[0]) & names:
            with contextlib.suppress(Exception):
                exec(text, scope)
    for name in names:
        other = find(name) if name not in scope else None
        if other is not None and other.lesson == lesson:
            scope[name] = other.reference


def borrows(node: ast.stmt, reference, scope: dict, own: str) -> bool:
    """Whether an answer plainly calls the reference that it should replace."""
    if any(scope.get(name) is reference for name in uses(node) - {own}):
        return True
    names = {own, reference.__name__}
    for one in ast.walk(node):
        if isinstance(one, ast.ImportFrom) and _of_course(one.module):
            borrowed = names & {alias.name for alias in one.names}
            if borrowed:
                return True
        if isinstance(one, ast.Attribute) and one.attr in names:
            root = one.value
            while isinstance(root, ast.Attribute):
                root = root.value
            origin = scope.get(root.id) if isinstance(root, ast.Name) else None
            if _of_course(getattr(origin, "__name__", "")):
                return True
    return False


def _of_course(module) -> bool:
    return str(module).split(".")[0] in ("solutions", "course")


# ---------------------------------------------------------------- running them all


@dataclass
class _Task:
    submission: Submission
    answer: Answer
    row: Row


@dataclass
class _Running:
    task: _Task
    process: multiprocessing.Process
    pipe: connection.Connection
    token: str
    began: float
    deadline: float
    ready: bool = False


def _context():
    """New processes are forked from a clean one that has the course imported, where that is safe.

    On macOS the system's linear algebra does not survive a fork, Windows has none: there each
    process starts anew, which takes about half a second more.
    """
    if sys.platform.startswith("linux"):
        context = multiprocessing.get_context("forkserver")
        lessons = [f"course.exercises.lesson{one.number}" for one in build.lessons()]
        context.set_forkserver_preload(["course.grade", *lessons])
        return context
    return multiprocessing.get_context("spawn")


def run(tasks: list[_Task], seconds: float, notebook: float, memory: int, jobs: int, say=None):
    """Judge every task, `jobs` at a time; each task's row gets its status, note and seconds."""
    before = {name: os.environ.get(name) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
    os.environ.update(dict.fromkeys(before, "1"))  # inherited; a process an answer is parallel
    spent: Counter = Counter()
    waiting, running, done = list(reversed(tasks)), [], 0
    context = _context()
    with tempfile.TemporaryDirectory(prefix="grade-", ignore_cleanup_errors=True) as folder:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    task = waiting.pop()
                    if spent[task.submission.path] >= notebook:
                        task.row.status = "time out"
                        task.row.note = f"not run: the notebook used up its {notebook:g} seconds"
                        done += 1
                        continue
                    home = str(Path(folder) / str(len(waiting)))
                    running.append(_start(context, task, home, memory))
                _wait(running)
                for one in list(running):
                    if _ended(one, seconds):
                        running.remove(one)
                        spent[one.task.submission.path] += one.task.row.seconds
                        done += 1
                        if say:
                            say(done, len(tasks))
        finally:
            for one in running:
                _kill(one)
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def _start(context, task: _Task, home: str, memory: int) -> _Running:
    from course.exercises import get

    token = secrets.token_hex(16)
    reader, writer = context.Pipe(duplex=False)
    cells, place = task.submission.cells, task.answer.cell
    job = {
        "name": task.answer.name,
        "imports": lesson_imports(get(task.answer.name).lesson),
        "above": cells[:place],
        "source": cells[place],
        "home": home,
        "memory": memory,
    }
    process = context.Process(target=_work, args=(writer, token, job), daemon=True)
    process.start()
    writer.close()
    now = time.monotonic()
    return _Running(task, process, reader, token, now, now + START_UP)


def _wait(running: list[_Running]) -> None:
    """Sleep until a process ends, says that it is ready, or has had its time."""
    watched = [one.process.sentinel for one in running]
    watched += [one.pipe for one in running if not one.ready]
    left = min((one.deadline for one in running), default=0) - time.monotonic()
    connection.wait(watched, max(left, 0.0))


def _ended(one: _Running, seconds: float) -> bool:
    """Take what a process has to say; True once its row is complete."""
    alive = one.process.is_alive()
    if not one.ready and one.pipe.poll():
        with contextlib.suppress(OSError, EOFError):
            one.ready = one.pipe.recv_bytes(MESSAGE) == b"ready"
        one.began = time.monotonic()
        one.deadline = one.began + seconds
    if alive and time.monotonic() < one.deadline:
        return False
    row = one.task.row
    row.seconds = round(time.monotonic() - one.began, 2)
    said = None if alive else _result(one)
    code = one.process.exitcode
    _kill(one)
    if said is not None:
        row.status, note = said
    elif alive:
        row.status, note = "time out", f"stopped after {row.seconds:.0f} seconds"
    else:
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        row.status, note = "error", f"the answer ended its process ({how})"
    row.note = "; ".join(part for part in (note, row.note) if part)
    return True


def _result(one: _Running) -> tuple[str, str] | None:
    """(status, note), or None where what came is not from the check."""
    try:
        if not one.pipe.poll():
            return None
        said = json.loads(one.pipe.recv_bytes(MESSAGE))
        if secrets.compare_digest(str(said["token"]), one.token) and said["status"] in STATUSES:
            return said["status"], _line(str(said["note"]))
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        pass
    return None


def _kill(one: _Running) -> None:
    """End a process and those that it started."""
    if one.ready and hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(one.process.pid, signal.SIGKILL)
    one.process.kill()
    one.process.join(10)
    one.pipe.close()


def grade(
    folder: Path, lessons=(), seconds=20.0, notebook=300.0, memory=2048, jobs=None, say=None
) -> list[Row]:
    """The rows of everybody's exercises, in order of person and lesson.

    lessons: numbers such as "01"; all that somebody handed in, if none is given.
    seconds: for one answer. notebook: for all answers of one notebook. memory: MB for one answer.
    Raises GradeError where there is nothing to grade.
    """
    from course.exercises import exercises, get
    from course.exercises._registry import find, nearest

    wanted = [one.number for one in build.lessons(numbers=lessons)] if lessons else []
    taken, rows = chosen(submissions(Path(folder)))
    numbers = wanted or sorted({lesson for _, lesson in taken if lesson})
    rows = [row for row in rows if not wanted or row.lesson in (*wanted, "")]
    order = exercises()
    tasks = []
    for person in sorted({person for person, _ in taken} | {row.person for row in rows}):
        for number in numbers:
            one = taken.get((person, number))
            for name in (name for name in order if get(name).lesson == number):
                row = Row(person, number, name, "not started")
                rows.append(row)
                answer = one.answers.get(name) if one else None
                row.file = str(one.path) if one else ""
                if answer is None:
                    row.note = "no cell has it" if one else "no notebook of this lesson"
                    continue
                row.note = one.notes.get(name, "")
                if answer.node is None:
                    row.status, row.note = "error", answer.problem
                elif not answer.blank:
                    tasks.append(_Task(one, answer, row))
        for (whose, lesson), one in taken.items():
            for name in one.answers if whose == person and lesson in (*numbers, "") else ():
                known = find(name)
                if known is None:
                    near = nearest(name)
                    note = f"did you mean {' or '.join(near)}?" if near else ""
                    rows.append(Row(person, lesson, name, "no such exercise", note, str(one.path)))
    if tasks:
        run(tasks, seconds, notebook, memory * 2**20, jobs or os.cpu_count() or 1, say)
    rows.sort(
        key=lambda row: (
            row.person,
            row.lesson,
            row.exercise not in order,
            order.index(row.exercise) if row.exercise in order else 0,
        )
    )
    return rows


# ---------------------------------------------------------------- the table


def _line(text: str, limit: int = 200) -> str:
    """A text on one line, without what a terminal would obey."""
    text = " ".join(text.split())
    text = "".join("?" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def totals(rows: list[Row]) -> list[tuple[str, Counter]]:
    """How many exercises of each status a person has."""
    people: dict[str, Counter] = {}
    for row in rows:
        counts = people.setdefault(row.person, Counter())
        if row.exercise:
            counts[row.status] += 1
    return list(people.items())


def lines(rows: list[Row], only_totals: bool = False) -> Iterator[str]:
    """The table, then the totals, as text."""
    if not only_totals:
        shown = [
            (r.person, r.lesson, r.exercise or Path(r.file).name, r.status, _line(r.note, 110))
            for r in rows
        ]
        yield from _columns(("person", "lesson", "exercise", "status", "note"), shown)
        yield ""
    counted = totals(rows)
    kinds = [kind for kind in STATUSES if kind == "passed" or any(c[kind] for _, c in counted)]
    shown = [
        (_line(person), *(str(counts[kind]) for kind in kinds),
         str(sum(counts[kind] for kind in STATUSES if kind != "no such exercise")))
        for person, counts in counted
    ]  # fmt: skip
    yield from _columns(("person", *kinds, "of"), shown)


def _columns(head: tuple, rows: list[tuple]) -> Iterator[str]:
    table = [head, *[tuple(_line(cell) for cell in row) for row in rows]]
    wide = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip()


def harmless(text: str) -> str:
    """A cell of a spreadsheet that is not taken for a formula."""
    text = _line(text, 500)
    return f"'{text}" if text.lstrip()[:1] in tuple("=+-@|%＝＋－＠") else text


def write_csv(path: Path, rows: list[Row]) -> None:
    """Write the rows for a spreadsheet: UTF-8 with a mark that Excel knows, in one step."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(draft, "w", encoding="utf-8-sig", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["person", "lesson", "exercise", "status", "note", "file", "seconds"])
            for row in rows:
                cells = (row.person, row.lesson, row.exercise, row.status, row.note, row.file)
                writer.writerow([*map(harmless, cells), f"{row.seconds:.2f}"])
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _positive(kind):
    def read(text):
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < 10**7:
            raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
        return value

    return read


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m course grade", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER")
    add("--lesson", action="append", default=[], metavar="NN", help="only this one")
    add("--csv", type=Path, metavar="FILE", help="write the table for a spreadsheet")
    add("--totals", action="store_true", help="print the totals only")
    limits = (
        ("--seconds", float, 20.0, "N", "time for one answer"),
        ("--notebook-seconds", float, 300.0, "N", "time for all answers of one notebook"),
        ("--memory", int, 2048, "MB", "memory for one answer, where the system can limit it"),
        ("--jobs", int, os.cpu_count() or 1, "N", "answers at a time"),
    )
    for name, kind, usual, unit, text in limits:
        text = f"{text} ({usual:g})"
        add(name, type=_positive(kind), default=usual, metavar=unit, help=text)
    given = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError):
            stream.reconfigure(errors="backslashreplace")
    if given.csv is not None and (given.csv.is_dir() or not given.csv.resolve().parent.is_dir()):
        print(f"--csv: expected a file in a folder that exists, got {given.csv}", file=sys.stderr)
        return 2

    def say(done, count):
        if sys.stderr.isatty():
            end = "\n" if done == count else ""
            print(f"\r{done} of {count} answers", end=end, file=sys.stderr, flush=True)

    try:
        rows = grade(given.folder, given.lesson, given.seconds, given.notebook_seconds,
                     given.memory, given.jobs, say)  # fmt: skip
    except (GradeError, build.BuildError) as error:
        print(error, file=sys.stderr)
        return 2
    for line in lines(rows, given.totals):
        print(line)
    if given.csv is not None:
        try:
            write_csv(given.csv, rows)
        except OSError as error:
            print(f"{given.csv} could not be written: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
