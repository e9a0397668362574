"""`check`: run a function on an exercise's cases and say what is right or wrong with it."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import numbers
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ._compare import Comparison, Difference, a, as_code, brief, compare, small_first, wider
from ._registry import Exercise, find, get, has_placeholder, is_blank
from ._report import Report
from ._run import MEMORY, Outcome, TooMuchMemory, run

COURSE = Path(__file__).resolve().parents[1]
SOLUTIONS = COURSE.parents[1] / "solutions"


class ExerciseNotPassed(Exception):
    """Raised under COURSE_STRICT=1 by an exercise that does not pass."""


def check(name: str, function: Callable) -> Report:
    """Check a function as the exercise `name`; KeyError for a name that is no exercise.

    The function is called on fresh inputs for each case, under a time limit, its printing caught.
    Nothing it raises comes out of here, and nothing it does to its inputs reaches the reference.
    A result that is a view of an input passes where its values are right: reshaping is no fault,
    and writing is looked for in the inputs themselves.
    """
    exercise = get(name)
    if not callable(function):
        return Report(name, "wrong", f"Expected a function, got {a(function)}.")
    if is_blank(function):
        return Report(name, "not started", "The body is still empty.")
    unfit = _does_not_take(exercise, function)
    if unfit:
        return Report(name, "wrong", unfit)
    expected = [run(exercise, i, exercise.reference) for i in range(len(exercise.all_cases))]
    for case, outcome in zip(exercise.cases, expected, strict=False):
        if outcome.error is not None:
            raise RuntimeError(
                f"exercise {name}: the reference raises on the case {case.title!r}: "
                f"{outcome.error!r}"
            ) from outcome.error
    with _own_name(name, function):
        outcomes = _run_all(exercise, function)
    found = _first_fault(exercise, function, outcomes, expected)
    if found is None:
        return _passed(exercise, function, outcomes, expected)
    index, status, message, rows, trace = found
    case = exercise.all_cases[index]
    mistake = _matching_mistake(exercise, outcomes)
    notes = _notes(function, outcomes[index : index + 1], expected[index : index + 1])
    default = _other_defaults(exercise, function)
    if default:
        notes.insert(0, default)
    said = f"On the case “{case.title}”: {small_first(message)}"
    if mistake:
        status, said = "wrong", f"{mistake.message}\n{said}"
    return Report(
        name,
        status,
        said,
        mistake=mistake.name if mistake else None,
        case=case.title,
        rows=tuple(rows),
        notes=tuple(notes),
        trace=trace,
        inputs=_inputs(exercise, index),
        printed=_shortened(outcomes[index].printed),
        timed_out=outcomes[index].timed_out
        and not isinstance(outcomes[index].error, TooMuchMemory),
    )


@contextlib.contextmanager
def _own_name(name: str, function: Callable) -> Iterator[None]:
    """Within the block, a function that calls itself by the exercise's name reaches itself.

    In a notebook the name may stand for the reference from an earlier run: a function that calls
    it would pass without an answer of its own, and one that recurses would not be tested.
    """
    scope = getattr(inspect.unwrap(function), "__globals__", None)
    owner = (scope or {}).get("__name__", "")
    if scope is None or owner.split(".")[0] in ("course", "solutions"):
        yield
        return
    absent = object()
    before = scope.get(name, absent)
    scope[name] = function
    try:
        yield
    finally:
        if before is absent:
            scope.pop(name, None)
        else:
            scope[name] = before


def _run_all(exercise: Exercise, function: Callable) -> list[Outcome]:
    """The outcomes of all cases; the list ends early where the time is up."""
    outcomes, until = [], time.monotonic() + exercise.seconds
    for index in range(len(exercise.all_cases)):
        outcomes.append(run(exercise, index, function, max(until - time.monotonic(), 0.05)))
        if outcomes[-1].timed_out or isinstance(outcomes[-1].error, KeyboardInterrupt):
            break
    return outcomes


def _first_fault(exercise, function, outcomes, expected):
    """(case index, status, message, rows, trace) of the first fault, or None."""
    for index, (mine, right) in enumerate(zip(outcomes, expected, strict=False)):
        if mine.timed_out:
            return index, "error", _stopped(exercise, mine), [], own_lines(mine.error, function)
        if right.error is not None:
            fault = _should_raise(mine, right, function)
            if fault:
                return index, *fault
            continue
        if mine.error is not None:
            message, trace = explain_error(mine.error, function)
            return index, "error", message, [], trace
        difference = _difference(exercise, index, mine, right).difference
        if mine.wrote:
            return index, "wrong", *_wrote(mine, difference), ""
        if difference:
            sentence = difference.sentence
            if mine.value is None and right.value is not None:
                sentence += _no_return(function)
            return index, "wrong", sentence, difference.rows, ""
    return None


def _wrote(mine: Outcome, difference: Difference | None) -> tuple[str, list]:
    names = " and ".join(f"`{name}`" for name in mine.wrote)
    message = (
        f"Your function writes into its input {names}. Whoever calls it would find their array "
        "changed: work on a new array or a copy instead."
    )
    if difference is None:
        return message + " The values it returns are right.", []
    return f"{message}\n{difference.sentence}", difference.rows


def _no_return(function) -> str:
    if has_placeholder(function):
        return " A `...` still stands in the body."
    return " Is a `return` missing?"


def _should_raise(mine: Outcome, right: Outcome, function):
    kind = type(right.error).__name__
    if isinstance(mine.error, type(right.error)):
        return None
    if mine.error is None:
        message = f"this input should raise a {kind}; yours returns {brief(mine.value, 80)}."
        return "wrong", message, [("the reference says", str(right.error))], ""
    message, trace = explain_error(mine.error, function)
    return "error", f"this input should raise a {kind}, but: {message}", [], trace


def _stopped(exercise: Exercise, mine: Outcome) -> str:
    if isinstance(mine.error, TooMuchMemory):
        return (
            f"your function was stopped: it took more than {MEMORY / 2**30:g} GB of memory. Look "
            "for a loop that collects without end, or an array with an axis too many."
        )
    return (
        f"your function was stopped: it ran longer than {exercise.seconds:g} seconds. "
        "Look for a loop that never ends, such as a `while` whose condition never changes."
    )


def _difference(exercise: Exercise, index: int, mine: Outcome, right: Outcome) -> Comparison:
    tolerances = {"rtol": exercise.rtol, "atol": exercise.atol}
    if exercise.compare is None:
        result = compare(mine.value, right.value, parts=exercise.parts, **tolerances)
    else:
        result = _by_own_rule(exercise, index, mine, right)
    if result.difference is None and exercise.may_write:
        after = compare(mine.after, right.after, **tolerances)
        if after.difference:
            after.difference.sentence = (
                "After the call, an argument is not what it should be. " + after.difference.sentence
            )
        after.largest = max(after.largest, result.largest)
        return after
    return result


def _by_own_rule(exercise: Exercise, index: int, mine: Outcome, right: Outcome) -> Comparison:
    """The exercise's own comparison, behind the tests of type and NaN that hold for all."""
    form = _same_form(mine.value, right.value)
    if form:
        return Comparison(Difference(form))
    args, _ = exercise.inputs(index)
    try:
        message = exercise.compare(mine.value, right.value, args)
    except Exception as error:  # an answer of an odd form, not a fault of ours
        message = f"The result could not be compared with the expected one ({error})."
    result = Comparison(Difference(str(message)) if message else None)
    both = _floats(mine.value) and _floats(right.value)
    if both and not message and mine.value.dtype.itemsize > right.value.dtype.itemsize:
        result.notes.append(wider(mine.value, right.value))
    return result


