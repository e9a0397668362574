"""Lesson 04's exercises: the parts of a layer, the layer, the stack, and how large it is."""

import math

import numpy as np

from course.exercises import Case, Mistake, register
from solutions import encoder, layer_order
from solutions.attention import causal_mask, padding_mask
from solutions.encoder import EncoderConfig, feed_forward, gelu, layer_norm, linear
from solutions.layer_order import add_and_norm, attend, encoder_layer, layer_params

# --- layer_norm ---------------------------------------------------------------------------------


def _normed(x, gamma, beta, eps=1e-12, *, axis=-1, ddof=0, center=True, root=True, outside=False):
    """LayerNorm with one part chosen wrongly, for the mistakes below."""
    centered = x - x.mean(axis=axis, keepdims=True) if center else x
    variance = (centered**2).mean(axis=axis, keepdims=True)
    if ddof:
        variance = variance * x.shape[-1] / (x.shape[-1] - ddof)
    if outside:
        return gamma * centered / (np.sqrt(variance) + eps) + beta
    return gamma * centered / (np.sqrt(variance + eps) if root else variance + eps) + beta


def _norm_no_keepdims(x, gamma, beta, eps=1e-12):
    return gamma * (x - x.mean(axis=-1)) / np.sqrt(x.var(axis=-1) + eps) + beta


def _norm_loop(x, gamma, beta, eps=1e-12):
    result = np.zeros_like(x)
    for place in np.ndindex(x.shape[:-1]):
        row = [float(v) for v in x[place]]
        mean = sum(row) / len(row)
        variance = sum((v - mean) ** 2 for v in row) / len(row)
        result[place] = [g * (v - mean) / math.sqrt(variance + eps) + b
                         for v, g, b in zip(row, gamma, beta, strict=True)]
    return result


def _norm_case(*shape, offset=0.0, dtype="float64", **kwargs):
    """x of unit scale around `offset`, and a gamma and a beta that are not 1 and 0."""
    def make(rng):
        x = rng.normal(offset, 1.0, size=shape)
        gamma, beta = rng.normal(1.0, 0.5, size=shape[-1]), rng.normal(size=shape[-1])
        return tuple(a.astype(dtype) for a in (x, gamma, beta)), kwargs
    return make


# A large mean and a small variance: 134217728 with 0, 1, 2 and -1 added.
LARGE = 2.0**27 + np.array([0.0, 1.0, 2.0, -1.0])
LARGE_WHY = "squared, numbers this large leave no digits for a variance of 1.25"
CANCELLATION = (
    "Your variance is the mean of the squares minus the square of the mean. On paper that is the "
    "same; beside a large mean both are huge, and rounding leaves nothing of their difference. "
    "Subtract the mean first: the variance is the mean of (x - mean)**2."
)


def _cancelled(x, gamma, beta, eps=1e-12):
    mean = x.mean(axis=-1, keepdims=True)
    variance = (x**2).mean(axis=-1, keepdims=True) - mean**2
    return gamma * (x - mean) / np.sqrt(variance + eps) + beta


def _norm_of(*x, **kwargs):
    """A vector written out, with gamma 1 and beta 0."""
    return lambda rng: ((np.array(x), np.ones(len(x)), np.zeros(len(x))), kwargs)


