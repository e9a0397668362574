import dataclasses
import json
import math

import numpy as np
import pytest
from gradients import assert_gradient

from solutions import _kernels
from solutions.attention import (
    causal_mask,
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    softmax,
    split_heads,
)
from solutions.encoder import (
    Encoder,
    EncoderConfig,
    dropout,
    erf,
    feed_forward,
    gelu,
    gelu_backward,
    init_params,
    layer_norm,
    layer_norm_backward,
    linear,
    linear_backward,
    num_parameters,
    parameter_shapes,
    parameter_table,
)
from solutions.training import AdamW, cross_entropy


def normal(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# --- Linear ---------------------------------------------------------------------------------------


def test_linear_stores_its_weight_in_by_out():
    checkpoint = np.array([[1.0, 2.0], [3.0, 4.0]])  # (out, in), as PyTorch keeps it
    x = np.array([[1.0, 0.0]])
    np.testing.assert_array_equal(linear(x, checkpoint.T, np.zeros(2)), [[1, 3]])


def test_linear_gradients():
    x, weight, bias = normal(2, 3, 4), normal(4, 5, seed=1), normal(5, seed=2)
    upstream = normal(2, 3, 5, seed=3)
    grads = linear_backward(upstream, x, weight)
    for grad, array in zip(grads, (x, weight, bias), strict=True):
        assert_gradient(grad, lambda: linear(x, weight, bias), array, upstream)


# --- Layer normalization --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "eps", "expected"),
    [
        ([1, 2, 3, 4], 1e-12, [-1.341641, -0.447214, 0.447214, 1.341641]),
        ([0.01, 0.03], 1e-5, [-0.953463, 0.953463]),
        ([0.001, 0.003], 1e-12, [-1, 1]),
        ([0.001, 0.003], 1e-5, [-0.301511, 0.301511]),
    ],
)
def test_layer_norm_by_hand(row, eps, expected):
    x = np.array([row], dtype=np.float64)
    one, zero = np.ones(x.shape[1]), np.zeros(x.shape[1])
    np.testing.assert_allclose(layer_norm(x, one, zero, eps)[0], expected, atol=1e-6)
    fast, _ = _kernels.layer_norm(x.copy(), one, zero, eps, keep=False)
    np.testing.assert_allclose(fast[0], expected, atol=1e-6)


def test_layer_norm_scales_and_shifts_each_feature():
    x, gamma, beta = normal(2, 3, 4), normal(4, seed=1), normal(4, seed=2)
    plain = layer_norm(x, np.ones(4), np.zeros(4))
    np.testing.assert_allclose(layer_norm(x, gamma, beta), plain * gamma + beta)


@pytest.mark.parametrize("eps", [1e-12, 0.1])
def test_layer_norm_gradients(eps):
    x, gamma, beta = normal(2, 3, 5), normal(5, seed=1), normal(5, seed=2)
    upstream = normal(2, 3, 5, seed=3)
    grads = layer_norm_backward(upstream, x, gamma, eps)
    for grad, array in zip(grads, (x, gamma, beta), strict=True):
        assert_gradient(grad, lambda: layer_norm(x, gamma, beta, eps), array, upstream)


# --- GELU -----------------------------------------------------------------------------------------


def exact_gelu(x):
    return np.array([v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x.astype(float).ravel()])


def test_gelu_is_the_exact_one():
    np.testing.assert_allclose(gelu(np.array([1.0, -1, 0])), [0.8413447, -0.1586553, 0], atol=1e-7)
    x = np.array([2.699])
    tanh_form = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(np.abs(gelu(x) - tanh_form), 4.732e-4, atol=1e-7)


def test_gelu_in_float64_to_many_digits():
    x = np.linspace(-8, 8, 1601)
    np.testing.assert_allclose(gelu(x), exact_gelu(x), atol=1e-14)


def test_erf_in_float64_to_the_last_digits():
    rng = np.random.default_rng(0)
    points = np.arange(-7 * 64, 7 * 64 + 1) / 64  # the table's own, and the middles between them
    small = rng.normal(size=20000) * 10.0 ** rng.integers(-307, 2, 20000)
    x = np.concatenate([np.linspace(-7, 7, 50001), points, points + 1 / 128, small])
    exact = np.array([math.erf(v) for v in x.tolist()])
    np.testing.assert_allclose(erf(x), exact, atol=0, rtol=6e-16)
    assert np.signbit(erf(np.array([-0.0])))[0]
    assert np.isnan(erf(np.array([np.nan])))[0]
    assert erf(np.float64(0.5)) == pytest.approx(math.erf(0.5), rel=1e-15)


