"""One lesson: put the learner's answers and cells into its newer version.

Which cells are the course's is known from their ids: the build makes an id from the exercise's name
or from the content (`course.build.normal`), and JupyterLab keeps it.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import difflib
import re
from collections import defaultdict
from dataclasses import dataclass, field

import nbformat
from nbformat import NotebookNode

from course import build
from course.grade import answers_in

HEADING = nbformat.v4.new_markdown_cell(
    "## Your own cells\n\nThe update found no place for these in the lesson itself.",
    id="your-own-cells",
)
START, END = -1, -2  # in place of the index of a cell
ALIKE = 0.6  # from here on (0 to 1) a new text counts as the old one, reworded


# ---------------------------------------------------------------- cells


def bare(cell: NotebookNode) -> str:
    """A cell's source without what an editor or the glossary adds."""
    source = build._tidy(cell.source)
    return build.without_abbreviations(source) if cell.cell_type == "markdown" else source


def made_ids(cell: NotebookNode) -> set[str]:
    """The ids that the build gives to a cell with this content, now and before the glossary."""
    found = set()
    for source in (bare(cell), build._tidy(cell.source)):
        with contextlib.suppress(build.BuildError):  # several exercises in one cell
            found.add(build._cell_id(cell.cell_type, source))
    return found


def exercise_in(cell: NotebookNode) -> str | None:
    """The exercise that a cell holds, even where its code is not finished and does not parse."""
    found = answers_in(cell.source) if cell.cell_type == "code" else []
    return found[0].name if found else None


def exercise_id(name: str) -> str:
    return build._cell_id("code", f"@exercise\ndef {name}(): ...")


def exercises_of(notebook: NotebookNode) -> dict[str, int]:
    """The index of the cell of each exercise in a lesson as it is shipped."""
    return {name: i for i, cell in enumerate(notebook.cells) if (name := exercise_in(cell))}


def put_back(mine: str, base: str | None, new: str) -> tuple[str, str | None]:
    """An exercise's cell with the answer in it.

    mine, base, new: the cell's source as the learner has it, as it was shipped (None if that is not
    known), and in the newer version.
    Returns the source, and where not all of the learner's cell stands in it, a sentence on why.
    """
    if base is not None and build._tidy(base) == build._tidy(new):
        return mine, None  # the course did not change this cell
    mine = mine.strip("\n")
    try:
        have, want, old = map(build.exercise_definition, (mine, new, base or mine))
    except build.BuildError:  # several in one cell
        have = None
    if have is None:
        return new, "the code in your cell is not one finished function"
    if _task(have) != _task(want):
        (now, task), (before, old_task) = _task(want), _task(old)
        if before != now:
            return new, f"the exercise's parameters are now ({now}), and were ({before})"
        if old_task != task:
            return new, "the exercise's description changed"
        if _task(have)[0] != now:
            return new, f"your function takes ({_task(have)[0]}), not ({now})"
    frame, (head, tail) = _frame(mine, have), _frame(new, want)
    made = "\n".join([*head, *build.body_lines(mine, have), *tail])
    if _body(build.exercise_definition(made)) != _body(have):
        return new, "your function's body does not fit into the new cell as it is"
    if frame != (head, tail) and (base is None or frame != _frame(base, old)):
        return made, "your function's body was put back, but your cell held more than that"
    return made, None


def _task(node: ast.FunctionDef) -> tuple[str, str]:
    """What an exercise asks for: the parameters and the description."""
    return build._signature(node), ast.get_docstring(node) or ""


def _body(node: ast.FunctionDef | None) -> list[str] | None:
    return node and [ast.dump(one) for one in build._without_docstring(node)]


def _frame(source: str, node: ast.FunctionDef) -> tuple[list[str], list[str]]:
    """The lines of an exercise's cell before the function's body and after it."""
    lines = [line.rstrip() for line in source.splitlines()]
    has_docstring = build._without_docstring(node) is not node.body
    first = node.body[0].end_lineno if has_docstring else node.body[0].lineno - 1
    return lines[:first], lines[node.end_lineno :]


