"""The encoder's inner loops: the formulas of `attention` and `encoder`, in place and by blocks.

Nothing here is new. `tests/test_encoder.py` holds each function against the readable one of the
same name. What is different, and why it is faster:

- Tokens are rows of a matrix (batch * length, d): one large matrix product, not one a sentence.
- Results are written over what is no longer needed. Most of the time of a NumPy step goes into
  moving numbers to and from memory, and an array that is used again is still in the cache. A
  docstring says which arguments are used up; all of them were made by the encoder itself.
- A sum along a short axis is a product with a vector of ones, which BLAS does several times faster.
"""

import functools
import math

import numpy as np

# A C library gives memory back to the system as soon as a step has freed it, and gets it again,
# page by page, in the next one; in glibc this cost a third of a training step. Having seen one
# large block come and go (it is never touched), glibc keeps up to twice as much for later.
np.empty(2**25 - 2**16, dtype=np.uint8)


# --- Linear ---------------------------------------------------------------------------------------


def linear(x, weight, bias):
    """x: (rows, in). Returns (rows, out)."""
    out = x @ weight
    out += bias
    return out


def linear_backward(grad_output, x, weight):
    """Gradients of x, weight and bias."""
    return grad_output @ weight.T, x.T @ grad_output, column_sums(grad_output)


def column_sums(x):
    """(rows, d) to (d,)."""
    return _ones(len(x), x.dtype) @ x


def row_sums(x):
    """(..., d) to (rows,)."""
    width = x.shape[-1]
    return x.reshape(-1, width) @ _ones(width, x.dtype)


@functools.lru_cache(maxsize=64)
def _ones(count, dtype):
    ones = np.ones(count, dtype)
    ones.flags.writeable = False
    return ones


# --- Layer normalization --------------------------------------------------------------------------


def layer_norm(x, gamma, beta, eps, keep):
    """The normalized rows times gamma plus beta, and what the way back needs (if keep).

    Uses up x: (rows, d).
    """
    width = x.shape[1]
    x -= (row_sums(x) / width)[:, None]
    variance = np.einsum("ij,ij->i", x, x) / width
    inverse = (1 / np.sqrt(variance + eps))[:, None]
    x *= inverse
    out = np.multiply(x, gamma, out=None if keep else x)
    out += beta
    return out, (x, inverse) if keep else None


def layer_norm_backward(grad_output, cache, gamma):
    """Gradients of x, gamma and beta."""
    normalized, inverse = cache
    product = grad_output * normalized
    grad_gamma, grad_beta = column_sums(product), column_sums(grad_output)

    share = gamma / len(gamma)
    shift, stretch = grad_output @ share, product @ share  # means of grad * gamma (* normalized)
    grad_x = grad_output * gamma
    grad_x -= shift[:, None]
    grad_x -= np.multiply(normalized, stretch[:, None], out=product)
    grad_x *= inverse
    return grad_x, grad_gamma, grad_beta


# --- GELU -----------------------------------------------------------------------------------------

# erf(x / sqrt(2)) = tanh(x * P(x^2)), P of degree 6, as found by linear programming for the least
# greatest error of the GELU on 0 <= x <= 8 (7e-8). The leading coefficient is positive, so both
# sides go to 1.
_ERF = (
    0.7978842161121679,
    0.03633428358077989,
    -3.3130044680004044e-05,
    -5.524014445386592e-05,
    3.9691076269387905e-06,
    -1.334462899784816e-07,
    1.8056132461114768e-09,
)
_BLOCK = 2**17  # numbers; three arrays of as many float32 stay in a cache of 2 MB


def _erf_table(points):
    """(8, points): the first eight Taylor coefficients of erf about each point.

    The slope of erf is g = 2 / sqrt(pi) * exp(-x^2), and g' = -2 x g. Comparing the coefficients of
    both sides gives those of g one from another. Those of erf are theirs, divided by 1, 2, 3, ...
    """
    slopes = [2 / math.sqrt(math.pi) * np.exp(-(points**2))]
    slopes.append(-2 * points * slopes[0])
    for n in range(2, 7):
        slopes.append(-2 / n * (points * slopes[-1] + slopes[-2]))
    values = np.array([math.erf(point) for point in points])
    return np.stack([values, *(slope / n for n, slope in enumerate(slopes, start=1))])


_ERF_TABLE = _erf_table(np.arange(6 * 64 + 1) / 64)  # beyond 6, erf is 1 to the last digit


def _erf_float64(x):
    """erf of float64, to 2e-16: the series about the nearest point of the table."""
    size = np.minimum(np.abs(x), 6)
    with np.errstate(invalid="ignore"):  # NaN has no nearest point; any will do, it stays NaN
        nearest = np.rint(size * 64).astype(np.intp)
    distance = size - nearest / 64
    out = np.zeros_like(size)
    for coefficients in _ERF_TABLE[::-1]:
        out *= distance
        out += coefficients.take(nearest, mode="clip")
    return np.copysign(out, x)


def erf_root_half(x, squares=None):
    """erf(x / sqrt(2)): to 3e-7 in float32, to the last digits in float64."""
    if x.dtype != np.float32:
        return _erf_float64(x / math.sqrt(2)).astype(x.dtype, copy=False)
    with np.errstate(over="ignore"):  # far out P is inf, and its tanh 1
        squares = np.square(x) if squares is None else squares
        out = squares * _ERF[-1]
        for coefficient in _ERF[-2:0:-1]:
            out += coefficient
            out *= squares
        out += _ERF[0]
        out *= x
    return np.tanh(out, out=out)


