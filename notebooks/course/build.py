"""Put the lessons in their normal form, make the worked copies, and check both.

    python -m course build            all lessons
    python -m course build 01 06      these lessons
    python -m course build --text     the same without running a cell, where only text has changed
    python -m course build --check    say what is stale or against the rules; changes nothing

The source of truth is `notebooks/NN_name.ipynb`: no outputs, exercises blank. From it and from the
exercises' references comes `solutions/NN_name_solution.ipynb`: each blank body replaced by the
reference's, the cells run under COURSE_STRICT=1, the outputs kept.

Building twice gives the same bytes, as far as the cells print the same: cell ids come from the
name of the exercise or from the content, times are dropped, and so is the state of widgets (the
still picture beside it stays).
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import html
import inspect
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
LESSON = re.compile(r"^(\d\d)_[a-z0-9_]+$")

CODE_LINES = 15
TEXT_WORDS = 120
LINE_LENGTH = 100

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/svg+xml")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class BuildError(Exception):
    """A lesson cannot be built; the message says where and why."""


@dataclass(frozen=True)
class Lesson:
    """A learner's notebook and the worked copy that is made from it."""

    blank: Path
    worked: Path

    @property
    def name(self) -> str:
        return self.blank.stem

    @property
    def number(self) -> str:
        return self.name[:2]


def lessons(root: Path = ROOT, numbers=()) -> list[Lesson]:
    """The lessons below `root`, in order; only those whose number is in `numbers`, if given."""
    found = [
        Lesson(path, root / "solutions" / f"{path.stem}_solution.ipynb")
        for path in sorted((root / "notebooks").glob("*.ipynb"))
        if LESSON.match(path.stem)
    ]
    wanted = [str(number).removesuffix(".ipynb") for number in numbers]
    for number in wanted:
        if not any(number in (lesson.number, lesson.name) for lesson in found):
            raise BuildError(
                f"there is no lesson {number}; there are "
                f"{', '.join(lesson.name for lesson in found) or 'none'}"
            )
    if wanted:
        found = [one for one in found if one.number in wanted or one.name in wanted]
    return found


# ---------------------------------------------------------------- the normal form


def normal(notebook: NotebookNode, number: str | None = None) -> NotebookNode:
    """A learner's notebook as it is kept: no outputs, stable ids, nothing of the editor's.

    number: the lesson's; then the first use of each term carries its definition. Without it, the
    abbreviations in the text stay as they are.
    """
    made = nbformat.v4.new_notebook(metadata=copy.deepcopy(METADATA))
    made.nbformat_minor = 5
    taken: dict[str, int] = {}
    for cell in notebook.cells:
        source = _tidy(cell.source)
        if not source:
            continue
        new = {
            "code": nbformat.v4.new_code_cell,
            "markdown": nbformat.v4.new_markdown_cell,
            "raw": nbformat.v4.new_raw_cell,
        }[cell.cell_type]
        tags = sorted(cell.metadata.get("tags", []))
        bare = without_abbreviations(source) if cell.cell_type == "markdown" else source
        made.cells.append(
            new(
                source,
                id=_unused(_cell_id(cell.cell_type, bare), taken),
                metadata={
                    **({"tags": tags} if tags else {}),
                    # A quiz's source holds the answers: folded away until someone wants it.
                    **({"jupyter": {"source_hidden": True}} if source.startswith("quiz(") else {}),
                },
            )
        )
    if number is not None:
        texts = [cell for cell in made.cells if cell.cell_type == "markdown"]
        for cell, source in zip(
            texts, with_abbreviations([cell.source for cell in texts], number), strict=True
        ):
            cell.source = source
    return made


def _tidy(source: str) -> str:
    """No space at the end of a line (two make a line break in Markdown: use a paragraph)."""
    return "\n".join(line.rstrip() for line in source.splitlines()).strip("\n")


def _cell_id(kind: str, source: str) -> str:
    """From the exercise's name, else from the content: not from where the cell stands."""
    name = exercise_name(source) if kind == "code" else None
    if name:
        return f"exercise-{name.replace('_', '-')}"[:60]
    return hashlib.sha256(f"{kind}\n{source}".encode()).hexdigest()[:12]


def _unused(name: str, taken: dict[str, int]) -> str:
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else f"{name}-{taken[name]}"


