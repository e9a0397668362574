"""What an exercise is, and the list of all of them."""

from __future__ import annotations

import ast
import contextlib
import copy
import difflib
import dis
import importlib
import inspect
import pkgutil
import sys
import textwrap
import types
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One set of inputs. `make(rng)` returns `(args, kwargs)`; `why` says which fault it shows."""

    title: str
    make: Callable[[np.random.Generator], tuple[tuple, dict]]
    why: str = ""


@dataclass(frozen=True)
class Mistake:
    """A known wrong answer, and what to tell someone whose outputs equal its outputs."""

    name: str
    function: Callable
    message: str


@dataclass(frozen=True, eq=False)
class Exercise:
    """A registered exercise; see `register` for the fields."""

    name: str
    lesson: str
    reference: Callable
    cases: tuple[Case, ...]
    mistakes: tuple[Mistake, ...]
    also_right: tuple[Callable, ...]
    hints: tuple[str, str, str]
    rtol: float = 1e-6
    atol: float = 1e-8
    compare: Callable | None = None
    raises: tuple[Case, ...] = ()
    may_write: bool = False
    parts: tuple[str, ...] = ()
    seconds: float = 5.0

    @property
    def all_cases(self) -> tuple[Case, ...]:
        """The ordinary cases, then those on which an error is the right answer."""
        return self.cases + self.raises

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.reference)

    @property
    def summary(self) -> str:
        """The first line of the reference's docstring."""
        return (inspect.getdoc(self.reference) or "").split("\n")[0]

    def inputs(self, index: int) -> tuple[tuple, dict]:
        """Fresh inputs of case number `index`: equal at each call, and shared with nobody."""
        case = self.all_cases[index]
        made = case.make(np.random.default_rng(zlib.crc32(f"{self.name}:{index}".encode())))
        if not (
            isinstance(made, tuple)
            and len(made) == 2
            and isinstance(made[0], tuple)
            and isinstance(made[1], dict)
        ):
            raise TypeError(
                f"exercise {self.name}, case {case.title!r}: expected (args, kwargs), "
                f"a tuple and a dict; got {made!r:.200}"
            )
        return copy.deepcopy(made)

    def source(self, short: bool = False) -> str:
        """The reference's source without decorators; `short` keeps one line of its docstring."""
        bare = inspect.unwrap(self.reference)
        text = textwrap.dedent(inspect.getsource(bare))
        node = ast.parse(text).body[0]
        lines = text.splitlines()
        first = node.body[0]
        if short and ast.get_docstring(node) and first.end_lineno > first.lineno:
            lines[first.lineno - 1 : first.end_lineno] = [
                f'{" " * first.col_offset}"""{self.summary}"""'
            ]
        return "\n".join(lines[node.lineno - 1 :]) + "\n"


_exercises: dict[str, Exercise] = {}
_places: dict[str, tuple[str, int]] = {}


def register(
    *,
    name: str,
    lesson: str,
    reference: Callable,
    cases: Sequence[Case],
    mistakes: Sequence[Mistake],
    also_right: Sequence[Callable],
    hints: Sequence[str],
    rtol: float = 1e-6,
    atol: float = 1e-8,
    compare: Callable | None = None,
    raises: Sequence[Case] = (),
    may_write: bool = False,
    parts: Sequence[str] = (),
    seconds: float = 5.0,
) -> Exercise:
    """Add an exercise to the course.

    name: the function's name in the lesson, `lesson`: "01" and so on.
    reference: the right answer; its docstring's first line is the exercise's summary.
    cases: inputs on which the known mistakes differ from the reference.
    mistakes: at least three, the fundamental ones first: the first that matches is named.
    also_right: at least two other right answers.
    hints: three, from a nudge to almost the answer.
    rtol, atol: for floats in float64; wider on their own where a float32 is compared.
    compare: for answers that are not unique, `compare(learner_out, reference_out, args)` returns
        None for a right answer and a message otherwise.
    raises: cases on which the reference raises, and a right answer raises the same type.
    may_write: True for a function whose job is to change its arguments; these are compared too.
    parts: names of the parts of a returned tuple, for messages.
    seconds: how long all cases together may take.
    """
    problem = _problem(name, lesson, reference, cases, mistakes, also_right, hints)
    if problem:
        raise ValueError(f"exercise {name!r}: {problem}")
    caller = sys._getframe(1)
    place = (caller.f_globals.get("__name__", ""), caller.f_lineno)
    if name in _exercises and _places[name] != place:
        raise ValueError(f"exercise {name!r}: already registered by {_places[name][0]}")
    made = Exercise(
        name=name,
        lesson=lesson,
        reference=reference,
        cases=tuple(cases),
        mistakes=tuple(mistakes),
        also_right=tuple(also_right),
        hints=tuple(hints),
        rtol=rtol,
        atol=atol,
        compare=compare,
        raises=tuple(raises),
        may_write=may_write,
        parts=tuple(parts),
        seconds=seconds,
    )
    _exercises[name] = made
    _places[name] = place
    return made


