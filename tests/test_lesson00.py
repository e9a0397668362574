"""Lesson 00: the finished thing says what its text says; in every lesson, each slider is shown."""

import re

import nbformat
import pytest
from course import build
from course.explore import _sliders, load_lessons
from course.sliders import lesson00 as play
from course.texts.small_passages import RELATIONS

LESSONS = build.lessons()


@pytest.fixture(scope="module")
def three():
    return play._three()


def shown(three, **other):
    """The picture of three heads, at the texts that the lesson starts with and `other`."""
    controls = play.three_heads.slider.controls
    return play.three_heads(**({name: one.first for name, one in controls.items()} | other),
                            **three)


def test_three_heads_answer_the_texts_that_the_lesson_starts_with(three):
    drawn = shown(three)
    labels = list(three["classifier"].labels)
    assert drawn.facts["probabilities"].argmax() == labels.index("negative")
    assert "Maria Keller: PER; Siemens: ORG; Berlin: LOC; Google: ORG." in drawn.alt
    assert ">the violin</span>" in drawn.body
    assert drawn.alt.endswith("What does Mara play? the violin.")


def test_the_reader_declines_what_the_passage_does_not_tell_and_is_led_astray_by_other_questions(
        three):
    assert "not in this text" in shown(three, question="Where does Mara live?").alt
    assert shown(three, question="Where does John live?").alt.endswith("? New York.")
    assert shown(three, question="When does Mara play?").alt.endswith("? the violin.")


def test_each_kind_of_question_that_the_lesson_names_is_one_that_the_reader_knows():
    assert [relation.question.format("x") for relation in RELATIONS.values()] == [
        "Where does x work?", "Where does x live?", "When was x born?", "What does x play?"]


def test_only_the_answer_changes_with_the_question(three):
    one, other = (shown(three, question=q) for q in ("What does Mara play?", "Who?"))
    assert one.body.split("08, an answer")[0] == other.body.split("08, an answer")[0]


def test_a_question_without_an_answer_is_told_so_in_the_picture(three):
    drawn = shown(three, passage="Nina flew from Rome to Paris, and Google hired her.",
                  question="Who sold the <b>bridge</b>?")
    assert "not in this text" in drawn.body and "not in this text" in drawn.alt
    assert "<b>bridge" not in drawn.body


@pytest.mark.parametrize(("text", "verdict", "read"), [
    ("The hotel was not bad but good.", "positive", "good"),
    ("The hotel was not good but bad.", "negative", "bad")])
def test_in_the_first_picture_cls_reads_the_word_that_counts_and_that_had_read_but(
        text, verdict, read):
    model = play.read_a_sentence.slider.given()["model"]
    assert play.read_a_sentence.slider.controls["text"].first == "The hotel was not bad but good."
    facts = play.read_a_sentence(text, model).facts
    tokens = model.attention(text)[0]
    assert model.labels[facts["probabilities"].argmax()] == verdict
    assert tokens[facts["most"]] == read and facts["weights"].max() > 0.7
    assert tokens[facts["before"].argmax()] == "but"


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
