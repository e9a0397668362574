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
import threading
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.pool import ThreadPool
from pathlib import Path
from unittest import mock

import numpy as np

from course import build
from course.exercises import check, exercises, get
from course.exercises._registry import _is_placeholder, find, nearest

STATUSES = ("passed", "wrong", "error", "time out", "not started", "no such exercise")
MESSAGE = 4_000  # bytes: fits into a pipe's buffer, so that no writer waits for its reader
START_UP = 120.0  # seconds for a process to import the course on a busy machine


class GradeError(Exception):
    """Nothing can be graded; the message says what was expected and what was found."""


@dataclass
class Answer:
    """The function under `@exercise` in a notebook."""

    name: str
    cell: int  # index among the code cells
    node: ast.stmt | None  # None where the cell is no valid Python
    problem: str = ""  # the syntax error, where there is one

    @property
    def blank(self) -> bool:
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
    """Every notebook below `folder`, with its person and lesson, in order of path."""
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
    lesson = rf"(?<!\d)(?:{'|'.join(stems)}|\d\d_[a-z0-9_]+)"  # a lesson renamed is one, too
    stem = re.sub(lesson, "", path.stem, count=1)
    stem = re.sub(r"[-_ ]*(solution|[Cc]opy\d*|\(\d+\))$", "", stem).strip("-_ .")
    return stem or folder.resolve().name


def _read(folder: Path, path: Path, stems: list[str]) -> Submission:
    made = Submission(person_of(folder, path, stems), path)
    try:
        notebook = build.read(path)
        made.cells = [plain(str(cell.source)) for cell in build.code_cells(notebook)]
    except (build.BuildError, AttributeError) as error:
        made.problem = f"not a notebook: {_line(str(error).split('not a notebook: ')[-1])}"
        return made
    for index, source in enumerate(made.cells):
        for answer in answers_in(source, index):
            before = made.answers.get(answer.name)
            if before is not None:
                if answer.blank and not before.blank:
                    answer = before
                taken = f"stands more than once: code cell {answer.cell + 1} was taken"
                made.notes[answer.name] = taken
            made.answers[answer.name] = answer
    lessons = Counter(known.lesson for name in made.answers if (known := find(name)))
    named = [stem[:2] for stem in stems if stem in str(path.relative_to(folder))]
    made.lesson = next((lesson for lesson, _ in lessons.most_common(1)), *named[:1] or [""])
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
    from IPython.core.inputtransformer2 import TransformerManager  # nothing for every process

    source = re.sub(r"\A\s*%%(time|timeit|capture|prun)\b.*", "", source)
    with contextlib.suppress(Exception):  # what is no Python is told by `parse`
        return TransformerManager().transform_cell(source)
    return source


def parse(source: str) -> tuple[ast.Module | None, str]:
    """The syntax tree of a cell, or None and what is wrong with it."""
    try:
        return ast.parse(source), ""
    except SyntaxError as error:
        return None, f"{type(error).__name__} in line {error.lineno} of the cell: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return None, f"no valid Python: {error}"


def chosen(found: list[Submission]) -> tuple[dict[tuple[str, str], Submission], list[Row]]:
    """One notebook a person and lesson: the one with most answers; rows for what is left out."""
    rows, copies = [], defaultdict(list)
    for one in found:
        if one.problem:
            rows.append(Row(one.person, one.lesson, "", "not graded", one.problem, str(one.path)))
        else:
            copies[one.person, one.lesson].append(one)
    taken = {}
    for (person, lesson), several in copies.items():
        best = max(several, key=lambda one: (one.answered, one.path.stat().st_mtime))
        taken[person, lesson] = best
        for one in (one for one in several if one is not best):
            said = f"another copy of the lesson; {best.path.name} was taken, it has "
            said += "more answers" if best.answered > one.answered else "as many answers"
            rows.append(Row(person, lesson, "", "not graded", said, str(one.path)))
    return taken, rows


# ---------------------------------------------------------------- what an answer needs