# ---------------------------------------------------------------- the glossary in the texts

# What no definition is put into: code, formulas, HTML with all that is in it (so also the folded
# asides), comments, headings, the line under a lesson's title, tables, links and pictures.
_PLAIN_ONLY = re.compile(
    r"(?P<code>(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`))"
    r"|^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)[ ]*$"
    r"|\$\$.*?\$\$|\$[^$\n]+\$"
    r"|<!--.*?-->|<(?P<tag>[a-zA-Z][a-zA-Z0-9]*)\b[^>]*>.*?</(?P=tag)>|</?[a-zA-Z][^>]*>"
    r"|^#{1,6}[ ].*?$|^[ ]*\|.*?$|^\*Lesson \d\d .*?$"
    r"|!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\([^)]*\)|https?://\S+",
    re.MULTILINE | re.DOTALL,
)
_ABBREVIATION = re.compile(
    r"""(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`)|<abbr title="[^"]*">|</abbr>""", re.DOTALL
)


def without_abbreviations(text: str) -> str:
    """A Markdown text without the definitions that the build put into it."""
    return _ABBREVIATION.sub(lambda found: found[0] if found["tick"] else "", text)


def with_abbreviations(texts: list[str], number: str) -> list[str]:
    """The Markdown texts of a lesson; the first use of each term carries its definition.

    Each use becomes <abbr title="definition">word</abbr>, which shows the definition on hover. What
    stood there before is replaced, so that doing it twice changes nothing.
    """
    from course.glossary import TERMS

    meaning = {form: term for term in TERMS for form in term.marked_in(number)}
    # A longer term hides the shorter one in it, and so does a phrase of everyday language.
    known = set(meaning) | {phrase for term in TERMS for phrase in term.unless}
    known |= {form for term in TERMS for form in term.all_forms if " " in form}
    words = re.compile(
        r"(?<![\w\\-])(?:"
        + "|".join(_form_pattern(form) for form in sorted(known, key=len, reverse=True))
        + r")(?!\w|-\w)"
    )
    seen = set()

    def mark(word, before, after):
        form = " ".join(word.split())
        term = meaning.get(form) or meaning.get(form[:1].lower() + form[1:])
        if term is None or term.name in seen:
            return word
        # Stars between a letter and a tag would not be read as bold or italic.
        if re.search(r"\w\*+$", before) or re.match(r"\*+\w", after):
            return word
        seen.add(term.name)
        return f'<abbr title="{html.escape(term.definition)}">{word}</abbr>'

    def mark_text(text):
        return words.sub(
            lambda found: mark(found[0], text[: found.start()], text[found.end() :]), text
        )

    made = []
    for text in map(without_abbreviations, texts):
        parts, at = [], 0
        for found in _PLAIN_ONLY.finditer(text):
            parts.append(mark_text(text[at : found.start()]))
            parts.append(mark(found[0], "", "") if found["code"] else found[0])
            at = found.end()
        made.append("".join(parts) + mark_text(text[at:]))
    return made


def _form_pattern(form: str) -> str:
    """A form as it stands in a text: perhaps with a capital, or over the end of a line."""
    first = f"[{form[0].upper()}{form[0]}]" if form[0].islower() else re.escape(form[0])
    return first + re.escape(form[1:]).replace(r"\ ", r"[ \n]")


# ---------------------------------------------------------------- exercises


def exercise_definition(source: str) -> ast.FunctionDef | None:
    """The function under `@exercise` in a cell's source, or None."""
    if "exercise" not in source:
        return None
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a line magic, or code that is not finished
        return None
    found = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any(map(_is_exercise, node.decorator_list))
    ]
    if len(found) > 1:
        names = ", ".join(node.name for node in found)
        raise BuildError(f"one cell holds several exercises: {names}")
    return found[0] if found else None


def exercise_name(source: str) -> str | None:
    """The name of the exercise that a cell holds, or None."""
    node = exercise_definition(source)
    return node.name if node else None


def _is_exercise(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    if isinstance(decorator, ast.Attribute):
        return decorator.attr == "exercise"
    return isinstance(decorator, ast.Name) and decorator.id == "exercise"


def _without_docstring(node: ast.FunctionDef) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


def is_blank(node: ast.FunctionDef) -> bool:
    """Whether nothing but `...` follows the docstring."""
    body = _without_docstring(node)
    return bool(body) and all(
        isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Constant)
        and one.value.value is Ellipsis
        for one in body
    )


