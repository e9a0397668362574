"""Lesson 05: what its text and sliders claim is so."""

import ast
import inspect

import course
import numpy as np
import pytest
from course.exercises import get
from course.exercises.lesson05 import compare_masked
from course.sliders import lesson05 as play
from course.texts import load_conll, load_reviews, load_squad
from course.weights import lesson05 as weights
from course.weights.lesson05 import (
    MASKED_WORDS,
    frequency_loss,
    masked_words,
    sentences,
    untrained,
)

from solutions import encoder, pretraining, training
from solutions.pretraining import MaskedWordModel, mask_tokens

# --- Values that popular code gets wrong ----------------------------------------------------------


def test_ignored_labels_counted_in_the_mean_are_named():
    def counted(logits, labels, ignore_index=-100):
        loss, grad = training.cross_entropy(logits, labels, ignore_index)
        rows, real = labels.size, max(int((labels != ignore_index).sum()), 1)
        return loss * real / rows, grad * real / rows

    case = np.array([[2.0, 0], [0, 0], [1, 1]]), np.array([0, -100, 1])
    assert get("cross_entropy").reference(*case)[0] == pytest.approx(0.410038, abs=1e-6)
    assert counted(*case)[0] == pytest.approx(0.273358, abs=1e-6)
    report = course.check("cross_entropy", counted)
    assert (report.status, report.mistake) == ("wrong", "all_rows")


@pytest.mark.parametrize(("name", "mistake", "said"), [
    ("layer_norm_backward", "no_shift", "mean term is missing"),
    ("layer_norm_backward", "no_stretch", "projection term is missing"),
    ("layer_norm_backward", "no_deviation", "1 / deviation is missing"),
    ("layer_norm_backward", "no_gamma", "gamma is forgotten"),
    ("linear_backward", "bias_mean", "add up"),
    ("linear_backward", "x_not_turned", "turned"),
    ("adamw_step", "l2", "AdamW"),
    ("adamw_step", "first_step_always", "fades"),
    ("adamw_step", "no_eps", "without eps"),
    ("cross_entropy", "small_number_added", "caps the loss"),
    ("layer_norm_backward", "stretch_sum", "should be a mean"),
    ("warmup_linear", "both_lines", "divides by 0"),
    ("warmup_linear", "first_lost", "is lost"),
    ("mask_tokens", "always_mask", r"10 % stay"),
])
def test_what_is_missing_is_said(name, mistake, said):
    wrong = next(one for one in get(name).mistakes if one.name == mistake)
    report = course.check(name, wrong.function)
    assert report.mistake == mistake
    assert said in report.message


@pytest.mark.parametrize("every", [False, True])
def test_a_softmax_down_the_columns_is_named(every):
    def wrong(logits, labels, ignore_index=-100):
        flat, wanted = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
        rows, grad = wanted != ignore_index, np.zeros_like(flat)
        if not rows.any():
            return 0.0, grad.reshape(logits.shape)
        source = logits if every else flat[rows]
        powers = np.exp(source - source.max(axis=0))
        with np.errstate(divide="ignore"):
            logs = np.log(powers / powers.sum(axis=0)).reshape(-1, logits.shape[-1])
        logs = logs[rows] if every else logs
        grad[rows] = (np.exp(logs) - np.eye(flat.shape[1])[wanted[rows]]) / rows.sum()
        loss = -logs[np.arange(len(logs)), wanted[rows]].mean()
        return float(loss), grad.reshape(logits.shape)

    report = course.check("cross_entropy", wrong)
    assert report.status == "wrong" and report.mistake.startswith("columns")
    assert "down the columns" in report.message


def test_a_gradient_check_with_ones_would_pass_a_wrong_formula():
    x, ones = np.random.default_rng(0).normal(size=(3, 4)), np.ones((3, 4))
    frozen = next(m for m in get("layer_norm_backward").mistakes if m.name == "no_stretch")
    right = encoder.layer_norm_backward(ones, x, np.ones(4))[0]
    np.testing.assert_allclose(right, 0, atol=1e-12)
    np.testing.assert_allclose(frozen.function(ones, x, np.ones(4))[0], 0, atol=1e-12)


