"""Lesson 04: what its text and sliders claim is so."""

import re

import course
import numpy as np
import pytest
from course.exercises import get
from course.sliders import lesson04 as play
from course.texts import load_tokenizer

from solutions import encoder, layer_order
from solutions.encoder import EncoderConfig, gelu, layer_norm, num_parameters


def test_every_word_of_the_experiment_is_one_token():
    for word in range(-1, len(play.WORDS)):
        tokens = play.tokens_with(word)
        assert load_tokenizer().encode(" ".join(tokens[1:-1])).tokens == [
            t if t.startswith("[") else t.lower() for t in tokens]


@pytest.mark.parametrize("word", range(6))
def test_a_causal_encoder_hides_what_is_to_the_right_exactly(word):
    far = play.moved(word, causal=True)
    changed = word + 1
    assert (far[:, :changed] == 0).all()  # to the last bit, at every depth
    assert (far[1:, changed:] > 0).all()
    assert (far[0, changed + 1:] == 0).all()  # at the embeddings, nobody else notices
    both = play.moved(word)
    assert (both[1:] > 0).all()
    assert (np.delete(both[0], changed) == 0).all()


def test_the_two_encoders_share_their_weights():
    one, other = play.random_encoder(), play.random_encoder(causal=True)
    assert other.config.causal and not one.config.causal
    for name, array in one.params.items():
        np.testing.assert_array_equal(array, other.params[name])


def test_said_twice_the_second_google_hears_california():
    causal = play.random_encoder(causal=True)
    twice, changed = play.WORDS * 2, [*play.WORDS[:5], "London", *play.WORDS]
    gap = np.abs(play.states_of(causal, " ".join(twice)) - play.states_of(causal,
                                                                          " ".join(changed)))
    assert (gap[:, 4] == 0).all() and gap[-1, 10].max() > 0.01


def test_vectors_that_have_nothing_to_do_with_each_other_are_root_two_apart():
    some = layer_norm(np.random.default_rng(0).normal(size=(400, 32)), np.ones(32), np.zeros(32))
    apart = [layer_order.root_mean_square(a - b) for a, b in zip(some[::2], some[1::2],
                                                                 strict=True)]
    assert np.mean(apart) == pytest.approx(2**0.5, abs=0.02)


def test_pictures_say_zero_only_where_it_is_zero():
    shown = play.who_notices(5, 6)
    assert "causal: [CLS] 0, John 0, works 0, at 0, Google 0, in 0," in shown.alt
    assert "Google moves by 0<" in shown.body
    shown = play.what_reaches_google(6).facts
    assert (shown["causal"][4:] == 0).all() and (shown["causal"][:4] > 0).all()
    assert (shown["bidirectional"] > 0).all()


def test_bert_base_by_part():
    config = EncoderConfig(30522, 768, 12, 12, 3072, 512)
    counts = get("count_parameters").reference(config)
    assert sum(counts.values()) == 109_482_240 == num_parameters(config, pooler=True)
    assert sum(v for k, v in counts.items() if k != "pooler") == sum(
        v for _, v in encoder.parameter_table(config))


def test_values_of_layer_norm_and_gelu():
    one, zero = np.ones(4), np.zeros(4)
    np.testing.assert_allclose(layer_norm(np.array([1.0, 2, 3, 4]), one, zero),
                               [-1.341641, -0.447214, 0.447214, 1.341641], atol=1e-6)
    pair = np.ones(2), np.zeros(2)
    np.testing.assert_allclose(layer_norm(np.array([0.01, 0.03]), *pair, eps=1e-5),
                               [-0.953463, 0.953463], atol=1e-6)
    np.testing.assert_allclose(layer_norm(np.array([0.001, 0.003]), *pair), [-1, 1], atol=1e-4)
    np.testing.assert_allclose(gelu(np.array([1.0, -1.0])), [0.8413447, -0.1586553], atol=1e-7)


def test_the_slider_of_layer_norm_shows_what_eps_does():
    small = {eps: play.normalize_four(0, -3, eps).facts["after"][3] for eps in (1e-12, 1e-5)}
    assert small[1e-12] == pytest.approx(1.3416, abs=1e-4)
    assert small[1e-5] < 0.5
    for shift, power in ((10, 0), (0, 3)):
        np.testing.assert_allclose(play.normalize_four(shift, power, 1e-12).facts["after"],
                                   play.normalize_four(0, 0, 1e-12).facts["after"], atol=1e-9)