def reference_definition(reference: Callable) -> tuple[str, ast.FunctionDef]:
    """A reference's source, moved to the left margin, and its syntax tree."""
    bare = inspect.unwrap(reference)
    try:
        source = textwrap.dedent(inspect.getsource(bare))
        node = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError, IndexError) as error:
        raise BuildError(f"the reference {bare!r} has no source to show: {error}") from error
    if not isinstance(node, ast.FunctionDef):
        raise BuildError(f"the reference {bare.__name__} is not a plain function")
    return source, node


def body_lines(source: str, node: ast.FunctionDef) -> list[str]:
    """The lines of a function's body after its docstring, comments before them included."""
    body = _without_docstring(node)
    if not body:
        return ["    return None"]
    if body[0].lineno == node.lineno:  # def f(x): return x
        return [f"    {ast.unparse(one)}" for one in body]
    lines = source.splitlines()
    if body is node.body:
        first = body[0].lineno
        while lines[first - 2].strip().startswith("#"):
            first -= 1
    else:
        first = node.body[0].end_lineno + 1
    found = lines[first - 1 : node.end_lineno]
    while found and not found[0].strip():
        found.pop(0)
    return found


def fill(source: str, reference: Callable) -> str:
    """An exercise cell with its `...` replaced by the reference's body."""
    blank = exercise_definition(source)
    if blank is None:
        raise BuildError("the cell holds no exercise")
    if not is_blank(blank):
        raise BuildError(f"{blank.name}: the body must be a docstring and `...`, nothing more")
    text, node = reference_definition(reference)
    lines = source.splitlines()
    dots = _without_docstring(blank)
    first, last = dots[0].lineno, blank.end_lineno
    if first == blank.lineno:
        raise BuildError(f"{blank.name}: `...` must stand on a line of its own")
    filled = "\n".join([*lines[: first - 1], *body_lines(text, node), *lines[last:]])
    made = exercise_definition(filled)
    same = made is not None and [ast.dump(one) for one in _without_docstring(made)] == [
        ast.dump(one) for one in _without_docstring(node)
    ]
    if not same:
        raise BuildError(f"{blank.name}: the reference's body cannot be put into the cell")
    return filled


# ---------------------------------------------------------------- the worked copy


def worked_sources(lesson: Lesson, blank: NotebookNode, get: Callable) -> NotebookNode:
    """The worked copy without outputs: exercises filled in, links as seen from solutions/."""
    made = normal(blank, lesson.number)
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = _links_from_solutions(cell.source)
            continue
        name = exercise_name(cell.source)
        if name:
            cell.source = fill(cell.source, _reference(get, name))
    note = nbformat.v4.new_markdown_cell(
        f"*This is the worked copy: every exercise is filled in, and you see what each cell "
        f"gives. Yours, with the exercises open, is "
        f"[notebooks/{lesson.blank.name}](../notebooks/{lesson.blank.name}).*",
        id="worked-copy",
    )
    made.cells.insert(1 if made.cells and made.cells[0].cell_type == "markdown" else 0, note)
    return made


def _reference(get: Callable, name: str) -> Callable:
    try:
        return get(name).reference
    except KeyError as error:
        raise BuildError(f"{name}: {error.args[0]}") from error


LINK = re.compile(r"(\]\()([^)\s]+\.ipynb)(#[^)\s]*)?(\))")


def _links_from_solutions(text: str) -> str:
    """A link from one lesson to another leads, in a worked copy, to the other's worked copy."""

    def turn(match):
        before, target, anchor, after = match.groups()
        if "/" not in target and LESSON.match(target.removesuffix(".ipynb")):
            target = f"{target.removesuffix('.ipynb')}_solution.ipynb"
        return f"{before}{target}{anchor or ''}{after}"

    return LINK.sub(turn, text)