register(
    name="layer_norm",
    lesson="04",
    reference=encoder.layer_norm,
    cases=[
        Case("the vector [1, 2, 3, 4]", _norm_of(1.0, 2.0, 3.0, 4.0),
             why="by hand: ±1.341641 and ±0.447214; the sample variance gives other numbers"),
        Case("2 sentences of 3 tokens, width 5", _norm_case(2, 3, 5, offset=2.0),
             why="every size differs"),
        Case("4 tokens of width 4", _norm_case(4, 4, offset=-1.0),
             why="a forgotten keepdims and a wrong axis run silently"),
        Case("[0.01, 0.03] with eps=1e-5", _norm_of(0.01, 0.03, eps=1e-5),
             why="eps under the root: ±0.953463"),
        Case("[0.001, 0.003] with the default eps", _norm_of(0.001, 0.003),
             why="±1.0000 with 1e-12, ±0.3015 with 1e-5"),
        Case("a vector of equal numbers", _norm_of(2.0, 2.0, 2.0),
             why="variance 0: without eps, 0 / 0"),
        Case("float32", _norm_case(2, 3, 4, dtype="float32")),
        Case("0, 1, 2 and -1 beside a mean of 134 million", _norm_of(*LARGE), why=LARGE_WHY),
    ],
    mistakes=[
        Mistake("whole_array", lambda x, gamma, beta, eps=1e-12: _normed(x, gamma, beta, eps,
                                                                         axis=None),
                "One mean and one variance for everything. Each token is normalized by itself: "
                "mean and variance along the last axis."),
        Mistake("over_tokens",
                lambda x, gamma, beta, eps=1e-12: _normed(x, gamma, beta, eps,
                                                          axis=tuple(range(x.ndim - 1))),
                "You normalize each feature over all tokens, which is batch normalization. Then a "
                "token's vector depends on the other sentences of the batch. Normalize over the "
                "features: axis=-1."),
        Mistake("first_axis",
                lambda x, gamma, beta, eps=1e-12: _normed(x, gamma, beta, eps, axis=0),
                "You normalize along the first axis, over sentences or tokens. A token's features "
                "are the last axis."),
        Mistake("no_keepdims", _norm_no_keepdims,
                "A mean along an axis drops that axis, and then NumPy subtracts each token's mean "
                "from the wrong place. Pass keepdims=True."),
        Mistake("not_centered",
                lambda x, gamma, beta, eps=1e-12: _normed(x, gamma, beta, eps, center=False),
                "You divide by the root mean square without subtracting the mean (RMSNorm, which "
                "later models use). LayerNorm centers first."),
        Mistake("only_centered", lambda x, gamma, beta, eps=1e-12: gamma * (
                    x - x.mean(axis=-1, keepdims=True)) + beta,
                "The mean is gone, the scale is not: divide by the standard deviation."),
        Mistake("by_variance",
                lambda x, gamma, beta, eps=1e-12: _normed(x, gamma, beta, eps, root=False),
                "You divide by the variance. Its square root, the standard deviation, is what "
                "brings the scale to 1."),
        Mistake("only_normalized",
                lambda x, gamma, beta, eps=1e-12: _normed(x, 1.0, 0.0, 0.0),
                "Normalized along the right axis; three arguments are not used yet. eps goes under "
                "the root, gamma multiplies the result, beta is added."),
        Mistake("no_gamma_beta",
                lambda x, gamma, beta, eps=1e-12: _normed(x, 1.0, 0.0, eps),
                "Normalized, but gamma and beta are not used: multiply by gamma, then add beta."),
        Mistake("names_swapped",
                lambda x, gamma, beta, eps=1e-12: _normed(x, beta, gamma, eps),
                "gamma and beta have changed places: gamma multiplies, beta is added."),
        Mistake("beta_first",
                lambda x, gamma, beta, eps=1e-12: gamma * _normed(x, 1.0, beta, eps),
                "You add beta and then multiply by gamma. First times gamma, then plus beta."),
        Mistake("sample_variance",
                lambda x, gamma, beta, eps=1e-12: _normed(x, gamma, beta, eps, ddof=1),
                "You divide the squares by d - 1, the variance of a sample. These d numbers are "
                "not a sample of more: divide by d, as np.var does."),
        Mistake("no_eps", lambda x, gamma, beta, eps=1e-12: _normed(x, gamma, beta, 0.0),
                "eps is not used. A vector of equal numbers has variance 0, and 0 / 0 is NaN: add "
                "eps to the variance, under the root."),
        Mistake("eps_outside",
                lambda x, gamma, beta, eps=1e-12: _normed(x, gamma, beta, eps, outside=True),
                "eps is added to the standard deviation. It belongs under the root: "
                "sqrt(variance + eps)."),
        Mistake("eps_fixed_1e-5",
                lambda x, gamma, beta, eps=1e-12: _normed(x, gamma, beta, 1e-5),
                "eps is always 1e-5 in yours, the default of many libraries. BERT's is 1e-12; use "
                "the argument `eps`."),
        Mistake("eps_fixed_1e-12",
                lambda x, gamma, beta, eps=1e-12: _normed(x, gamma, beta, 1e-12),
                "Right with the default; but the argument `eps` is not used."),
        Mistake("cancellation", _cancelled, CANCELLATION),
    ],
    also_right=[
        _norm_loop,
        lambda x, gamma, beta, eps=1e-12: gamma * (x - x.mean(-1, keepdims=True)) / np.sqrt(
            x.var(-1, keepdims=True) + eps) + beta,
        lambda x, gamma, beta, eps=1e-12: np.einsum(
            "...d,d->...d", x - np.mean(x, -1)[..., None],
            gamma) * (x.var(axis=-1) + eps)[..., None] ** -0.5 + beta,
    ],
    hints=[
        "Two numbers for each token: mean and variance of its features. Which axis is that?",
        "Along axis=-1 with keepdims=True. Subtract the mean, divide by np.sqrt(variance + eps), "
        "and only then come gamma and beta.",
        "centered = x - x.mean(axis=-1, keepdims=True); variance = (centered**2).mean(axis=-1, "
        "keepdims=True); return gamma * centered / np.sqrt(variance + eps) + beta",
    ],
)

# --- gelu ---------------------------------------------------------------------------------------


def _erf(x):
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _below(x):
    return 0.5 * (1 + _erf(x / 2**0.5))


def _gelu_loop(x):
    result = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        result[place] = x[place] * 0.5 * math.erfc(-x[place] / math.sqrt(2))
    return result


