"""How much the exercises' cases can tell apart: every small change to each reference, checked.

    python tests/mutation.py [exercise ...] [--lesson NN] [--survivors] [--write]

Each mutant is an exercise's reference with one small change to its syntax tree: another constant,
axis or sign, `<` for `<=`, a dropped term, argument or statement, two things swapped. It runs in
the globals of the reference's module, without the check of its inputs, through `course.check`. A
mutant that passes is a wrong answer that a learner could hand in and be told it is right; it calls
for a better case, unless it computes the same: tests/mutation_equivalent.json lists those, with
the reason. `--write` keeps the table in tests/mutation_table.md; with names or a lesson, only
their rows change. `--survivors` prints what passed, and what was refused with no more than "wrong".
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import inspect
import json
import linecache
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is imported

import course  # noqa: E402
from course.exercises import _registry, get  # noqa: E402

HERE = Path(__file__).resolve().parent
EQUIVALENT = HERE / "mutation_equivalent.json"
TABLE = HERE / "mutation_table.md"
SCORE, LOCATED = 0.95, 0.90
# Judged by what an answer achieves, not by what it returns: any design that reaches the target is
# right, and so a change of the reference that still reaches it must pass. They are left out here;
# their named mistakes and other right answers are tested like everyone's.
BY_BEHAVIOR = ("pair_features", "pair_model")

SECONDS = 1.0  # references take a few hundredths; what is stopped twice never ends
MEMORY = 3 * 2**30  # a loop that never ends may also collect without end


# --- Making mutants -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change: what it is, the source line where it is, and the whole function after it."""

    label: str
    line: str
    source: str

    @property
    def key(self) -> str:
        return f"{self.label} | {self.line}"


COMPARE = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),  # codespell:ignore
    ast.NotIn: (ast.In,),  # codespell:ignore
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_PAIRS = (
    "min max|minimum maximum|argmin argmax|any all|zeros ones|zeros_like ones_like|sin cos"
    "|tril triu|floor ceil|sum mean|startswith endswith|removeprefix removesuffix|lower upper"
    "|union1d intersect1d"
)
FUNCTIONS = {
    one: other
    for pair in _PAIRS.split("|")
    for one, other in (pair.split(), reversed(pair.split()))
}
COMMUTATIVE = ("min", "max", "minimum", "maximum", "union1d", "intersect1d")
KEEP_CALL = ("range", "zip", "enumerate", "len")  # without these nothing runs at all


def exercises() -> list[str]:
    """The exercises whose answer is compared with the reference's."""
    return [name for name in course.exercises() if name not in BY_BEHAVIOR]


def mutants(name: str) -> list[Mutant]:
    """Every mutant of an exercise's reference, in the order of its source, no two alike."""
    bare = inspect.unwrap(get(name).reference)
    source = textwrap.dedent(inspect.getsource(bare))
    tree = ast.parse(source).body[0]
    tree.decorator_list = []
    _same_as_imported(ast.unparse(tree), bare)
    if ast.get_docstring(tree):
        tree.body = tree.body[1:]
    lines = source.splitlines()
    made, seen, labels = [], {ast.unparse(tree)}, {}
    for label, node in _changes(tree):
        text = ast.unparse(tree)
        if text in seen or _is_empty(tree):
            continue
        seen.add(text)
        line = " ".join(lines[node.lineno - 1].split())
        count = labels[label, line] = labels.get((label, line), 0) + 1
        made.append(Mutant(label if count == 1 else f"{label} (again, {count})", line, text))
    return made


def _same_as_imported(source: str, function) -> None:
    """Raise if the file changed after its import: then the source is not the function's."""
    scope: dict = {}
    with contextlib.suppress(Exception):
        exec(compile(source, "<source>", "exec"), dict(function.__globals__), scope)
    made = scope.get(function.__name__)
    if made is None or _names(made.__code__) != _names(function.__code__):
        file = inspect.getsourcefile(function)
        raise RuntimeError(f"{function.__name__}: {file} changed while this ran; run it again")


def _names(code) -> tuple:
    return code.co_varnames, sorted(code.co_names)


def _is_empty(tree: ast.FunctionDef) -> bool:
    return all(isinstance(statement, ast.Pass) for statement in tree.body)


