"""What lesson 08 shows: its sliders, and the small model that it ships."""

import math

import numpy as np
import pytest
from course.exercises import check, get
from course.explore import picture
from course.sliders import lesson08 as play
from course.texts import load_squad
from course.texts.small_passages import small_passages
from course.weights import lesson08 as shipped

from solutions.question_answering import has_answer, mean_scores

NAMES = ("answer_mask", "masked_softmax", "best_spans", "span_labels", "windows", "has_answer",
         "normalize_answer", "f1")  # fmt: skip


def test_the_shipped_model_answers_about_people_it_has_never_met():
    items = small_passages(300, 77, held_out=True)
    golds = [[gold.text for gold in item.answers] for item in items]
    scores = mean_scores([one.text for one in shipped.answers().answer_all(items)], golds)
    assert scores["answerable"]["exact_match"] >= 0.95
    assert scores["exact_match"] >= 0.93


def test_the_shipped_model_answers_the_first_example():
    answer = shipped.answers().answer(
        "Where does John work?", "John Smith works at Google headquarters ."
    )
    assert (answer.text, answer.start, answer.end) == ("Google headquarters", 20, 39)


def test_the_weights_are_small_and_need_no_pickle():
    assert shipped.ANSWERS.stat().st_size < 1_500_000
    with np.load(shipped.ANSWERS, allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)


def test_untrained_is_the_same_each_time():
    one, other = shipped.untrained(), shipped.untrained()
    assert all(np.array_equal(one.params[name], other.params[name]) for name in one.params)
    assert shipped.untrained(causal=True).encoder.config.causal


def test_random_weights_give_noise():
    items = small_passages(100, 5, no_answer=0)
    golds = [[gold.text for gold in item.answers] for item in items]
    texts = [one.text for one in shipped.untrained().answer_all(items, decide=False)]
    assert mean_scores(texts, golds)["exact_match"] < 0.2


@pytest.mark.parametrize("name", NAMES)
def test_exercises_have_what_they_need(name):
    exercise = get(name)
    assert exercise.lesson == "08"
    assert len(exercise.mistakes) >= 7


def test_windows_that_never_end_are_told_what_is_due():
    def unchecked(num_context, room, overlap):
        made, first = [], 0
        while first < num_context:
            made.append((first, min(first + room, num_context)))
            if made[-1][1] == num_context:
                break
            first += room - overlap
        return made

    report = check("windows", unchecked)
    assert report.status == "error"
    assert "ValueError is due" in report.message
    assert "never ends" in report.message


def test_a_softmax_over_the_whole_array_is_named():
    def whole(logits, allowed):
        powers = np.where(allowed, np.exp(logits), 0)
        return powers / powers.sum()

    report = check("masked_softmax", whole)
    assert report.mistake == "over_everything_unshifted"
    assert "over the whole array" in report.message


def test_score_matrix_marks_the_best_allowed_pair():
    rng = np.random.default_rng(0)
    for _ in range(30):
        values = dict(zip(("start_google", "end_google", "start_headquarters", "end_headquarters"),
                          rng.integers(-12, 13, 4) / 2))  # fmt: skip
        longest = int(rng.integers(1, 7))
        facts = picture("08.score_matrix", {**values, "longest": longest}).facts
        matrix, valid = facts["matrix"], facts["valid"]
        assert matrix[tuple(facts["best"])] == matrix[valid].max()
        assert valid.any()
        starts, ends = np.nonzero(valid)
        assert (ends >= starts).all()
        assert (ends - starts < longest).all()


def test_longer_limits_never_shorten_the_score():
    lengths = picture("08.longest_answer", {"weights": "random"}).facts["lengths"]
    assert (lengths <= np.arange(1, 31)).all()
    assert lengths[-1] >= 15, "without a limit, random weights answer with half the passage"
    trained = picture("08.longest_answer", {"weights": "trained"}).facts["lengths"]
    assert trained[-1] <= 3


def test_threshold_moves_both_errors_the_right_way():
    given = play.some_margins()
    errors = np.array([
        picture("08.threshold_picture", {"threshold": float(at)}, given).facts["errors"]
        for at in range(-20, 21)
    ])  # fmt: skip
    assert (np.diff(errors[:, 0]) <= 0).all()
    assert (np.diff(errors[:, 1]) >= 0).all()
    none = given["if_declined"] > 0
    kept = [has_answer([lead], 0.0, 1.5) for lead in given["margins"]]
    drawn = picture("08.threshold_picture", {"threshold": 1.5}, given).facts["errors"]
    assert math.isclose(drawn[0], np.mean([not yes for yes in np.array(kept)[~none]]))
    assert math.isclose(drawn[1], np.mean(np.array(kept)[none]))


def test_windows_with_enough_overlap_keep_the_answer_whole():
    length = play.ANSWER[1] - play.ANSWER[0]
    assert play.LONG[slice(*play.ANSWER)] == ["half", "past", "six"]
    for room in range(length + 1, 25):
        for overlap in range(length - 1, min(room, 13)):
            values = {"room": room, "overlap": overlap}
            assert picture("08.window_picture", values).facts["whole"] >= 1
    assert "no room" in picture("08.window_picture", {"room": 4, "overlap": 4}).alt


@pytest.mark.parametrize("question", ["", "  ", "<b>x</b>", "why " * 20, "漢字", "👍🏽"])
@pytest.mark.parametrize("passage", ["", "<script>alert(1)</script>", "word " * 80, "שלום עולם"])
def test_ask_shows_what_is_typed_as_text(question, passage):
    drawn = play.ask(question, passage, shipped.answers())
    shown = drawn._repr_html_()
    assert "<script" not in shown
    assert drawn.alt.strip()


def test_places_find_the_name_and_both_values():
    for item in play.probe_passages():
        tokens, _ = shipped.answers().attention(item.question, item.passage)
        name, right, wrong = play.places(item, tokens)
        assert tokens[name] == item.person.split()[0].lower()
        assert tokens[right] == item.answers[0].text.split()[0].lower()
        assert len({name, right, wrong}) == 3


def test_the_trained_model_looks_from_the_right_value_to_the_name():
    probes = play.probe_passages()
    shot = play.snapshot(shipped.answers(), probes, 0, None)
    assert (shot["own"] - shot["other"]).max() > 0.2
    fresh = play.snapshot(shipped.untrained(), probes, 0, None)
    assert abs(fresh["own"] - fresh["other"]).max() < 0.1


def test_snapshots_pass_everything_on():
    said = []

    class Watch:
        def __getattr__(self, name):
            return lambda *args: said.append(name)

    watch = play.Snapshots(shipped.untrained(), play.probe_passages()[:2], Watch())
    watch.start(2)
    watch.step(1, 0.5, 0.1)
    watch.dev(1, 0.25)
    watch.end("")
    assert said == ["start", "step", "dev", "end"]
    assert [one["step"] for one in watch.taken] == [0, 1]
    assert watch.taken[1]["score"] == 0.25


def test_every_answer_of_the_course_s_passages_is_where_it_should_be():
    questions, mismatches = load_squad()
    assert mismatches == []
    assert len(questions) >= 500
    assert np.mean([not item.answers for item in questions]) >= 0.2