register(
    name="gelu",
    lesson="04",
    reference=encoder.gelu,
    cases=[
        Case("the numbers -1, 0 and 1", lambda rng: ((np.array([-1.0, 0.0, 1.0]),), {}),
             why="gelu(1) = 0.8413447, gelu(-1) = -0.1586553"),
        Case("near ±2.699", lambda rng: ((np.array([-2.699, 2.699]),), {}),
             why="where the tanh form is farthest off"),
        Case("2 tokens of width 3", lambda rng: ((rng.normal(size=(2, 3)),), {})),
        Case("far out: -40, -8, 8, 40",
             lambda rng: ((np.array([-40.0, -8.0, 8.0, 40.0]),), {})),
        Case("three axes, float32",
             lambda rng: ((rng.normal(size=(2, 2, 3)).astype("float32"),), {})),
    ],
    mistakes=[
        Mistake("relu", lambda x: np.maximum(x, 0),
                "This is ReLU, which cuts at 0. GELU lets a little of the negative side through: "
                "gelu(-1) is about -0.16."),
        Mistake("only_probability", _below,
                "This is the probability alone. GELU is x times it."),
        Mistake("density", lambda x: x * np.exp(-0.5 * x**2) / (2 * np.pi) ** 0.5,
                "You multiply x by the height of the bell curve at x. It is the area to the left "
                "of x, the probability of being below it, which erf gives."),
        Mistake("no_half", lambda x: x * (1 + _erf(x / 2**0.5)),
                "Twice too large: 1 + erf(...) goes from 0 to 2. A probability goes from 0 to 1, "
                "so halve it."),
        Mistake("no_root", lambda x: x * 0.5 * (1 + _erf(x)),
                "erf belongs to a bell curve of another width. Divide x by the root of 2 before "
                "erf."),
        Mistake("times_root", lambda x: x * 0.5 * (1 + _erf(x * 2**0.5)),
                "Inside erf, x is divided by the root of 2, not multiplied."),
        Mistake("silu", lambda x: x * 0.5 * (1 + np.tanh(x / 2)),
                "x times the sigmoid of x is SiLU, a cousin. GELU takes the probability of the "
                "normal distribution."),
        Mistake("sigmoid_form", lambda x: x * 0.5 * (1 + np.tanh(1.702 * x / 2)),
                "x * sigmoid(1.702 x) approximates GELU to 0.02. Use erf, which is exact."),
        Mistake("tanh_form", lambda x: x * 0.5 * (
                    1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
                "The tanh form: an approximation, up to 4.7e-4 off near 2.7. BERT's GELU is the "
                "exact one, with erf."),
    ],
    also_right=[
        _gelu_loop,
        lambda x: x * _below(x),
        lambda x: x / 2 + x * _erf(x / 2**0.5) / 2,
    ],
    hints=[
        "x times a probability: that a standard normal number is smaller than x. At x = 0 it is "
        "0.5.",
        "erf(x / root of 2) goes from -1 to 1. How do you bring that to the range 0 to 1?",
        "return x * 0.5 * (1 + erf(x / 2**0.5))",
    ],
)

# --- feed_forward -------------------------------------------------------------------------------


def _feed(x, w1, b1, w2, b2, act=gelu):
    return act(x @ w1 + b1) @ w2 + b2


def _feed_loop(x, w1, b1, w2, b2):
    result = np.zeros((*x.shape[:-1], w2.shape[1]), x.dtype)
    for place in np.ndindex(x.shape[:-1]):
        inner = [sum(a * w for a, w in zip(x[place], column, strict=True)) + b
                 for column, b in zip(w1.T, b1, strict=True)]
        result[place] = gelu(np.array(inner, dtype=x.dtype)) @ w2 + b2
    return result


def _feed_case(leading, d, d_ff, dtype="float64"):
    def make(rng):
        x, w1, b1, w2, b2 = (rng.normal(size=s) for s in (
            (*leading, d), (d, d_ff), (d_ff,), (d_ff, d), (d,)))
        return tuple(a.astype(dtype) for a in (x, w1 / d**0.5, b1, w2 / d_ff**0.5, b2)), {}
    return make


register(
    name="feed_forward",
    lesson="04",
    reference=encoder.feed_forward,
    cases=[
        Case("2 sentences of 3 tokens, width 4, 6 inside", _feed_case((2, 3), 4, 6)),
        Case("2 tokens, width 3, 3 inside", _feed_case((2,), 3, 3),
             why="a turned matrix runs silently"),
        Case("one token, width 2, 5 inside", _feed_case((), 2, 5)),
        Case("float32", _feed_case((2, 2), 3, 4, "float32")),
    ],
    mistakes=[
        Mistake("one_layer", lambda x, w1, b1, w2, b2: gelu(x @ w1 + b1),
                "You stop in the middle: the second layer, w2 and b2, brings the width back to d."),
        Mistake("no_gelu", lambda x, w1, b1, w2, b2: _feed(x, w1, b1, w2, b2, lambda z: z),
                "Between the two layers nothing bends. Two linear layers in a row are one linear "
                "layer: put gelu between them."),
        Mistake("relu", lambda x, w1, b1, w2, b2: _feed(x, w1, b1, w2, b2,
                                                        lambda z: np.maximum(z, 0)),
                "ReLU stood in the first transformer; BERT has GELU between the layers."),
        Mistake("tanh_form", lambda x, w1, b1, w2, b2: _feed(
                    x, w1, b1, w2, b2, lambda z: z * 0.5 * (1 + np.tanh(
                        (2 / np.pi) ** 0.5 * (z + 0.044715 * z**3)))),
                "The tanh form of GELU is close, not equal. Use `gelu`, the exact one."),
        Mistake("gelu_at_the_end", lambda x, w1, b1, w2, b2: gelu((x @ w1 + b1) @ w2 + b2),
                "gelu comes at the end. Between the two layers nothing bends, so they could be one "
                "matrix; and the output is cut off below."),
        Mistake("gelu_twice", lambda x, w1, b1, w2, b2: gelu(_feed(x, w1, b1, w2, b2)),
                "gelu once too often: the second layer's output stays as it is, so that it can "
                "also be negative."),
        Mistake("gelu_first", lambda x, w1, b1, w2, b2: (gelu(x) @ w1 + b1) @ w2 + b2,
                "gelu is applied to x, before the first layer. It belongs between the two."),
        Mistake("turned", lambda x, w1, b1, w2, b2: _feed(x, w1.T, b1, w2.T, b2),
                "You turn the matrices. Here they are stored (in, out), so x @ w1 fits as it "
                "stands. (Checkpoints of other libraries store (out, in): those are turned once, "
                "when they are loaded.)"),
        Mistake("bias_after_gelu", lambda x, w1, b1, w2, b2: (gelu(x @ w1) + b1) @ w2 + b2,
                "b1 is added after gelu. It shifts where gelu bends, so it comes before."),
        Mistake("no_last_bias", lambda x, w1, b1, w2, b2: gelu(x @ w1 + b1) @ w2,
                "b2 is missing: the second layer has a bias too."),
        Mistake("no_biases", lambda x, w1, b1, w2, b2: gelu(x @ w1) @ w2,
                "The biases are not used: x @ w1 + b1, and likewise b2."),
        Mistake("residual_inside", lambda x, w1, b1, w2, b2: x + _feed(x, w1, b1, w2, b2),
                "You add x. The layer does that, in the next step; the feed-forward network "
                "returns the change alone."),
    ],
    also_right=[
        _feed_loop,
        lambda x, w1, b1, w2, b2: _feed(x, w1, b1, w2, b2),
        lambda x, w1, b1, w2, b2: np.einsum(
            "...f,fd->...d", gelu(np.einsum("...d,df->...f", x, w1) + b1), w2) + b2,
        lambda x, w1, b1, w2, b2: linear(_gelu_loop(linear(x, w1, b1)), w2, b2),
    ],
    hints=[
        "Up to d_ff, bend, back to d. You have a function for each of the three.",
        "linear(x, w1, b1) is (..., d_ff). gelu does not change the shape. A second `linear` "
        "comes back to (..., d).",
        "return linear(gelu(linear(x, w1, b1)), w2, b2)",
    ],
)

# --- add_and_norm -------------------------------------------------------------------------------


def _add_case(*shape, change=1.0, dtype="float64"):
    def make(rng):
        x, f = rng.normal(size=(2, *shape))
        gamma, beta = rng.normal(1.0, 0.5, size=shape[-1]), rng.normal(size=shape[-1])
        return tuple(a.astype(dtype) for a in (x, change * f, gamma, beta)), {}
    return make


def _add_loop(x, change, gamma, beta):
    result = np.zeros_like(x)
    for place in np.ndindex(x.shape[:-1]):
        total = x[place] + change[place]
        centered = total - total.mean()
        result[place] = gamma * centered / np.sqrt((centered**2).mean() + 1e-12) + beta
    return result


register(
    name="add_and_norm",
    lesson="04",
    reference=layer_order.add_and_norm,
    cases=[
        Case("x = [1, 3] and a change of [1, 3]", lambda rng: (
            (np.array([1.0, 3.0]), np.array([1.0, 3.0]), np.ones(2), np.zeros(2)), {}),
            why="by hand: [-1, 1]; pre-LN would give [0, 4]"),
        Case("2 sentences of 3 tokens, width 4", _add_case(2, 3, 4)),
        Case("a change ten times as large as x", _add_case(3, 5, change=10.0)),
        Case("a small change", _add_case(2, 4, change=0.1)),
        Case("float32", _add_case(2, 3, dtype="float32")),
        Case("0, 1, 2 and -1 beside a mean of 134 million", lambda rng: (
            (np.full(4, LARGE[0]), LARGE - LARGE[0], np.ones(4), np.zeros(4)), {}),
            why=LARGE_WHY),
    ],
    mistakes=[
        Mistake("no_residual", lambda x, change, gamma, beta: layer_norm(change, gamma, beta),
                "What came in is lost: you normalize the change alone. Add x to it first."),
        Mistake("no_norm", lambda x, change, gamma, beta: x + change,
                "Added, but not normalized: layer_norm goes over the sum."),
        Mistake("pre_ln", lambda x, change, gamma, beta: x + layer_norm(change, gamma, beta),
                "You normalize the change and then add x. In BERT (post-LN) the sum is normalized: "
                "layer_norm(x + change)."),
        Mistake("x_normed", lambda x, change, gamma, beta: layer_norm(x, gamma, beta) + change,
                "You normalize x and then add the change. In BERT (post-LN) the sum is "
                "normalized."),
        Mistake("both_normed", lambda x, change, gamma, beta: layer_norm(
                    x, gamma, beta) + layer_norm(change, gamma, beta),
                "You normalize x and the change apart, which makes them count alike. Add first, "
                "then normalize once."),
        Mistake("multiplied", lambda x, change, gamma, beta: layer_norm(x * change, gamma, beta),
                "You multiply x by the change. They are added."),
        Mistake("subtracted", lambda x, change, gamma, beta: layer_norm(x - change, gamma, beta),
                "You subtract the change. It is added."),
        Mistake("no_gamma_beta", lambda x, change, gamma, beta: layer_norm(
                    x + change, np.ones_like(gamma), np.zeros_like(beta)),
                "gamma and beta are not passed on."),
        Mistake("cancellation", lambda x, change, gamma, beta: _cancelled(x + change, gamma, beta),
                CANCELLATION),
    ],
    also_right=[
        _add_loop,
        lambda x, change, gamma, beta: _normed(change + x, gamma, beta),
        lambda x, change, gamma, beta: gamma * layer_norm(
            np.add(x, change), np.ones_like(gamma), np.zeros_like(beta)) + beta,
    ],
    hints=[
        "The name says it, in the order in which it says it.",
        "First x + change, the residual; then one layer_norm over the sum.",
        "return layer_norm(x + change, gamma, beta)",
    ],
)

# --- dropout ------------------------------------------------------------------------------------


def dropout(x, rate, rng=None):
    """Drop each number with probability `rate` and scale up the others; without rng, do nothing.

    A dropped number becomes 0, a kept one is divided by 1 - rate. rng: np.random.Generator in
    training, None in use. Returns the shape and dtype of x.
    """
    if rng is None:
        return x
    kept = rng.random(x.shape) >= rate
    return np.where(kept, x / (1 - rate), 0).astype(x.dtype)


class RngWasAsked(Exception):
    """What `AsksMe` raises: something was drawn from it, as it should be."""


def _says_so(name):
    def method(self, *args, **kwargs):
        raise RngWasAsked(f"rng.{name} was called, as it should be")

    return method


class AsksMe(np.random.Generator):
    """A generator that raises RngWasAsked when something is drawn from it.

    A function that raises draws from the rng it was given. One that returns has its randomness from
    elsewhere, and a result that no seed of the caller's can repeat.
    """

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def __deepcopy__(self, memo):
        return AsksMe()

    def __repr__(self):
        return "an rng that raises RngWasAsked"


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and callable(getattr(np.random.Generator, _name)):
        setattr(AsksMe, _name, _says_so(_name))


def _drop_case(*shape, rate, training=True, dtype="float64"):
    def make(rng):
        x = rng.normal(3.0, 1.0, size=shape).astype(dtype)
        return (x, rate), ({"rng": np.random.default_rng(5)} if training else {})
    return make


def _compare_dropout(mine, right, args):
    """Right is any random choice of the right share, scaled rightly; None, or what is wrong."""
    x, rate = args[:2]
    if not isinstance(mine, np.ndarray) or mine.shape != x.shape:
        got = f"shape {mine.shape}" if isinstance(mine, np.ndarray) else type(mine).__name__
        return f"The result is of {got}; expected an array of the shape of x, {x.shape}."
    if mine.dtype.kind != "f":
        return f"The result holds {mine.dtype}; expected floats."
    if mine.dtype.itemsize < x.dtype.itemsize:
        return f"The result is {mine.dtype}; expected {x.dtype}, as x has it."
    close = {"rtol": 1e-5, "atol": 1e-6}
    if np.array_equal(right, x):  # rate 0, or not in training
        if np.allclose(mine, x, **close):
            return None
        return "Here nothing may change: the result must equal x."
    dropped = mine == 0
    share = float(dropped.mean())
    if not dropped.any():
        return f"Nothing was dropped; expected about {rate:.0%} of the numbers to be 0."
    kept = ~dropped
    if np.allclose(mine[kept], x[kept], **close):
        return (f"The kept numbers are as large as before; divided by 1 - rate = {1 - rate:g} they "
                "would keep the mean.")
    if not np.allclose(mine[kept], x[kept] / (1 - rate), **close):
        factor = float(np.median(mine[kept] / x[kept]))
        return (f"Kept numbers are {factor:.3g} times what they were; expected 1 / (1 - rate) = "
                f"{1 / (1 - rate):.3g} times.")
    margin = 6 * (rate * (1 - rate) / x.size) ** 0.5
    if abs(share - rate) > margin:
        return f"{share:.1%} of the numbers are 0; expected about {rate:.0%}."
    if any((dropped == dropped.take([0], axis=axis)).all() for axis in range(x.ndim)):
        return "All rows, or all columns, drop together; each number is drawn by itself."
    return None


def _drop(x, kept, factor):
    return np.where(kept, x * factor, 0).astype(x.dtype)


def _by_row(x, rate, rng=None):
    if rng is None:
        return x
    return _drop(x, rng.random(x.shape[-1]) >= rate, 1 / (1 - rate))


def _always(x, rate, rng=None):
    rng = rng if rng is not None else np.random.default_rng(0)
    return dropout(x, rate, rng)


def _gauss(x, rate, rng=None):
    return x if rng is None else _drop(x, rng.normal(size=x.shape) >= rate, 1 / (1 - rate))


def _drop_binomial(x, rate, rng=None):
    return x if rng is None else x * rng.binomial(1, 1 - rate, size=x.shape) / (1 - rate)


def _drop_loop(x, rate, rng=None):
    result = x.copy()
    if rng is not None:
        for place in np.ndindex(x.shape):
            result[place] = 0 if rng.random() < rate else x[place] / (1 - rate)
    return result


register(
    name="dropout",
    lesson="04",
    reference=dropout,
    compare=_compare_dropout,
    cases=[
        Case("training, rate 0.1", _drop_case(80, 50, rate=0.1),
             why="10 % and 90 % must not be mistaken for each other"),
        Case("training, rate 0.7, float32", _drop_case(60, 70, rate=0.7, dtype="float32")),
        Case("training, rate 0.5, three axes", _drop_case(20, 10, 20, rate=0.5)),
        Case("training, rate 0", _drop_case(3, 4, rate=0.0)),
        Case("in use: no rng", _drop_case(4, 5, rate=0.3, training=False),
             why="evaluation is deterministic and changes nothing"),
    ],
    raises=[Case("training, and an rng that raises RngWasAsked (draw from `rng`, not np.random)",
                 lambda rng: ((np.ones((3, 4)), 0.5), {"rng": AsksMe()}),
                 why="randomness from elsewhere cannot be repeated with a seed")],
    mistakes=[
        Mistake("never", lambda x, rate, rng=None: x,
                "Nothing is dropped. With an rng, each number is dropped with probability "
                "`rate`."),
        Mistake("not_scaled", lambda x, rate, rng=None: x if rng is None else _drop(
                    x, rng.random(x.shape) >= rate, 1.0),
                "Dropped, but the others are not scaled up. The next layer would see smaller sums "
                "in training than in use: divide what is kept by 1 - rate."),
        Mistake("wrong_rate", lambda x, rate, rng=None: x if rng is None else _drop(
                    x, rng.random(x.shape) < rate, 1 / (1 - rate)),
                "You keep with probability `rate`. It is the probability of being dropped."),
        Mistake("keeps_rate", lambda x, rate, rng=None: x if rng is None or rate == 0 else _drop(
                    x, rng.random(x.shape) < rate, 1 / rate),
                "You read `rate` as the share that is kept, and scale by 1 / rate. It is the share "
                "that is dropped."),
        Mistake("scaled_down", lambda x, rate, rng=None: x if rng is None else _drop(
                    x, rng.random(x.shape) >= rate, 1 - rate),
                "You multiply what is kept by 1 - rate, so it shrinks twice. Divide by it."),
        Mistake("scaled_in_use", lambda x, rate, rng=None: x * (1 - rate) if rng is None else _drop(
                    x, rng.random(x.shape) >= rate, 1.0),
                "This is the older form: drop without scaling, and scale down in use. Here the "
                "scaling belongs to training (inverted dropout), so that use changes nothing."),
        Mistake("also_in_use", _always,
                "You also drop without an rng. In use the encoder must give the same vectors each "
                "time: return x as it is."),
        Mistake("whole_columns", _by_row,
                "One draw for each feature, shared by all tokens: the shape of the draws must be "
                "x.shape."),
        Mistake("normal_draws", _gauss,
                "rng.normal draws from a bell curve, of which more than `rate` lies below `rate`. "
                "rng.random draws evenly from 0 to 1."),
        Mistake("own_rng", lambda x, rate, rng=None: x if rng is None else dropout(
                    x, rate, np.random.default_rng(0)),
                "You never ask the `rng` that you are given: you made one of your own, so the same "
                "numbers are dropped at every step. Draw with rng.random(x.shape)."),
    ],
    also_right=[
        _drop_loop,
        _drop_binomial,
        lambda x, rate, rng=None: x if rng is None else encoder.dropout(x, rate, rng)[0],
        lambda x, rate, rng=None: x if not rng else x * (rng.random(x.shape) > rate) / (1 - rate),
    ],
    hints=[
        "Two cases: without an rng, return x. With one, draw a number from 0 to 1 for each number "
        "of x.",
        "rng.random(x.shape) >= rate is True with probability 1 - rate: those are kept. By what "
        "must they grow, so that the mean stays?",
        "if rng is None: return x; kept = rng.random(x.shape) >= rate; return np.where(kept, x / "
        "(1 - rate), 0)",
    ],
)

# --- encoder_layer ------------------------------------------------------------------------------


def random_params(rng, d=8, d_ff=12, num_layers=1, vocab_size=0, max_length=0, dtype="float64"):
    """Parameters of a small encoder with nothing left at 0 or 1, so that each of them counts."""
    config = EncoderConfig(vocab_size or 1, d, num_layers, 1, d_ff, max_length or 1)
    params = {}
    for name, shape in encoder.parameter_shapes(config).items():
        if name.endswith("gamma"):
            params[name] = rng.normal(1.0, 0.3, size=shape)
        elif name.endswith(("beta", "bias")):
            params[name] = rng.normal(0.0, 0.5, size=shape)
        else:
            params[name] = rng.normal(size=shape) / (shape[0] ** 0.5 if "layers" in name else 1)
    return {name: array.astype(dtype) for name, array in params.items()}


def _parts(params):
    """The two norms and the feed-forward network's arrays of a layer."""
    norms = [[params[f"{s}.norm.{p}"] for p in ("gamma", "beta")]
             for s in ("attention", "feed_forward")]
    return *norms, [params[f"feed_forward.{p}.{k}"] for p in ("inner", "output")
                    for k in ("weight", "bias")]


def _layer(x, params, num_heads, mask=None, *, how):
    """A layer put together in one of the popular wrong ways."""
    one, two, feed = _parts(params)
    if how == "feed_forward_first":
        x = add_and_norm(x, feed_forward(x, *feed), *two)
        return add_and_norm(x, attend(x, params, num_heads, mask), *one)
    if how == "pre_ln":
        x = x + attend(layer_norm(x, *one), params, num_heads, mask)
        return x + feed_forward(layer_norm(x, *two), *feed)
    if how == "norms_swapped":
        one, two = two, one
    attended = attend(x, params, num_heads, mask)
    if how == "only_attention":
        return add_and_norm(x, attended, *one)
    if how == "no_residuals":
        middle = layer_norm(attended, *one)
        return layer_norm(feed_forward(middle, *feed), *two)
    if how == "no_first_residual":
        middle = layer_norm(attended, *one)
        return add_and_norm(middle, feed_forward(middle, *feed), *two)
    if how == "no_second_residual":
        middle = add_and_norm(x, attended, *one)
        return layer_norm(feed_forward(middle, *feed), *two)
    if how == "no_norms":
        middle = x + attended
        return middle + feed_forward(middle, *feed)
    if how == "one_norm":
        middle = x + attended
        return add_and_norm(middle, feed_forward(middle, *feed), *two)
    middle = add_and_norm(x, attended, *one)
    if how == "same_norm":
        return add_and_norm(middle, feed_forward(middle, *feed), *one)
    if how == "residual_from_start":
        return add_and_norm(x, feed_forward(middle, *feed), *two)
    if how == "feed_from_start":
        return add_and_norm(middle, feed_forward(x, *feed), *two)
    if how == "no_second_norm":
        return middle + feed_forward(middle, *feed)
    return add_and_norm(middle, feed_forward(middle, *feed), *two)  # norms_swapped


def _layer_wrong(how):
    return lambda x, params, num_heads, mask=None: _layer(x, params, num_heads, mask, how=how)


def _layer_case(batch, length, d, num_heads, mask=None, dtype="float64"):
    def make(rng):
        params = layer_params(random_params(rng, d, d + 4, dtype=dtype), 0)
        x = rng.normal(size=(batch, length, d)).astype(dtype)
        return (x, params, num_heads), ({} if mask is None else {"mask": mask})
    return make


def _layer_by_sentence(x, params, num_heads, mask=None):
    one, two, feed = _parts(params)
    done = []
    for i in range(len(x)):
        here = mask if mask is None or mask.ndim < 4 or len(mask) == 1 else mask[i:i + 1]
        middle = _add_loop(x[i:i + 1], attend(x[i:i + 1], params, num_heads, here), *one)
        done.append(_add_loop(middle, _feed(middle, *feed), *two))
    return np.concatenate(done)


def _layer_by_forward(x, params, num_heads, mask=None):
    return layer_order.forward(x, [params], num_heads, "post", mask=mask)[0][-1]


_PADDED = padding_mask(np.array([[1, 1, 1, 1], [1, 1, 0, 0]]))

register(
    name="encoder_layer",
    lesson="04",
    reference=layer_order.encoder_layer,
    cases=[
        Case("2 sentences of 3 tokens, width 8, 2 heads", _layer_case(2, 3, 8, 2)),
        Case("one sentence of 5 tokens, width 6, 3 heads", _layer_case(1, 5, 6, 3)),
        Case("padding hidden", _layer_case(2, 4, 8, 4, _PADDED)),
        Case("causal", _layer_case(1, 4, 4, 2, causal_mask(4))),
        Case("float32", _layer_case(2, 3, 4, 2, dtype="float32")),
    ],
    mistakes=[
        Mistake("only_attention", _layer_wrong("only_attention"),
                "You return after the first half. The feed-forward network and its add_and_norm "
                "come next."),
        Mistake("no_norms", _layer_wrong("no_norms"),
                "Residuals, but no LayerNorm: use add_and_norm after both steps."),
        Mistake("no_residuals", _layer_wrong("no_residuals"),
                "Each step replaces what came in. Add its change to it: add_and_norm(x, change, "
                "...), twice."),
        Mistake("no_first_residual", _layer_wrong("no_first_residual"),
                "Around the attention the residual is missing: x itself is lost there."),
        Mistake("no_second_residual", _layer_wrong("no_second_residual"),
                "Around the feed-forward network the residual is missing."),
        Mistake("pre_ln", _layer_wrong("pre_ln"),
                "This is a pre-LN layer: it normalizes what goes into each step. BERT is post-LN: "
                "it normalizes the sum, after each step."),
        Mistake("one_norm", _layer_wrong("one_norm"),
                "Only the second sum is normalized. A LayerNorm also stands between attention and "
                "feed-forward."),
        Mistake("no_second_norm", _layer_wrong("no_second_norm"),
                "The second sum is not normalized: add_and_norm after the feed-forward network "
                "too."),
        Mistake("feed_forward_first", _layer_wrong("feed_forward_first"),
                "The feed-forward network comes first in yours. Attention is the first step."),
        Mistake("residual_from_start", _layer_wrong("residual_from_start"),
                "The second residual adds the layer's first input. It adds what went into the "
                "feed-forward network."),
        Mistake("feed_from_start", _layer_wrong("feed_from_start"),
                "The feed-forward network gets the layer's first input. It works on what the "
                "attention step has made of it."),
        Mistake("same_norm", _layer_wrong("same_norm"),
                "Both sums use the attention's gamma and beta. The second has its own, under "
                "feed_forward.norm."),
        Mistake("norms_swapped", _layer_wrong("norms_swapped"),
                "The two LayerNorms have changed places: attention.norm comes after the "
                "attention."),
        Mistake("mask_ignored",
                lambda x, params, num_heads, mask=None: encoder_layer(x, params, num_heads),
                "Right without a mask; with one, nothing is hidden. Pass `mask` on to attend."),
        Mistake("one_head",
                lambda x, params, num_heads, mask=None: encoder_layer(x, params, 1, mask),
                "You compute one head of the whole width: pass `num_heads` on to attend."),
    ],
    also_right=[_layer_by_sentence, _layer_by_forward],
    hints=[
        "Two steps, and after each one add_and_norm. What goes into the second step?",
        "change = attend(x, params, num_heads, mask); x = add_and_norm(x, change, gamma, beta) "
        "with attention.norm's gamma and beta. Then the same with feed_forward, from the new x.",
        "The second half: change = feed_forward(x, params[\"feed_forward.inner.weight\"], "
        "params[\"feed_forward.inner.bias\"], and the two of feed_forward.output); return "
        "add_and_norm(x, change, ...) with feed_forward.norm's gamma and beta.",
    ],
)

# --- encode -------------------------------------------------------------------------------------


def _encode(input_ids, attention_mask, params, num_layers, num_heads, *, how="",
            layer=encoder_layer):
    """The stack put together in one of the popular wrong ways."""
    length = input_ids.shape[1]
    x = params["embeddings.token"][input_ids]
    if how != "no_segment":
        x = x + params["embeddings.segment"][1 if how == "segment_1" else 0]
    if how == "positions_shifted":
        x = x + params["embeddings.position"][1:length + 1]
    elif how != "no_positions":
        x = x + params["embeddings.position"][:length]
    norm = [params[f"embeddings.norm.{part}"] for part in ("gamma", "beta")]
    if how not in ("no_embedding_norm", "norm_at_the_end"):
        x = layer_norm(x, *norm)
    numbers = {"backward": range(num_layers - 1, -1, -1), "one_too_few": range(num_layers - 1),
               "same_layer": [0] * num_layers, "only_first": [0],
               "no_layers": []}.get(how, range(num_layers))
    mask = None if how == "mask_ignored" else padding_mask(attention_mask)
    for i in numbers:
        x = layer(x, layer_params(params, i), num_heads, mask)
    return layer_norm(x, *norm) if how in ("norm_at_the_end", "norm_again") else x


def _encode_wrong(how):
    return lambda input_ids, attention_mask, params, num_layers, num_heads: _encode(
        input_ids, attention_mask, params, num_layers, num_heads, how=how)


def _encode_by_class(input_ids, attention_mask, params, num_layers, num_heads):
    vocab_size, d = params["embeddings.token"].shape
    config = EncoderConfig(vocab_size, d, num_layers, num_heads,
                           len(params["layers.0.feed_forward.inner.bias"]),
                           len(params["embeddings.position"]))
    # forward, because calling the encoder leaves out what nobody reads: the rows of padding
    return encoder.Encoder(config, params).forward(input_ids, attention_mask)[0]


def _encode_case(real, num_layers, num_heads, d=8, dtype="float64"):
    def make(rng):
        attention_mask = (np.arange(max(real)) < np.array(real)[:, None]).astype(int)
        params = random_params(rng, d, d + 4, num_layers, 20, max(real) + 3, dtype)
        ids = rng.integers(0, 20, size=attention_mask.shape)
        return (ids, attention_mask, params, num_layers, num_heads), {}
    return make


register(
    name="encode",
    lesson="04",
    reference=layer_order.encode,
    rtol=1e-5,
    cases=[
        Case("2 sentences, 2 layers, 2 heads", _encode_case((4, 4), 2, 2)),
        Case("padding in the second sentence, 3 layers", _encode_case((5, 2), 3, 4)),
        Case("3 sentences, 1 layer", _encode_case((3, 1, 2), 1, 2, d=4)),
        Case("float32, 2 layers", _encode_case((3, 2), 2, 2, dtype="float32")),
    ],
    mistakes=[
        Mistake("no_layers", _encode_wrong("no_layers"),
                "These are the embeddings. Send them through the layers."),
        Mistake("only_first", _encode_wrong("only_first"),
                "One layer only. Repeat for i in range(num_layers)."),
        Mistake("same_layer", _encode_wrong("same_layer"),
                "Layer 0 is used each time. Every layer has weights of its own: "
                "layer_params(params, i)."),
        Mistake("one_too_few", _encode_wrong("one_too_few"),
                "The last layer is missing."),
        Mistake("backward", _encode_wrong("backward"),
                "The layers run from last to first. Layer 0 sees the embeddings."),
        Mistake("no_embedding_norm", _encode_wrong("no_embedding_norm"),
                "The LayerNorm after the embeddings is missing: embeddings.norm. Without it the "
                "first layer sees vectors of another scale."),
        Mistake("norm_at_the_end", _encode_wrong("norm_at_the_end"),
                "embeddings.norm is used after the last layer. It belongs between the embeddings "
                "and the first layer."),
        Mistake("norm_again", _encode_wrong("norm_again"),
                "One LayerNorm too many at the end. A post-LN layer ends with its own; an extra "
                "one is what a pre-LN stack needs."),
        Mistake("no_positions", _encode_wrong("no_positions"),
                "The position vectors are missing: the encoder would not know the order of the "
                "words."),
        Mistake("positions_shifted", _encode_wrong("positions_shifted"),
                "The positions start at 1. They start at 0."),
        Mistake("no_segment", _encode_wrong("no_segment"),
                "The segment vector is missing: row 0 of embeddings.segment is added to every "
                "token."),
        Mistake("segment_1", _encode_wrong("segment_1"),
                "You add row 1 of the segments. A single sentence is segment 0."),
        Mistake("mask_ignored", _encode_wrong("mask_ignored"),
                "Padding is not hidden: give every layer padding_mask(attention_mask)."),
        Mistake("all_causal", lambda input_ids, attention_mask, params, num_layers, num_heads:
                _encode(input_ids, attention_mask, params, num_layers, num_heads,
                        layer=lambda x, p, h, mask: encoder_layer(
                            x, p, h, mask & causal_mask(x.shape[1]))),
                "A causal mask is in it. An encoder hides padding only, so that each token sees "
                "both sides."),
        Mistake("pre_ln", lambda input_ids, attention_mask, params, num_layers, num_heads:
                _encode(input_ids, attention_mask, params, num_layers, num_heads,
                        layer=_layer_wrong("pre_ln")),
                "These are pre-LN layers. Use encoder_layer, which is post-LN as in BERT."),
    ],
    also_right=[
        _encode_by_class,
        lambda input_ids, attention_mask, params, num_layers, num_heads: np.concatenate([
            _encode(input_ids[i:i + 1], attention_mask[i:i + 1], params, num_layers, num_heads,
                    layer=_layer_by_sentence) for i in range(len(input_ids))]),
    ],
    hints=[
        "Three vectors are added for each token, one LayerNorm follows, then the layers in turn.",
        "The position table has more rows than the sentence has tokens: take [:length]. All "
        "tokens are of segment 0. Every layer gets padding_mask(attention_mask).",
        "After x = layer_norm(the sum, embeddings.norm's gamma and beta): for i in "
        "range(num_layers): x = encoder_layer(x, layer_params(params, i), num_heads, "
        "padding_mask(attention_mask))",
    ],
)

# --- count_parameters ---------------------------------------------------------------------------


def count_parameters(config):
    """How many numbers BERT learns, by part: a dict of five counts.

    "embeddings" (three tables and their LayerNorm), "attention", "feed_forward" and "layer_norms"
    (over all layers), and "pooler" (one more d_model by d_model linear layer).
    """
    d, d_ff, n = config.d_model, config.d_ff, config.num_layers
    rows = config.vocab_size + config.max_length + config.num_segments
    return {
        "embeddings": rows * d + 2 * d,
        "attention": n * 4 * (d * d + d),
        "feed_forward": n * (d * d_ff + d_ff + d_ff * d + d),
        "layer_norms": n * 2 * 2 * d,
        "pooler": d * d + d,
    }


def _count_by_shapes(config):
    counts = dict.fromkeys(("embeddings", "attention", "feed_forward", "layer_norms", "pooler"), 0)
    for name, shape in encoder.parameter_shapes(config).items():
        part = ("embeddings" if name.startswith("embeddings") else "layer_norms" if "norm" in name
                else "attention" if "attention" in name else "feed_forward")
        counts[part] += math.prod(shape)
    return counts | {"pooler": config.d_model * (config.d_model + 1)}


def _count_by_table(config):
    table = dict(encoder.parameter_table(config))
    d = config.d_model
    return {"embeddings": sum(v for k, v in table.items() if "embeddings" in k) + 2 * d,
            "attention": table["attention"], "feed_forward": table["feed-forward"],
            "layer_norms": table["layer norms"] - 2 * d, "pooler": d * d + d}


def _count(**other):
    """Counts with some parts replaced: each a function of the configuration and the right count."""
    return lambda config: {part: other[part](config, right) if part in other else right
                           for part, right in count_parameters(config).items()}


def _config(vocab_size, d, num_layers, num_heads, d_ff, max_length, num_segments=2):
    return lambda rng: ((EncoderConfig(vocab_size, d, num_layers, num_heads, d_ff, max_length,
                                       num_segments),), {})


register(
    name="count_parameters",
    lesson="04",
    reference=count_parameters,
    cases=[
        Case("BERT-base", _config(30522, 768, 12, 12, 3072, 512)),
        Case("a small encoder, d_ff not four times the width", _config(3000, 64, 2, 4, 100, 48)),
        Case("one layer, three segments", _config(50, 6, 1, 3, 10, 7, 3)),
        Case("24 layers", _config(100, 32, 24, 8, 128, 64, 1)),
    ],
    mistakes=[
        Mistake("one_layer", _count(**{part: lambda c, right: right // c.num_layers for part in
                                       ("attention", "feed_forward", "layer_norms")}),
                "Counted for one layer. Each of the num_layers layers has weights of its own."),
        Mistake("times_heads", _count(attention=lambda c, right: right * c.num_heads),
                "You multiply by the number of heads. The heads share one matrix of width d_model "
                "between them; more heads are narrower heads."),
        Mistake("no_biases", _count(
                    attention=lambda c, right: c.num_layers * 4 * c.d_model**2,
                    feed_forward=lambda c, right: c.num_layers * 2 * c.d_model * c.d_ff,
                    pooler=lambda c, right: c.d_model**2),
                "Only the weights are counted. Each linear layer also has a bias, one number for "
                "each output."),
        Mistake("no_attention_biases", _count(
                    attention=lambda c, right: 4 * c.num_layers * c.d_model**2),
                "The four projections of attention have biases too: d_model numbers each."),
        Mistake("no_output", _count(attention=lambda c, right: right // 4 * 3),
                "Query, key and value are counted, the attention's output projection is not: four "
                "matrices."),
        Mistake("d_ff_assumed", _count(feed_forward=lambda c, right: c.num_layers * (
                    8 * c.d_model**2 + 5 * c.d_model)),
                "You take d_ff as 4 * d_model. That is a custom, not a rule: use config.d_ff."),
        Mistake("one_matrix", _count(feed_forward=lambda c, right: c.num_layers * (
                    c.d_model * c.d_ff + c.d_ff)),
                "The feed-forward network has two linear layers: d_model to d_ff, and back."),
        Mistake("same_bias", _count(feed_forward=lambda c, right: c.num_layers * (
                    2 * c.d_model * c.d_ff + 2 * c.d_model)),
                "The two biases differ in length: the first layer puts out d_ff numbers, the "
                "second d_model."),
        Mistake("one_norm", _count(layer_norms=lambda c, right: right // 2),
                "There are two LayerNorms in a layer, each with a gamma and a beta."),
        Mistake("only_tokens", _count(
                    embeddings=lambda c, right: c.vocab_size * c.d_model + 2 * c.d_model),
                "Only the token table is counted. Positions and segments have tables too."),
        Mistake("no_segments", _count(
                    embeddings=lambda c, right: right - c.num_segments * c.d_model),
                "The segment table is missing: num_segments rows."),
        Mistake("no_embedding_norm", _count(embeddings=lambda c, right: right - 2 * c.d_model),
                "The LayerNorm after the embeddings is missing: a gamma and a beta."),
        Mistake("no_pooler", _count(pooler=lambda c, right: 0),
                "The pooler is missing: a linear layer from d_model to d_model."),
    ],
    also_right=[_count_by_shapes, _count_by_table],
    hints=[
        "A linear layer from a to b has a * b + b numbers; a LayerNorm has 2 * d. How many of each "
        "are in a layer?",
        "Attention: four linear layers, d to d. Feed-forward: d to d_ff, and d_ff to d. Two "
        "LayerNorms. All that times num_layers. The three tables have vocab_size, max_length and "
        "num_segments rows.",
        "attention: num_layers * 4 * (d * d + d); feed_forward: num_layers * (d * d_ff + d_ff + "
        "d_ff * d + d); layer_norms: num_layers * 4 * d; pooler: d * d + d; embeddings: rows * d "
        "+ 2 * d.",
    ],
)