def set_aside(name: str, source: str, why: str) -> NotebookNode:
    """A cell that keeps an answer as comments, so that nothing runs by surprise."""
    head = [
        f"# Your cell `{name}` from before the update is kept here:",
        f"# {why}.",
        "# To use lines of it, select them and press Ctrl+/ (Command+/ on a Mac).",
        "",
    ]
    lines = [f"# {line}".rstrip() for line in source.splitlines()]
    made = exercise_id(name).replace("exercise", "kept", 1)
    return nbformat.v4.new_code_cell("\n".join([*head, *lines]), id=made)


def own_version(cell: NotebookNode) -> NotebookNode:
    """A cell of the course that the learner changed, to stand below the new one."""
    mark = "# Your version of the cell above:\n"
    if cell.cell_type != "code":
        mark = "*Your version of the text above:*\n\n"
    elif cell.source.startswith("%%"):  # a cell magic has to stay in the first line
        mark = ""
    made = clean(cell)
    made.source = mark + cell.source
    made.id = f"yours-{made.id}"[:60]
    return made


def clean(cell: NotebookNode) -> NotebookNode:
    """A copy of a cell, without outputs: they come from the old version."""
    made = copy.deepcopy(cell)
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", made.id):
        made.id = f"own-{min(made_ids(cell), default='cell')}"
    if made.cell_type == "code":
        made.outputs, made.execution_count = [], None
        made.metadata.pop("execution", None)
    try:
        nbformat.validate(made, ref=f"{made.cell_type}_cell", version=4, version_minor=5)
    except nbformat.ValidationError:  # what an extension wrote: the text is what counts
        plain = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
        made = plain.get(made.cell_type, nbformat.v4.new_raw_cell)(made.source, id=made.id)
    return made


# ---------------------------------------------------------------- a lesson


@dataclass
class Lesson:
    """A lesson as the learner has it.

    notebook  : what stands in the file; base: as it was shipped, None if that is not known
    problem   : why the file cannot be read; the notebook then holds the answers from `.learner`
    target    : the path of the new lesson that it became, None if there is none
    exercises : for each exercise's name, the index of its cell
    shipped   : for the index of each other cell of the course, whether the learner changed it
    """

    path: str
    notebook: NotebookNode
    base: NotebookNode | None = None
    problem: str = ""
    target: str | None = None
    exercises: dict[str, int] = field(default_factory=dict)
    shipped: dict[int, bool] = field(default_factory=dict)

    def source(self, name: str) -> str:
        return self.notebook.cells[self.exercises[name]].source

    def base_source(self, name: str) -> str | None:
        cells = self.base.cells if self.base is not None else []
        return next((cell.source for cell in cells if exercise_in(cell) == name), None)


def tell_apart(lesson: Lesson, versions: list[NotebookNode]) -> None:
    """Find the exercises in a lesson, and the other cells that the course shipped.

    versions: what is known of the course's lesson, the old version and the new.
    """
    known = {(cell.id, bare(cell)) for one in versions for cell in one.cells}
    ids = {one for one, _ in known}
    names = {name for one in versions for name in exercises_of(one)}
    by_id = {exercise_id(name): name for name in names}
    cells = lesson.notebook.cells
    for sure in (True, False):  # the cell that was shipped goes before a copy of it
        for index, cell in enumerate(cells):
            name = exercise_in(cell) or by_id.get(cell.id)
            if name and (cell.id == exercise_id(name) if sure else name in names):
                lesson.exercises.setdefault(name, index)
    unseen = ids - {cell.id for cell in cells}
    for index, cell in enumerate(cells):
        if index in lesson.exercises.values():
            continue
        plain = re.sub(r"-\d+$", "", cell.id)  # equal cells are told apart by a number
        if cell.id in ids or re.fullmatch(r"[0-9a-f]{12}", plain):
            # A hash of the content is its own proof, whatever version the cell comes from.
            same = plain in made_ids(cell) or (cell.id, bare(cell)) in known
            lesson.shipped[index] = bool(bare(cell)) and not same
        elif made_ids(cell) & unseen:  # an editor gave the cell another id
            lesson.shipped[index] = False


def is_answered(lesson: Lesson, name: str, new_source: str | None) -> bool:
    """Whether the learner wrote something into an exercise's cell."""
    source, base = build._tidy(lesson.source(name)), lesson.base_source(name)
    if not source or source in [build._tidy(one) for one in (base, new_source) if one is not None]:
        return False
    if base is None:
        with contextlib.suppress(build.BuildError):
            node = build.exercise_definition(source)
            return node is None or not build.is_blank(node)
    return True


