"""Multi-head attention: several attention patterns side by side, each on its own slice.

Lesson 02. The shapes, from left to right, for h heads of width w = d / h:

    x              (batch, length, d)
    query          (batch, length, d)       x @ weight + bias; key and value likewise
    split_heads    (batch, h, length, w)    each head gets its slice of every token
    attention      (batch, h, length, w)    and weights (batch, h, length, length)
    merge_heads    (batch, length, d)       the slices side by side again
    output         (batch, length, d)       one more projection, which mixes the heads

The encoder of lesson 04 does the same with query, key and value in one matrix.

Vaswani et al., 2017, "Attention Is All You Need", section 3.2.2, https://arxiv.org/abs/1706.03762
"""

import numpy as np

from solutions import _checks
from solutions._checks import checked
from solutions.attention import (
    attention_input,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)

PARTS = ("query", "key", "value", "output")


def _multi_head_input(x, params, num_heads, mask=None):
    where = "multi_head_attention"
    _checks.floats(f"{where}: x", x, shape=("batch", "length", "d"))
    batch, length, d = x.shape
    names = [f"{part}.{kind}" for part in PARTS for kind in ("weight", "bias")]
    if not isinstance(params, dict) or set(params) != set(names):
        got = sorted(params) if isinstance(params, dict) else _checks.describe(params)
        raise ValueError(f"{where}: params: expected a dict with the keys {names}, got {got}")
    for part in PARTS:
        _checks.floats(f"{where}: {part}.weight", params[f"{part}.weight"], shape=(d, d))
        _checks.floats(f"{where}: {part}.bias", params[f"{part}.bias"], shape=(d,))
    _checks.whole(f"{where}: num_heads", num_heads, 1)
    if d % num_heads:
        raise ValueError(
            f"{where}: expected a width that {num_heads} heads can share equally, got {d}"
        )
    if mask is not None:
        _checks.mask(f"{where}: mask", mask, (batch, num_heads, length, length))


@checked(_multi_head_input)
def multi_head_attention(x, params, num_heads, mask=None):
    """Every token looks at all others, in several ways at once: output and weights.

    x: (batch, length, d). params: "query.weight" (d, d) and "query.bias" (d,); the same for key,
    value and output. mask: Boolean, broadcasts to (batch, num_heads, length, length).
    Returns output (batch, length, d) and weights (batch, num_heads, length, length).
    """

    def project(part, vectors):
        return vectors @ params[part + ".weight"] + params[part + ".bias"]

    query, key, value = (split_heads(project(p, x), num_heads) for p in ("query", "key", "value"))
    output, weights = scaled_dot_product_attention(query, key, value, mask)
    return project("output", merge_heads(output)), weights


# --- In blocks ------------------------------------------------------------------------------------


def _state(name, array, shape):
    """Raise unless the last two axes are those of `shape`; the others may broadcast."""
    _checks.floats(name, array)
    if array.shape[-2:] != shape[-2:]:
        raise ValueError(f"{name}: expected floats of shape {shape}, got {_checks.describe(array)}")


def _leading(where, *arrays):
    """Raise unless all axes but the last two broadcast."""
    shapes = [array.shape[:-2] for array in arrays]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        got = ", ".join(map(str, shapes))
        raise ValueError(f"{where}: expected leading axes that agree, got {got}") from None


def _absorb_input(highest, total, output, scores, value):
    where = "absorb_block"
    _checks.floats(f"{where}: scores", scores)
    if scores.ndim < 2 or scores.shape[-1] == 0:
        raise ValueError(
            f"{where}: scores: expected (..., queries, keys) with at least one key, "
            f"got {_checks.describe(scores)}"
        )
    for name, array in (("highest", highest), ("total", total)):
        _state(f"{where}: {name}", array, (*scores.shape[:-1], 1))
    _checks.floats(f"{where}: value", value)
    if value.ndim < 2 or value.shape[-2] != scores.shape[-1]:
        raise ValueError(
            f"{where}: expected one value for each key, got scores {scores.shape} "
            f"and value {value.shape}"
        )
    _state(f"{where}: output", output, (*scores.shape[:-1], value.shape[-1]))
    _leading(where, highest, total, output, scores, value)


@checked(_absorb_input)
def absorb_block(highest, total, output, scores, value):
    """Take one more block of keys into a running softmax: the new highest, total and output.

    highest, total: (..., n, 1), the highest score so far and the sum of exp(score - highest).
    output: (..., n, v), the sum of exp(score - highest) * value, not yet divided by the total.
    scores: (..., n, b) of the new block; -inf where hidden. value: (..., b, v).

    When a block brings a higher score, everything summed before was shifted by too little. It is
    multiplied by exp(old highest - new highest), at most 1, and nothing overflows. While a row has
    seen only -inf, its sums stay 0.

    Milakov and Gimelshein, 2018, https://arxiv.org/abs/1805.02867
    """
    higher = np.maximum(highest, scores.max(axis=-1, keepdims=True))
    shift = np.where(higher == -np.inf, 0, higher)  # -inf - -inf would be NaN
    fade, powers = np.exp(highest - shift), np.exp(scores - shift)
    total = fade * total + powers.sum(axis=-1, keepdims=True)
    return higher, total, fade * output + powers @ value


def _blockwise_input(query, key, value, mask=None, block=64):
    attention_input("blockwise_attention", query, key, value, mask)
    _checks.whole("blockwise_attention: block", block, 1)
    if mask is not None and (mask.ndim == 0 or mask.shape[-1] != key.shape[-2]):
        raise ValueError(
            f"blockwise_attention: mask: expected a last axis of {key.shape[-2]}, one entry for "
            f"each key, got {_checks.describe(mask)}"
        )


@checked(_blockwise_input)
def blockwise_attention(query, key, value, mask=None, block=64):
    """The output of attention, `block` keys at a time: no (n, m) table is ever in memory.

    query: (..., n, d). key: (..., m, d). value: (..., m, v). mask: Boolean, (..., m), broadcasts
    to (..., n, m). Returns (..., n, v). The weights are never all there, so they do not come back.

    Rabe and Staats, 2021, https://arxiv.org/abs/2112.05682
    """
    highest = np.full((*query.shape[:-1], 1), -np.inf, query.dtype)
    total, output = (np.zeros((*query.shape[:-1], w), query.dtype) for w in (1, value.shape[-1]))
    for start in range(0, key.shape[-2], block):
        part = slice(start, start + block)
        scores = query @ np.swapaxes(key[..., part, :], -1, -2) / query.shape[-1] ** 0.5
        if mask is not None:
            scores = np.where(mask[..., part], scores, -np.inf)
        highest, total, output = absorb_block(highest, total, output, scores, value[..., part, :])
    return output / np.where(total == 0, 1, total)
