import inspect
import math

import numpy as np
import pytest
from gradients import assert_gradient

from solutions import attention
from solutions.attention import (
    causal_mask,
    entropy,
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    softmax,
    softmax_backward,
    split_heads,
)

INF = np.inf


def normal(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# --- Softmax --------------------------------------------------------------------------------------


def test_softmax_by_hand():
    weights = softmax(np.array([0.0, math.log(2), math.log(5)]))
    np.testing.assert_allclose(weights, [1 / 8, 2 / 8, 5 / 8], rtol=1e-15)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_softmax_sums_to_one_along_the_axis_asked_for(axis):
    weights = softmax(normal(3, 4, 5), axis=axis)
    np.testing.assert_allclose(weights.sum(axis=axis), 1)
    assert weights.shape == (3, 4, 5)


def test_softmax_shifts_each_row_by_its_own_maximum():
    weights = softmax(np.array([[0.0, 0.0], [1000.0, 0.0], [-1000.0, -1000.0]]))
    np.testing.assert_allclose(weights, [[0.5, 0.5], [1, 0], [0.5, 0.5]])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_softmax_of_an_empty_row_is_zero():
    weights = softmax(np.array([[-INF, -INF], [-INF, 2.0]]))
    np.testing.assert_array_equal(weights, [[0, 0], [0, 1]])


def test_softmax_keeps_negative_scores_apart():
    weights = softmax(np.array([-3.0, -4.0]))
    np.testing.assert_allclose(weights[0] / weights[1], math.e)


# --- Scaled dot-product attention -----------------------------------------------------------------


def looped(query, key, value, mask=None):
    """Attention for (n, d), one number at a time."""
    n, m = len(query), len(key)
    weights = np.zeros((n, m))
    for i in range(n):
        powers = [
            math.exp(float(query[i] @ key[j]) / math.sqrt(query.shape[1]))
            if mask is None or mask[i, j]
            else 0.0
            for j in range(m)
        ]
        for j in range(m):
            weights[i, j] = powers[j] / (sum(powers) or 1)
    return np.array([sum(w[j] * value[j] for j in range(m)) for w in weights]), weights


def test_attention_equals_loops_on_unequal_sizes():
    query, key, value = normal(2, 5, seed=1), normal(3, 5, seed=2), normal(3, 4, seed=3)
    mask = np.array([[True, False, True], [False, True, True]])
    for keep in (None, mask):
        output, weights = scaled_dot_product_attention(query, key, value, keep)
        expected_output, expected_weights = looped(query, key, value, keep)
        np.testing.assert_allclose(weights, expected_weights)
        np.testing.assert_allclose(output, expected_output)


def test_attention_with_leading_axes_equals_one_at_a_time():
    query, key, value = (normal(2, 3, n, 4, seed=n) for n in (5, 6, 6))
    mask = np.random.default_rng(0).random((2, 1, 5, 6)) < 0.5
    output, weights = scaled_dot_product_attention(query, key, value, mask)
    for b in range(2):
        for h in range(3):
            one = scaled_dot_product_attention(query[b, h], key[b, h], value[b, h], mask[b, 0])
            np.testing.assert_allclose(output[b, h], one[0])
            np.testing.assert_allclose(weights[b, h], one[1])


def test_scores_are_divided_by_the_root_of_the_heads_width():
    query, key = np.zeros((1, 16)), np.zeros((2, 16))  # d_model 64, 4 heads
    query[0, 0], key[0, 0] = 8, 1
    _, weights = scaled_dot_product_attention(query, key, np.zeros((2, 1)))
    np.testing.assert_allclose(np.log(weights[0, 0] / weights[0, 1]), 2.0)


def attend_to_scores(scores, mask):
    """Weights for given scores: width 1, so that the scale is 1."""
    scores = np.array([scores])
    return scaled_dot_product_attention(
        np.ones((1, 1), scores.dtype), scores.T, np.ones((scores.shape[1], 1), scores.dtype), mask
    )[1][0]


def test_the_mask_comes_before_the_softmax():
    weights = attend_to_scores([1.0, 2.0, 3.0], np.array([[True, True, False]]))
    np.testing.assert_allclose(weights, [0.268941, 0.731059, 0], atol=1e-6)


def test_a_masked_score_is_replaced_not_lowered():
    scores = np.array([5e9, 1, 2], dtype=np.float32)
    weights = attend_to_scores(scores, np.array([[False, True, True]]))
    np.testing.assert_allclose(weights, [0, 0.268941, 0.731059], atol=1e-6)


def test_what_padding_holds_does_not_matter():
    scores = np.array([1.0, 2.0, np.nan])
    weights = attend_to_scores(scores, np.array([[True, True, False]]))
    np.testing.assert_allclose(weights, [0.268941, 0.731059, 0], atol=1e-6)


def test_padding_hides_keys_not_queries():
    real = np.array([[5, 7, 0, 0]]) != 0
    x = np.ones((1, 1, 4, 3))
    output, weights = scaled_dot_product_attention(x, x, x, padding_mask(real))
    np.testing.assert_allclose(weights[0, 0], [[0.5, 0.5, 0, 0]] * 4)
    np.testing.assert_allclose(output, 1)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_empty_row_gives_zeros_and_finite_gradients(dtype):
    mask = padding_mask(np.array([[0, 1]])) & causal_mask(2)
    np.testing.assert_array_equal(mask[0, 0], [[False, False], [False, True]])
    query, key, value = (normal(1, 1, 2, 3, seed=s, dtype=dtype) for s in range(3))
    output, weights = scaled_dot_product_attention(query, key, value, mask)
    np.testing.assert_array_equal(weights[0, 0], [[0, 0], [0, 1]])
    np.testing.assert_array_equal(output[0, 0], [[0, 0, 0], value[0, 0, 1]])
    grads = scaled_dot_product_attention_backward(output + 1, query, key, value, weights)
    for grad in grads:
        assert np.isfinite(grad).all()
        assert grad.dtype == dtype


def test_causal_mask_includes_the_diagonal():
    np.testing.assert_array_equal(
        causal_mask(3), [[True, False, False], [True, True, False], [True, True, True]]
    )


@pytest.mark.parametrize("dtype", [bool, np.int64, np.uint8])
def test_padding_mask_shape(dtype):
    mask = padding_mask(np.array([[1, 1, 0], [1, 0, 0]], dtype=dtype))
    assert mask.shape == (2, 1, 1, 3)
    assert mask.dtype == bool


# --- Heads ----------------------------------------------------------------------------------------


def test_a_head_is_a_slice_of_every_token():
    heads = split_heads(np.arange(8.0).reshape(1, 2, 4), 2)
    np.testing.assert_array_equal(heads[0, 0], [[0, 1], [4, 5]])
    np.testing.assert_array_equal(heads[0, 1], [[2, 3], [6, 7]])


def test_merge_undoes_split():
    x = normal(2, 3, 12)
    for heads in (1, 2, 3, 4, 6, 12):
        split = split_heads(x, heads)
        assert split.shape == (2, heads, 3, 12 // heads)
        np.testing.assert_array_equal(merge_heads(split), x)


# --- Entropy --------------------------------------------------------------------------------------


def test_entropy():
    rows = np.array([[0.25] * 4, [1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_allclose(entropy(rows), [math.log(4), 0, math.log(2), 0])
    assert not np.signbit(entropy(rows)).any()
    np.testing.assert_allclose(entropy(rows.T, axis=0), entropy(rows))


# --- The way back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-1, 0])
def test_softmax_gradient(axis):
    scores, upstream = normal(3, 4), normal(3, 4, seed=1)
    grad = softmax_backward(upstream, softmax(scores, axis), axis)
    assert_gradient(grad, lambda: softmax(scores, axis), scores, upstream)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_gradients(masked):
    query, key, value = (normal(2, 2, n, d, seed=n) for n, d in ((3, 4), (5, 4), (5, 3)))
    mask = None
    if masked:
        mask = np.random.default_rng(1).random((2, 1, 3, 5)) < 0.6
        mask[0, 0, 1] = False  # an empty row
    upstream = normal(2, 2, 3, 3, seed=9)
    _, weights = scaled_dot_product_attention(query, key, value, mask)
    grads = scaled_dot_product_attention_backward(upstream, query, key, value, weights)
    for grad, array in zip(grads, (query, key, value), strict=True):
        assert_gradient(
            grad, lambda: scaled_dot_product_attention(query, key, value, mask)[0], array, upstream
        )


# --- What comes in and goes out -------------------------------------------------------------------


def test_float32_stays_float32():
    x = normal(2, 4, 6, dtype=np.float32)
    heads = split_heads(x, 3)
    mask = padding_mask(np.ones((2, 4), dtype=bool))
    output, weights = scaled_dot_product_attention(heads, heads, heads, mask)
    grads = scaled_dot_product_attention_backward(output, heads, heads, heads, weights)
    found = (softmax(x), output, weights, merge_heads(output), entropy(weights), *grads)
    assert {array.dtype for array in found} == {np.dtype(np.float32)}


def test_arguments_stay_as_they_were():
    query, key, value = (normal(2, 2, 3, 4, seed=s) for s in range(3))
    mask = np.random.default_rng(1).random((3, 3)) < 0.6
    before = [a.copy() for a in (query, key, value, mask)]
    output, weights = scaled_dot_product_attention(query, key, value, mask)
    kept = weights.copy()
    scaled_dot_product_attention_backward(output, query, key, value, weights)
    entropy(weights)
    softmax(query)
    for array, copy in zip((query, key, value, mask, weights), (*before, kept), strict=True):
        np.testing.assert_array_equal(array, copy)


X = np.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: softmax([1.0, 2.0]), "expected a NumPy array of floats, got a list"),
        (lambda: softmax(np.array([1, 2])), "got int64 of shape (2,)"),
        (lambda: softmax(np.array(1.0)), "at least one axis"),
        (lambda: softmax(np.ones((2, 0))), "at least one score"),
        (lambda: softmax(X, axis=2), "whole number from -2 to 1, got 2"),
        (lambda: scaled_dot_product_attention(X, np.ones((2, 4)), X), "one width"),
        (lambda: scaled_dot_product_attention(X, X, np.ones((3, 3))), "one value for each key"),
        (lambda: scaled_dot_product_attention(X[0], X, X), "at least two axes"),
        (
            lambda: scaled_dot_product_attention(np.ones((2, 2, 3)), np.ones((3, 2, 3)), X),
            "leading axes that agree",
        ),
        (lambda: scaled_dot_product_attention(X, X[:0], X[:0]), "at least one key"),
        (
            lambda: scaled_dot_product_attention(X, X, X, np.ones((2, 2))),
            "Boolean array (True = may be attended), got float64",
        ),
        (
            lambda: scaled_dot_product_attention(X, X, X, np.ones((2, 2), dtype=int)),
            "Boolean array (True = may be attended), got int64",
        ),
        (
            lambda: scaled_dot_product_attention(X, X, X, np.ones((2, 3), dtype=bool)),
            "broadcasts to (2, 2)",
        ),
        (
            lambda: scaled_dot_product_attention(X, X, X, np.ones((5, 2, 2), dtype=bool)),
            "broadcasts to (2, 2)",
        ),
        (lambda: causal_mask(0), "at least 1, got 0"),
        (lambda: causal_mask(2.0), "got 2.0"),
        (lambda: causal_mask(True), "got True"),
        (lambda: padding_mask(np.array([[1, 2]])), "only 0 and 1"),
        (lambda: padding_mask(np.ones((1, 2))), "got float64"),
        (lambda: padding_mask(np.ones(2, dtype=bool)), "(batch, length)"),
        (lambda: split_heads(np.ones((1, 2, 5)), 2), "2 heads can share equally, got 5"),
        (lambda: split_heads(np.ones((2, 6)), 2), "(batch, length, d)"),
        (lambda: split_heads(np.ones((1, 2, 6)), 0), "at least 1"),
        (lambda: merge_heads(np.ones((1, 2, 6))), "(batch, heads, length, d / heads)"),
        (lambda: entropy(np.array([0.5, -0.5])), "no weight below 0, got -0.5"),
        (lambda: softmax_backward(X, np.ones((3, 2))), "floats of shape (3, 2)"),
        (
            lambda: scaled_dot_product_attention_backward(X, X, X, X, np.ones((2, 3))),
            "floats of shape (2, 2)",
        ),
    ],
)
def test_wrong_input_is_said(call, words):
    with pytest.raises(ValueError, match="expected") as caught:
        call()
    assert words in str(caught.value)


def test_a_wrong_call_is_told_in_the_functions_own_terms():
    with pytest.raises(TypeError, match="missing a required argument: 'scores'"):
        softmax()


@pytest.mark.parametrize("name", ["softmax", "scaled_dot_product_attention", "causal_mask"])
def test_the_bare_function_is_within_reach(name):
    function = getattr(attention, name)
    assert inspect.unwrap(function) is not function
    assert inspect.unwrap(function).__doc__ == function.__doc__
