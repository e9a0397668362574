"""solutions.multi_head: heads against a loop, against the encoder; attention in blocks."""

import tracemalloc

import numpy as np
import pytest

from solutions import attention, encoder, multi_head


def some_params(d, seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    params = {}
    for part in multi_head.PARTS:
        params[part + ".weight"] = (rng.normal(size=(d, d)) / d**0.5).astype(dtype)
        params[part + ".bias"] = rng.normal(size=d).astype(dtype)
    return params


def one_by_one(x, params, num_heads, mask=None):
    """Every head, query and key in plain loops."""
    batch, length, d = x.shape
    width = d // num_heads
    joined = np.zeros_like(x)
    weights = np.zeros((batch, num_heads, length, length))
    mask = np.broadcast_to(True if mask is None else mask, weights.shape)
    for b, h, i in np.ndindex(batch, num_heads, length):
        own = slice(h * width, (h + 1) * width)
        made = {p: (x[b] @ params[p + ".weight"] + params[p + ".bias"])[:, own]
                for p in ("query", "key", "value")}
        seen = [j for j in range(length) if mask[b, h, i, j]]
        powers = {j: np.exp(made["query"][i] @ made["key"][j] / width**0.5) for j in seen}
        for j in seen:
            weights[b, h, i, j] = powers[j] / sum(powers.values())
            joined[b, i, own] += weights[b, h, i, j] * made["value"][j]
    return joined @ params["output.weight"] + params["output.bias"], weights


@pytest.mark.parametrize("num_heads", [1, 2, 3, 6])
def test_equals_plain_loops(num_heads):
    x, params = np.random.default_rng(1).normal(size=(2, 4, 6)), some_params(6)
    mask = attention.causal_mask(4) & np.array([True, True, True, False])
    for m in (None, mask):
        got = multi_head.multi_head_attention(x, params, num_heads, m)
        for one, other in zip(got, one_by_one(x, params, num_heads, m), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_equals_the_attention_of_the_encoder(causal):
    config = encoder.EncoderConfig(vocab_size=11, d_model=8, num_layers=1, num_heads=4, d_ff=16,
                                   max_length=6, causal=causal)
    rng = np.random.default_rng(2)
    weights = {name: rng.normal(size=shape) for name, shape in
               encoder.parameter_shapes(config).items()}
    model = encoder.Encoder(config, weights)
    ids = rng.integers(0, 11, size=(2, 6))
    real = np.array([[1] * 6, [1, 1, 1, 1, 0, 0]])
    states, seen = model.layers_and_attention(ids, real)

    params = {"output.weight": weights["layers.0.attention.output.weight"],
              "output.bias": weights["layers.0.attention.output.bias"]}
    for kind in ("weight", "bias"):
        joined = weights[f"layers.0.attention.qkv.{kind}"]
        for part, array in zip(("query", "key", "value"), np.split(joined, 3, axis=-1),
                               strict=True):
            params[f"{part}.{kind}"] = array
    mask = attention.padding_mask(real)
    if causal:
        mask = mask & attention.causal_mask(6)
    output, mine = multi_head.multi_head_attention(states[0], params, 4, mask)
    np.testing.assert_allclose(mine, seen[0], rtol=1e-6, atol=1e-8)

    # The rest of the layer, so that the output is held to it as well.
    def norm(part, x):
        return encoder.layer_norm(x, weights[f"layers.0.{part}.norm.gamma"],
                                  weights[f"layers.0.{part}.norm.beta"])

    middle = norm("attention", states[0] + output)
    fed = encoder.feed_forward(
        middle, *(weights[f"layers.0.feed_forward.{p}"] for p in
                  ("inner.weight", "inner.bias", "output.weight", "output.bias")))
    np.testing.assert_allclose(norm("feed_forward", middle + fed), states[1], rtol=1e-5, atol=1e-6)


def test_heads_add_up_through_the_output_projection():
    x, params = np.random.default_rng(3).normal(size=(1, 3, 4)), some_params(4)
    whole, _ = multi_head.multi_head_attention(x, params, 2)
    parts = 0
    for rows in (slice(0, 2), slice(2, 4)):
        only = np.zeros((4, 4))
        only[rows] = params["output.weight"][rows]
        parts = parts + multi_head.multi_head_attention(x, params | {"output.weight": only}, 2)[0]
    np.testing.assert_allclose(parts - params["output.bias"], whole)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("block", [1, 3, 5, 7, 64])
def test_blocks_equal_the_plain_form(dtype, block):
    rng = np.random.default_rng(4)
    query, key, value = (rng.normal(size=(2, 3, n, w)).astype(dtype)
                         for n, w in ((5, 4), (7, 4), (7, 6)))
    mask = rng.random(size=(5, 7)) < 0.6
    mask[2] = False
    for m in (None, mask, mask[None, None]):
        got = multi_head.blockwise_attention(query, key, value, m, block=block)
        want, _ = attention.scaled_dot_product_attention(query, key, value, m)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)
    assert not got[:, :, 2].any()


def test_blocks_survive_large_scores():
    key = np.array([[1.0], [2.0], [3.0]])
    value = np.array([[1.0], [2.0], [4.0]])
    for sign, expected in ((1, 4.0), (-1, 1.0)):
        got = multi_head.blockwise_attention(np.array([[sign * 2000.0]]), key, value, block=1)
        assert got.item() == expected


def peak(function, *args, **kwargs):
    tracemalloc.start()
    function(*args, **kwargs)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_memory_of_blocks_grows_linearly():
    rng = np.random.default_rng(5)
    peaks = {}
    for n in (256, 1024):
        q, k, v = rng.normal(size=(3, n, 8)).astype("float32")
        peaks[n] = (peak(attention.scaled_dot_product_attention, q, k, v),
                    peak(multi_head.blockwise_attention, q, k, v, block=32))
    assert peaks[1024][0] > 10 * peaks[256][0]
    assert peaks[1024][1] < 5 * peaks[256][1]
    assert peaks[1024][1] < peaks[1024][0] / 5


def test_nothing_is_written_into():
    rng = np.random.default_rng(6)
    x, params = rng.normal(size=(1, 3, 4)), some_params(4)
    kept = x.copy(), {name: array.copy() for name, array in params.items()}
    multi_head.multi_head_attention(x, params, 2, attention.causal_mask(3))
    multi_head.blockwise_attention(x, x, x, attention.causal_mask(3), block=2)
    np.testing.assert_array_equal(x, kept[0])
    for name, array in params.items():
        np.testing.assert_array_equal(array, kept[1][name])
    state = np.zeros((2, 1)), np.ones((2, 1)), np.ones((2, 3))
    copies = [array.copy() for array in state]
    multi_head.absorb_block(*state, rng.normal(size=(2, 4)), rng.normal(size=(4, 3)))
    for array, copy in zip(state, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def bad_params(**changes):
    return {**some_params(4), **changes}


X = np.ones((1, 3, 4))


@pytest.mark.parametrize("query", [(), (1,), (3, 1), (3, 2)])
@pytest.mark.parametrize("key", [(), (2,), (1, 2), (3, 2)])
@pytest.mark.parametrize("value", [(), (2,), (3, 1)])
def test_leading_axes_broadcast_as_in_attention(query, key, value):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in
              ((*query, 4, 5), (*key, 7, 5), (*value, 7, 3))]
    for mask in (None, rng.random((4, 7)) < 0.7):
        expected, _ = attention.scaled_dot_product_attention(*arrays, mask)
        got = multi_head.blockwise_attention(*arrays, mask, block=3)
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: multi_head.multi_head_attention(X, some_params(4), 3), "3 heads can share equally"),
    (lambda: multi_head.multi_head_attention(X, some_params(4), 0), "of at least 1, got 0"),
    (lambda: multi_head.multi_head_attention(X[0], some_params(4), 2), "(batch, length, d)"),
    (lambda: multi_head.multi_head_attention(X, {}, 2), "expected a dict with the keys"),
    (lambda: multi_head.multi_head_attention(X, [1], 2), "got a list"),
    (lambda: multi_head.multi_head_attention(X, bad_params(extra=X), 2), "expected a dict"),
    (lambda: multi_head.multi_head_attention(
        X, bad_params(**{"key.weight": np.ones((4, 3))}), 2), "key.weight"),
    (lambda: multi_head.multi_head_attention(X, some_params(4), 2, np.ones((3, 3))), "Boolean"),
    (lambda: multi_head.multi_head_attention(X, some_params(4), 2, np.ones((2, 3), bool)),
     "broadcasts to (1, 2, 3, 3)"),
    (lambda: multi_head.blockwise_attention(X, X, X, block=0), "block"),
    (lambda: multi_head.blockwise_attention(X[0, 0], X, X), "two axes"),
    (lambda: multi_head.blockwise_attention(X, X[:, :0], X[:, :0]), "at least one key"),
    (lambda: multi_head.blockwise_attention(X, X, X[:, :2]), "value"),
    (lambda: multi_head.blockwise_attention(X, np.ones((1, 3, 5)), X), "key"),
    (lambda: multi_head.blockwise_attention(X, X, X, np.ones((3, 1), bool)), "last axis of 3"),
    (lambda: multi_head.blockwise_attention(np.ones((2, 3, 4)), np.ones((3, 3, 4)), X),
     "leading axes that agree, got query (2, 3, 4), key (3, 3, 4) and value (1, 3, 4)"),
    (lambda: multi_head.absorb_block(X, X, X, X, X), "highest"),
    (lambda: multi_head.absorb_block(X[..., 0], X[..., :1], X, X, X), "highest"),
    (lambda: multi_head.absorb_block(X[..., :1], X[..., 0], X, X, X), "total"),
    (lambda: multi_head.absorb_block(X[..., :1], X[..., :1], X, X, X), "one value for each key"),
])
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=r"^(multi_head|blockwise|absorb)") as caught:
        call()
    assert words in str(caught.value)