def gelu(x, keep):
    """x times the probability below x, and (if keep) its slope, by which the way back multiplies.

    Uses up x, (rows, d): the result is written over it.
    """
    slope = np.empty_like(x) if keep else None
    step = max(1, _BLOCK // x.shape[1])
    for start in range(0, len(x), step):
        block = x[start : start + step]
        squares = np.square(block)
        below = erf_root_half(block, squares)
        below += 1
        below *= 0.5
        if keep:
            # slope = below + x * density; the density as a power of two, with its constant inside
            squares *= -0.5 / math.log(2)
            squares -= 0.5 * math.log2(2 * math.pi)
            density = np.exp2(squares, out=squares)
            density *= block
            np.add(density, below, out=slope[start : start + step])
        block *= below
    return x, slope


# --- Attention ------------------------------------------------------------------------------------

# Scores this small can go to exp as they are: exp(60) is 1e26, and the least row sum is 1e-26.
_SAFE = 60


def softmax(scores, visible):
    """Weights, written over the scores. visible: 1 or 0, broadcasts to scores; or None."""
    keys = scores.shape[-1]
    if not (-_SAFE < scores.min() and scores.max() < _SAFE):
        if visible is not None:
            np.copyto(scores, -np.inf, where=visible == 0)
        highest = scores.max(axis=-1, keepdims=True)
        highest[highest == -np.inf] = 0
        scores -= highest
    np.exp(scores, out=scores)
    if visible is not None:
        scores *= visible
    total = row_sums(scores)
    if visible is not None:
        total[total == 0] = 1
    scores /= np.repeat(total, keys).reshape(scores.shape)
    return scores


def _heads(x, batch, num_heads, parts):
    """(batch * length, parts * d) to views, one a part, (batch, heads, length, d / heads)."""
    rows, width = x.shape
    shape = (batch, rows // batch, parts, num_heads, width // parts // num_heads)
    return x.reshape(shape).transpose(2, 0, 3, 1, 4)


def _transposed(x, scale=1):
    """The last two axes swapped, times scale. A copy: BLAS is faster on it than on a view."""
    copy = np.ascontiguousarray(np.swapaxes(x, -1, -2))
    if scale != 1:
        copy *= scale
    return copy


def attention(qkv, batch, num_heads, visible, drop):
    """Attended values (batch * length, d), weights (batch, heads, queries, keys), and the cache.

    qkv: (batch * length, 3 * d), the projections side by side.
    drop: None, or a function that thins the weights and returns them with the scale of each.
    """
    query, key, value = _heads(qkv, batch, num_heads, 3)
    scores = query @ _transposed(key, query.shape[-1] ** -0.5)
    weights = softmax(scores, visible)
    thinned, scale = (weights, None) if drop is None else drop(weights)
    context = np.empty((qkv.shape[0], qkv.shape[1] // 3), qkv.dtype)
    np.matmul(thinned, value, out=_heads(context, batch, num_heads, 1)[0])
    return context, weights, (qkv, weights, thinned, scale)


def attention_backward(grad_context, cache):
    """Gradient of qkv, (batch * length, 3 * d)."""
    qkv, weights, thinned, scale = cache
    batch, num_heads, _, keys = weights.shape
    query, key, value = _heads(qkv, batch, num_heads, 3)
    grad_context = _heads(grad_context, batch, num_heads, 1)[0]
    grad_qkv = np.empty_like(qkv)
    grad_query, grad_key, grad_value = _heads(grad_qkv, batch, num_heads, 3)

    np.matmul(np.swapaxes(thinned, -1, -2), grad_context, out=grad_value)
    grad_scores = grad_context @ _transposed(value, query.shape[-1] ** -0.5)
    if scale is not None:
        grad_scores *= scale
    grad_scores *= weights
    mean = np.repeat(row_sums(grad_scores), keys).reshape(weights.shape)
    mean *= weights
    grad_scores -= mean
    np.matmul(grad_scores, key, out=grad_query)
    np.matmul(np.swapaxes(grad_scores, -1, -2), query, out=grad_key)
    return grad_qkv


# --- Embeddings -----------------------------------------------------------------------------------


def sum_by_id(ids, rows, count):
    """(count, d): in row i the sum of all `rows` whose id is i; np.add.at, several times faster.

    Sorted by id, rows of one id stand together, numbered from 0. In each group every second row
    takes in its neighbor; then every fourth one the row two further on; until the first has all.
    """
    order = np.argsort(ids.astype(np.uint16) if count <= 2**16 else ids, kind="stable")
    ids, rows = ids[order], rows.take(order, axis=0)
    starts = np.ones(len(ids), dtype=bool)
    np.not_equal(ids[1:], ids[:-1], out=starts[1:])
    first = np.flatnonzero(starts)
    number = np.arange(len(ids)) - first[np.cumsum(starts) - 1]
    step, last = 1, number.max()
    while step <= last:
        taken = np.flatnonzero(number % (2 * step) == step)
        rows[taken - step] += rows[taken]
        step *= 2
    table = np.zeros((count, rows.shape[1]), rows.dtype)
    table[ids[first]] = rows[first]
    return table
