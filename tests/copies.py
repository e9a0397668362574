"""Does Run All tell the truth on a half-done copy and on one with wrong answers?

    python tests/copies.py             every lesson: two copies each, run from top to bottom
    python tests/copies.py 02 08       these lessons
    python tests/copies.py --mixed 05  one copy with right, open and wrong answers in turn

A half-done copy has every second exercise answered with the reference's body. A wrong copy has
each answered with a named mistake: one whose source fits into the cell, else the first of all.
Each copy runs in a kernel as a learner's does, without COURSE_STRICT. It must reach its end without
an error; each exercise's notice must say what is true of it, and the board must say the same.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import copy
import inspect
import json
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from course import build, check
from course.exercises import get
from course.grade import uses

ROOT = Path(__file__).resolve().parents[1]
MARK = re.compile(r"^[○✗✓] (\w+): (not started|wrong|error|passed)")


@dataclass
class Expected:
    """What an exercise's notice has to say."""

    status: str
    message: str = ""

    @property
    def stands(self):
        return "is your function" if self.status == "passed" else "is the reference"


# ---------------------------------------------------------------- making copies


# What a mistake's source may use: anything else may mean something else in the lesson.
KNOWN = {*dir(builtins), "np"}


def with_mistake(source, name):
    """The cell with a named mistake in it, and what its notice has to say.

    The first one whose source fits into the cell, as a learner would have typed it; else the first
    of all, called by its name.
    """
    cell = build.exercise_definition(source)
    for mistake in get(name).mistakes:
        try:
            _, node = build.reference_definition(mistake.function)
            closed = inspect.getclosurevars(inspect.unwrap(mistake.function)).nonlocals
            fits = ast.dump(node.args) == ast.dump(cell.args) and uses(node) <= KNOWN
            if fits and not closed:
                return build.fill(source, mistake.function), expected_of(name, mistake)
        except build.BuildError:  # a lambda, a partial
            continue
    mistake = get(name).mistakes[0]
    given = ", ".join(one.arg for one in cell.args.args)
    lines = (
        "from course.exercises import get",
        f"return get({name!r}).mistakes[0].function({given})",
    )
    return with_body(source, "\n    ".join(lines)), expected_of(name, mistake)


def expected_of(name, mistake):
    """What the notice has to say where an answer is this mistake."""
    return Expected(check(name, mistake.function).status, mistake.message.split("\n")[0])


def with_body(source, line):
    """The cell with this in place of its `...`."""
    return re.sub(r"^    \.\.\.$", lambda match: f"    {line}", source, flags=re.MULTILINE)


def filled_copy(lesson, turns):
    """A copy of a lesson whose exercises are answered in turn: "right", "open" or "wrong"."""
    made = copy.deepcopy(build.normal(build.read(lesson.blank)))
    expected = {}
    for cell in build.code_cells(made):
        name = build.exercise_name(cell.source)
        if not name:
            continue
        turn = turns[len(expected) % len(turns)]
        if turn == "right":
            cell.source = build.fill(cell.source, get(name).reference)
            expected[name] = Expected("passed")
        elif turn == "wrong":
            cell.source, expected[name] = with_mistake(cell.source, name)
        else:
            expected[name] = Expected("not started")
    return made, expected


# ---------------------------------------------------------------- running them


class Kernel:
    """A learner's kernel: cells run in any order, an error does not stop it."""

    def __init__(self, home, timeout=1800):
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient
        from nbformat import v4

        environment = {
            **os.environ,
            "COURSE_STRICT": "",
            "COURSE_QUIET": "1",
            "COURSE_HOME": str(home),
            "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "IPYTHONDIR": str(Path(home) / "ipython"),
        }
        environment.pop("JPY_SESSION_NAME", None)
        manager = AsyncKernelManager(
            kernel_name="python3", kernel_spec_manager=build._this_environment()
        )
        self.notebook = v4.new_notebook()
        self.client = NotebookClient(
            self.notebook, km=manager, timeout=timeout, allow_errors=True, record_timing=False,
            coalesce_streams=True, resources={"metadata": {"path": str(ROOT / "notebooks")}},
            extra_arguments=["--log-level=ERROR"],
        )  # fmt: skip
        self.context = self.client.setup_kernel(env=environment)

    def __enter__(self):
        self.context.__enter__()
        return self

    def __exit__(self, *what):
        return self.context.__exit__(*what)

    def run(self, source):
        """Run a cell's source; returns its outputs."""
        from nbformat import v4

        cell = v4.new_code_cell(source)
        self.notebook.cells.append(cell)
        self.client.execute_cell(cell, len(self.notebook.cells) - 1)
        return build.kept_outputs(cell.outputs)