def test_erf_does_not_go_through_its_numbers_one_by_one(monkeypatch):
    monkeypatch.setattr(math, "erf", None)
    assert gelu(np.array([[1.0, -1.0]])) == pytest.approx(np.array([[0.8413447, -0.1586553]]))


def test_gelu_in_float32_to_its_own_precision():
    x = np.linspace(-10, 10, 20001).astype(np.float32)
    np.testing.assert_allclose(gelu(x), exact_gelu(x), atol=3e-7, rtol=1.5e-7)
    exact_erf = np.array([math.erf(v) for v in x.tolist()])
    np.testing.assert_allclose(erf(x), exact_erf, atol=3e-7)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_far_out(dtype):
    far = np.array([1e30, -1e30, 1e5, -1e5, np.inf], dtype=dtype)
    np.testing.assert_array_equal(erf(far), [1, -1, 1, -1, 1])
    np.testing.assert_array_equal(gelu(far[:4]), [far[0], 0, far[2], 0])


def test_gelu_gradient():
    x, upstream = normal(3, 4), normal(3, 4, seed=1)
    assert_gradient(gelu_backward(upstream, x), lambda: gelu(x), x, upstream)


def test_feed_forward_is_linear_gelu_linear_for_each_token():
    x = normal(2, 3, 4)
    w1, b1, w2, b2 = normal(4, 6, seed=1), normal(6, seed=2), normal(6, 4, seed=3), normal(4)
    for token in np.ndindex(2, 3):
        inner = exact_gelu(x[token] @ w1 + b1)
        np.testing.assert_allclose(feed_forward(x, w1, b1, w2, b2)[token], inner @ w2 + b2)


# --- Dropout --------------------------------------------------------------------------------------


def test_dropout_keeps_the_mean():
    x = np.full((300, 300), 2.0)
    thinned, scale = dropout(x, 0.25, np.random.default_rng(0))
    assert abs((thinned == 0).mean() - 0.25) < 0.01
    np.testing.assert_allclose(np.unique(scale), [0, 4 / 3])
    np.testing.assert_array_equal(thinned, x * scale)
    assert abs(thinned.mean() - 2) < 0.02


# --- The inner loops are the readable functions, faster -------------------------------------------

SAME = {np.float32: {"rtol": 2e-5, "atol": 5e-6}, np.float64: {"rtol": 1e-12, "atol": 1e-13}}
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@both_dtypes
def test_fast_linear(dtype):
    x, weight, bias = normal(7, 5, dtype=dtype), normal(5, 3, dtype=dtype), normal(3, dtype=dtype)
    upstream = normal(7, 3, seed=1, dtype=dtype)
    np.testing.assert_allclose(
        _kernels.linear(x, weight, bias), linear(x, weight, bias), **SAME[dtype]
    )
    fast, plain = (f(upstream, x, weight) for f in (_kernels.linear_backward, linear_backward))
    for one, other in zip(fast, plain, strict=True):
        np.testing.assert_allclose(one, other, **SAME[dtype])
        assert one.dtype == dtype


@both_dtypes
@pytest.mark.parametrize("eps", [1e-12, 0.1])
def test_fast_layer_norm(dtype, eps):
    x = normal(7, 5, dtype=dtype) * 3 + 1
    gamma, beta = normal(5, seed=1, dtype=dtype), normal(5, seed=2, dtype=dtype)
    upstream = normal(7, 5, seed=3, dtype=dtype)
    expected = layer_norm(x, gamma, beta, eps)
    out, cache = _kernels.layer_norm(x.copy(), gamma, beta, eps, keep=True)
    np.testing.assert_allclose(out, expected, **SAME[dtype])
    np.testing.assert_allclose(
        _kernels.layer_norm(x.copy(), gamma, beta, eps, keep=False)[0], expected, **SAME[dtype]
    )
    fast = _kernels.layer_norm_backward(upstream, cache, gamma)
    for one, other in zip(fast, layer_norm_backward(upstream, x, gamma, eps), strict=True):
        np.testing.assert_allclose(one, other, **SAME[dtype])
        assert one.dtype == dtype