def _floats(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _same_form(got: Any, expected: Any) -> str | None:
    result = compare(got, expected)
    if isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        if got.dtype.kind not in "biufcU" or got.dtype.kind == "f" != expected.dtype.kind:
            return result.difference.sentence if result.difference else None
        if got.dtype.kind == "f" and np.isnan(got).any() and not np.isnan(expected).any():
            return "The result holds NaN."
        return None
    if isinstance(expected, numbers.Number) and isinstance(got, numbers.Number):
        return "The result is NaN." if got != got and expected == expected else None
    if type(got) is type(expected):
        if isinstance(expected, (tuple, list)) and len(got) == len(expected):
            pairs = zip(got, expected, strict=True)
            return next((form for form in (_same_form(x, y) for x, y in pairs) if form), None)
        return None
    return result.difference.sentence if result.difference else None


def _matching_mistake(exercise: Exercise, outcomes: list[Outcome]):
    """The first named mistake that gives the same as the learner's function on every case."""
    if len(outcomes) < len(exercise.all_cases):
        return None
    for mistake in exercise.mistakes:
        same = all(
            _same_outcome(exercise, mine, run(exercise, index, mistake.function))
            for index, mine in enumerate(outcomes)
        )
        if same and _tells(exercise, mistake, outcomes):
            return mistake
    return None


def _same_outcome(exercise: Exercise, mine: Outcome, theirs: Outcome) -> bool:
    if mine.error is not None or theirs.error is not None:
        return type(mine.error) is type(theirs.error)
    if mine.wrote != theirs.wrote:
        return False
    tolerances = {"rtol": exercise.rtol, "atol": exercise.atol, "any_width": True}
    if compare(mine.value, theirs.value, **tolerances).difference is not None:
        return False
    return not exercise.may_write or compare(mine.after, theirs.after).difference is None


def _tells(exercise: Exercise, mistake, outcomes: list[Outcome]) -> bool:
    """Two functions that raise everywhere are only the same mistake if they say the same."""
    if any(mine.error is None for mine in outcomes[: len(exercise.cases)]):
        return True
    theirs = run(exercise, 0, mistake.function)
    return str(theirs.error) == str(outcomes[0].error)


def _passed(exercise, function, outcomes, expected) -> Report:
    other = _other_defaults(exercise, function)
    if other:
        return Report(exercise.name, "wrong", other)
    largest, notes = 0.0, []
    for index, (mine, right) in enumerate(zip(outcomes, expected, strict=True)):
        if right.error is None:
            result = _difference(exercise, index, mine, right)
            largest = max(largest, result.largest)
            notes.extend(note for note in result.notes if note not in notes)
    count = len(exercise.all_cases)
    cases = f"all {count} cases" if count > 1 else "the one case"
    if exercise.compare is not None:  # many answers are right, and need not be the reference's
        agreement = f"Yours does what {cases} {'ask' if count > 1 else 'asks'} for."
    elif largest == 0.0:
        agreement = f"Yours and the reference agree on {cases}."
    else:
        agreement = (
            f"Yours and the reference agree on {cases}; the largest difference is {largest:.1e}."
        )
    renamed = _renamed(exercise, function)
    notes = [*renamed, *_notes(function, outcomes, expected), *notes]
    printed = _shortened("\n".join(o.printed for o in outcomes if o.printed))
    return Report(exercise.name, "passed", agreement, notes=tuple(notes), printed=printed)


# Signatures


def _signature(function: Callable) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def _does_not_take(exercise: Exercise, function: Callable) -> str | None:
    """What to say where the function cannot be called as the cases call it."""
    mine, right = _signature(function), _signature(exercise.reference)
    if mine is None or right is None:
        return None
    for index in range(len(exercise.all_cases)):
        args, kwargs = exercise.inputs(index)
        try:
            mine.bind(*args, **kwargs)
        except TypeError as error:
            missing = [f"`{name}`" for name in right.parameters if name not in mine.parameters]
            extra = [
                f"`{name}`"
                for name, one in mine.parameters.items()
                if name not in right.parameters
                and one.default is one.empty
                and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
            ]
            said = [f"Your function takes {_listed(mine)}; the exercise's takes {_listed(right)}."]
            if missing:
                said.append(f"Missing: {', '.join(missing)}.")
            if extra:
                said.append(f"Not expected: {', '.join(extra)}.")
            if not missing and not extra:
                said.append(f"Calling it fails: {error}.")
            return " ".join(said)
    return None


def _listed(signature: inspect.Signature) -> str:
    bare = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    return f"`{inspect.Signature(bare)}`"


def _other_defaults(exercise: Exercise, function: Callable) -> str | None:
    """A parameter whose default is another one than the exercise's, or gone."""
    mine, right = _signature(function), _signature(exercise.reference)
    if mine is None or right is None:
        return None
    takes_any = any(one.kind is one.VAR_KEYWORD for one in mine.parameters.values())
    for name, want in right.parameters.items():
        if want.default is want.empty:
            continue
        have = mine.parameters.get(name)
        if have is None:
            if takes_any:
                continue
            return f"Your function has no parameter `{name}`; expected `{name}={want.default!r}`."
        if have.default is have.empty:
            return f"The parameter `{name}` has no default in yours; expected `{want.default!r}`."
        if not _same_default(have.default, want.default):
            return (
                f"The parameter `{name}` defaults to `{have.default!r}` in yours; "
                f"expected `{want.default!r}`."
            )
    return None


def _same_default(have: Any, want: Any) -> bool:
    plain = (type(None), bool, int, float, str)
    if isinstance(want, plain):
        return isinstance(have, plain) and have == want
    return True


def _renamed(exercise: Exercise, function: Callable) -> list[str]:
    """Parameters called otherwise: right, but later cells may pass them by name."""
    mine, right = _signature(function), _signature(exercise.reference)
    if mine is None or right is None:
        return []
    if any(one.kind is one.VAR_KEYWORD for one in mine.parameters.values()):
        return []
    missing = [name for name in right.parameters if name not in mine.parameters]
    if not missing:
        return []
    listed = " or ".join(f"`{name}`" for name in missing)
    return [
        f"Your function has no parameter named {listed}: a call that passes it by name, such as "
        f"`{exercise.name}(..., {missing[0]}=...)`, would fail."
    ]


# Errors and warnings


def explain_error(error: BaseException, function: Callable) -> tuple[str, str]:
    """What a learner's error means, and their own lines of its traceback."""
    kind, text = type(error).__name__, _text_of(error)
    lines = own_lines(error, function)
    if isinstance(error, SystemExit):
        return "your function calls `exit`; a function hands its result back with `return`.", lines
    if isinstance(error, KeyboardInterrupt):
        return "your function was interrupted.", lines
    if isinstance(error, RecursionError):
        return "your function calls itself without end (RecursionError).", lines
    if isinstance(error, MemoryError):
        return "your function asks for more memory than there is (MemoryError).", lines
    said = f"your function raised {kind}: {text}" if text else f"your function raised {kind}"
    stop = "" if said.endswith((".", "?", "!", ":")) else "."
    return said + stop + _advice(error, text), lines


def _advice(error: BaseException, text: str) -> str:
    if isinstance(error, NotImplementedError):
        return " Part of the body is still to be written."
    if isinstance(error, NameError) and "'np'" in text:
        return " Run the lesson's first cell, which imports NumPy as `np`."
    if isinstance(error, NameError):
        return _missing(getattr(error, "name", None))
    if isinstance(error, ValueError) and "broadcast" in text:
        return " Two shapes do not fit together; `keepdims=True` or `[:, None]` often mends it."
    if isinstance(error, ValueError) and "matmul" in text:
        return " In `A @ B`, A needs as many columns as B has rows: `A.shape[-1] == B.shape[-2]`."
    if isinstance(error, TypeError) and "subscriptable" in text and "ellipsis" in text.lower():
        return " A `...` still stands in the body."
    return ""


def _missing(name: str | None) -> str:
    """What to do about a name that is not there: often its cell was not run since a restart."""
    menu = "Run > Run All Above Selected Cell"
    if name and find(name):
        return f" `{name}` comes from a cell above that has not run in this kernel: {menu}."
    return (
        " Is the name spelled as in the line that defines it? After a restart of the kernel, "
        f"{menu} brings back what the cells above define."
    )


def _text_of(error: BaseException) -> str:
    try:
        text = str(error).strip()
    except Exception:  # a learner's own exception class
        return ""
    return text if len(text) <= 300 else text[:299] + "…"


def own_lines(error: BaseException, function: Callable, most: int = 3) -> str:
    """The learner's own frames of a traceback, each with the code around its line."""
    frames = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _is_learners(frame.f_code.co_filename, function)
    ]
    if not frames:
        return ""
    left_out = len(frames) - most
    if left_out > 0:
        frames = frames[-most:]
    blocks = [f"({left_out} calls before these are left out)"] if left_out > 0 else []
    for code, line in frames:
        blocks.append(_around(code.co_filename, code.co_name, line))
    return "\n".join(blocks)


