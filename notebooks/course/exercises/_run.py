"""Call a function with guards: time, printing, warnings, exits, and writes into its inputs."""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import io
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._compare import changed
from ._registry import Exercise

KEEP_CHARACTERS = 20_000


class TimeUp(BaseException):
    """Raised inside code that ran too long; not an Exception, so that `except Exception` misses."""


@dataclass
class Outcome:
    """What a call gave: a value or an error, what it wrote into, printed and warned about."""

    value: Any = None
    error: BaseException | None = None
    wrote: tuple[str, ...] = ()
    after: Any = None
    printed: str = ""
    warned: list[warnings.WarningMessage] = field(default_factory=list)

    @property
    def timed_out(self) -> bool:
        return isinstance(self.error, TimeUp)


class _Bounded(io.TextIOBase):
    """A text stream that keeps the first characters and counts the lines of the rest."""

    def __init__(self):
        self.kept, self.size, self.lines_left_out = [], 0, 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        room = KEEP_CHARACTERS - self.size
        if room > 0:
            self.kept.append(text[:room])
            self.size += len(self.kept[-1])
        self.lines_left_out += text[max(room, 0) :].count("\n")
        return len(text)

    def text(self) -> str:
        return "".join(self.kept)


def run(
    exercise: Exercise,
    index: int,
    function: Callable,
    seconds: float | None = None,
) -> Outcome:
    """Call `function` on fresh inputs of one case; nothing it does gets out of here."""
    args, kwargs = exercise.inputs(index)
    pristine_args, pristine_kwargs = exercise.inputs(index)
    outcome, stream = Outcome(), _Bounded()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            try:
                with (
                    np.errstate(),
                    time_limit(seconds if seconds is not None else exercise.seconds),
                ):
                    outcome.value = function(*args, **kwargs)
            except BaseException as error:  # SystemExit and TimeUp as well
                outcome.error = error
    if inspect.iscoroutine(outcome.value):
        outcome.value.close()
    outcome.warned = list(warned)
    outcome.printed = stream.text()
    if stream.lines_left_out:
        outcome.printed += f"\n… and {stream.lines_left_out} more lines"
    names = _argument_names(exercise, args, kwargs)
    before = [*pristine_args, *pristine_kwargs.values()]
    after = [*args, *kwargs.values()]
    wrote = [n for n, x, y in zip(names, before, after, strict=True) if changed(x, y)]
    if exercise.may_write:
        outcome.after = dict(zip(names, after, strict=True))
    else:
        outcome.wrote = tuple(wrote)
    return outcome


def _argument_names(exercise: Exercise, args: tuple, kwargs: dict) -> list[str]:
    parameters = []
    with contextlib.suppress(ValueError, TypeError):
        parameters = list(exercise.signature.parameters)
    names = [
        parameters[i] if i < len(parameters) else f"argument {i + 1}" for i in range(len(args))
    ]
    return names + list(kwargs)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeUp inside the block once `seconds` have passed."""
    main = threading.current_thread() is threading.main_thread()
    limit = _by_signal if main and hasattr(signal, "setitimer") else _by_thread
    with limit(seconds):
        yield


@contextlib.contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    rings = 0

    def ring(number, frame):
        nonlocal rings
        rings += 1
        if rings > 1:  # a bare `except:` swallowed the first: raise inside its handler as well
            sys.settrace(trace)
            frame.f_trace = trace
        raise TimeUp()

    def trace(frame, event, argument):
        if event == "line":
            raise TimeUp()
        return trace

    tracing = sys.gettrace()
    previous = signal.signal(signal.SIGALRM, ring)
    began = time.monotonic()
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01), 0.2)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        if rings > 1:
            sys.settrace(tracing)
        signal.signal(signal.SIGALRM, previous)
        if remaining:  # somebody else's timer goes on where it was
            left = max(remaining - (time.monotonic() - began), 0.001)
            signal.setitimer(signal.ITIMER_REAL, left, interval)


@contextlib.contextmanager
def _by_thread(seconds: float) -> Iterator[None]:
    """Where there are no signals (Windows, another thread): the interpreter delivers TimeUp."""
    target, over, lock = threading.get_ident(), threading.Event(), threading.Lock()

    def watch():
        wait = max(seconds, 0.01)
        while not over.wait(wait):
            with lock:
                if over.is_set():
                    return
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(target), ctypes.py_object(TimeUp)
                )
            wait = 0.2

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        with lock:
            over.set()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(target), None)