@both_dtypes
@pytest.mark.parametrize("block", [4, 2**17])
def test_fast_gelu(dtype, block, monkeypatch):
    monkeypatch.setattr(_kernels, "_BLOCK", block)
    x = normal(7, 3, dtype=dtype) * 3
    upstream = normal(7, 3, seed=1, dtype=dtype)
    out, slope = _kernels.gelu(x.copy(), keep=True)
    np.testing.assert_allclose(out, gelu(x), **SAME[dtype])
    np.testing.assert_allclose(upstream * slope, gelu_backward(upstream, x), **SAME[dtype])
    np.testing.assert_array_equal(_kernels.gelu(x.copy(), keep=False)[0], out)
    assert out.dtype == slope.dtype == dtype


@pytest.mark.filterwarnings("error::RuntimeWarning")
@both_dtypes
@pytest.mark.parametrize("size", [1, 100, 1000])  # beyond 60 the rows are shifted first
def test_fast_softmax(dtype, size):
    scores = normal(2, 3, 4, 5, dtype=dtype) * size
    mask = np.random.default_rng(1).random((2, 1, 4, 5)) < 0.6
    mask[0, 0, 1] = False
    np.testing.assert_allclose(
        _kernels.softmax(scores.copy(), None), softmax(scores), **SAME[dtype]
    )
    fast = _kernels.softmax(scores.copy(), mask.astype(dtype))
    np.testing.assert_allclose(fast, softmax(np.where(mask, scores, -np.inf)), **SAME[dtype])
    assert (fast[0, :, 1] == 0).all()
    assert fast.dtype == dtype


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_fast_softmax_lets_no_masked_score_through():
    scores = np.array([[1.0, 2.0, np.nan], [1.0, 2.0, np.inf], [1.0, 2.0, 3e38]], dtype=np.float32)
    weights = _kernels.softmax(scores, np.array([[1, 1, 0]], dtype=np.float32))
    np.testing.assert_allclose(weights, [[0.268941, 0.731059, 0]] * 3, atol=1e-6)


@both_dtypes
@pytest.mark.parametrize("masked", [False, True])
def test_fast_attention(dtype, masked):
    batch, length, heads, d = 2, 3, 2, 8
    qkv = normal(batch * length, 3 * d, dtype=dtype)
    upstream = normal(batch * length, d, seed=1, dtype=dtype)
    mask = padding_mask(np.array([[0, 1, 1], [1, 1, 0]])) & causal_mask(length) if masked else None

    def split(x):
        return split_heads(np.ascontiguousarray(x).reshape(batch, length, d), heads)

    parts = [split(part) for part in np.split(qkv, 3, axis=1)]
    output, weights = scaled_dot_product_attention(*parts, mask)
    visible = None if mask is None else mask.astype(dtype)
    fast, fast_weights, cache = _kernels.attention(qkv, batch, heads, visible, None)
    np.testing.assert_allclose(fast, merge_heads(output).reshape(-1, d), **SAME[dtype])
    np.testing.assert_allclose(fast_weights, weights, **SAME[dtype])

    grads = scaled_dot_product_attention_backward(split(upstream), *parts, weights)
    expected = np.concatenate([merge_heads(grad).reshape(-1, d) for grad in grads], axis=1)
    grad_qkv = _kernels.attention_backward(upstream, cache)
    np.testing.assert_allclose(grad_qkv, expected, **SAME[dtype])
    assert fast.dtype == grad_qkv.dtype == dtype


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100])
def test_fast_sums_by_id(count):
    ids = np.random.default_rng(count).integers(count, size=60)
    rows = normal(60, 4)
    expected = np.zeros((count, 4))
    np.add.at(expected, ids, rows)
    np.testing.assert_allclose(_kernels.sum_by_id(ids, rows, count), expected, atol=1e-13)


def test_a_repeated_id_adds_up():
    table = _kernels.sum_by_id(np.array([3, 3]), np.ones((2, 1)), 5)
    np.testing.assert_array_equal(table[:, 0], [0, 0, 0, 2, 0])


# --- Configuration and parameters -----------------------------------------------------------------

BERT_BASE = EncoderConfig(30522, 768, 12, 12, 3072, 512)


