"""What a lesson calls: `@exercise`, `hint` and `solution`."""

from __future__ import annotations

import inspect
import os
import textwrap
from collections.abc import Callable

from . import _store
from ._core import ExerciseNotPassed, check
from ._registry import Exercise, find, is_blank, nearest
from ._report import Notice, Report, inline, show


def strict() -> bool:
    """Whether COURSE_STRICT asks for exceptions in place of notices."""
    return os.environ.get("COURSE_STRICT", "") not in ("", "0")


def exercise(function: Callable) -> Callable:
    """Check a function the moment its cell runs, and return the one its name stands for.

    The name stands for the learner's function once it passes, and for the reference until then.
    Under COURSE_STRICT=1 an exercise that does not pass raises ExerciseNotPassed.
    """
    name = getattr(function, "__name__", type(function).__name__)
    found = find(name)
    if found is None:
        return _unknown(name, function)
    try:
        report = check(name, function)
    except Exception as error:  # a fault in the course is not the learner's
        if strict():
            raise
        show(
            Notice(
                "alert-danger",
                f"The check of `{name}` itself failed, through no fault of yours: {error}\n"
                f"`{name}` stands for the reference.",
            )
        )
        return found.reference
    said = _keep(name, function, report)
    stands = (
        f"From here on `{name}` is your function."
        if report.passed
        else f"From here on `{name}` is the reference, so that you can go on."
    )
    if report.status == "not started":
        stands = (
            f"Replace the `...` and run the cell again. Until then `{name}` is the reference, so "
            f'that you can go on. `hint("{name}")` gives a first hint.'
        )
    report = Report(**{**vars(report), "stands": stands, "notes": (*report.notes, *said)})
    show(report)
    if strict() and not report.passed:
        raise ExerciseNotPassed(str(report)) from None
    return function if report.passed else found.reference


def _unknown(name: str, function: Callable) -> Callable:
    near = nearest(name)
    if name == "<lambda>":
        text = "An exercise is a function with a name: write it with `def`."
    elif near:
        text = (
            f"No exercise is called `{name}`. {_did_you_mean(near)} The function was left as it "
            "is, unchecked."
        )
    else:
        text = f"No exercise is called `{name}`. The function was left as it is, unchecked."
    if strict():
        raise ExerciseNotPassed(text)
    show(Notice("alert-warning", text))
    return function


def _did_you_mean(near: list[str]) -> str:
    return f"Did you mean {' or '.join(f'`{one}`' for one in near)}?" if near else ""


def _keep(name: str, function: Callable, report: Report) -> list[str]:
    """Save the answer and the progress; returns what to say about it."""
    if report.status == "not started" or is_blank(function):
        return []
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        source = ""
    said = [_store.keep_answer(name, source, report.passed), _store.record(name, report.status)]
    return [one for one in said if one]


def _named(name: str | Callable) -> str:
    return name if isinstance(name, str) else getattr(name, "__name__", str(name))


def _find_or_say(name: str | Callable) -> Exercise | None:
    name = _named(name)
    found = find(name)
    if found is None:
        text = f"No exercise is called `{name}`. {_did_you_mean(nearest(name))}"
        show(Notice("alert-warning", text.strip()))
    return found


def hint(name: str | Callable) -> None:
    """Show the next of the exercise's three hints, from a nudge to almost the answer."""
    found = _find_or_say(name)
    if found is None:
        return
    number, said = _store.take_hint(found.name, len(found.hints))
    text = f"Hint {number} of {len(found.hints)} for `{found.name}`: {found.hints[number - 1]}"
    if number == len(found.hints):
        text += f'\nThat was the last hint. `solution("{found.name}")` shows the reference.'
    if said:
        text += f"\n{said}"
    earlier = "".join(
        f"<div>Hint {i + 1}: {inline(one)}</div>" for i, one in enumerate(found.hints[: number - 1])
    )
    more = f"<details><summary>earlier hints</summary>{earlier}</details>" if earlier else ""
    show(Notice("alert-info", text, more))


class _Source:
    """The reference's code: a folded block in the notebook, plain text elsewhere."""

    def __init__(self, found: Exercise):
        self.name, self.code = found.name, found.source(short=True)

    def __str__(self) -> str:
        return self.code

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        fence = "`" * 4
        return {
            "text/markdown": f"One solution of `{self.name}`:\n\n{fence}python\n{self.code}{fence}",
            "text/plain": self.code,
        }


def solution(name: str | Callable) -> None:
    """Show the reference, one right answer among others."""
    found = _find_or_say(name)
    if found is not None:
        show(_Source(found))