def run_all(notebook, home):
    """The outputs of every code cell, run from top to bottom in a new kernel."""
    with Kernel(home) as kernel:
        return [kernel.run(cell.source) for cell in build.code_cells(notebook)]


def text_of(outputs):
    """What a cell shows, as plain text."""
    parts = []
    for one in outputs:
        if one.output_type == "stream":
            parts.append(one.text)
        elif one.output_type == "error":
            parts.append(f"{one.ename}: {one.evalue}\n")
        else:
            parts.append(one.data.get("text/plain", "") + "\n")
    return "".join(parts)


def errors(outputs):
    return [f"{one.ename}: {one.evalue}" for one in outputs if one.output_type == "error"]


def untruths(notebook, outputs, expected, home):
    """What a run of a copy says that is not so, as sentences; [] where all is well."""
    found, seen = [], set()
    for cell, output in zip(build.code_cells(notebook), outputs, strict=True):
        head = cell.source.split("\n")[0][:60]
        found += [f"{head!r}: {error}" for error in errors(output)]
        name = build.exercise_name(cell.source)
        if not name:
            continue
        seen.add(name)
        text, want = text_of(output), expected[name]
        said = MARK.match(text)
        if said is None:
            found.append(f"{name}: no notice, but {text[:80]!r}")
        elif said.groups() != (name, want.status):
            found.append(f"{name}: expected {want.status}, the notice says {said[0]!r}")
        if want.message not in text:
            found.append(f"{name}: the notice lacks the mistake's message {want.message[:60]!r}")
        if want.stands not in text:
            found.append(f"{name}: the notice does not say that it {want.stands}")
    found += [f"{name}: no cell" for name in expected if name not in seen]
    board = Path(home) / "progress.json"
    kept = json.loads(board.read_text(encoding="utf-8"))["exercises"] if board.is_file() else {}
    for name, want in expected.items():
        status = kept.get(name, {}).get("status", "not started")
        if status != want.status:
            found.append(f"{name}: the board says {status}, and it is {want.status}")
    return found


COPIES = {"half": ("right", "open"), "wrong": ("wrong",), "mixed": ("right", "wrong", "open")}


def try_copy(lesson, kind):
    """Run one copy of a lesson: (exercises by status, what is untrue, seconds)."""
    made, expected = filled_copy(lesson, COPIES[kind])
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="encoder-course-copy-") as home:
        outputs = run_all(made, home)
        found = untruths(made, outputs, expected, home)
    return expected, found, time.monotonic() - began


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lessons", nargs="*", metavar="NN")
    parser.add_argument("--mixed", action="store_true", help="one copy a lesson in place of two")
    given = parser.parse_args(arguments)
    try:
        chosen = build.lessons(ROOT, given.lessons)
    except build.BuildError as error:
        print(error, file=sys.stderr)
        return 2
    kinds = ("mixed",) if given.mixed else ("half", "wrong")
    print(f"{'lesson':8}{'copy':7}{'passed':>8}{'open':>6}{'named':>7}{'untrue':>8}{'seconds':>9}")
    failed = False
    for lesson in chosen:
        for kind in kinds:
            expected, found, seconds = try_copy(lesson, kind)
            right = sum(one.status == "passed" for one in expected.values())
            blank = sum(one.status == "not started" for one in expected.values())
            named = len(expected) - right - blank
            counts = f"{right:8}{blank:6}{named:7}{len(found):8}{seconds:9.0f}"
            print(f"{lesson.number:8}{kind:7}{counts}", flush=True)
            for one in found:
                print(f"    {one}", flush=True)
            failed = failed or bool(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