def _is_learners(filename: str, function: Callable) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None and filename == code.co_filename:
        return True
    if "site-packages" in filename or "dist-packages" in filename:
        return False
    if filename.startswith("<") and not filename.startswith(("<ipython", "<stdin", "<string")):
        return False
    path = Path(filename)
    if COURSE in path.parents or SOLUTIONS in path.parents:
        return False
    return "ipykernel" in filename or "ipython-input" in filename


def _around(filename: str, name: str, line: int, before: int = 2, after: int = 1) -> str:
    rows = [f"in {name}, line {line} of the cell:"]
    for number_ in range(max(line - before, 1), line + after + 1):
        text = linecache.getline(filename, number_).rstrip("\n")
        if not text and number_ != line:
            continue
        rows.append(f"{'-->' if number_ == line else '   '} {number_:>3} {text[:120]}")
    return "\n".join(rows)


def _notes(function, outcomes, expected) -> list[str]:
    """One line for each warning that the learner's code set off and the reference did not."""
    notes = []
    for mine, right in zip(outcomes, expected, strict=False):
        usual = {str(one.message) for one in right.warned}
        for one in mine.warned:
            text = str(one.message)
            if text in usual or not issubclass(one.category, (RuntimeWarning, UserWarning)):
                continue
            where = f" (line {one.lineno})" if _is_learners(one.filename, function) else ""
            note = f"Python warned{where}: {text}."
            if note not in notes:
                notes.append(note)
    return notes[:3]


# Inputs and printing


def _inputs(exercise: Exercise, index: int) -> str:
    """The inputs of a case as code to paste into a cell, as far as they are small enough."""
    args, kwargs = exercise.inputs(index)
    names = [*exercise.signature.parameters][: len(args)] if _signature(exercise.reference) else []
    names += [f"argument_{i + 1}" for i in range(len(names), len(args))]
    lines = [f"{name} = {as_code(value)}" for name, value in zip(names, args, strict=True)]
    given = [*names, *(f"{name}={as_code(value)}" for name, value in kwargs.items())]
    lines.append(f"{exercise.name}({', '.join(given)})")
    why = exercise.all_cases[index].why
    return "\n".join(lines + ([f"\n# why this case: {why}"] if why else []))


def _shortened(text: str, lines: int = 12) -> str:
    rows = text.rstrip("\n").split("\n")
    if len(rows) <= lines:
        return "\n".join(row[:200] for row in rows).strip()
    more = f"… and {len(rows) - lines} more lines"
    return "\n".join([*(row[:200] for row in rows[:lines]), more])