def test_bert_base_has_as_many_parameters_as_bert_base():
    assert num_parameters(BERT_BASE) == 108_891_648
    assert num_parameters(BERT_BASE, pooler=True) == 109_482_240
    table = dict(parameter_table(BERT_BASE))
    assert sum(table.values()) == 108_891_648
    assert table["token embeddings"] == 30522 * 768
    assert table["attention"] == 12 * 4 * (768 * 768 + 768)
    assert table["feed-forward"] == 12 * (2 * 768 * 3072 + 3072 + 768)
    assert table["layer norms"] == (1 + 2 * 12) * 2 * 768


def config_of(**changes):
    sizes = {"vocab_size": 11, "d_model": 6, "num_layers": 2, "num_heads": 2, "d_ff": 5}
    return EncoderConfig(**{**sizes, "max_length": 7, **changes})


def test_init_is_bert_s():
    config = EncoderConfig(500, 64, 2, 4, 128, 24)
    params = init_params(config, seed=0)
    assert {name: array.shape for name, array in params.items()} == parameter_shapes(config)
    assert {array.dtype for array in params.values()} == {np.dtype(np.float32)}
    for name, array in params.items():
        if name.endswith((".beta", ".bias")):
            assert (array == 0).all()
        elif name.endswith(".gamma"):
            assert (array == 1).all()
        else:
            assert abs(array.mean()) < 0.005
            assert abs(array.std() - 0.02) < 0.002
    again = init_params(config, seed=0)
    assert all((again[name] == params[name]).all() for name in params)
    assert (init_params(config, seed=1)["embeddings.token"] != params["embeddings.token"]).any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vocab_size": 0}, "vocab_size: expected a whole number of at least 1, got 0"),
        ({"num_layers": 1.5}, "num_layers: expected a whole number"),
        ({"d_model": 7}, "2 heads can share equally, got 7"),
        ({"dropout": 1.0}, "dropout: expected a number from 0 to below 1, got 1.0"),
        ({"attention_dropout": -0.1}, "attention_dropout"),
        ({"eps": 0}, "eps: expected a number above 0"),
        ({"causal": 1}, "causal: expected True or False, got 1"),
        ({"positions": None}, "positions: expected True or False, got None"),
    ],
)
def test_a_configuration_that_makes_no_encoder_is_refused(changes, words):
    with pytest.raises(ValueError, match="EncoderConfig") as caught:
        config_of(**changes)
    assert words in str(caught.value)


# --- The encoder ----------------------------------------------------------------------------------


def encoder_of(dtype=np.float64, **changes):
    """A small encoder whose every parameter matters: none is 0, gamma is not 1."""
    config = config_of(**changes)
    rng = np.random.default_rng(7)
    params = {
        name: (array + rng.normal(0, 0.4, array.shape)).astype(dtype)
        for name, array in init_params(config, 0, dtype).items()
    }
    return Encoder(config, params)


IDS = np.array([[1, 4, 4, 9, 2], [3, 3, 10, 0, 0], [0, 5, 1, 4, 2]])
REAL = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 1, 1, 1]])  # the last is padded left
SEGMENTS = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0], [0, 0, 0, 0, 1]])


def readable_forward(encoder, ids, real, segments, rng=None):
    """The encoder as the lessons put it together, from the functions that learners write."""
    params, config = encoder.params, encoder.config

    def drop(x, rate):
        return x if rng is None or rate == 0 else dropout(x, rate, rng)[0]

    def norm(name, x):
        gamma, beta = params[name + ".norm.gamma"], params[name + ".norm.beta"]
        return layer_norm(x, gamma, beta, config.eps)

    def weights_of(name):
        return params[name + ".weight"], params[name + ".bias"]

    x = params["embeddings.token"][ids] + params["embeddings.segment"][segments]
    if config.positions:
        x = x + params["embeddings.position"][: ids.shape[1]]
    states, attention = [drop(norm("embeddings", x), config.dropout)], []
    mask = padding_mask(real)
    if config.causal:
        mask = mask & causal_mask(ids.shape[1])
    for i in range(config.num_layers):
        name, x = f"layers.{i}.", states[-1]
        qkv = linear(x, *weights_of(name + "attention.qkv"))
        heads = [split_heads(part, config.num_heads) for part in np.split(qkv, 3, axis=-1)]
        _, weights = scaled_dot_product_attention(*heads, mask)
        context = merge_heads(drop(weights, config.attention_dropout) @ heads[2])
        attended = linear(context, *weights_of(name + "attention.output"))
        x = norm(name + "attention", x + drop(attended, config.dropout))
        inner, outer = (weights_of(name + f"feed_forward.{part}") for part in ("inner", "output"))
        fed = drop(feed_forward(x, *inner, *outer), config.dropout)
        states.append(norm(name + "feed_forward", x + fed))
        attention.append(weights)
    return states, attention