def execute(notebook: NotebookNode, folder: Path, timeout: int = 600) -> NotebookNode:
    """Run a worked copy in a new kernel of this environment, in `folder`, strictly."""
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    made = copy.deepcopy(notebook)
    with tempfile.TemporaryDirectory(prefix="encoder-course-build-") as home:
        environment = {
            **os.environ,
            "COURSE_STRICT": "1",
            "COURSE_QUIET": "1",
            "COURSE_HOME": home,
            "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "IPYTHONDIR": str(Path(home) / "ipython"),
        }
        environment.pop("JPY_SESSION_NAME", None)
        manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=_this_environment())
        client = NotebookClient(
            made, km=manager, timeout=timeout, record_timing=False, coalesce_streams=True,
            resources={"metadata": {"path": str(folder)}}, extra_arguments=["--log-level=ERROR"],
        )  # fmt: skip
        try:
            client.execute(env=environment)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise BuildError(f"a cell failed:\n{_plain(str(error))}") from error
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs = kept_outputs(cell.outputs)
            cell.metadata.pop("execution", None)
    made.metadata = NotebookNode(copy.deepcopy(METADATA))
    return made


def _this_environment():
    """Kernel specs in which "python3" is the Python that runs now, whatever is installed."""
    import ipykernel.kernelspec
    from jupyter_client.kernelspec import KernelSpecManager

    class Here(KernelSpecManager):
        def get_kernel_spec(self, kernel_name):
            return self.kernel_spec_class(
                resource_dir=ipykernel.kernelspec.RESOURCES,
                **ipykernel.kernelspec.get_kernel_dict(),
            )

    return Here()


def kept_outputs(outputs: list) -> list:
    """Outputs without widget state; pieces of one stream that follow each other are joined."""
    kept: list[NotebookNode] = []
    for output in outputs:
        output = copy.deepcopy(output)
        if output.output_type in ("display_data", "execute_result"):
            had_widget = output.data.pop(WIDGET_VIEW, None) is not None
            output.metadata.pop(WIDGET_VIEW, None)
            if had_widget and not set(output.data) - {"text/plain"}:
                continue  # "VBox(children=(...))" says nothing to a reader
        if output.output_type == "stream" and kept and kept[-1].get("name") == output.name:
            kept[-1].text += output.text
            continue
        kept.append(output)
    return kept


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


# ---------------------------------------------------------------- files


def read(path: Path) -> NotebookNode:
    """A notebook file; BuildError says what is wrong with it."""
    try:
        return nbformat.read(path, as_version=4)
    except FileNotFoundError:
        raise BuildError(f"{path.name}: there is no such file") from None
    except Exception as error:
        raise BuildError(f"{path.name}: not a notebook: {error}") from error


def dumps(notebook: NotebookNode) -> str:
    """The bytes of a notebook file: sorted keys, one space of indentation, a newline at the end."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT).rstrip("\n") + "\n"


def write(path: Path, notebook: NotebookNode) -> bool:
    """Write a notebook if its bytes change; in one step, so that it is never half written."""
    text = dumps(notebook)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_text(text, encoding="utf-8", newline="\n")
    os.replace(draft, path)
    return True


def build(lesson: Lesson, get: Callable, say: Callable = print) -> None:
    """Normalize a lesson's notebook and make its worked copy."""
    blank = normal(read(lesson.blank), lesson.number)
    if write(lesson.blank, blank):
        say(f"{lesson.blank.name}: normalized")
    made = execute(worked_sources(lesson, blank, get), lesson.worked.parent)
    changed = write(lesson.worked, made)
    say(f"{lesson.worked.name}: {'written' if changed else 'unchanged'}")


def build_text(lesson: Lesson, get: Callable, say: Callable = print) -> None:
    """As `build`, but nothing is run: the worked copy keeps the outputs that it has.

    Right only where no code has changed since the copy was made. BuildError names the first code
    cell that differs; the worked copy is then left as it is.
    """
    blank = normal(read(lesson.blank), lesson.number)
    if write(lesson.blank, blank):
        say(f"{lesson.blank.name}: normalized")
    changed = write(lesson.worked, with_outputs(worked_sources(lesson, blank, get), lesson))
    say(f"{lesson.worked.name}: {'text written' if changed else 'unchanged'}")


