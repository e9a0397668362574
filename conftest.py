"""How plain `pytest` runs the course: its tests, and every notebook through nbval.

The learner's copies in notebooks/ run as a learner runs them: an exercise that is still open says
so and the lesson goes on. The worked copies in solutions/ run under COURSE_STRICT=1: an exercise
that does not pass, or a slider that cannot draw, is an error. Nothing touches the learner's own
answers: COURSE_HOME is a temporary folder, another one for each notebook.

Both copies train all their models. What the learner's copy trained is kept for the browser tests,
which open the same copy (tests/trained.py); so these come after the notebooks.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest
import trained

ROOT = Path(__file__).resolve().parent
LESSON = re.compile(r"^\d\d_[a-z0-9_]+\.ipynb$")

# Before anything imports NumPy, and inherited by workers and kernels. The workers share the cores.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["COURSE_QUIET"] = "1"
os.environ["COURSE_STRICT"] = ""
os.environ["PYTHONWARNINGS"] = "error::DeprecationWarning:__main__"  # in the cells of notebooks
os.environ.pop("JPY_SESSION_NAME", None)
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["COURSE_HOME"] = tempfile.mkdtemp(prefix="encoder-course-tests-")
    os.environ[trained.FOLDER] = str(Path(os.environ["COURSE_HOME"]) / "trained")
    trained.profile(Path(os.environ["COURSE_HOME"]) / "ipython", again=False)
_HOME = Path(os.environ["COURSE_HOME"])
_IPYTHON = os.environ.get("IPYTHONDIR")


def _is_notebook(item):
    return item.path.suffix == ".ipynb"


def pytest_ignore_collect(collection_path):
    """Only the lessons: not a copy of one, nor a notebook that a learner put beside them."""
    if collection_path.suffix == ".ipynb" and not LESSON.match(collection_path.name):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before nbval starts a notebook's kernel: the environment that the kernel inherits."""
    os.environ.pop("IPYTHONDIR", None)
    if _IPYTHON is not None:
        os.environ["IPYTHONDIR"] = _IPYTHON
    if _is_notebook(item):
        worked = item.path.parent == ROOT / "solutions"
        if not worked:
            os.environ["IPYTHONDIR"] = str(_HOME / "ipython")
        os.environ["COURSE_STRICT"] = "1" if worked else ""
        os.environ["COURSE_HOME"] = str(_HOME / item.path.stem)
    else:
        os.environ["COURSE_STRICT"] = ""
        os.environ["COURSE_HOME"] = str(_HOME / "tests")


# Scopes that take longest, of each kind, in this order; the others keep the order of their names.
_LONGEST = (
    "09_", "05_", "08_", "06_", "07_",
    "test_update", "test_grade", "test_copies", "test_all_exercises",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """What takes longest starts first, so that the workers end at about the same time.

    The learner's copies come first: the browser tests take over what these have trained.
    """

    def turn(item):
        name = item.path.name
        kind = [item.path.parent == ROOT / "notebooks", item.path.parent == ROOT / "solutions",
                name.startswith("test_browser"), True].index(True)  # fmt: skip
        known = [name.startswith(start) for start in _LONGEST]
        return kind, known.index(True) if any(known) else len(known)

    items.sort(key=turn)


def pytest_terminal_summary(terminalreporter):
    """Print what tests measured (the fixture `measured`), which a passing test else hides."""
    lines = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", [])
        if name == "measured"
    ]
    if lines:
        terminalreporter.section("measured")
        for line in dict.fromkeys(lines):
            terminalreporter.write_line(line)


def pytest_unconfigure(config):
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(_HOME, ignore_errors=True)
