"""A learner's answers and progress: plain files in a folder that git ignores.

progress.json is read anew before each change, changed under a lock and replaced in one step, so
that two open lessons, a full disk or a pulled plug cost nothing that was there before. One that
cannot be read is set aside under another name, and that is said.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

EMPTY = {"version": 1, "exercises": {}}


def home() -> Path:
    """The learner's folder: COURSE_HOME, or `.learner` beside the lessons."""
    given = os.environ.get("COURSE_HOME")
    return Path(given) if given else Path(__file__).resolve().parents[2] / ".learner"


def worked_copy() -> bool:
    """Whether this kernel runs a worked copy: its answers are not the learner's."""
    session = os.environ.get("JPY_SESSION_NAME", "")
    with contextlib.suppress(OSError):
        if Path.cwd() == Path(__file__).resolve().parents[3] / "solutions":
            return True
    return session.endswith("_solution.ipynb")


def read() -> tuple[dict, str]:
    """The progress, and what to say about it ("" where all is well)."""
    path = home() / "progress.json"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return json.loads(json.dumps(EMPTY)), ""
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError):
            return json.loads(json.dumps(EMPTY)), f"The progress file cannot be read: {error}."
        text = ""
    try:
        data = json.loads(text)
        entries = data["exercises"]
        if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        return json.loads(json.dumps(EMPTY)), _set_aside(path)
    return data, ""


def _set_aside(path: Path) -> str:
    stamp = datetime.now().strftime("%Y-%m-%d-%H%M%S")
    aside = path.with_name(f"progress.damaged-{stamp}.json")
    count = 1
    while aside.exists():
        count += 1
        aside = path.with_name(f"progress.damaged-{stamp}-{count}.json")
    try:
        os.replace(path, aside)
    except OSError as error:
        return f"The progress file is damaged and could not be moved: {error}."
    return (
        f"The progress file was damaged. It was set aside as {aside.name} and a new one begun. "
        "Your saved answers are untouched; run an exercise again to mark it passed."
    )


def update(change: Callable[[dict], None]) -> str:
    """Apply `change` to the progress; returns what to say ("" where all is well)."""
    if worked_copy():
        return ""
    try:
        with _locked():
            data, said = read()
            change(data)
            _replace(home() / "progress.json", json.dumps(data, indent=1, sort_keys=True) + "\n")
        return said
    except OSError as error:
        return f"Your progress could not be saved in {home()}: {error.strerror or error}."


def entry(data: dict, name: str) -> dict:
    """The entry of one exercise, made if it is not there."""
    return data["exercises"].setdefault(name, {})


def record(name: str, status: str) -> str:
    """Note the outcome of a check; once passed, an exercise stays passed."""
    now = datetime.now().isoformat(timespec="seconds")

    def change(data: dict) -> None:
        one = entry(data, name)
        one["status"] = status
        one["tries"] = _count(one.get("tries")) + 1
        if status == "passed":
            one.setdefault("passed", now)

    return update(change)


def take_hint(name: str, most: int) -> tuple[int, str]:
    """Count one more hint; returns its number, from 1, and what to say."""
    data, _ = read()
    number = min(_count(data["exercises"].get(name, {}).get("hints")) + 1, most)

    def change(data: dict) -> None:
        entry(data, name)["hints"] = number

    return number, update(change)


def _count(value) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def keep_answer(name: str, source: str, passed: bool) -> str:
    """Save an answer under the exercise's name: the last one, and the last that passed."""
    if worked_copy() or not source.strip():
        return ""
    folder = home() / "answers"
    try:
        for kind in ("last", "passed") if passed else ("last",):
            path = folder / f"{name}.{kind}.py"
            if not (path.exists() and path.read_text(encoding="utf-8") == source):
                _replace(path, source)
    except (OSError, UnicodeError) as error:
        return f"Your answer could not be saved in {folder}: {error}."
    return ""


def answer(name: str, kind: str = "last") -> str | None:
    """A saved answer: kind "last" or "passed"."""
    try:
        return (home() / "answers" / f"{name}.{kind}.py").read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return None


def _replace(path: Path, text: str) -> None:
    """Write a file so that it is either the old one or the new one, at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(draft, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(patience: float = 2.0) -> Iterator[None]:
    """Hold the folder's lock; one left behind by a process that died is taken over."""
    path = home() / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    until, held = time.monotonic() + patience, None
    while held is None and time.monotonic() < until:
        try:
            held = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > 10:
                    path.unlink()
            time.sleep(0.02)
    try:
        yield
    finally:
        if held is not None:
            os.close(held)
            with contextlib.suppress(OSError):
                path.unlink()
