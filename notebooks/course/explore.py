"""Sliders: a plain function of its controls returns a picture, and `explore` lets one play.

    @slider(temperature=Range(0.1, 4.0, 0.1, start=1.0, label="temperature"), lesson="01")
    def temperature_picture(temperature):
        return drawing.bars(...)

    explore(temperature_picture)

A drawing function changes nothing and shows everything it is given as data. `sliders()` lists all
that are registered, and `sweep(name)` gives the values on which the tests draw each of them.
"""

from __future__ import annotations

import functools
import html
import itertools
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import sliders as _lessons  # loaded now, so that `course.sliders` stays the function
from .exercises import _registry
from .exercises._report import ALERTS, in_notebook, inline, notice, pre

HERE = Path(__file__).resolve().parent

# Controls


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high` in steps; whole numbers where all three are whole.

    words: turns a value into the words that stand beside the slider, `words(value) -> str`.
    """

    low: float
    high: float
    step: float = 1
    start: float | None = None
    label: str = ""
    words: Callable[[Any], str] | None = None

    def __post_init__(self):
        if not self.step > 0 or not self.high > self.low:
            raise ValueError(f"Range: expected low < high and step > 0, got {self}")
        steps = (self.high - self.low) / self.step
        if abs(steps - round(steps)) > 1e-6:
            raise ValueError(f"Range: expected a whole number of steps, got {steps:.3f} in {self}")
        if self.start is not None and not self.low <= self.start <= self.high:
            raise ValueError(f"Range: the start {self.start} is not in {self.low} to {self.high}")

    @property
    def whole(self) -> bool:
        return all(isinstance(one, int) for one in (self.low, self.high, self.step))

    @property
    def first(self) -> Any:
        return self.clean(self.low if self.start is None else self.start)

    def clean(self, value: Any) -> Any:
        """The nearest value of the grid, without the dust of binary fractions."""
        steps = round((min(max(value, self.low), self.high) - self.low) / self.step)
        if self.whole:
            return int(self.low + steps * self.step)
        digits = max(_digits(self.step), _digits(self.low))
        return min(round(self.low + steps * self.step, digits), float(self.high))

    def values(self, most: int = 9) -> list:
        """The ends and evenly spread values between them, at most `most`."""
        count = min(round((self.high - self.low) / self.step) + 1, most)
        width = (self.high - self.low) / max(count - 1, 1)
        spread = [self.clean(self.low + i * width) for i in range(count)]
        return list(dict.fromkeys([*spread, self.clean(self.high), self.first]))

    def ends(self) -> list:
        return [self.clean(self.low), self.clean(self.high)]

    def say(self, value: Any) -> str:
        return self.words(value) if self.words else f"{value:g}"


@dataclass(frozen=True, init=False)
class Choice:
    """One of several: values, or a dict from the text shown to the value passed."""

    options: dict
    start: Any
    label: str
    words: Callable[[Any], str] | None

    def __init__(self, options, start=None, label="", words=None):
        options = options if isinstance(options, dict) else {str(one): one for one in options}
        if not options:
            raise ValueError("Choice: expected at least one option, got none")
        if start is not None and start not in options.values():
            raise ValueError(f"Choice: the start {start!r} is none of {list(options.values())}")
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "words", words)

    @property
    def first(self) -> Any:
        return next(iter(self.options.values())) if self.start is None else self.start

    def clean(self, value: Any) -> Any:
        if value not in self.options.values():
            raise ValueError(f"Choice: {value!r} is none of {list(self.options.values())}")
        return value

    def values(self, most: int = 9) -> list:
        return list(self.options.values())

    def ends(self) -> list:
        values = self.values()
        return [values[0], values[-1]] if len(values) > 1 else values

    def shown(self, value: Any) -> str:
        """The option's text."""
        return next(text for text, one in self.options.items() if one == value)

    def say(self, value: Any) -> str:
        return self.words(value) if self.words else self.shown(value)


@dataclass(frozen=True)
class Toggle:
    """On or off."""

    start: bool = False
    label: str = ""
    words: Callable[[Any], str] | None = None

    @property
    def first(self) -> bool:
        return bool(self.start)

    def clean(self, value: Any) -> bool:
        return bool(value)

    def values(self, most: int = 9) -> list:
        return [False, True]

    ends = values

    def say(self, value: Any) -> str:
        return self.words(value) if self.words else ("on" if value else "off")


@dataclass(frozen=True)
class Text:
    """A text that the learner types, cut at `max_length` characters."""

    start: str = ""
    label: str = ""
    max_length: int = 200
    words: Callable[[Any], str] | None = None

    @property
    def first(self) -> str:
        return self.clean(self.start)

    def clean(self, value: Any) -> str:
        return str(value)[: self.max_length]

    def values(self, most: int = 9) -> list:
        """What people type: nothing, blanks, markup, emoji, another direction, too much."""
        odd = [
            "",
            " \t ",
            "a",
            "<script>alert('x')</script> & \"quotes\" `ticks`",
            "Zoë met 👍🏽 Ana, didn't she?",
            "שלום עולם and مرحبا",
            "word " * 2000,
            "unbroken" * 40,
        ]
        return list(dict.fromkeys([self.first, *map(self.clean, odd)]))

    def ends(self) -> list:
        return [self.first, ""]

    def say(self, value: Any) -> str:
        if self.words:
            return self.words(value)
        if len(value) >= self.max_length:
            return f"cut at {self.max_length} characters"
        return ""


Control = Range | Choice | Toggle | Text


def _digits(value: float) -> int:
    """How many digits after the point it takes to write a number."""
    return next((n for n in range(12) if abs(round(value, n) - value) < 1e-12), 12)


# The registry


@dataclass(frozen=True)
class Slider:
    """A registered drawing function: its controls, and what else it needs."""

    name: str
    draw: Callable
    controls: dict[str, Control]
    given: Callable[[], dict] | None = None


_sliders: dict[str, Slider] = {}


def slider(*, lesson: str, given: Callable[[], dict] | None = None, **controls: Control):
    """Register a drawing function with its controls.

    given: for a function that needs more than its controls (a model, a text), a function that
        returns these as a dict of keyword arguments; `explore(draw, given={...})` overrides them.
    """
    if not (isinstance(lesson, str) and len(lesson) == 2 and lesson.isdigit()):
        raise ValueError(f"slider: the lesson must be two digits such as '01', got {lesson!r}")
    for name, control in controls.items():
        if not isinstance(control, Control):
            raise ValueError(
                f"slider: {name} must be a Range, Choice, Text or Toggle, got {control!r}"
            )
        if not control.label:
            object.__setattr__(control, "label", name.replace("_", " "))
    if not controls:
        raise ValueError("slider: expected at least one control, got none")
    if given is not None and not callable(given):
        raise ValueError("slider: `given` must be a function that returns a dict")

    def decorate(draw: Callable) -> Callable:
        name = f"{lesson}.{draw.__name__}"
        other = _sliders.get(name)
        if other and (other.draw.__module__, other.draw.__qualname__) != (
            draw.__module__,
            draw.__qualname__,
        ):
            raise ValueError(f"slider: {name} is already registered by {other.draw.__module__}")
        draw.slider = _sliders[name] = Slider(name, draw, controls, given)
        return draw

    return decorate


def sliders() -> list[tuple[str, Callable, dict[str, Control]]]:
    """All sliders of the course: (name, drawing function, controls)."""
    for module, error in load_lessons().items():
        raise ImportError(f"the sliders of {module} could not be loaded: {error}") from error
    return [(one.name, one.draw, one.controls) for _, one in sorted(_sliders.items())]


def load_lessons() -> dict[str, Exception]:
    """Import every lesson's sliders; return the lessons that failed, by name."""
    return _registry.load_lessons(_lessons.__name__)


def find(draw: Callable | str) -> Slider:
    """The slider of a drawing function or a name such as "01.temperature_picture"."""
    if isinstance(draw, str):
        if draw not in _sliders:
            load_lessons()
        if draw not in _sliders:
            raise KeyError(f"no slider is called {draw!r}; there are {', '.join(_sliders)}")
        return _sliders[draw]
    if isinstance(getattr(draw, "slider", None), Slider):
        return draw.slider
    raise TypeError(
        "explore: expected a drawing function with @slider above it, got "
        f"{getattr(draw, '__name__', type(draw).__name__)}"
    )


def sweep(name: str | Callable, corners: int = 64) -> Iterator[dict[str, Any]]:
    """Values on which to try a slider: the start, a grid along each control, and the corners."""
    controls = find(name).controls
    start = {key: control.first for key, control in controls.items()}
    tried = set()
    grid = (
        {**start, key: value} for key, control in controls.items() for value in control.values()
    )
    ends = itertools.product(*(control.ends() for control in controls.values()))
    far = (dict(zip(controls, values, strict=True)) for values in itertools.islice(ends, corners))
    for values in itertools.chain([start], grid, far):
        mark = repr(sorted(values.items()))
        if mark not in tried:
            tried.add(mark)
            yield values


def picture(name: str | Callable, values: dict[str, Any] | None = None, given: dict | None = None):
    """Draw a slider's picture once, at `values` or at its start."""
    one = find(name)
    values = {key: control.first for key, control in one.controls.items()} | (values or {})
    if given is None:
        given = one.given() if one.given else {}
    return one.draw(**values, **given)


# In the notebook


def explore(draw: Callable, *, given: dict[str, Any] | None = None, **start: Any) -> None:
    """Show a drawing function with its controls; `explore(draw, name=value)` starts elsewhere.

    given: keyword arguments of `draw` that are not controls, such as a model you trained.
    """
    one = find(draw)
    unknown = [name for name in start if name not in one.controls]
    if unknown:
        raise ValueError(
            f"explore: {one.name} has no control {', '.join(unknown)}; "
            f"its controls are {', '.join(one.controls)}"
        )
    values = {
        name: control.clean(start.get(name, control.first))
        for name, control in one.controls.items()
    }
    stage = _Stage(one, values, given)
    first = stage.render()
    if not in_notebook():
        print(stage.alt)
        return
    from IPython.display import display

    bundle = {"text/html": stage.still(first), "text/plain": stage.alt}
    close_earlier()
    front = stage.front(first)
    display(bundle if front is None else bundle | live_part(front), raw=True)


def live_part(front) -> dict:
    """The part of a widget's display data that makes it live; the still picture is ours."""
    _keep_open(front)
    made = front._repr_mimebundle_() or {}
    made = made[0] if isinstance(made, tuple) else made
    return {kind: data for kind, data in made.items() if kind.startswith("application/")}


def strict() -> bool:
    return os.environ.get("COURSE_STRICT", "") not in ("", "0")


class _Stage:
    """One shown slider: its values, its picture, its widgets."""

    def __init__(self, one: Slider, values: dict[str, Any], given: dict[str, Any] | None = None):
        self.one, self.values, self.given, self.alt = one, values, given, ""

    def render(self) -> str:
        """The picture at the present values as HTML; an error is shown, and raised if strict."""
        try:
            if self.given is None:
                self.given = self.one.given() if self.one.given else {}
            drawn = self.one.draw(**self.values, **self.given)
            shown = drawn._repr_html_()
            self.alt = drawn.alt
            return shown
        except Exception as error:  # shown in place of the picture
            if strict():
                raise
            self.alt = f"{self.one.name} could not be drawn: {type(error).__name__}: {error}"
            at = ", ".join(f"{name} = {value!r:.60}" for name, value in self.values.items())
            text = f"The picture could not be drawn at {at}: {type(error).__name__}: {error}"
            return notice(ALERTS["error"], f"<div>{inline(text)}</div>" + _last_line(error))

    def words(self, name: str) -> str:
        return self.one.controls[name].say(self.values[name])

    def still(self, shown: str) -> str:
        """For readers without a kernel: the picture, and the values it was drawn at."""
        listed = "".join(
            f"<li>{html.escape(control.label)}: {html.escape(self._said(name, control))}</li>"
            for name, control in self.one.controls.items()
        )
        return (
            f'<div>{shown}<ul style="margin:4px 0">{listed}</ul>'
            "<em>Run the cell to move the controls.</em></div>"
        )

    def _says_more(self, name: str) -> bool:
        """Whether the words beside a control say what the control itself does not show."""
        control, words = self.one.controls[name], self.words(name)
        shown = control.shown(self.values[name]) if isinstance(control, Choice) else _plain(
            self.values[name])
        return bool(words) and words != shown

    def _said(self, name: str, control: Any) -> str:
        """A value as a reader sees it: a number with its words, of anything else the words."""
        value, words = _plain(self.values[name]), self.words(name)
        if isinstance(control, Range):
            return f"{value} ({words})" if self._says_more(name) else value
        return words or value

    def front(self, shown: str):
        """The live controls and picture; None where the widget's package is missing."""
        try:
            kind = _front_class()
        except ImportError:
            return None
        controls = self.one.controls
        front = kind(
            controls=[_told(name, control) for name, control in controls.items()],
            values={name: _sent(controls[name], value) for name, value in self.values.items()},
            words=self.all_words(),
            picture=shown,
        )

        def moved(change):
            for name, control in controls.items():
                if name in change["new"]:
                    self.values[name] = _received(control, change["new"][name])
            shown = self.render()
            with front.hold_sync():  # one message with all that is new
                front.words = self.all_words()
                front.picture = shown

        front.observe(moved, names="values")
        return front

    def all_words(self) -> dict[str, str]:
        return {
            name: self.words(name) if self._says_more(name) else "" for name in self.one.controls
        }


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@functools.cache
def _front_class():
    """The widget, made when first needed: importing the course stays quick."""
    import anywidget
    import traitlets

    class Front(anywidget.AnyWidget):
        _esm = HERE / "explore.js"
        _css = HERE / "explore.css"
        controls = traitlets.List().tag(sync=True)
        values = traitlets.Dict().tag(sync=True)
        words = traitlets.Dict().tag(sync=True)
        picture = traitlets.Unicode().tag(sync=True)

    return Front


def _told(name: str, control: Control) -> dict[str, Any]:
    """What the front needs to know of a control."""
    told = {"name": name, "kind": type(control).__name__.lower(), "label": control.label}
    if isinstance(control, Range):
        told |= {"min": control.low, "max": control.high, "step": control.step}
        told["digits"] = 0 if control.whole else max(_digits(control.step), _digits(control.low))
    elif isinstance(control, Choice):
        told["options"] = list(control.options)
    elif isinstance(control, Text):
        told["max_length"] = control.max_length
    return told


def _sent(control: Control, value: Any) -> Any:
    """A value as the front holds it: of a choice, its place in the list."""
    return control.values().index(value) if isinstance(control, Choice) else value


def _received(control: Control, value: Any) -> Any:
    return control.values()[int(value)] if isinstance(control, Choice) else control.clean(value)


def _last_line(error: Exception) -> str:
    """Where in the learner's own code an error arose, if it did."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "ipykernel" in frame.filename or "ipython-input" in frame.filename
    ]
    if not frames:
        return ""
    last = frames[-1]
    return pre(f"in {last.name}, line {last.lineno} of the cell:\n--> {last.line}")


_open: dict[str, tuple[int, list]] = {}


def _cell() -> tuple[str, int]:
    """The cell that is running, and the count of its execution."""
    shell = sys.modules["IPython"].get_ipython()
    count = int(getattr(shell, "execution_count", 0) or 0)
    try:
        return str(shell.get_parent()["metadata"]["cellId"]), count
    except (AttributeError, KeyError, TypeError):
        return "", count


def close_earlier() -> None:
    """Running a cell again replaces its sliders: the old ones are closed, not left listening."""
    cell, count = _cell()
    before = _open.get(cell)
    if cell and before and before[0] != count:
        for front in before[1]:
            _close(front)
        del _open[cell]


def _keep_open(front) -> None:
    cell, count = _cell()
    if cell:
        _open.setdefault(cell, (count, []))[1].append(front)


def _close(widget) -> None:
    for child in getattr(widget, "children", ()):
        _close(child)
    widget.close()