def with_outputs(wanted: NotebookNode, lesson: Lesson) -> NotebookNode:
    """A worked copy's sources with the outputs of the copy that is there, cell by cell."""
    must = f"it must be run: python -m course build {lesson.number}"
    if not lesson.worked.is_file():
        raise BuildError(f"there is no worked copy; {must}")
    made = copy.deepcopy(wanted)
    new, old = code_cells(made), code_cells(read(lesson.worked))
    for here, there in zip(new, old, strict=False):
        if here.source != there.source:
            raise BuildError(f"code has changed at {_where(made, here)}; {must}")
    if len(new) != len(old):
        raise BuildError(f"there are {len(new)} code cells, {len(old)} in the worked copy; {must}")
    for here, there in zip(new, old, strict=True):
        here.outputs, here.execution_count = there.outputs, there.execution_count
    return made


# ---------------------------------------------------------------- checks


def problems(lesson: Lesson, get: Callable, registered: Callable | None = None) -> list[str]:
    """All that is stale or against the rules in a lesson and its worked copy.

    registered: a function that gives the names of the lesson's exercises, in any order.
    """
    try:
        blank = read(lesson.blank)
    except BuildError as error:
        return [str(error)]
    found = [
        f"{lesson.blank.name}: {one}"
        for one in [*form_problems(blank, lesson.number), *text_problems(blank, lesson.blank)]
    ]
    found += [f"{lesson.blank.name}: {one}" for one in exercise_problems(blank, get)]
    if registered is not None:
        names = {name for cell in code_cells(blank) if (name := _name_or_none(cell.source))}
        found += [
            f"{lesson.blank.name}: the exercise {name} is registered for this lesson, "
            "and no cell has it"
            for name in sorted(set(registered(lesson.number)) - names)
        ]
    return found + [f"{lesson.worked.name}: {one}" for one in worked_problems(lesson, blank, get)]


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _name_or_none(source: str) -> str | None:
    try:
        return exercise_name(source)
    except BuildError:
        return None


def _where(notebook: NotebookNode, cell: NotebookNode) -> str:
    index = next(i for i, one in enumerate(notebook.cells) if one is cell)
    line = cell.source.strip().splitlines()[0][:50] if cell.source.strip() else ""
    return f"cell {index} ({line!r})"


def form_problems(notebook: NotebookNode, number: str | None = None) -> list[str]:
    """Against the normal form: outputs, ids, metadata, empty cells, definitions of terms."""
    found = []
    for cell in code_cells(notebook):
        if cell.outputs or cell.execution_count is not None:
            found.append(f"{_where(notebook, cell)} has outputs or a number")
    if found:
        return found
    try:
        text = dumps(notebook)
        wanted = dumps(normal(notebook, number))
    except (BuildError, nbformat.ValidationError) as error:
        return [str(error)]
    if text != wanted:
        found.append(
            "not in the normal form (ids, metadata, spaces, terms): run python -m course build"
        )
    return found


def text_problems(notebook: NotebookNode, path: Path) -> list[str]:
    """Against the limits of a cell; pictures without alt text; links that lead nowhere."""
    found = []
    for cell in notebook.cells:
        where = _where(notebook, cell)
        if cell.cell_type == "code":
            lines = cell.source.splitlines()
            if len(lines) > CODE_LINES:
                found.append(f"{where}: {len(lines)} lines of code, at most {CODE_LINES}")
            for line in lines:
                if len(line) > LINE_LENGTH:
                    found.append(f"{where}: a line of {len(line)} characters: {line[:40]}...")
        elif cell.cell_type == "markdown":
            count = len(cell.source.split())  # all of them: code and definitions on hover too
            if count > TEXT_WORDS:
                found.append(f"{where}: {count} words of text, at most {TEXT_WORDS}")
            found += [f"{where}: {one}" for one in alt_problems(cell.source)]
            found += [f"{where}: {one}" for one in link_problems(cell.source, path, notebook)]
        else:
            found.append(f"{where}: a raw cell")
    return found


FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
MARKDOWN_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?([^)\s>]+)>?[^)]*\)")


def _without_code(text: str) -> str:
    return INLINE_CODE.sub(" ", FENCE.sub(" ", text))


class _Tags(HTMLParser):
    """The start tags of a piece of HTML, and the text of an <svg>'s <title>."""

    def __init__(self):
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.titled = 0

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.titled += tag == "title"

    handle_startendtag = handle_starttag


