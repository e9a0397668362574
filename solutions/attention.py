"""Attention: every token asks all the others, and takes a weighted mean of their answers.

Lessons 01 and 02. The shapes, from left to right:

    query  (..., n, d)      key  (..., m, d)      value  (..., m, v)
    scores = query @ key.T / sqrt(d)              (..., n, m)    one row for each query
    weights = softmax(scores)                     (..., n, m)    each row sums to 1
    output = weights @ value                      (..., n, v)

`...` stands for any leading axes, (batch, heads) in the encoder. A mask is Boolean, True where a
query may attend to a key.

Vaswani et al., 2017, "Attention Is All You Need", https://arxiv.org/abs/1706.03762
"""

import numpy as np

from solutions import _checks
from solutions._checks import checked


def _softmax_input(scores, axis=-1):
    _checks.floats("softmax: scores", scores)
    if scores.ndim == 0:
        raise ValueError(
            f"softmax: scores: expected at least one axis, got {_checks.describe(scores)}"
        )
    _checks.whole("softmax: axis", axis, -scores.ndim, scores.ndim - 1)
    if scores.shape[axis] == 0:
        raise ValueError(
            f"softmax: scores: expected at least one score along axis {axis}, "
            f"got {_checks.describe(scores)}"
        )


@checked(_softmax_input)
def softmax(scores, axis=-1):
    """Positive weights that sum to 1 along `axis`; a row of -inf gives zeros.

    scores: floats of any shape. Returns the same shape and dtype.

    The highest score of each row is subtracted first: the weights stay the same, and exp no longer
    overflows. A score of -inf gets the weight 0, so a row in which nothing may be attended gets
    weights of 0, not NaN.
    """
    highest = np.max(scores, axis=axis, keepdims=True)
    highest = np.where(highest == -np.inf, 0, highest)  # -inf - -inf would be NaN
    powers = np.exp(scores - highest)
    total = np.sum(powers, axis=axis, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def attention_input(where, query, key, value, mask):
    """Raise unless these are inputs of attention; `where` is the function they were given to."""
    for name, array in (("query", query), ("key", key), ("value", value)):
        _checks.floats(f"{where}: {name}", array)
        if array.ndim < 2:
            raise ValueError(
                f"{where}: {name}: expected at least two axes (..., tokens, width), "
                f"got {_checks.describe(array)}"
            )
    if key.shape[-1] != query.shape[-1]:
        raise ValueError(
            f"{where}: expected query and key of one width, "
            f"got query {query.shape} and key {key.shape}"
        )
    if value.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"{where}: expected one value for each key, got key {key.shape} and value {value.shape}"
        )
    if key.shape[-2] == 0:
        raise ValueError(f"{where}: expected at least one key, got key {key.shape}")
    try:
        leading = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except ValueError:
        raise ValueError(
            f"{where}: expected leading axes that agree, "
            f"got query {query.shape}, key {key.shape} and value {value.shape}"
        ) from None
    if mask is not None:
        _checks.mask(f"{where}: mask", mask, (*leading, query.shape[-2], key.shape[-2]))


def _attention_input(query, key, value, mask=None):
    attention_input("scaled_dot_product_attention", query, key, value, mask)


@checked(_attention_input)
def scaled_dot_product_attention(query, key, value, mask=None):
    """Mean of the values, weighted by how well each key answers the query.

    query: (..., n, d). key: (..., m, d). value: (..., m, v).
    mask: Boolean, broadcasts to (..., n, m); True where a query may attend to a key.
    Returns output (..., n, v) and weights (..., n, m).

    A dot product of d unit-scale numbers has a standard deviation of sqrt(d); dividing by it keeps
    the softmax from saturating. A masked score is replaced by -inf before the softmax, so its
    weight is exactly 0 and the others still sum to 1. A query that may attend to nothing gets
    weights and output of 0.

    Vaswani et al., 2017, section 3.2.1.
    """
    scores = query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)
    return weights @ value, weights


def _causal_mask_input(length):
    _checks.whole("causal_mask: length", length, 1)


@checked(_causal_mask_input)
def causal_mask(length):
    """Boolean (length, length): row i may attend to keys 0 to i, itself included."""
    return np.tril(np.ones((length, length), dtype=bool))


def _padding_mask_input(attention_mask):
    _checks.real_tokens("padding_mask: attention_mask", attention_mask)