def _problem(name, lesson, reference, cases, mistakes, also_right, hints) -> str | None:
    if not (isinstance(name, str) and name.isidentifier()):
        return "the name must be a Python name"
    if not (isinstance(lesson, str) and len(lesson) == 2 and lesson.isdigit()):
        return f"the lesson must be two digits such as '01', got {lesson!r}"
    if not callable(reference):
        return f"the reference must be callable, got {type(reference).__name__}"
    if not (inspect.getdoc(reference) or "").split("\n")[0].strip():
        return "the reference needs a docstring whose first line says what it returns"
    if not cases:
        return "at least one case is needed"
    if len(mistakes) < 3:
        return f"at least 3 named mistakes are needed, got {len(mistakes)}"
    if len(also_right) < 2:
        return f"at least 2 other right answers are needed, got {len(also_right)}"
    if len(hints) != 3 or not all(isinstance(hint, str) and hint.strip() for hint in hints):
        return f"exactly 3 hints are needed, got {len(hints)}"
    names = [mistake.name for mistake in mistakes]
    if len(set(names)) != len(names):
        return f"two mistakes share a name: {names}"
    if not all(mistake.message.strip() for mistake in mistakes):
        return "each mistake needs a message"
    if any(mistake.function is reference for mistake in mistakes):
        return "the reference itself is listed as a mistake"
    return None


_alone = False


def load_lessons(package: str = __package__) -> dict[str, Exception]:
    """Import every lessonNN module of `package` once; return those that failed, by name."""
    failed = {}
    if _alone:
        return failed
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if module.name.startswith("lesson"):
            try:
                importlib.import_module(f"{package}.{module.name}")
            except Exception as error:  # one broken lesson must not stop the others
                failed[module.name] = error
    return failed


def find(name: str) -> Exercise | None:
    """The exercise of this name, or None."""
    if name not in _exercises:
        load_lessons()
    return _exercises.get(name)


def get(name: str) -> Exercise:
    """The exercise of this name; KeyError names the nearest ones."""
    found = find(name)
    if found is None:
        near = nearest(name)
        hint = f"; the nearest names are {', '.join(near)}" if near else ""
        raise KeyError(f"no exercise is called {name!r}{hint}")
    return found


def nearest(name: str) -> list[str]:
    """Up to three names of exercises that look like `name`, the most alike first."""
    return difflib.get_close_matches(str(name), _exercises, n=3, cutoff=0.5)


def exercises() -> list[str]:
    """The names of all exercises, in the order of the lessons."""
    for module, error in load_lessons().items():
        raise ImportError(f"the exercises of {module} could not be loaded: {error}") from error
    return [made.name for made in sorted(_exercises.values(), key=lambda made: made.lesson)]


@contextlib.contextmanager
def only(*made: Exercise) -> Iterator[None]:
    """For tests: within the block these exercises are the whole course."""
    global _alone
    load_lessons()
    before, places = dict(_exercises), dict(_places)
    _alone = True
    _exercises.clear()
    _exercises.update({one.name: one for one in made})
    try:
        yield
    finally:
        _alone = False
        _exercises.clear()
        _exercises.update(before)
        _places.clear()
        _places.update(places)


def is_blank(function: Any) -> bool:
    """Whether the body is still empty: `...`, `pass` or a docstring and nothing else."""
    bare = inspect.unwrap(function) if callable(function) else function
    if not isinstance(bare, types.FunctionType) or bare.__name__ == "<lambda>":
        return False
    node = definition(bare)
    if node is not None:
        return all(_is_placeholder(statement) for statement in node.body)
    return _does_nothing(bare)


def definition(function: Callable) -> ast.FunctionDef | None:
    """The syntax tree of a function, or None where its source is not to be had."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if tree.body and isinstance(tree.body[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        return tree.body[0]
    return None


def has_placeholder(function: Callable) -> bool:
    """Whether a `...` still stands somewhere in the body as a statement of its own."""
    node = definition(function)
    return node is not None and any(
        isinstance(child, ast.Expr)
        and isinstance(child.value, ast.Constant)
        and child.value.value is Ellipsis
        for child in ast.walk(node)
    )


def _is_placeholder(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and (statement.value.value is Ellipsis or isinstance(statement.value.value, str))
    )


def _does_nothing(function: types.FunctionType) -> bool:
    """Without source: whether the compiled body only returns None."""
    steps = list(dis.get_instructions(function.__code__))
    allowed = {"NOP", "RESUME", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}
    return all(
        step.opname in allowed
        and (step.argval is None or step.opname not in ("LOAD_CONST", "RETURN_CONST"))
        for step in steps
    )
