"""Is everything there that the course needs? Lesson 00 asks first."""

import html
import importlib.metadata
import platform
import sys
from pathlib import Path

import solutions
from course.exercises._report import notice

NEEDED = {"numpy": (2, 3), "jupyterlab": (4, 5), "ipywidgets": (8, 1), "anywidget": (0, 9)}
ROOT = Path(__file__).resolve().parents[2]
INSTALL = "pip install -r requirements.txt"


def problems():
    """What is missing or too old, each as a sentence that says what to do."""
    found = []
    if not (3, 11) <= sys.version_info[:2] <= (3, 14):
        found.append(f"The course runs on Python 3.11 to 3.14; this kernel is Python "
                     f"{platform.python_version()}. Make a virtual environment with one of those.")
    for name, least in NEEDED.items():
        wanted = ".".join(map(str, least))
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} is missing from this kernel's environment. In a terminal, in the "
                         f"course's folder: {INSTALL}")
            continue
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        if numbers < least:
            found.append(f"{name} {version} is older than {wanted}. In a terminal, in the course's "
                         f"folder: {INSTALL}")
    if Path(solutions.__file__).resolve().parents[1] != ROOT:
        found.append(f"`course` comes from {ROOT}, but `solutions` from "
                     f"{Path(solutions.__file__).resolve().parents[1]}. In the folder that you "
                     f"want to work in: {INSTALL}")
    return found


class Environment:
    """A notice that shows itself: everything is there, or what is missing and how to get it."""

    def __init__(self):
        self.problems = problems()

    def __repr__(self):
        if self.problems:
            return "\n".join(["Something is missing:", *self.problems])
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in NEEDED)
        return f"Everything is there: Python {platform.python_version()}, {versions}."

    def _repr_html_(self):
        lines = "<br>".join(html.escape(line) for line in repr(self).split("\n"))
        return notice("alert-warning" if self.problems else "alert-success", lines)


def check_environment():
    """Look, and say so in a notice."""
    return Environment()