def test_the_exercise_s_adamw_is_the_optimizer_s():
    step_of = get("adamw_step").reference
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(3, 2)), "norm.gamma": rng.normal(size=2)}
    mine = {name: (array.copy(), 0 * array, 0 * array) for name, array in params.items()}
    optimizer = training.AdamW(params)
    for step in range(1, 8):
        grads = {name: rng.normal(size=array.shape) for name, array in params.items()}
        optimizer.step(grads, 0.05)
        for name, (param, first, second) in mine.items():
            decay = 0.01 if name == "w" else 0.0
            mine[name] = step_of(param, grads[name], first, second, step, 0.05, decay)
    for name, array in params.items():
        np.testing.assert_allclose(mine[name][0], array, rtol=1e-9)


# --- The check of random masking ------------------------------------------------------------------


def _masking(seed, shape=(400, 50), rate=0.15):
    rng = np.random.default_rng(seed)
    ids, special = rng.integers(5, 1000, size=shape), np.zeros(shape, dtype=bool)
    special[:, [0, -1]] = True
    return (ids, special, 1000, 4), mask_tokens(ids, special, 1000, 4, rng, rate)


def test_any_right_masking_is_accepted():
    for seed in range(150):
        args, got = _masking(seed)
        assert compare_masked(got, _masking(seed + 1000)[1], args) is None


@pytest.mark.parametrize(("change", "said"), [
    (lambda ids, hidden, labels: (hidden, labels.astype(float)), "integers"),
    (lambda ids, hidden, labels: (hidden[:, :-1], labels), "shape"),
    (lambda ids, hidden, labels: (hidden, np.where(labels == -100, -100, 7)), "original"),
    (lambda ids, hidden, labels: (np.full_like(ids, 4), labels), "without a label was changed"),
    (lambda ids, hidden, labels: (hidden, np.where(ids == ids[:, :1], ids, labels)), "special"),
    (lambda ids, hidden, labels: (np.where(labels != -100, ids, hidden), labels), r"\[MASK\]"),
    (lambda ids, hidden, labels: (ids, np.full_like(ids, -100)), "0.0%"),
])
def test_a_wrong_masking_is_told_what_is_wrong(change, said):
    args, got = _masking(3)
    message = compare_masked(change(args[0], *got), got, args)
    assert message is not None
    assert said.replace("\\", "") in message


def test_the_same_places_in_every_sentence_are_noticed_without_the_seed():
    def columns(input_ids, special_tokens_mask, vocab_size, mask_id, rng, rate=0.15):
        chosen = np.zeros(input_ids.shape, bool)
        count = round(rate * input_ids.shape[-1])
        chosen[..., 1 : 1 + count] = True
        chosen &= ~special_tokens_mask
        turn = np.random.default_rng(99).random(input_ids.shape)
        some = np.random.default_rng(98).integers(vocab_size, size=input_ids.shape)
        hidden = np.where(turn < 0.8, mask_id, np.where(turn < 0.9, some, input_ids))
        return np.where(chosen, hidden, input_ids), np.where(chosen, input_ids, -100)

    report = course.check("mask_tokens", columns)
    assert report.status == "wrong"


def test_masking_must_draw_from_the_rng_it_is_given():
    def elsewhere(input_ids, special_tokens_mask, vocab_size, mask_id, rng, rate=0.15):
        return pretraining.mask_tokens(input_ids, special_tokens_mask, vocab_size, mask_id,
                                       np.random.default_rng(), rate)  # fmt: skip

    report = course.check("mask_tokens", elsewhere)
    assert report.status == "wrong"
    assert "draw from `rng`" in report.message


# --- Sliders --------------------------------------------------------------------------------------


def test_gradient_of_the_loss_picture_is_that_of_differences():
    facts = play.loss_picture(1.5, 2.0).facts
    logits = np.array([1.5, 2.0, 0.0, -1.0])
    true = play.differences(
        lambda z: training.cross_entropy(z[None], np.array([0]))[0], logits)
    np.testing.assert_allclose(facts["gradient"][0], true, atol=1e-8)


def test_the_surface_has_its_lowest_point_where_the_picture_says():
    best = play.walk("AdamW", 0.05, steps=400)[1].min()
    assert best == pytest.approx(0.612, abs=5e-4)
    assert play.WIDE[0] < 0 < play.WIDE[1]
    weight = np.array([0.1, 0.4])
    loss, grad = play.opinion_loss(weight)
    true = play.differences(lambda w: play.opinion_loss(w)[0], weight)
    np.testing.assert_allclose(grad, true, rtol=1e-6)
    assert loss > best