def _changes(tree: ast.FunctionDef) -> Iterator[tuple[str, ast.AST]]:
    """Changes the tree in place, one change at a time: (what it is, the node where it is)."""
    parameters = [one.arg for one in tree.args.args + tree.args.kwonlyargs]
    for parent, field, index, node in list(_slots(tree)):
        where = _placed(node, parent)
        if isinstance(node, ast.stmt) and index is not None:
            body = getattr(parent, field)
            setattr(parent, field, [*body[:index], *body[index + 1 :]] or [ast.Pass()])
            yield f"removed `{_short(node)}`", where
            setattr(parent, field, body)
        for new in _variants(node, parent, parameters):
            _put(parent, field, index, new)
            yield f"`{_short(node)}` to `{_short(new)}`", where
            _put(parent, field, index, node)


def _slots(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Where a part may be replaced: (parent, field, index in a list or None, the part)."""
    for field, value in ast.iter_fields(node):
        if isinstance(node, ast.Raise) or field in ("annotation", "returns", "ctx"):
            continue  # what an error says is not compared
        for index, part in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(part, ast.AST):
                yield node, field, index, part
                yield from _slots(part)


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _placed(node: ast.AST, parent: ast.AST) -> ast.AST:
    """The node, or the nearest part of it or above it that knows its line."""
    near = [node, *ast.iter_child_nodes(node), parent]
    return next((one for one in near if hasattr(one, "lineno")), parent)


def _short(node: ast.AST) -> str:
    """A node in one line; of a compound statement its head."""
    text = ast.unparse(node).strip().split("\n")[0]
    return text if len(text) <= 70 else text[:67] + "..."


def _variants(node: ast.AST, parent: ast.AST, parameters: list[str]) -> Iterator[ast.AST]:
    """What may stand in place of a node: small changes of it."""
    match node:
        case ast.Constant() if not _is_negative(parent):
            yield from map(ast.Constant, _other_constants(node.value, parent))
        case ast.UnaryOp(operand=ast.Constant(value=int(value))) if _is_negative(node):
            yield from map(ast.Constant, (value, -value + 1, -value - 1))
        case ast.Name(id=name, ctx=ast.Load()) if name in parameters and len(parameters) > 1:
            after = parameters[(parameters.index(name) + 1) % len(parameters)]
            yield ast.Name(after, node.ctx)
        case ast.Attribute(value=ast.Name(id="np"), attr="inf"):
            yield ast.Constant(1e9)
        case ast.Attribute(attr="T"):
            yield node.value
        case ast.UnaryOp():
            yield node.operand
        case ast.BinOp():
            if type(node.op) in OPERATORS:
                yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
            yield node.left
            yield node.right
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield ast.BoolOp(other, node.values)
            for left_out in range(len(node.values)):
                rest = _without(node.values, left_out)
                yield ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0]
        case ast.Compare():
            for index, op in enumerate(node.ops):
                for new in COMPARE[type(op)]:
                    ops = [*node.ops[:index], new(), *node.ops[index + 1 :]]
                    yield ast.Compare(node.left, ops, node.comparators)
        case ast.Call():
            yield from _other_calls(node, parent)
        case ast.Slice():
            for part in ("lower", "upper", "step"):
                if getattr(node, part) is not None:
                    parts = {p: getattr(node, p) for p in ("lower", "upper", "step")}
                    yield ast.Slice(**(parts | {part: None}))
        case ast.Tuple() | ast.List():
            for elements in _swapped(node.elts):
                yield type(node)(elements, node.ctx)
        case ast.Dict():
            for values in _swapped(node.values):
                yield ast.Dict(node.keys, values)
        case ast.IfExp():
            yield node.body
            yield node.orelse
        case ast.comprehension():
            for index, test in enumerate(node.ifs):
                rest = _without(node.ifs, index)
                yield ast.comprehension(node.target, node.iter, rest, node.is_async)
                for new in _negated(test):
                    yield ast.comprehension(node.target, node.iter, [*rest, new], node.is_async)
        case ast.If():
            for test in [ast.Constant(True), ast.Constant(False), *_negated(node.test)]:
                yield ast.If(test, node.body, node.orelse)
        case ast.While():
            for test in _negated(node.test):
                yield ast.While(test, node.body, node.orelse)
        case ast.AugAssign():
            if type(node.op) in OPERATORS:
                yield ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
            yield ast.Assign([node.target], node.value, lineno=node.lineno)
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()


def _is_negative(node: ast.AST) -> bool:
    """Whether this is a negative whole number, which is two nodes in a syntax tree."""
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and isinstance(node.operand.value, int)
    )


def _other_constants(value, parent: ast.AST) -> Iterator:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
        yield value - 1
    elif isinstance(value, float):
        yield from (value * 1.5, value * 0.5) if value else (1.0, -1.0)
    elif isinstance(value, str) and not isinstance(parent, (ast.Subscript, ast.Dict)):
        yield "" if value else "x"


def _other_calls(node: ast.Call, parent: ast.AST) -> Iterator[ast.AST]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    for args in _swapped(node.args) if name not in COMMUTATIVE else []:
        yield ast.Call(node.func, args, node.keywords)
    if len(node.args) > 1:
        yield ast.Call(node.func, node.args[:-1], node.keywords)
    for index in range(len(node.keywords)):
        yield ast.Call(node.func, node.args, _without(node.keywords, index))
    if name in FUNCTIONS:
        other = FUNCTIONS[name]
        method = isinstance(node.func, ast.Attribute)
        func = ast.Attribute(node.func.value, other, node.func.ctx) if method else None
        yield ast.Call(func or ast.Name(other, ast.Load()), node.args, node.keywords)
    module = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    module = module and node.func.value.id in ("np", "re", "unicodedata")
    if isinstance(parent, ast.Expr) or name in KEEP_CALL:
        return
    if isinstance(node.func, ast.Attribute) and not module:
        yield node.func.value
    elif node.args and not isinstance(node.args[0], ast.Starred):
        yield node.args[0]


def _negated(test: ast.expr) -> list[ast.expr]:
    """`not test`, where no other change gives the same."""
    if isinstance(test, ast.UnaryOp) or (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return []
    return [ast.UnaryOp(ast.Not(), test)]


def _swapped(parts: list) -> Iterator[list]:
    for i in range(len(parts) - 1):
        yield [*parts[:i], parts[i + 1], parts[i], *parts[i + 2 :]]


def _without(parts: list, index: int) -> list:
    return [*parts[:index], *parts[index + 1 :]]


# --- Asking the check ---------------------------------------------------------------------------


@dataclasses.dataclass
class Result:
    """What the check said of all mutants of one exercise."""

    name: str
    lesson: str
    mutants: int = 0
    rejected: int = 0
    located: int = 0
    named: int = 0
    equivalent: int = 0
    survivors: list[Mutant] = dataclasses.field(default_factory=list)
    bare: list[tuple[Mutant, str]] = dataclasses.field(default_factory=list)
    not_survivors: list[str] = dataclasses.field(default_factory=list)

    @property
    def score(self) -> float:
        return self.rejected / max(self.mutants - self.equivalent, 1)

    @property
    def located_share(self) -> float:
        return self.located / max(self.rejected, 1)

    @property
    def good(self) -> bool:
        return self.score >= SCORE and self.located_share >= LOCATED and not self.not_survivors


def equivalents() -> dict[str, dict[str, str]]:
    """For each exercise: the mutants that compute the same, and why."""
    return json.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else {}


def examine(name: str) -> Result:
    """Check every mutant of one exercise."""
    exercise, listed = get(name), equivalents().get(name, {})
    result, met = Result(name, exercise.lesson), set()
    for mutant in mutants(name):
        report = ask(mutant, exercise)
        if report is None:
            continue
        result.mutants += 1
        if report.passed:
            met.add(mutant.key)
            if mutant.key in listed:
                result.equivalent += 1
            else:
                result.survivors.append(mutant)
            continue
        result.rejected += 1
        result.named += report.mistake is not None
        if is_located(report):
            result.located += 1
        else:
            result.bare.append((mutant, str(report)))
    result.not_survivors = sorted(set(listed) - met)
    return result


def ask(mutant: Mutant, exercise: _registry.Exercise):
    """The check's report on a mutant; None where it is no Python at all."""
    function = compiled(mutant, exercise)
    if function is None:
        return None
    with _shorter(exercise):
        report = course.check(exercise.name, function)
        if "your function was stopped" in report.message:  # was it the machine?
            report = course.check(exercise.name, function)
    return report


@contextlib.contextmanager
def _shorter(exercise: _registry.Exercise) -> Iterator[None]:
    """Within the block the check waits less long for what never ends."""
    before = _registry._exercises[exercise.name]
    seconds = min(exercise.seconds, SECONDS)
    _registry._exercises[exercise.name] = dataclasses.replace(before, seconds=seconds)
    try:
        yield
    finally:
        _registry._exercises[exercise.name] = before


def compiled(mutant: Mutant, exercise: _registry.Exercise):
    """The mutant as a function among the reference's globals; None if it does not compile."""
    bare = inspect.unwrap(exercise.reference)
    file = f"<mutant of {exercise.name}>"
    linecache.cache[file] = (len(mutant.source), None, mutant.source.splitlines(True), file)
    scope = dict(bare.__globals__)
    try:
        exec(compile(mutant.source, file, "exec"), scope)
    except Exception:
        return None
    return scope[bare.__name__]


PLACE = re.compile(
    r"At `|`[\w.]*\["  # the first entry that differs
    r"|has shape|of shape|has \d+ (parts|items?)|lacks|too many"  # its form
    r"|[;,] expected|parameter `|takes `"  # what it is, and what it should be
    r"|writes into its input|should raise"
)


def is_located(report) -> bool:
    """Whether a report says more than "wrong": the place, the form, the mistake or the error."""
    if report.mistake is not None or report.status == "error":
        return True
    return bool(PLACE.search(report.message.split("”: ", 1)[-1].replace("\n", " ")))


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def examine_all(names: list[str]) -> Iterator[Result]:
    """Two exercises at a time; results in the order of the names."""
    with ProcessPoolExecutor(max_workers=2, initializer=_limit_memory) as pool:
        yield from pool.map(examine, names)


# --- The table ----------------------------------------------------------------------------------

HEAD = """# What the exercises' checks tell apart

Made by `python tests/mutation.py --write`. A mutant is an exercise's reference with one small
change: another constant, axis or sign, `<` for `<=`, a dropped term or statement, two swapped
arguments. Equivalent ones compute the same, or differ only in what the exercise leaves open
(`mutation_equivalent.json` says why, for each). The score is the
share of the others that the check rejects; located is the share of these that are told more than
"wrong": the first place that differs, the shape, the error, or the matched mistake; named is the
number that match one of the exercise's named mistakes.

"""
COLUMNS = ("lesson", "exercise", "mutants", "rejected", "equivalent", "score", "located", "named")


def row(result: Result) -> dict[str, str]:
    """A line of the table."""
    return {
        "lesson": result.lesson,
        "exercise": result.name,
        "mutants": str(result.mutants),
        "rejected": str(result.rejected),
        "equivalent": str(result.equivalent),
        "score": f"{100 * result.score:.1f} %",
        "located": f"{100 * result.located_share:.1f} %",
        "named": str(result.named),
    }


def kept_table() -> dict[str, dict[str, str]]:
    """The kept table: rows by the name of the exercise."""
    rows = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(COLUMNS) and cells[0].isdigit():
            rows[cells[1]] = dict(zip(COLUMNS, cells, strict=True))
    return rows


def write_table(rows: dict[str, dict[str, str]]) -> None:
    """Keep the table: rows in the order of the course, and their sum."""
    rows = [rows[name] for name in exercises() if name in rows]
    counted = {c: sum(int(r[c]) for r in rows) for c in ("mutants", "rejected", "equivalent")}
    real = counted["mutants"] - counted["equivalent"]
    total = (
        f"\n{len(rows)} exercises, {counted['mutants']} mutants, {counted['equivalent']} of them "
        f"equivalent; {counted['rejected']} rejected, {100 * counted['rejected'] / real:.1f} %.\n"
    )
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * 2 + " ---: |" * 6]
    lines += ["| " + " | ".join(one[c] for c in COLUMNS) + " |" for one in rows]
    TABLE.write_text(HEAD + "\n".join(lines) + "\n" + total, encoding="utf-8", newline="\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("exercises", nargs="*", help="names of exercises; all of them by default")
    parser.add_argument("--lesson", help="all exercises of a lesson, such as 01")
    parser.add_argument("--survivors", action="store_true", help="print what passed")
    parser.add_argument("--write", action="store_true", help=f"keep the table in {TABLE.name}")
    given = parser.parse_args(arguments)
    names = given.exercises or exercises()
    if given.lesson:
        names = [name for name in names if get(name).lesson == given.lesson]
    rows, good = kept_table(), True
    width = max(map(len, names), default=0)
    for result in examine_all(names):
        rows[result.name], good = row(result), good and result.good
        cells = row(result)
        said = "  ".join(f"{column} {cells[column]}" for column in COLUMNS[2:])
        print(f"{result.lesson} {result.name:{width}}  {said}{'' if result.good else '  <--'}")
        for key in result.not_survivors:
            print(f"    listed as equivalent, but no mutant of that kind passes: {key}")
        if given.survivors:
            for mutant in result.survivors:
                print(f"    passed: {mutant.key}")
            for mutant, said in result.bare:
                print(f"    not located: {mutant.key}\n{textwrap.indent(said, ' ' * 8)}")
        sys.stdout.flush()
    if given.write:
        write_table(rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
