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
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

try:
    import resource
except ImportError:  # Windows
    resource = None

from ._compare import changed
from ._registry import Exercise

KEEP_CHARACTERS = 20_000
MEMORY = 2**30  # bytes that one call may add to the process: the cases need a small part of it
LOOK = 0.05  # seconds between two looks at the clock and the memory


class TimeUp(BaseException):
    """Raised inside code that ran too long; not an Exception, so that `except Exception` misses."""


class TooMuchMemory(TimeUp):
    """Raised inside code that fills the memory, before the machine or the kernel dies of it."""


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
        """Whether it was stopped from outside, for its time or its memory."""
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
                if isinstance(error, (TimeUp, MemoryError)):
                    _let_go(error)
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
    """Raise TimeUp inside the block once `seconds` have passed, or once it took too much memory."""
    main = threading.current_thread() is threading.main_thread()
    limit = _by_signal if main and hasattr(signal, "setitimer") else _by_thread
    with limit(seconds):
        yield


def _let_go(error: BaseException | None) -> None:
    """Clear the frames of a traceback: they hold what the stopped code had collected."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


# Code that ends a time limit or catches printing: to raise there would leave the limit standing.
_OURS = {_let_go.__code__.co_filename, contextlib.contextmanager.__code__.co_filename}


def _memory() -> int:
    """Bytes of memory that this process holds; where only its peak is known, that; else 0."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError, AttributeError):
        pass
    if resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _watch(seconds: float) -> Callable[[], type[TimeUp] | None]:
    """A function that says what to raise now, if anything."""
    until, most = time.monotonic() + max(seconds, 0.01), _memory() + MEMORY

    def due():
        if time.monotonic() >= until:
            return TimeUp
        return TooMuchMemory if _memory() > most else None

    return due


@contextlib.contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    rings, why, due = 0, TimeUp, _watch(seconds)

    def ring(number, frame):
        nonlocal rings, why
        if frame is not None and frame.f_code.co_filename in _OURS:
            return  # it rings again
        why = due() or (why if rings else None)
        if why is None:
            return
        rings += 1
        if rings > 1:  # a bare `except:` swallowed the first: raise inside its handler as well
            sys.settrace(trace)
            while frame is not None and frame.f_code.co_filename not in _OURS:
                frame.f_trace = trace  # whichever of them has the handler
                frame = frame.f_back
        raise why()

    def trace(frame, event, argument):
        if frame.f_code.co_filename in _OURS:
            return None
        if event == "line":
            raise why()
        return trace

    tracing = sys.gettrace()
    previous = signal.signal(signal.SIGALRM, ring)
    began = time.monotonic()
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, min(max(seconds, 0.01), LOOK), LOOK)
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
    due = _watch(seconds)

    def watch():
        wait, why = min(max(seconds, 0.01), LOOK), None
        while not over.wait(wait):
            why = due() or why
            if why is None:
                continue
            with lock:
                if over.is_set():
                    return
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(target), ctypes.py_object(why)
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
