"""The form of every real lesson: what `python -m course build --check` checks, and lint.

A learner's clone has notebooks that were worked in. Such a notebook (it has outputs, or an exercise
in it is answered) is looked at as it was committed, so that `pytest` says whether the course is
sound, not whether someone has done their exercises.
"""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from course import build
from course.exercises import get

ROOT = Path(__file__).resolve().parents[1]
LESSONS = build.lessons(ROOT)


def committed(path):
    """The notebook as committed, or None where there is no git or no commit of it."""
    try:
        shown = subprocess.run(
            ["git", "show", f"HEAD:{path.relative_to(ROOT).as_posix()}"],
            cwd=ROOT, capture_output=True, timeout=60,
        )  # fmt: skip
    except OSError:
        return None
    return shown.stdout if shown.returncode == 0 else None


def worked_in(notebook):
    for cell in build.code_cells(notebook):
        if cell.outputs or cell.execution_count is not None:
            return True
        node = build.exercise_definition(cell.source)
        if node is not None and not build.is_blank(node):
            return True
    return False


@pytest.fixture(params=LESSONS, ids=lambda lesson: lesson.name)
def lesson(request, monkeypatch):
    """A lesson; where the learner has worked in its notebook, `build.read` gives the committed."""
    found = request.param
    if worked_in(build.read(found.blank)):
        text = committed(found.blank)
        if text is not None:
            kept = nbformat.reads(text.decode(), as_version=4)
            read = build.read
            monkeypatch.setattr(
                build, "read", lambda path: kept if path == found.blank else read(path)
            )
    return found


def test_there_are_lessons():
    assert "01_attention" in [lesson.name for lesson in LESSONS]


def test_form_limits_links_alt_text_and_worked_copy(lesson):
    found = build.problems(lesson, get, build.registered_exercises)
    assert not found, "\n".join(found)


def test_the_blank_copy_fails_under_strict_at_its_first_exercise(lesson, tmp_path):
    """Which shows that the checks bite: the worked copy passes where the blank one does not."""
    notebook = build.normal(build.read(lesson.blank))
    ends = [i for i, cell in enumerate(notebook.cells) if build._name_or_none(cell.source)]
    if not ends:
        pytest.fail("a lesson without an exercise")
    name = build.exercise_name(notebook.cells[ends[0]].source)
    del notebook.cells[ends[0] + 1 :]
    with pytest.raises(build.BuildError) as caught:
        build.execute(notebook, lesson.blank.parent)
    said = str(caught.value)
    assert "ExerciseNotPassed" in said
    assert name in said
    assert [cell.source for cell in notebook.cells][-1] in said  # not an earlier cell


def test_only_lessons_and_their_worked_copies_are_committed():
    try:
        listed = subprocess.run(
            ["git", "ls-files", "*.ipynb"], cwd=ROOT, capture_output=True, text=True, timeout=60
        ).stdout.split()
    except OSError:  # a download without git
        listed = []
    places = {path for one in LESSONS for path in (one.blank, one.worked)}
    assert [name for name in listed if ROOT / name not in places] == []


@pytest.mark.parametrize("tool", ["ruff", "codespell"])
def test_lint(tool):
    """Code, and the lessons that nobody has worked in; tests hold misspelled words on purpose."""
    lessons = [str(one.blank) for one in LESSONS if not worked_in(build.read(one.blank))]
    paths = ["notebooks/course", "solutions", *lessons]
    paths += ["figures"] if (ROOT / "figures").is_dir() else []
    if tool == "ruff":
        command = ["ruff", "check", "--no-cache", "--output-format", "concise"]
        paths += ["tests", "conftest.py"]
    else:
        command = ["codespell_lib"]
        paths += ["README.md"]
    shown = subprocess.run(
        [sys.executable, "-m", *command, *paths], cwd=ROOT, capture_output=True, text=True,
        timeout=300, env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert shown.returncode == 0, shown.stdout + shown.stderr