def counterparts(lesson: Lesson, new: NotebookNode) -> dict[int, int]:
    """Where the course's cells in the learner's lesson stand in the new one, by their indices.

    By the exercise's name, by id, and between two such places by likeness, for texts reworded.
    """
    at_name, at_id = exercises_of(new), {cell.id: i for i, cell in enumerate(new.cells)}
    found = {i: at_name[name] for name, i in lesson.exercises.items() if name in at_name}
    for index in lesson.shipped:
        cell = lesson.notebook.cells[index]
        known = [at_id[one] for one in (cell.id, *made_ids(cell)) if one in at_id]
        if known:
            found[index] = known[0]
    for index in sorted(set(lesson.shipped) - set(found)):
        cell = lesson.notebook.cells[index]
        before = max((i for i in found if i < index), default=None)
        after = min((i for i in found if i > index), default=None)
        first = 0 if before is None else found[before] + 1
        stop = len(new.cells) if after is None else found[after]
        words = {
            tuple(bare(new.cells[i]).split()): i
            for i in range(first, stop)
            if new.cells[i].cell_type == cell.cell_type and i not in found.values()
        }
        for one in difflib.get_close_matches(tuple(bare(cell).split()), words, 1, ALIKE):
            found[index] = words[one]
    return found


def combine(
    new: NotebookNode, lessons: list[Lesson], answers: dict[str, Lesson], gone: set[str]
) -> tuple[NotebookNode, int, int, list[str]]:
    """The new lesson with the learner's answers and cells in it.

    Beside it, for the report: how many answers and how many cells of their own were put back, and
    what to look at, as sentences that follow the lesson's path.

    lessons: what the learner has of this lesson, mostly one. answers: for an exercise's name, the
    lesson that holds an answer. gone: names of exercises that no new lesson has.
    """
    after, own, answered, look = defaultdict(list), 0, 0, []
    for lesson in lessons:
        places = counterparts(lesson, new)
        names = {index: name for name, index in lesson.exercises.items()}
        anchor = START
        for index, cell in enumerate(lesson.notebook.cells):
            name = names.get(index)
            if HEADING.id == cell.id or HEADING.source == cell.source:
                anchor = END
            elif name is not None or index in lesson.shipped:
                anchor = places.get(index, END)
                if name in gone and answers[name] is lesson:
                    why = "the newer version has no exercise of this name"
                    after[END].append(set_aside(name, cell.source, why))
                    look.append(f": the exercise `{name}` no longer exists. Your answer stands at "
                                "the end, as comments.")
                elif lesson.shipped.get(index):
                    after[anchor].append(own_version(cell))
                    line = bare(cell).splitlines()[0]
                    line = line if len(line) <= 50 else f"{line[:49].rstrip()} …"
                    look.append(f": you had changed the cell that begins “{line}”. The new one "
                                "stands there, and yours below it.")
            elif cell.source.strip():
                after[anchor].append(clean(cell))
                own += 1
    made = copy.deepcopy(new)
    made.cells = after[START]
    for index, cell in enumerate(copy.deepcopy(new.cells)):
        name = exercise_in(cell)
        made.cells.append(cell)
        if name in answers:
            lesson = answers[name]
            mine, base, blank = lesson.source(name), lesson.base_source(name), cell.source
            # `.learner` holds functions without the rest of their cells.
            cell.source, why = put_back(mine, None if lesson.problem else base, blank)
            if why and not (lesson.problem and cell.source != blank):
                made.cells.append(set_aside(name, mine, why))
                look.append(f", `{name}`: {why}. Your old cell stands below, as comments.")
            else:
                answered += 1
        made.cells += after[index]
    for lesson in lessons:
        kernel = lesson.notebook.metadata.get("kernelspec", {})
        if kernel.get("name", "python3") != "python3":  # the learner chose another environment
            made.metadata["kernelspec"] = copy.deepcopy(kernel)
    if after[END]:
        made.cells += [copy.deepcopy(HEADING), *after[END]]
        look.append(": what has no place in the new lesson stands at its end, under “Your own "
                    "cells”.")
    taken = {}
    for cell in made.cells:  # ids have to differ
        cell.id = build._unused(cell.id, taken)
    return made, answered, own, look
