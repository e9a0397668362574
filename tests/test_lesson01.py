"""Lesson 01: what its text and sliders claim is so."""

import numpy as np
import pytest
from course.sliders import lesson01 as play

from solutions.attention import softmax, softmax_backward

BOTH = "Washington flew to Washington"
TOWN = "In town Washington signed it there"


@pytest.mark.parametrize(("sentence", "verdict"), [
    ("Washington signed it", "person"), ("flew to Washington", "place"), (BOTH, "place"),
    (TOWN, "person")])
def test_washington_leans_as_the_text_says(sentence, verdict):
    facts = play.which_washington(sentence, 1.0).facts
    assert facts["verdict"] == verdict
    assert np.ptp(facts["output"], axis=0).max() < 1e-12  # both Washingtons: one vector


def test_a_plain_mean_gets_one_sentence_wrong_and_sharper_attention_right():
    verdicts = [play.which_washington(TOWN, s).facts["verdict"] for s in np.arange(0, 4.1, 0.1)]
    turn = verdicts.index("person")
    assert turn > 0 and set(verdicts[:turn]) == {"place"} and set(verdicts[turn:]) == {"person"}
    assert play.SENTENCES[TOWN].mean(axis=0).argmax() == 1


def test_bank_wins_only_between_fish_and_money_whatever_the_length():
    for angle in range(0, 360, 5):
        first = {list(play.KEYS)[play.query_direction(angle, length).facts["weights"].argmax()]
                 for length in (0.5, 1.0, 2.0)}
        assert len(first) == 1
        if first == {"bank"}:
            assert 0 < angle < 90


def test_fish_is_exactly_zero_where_the_query_stands_at_a_right_angle_to_it():
    zero = [angle for angle in range(0, 360, 5)
            if "fish 0.00" in play.query_direction(angle, 1.0).alt.split("dot products")[1]
            .split("weights")[0]]
    assert zero == [0, 180]
    assert "−0.00" not in "".join(play.query_direction(a, 1.0).alt for a in (0, 90, 180, 270))


def test_a_low_temperature_gives_one_key_everything_and_a_high_one_evens_out():
    low, high = (play.temperature_picture(t).facts["weights"] for t in (0.1, 5.0))
    assert low.max() > 0.999 and low.argmax() == play.SCORES.argmax()
    assert np.ptp(high) < 0.2


def test_undivided_scores_saturate_with_the_width_and_divided_ones_do_not():
    facts = [play.width_picture(doublings).facts for doublings in range(10)]
    spread = np.array([one["spread"] for one in facts])  # (widths, [divided, not divided])
    assert np.ptp(spread[:, 0]) < 1 and (np.diff(spread[:, 1]) < 0).all()
    assert spread[0, 0] == spread[0, 1] and spread[-1, 1] < 1.2
    largest = np.array([one["weights"][:, 0] for one in facts])
    assert np.ptp(largest[:, 0]) < 0.1 and largest[-1, 1] > 0.95
    slopes = np.array([one["slopes"].max(axis=1) for one in facts])
    assert slopes[:, 0].min() > 0.17 and slopes[-1, 1] < 0.05


def test_the_slopes_are_what_softmax_does_to_a_nudged_score():
    scores = np.array([[0.3, -1.0, 2.0]])
    for j in range(3):
        nudge = 1e-6 * np.eye(3)[[j]]
        moved = (softmax(scores + nudge) - softmax(scores - nudge))[0, j] / 2e-6
        slope = softmax_backward(np.eye(3)[[j]], softmax(scores))[0, j]
        assert slope == pytest.approx(moved, abs=1e-8)


def test_with_both_masks_the_first_word_sees_itself_alone_and_a_late_mask_takes_from_the_sums():
    both = play.mask_picture("on", "on", "before the softmax").facts
    assert both["mask"][0].sum() == 1 and both["weights"][0, 0] == 1
    late = play.mask_picture("on", "on", "after the softmax").facts["values"]  # the rows' sums
    in_time = play.mask_picture("on", "on", "before the softmax").facts["values"]
    np.testing.assert_allclose(in_time, 1)
    assert (late[:4] < 0.999).all()