@pytest.mark.parametrize("changes", [{}, {"causal": True}, {"positions": False}])
def test_the_encoder_is_made_of_the_readable_parts(changes):
    encoder = encoder_of(**changes)
    states, attention = readable_forward(encoder, IDS, REAL, SEGMENTS)
    found_states, found_attention = encoder.layers_and_attention(IDS, REAL, SEGMENTS)
    assert len(found_states) == 3
    assert len(found_attention) == 2
    for found, expected in zip(found_states + found_attention, states + attention, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    quick = encoder(IDS, REAL, SEGMENTS)
    real = REAL.astype(bool)
    np.testing.assert_allclose(quick[real], found_states[-1][real], rtol=1e-10, atol=1e-12)
    assert not quick[~real].any()
    np.testing.assert_array_equal(
        encoder.forward(IDS, REAL, SEGMENTS, keep=True)[0], found_states[-1]
    )


def test_post_norm_by_hand():
    """x = [1, 3] and a step that returns x: LN(x + x) = [-1, 1]; pre-LN would give [0, 4]."""
    x = np.array([[1.0, 3.0]])
    np.testing.assert_allclose(layer_norm(x + x, np.ones(2), np.zeros(2)), [[-1, 1]])
    encoder = encoder_of()
    last = encoder(IDS)
    gamma, beta = (encoder.params[f"layers.1.feed_forward.norm.{n}"] for n in ("gamma", "beta"))
    np.testing.assert_allclose(((last - beta) / gamma).mean(axis=-1), 0, atol=1e-12)


@pytest.mark.parametrize("rates", [(0.3, 0.0), (0.0, 0.4), (0.3, 0.4)])
def test_dropout_falls_where_bert_has_it(rates):
    encoder = encoder_of(dropout=rates[0], attention_dropout=rates[1])
    states, _ = readable_forward(encoder, IDS, REAL, SEGMENTS, np.random.default_rng(3))
    found, _ = encoder.forward(IDS, REAL, SEGMENTS, np.random.default_rng(3))
    np.testing.assert_allclose(found, states[-1], rtol=1e-10, atol=1e-12)


def test_evaluation_is_deterministic_and_training_is_not():
    encoder = encoder_of(dropout=0.3)
    np.testing.assert_array_equal(encoder(IDS), encoder(IDS))
    one, two, again = (
        encoder.forward(IDS, rng=np.random.default_rng(seed))[0] for seed in (1, 2, 1)
    )
    assert (one != two).any()
    np.testing.assert_array_equal(one, again)


def test_padding_changes_nothing_for_real_tokens():
    encoder = encoder_of()
    alone = encoder(IDS[1:2, :3], REAL[1:2, :3], SEGMENTS[1:2, :3])
    padded = encoder(IDS, REAL, SEGMENTS)
    np.testing.assert_allclose(padded[1, :3], alone[0], rtol=1e-9, atol=1e-12)
    other = IDS.copy()
    other[1, 3:] = 8
    np.testing.assert_array_equal(encoder(other, REAL, SEGMENTS)[1, :3], padded[1, :3])


def test_no_mask_is_a_mask_of_ones():
    encoder = encoder_of()
    np.testing.assert_array_equal(encoder(IDS), encoder(IDS, np.ones_like(IDS)))
    np.testing.assert_array_equal(encoder(IDS), encoder(IDS, np.ones(IDS.shape, dtype=bool)))
    np.testing.assert_array_equal(encoder(IDS), encoder(IDS, None, np.zeros_like(IDS)))


def test_a_causal_encoder_hears_nothing_from_the_right():
    other = IDS.copy()
    other[:, 3] = 7
    causal = encoder_of(causal=True)
    np.testing.assert_array_equal(causal(other)[:, :3], causal(IDS)[:, :3])
    assert (causal(other)[:, 3:] != causal(IDS)[:, 3:]).any()
    both_ways = encoder_of()
    assert (both_ways(other)[:, :3] != both_ways(IDS)[:, :3]).any(axis=-1).all()


def test_without_positions_word_order_is_lost():
    encoder = encoder_of(positions=False)
    order = np.array([3, 0, 4, 1, 2])
    np.testing.assert_allclose(encoder(IDS[:, order]), encoder(IDS)[:, order], atol=1e-12)
    assert "embeddings.position" not in encoder.params
    assert encoder(np.ones((1, 20), dtype=int)).shape == (1, 20, 6)  # and any length goes


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dropout_on", [False, True])
def test_every_gradient(causal, dropout_on):
    """With repeated ids, padding on both sides and, when causal, an empty row."""
    rates = {"dropout": 0.2, "attention_dropout": 0.3}
    encoder = encoder_of(causal=causal, num_layers=2, **rates)
    upstream = normal(*IDS.shape, 6, seed=4)

    def rng():
        return np.random.default_rng(5) if dropout_on else None

    _, cache = encoder.forward(IDS, REAL, SEGMENTS, rng=rng(), keep=True)
    grads = encoder.backward(upstream, cache)
    assert list(grads) == list(encoder.params)
    for name, array in encoder.params.items():
        assert_gradient(
            grads[name],
            lambda: encoder.forward(IDS, REAL, SEGMENTS, rng=rng())[0],
            array,
            upstream,
            name,
        )


def test_gradients_without_segments_and_positions():
    encoder = encoder_of(positions=False, num_layers=1)
    upstream = normal(*IDS.shape, 6, seed=4)
    _, cache = encoder.forward(IDS, keep=True)
    grads = encoder.backward(upstream, cache)
    for name in ("embeddings.token", "embeddings.segment"):
        assert_gradient(grads[name], lambda: encoder(IDS), encoder.params[name], upstream, name)


def test_the_way_back_can_be_gone_twice():
    encoder = encoder_of()
    upstream = normal(*IDS.shape, 6)
    _, cache = encoder.forward(IDS, REAL, keep=True)
    first = encoder.backward(upstream, cache)
    encoder.forward(IDS[:2], keep=True)
    second = encoder.backward(upstream, cache)
    for name, grad in first.items():
        np.testing.assert_array_equal(grad, second[name])


def test_the_top_layers_alone():
    encoder = encoder_of()
    states, _ = encoder.layers_and_attention(IDS, REAL)
    upstream = normal(*IDS.shape, 6)
    whole, cache = encoder.forward(IDS, REAL, keep=True)
    for layer in (0, 1, 2):
        below = encoder.forward_to(layer, IDS, REAL)
        np.testing.assert_array_equal(below, states[layer])
        top, top_cache = encoder.forward_from(layer, below, REAL, keep=True)
        np.testing.assert_array_equal(top, whole)
        grads = encoder.backward(upstream, top_cache)
        assert len(grads) == 12 * (2 - layer)
        for name, grad in grads.items():
            np.testing.assert_array_equal(grad, encoder.backward(upstream, cache)[name])


def test_float32_stays_float32_and_agrees_with_float64():
    wide, narrow = encoder_of(), encoder_of(np.float32)
    upstream = normal(*IDS.shape, 6)
    results = {}
    for encoder, grad in ((wide, upstream), (narrow, upstream.astype(np.float32))):
        hidden, cache = encoder.forward(IDS, REAL, SEGMENTS, np.random.default_rng(0), keep=True)
        results[encoder] = {"hidden": hidden, **encoder.backward(grad, cache)}
    for name, array in results[narrow].items():
        assert array.dtype == np.float32, name
        np.testing.assert_allclose(array, results[wide][name], rtol=1e-3, atol=2e-4, err_msg=name)


def test_arguments_stay_as_they_were():
    params = init_params(config_of(), 0)
    encoder = Encoder(config_of(), params)
    encoder.params["embeddings.token"] += 1
    assert (params["embeddings.token"] != encoder.params["embeddings.token"]).any()

    upstream = normal(*IDS.shape, 6, dtype=np.float32)
    given = (IDS.copy(), REAL.copy(), SEGMENTS.copy(), upstream.copy())
    before = {name: array.copy() for name, array in encoder.params.items()}
    _, cache = encoder.forward(*given[:3], keep=True)
    encoder.backward(given[3], cache)
    states, _ = encoder.layers_and_attention(*given[:3])
    kept = states[1].copy()
    encoder.forward_from(1, states[1])
    for array, copy in zip((*given, states[1]), (IDS, REAL, SEGMENTS, upstream, kept), strict=True):
        np.testing.assert_array_equal(array, copy)
    for name, array in encoder.params.items():
        np.testing.assert_array_equal(array, before[name])


def test_large_scores_do_not_overflow():
    encoder = encoder_of(np.float32)
    for i in range(2):
        encoder.params[f"layers.{i}.attention.qkv.weight"] *= 200
    hidden, cache = encoder.forward(IDS, REAL, keep=True)
    grads = encoder.backward(hidden, cache)
    assert np.isfinite(hidden).all()
    assert all(np.isfinite(grad).all() for grad in grads.values())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda e: e([[1, 2]]), "input_ids: expected a NumPy array of integers, got a list"),
        (lambda e: e(np.array([[1, 11]])), "ids from 0 to 10, got 11"),
        (lambda e: e(np.array([[1, -1]])), "ids from 0 to 10, got -1"),
        (lambda e: e(np.array([1, 2])), "(batch, length), got int64 of shape (2,)"),
        (lambda e: e(np.zeros((0, 4), dtype=int)), "at least one sentence and one token"),
        (lambda e: e(np.zeros((2, 0), dtype=int)), "at least one sentence and one token"),
        (lambda e: e(np.zeros((1, 8), dtype=int)), "at most 7 tokens, got 8"),
        (lambda e: e(IDS, REAL[:, :4]), "attention_mask: expected shape (3, 5)"),
        (lambda e: e(IDS, REAL * 2), "only 0 and 1"),
        (lambda e: e(IDS, REAL * 1.0), "got float64"),
        (lambda e: e(IDS, None, SEGMENTS + 1), "token_type_ids: expected ids from 0 to 1, got 2"),
        (lambda e: e(IDS, None, SEGMENTS[:2]), "token_type_ids: expected integers of shape (3, 5)"),
        (lambda e: e.forward_from(3, np.ones((1, 2, 6))), "layer: expected a whole number from 0"),
        (lambda e: e.forward_to(3, IDS), "layer: expected a whole number from 0"),
        (lambda e: e.forward_from(0, np.ones((1, 2, 5))), "hidden_states: expected floats"),
        (
            lambda e: e.backward(np.ones((3, 6)), e.forward(IDS, keep=True)[1]),
            "grad_hidden: expected floats of shape (batch, length, 6)",
        ),
    ],
)
def test_wrong_input_is_said(call, words):
    with pytest.raises(ValueError, match="expected") as caught:
        call(encoder_of())
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: linear(np.ones((2, 3)), np.ones((4, 5)), np.ones(5)), "last axis of 4"),
        (lambda: linear(np.ones((2, 4)), np.ones((4, 5)), np.ones(4)), "shape (5,)"),
        (lambda: linear_backward(np.ones((2, 4)), np.ones((2, 4)), np.ones((4, 5))), "(2, 5)"),
        (lambda: layer_norm(np.ones((2, 3)), np.ones(2), np.ones(3)), "gamma"),
        (lambda: layer_norm(np.ones((2, 3)), np.ones(3), np.ones(3), -1.0), "above 0"),
        (lambda: layer_norm(np.ones((2, 3), dtype=int), np.ones(3), np.ones(3)), "int64"),
        (lambda: gelu(2), "got 2"),
        (
            lambda: feed_forward(
                np.ones(3), np.ones((3, 4)), np.ones(4), np.ones((3, 3)), np.ones(3)
            ),
            "w2: expected floats of shape (4, d)",
        ),
        (lambda: dropout(np.ones(3), 1.0, np.random.default_rng(0)), "from 0 to below 1"),
    ],
)
def test_wrong_input_of_a_part_is_said(call, words):
    with pytest.raises(ValueError, match="expected") as caught:
        call()
    assert words in str(caught.value)