def _tags(text: str) -> _Tags:
    parser = _Tags()
    parser.feed(text)
    parser.close()
    return parser


def alt_problems(text: str) -> list[str]:
    """Pictures in Markdown or HTML without alt text."""
    text = _without_code(text)
    found = [
        f"a picture without alt text: {match[3]}"
        for match in MARKDOWN_LINK.finditer(text)
        if match[1] and not match[2].strip()
    ]
    return found + _html_alt_problems(text)


def _html_alt_problems(text: str) -> list[str]:
    parsed = _tags(text)
    found = []
    for tag, attributes in parsed.found:
        if tag == "img" and not (attributes.get("alt") or "").strip():
            found.append(f"a picture without alt text: {(attributes.get('src') or '')[:60]}")
        if tag == "svg" and not (attributes.get("aria-label") or "").strip():
            hidden = attributes.get("aria-hidden") == "true"
            if not hidden and not parsed.titled:
                found.append("an <svg> without aria-label or <title>")
    return found


def link_problems(text: str, path: Path, notebook: NotebookNode | None = None) -> list[str]:
    """Relative links of a Markdown text that lead to no file, or to no heading."""
    text = _without_code(text)
    targets = [match[3] for match in MARKDOWN_LINK.finditer(text)]
    targets += [
        value
        for _, attributes in _tags(text).found
        for name in ("href", "src")
        if (value := attributes.get(name))
    ]
    found = []
    for target in targets:
        if re.match(r"[a-z][a-z0-9+.-]*:", target, re.IGNORECASE):
            continue
        file, _, anchor = target.partition("#")
        where = (path.parent / file).resolve() if file else path
        if file and not where.exists():
            found.append(f"the link to {target} leads nowhere")
        elif anchor and where.suffix == ".ipynb":
            same = where == path and notebook is not None
            if anchor not in headings(notebook if same else read(where)):
                found.append(f"the link to {target} leads to no heading")
    return found


def headings(notebook: NotebookNode) -> set[str]:
    """The anchors that JupyterLab gives to a notebook's headings."""
    return {
        re.sub(r"[`*]", "", match[1].strip()).replace(" ", "-")
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for match in re.finditer(r"^#{1,6}\s+(.+?)\s*#*$", FENCE.sub("", cell.source), re.MULTILINE)
    }


def exercise_problems(notebook: NotebookNode, get: Callable) -> list[str]:
    """Exercise cells that do not fit their reference."""
    found = []
    seen = set()
    for cell in code_cells(notebook):
        where = _where(notebook, cell)
        try:
            node = exercise_definition(cell.source)
            if node is None:
                continue
            if node.name in seen:
                found.append(f"{where}: the exercise {node.name} stands twice")
            seen.add(node.name)
            reference = _reference(get, node.name)
            _, wanted = reference_definition(reference)
        except BuildError as error:
            found.append(f"{where}: {error}")
            continue
        if not is_blank(node):
            found.append(f"{where}: {node.name} is not blank: a docstring and `...` only")
        if _signature(node) != _signature(wanted):
            found.append(
                f"{where}: {node.name}({_signature(node)}) in the lesson, "
                f"{node.name}({_signature(wanted)}) in the reference"
            )
        if _summary(node) != _summary(wanted):
            found.append(
                f"{where}: {node.name}: the docstring begins {_summary(node)!r} in the lesson, "
                f"{_summary(wanted)!r} in the reference"
            )
    return found


def _signature(node: ast.FunctionDef) -> str:
    """A function's parameters with their defaults, without annotations."""
    arguments = copy.deepcopy(node.args)
    for one in ast.walk(arguments):
        if isinstance(one, ast.arg):
            one.annotation = None
    return ast.unparse(arguments)


def _summary(node: ast.FunctionDef) -> str:
    return (ast.get_docstring(node) or "").split("\n")[0].strip()