def test_rates_of_the_surface():
    def end(how, rate, **options):
        return play.walk(how, rate, **options)[1][-10:].mean()

    start = play.walk("plain gradient", 0.01)[1][0]
    assert end("plain gradient", 0.01) < end("plain gradient", 0.03) < end("plain gradient", 0.3)
    assert end("plain gradient", 0.3) > start
    assert end("plain gradient", 0.03, clip=True) < end("plain gradient", 0.03)
    assert end("AdamW", 0.03) < end("plain gradient", 0.01)


@pytest.mark.parametrize(("rate", "optimizer", "verdict"), [
    (-3.0, "plain gradient", "has not arrived"), (-1.5, "plain gradient", "jumps back and forth"),
    (-0.5, "plain gradient", "ends higher than it began"), (-1.25, "AdamW", "arrives"),
])
def test_the_surface_says_how_a_run_ends(rate, optimizer, verdict):
    assert verdict in play.surface_picture(rate, optimizer, False, False).alt


def test_no_run_is_said_to_diverge_whose_steps_clipping_or_adamw_bounds():
    """Each of their steps is about a rate long, so a run may end high, but it cannot run away."""
    for optimizer, clip in (("plain gradient", True), ("AdamW", False)):
        shown = play.surface_picture(0.5, optimizer, clip, False)
        assert "ends higher than it began" in shown.alt and "diverge" not in shown.alt
        places = play.walk(optimizer, 10**0.5, clip)[0]
        assert np.linalg.norm(np.diff(places, axis=0), axis=-1).max() < 5 * 10**0.5


def test_a_longer_warm_up_costs_nothing_before_a_linear_fall():
    sums = [play.schedule_picture(warmup, "linear").facts["factor"].sum()
            for warmup in range(0, 101, 5)]
    assert max(sums) - min(sums) <= 1
    assert play.schedule_picture(100, "no decay").facts["factor"].sum() < 51


def test_layer_norm_picture_agrees_only_with_all_terms():
    assert play.norm_way_back(True, True, True, "random").facts["apart"] < 1e-6
    for off in range(3):
        terms = [i != off for i in range(3)]
        assert play.norm_way_back(*terms, "random").facts["apart"] > 0.1
    assert play.norm_way_back(True, False, True, "all ones, gamma ones").facts["apart"] < 1e-6


def test_first_steps_of_adamw_are_one_rate_long_whatever_the_scale():
    for scale in (1e-2, 1.0, 100.0):
        lengths = play.step_lengths(scale, "all of AdamW")
        assert lengths[0] == pytest.approx(1, rel=1e-3)
        assert play.step_lengths(scale, "no correction at the start").max() > 3
    assert play.step_lengths(100.0, "no division").min() > 50


def test_mask_picture_hides_what_it_says():
    for rate in (0, 15, 100):
        facts = play.mask_picture(rate, 3).facts
        asked = facts["labels"] != -100
        assert asked.sum() == pytest.approx(rate / 100 * 24, abs=4)
    assert play.clip_picture(2.0, "all together").facts["turned"] == pytest.approx(0)
    assert play.clip_picture(2.0, "each number alone").facts["turned"] > 10


def test_the_weights_do_not_need_the_sliders():
    """One way only: the sliders show what the weights' module makes."""
    imported = {node.module for node in ast.walk(ast.parse(inspect.getsource(weights)))
                if isinstance(node, ast.ImportFrom)}
    assert "course.texts" in imported
    assert not [name for name in imported if name.startswith("course.sliders")]


# --- The texts and the model that is shown first --------------------------------------------------


def test_only_training_texts_are_read():
    read = set(sentences("train"))
    for split in ("dev", "test"):
        assert not read & {review.text for review in load_reviews(split=split)}
        assert not read & {" ".join(s.words) for s in load_conll(split=split)}
        assert not read & {q.question for q in load_squad(split=split)[0]}


def test_the_model_shown_first_has_learned_something():
    assert MASKED_WORDS.stat().st_size < 1_500_000
    model = masked_words()
    dev = model.prepare(sentences("dev"))
    train = model.prepare(sentences("train"))
    by_frequency, _ = frequency_loss(model, train, dev)
    assert model.score(dev)["loss"] < by_frequency - 0.5
    words = {word for word, _ in model.fill("It was a [MASK] hotel.", 5)[0]}
    assert words & {"good", "great", "lovely", "wonderful", "excellent", "pleasant", "bad", "awful"}


def test_untrained_guesses_blindly():
    model = MaskedWordModel(untrained(), masked_words().tokenizer)
    dev = model.prepare(sentences("dev")[:64])
    assert abs(model.score(dev)["loss"] - np.log(3000)) < 1.0