def test_wrong_parameters_are_said():
    params = init_params(config_of(), 0)
    with pytest.raises(ValueError, match=r"1 missing \['embeddings.token'\] and 1 unknown \['x'\]"):
        Encoder(config_of(), {**{n: a for n, a in params.items() if "token" not in n}, "x": 1})
    with pytest.raises(ValueError, match=r"embeddings.token: expected floats of shape \(11, 6\)"):
        Encoder(config_of(), {**params, "embeddings.token": params["embeddings.token"].T})
    with pytest.raises(ValueError, match=r"all float32 or all float64, got \['float32', 'float64'"):
        Encoder(config_of(), {n: a.astype(float) if a.ndim == 2 else a for n, a in params.items()})
    with pytest.raises(ValueError, match="expected float32 or float64, got float16 of shape"):
        Encoder(config_of(), {n: a.astype(np.float16) for n, a in params.items()})
    with pytest.raises(ValueError, match="expected an EncoderConfig, got a dict"):
        Encoder({}, params)


# --- On disk --------------------------------------------------------------------------------------


def test_what_is_saved_comes_back(tmp_path):
    encoder = encoder_of(np.float32, causal=True, dropout=0.25)
    encoder.save(tmp_path / "small.npz")
    again = Encoder.load(tmp_path / "small.npz")
    assert again.config == encoder.config
    np.testing.assert_array_equal(again(IDS), encoder(IDS))
    with np.load(tmp_path / "small.npz", allow_pickle=False) as file:
        assert json.loads(str(file["config"]))["causal"] is True


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "file.npz"
    path.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match=r"expected a file that Encoder.save wrote"):
        Encoder.load(path)
    np.savez(path, a=np.ones(3))
    with pytest.raises(ValueError, match=r"expected a file that Encoder.save wrote"):
        Encoder.load(path)
    np.savez(path, a=np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"expected a file that Encoder.save wrote"):
        Encoder.load(path)
    with pytest.raises(FileNotFoundError):
        Encoder.load(tmp_path / "missing.npz")


