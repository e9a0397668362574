"""Lesson 00: the finished thing says what its text says; in every lesson, each slider is shown."""

import re

import nbformat
import pytest
from course import build
from course.explore import _sliders, load_lessons
from course.sliders import lesson00 as play

LESSONS = build.lessons()


@pytest.fixture(scope="module")
def three():
    return play._three()


def test_three_heads_answer_the_text_that_the_lesson_starts_with(three):
    shown = play.three_heads("Mara Lind works at the museum in Oslo. The museum was dull, not "
                             "lovely.", "Where does Mara work?", **three)
    assert shown.facts["probabilities"].argmax() == list(three["classifier"].labels).index(
        "negative")
    assert ">museum</span>" in shown.body
    assert shown.alt.endswith("Where does Mara work? museum.")


def test_a_question_without_an_answer_is_told_so_in_the_picture(three):
    shown = play.three_heads("Nina flew from Rome to Paris, and Google hired her.",
                             "Who sold the <b>bridge</b>?", **three)
    assert "not in this text" in shown.body and "not in this text" in shown.alt
    assert "<b>bridge" not in shown.body


def test_exchanging_the_two_adjectives_turns_the_verdict():
    model = play.read_a_sentence.slider.given()["model"]
    one, other = model.probabilities(["I expected a dull show but got a lovely one.",
                                      "I expected a lovely show but got a dull one."])
    assert model.labels[one.argmax()] == "positive" and model.labels[other.argmax()] == "negative"


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_every_slider_of_a_lesson_stands_in_a_cell_that_runs(lesson):
    """A cell that slipped into the text beside it is neither run nor missed by any error."""
    assert load_lessons() == {}
    own = {one.draw.__name__ for one in _sliders.values()
           if one.draw.__module__ == f"course.sliders.lesson{lesson.number}"}
    cells = nbformat.read(lesson.blank, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    missing = {name for name in own if not re.search(rf"explore\(play\.{name}\b", code)}
    assert own and not missing
    for cell in cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"^%|^explore\(", cell.source, re.MULTILINE), cell.source