def test_half_of_all_numbers_are_in_the_token_table_at_a_width_of_the_slider():
    shares = {w: play.where_parameters_are(w, 12).facts["shares"][0] for w in range(64, 1537, 64)}
    assert max(shares.values()) > 0.5 > min(shares.values())
    assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_a_word_is_the_same_at_the_embeddings_and_another_above():
    for one, other in play.TEXTS.values():
        a, b = (load_tokenizer().encode(text).tokens for text in (one, other))
        assert len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) == 1
    for trained in (False, True):
        drawn = play.through_the_layers(trained, play.TEXTS["very → not"]).facts["matrix"]
        assert (drawn[0] > 0).sum() == 1 and (drawn[1:] > 0).all()


def test_the_trained_encoder_cares_about_not_and_the_random_one_about_anything():
    def end(trained, name):
        first = play.TEXTS[name][0]
        at = load_tokenizer().encode(first).tokens.index("good")
        return play.through_the_layers(trained, play.TEXTS[name]).facts["matrix"][-1, at]

    assert end(True, "very → not") > 1 > 0.15 > end(True, "soup → waiter")
    assert 0.3 < end(False, "soup → waiter") / end(False, "very → not") < 3


RIGHT = get("dropout").reference


@pytest.mark.parametrize(("wrong", "said"), [
    (lambda x, rate, rng=None: x if rng is None else x * (rng.random(x.shape) >= rate),
     "would keep the mean"),
    (lambda x, rate, rng=None: x if rng is None else x * (rng.random(x.shape) >= rate / 2) / (
        1 - rate), "expected about 10%"),
    (lambda x, rate, rng=None: x if rng is None else x * (
        rng.random((*x.shape[:-1], 1)) >= rate) / (1 - rate), "drop together"),
    (lambda x, rate, rng=None: x if rng is None else x * (rng.random(x.shape) >= rate) * (
        1 + rate), "times what they were"),
    (lambda x, rate, rng=None: x * 0 if rng is None else RIGHT(x, rate, rng), "must equal x"),
    (lambda x, rate, rng=None: x[:1], "expected an array of the shape of x"),
])  # fmt: skip
def test_dropout_says_what_is_wrong_however_it_draws(wrong, said):
    """Another way to draw matches no named mistake; the comparison finds the fault itself."""
    report = course.check("dropout", wrong)
    assert report.status == "wrong"
    assert said in report.message


def test_dropout_takes_any_fair_draw():
    def by_choice(x, rate, rng=None):
        if rng is None:
            return x
        return x * rng.choice([0.0, 1 / (1 - rate)], size=x.shape, p=[rate, 1 - rate])

    assert course.check("dropout", by_choice).status == "passed"


def test_dropout_must_draw_from_the_rng_it_is_given():
    def elsewhere(x, rate, rng=None):
        return x if rng is None else RIGHT(x, rate, np.random.default_rng())

    report = course.check("dropout", elsewhere)
    assert report.status == "wrong"
    assert "draw from `rng`" in report.message


def test_the_mean_over_many_draws_shows_what_the_text_says_at_every_rate():
    for rate in np.arange(0, 0.95, 0.1):
        assert f"{play.drop_some(float(rate), 0).facts['mean']:.2f}" in ("0.99", "1.00", "1.01")
    ends = [play.drop_some(0.8, draw).facts["after"].mean() for draw in range(10)]
    assert np.ptp(ends) > 0.2  # a single draw moves


def test_layers_have_no_ticks_at_halves():
    for layers in (1, 2, 3, 24):
        body = play.orders_by_depth(layers, 1.0).body
        under = re.findall(r'text-anchor="middle"[^>]*>([\d.]+)<', body)
        assert len(under) >= 4 and all(one.isdigit() for one in under)


@pytest.mark.parametrize(("name", "wrong", "mistake"), [
    ("layer_norm", lambda x, gamma, beta, eps=1e-12: gamma * (
        x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + eps) + beta, "eps_outside"),
    ("layer_norm", lambda x, gamma, beta, eps=1e-12: gamma * (x - x.mean(-1, keepdims=True))
     / np.sqrt(x.var(-1, keepdims=True, ddof=1) + eps) + beta, "sample_variance"),
    ("feed_forward", lambda x, w1, b1, w2, b2: gelu(x @ w1.T + b1) @ w2.T + b2, "turned"),
    ("add_and_norm", lambda x, change, gamma, beta: x + layer_norm(change, gamma, beta), "pre_ln"),
    ("encoder_layer", lambda x, params, num_heads, mask=None: layer_order.forward(
        x, [params], num_heads, "pre", mask=mask)[0][1], "pre_ln"),
])  # fmt: skip
def test_popular_wrong_forms_are_named(name, wrong, mistake):
    report = course.check(name, wrong)
    assert (report.status, report.mistake) == ("wrong", mistake)