def test_a_save_that_fails_leaves_the_good_file(tmp_path, monkeypatch):
    encoder = Encoder(config_of(), init_params(config_of(), 0))
    encoder.save(tmp_path / "small.npz")
    good = (tmp_path / "small.npz").read_bytes()

    def full(file, **arrays):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        encoder.save(tmp_path / "small.npz")
    assert (tmp_path / "small.npz").read_bytes() == good
    assert list(tmp_path.iterdir()) == [tmp_path / "small.npz"]


# --- Kinds of numbers -----------------------------------------------------------------------------


def test_a_numpy_number_as_setting_neither_widens_nor_spoils_the_file(tmp_path):
    plain = config_of(dropout=0.25, attention_dropout=0.5, eps=1e-5)
    config = config_of(
        vocab_size=np.int64(plain.vocab_size), num_heads=np.uint8(plain.num_heads),
        dropout=np.float64(0.25), attention_dropout=np.float32(0.5), eps=np.float64(1e-5),
        causal=np.bool_(plain.causal),
    )  # fmt: skip
    assert config == plain
    assert [type(v) for v in dataclasses.asdict(config).values()] == [
        type(v) for v in dataclasses.asdict(plain).values()
    ]
    encoder, rng = Encoder(config, init_params(config, 0)), np.random.default_rng(0)
    hidden, cache = encoder.forward(np.array([[1, 2, 3]]), rng=rng, keep=True)
    assert hidden.dtype == np.float32
    assert all(g.dtype == np.float32 for g in encoder.backward(hidden, cache).values())
    encoder.save(tmp_path / "e.npz")
    assert Encoder.load(tmp_path / "e.npz").config == config