@checked(_padding_mask_input)
def padding_mask(attention_mask):
    """Boolean (batch, 1, 1, length): no query attends to padding.

    attention_mask: (batch, length), True or 1 for a real token.

    The two axes of size 1 stand for heads and queries. Only keys are hidden: what a padded query
    finds is never read, and hiding its whole row would help nobody.
    """
    return attention_mask.astype(bool)[:, None, None, :]


def _split_heads_input(x, num_heads):
    _checks.floats("split_heads: x", x, shape=("batch", "length", "d"))
    _checks.whole("split_heads: num_heads", num_heads, 1)
    if x.shape[-1] % num_heads:
        raise ValueError(
            f"split_heads: expected a width that {num_heads} heads can share equally, "
            f"got {x.shape[-1]}"
        )


@checked(_split_heads_input)
def split_heads(x, num_heads):
    """(batch, length, d) to (batch, num_heads, length, d / num_heads).

    Head h gets the h-th slice of every token's vector. A reshape alone would give it the vectors of
    some of the tokens instead.
    """
    batch, length, d = x.shape
    heads_last = x.reshape(batch, length, num_heads, d // num_heads)
    return heads_last.transpose(0, 2, 1, 3)


def _merge_heads_input(x):
    _checks.floats("merge_heads: x", x, shape=("batch", "heads", "length", "d / heads"))


@checked(_merge_heads_input)
def merge_heads(x):
    """(batch, heads, length, d / heads) to (batch, length, d): split_heads undone."""
    batch, num_heads, length, width = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, num_heads * width)


def _entropy_input(weights, axis=-1):
    _checks.floats("entropy: weights", weights)
    if weights.ndim == 0:
        raise ValueError(
            f"entropy: weights: expected at least one axis, got {_checks.describe(weights)}"
        )
    if np.any(weights < 0):
        raise ValueError(
            f"entropy: weights: expected no weight below 0, got {float(weights.min()):g}"
        )


@checked(_entropy_input)
def entropy(weights, axis=-1):
    """How widely each row spreads its attention, in nats: 0 for one key, log(m) for m equal keys.

    weights: floats, rows along `axis` that sum to 1 (or to 0: their entropy is 0).
    """
    logs = np.log(np.where(weights > 0, weights, 1))  # 0 log 0 counts as 0
    return 0 - np.sum(weights * logs, axis=axis)  # 0 - 0, for -0.0 would look odd


# The way back. `grad_x` is the gradient of a loss with respect to x, of the shape of x.


def _softmax_backward_input(grad_weights, weights, axis=-1):
    _checks.floats("softmax_backward: weights", weights)
    _checks.floats("softmax_backward: grad_weights", grad_weights, shape=weights.shape)


@checked(_softmax_backward_input)
def softmax_backward(grad_weights, weights, axis=-1):
    """Gradient of the scores, given the gradient of the weights and the weights themselves.

    Raising one score raises its own weight at the cost of the others; hence the subtracted mean.
    Where a weight is 0, behind a mask or in an empty row, the gradient is 0.
    """
    mean = np.sum(grad_weights * weights, axis=axis, keepdims=True)
    return weights * (grad_weights - mean)


def _attention_backward_input(grad_output, query, key, value, weights):
    where = "scaled_dot_product_attention_backward"
    _checks.floats(f"{where}: query", query)
    *leading, n, _ = query.shape
    _checks.floats(f"{where}: key", key, shape=(*leading, "m", query.shape[-1]))
    m = key.shape[-2]
    _checks.floats(f"{where}: value", value, shape=(*leading, m, "v"))
    _checks.floats(f"{where}: weights", weights, shape=(*leading, n, m))
    _checks.floats(f"{where}: grad_output", grad_output, shape=(*leading, n, value.shape[-1]))


@checked(_attention_backward_input)
def scaled_dot_product_attention_backward(grad_output, query, key, value, weights):
    """Gradients of query, key and value, given that of the output and the weights found forward.

    All five share their leading axes. The mask is not needed again: where it hid a key, the weight
    is 0, and so is every gradient that passes through it.
    """
    grad_value = np.swapaxes(weights, -1, -2) @ grad_output
    grad_weights = grad_output @ np.swapaxes(value, -1, -2)
    grad_scores = softmax_backward(grad_weights, weights) / query.shape[-1] ** 0.5
    grad_query = grad_scores @ key
    grad_key = np.swapaxes(grad_scores, -1, -2) @ query
    return grad_query, grad_key, grad_value
