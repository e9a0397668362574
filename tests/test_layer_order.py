"""The layer in three orders, its way back, and what is measured with it."""

import numpy as np
import pytest

from solutions import layer_order
from solutions.attention import causal_mask
from solutions.encoder import Encoder, EncoderConfig, init_params, parameter_shapes
from solutions.layer_order import (
    ORDERS,
    add_and_norm,
    attend,
    backward,
    by_depth,
    encode,
    encoder_layer,
    forward,
    layer_params,
    likeness,
    random_stack,
    root_mean_square,
    shake,
)

CONFIG = EncoderConfig(50, 16, 3, 4, 24, 12)


def params(seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return {name: (array + 0.2 * rng.normal(size=array.shape)).astype(dtype)
            for name, array in init_params(CONFIG, seed, np.float64).items()}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_encode_is_the_encoder(dtype):
    rng, p = np.random.default_rng(1), params(dtype=dtype)
    ids = rng.integers(0, 50, size=(3, 7))
    real = (np.arange(7) < np.array([7, 4, 1])[:, None]).astype(int)
    mine, theirs = encode(ids, real, p, 3, 4), Encoder(CONFIG, p)(ids, real)
    assert mine.dtype == theirs.dtype == dtype
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(mine[real == 1], theirs[real == 1], rtol=tolerance, atol=tolerance)


def test_forward_in_post_order_is_encoder_layers_in_a_row():
    p, x = params(), np.random.default_rng(2).normal(size=(2, 5, 16))
    layers, mask = [layer_params(p, i) for i in range(3)], causal_mask(5)
    states, _ = forward(x, layers, 4, "post", mask=mask)
    for i, layer in enumerate(layers):
        x = encoder_layer(x, layer, 4, mask)
        np.testing.assert_allclose(states[i + 1], x, rtol=1e-12, atol=1e-12)


def test_what_the_orders_are():
    """x = [1, 3] and a change that is x itself: post-LN [-1, 1]; pre-LN [0, 4]."""
    x, one, zero = np.array([1.0, 3.0]), np.ones(2), np.zeros(2)
    np.testing.assert_allclose(add_and_norm(x, x, one, zero), [-1, 1])
    np.testing.assert_allclose(x + layer_order.layer_norm(x, one, zero), [0, 4], atol=1e-9)


def _stack(seed=0, d=8, d_ff=12):
    """Two layers with nothing left at 0 or 1."""
    rng = np.random.default_rng(seed)
    return [{name: array + 0.1 * rng.normal(size=array.shape) for name, array in layer.items()}
            for layer in random_stack(2, d, d_ff, seed)]


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mask", [None, causal_mask(4)], ids=["all", "causal"])
def test_backward_is_what_differences_measure(order, residual, mask):
    rng, layers, step = np.random.default_rng(3), _stack(), 1e-6
    x, upstream, toward = rng.normal(size=(3, 2, 4, 8))

    def loss(x, layers):
        return (forward(x, layers, 2, order, residual, mask)[0][-1] * upstream).sum()

    states, cache = forward(x, layers, 2, order, residual, mask)
    by_state, by_layer = backward(upstream, cache)
    assert len(states) == len(by_state) == 3 + (order == "pre")
    assert by_state[-1] is upstream
    measured = (loss(x + step * toward, layers) - loss(x - step * toward, layers)) / (2 * step)
    assert (by_state[0] * toward).sum() == pytest.approx(measured, rel=1e-5, abs=1e-6)
    # a state in the middle: run the rest of the stack from there
    rest = (loss(states[1] + step * toward, layers[1:])
            - loss(states[1] - step * toward, layers[1:])) / (2 * step)
    assert (by_state[1] * toward).sum() == pytest.approx(rest, rel=1e-5, abs=1e-6)
    for i in range(2):
        norms = {name for name in layer_order.LAYER if "norm" in name}
        unused = norms if order == "none" else set()
        assert set(by_layer[i]) == set(layer_order.LAYER) - unused
        for name, grad in by_layer[i].items():
            way, moved = rng.normal(size=grad.shape), []
            for sign in (1, -1):
                other = [dict(layer) for layer in layers]
                other[i][name] = other[i][name] + sign * step * way
                moved.append(loss(x, other))
            measured = (moved[0] - moved[1]) / (2 * step)
            assert (grad * way).sum() == pytest.approx(measured, rel=1e-5, abs=1e-6), name


def test_nothing_is_written_into():
    layers, x = _stack(), np.random.default_rng(4).normal(size=(1, 3, 8))
    before = [{k: v.copy() for k, v in layer.items()} for layer in layers], x.copy()
    for order in ORDERS:
        states, cache = forward(x, layers, 2, order)
        backward(np.ones_like(states[-1]), cache)
    np.testing.assert_array_equal(x, before[1])
    for layer, old in zip(layers, before[0], strict=True):
        for name in layer:
            np.testing.assert_array_equal(layer[name], old[name])


def test_post_ln_keeps_the_scale_and_pre_ln_grows_and_without_it_explodes():
    ends = {order: by_depth(24, order)["signal"][-1] for order in ORDERS}
    assert ends["post"] == pytest.approx(1, abs=1e-6)
    assert 3 < ends["pre"] < 10
    assert ends["none"] > 1e4


def test_the_last_layers_gradient():
    """Xiong et al., theorem 1: in post-LN the same at any depth, in pre-LN like 1 / sqrt(depth)."""
    def last(order, layers):
        return np.mean([by_depth(layers, order, seed=s)["weights"][-1] for s in range(3)])

    assert last("post", 24) == pytest.approx(last("post", 6), rel=0.15)
    assert last("pre", 24) == pytest.approx(last("pre", 6) / 2, rel=0.2)


def test_one_step_moves_a_deep_post_ln_stack_further():
    at = {order: np.mean([shake(24, order, scale=0.55, seed=s) for s in range(3)])
          for order in ("post", "pre")}
    assert at["post"] > 1.15 * at["pre"]


def test_without_residuals_the_words_become_one():
    assert by_depth(12, residual=False, scale=0.55)["likeness"][3] > 0.99
    assert by_depth(12, residual=True, scale=0.55)["likeness"][3] < 0.3


def test_likeness():
    x = np.array([[[1.0, 0], [0, 2]], [[1, 1], [3, 3]]])
    assert likeness(x) == pytest.approx(0.5)  # a right angle, and one direction
    assert likeness(np.array([[[1.0, 0], [-2, 0]]])) == pytest.approx(-1)
    assert likeness(np.zeros((1, 3, 2))) == pytest.approx(-0.5)  # no direction: no cosine


def test_root_mean_square():
    assert root_mean_square(np.array([3.0, 4.0])) == pytest.approx(12.5**0.5)


def test_same_seed_same_numbers():
    np.testing.assert_array_equal(by_depth(3)["gradient"], by_depth(3)["gradient"])
    assert by_depth(3, seed=1)["gradient"][0] != by_depth(3)["gradient"][0]
    assert shake(2) == shake(2)


X, P = np.zeros((1, 2, 16)), layer_params(params(), 0)


@pytest.mark.parametrize(("call", "said"), [
    (lambda: encoder_layer(X[0], P, 4), r"x: expected floats of shape \(batch, length, d\)"),
    (lambda: encoder_layer(X, P, 3), "3 heads can share"),
    (lambda: encoder_layer(X, P, 0), "num_heads: expected a whole number of at least 1"),
    (lambda: encoder_layer(X, {}, 4), "params: expected a dict with the keys"),
    (lambda: encoder_layer(X, P | {"attention.norm.beta": np.zeros(3)}, 4), "attention.norm.beta"),
    (lambda: encoder_layer(X, P, 4, np.ones((2, 2))), "expected a Boolean array"),
    (lambda: attend(X.astype(int), P, 4), "attend: x: expected a NumPy array of floats"),
    (lambda: add_and_norm(X, X[0], np.ones(16), np.zeros(16)), "change: expected floats of shape"),
    (lambda: add_and_norm(X, X, np.ones(3), np.zeros(16)), "gamma"),
    (lambda: encode(np.array([[50]]), np.array([[1]]), params(), 3, 4), "ids from 0 to 49, got 50"),
    (lambda: encode(np.zeros((1, 13), int), np.ones((1, 13), int), params(), 3, 4), "at most 12"),
    (lambda: encode(np.zeros((1, 2), int), np.ones((1, 3), int), params(), 3, 4), "attention_mask"),
    (lambda: encode(np.zeros((1, 2), int), np.ones((1, 2), int), {}, 3, 4), "embeddings.token"),
    (lambda: layer_params(params(), 3), "expected a layer 3"),
    (lambda: forward(X, [P], 4, "both"), "expected one of"),
    (lambda: forward(X, [P], 4, residual=1), "residual: expected True or False"),
])  # fmt: skip
def test_wrong_arguments_are_named(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_layer_params_are_those_of_the_encoder():
    names = {name.removeprefix("layers.2.") for name in parameter_shapes(CONFIG) if "s.2." in name}
    assert set(layer_params(params(), 2)) == names == set(layer_order.LAYER)