@pytest.mark.parametrize("number", [np.float64, np.float32, float])
def test_float32_stays_float32_with_a_number_of_any_kind(number):
    x, one = normal(2, 4).astype(np.float32), np.ones(4, np.float32)
    rng = np.random.default_rng(0)
    found = [
        layer_norm(x, one, one, number(1e-5)), layer_norm(x, one, one, eps=number(1e-5)),
        *layer_norm_backward(x, x, one, number(1e-5)), *dropout(x, number(0.5), rng),
        *dropout(x, rate=number(0.5), rng=rng),
    ]  # fmt: skip
    assert {array.dtype for array in found} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    "call",
    [
        lambda x: layer_norm(x, x[0], x[0]),
        lambda x: gelu(x),
        lambda x: linear(x, x.T, x[:, 0]),
        lambda x: dropout(x, 0.5, np.random.default_rng(0)),
        lambda x: softmax(x),
        lambda x: scaled_dot_product_attention(x, x, x),
        lambda x: cross_entropy(x, np.array([0, 1])),
        lambda x: AdamW({"w": x}),
        lambda x: erf(x[0, 0]),
    ],
)
def test_float16_is_refused_where_there_is_arithmetic(call):
    with pytest.raises(ValueError, match="expected float32 or float64, got "):
        call(np.ones((2, 4), np.float16))
    call(np.ones((2, 4), np.float32))