def worked_problems(lesson: Lesson, blank: NotebookNode, get: Callable) -> list[str]:
    """What is stale or wrong in a worked copy."""
    again = f"run python -m course build {lesson.number}"
    if not lesson.worked.is_file():
        return [f"missing: {again}"]
    try:
        worked = read(lesson.worked)
        wanted = worked_sources(lesson, blank, get)
    except BuildError as error:
        return [str(error)]
    found = []
    if [(c.cell_type, c.id, c.source) for c in worked.cells] != [
        (c.cell_type, c.id, c.source) for c in wanted.cells
    ]:
        at = next(
            (
                f"{_where(wanted, new)} "
                for old, new in zip(worked.cells, wanted.cells, strict=False)
                if (old.cell_type, old.id, old.source) != (new.cell_type, new.id, new.source)
            ),
            f"{len(worked.cells)} cells in place of {len(wanted.cells)} ",
        )
        found.append(f"stale: {at}would be made differently: {again}")
    if dict(worked.metadata) != METADATA:
        found.append(f"metadata beside kernelspec and language_info: {again}")
    return found + output_problems(worked) + _link_problems_of(worked, lesson.worked)


def _link_problems_of(notebook: NotebookNode, path: Path) -> list[str]:
    return [
        f"{_where(notebook, cell)}: {one}"
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for one in link_problems(cell.source, path, notebook)
    ]


def output_problems(notebook: NotebookNode) -> list[str]:
    """Outputs of a worked copy that were not kept, or should not be."""
    found = []
    cells = code_cells(notebook)
    if cells and not any(cell.outputs for cell in cells):
        found.append("no cell has outputs")
    for number, cell in enumerate(cells, start=1):
        where = _where(notebook, cell)
        if cell.execution_count != number:
            found.append(f"{where} has the number {cell.execution_count}, expected {number}")
        for output in cell.outputs:
            found += [f"{where}: {one}" for one in _one_output_problems(output)]
    return found


MACHINE = re.compile(r"/(?:root|home|Users|tmp)/[\w.-]+|[A-Z]:\\Users\\|\b0x[0-9a-f]{6,}")


def _one_output_problems(output: NotebookNode) -> list[str]:
    if output.output_type == "error":
        return [f"an error is kept: {output.ename}"]
    if output.output_type == "stream":
        found = []
        if output.name == "stderr":
            found.append(f"a warning or message is kept: {output.text.strip()[:80]!r}")
        return found + _machine_problems(output.text)
    found = []
    data = output.data
    if WIDGET_VIEW in data:
        found.append("the state of a widget is kept")
    markup = data.get("text/html", "")
    if not markup and any(kind in data for kind in PICTURES):
        found.append("a picture without alt text: show it as HTML with <img alt>")
    found += _html_alt_problems(markup)
    found += alt_problems(data.get("text/markdown", ""))
    if "text/plain" in data:
        found += _machine_problems(data["text/plain"])
    return found


def _machine_problems(text: str) -> list[str]:
    found = MACHINE.search(text)
    return [f"shows a place or address of one machine: {found[0]}"] if found else []


# ---------------------------------------------------------------- the command


def registered_exercises(number: str) -> list[str]:
    """The names of the exercises that are registered for a lesson."""
    from course.exercises import _registry

    module = f"lesson{number}"
    error = _registry.load_lessons().get(module)
    if error is not None:
        raise BuildError(f"the exercises of {module} could not be loaded: {error}")
    return [name for name, one in _registry._exercises.items() if one.lesson == number]


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m course build", description=__doc__.splitlines()[0]
    )
    parser.add_argument("lessons", nargs="*", metavar="NN", help="numbers; all if none is given")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true", help="change nothing, print problems")
    how.add_argument(
        "--text", action="store_true", help="run nothing: new text, the outputs that are there"
    )
    given = parser.parse_args(arguments)
    from course.exercises import get

    try:
        chosen = lessons(ROOT, given.lessons)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 2
    if not chosen:
        print(f"there are no lessons in {ROOT / 'notebooks'}", file=sys.stderr)
        return 2
    failed = False
    for lesson in chosen:
        if not given.check:
            try:
                (build_text if given.text else build)(lesson, get)
            except BuildError as error:
                print(f"{lesson.name}: {error}", file=sys.stderr)
                failed = True
                continue
        try:
            found = problems(lesson, get, registered_exercises)
        except BuildError as error:
            found = [f"{lesson.name}: {error}"]
        for problem in found:
            print(problem, file=sys.stderr)
            failed = True
    if given.check and not failed:
        print(f"{len(chosen)} lesson{'s' if len(chosen) > 1 else ''}: in order")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
