"""Lesson 01 in the real JupyterLab, in a real browser, as a learner meets it."""

import re
import shlex
import urllib.request

import lab
import pytest

WRONG = '''\
@exercise
def softmax(scores, axis=-1):
    """Positive weights that sum to 1 along `axis`; a row of -inf gives zeros."""
    powers = np.exp(scores)
    return powers / powers.sum(axis=axis, keepdims=True)'''

RIGHT = '''\
@exercise
def softmax(scores, axis=-1):
    """Positive weights that sum to 1 along `axis`; a row of -inf gives zeros."""
    top = scores.max(axis=axis, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = powers.sum(axis=axis, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)'''


@pytest.fixture(scope="module")
def lesson():
    """Lesson 01, open and run from top to bottom."""
    with lab.jupyterlab() as server, lab.browser_page() as page:
        notebook = lab.open_notebook(page, server, "notebooks/01_attention.ipynb")
        notebook.run_all()
        yield notebook


def test_the_blank_lesson_runs_to_its_end(lesson):
    assert lesson.unrun() == 0
    assert lesson.errors() == []
    assert "not started" in lesson.output(lesson.cell("def softmax")).inner_text()


def test_a_wrong_then_a_right_answer(lesson):
    cell = lesson.cell("def softmax")

    lesson.type_into(cell, WRONG)
    lesson.run_cell(cell)
    feedback = lesson.output(cell).inner_text()
    assert "softmax" in feedback
    assert "wrong" in feedback
    assert "maximum" in feedback  # the named mistake's own advice
    assert "passed" not in feedback
    assert lesson.errors() == []

    lesson.type_into(cell, RIGHT)
    lesson.run_cell(cell)
    feedback = lesson.output(cell).inner_text()
    assert "passed" in feedback
    assert "wrong" not in feedback
    assert lesson.errors() == []


def test_a_slider_moves_by_keyboard_and_its_picture_changes(lesson, measured):
    cell = lesson.cell("temperature_picture")
    slider = lesson.sliders(cell).first
    image = cell.locator(".jp-OutputArea img").first
    before, value = image.get_attribute("src"), slider.get_attribute("aria-valuenow")
    slider.focus()
    lesson.page.keyboard.press("ArrowRight")
    lesson.wait_until(lambda: image.get_attribute("src") != before)
    assert slider.get_attribute("aria-valuenow") != value
    assert image.get_attribute("alt").strip()
    assert cell.locator(".jp-OutputArea img").count() == 1  # replaced, not added

    # Printed, not asserted: beside other tests a run takes longer.
    median = lab.median_latency(lesson, slider, image)
    measured(f"lesson 01, arrow key to new picture, median of 20: {median:.0f} ms (budget 100)")


def test_every_picture_has_alt_text_and_no_script_failed(lesson):
    alts = lesson.panel.locator(".jp-OutputArea img, .jp-MarkdownOutput img").evaluate_all(
        "pictures => pictures.map(picture => picture.alt.trim())"
    )
    assert alts
    assert all(alts)
    assert lesson.problems == []


def test_saving_changes_the_copy_and_not_the_repository(lesson):
    saved = lesson.server.root / "notebooks/01_attention.ipynb"
    own = lab.REPOSITORY / "notebooks/01_attention.ipynb"
    before = own.read_bytes()
    lesson.menu("File", "docmanager:save")
    lesson.wait_until(lambda: saved.read_bytes() != before)
    assert own.read_bytes() == before


def test_the_command_of_the_readme_opens_lesson_00():
    readme = (lab.REPOSITORY / "README.md").read_text(encoding="utf-8")
    command = re.search(r"^\s*(jupyter lab .*)$", readme, re.MULTILINE)
    assert command, "README.md shows no command that begins with jupyter lab"
    words = shlex.split(command[1])
    url = next(word for word in words if word.startswith("--LabApp.default_url=")).split("=")[1]
    assert (lab.REPOSITORY / url.removeprefix("/lab/tree/")).is_file()
    with (
        lab.jupyterlab(arguments=words[2:]) as server,
        urllib.request.urlopen(server.url, timeout=30) as answer,
    ):
        assert answer.url.split("?")[0] == server.url + url


def test_a_missing_browser_is_said(monkeypatch):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(lab.shutil, "which", lambda name: None)
    monkeypatch.setattr(lab, "CHROMIUM_PLACES", [])
    with pytest.raises(lab.ChromiumMissing, match="apt-get install chromium"):
        lab.find_chromium()
    monkeypatch.setenv("CHROMIUM", "no-such-program")
    with pytest.raises(lab.ChromiumMissing, match="no-such-program"):
        lab.find_chromium()