def binds(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement gives a value to; {"*"} for `from x import *`."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    table = symtable.symtable(ast.unparse(statement), "<cell>", "exec")
    symbols = table.get_symbols()
    names = {one.get_name() for one in symbols if one.is_assigned() or one.is_imported()}
    for node in ast.walk(statement):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            names.add("*")
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            names.update(one.id for one in ast.walk(node.value) if isinstance(one, ast.Name))
    return names


def uses(statement: ast.stmt) -> set[str]:
    """The global names that a top-level statement reads, inside its functions as well."""
    found = set()

    def visit(table, top):
        for one in table.get_symbols():
            if one.is_referenced() and (top or one.is_global()):
                found.add(one.get_name())
        for child in table.get_children():
            visit(child, False)

    visit(symtable.symtable(ast.unparse(statement), "<cell>", "exec"), True)
    return found


def needed(statements: list[ast.stmt], wanted: ast.stmt) -> tuple[list[bool], set[str]]:
    """Which statements have to run for `wanted` to find every name it uses; all names they use.

    No other exercise has to: its name stands for the reference.
    """
    names = uses(wanted)
    keep = [one is wanted for one in statements]
    again = True
    while again:
        again = False
        for place, one in enumerate(statements):
            if not keep[place] and not is_exercise(one) and binds(one) & (names | {"*"}):
                keep[place] = again = True
                names |= uses(one)
    return keep, names


# ---------------------------------------------------------------- inside an answer's own process


def _work(pipe, token: str, name: str, cells: list[str], home: str, memory: int) -> None:
    """Run in a new process: judge one answer, send the result, end without further ado."""
    status, note = "error", "the check itself failed"
    try:
        exercises()
        _fence(home, memory)
        pipe.send_bytes(b"ready")
        status, note = judge(name, cells)
    except MemoryError:
        note = "the answer asks for more memory than it may have"
    except BaseException as error:
        note = f"{type(error).__name__}: {error}"
    finally:
        pipe.send_bytes(json.dumps([token, status, _line(note)]).encode())
        os._exit(0)  # whatever threads or handlers the answer left behind


def _fence(home: str, memory: int) -> None:
    """Limits that the operating system keeps, as far as it has them."""
    os.environ["COURSE_HOME"] = home
    os.environ["COURSE_STRICT"] = ""
    os.makedirs(home)
    os.chdir(home)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    if hasattr(os, "setsid"):
        os.setsid()  # so that what it starts ends with it
    with contextlib.suppress(ImportError):
        import resource

        limits = {"RLIMIT_AS": memory, "RLIMIT_FSIZE": 20_000_000, "RLIMIT_CORE": 0}
        for name, most in limits.items():
            with contextlib.suppress(AttributeError, OSError, ValueError):
                resource.setrlimit(getattr(resource, name), (most, most))


def judge(name: str, cells: list[str]) -> tuple[str, str]:
    """Run an answer with what it needs, and check it: its status and a note.

    cells: its own code cell and all before it.
    """
    exercise = get(name)
    statements, files = [], []
    for index, text in enumerate(cells):
        file = f"<ipython-input-{index}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        for one in (parse(text)[0] or ast.Module([], [])).body:
            statements.append(one)
            files.append(file)
    mine = [one for one in statements if is_exercise(one) and one.name == name][-1]
    keep, names = needed(statements, mine)
    mine.decorator_list = [one for one in mine.decorator_list if not build._is_exercise(one)]
    scope = {one: get(one).reference for one in exercises() if one in names and one != name}
    scope |= {"__name__": "__main__", "__builtins__": builtins}
    with np.errstate():  # a cell may set it for the whole process
        for one, file, kept in zip(statements, files, keep, strict=True):
            if not kept:
                continue
            try:
                exec(compile(ast.Module([one], []), file, "exec"), scope)
            except Exception as error:
                if one is mine:
                    return "error", f"{type(error).__name__}: {error}"
    report = check(name, scope.get(name))
    note = "" if report.passed else report.message
    if report.mistake:
        note = note.split("\n")[0]  # what to mend; where it shows is the learner's to look at
    if borrows(mine, exercise.reference, scope):
        note = f"calls the course's own {exercise.reference.__name__}. {note}".strip()
    return "time out" if report.timed_out else report.status, note


def borrows(node: ast.stmt, reference, scope: dict) -> bool:
    """Whether an answer plainly calls the reference that it should replace."""
    if any(scope.get(name) is reference for name in uses(node) - {node.name}):
        return True
    names = {node.name, reference.__name__}
    for one in ast.walk(node):
        origin = ""
        if isinstance(one, ast.ImportFrom) and names & {alias.name for alias in one.names}:
            origin = one.module
        elif isinstance(one, ast.Attribute) and one.attr in names:
            root = ast.unparse(one).split(".")[0]
            origin = getattr(scope.get(root), "__name__", "")
        if str(origin).split(".")[0] in ("solutions", "course"):
            return True
    return False


# ---------------------------------------------------------------- running them all


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


def run(tasks: list[tuple[Submission, Answer, Row]], seconds, notebook, memory, jobs, say) -> None:
    """Judge every answer, `jobs` at a time; its row gets its status, note and seconds."""
    spent: Counter = Counter()
    context, lock = _context(), threading.Lock()

    def one(numbered):
        number, (submission, answer, row) = numbered
        if spent[submission.path] >= notebook:
            row.status = "time out"
            row.note = f"not run: the notebook used up its {notebook:g} seconds"
            return
        home = os.path.join(folder, str(number))
        cells = submission.cells[: answer.cell + 1]
        row.status, note, row.seconds = _in_process(
            context, lock, answer.name, cells, seconds, home, memory
        )
        row.note = "; ".join(part for part in (note, row.note) if part)
        spent[submission.path] += row.seconds

    with (
        # Inherited: a process an answer is parallel enough.
        mock.patch.dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1"),
        tempfile.TemporaryDirectory(prefix="grade-", ignore_cleanup_errors=True) as folder,
        ThreadPool(jobs) as pool,  # each thread waits for one process at a time
    ):
        for done, _ in enumerate(pool.imap_unordered(one, enumerate(tasks)), start=1):
            say(done, len(tasks))


def _in_process(context, lock, name, cells, seconds, home, memory) -> tuple[str, str, float]:
    """Judge one answer in a new process: status, note and seconds.

    lock: `multiprocessing` looks after other processes, too, when one is started or waited for.
    """
    token = secrets.token_hex(16)
    reader, writer = context.Pipe(duplex=False)
    given = (writer, token, name, [lesson_imports(get(name).lesson), *cells], home, memory)
    process = context.Process(target=_work, args=given, daemon=True)
    with lock:
        process.start()
    writer.close()
    connection.wait([reader, process.sentinel], START_UP)
    ready = _received(reader) == b"ready"
    began = time.monotonic()
    ended = connection.wait([process.sentinel], seconds)
    took = round(time.monotonic() - began, 2)
    said = _received(reader) if ended else None
    with lock:
        if ready and hasattr(os, "killpg"):
            with contextlib.suppress(OSError):  # those that it started, too
                os.killpg(process.pid, signal.SIGKILL)
        if not ended:
            process.kill()
        process.join(10)
        code = process.exitcode
    reader.close()
    if not ended:
        return "time out", f"stopped after {took:.0f} seconds", took
    with contextlib.suppress(ValueError, TypeError):  # not from the check
        key, status, note = json.loads(said)
        if key == token and status in STATUSES:
            return status, _line(str(note)), took
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return "error", f"the answer ended its process ({how})", took


def _received(reader) -> bytes | None:
    """What a process has sent, None where there is nothing, or too much."""
    with contextlib.suppress(OSError, EOFError):
        return reader.recv_bytes(MESSAGE) if reader.poll() else None


@functools.cache
def lesson_imports(lesson: str) -> str:
    """The import statements of a lesson as the course has it, as the first cell of all."""
    return "\n".join(
        ast.unparse(node)
        for one in build.lessons()
        if one.number == lesson
        for cell in build.code_cells(build.read(one.blank))
        for node in ast.parse(plain(cell.source)).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    )


def grade(
    folder: Path, lessons=(), seconds=20.0, notebook=300.0, memory=2048, jobs=None,
    say=lambda done, count: None,
) -> list[Row]:  # fmt: skip
    """The rows of everybody's exercises, in order of person and lesson.

    lessons: numbers such as "01"; all that somebody handed in, if none is given.
    seconds: for one answer. notebook: for all answers of one notebook. memory: MB for one answer.
    Raises GradeError where there is nothing to grade.
    """
    wanted = [one.number for one in build.lessons(numbers=lessons)] if lessons else []
    taken, left_out = chosen(submissions(Path(folder)))
    left_out = [row for row in left_out if not wanted or row.lesson in (*wanted, "")]
    numbers = wanted or sorted({lesson for _, lesson in taken if lesson})
    order, rows, tasks = exercises(), [], []
    for person in {person for person, _ in taken} | {row.person for row in left_out}:
        for number in numbers:
            one = taken.get((person, number))
            for name in (name for name in order if get(name).lesson == number):
                row = Row(person, number, name, "not started", file=str(one.path) if one else "")
                rows.append(row)
                answer = one.answers.get(name) if one else None
                if answer is None:
                    row.note = "no cell has it" if one else "no notebook of this lesson"
                elif answer.node is None:
                    row.status, row.note = "error", answer.problem
                else:
                    row.note = one.notes.get(name, "")
                    if not answer.blank:
                        tasks.append((one, answer, row))
    for (person, lesson), one in taken.items():
        for name in one.answers if lesson in (*numbers, "") else ():
            if find(name) is None:
                near = nearest(name)
                note = f"did you mean {' or '.join(near)}?" if near else ""
                rows.append(Row(person, lesson, name, "no such exercise", note, str(one.path)))
    if tasks:
        jobs = max(1, int(jobs or os.cpu_count() or 1))
        run(tasks, seconds, notebook, int(memory * 2**20), jobs, say)
    return sorted(rows + left_out, key=lambda row: (row.person, row.lesson))


# ---------------------------------------------------------------- the table


def _line(text: str, limit: int = 200) -> str:
    """A text on one line, without what a terminal would obey."""
    text = " ".join(text.split())
    text = "".join("?" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def totals(rows: list[Row]) -> dict[str, Counter]:
    """How many exercises of each status a person has."""
    people = defaultdict(Counter)
    for row in rows:
        people[row.person].update([row.status] if row.exercise else [])
    return people


def lines(rows: list[Row]) -> Iterator[str]:
    """The table, then the totals, as text."""
    shown = [
        (r.person, r.lesson, r.exercise or Path(r.file).name, r.status, _line(r.note, 110))
        for r in rows
    ]
    yield from _columns(("person", "lesson", "exercise", "status", "note"), shown)
    yield ""
    counted = totals(rows)
    seen = {"passed"}.union(*counted.values())
    kinds = [kind for kind in STATUSES if kind in seen]
    shown = [
        (person, *(str(counts[kind]) for kind in kinds),
         str(sum(counts[kind] for kind in STATUSES if kind != "no such exercise")))
        for person, counts in counted.items()
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
    """Write the rows for a spreadsheet: UTF-8 with a mark that Excel knows."""
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "lesson", "exercise", "status", "note", "file", "seconds"])
        for row in rows:
            cells = (row.person, row.lesson, row.exercise, row.status, row.note, row.file)
            writer.writerow([*map(harmless, cells), f"{row.seconds:.2f}"])


def _positive(text: str) -> float:
    value = float(text) if re.fullmatch(r"\d{1,7}(\.\d+)?", text) else 0.0
    if not value:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def _say(done: int, count: int) -> None:
    """How far it is, where someone looks on."""
    if sys.stderr.isatty():
        end = "\n" if done == count else ""
        print(f"\r{done} of {count} answers", end=end, file=sys.stderr, flush=True)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m course grade", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER")
    add("--lesson", action="append", default=[], metavar="NN", help="only this one")
    add("--csv", type=Path, metavar="FILE", help="write the table for a spreadsheet")
    for name, usual, unit, text in (
        ("--seconds", 20, "N", "time for one answer"),
        ("--notebook-seconds", 300, "N", "time for all answers of one notebook"),
        ("--memory", 2048, "MB", "memory for one answer, where the system can limit it"),
        ("--jobs", os.cpu_count() or 1, "N", "answers at a time"),
    ):
        add(name, type=_positive, default=usual, metavar=unit, help=f"{text} ({usual})")
    given = parser.parse_args(arguments)
    with contextlib.suppress(AttributeError, OSError):
        sys.stdout.reconfigure(errors="backslashreplace")
    if given.csv is not None and (given.csv.is_dir() or not given.csv.resolve().parent.is_dir()):
        print(f"--csv: expected a file in a folder that exists, got {given.csv}", file=sys.stderr)
        return 2
    try:
        rows = grade(given.folder, given.lesson, given.seconds, given.notebook_seconds,
                     given.memory, given.jobs, _say)  # fmt: skip
    except (GradeError, build.BuildError) as error:
        print(error, file=sys.stderr)
        return 2
    for line in lines(rows):
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
