"""Lesson 02's exercises: projections, heads, what attention costs, and attention in blocks."""

import numpy as np

from course.exercises import Case, Mistake, _unstable, register
from solutions import attention, multi_head
from solutions.attention import merge_heads, scaled_dot_product_attention, softmax, split_heads
from solutions.multi_head import absorb_block

# --- self_attention -----------------------------------------------------------------------------


def self_attention(x, w_query, w_key, w_value, mask=None):
    """Output (n, v) and weights (n, n): every token of x asks all tokens of x.

    x: (n, d). w_query and w_key: (d, w). w_value: (d, v). mask: Boolean, (n, n), or None.
    """
    return scaled_dot_product_attention(x @ w_query, x @ w_key, x @ w_value, mask)


def _attend(query, key, value, mask=None, scale=None, softmax=softmax):
    """Attention, the scores divided by the root of `scale` in place of the width."""
    scores = query @ np.swapaxes(key, -1, -2) / (scale or query.shape[-1]) ** 0.5
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return weights @ value, weights


def _self_loop(x, w_query, w_key, w_value, mask=None):
    n = len(x)
    weights = np.zeros((n, n))
    keys, values = [row @ w_key for row in x], [row @ w_value for row in x]
    for i in range(n):
        seen = [j for j in range(n) if mask is None or mask[i, j]]
        query = x[i] @ w_query
        scores = [query @ keys[j] / len(query) ** 0.5 for j in seen]
        powers = [np.exp(score - max(scores)) for score in scores]
        for j, power in zip(seen, powers, strict=True):
            weights[i, j] = power / sum(powers)
    return weights @ np.array(values), weights


def _projections(n, d, w, v, masked=False):
    """x of n tokens and three matrices, small enough that the softmax does not saturate."""
    def make(rng):
        x = rng.normal(size=(n, d))
        matrices = [rng.normal(size=(d, k)) / d**0.5 for k in (w, w, v)]
        return (x, *matrices), ({"mask": attention.causal_mask(n)} if masked else {})
    return make


def _projections_far(rng):
    return (np.eye(3), *_unstable.far_vectors(), rng.normal(size=(3, 2))), {}


register(
    name="self_attention",
    lesson="02",
    reference=self_attention,
    parts=("output", "weights"),
    cases=[
        Case("3 tokens of width 4, heads of width 2, values of width 5", _projections(3, 4, 2, 5),
             why="every size differs"),
        Case("4 tokens, all of width 4", _projections(4, 4, 4, 4),
             why="a turned matrix runs silently"),
        Case("5 tokens under a causal mask", _projections(5, 4, 3, 3, masked=True)),
        Case("scores of 2000 beside 1999, and a row of -2000", _projections_far,
             why=_unstable.WHY),
    ],
    mistakes=[
        Mistake("only_output", lambda *args, **kw: self_attention(*args, **kw)[0],
                "You return the output alone. Return two things, (output, weights), as "
                "scaled_dot_product_attention does."),
        Mistake("weights_first", lambda *args, **kw: self_attention(*args, **kw)[::-1],
                "Both are right, in the other order: first the output, then the weights."),
        Mistake("unprojected",
                lambda x, w_query, w_key, w_value, mask=None: _attend(x, x, x, mask),
                "You pass x itself as query, key and value: the three matrices are not used. "
                "Multiply x by each of them first."),
        Mistake("value_unprojected",
                lambda x, w_query, w_key, w_value, mask=None: _attend(x @ w_query, x @ w_key, x,
                                                                      mask),
                "Query and key are projected, the value is not: what is handed over is x @ "
                "w_value."),
        Mistake("one_matrix",
                lambda x, w_query, w_key, w_value, mask=None: _attend(x @ w_query, x @ w_query,
                                                                      x @ w_value, mask),
                "Query and key both come from w_query. Then what a token looks for is also what it "
                "offers: the key is x @ w_key."),
        Mistake("keys_for_values",
                lambda x, w_query, w_key, w_value, mask=None: _attend(x @ w_query, x @ w_key,
                                                                      x @ w_key, mask),
                "You average the keys. A key says how a token is found, the value what it hands "
                "over: x @ w_value."),
        Mistake("query_and_key_swapped",
                lambda x, w_query, w_key, w_value, mask=None: _attend(x @ w_key, x @ w_query,
                                                                      x @ w_value, mask),
                "Query and key have changed places: the row that asks is x @ w_query."),
        Mistake("turned",
                lambda x, w_query, w_key, w_value, mask=None: _attend(
                    x @ w_query.T, x @ w_key.T, x @ w_value.T, mask),
                "You turn the matrices. They are stored (in, out), so x @ w_query fits as it "
                "stands; where in and out are equal, the turned one runs too and is wrong."),
        Mistake("scaled_by_model",
                lambda x, w_query, w_key, w_value, mask=None: _attend(
                    x @ w_query, x @ w_key, x @ w_value, mask, scale=x.shape[-1]),
                "The scores are divided by the root of x's width. Divide by the root of the "
                "query's width, which is what the dot product runs over."),
        Mistake("unscaled",
                lambda x, w_query, w_key, w_value, mask=None: _attend(
                    x @ w_query, x @ w_key, x @ w_value, mask, scale=1),
                "The scores are not divided by the root of the query's width. "
                "scaled_dot_product_attention does it for you."),
        Mistake("mask_ignored",
                lambda x, w_query, w_key, w_value, mask=None: _attend(x @ w_query, x @ w_key,
                                                                      x @ w_value),
                "Right without a mask; with one, nothing is hidden. Pass `mask` on."),
        *_unstable.mistakes(
            lambda softmax: lambda x, w_query, w_key, w_value, mask=None: _attend(
                x @ w_query, x @ w_key, x @ w_value, mask, softmax=softmax)),
    ],
    also_right=[
        _self_loop,
        lambda x, w_query, w_key, w_value, mask=None: _attend(
            np.einsum("nd,dw->nw", x, w_query), np.einsum("nd,dw->nw", x, w_key),
            np.einsum("nd,dv->nv", x, w_value), mask),
        lambda x, w_query, w_key, w_value, mask=None: scaled_dot_product_attention(
            *np.split(x @ np.concatenate([w_query, w_key, w_value], axis=1),
                      [w_query.shape[1], 2 * w_query.shape[1]], axis=1), mask=mask),
    ],
    hints=[
        "Three matrix products make query, key and value out of x. The rest you built in lesson "
        "01.",
        "query = x @ w_query, and likewise key and value. Then scaled_dot_product_attention; do "
        "not forget the mask.",
        "return scaled_dot_product_attention(x @ w_query, x @ w_key, x @ w_value, mask)",
    ],
)

# --- split_heads --------------------------------------------------------------------------------


def _numbered(*shape, dtype="float64"):
    """Numbers 0, 1, 2, ...: whoever reads the message can see where each of them went."""
    return lambda rng: np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def _split_case(batch, length, d, num_heads, dtype="float64"):
    make = _numbered(batch, length, d, dtype=dtype)
    return lambda rng: ((make(rng), num_heads), {})


def _split_reshape(x, num_heads):
    batch, length, d = x.shape
    return x.reshape(batch, num_heads, length, d // num_heads)


def _split_interleaved(x, num_heads):
    batch, length, d = x.shape
    return x.reshape(batch, length, d // num_heads, num_heads).transpose(0, 3, 1, 2)


def _split_by_slices(x, num_heads):
    width = x.shape[-1] // num_heads
    return np.stack([x[..., h * width:(h + 1) * width] for h in range(num_heads)], axis=1)


def _split_loop(x, num_heads):
    batch, length, d = x.shape
    width = d // num_heads
    heads = np.zeros((batch, num_heads, length, width), dtype=x.dtype)
    for h in range(num_heads):
        for j in range(width):
            heads[:, h, :, j] = x[:, :, h * width + j]
    return heads


register(
    name="split_heads",
    lesson="02",
    reference=attention.split_heads,
    cases=[
        Case("the numbers 0 to 7: 2 tokens of width 4, two heads", _split_case(1, 2, 4, 2),
             why="reshape alone gives the right shape here"),
        Case("a batch of 2, 3 tokens of width 8, two heads", _split_case(2, 3, 8, 2),
             why="every size differs, so that a wrong order of axes shows"),
        Case("3 tokens of width 12, four heads", _split_case(1, 3, 12, 4)),
        Case("one head", _split_case(2, 3, 4, 1)),
        Case("float32", _split_case(1, 2, 6, 3, "float32")),
    ],
    mistakes=[
        Mistake("reshape_alone", _split_reshape,
                "The shape is right and the numbers are not: a reshape keeps them in reading "
                "order, so your head 0 got whole tokens. First reshape to (batch, length, heads, "
                "width), then swap length and heads."),
        Mistake("not_transposed",
                lambda x, num_heads: x.reshape(*x.shape[:2], num_heads, -1),
                "Each head has its slice, but the axes are (batch, length, heads, width). "
                "Attention runs over the last two, so heads must come before length."),
        Mistake("interleaved", _split_interleaved,
                "Your head 0 takes every k-th number of a token. A head's numbers lie side by "
                "side: reshape the last axis to (num_heads, width), not (width, num_heads)."),
        Mistake("width_before_length",
                lambda x, num_heads: attention.split_heads(x, num_heads).swapaxes(-1, -2),
                "Your last two axes are (width, length). The last axis is the one that dot "
                "products run over: it must be the width."),
        Mistake("heads_first",
                lambda x, num_heads: attention.split_heads(x, num_heads).transpose(1, 0, 2, 3),
                "Your axes are (heads, batch, length, width). The batch stays in front."),
        Mistake("float_width", lambda x, num_heads: x.reshape(*x.shape[:2], num_heads,
                                                              x.shape[2] / num_heads),
                "`/` makes a float, and a shape takes whole numbers: the width of a head is "
                "d // num_heads."),
        Mistake("heads_is_width",
                lambda x, num_heads: attention.split_heads(x, x.shape[-1] // num_heads),
                "You made heads of width num_heads. num_heads is how many there are; the width is "
                "d // num_heads."),
    ],
    also_right=[
        _split_by_slices,
        _split_loop,
        lambda x, num_heads: np.stack(np.split(x, num_heads, axis=-1), axis=1),
        lambda x, num_heads: np.swapaxes(x.reshape(*x.shape[:2], num_heads, -1), 1, 2),
    ],
    hints=[
        "Head h gets the h-th slice of every token's vector. Which axis of x is to be cut in "
        "pieces, and which axes stay as they are?",
        "Two steps. Cut the last axis in two, (batch, length, num_heads, width); then swap two "
        "axes, so that every head has all tokens.",
        "x.reshape(batch, length, num_heads, d // num_heads).transpose(0, 2, 1, 3)",
    ],
)

# --- merge_heads --------------------------------------------------------------------------------


def _merge_case(batch, heads, length, width):
    make = _numbered(batch, heads, length, width)
    return lambda rng: ((make(rng),), {})


def _merge_reshape(x):
    batch, num_heads, length, width = x.shape
    return x.reshape(batch, length, num_heads * width)


def _merge_loop(x):
    batch, num_heads, length, width = x.shape
    merged = np.zeros((batch, length, num_heads * width), dtype=x.dtype)
    for h in range(num_heads):
        merged[:, :, h * width:(h + 1) * width] = x[:, h]
    return merged


register(
    name="merge_heads",
    lesson="02",
    reference=attention.merge_heads,
    cases=[
        Case("two heads, 3 tokens, width 4", _merge_case(1, 2, 3, 4)),
        Case("a batch of 2, three heads, 4 tokens, width 5", _merge_case(2, 3, 4, 5),
             why="every size differs"),
        Case("one head", _merge_case(2, 1, 3, 4)),
        Case("two heads, 2 tokens, width 2", _merge_case(1, 2, 2, 2),
             why="every order of axes runs here"),
    ],
    mistakes=[
        Mistake("reshape_alone", _merge_reshape,
                "The shape is right and the numbers are not: the heads were not brought back to "
                "their token first. Swap heads and length, then reshape."),
        Mistake("not_merged", lambda x: x.transpose(0, 2, 1, 3),
                "Heads and length are swapped; one step is missing: put the last two axes, "
                "(heads, width), together as one."),
        Mistake("interleaved",
                lambda x: x.transpose(0, 2, 3, 1).reshape(len(x), x.shape[2], -1),
                "The numbers of the heads alternate within a token. A head's numbers lie side by "
                "side: the axes before the reshape are (batch, length, heads, width)."),
        Mistake("mean", lambda x: x.mean(axis=1),
                "You average the heads. Then what one found is mixed with what another found, "
                "which is what heads are there to avoid: put them side by side."),
        Mistake("sum", lambda x: x.sum(axis=1),
                "You add the heads up. Put them side by side; how they are mixed is for the output "
                "projection to decide."),
    ],
    also_right=[
        _merge_loop,
        lambda x: np.concatenate(list(np.moveaxis(x, 1, 0)), axis=-1),
        lambda x: np.swapaxes(x, 1, 2).reshape(x.shape[0], x.shape[2], -1),
    ],
    hints=[
        "The two steps of split_heads backward, in the opposite order.",
        "First swap heads and length; then (heads, width) become one axis of size heads * width.",
        "batch, num_heads, length, width = x.shape, then x.transpose(0, 2, 1, 3).reshape(batch, "
        "length, num_heads * width)",
    ],
)

# --- multi_head_attention -----------------------------------------------------------------------


def _heads_case(batch, length, d, num_heads, mask=None, dtype="float64"):
    """x, a dict of four weights and biases of unit scale, the number of heads, perhaps a mask."""
    def make(rng):
        x = rng.normal(size=(batch, length, d)).astype(dtype)
        params = {}
        for part in multi_head.PARTS:
            params[part + ".weight"] = (rng.normal(size=(d, d)) / d**0.5).astype(dtype)
            params[part + ".bias"] = (0.5 * rng.normal(size=d)).astype(dtype)
        return (x, params, num_heads), ({} if mask is None else {"mask": mask})
    return make


def _heads(x, params, num_heads, mask=None, *, wrong="", softmax=softmax):
    """Multi-head attention with one part done wrongly, for the mistakes below."""
    def project(part, vectors):
        weight = params[part + ".weight"]
        result = vectors @ (weight.T if wrong == "turned" else weight)
        left_out = wrong == "no_bias" or (wrong == "no_output_bias" and part == "output")
        return result if left_out else result + params[part + ".bias"]

    split = _split_reshape if wrong == "reshape_split" else split_heads
    merge = _merge_reshape if wrong == "reshape_merge" else merge_heads
    num_heads = 1 if wrong == "one_head" else num_heads
    query, key, value = (project(part, x) for part in ("query", "key", "value"))
    if wrong == "split_before":
        query, key, value = (split_heads(x, num_heads) for _ in range(3))
    else:
        query, key, value = (split(part, num_heads) for part in (query, key, value))
    if wrong == "roles_swapped":
        query, key = key, query
    if wrong == "keys_for_values":
        value = key
    scale = {"by_model": x.shape[-1], "by_heads": num_heads}.get(wrong)
    output, weights = _attend(query, key, value, None if wrong == "mask_ignored" else mask, scale,
                              softmax)
    if wrong == "mean_weights":
        weights = weights.mean(axis=1)
    merged = output if wrong == "not_merged" else merge(output)
    return (merged if wrong == "no_output" else project("output", merged)), weights


def _wrongly(name):
    return lambda x, params, num_heads, mask=None: _heads(x, params, num_heads, mask, wrong=name)


def _heads_by_slices(x, params, num_heads, mask=None):
    d = x.shape[-1]
    width = d // num_heads
    total, every = params["output.bias"] + np.zeros_like(x), []
    masks = None
    if mask is not None:
        masks = np.broadcast_to(mask, (len(x), num_heads, x.shape[1], x.shape[1]))
    for h in range(num_heads):
        own = slice(h * width, (h + 1) * width)
        query, key, value = (x @ params[p + ".weight"][:, own] + params[p + ".bias"][own]
                             for p in ("query", "key", "value"))
        output, weights = _attend(query, key, value, None if masks is None else masks[:, h])
        total = total + output @ params["output.weight"][own]
        every.append(weights)
    return total, np.stack(every, axis=1)


def _heads_einsum(x, params, num_heads, mask=None):
    def project(part):
        weight = params[part + ".weight"].reshape(x.shape[-1], num_heads, -1)
        bias = params[part + ".bias"].reshape(num_heads, 1, -1)
        return np.einsum("bnd,dhw->bhnw", x, weight) + bias

    output, weights = scaled_dot_product_attention(project("query"), project("key"),
                                                   project("value"), mask)
    last = params["output.weight"].reshape(num_heads, -1, x.shape[-1])
    return np.einsum("bhnw,hwd->bnd", output, last) + params["output.bias"], weights


def _heads_far(rng):
    """One head of width 4 and no biases before it, so that the scores are _unstable.FAR."""
    params = {f"{part}.weight": rng.normal(size=(4, 4)) for part in ("value", "output")}
    for part, rows in zip(("query", "key"), _unstable.far_vectors(), strict=True):
        params[part + ".weight"] = np.concatenate([rows, np.zeros((1, 4))])
    params |= {f"{part}.bias": np.zeros(4) for part in ("query", "key", "value", "output")}
    return (np.eye(3, 4)[None], params, 1), {}


_TWO_REAL = np.array([[True, True, True], [True, True, False]])[:, None, None, :]

register(
    name="multi_head_attention",
    lesson="02",
    reference=multi_head.multi_head_attention,
    parts=("output", "weights"),
    cases=[
        Case("a batch of 2, 3 tokens of width 8, two heads", _heads_case(2, 3, 8, 2),
             why="every size differs"),
        Case("5 tokens of width 6, three heads", _heads_case(1, 5, 6, 3)),
        Case("4 tokens of width 4, four heads", _heads_case(1, 4, 4, 4),
             why="a wrong split or scale runs and gives other numbers"),
        Case("one head", _heads_case(2, 3, 4, 1)),
        Case("padding hidden", _heads_case(2, 3, 8, 2, mask=_TWO_REAL)),
        Case("causal", _heads_case(1, 4, 6, 2, mask=attention.causal_mask(4))),
        Case("float32", _heads_case(1, 3, 4, 2, dtype="float32")),
        Case("scores of 2000 beside 1999, and a row of -2000", _heads_far, why=_unstable.WHY),
    ],
    mistakes=[
        Mistake("only_output", lambda *args, **kw: _heads(*args, **kw)[0],
                "You return the output alone. Return (output, weights)."),
        Mistake("weights_first", lambda *args, **kw: _heads(*args, **kw)[::-1],
                "Both are right, in the other order: first the output, then the weights."),
        Mistake("no_output", _wrongly("no_output"),
                "The heads are merged and returned as they are. One projection is missing: "
                "params['output.weight'] and its bias."),
        Mistake("no_bias", _wrongly("no_bias"),
                "The biases are not added: each of the four projections is vectors @ weight + "
                "bias."),
        Mistake("no_output_bias", _wrongly("no_output_bias"),
                "The output projection lacks its bias: add params['output.bias'] last."),
        Mistake("not_merged", _wrongly("not_merged"),
                "The output projection got the heads one by one. Put them side by side first, with "
                "merge_heads."),
        Mistake("roles_swapped", _wrongly("roles_swapped"),
                "Query and key have changed places: the row that asks is the query."),
        Mistake("keys_for_values", _wrongly("keys_for_values"),
                "You average the keys. What is handed over is the value."),
        Mistake("turned", _wrongly("turned"),
                "You turn the weights. They are stored (in, out): x @ weight fits as it stands."),
        Mistake("one_head", _wrongly("one_head"),
                "Query, key and value are not split: this is one head of full width. Use "
                "split_heads before attention and merge_heads after it."),
        Mistake("reshape_split", _wrongly("reshape_split"),
                "The heads were split with a reshape alone: each of them sees some of the tokens "
                "whole and never the others. Use your split_heads."),
        Mistake("reshape_merge", _wrongly("reshape_merge"),
                "The heads were merged with a reshape alone, so that the tokens' numbers are "
                "mixed up. Use your merge_heads."),
        Mistake("split_before", _wrongly("split_before"),
                "You split x itself and never project it: query, key and value are three "
                "projections of the whole x, split afterwards."),
        Mistake("by_model", _wrongly("by_model"),
                "The scores are divided by the root of d. A head's dot product runs over d / "
                "num_heads numbers: divide by the root of that."),
        Mistake("by_heads", _wrongly("by_heads"),
                "The scores are divided by the root of the number of heads. Divide by the root of "
                "a head's width, d / num_heads."),
        Mistake("mean_weights", _wrongly("mean_weights"),
                "The output is right; the weights are averaged over the heads. Return all of them: "
                "(batch, heads, length, length)."),
        Mistake("mask_ignored", _wrongly("mask_ignored"),
                "Right without a mask; with one, nothing is hidden. Pass `mask` on to "
                "scaled_dot_product_attention."),
        *_unstable.mistakes(
            lambda softmax: lambda x, params, num_heads, mask=None: _heads(
                x, params, num_heads, mask, softmax=softmax)),
    ],
    also_right=[_heads_by_slices, _heads_einsum,
                lambda x, params, num_heads, mask=None: _heads(x, params, num_heads, mask)],
    hints=[
        "Five steps: project three times, split, attend, merge, project once more. You have "
        "written or met each of them.",
        "The mask of shape (batch, 1, 1, length) already fits (batch, heads, length, length). The "
        "scale is right by itself if attention is given the split query.",
        "For query, key and value: split_heads(x @ params[p + '.weight'] + params[p + '.bias'], "
        "num_heads). Then output, weights = scaled_dot_product_attention(query, key, value, mask); "
        "last, merge_heads(output) @ params['output.weight'] + params['output.bias'].",
    ],
)

# --- cross_attention ----------------------------------------------------------------------------


def cross_attention(x, memory, w_query, w_key, w_value, mask=None):
    """Output (n, v) and weights (n, m): every token of x asks all tokens of another text.

    x: (n, d). memory: (m, c), the other text. w_query: (d, w). w_key: (c, w). w_value: (c, v).
    mask: Boolean, (n, m), or None.
    """
    return scaled_dot_product_attention(x @ w_query, memory @ w_key, memory @ w_value, mask)


def _cross_case(n, m, d, c, w, v, mask=None):
    def make(rng):
        shapes = ((n, d), (m, c), (d, w), (c, w), (c, v))
        args = tuple(rng.normal(size=s) / (s[0] ** 0.5 if i > 1 else 1.0)
                     for i, s in enumerate(shapes))
        return args, ({} if mask is None else {"mask": np.array(mask)})
    return make


def _cross_loop(x, memory, w_query, w_key, w_value, mask=None):
    outputs, every = [], []
    for i, row in enumerate(x):
        own = None if mask is None else mask[i:i + 1]
        output, weights = _attend((row @ w_query)[None], memory @ w_key, memory @ w_value, own)
        outputs.append(output[0])
        every.append(weights[0])
    return np.array(outputs), np.array(every)


def _cross(query_from, key_from, value_from, use_mask=True):
    """The formula with each of the three taken from x or from memory."""
    def wrong(x, memory, w_query, w_key, w_value, mask=None):
        texts = {"x": x, "memory": memory}
        return _attend(texts[query_from] @ w_query, texts[key_from] @ w_key,
                       texts[value_from] @ w_value, mask if use_mask else None)
    return wrong


def _cross_far(rng):
    return (np.eye(3), np.eye(3), *_unstable.far_vectors(), rng.normal(size=(3, 2))), {}


register(
    name="cross_attention",
    lesson="02",
    reference=cross_attention,
    parts=("output", "weights"),
    cases=[
        Case("2 tokens of width 4 ask 3 tokens of width 5", _cross_case(2, 3, 4, 5, 3, 2),
             why="every size differs"),
        Case("3 tokens ask 3 tokens, all of width 4", _cross_case(3, 3, 4, 4, 4, 4),
             why="every mix-up of x and memory runs here"),
        Case("4 tokens ask 2, width 3", _cross_case(4, 2, 3, 3, 2, 3)),
        Case("with a mask", _cross_case(2, 3, 3, 3, 2, 3, [[True, True, False],
                                                           [False, False, False]])),
        Case("scores of 2000 beside 1999, and a row of -2000", _cross_far, why=_unstable.WHY),
    ],
    mistakes=[
        Mistake("only_output", lambda *args, **kw: cross_attention(*args, **kw)[0],
                "You return the output alone. Return (output, weights)."),
        Mistake("weights_first", lambda *args, **kw: cross_attention(*args, **kw)[::-1],
                "Both are right, in the other order: first the output, then the weights."),
        Mistake("self_of_x", _cross("x", "x", "x"),
                "memory is not used: this is self-attention of x. Keys and values come from "
                "memory."),
        Mistake("self_of_memory", _cross("memory", "memory", "memory"),
                "x is not used: this is self-attention of memory. The one who asks is x."),
        Mistake("roles_swapped", _cross("memory", "x", "x"),
                "Here memory asks x. It is x that asks, so the query comes from x, and the result "
                "has a row for each token of x."),
        Mistake("value_from_x", _cross("x", "memory", "x"),
                "You hand over x's own values. What was found in memory is what is handed over: "
                "memory @ w_value."),
        Mistake("key_from_x", _cross("x", "x", "memory"),
                "The keys come from x. A weight then says how well x matches x, and is used on "
                "the values of memory: keys and values belong together."),
        Mistake("mask_ignored", _cross("x", "memory", "memory", use_mask=False),
                "Right without a mask; with one, nothing is hidden. Pass `mask` on."),
        *_unstable.mistakes(
            lambda softmax: lambda x, memory, w_query, w_key, w_value, mask=None: _attend(
                x @ w_query, memory @ w_key, memory @ w_value, mask, softmax=softmax),
            _unstable.GUARDED),
    ],
    also_right=[
        _cross_loop,
        lambda x, memory, w_query, w_key, w_value, mask=None: _attend(
            x @ w_query, memory @ w_key, memory @ w_value, mask),
        lambda x, memory, w_query, w_key, w_value, mask=None: scaled_dot_product_attention(
            *(np.einsum("nd,dw->nw", a, b) for a, b in ((x, w_query), (memory, w_key),
                                                        (memory, w_value))), mask),
    ],
    hints=[
        "One line of self_attention changes: two of the three products start from another array.",
        "Who asks? x, so the query is made of x. Who is found, and who hands over? memory.",
        "scaled_dot_product_attention(x @ w_query, memory @ w_key, memory @ w_value, mask)",
    ],
)

# --- attention_cost -----------------------------------------------------------------------------


def attention_cost(length, d_model, num_heads):
    """Multiplications in the projections, in the pairs of tokens, and the attention weights.

    For one sentence: all four projections (query, key, value, output); scores and weighted means,
    over all heads; and how many numbers the (num_heads, length, length) attention weights are.
    """
    projections = 4 * length * d_model * d_model
    pairs = 2 * length * length * d_model
    return projections, pairs, num_heads * length * length


def _cost_loop(length, d_model, num_heads):
    projections = pairs = weights = 0
    for _ in ("query", "key", "value", "output"):
        projections += length * d_model * d_model
    for _ in range(num_heads):
        pairs += length * (d_model // num_heads) * length  # query @ key.T
        pairs += length * length * (d_model // num_heads)  # weights @ value
        weights += length * length
    return projections, pairs, weights


def _cost(projections, pairs, weights):
    """A wrong count out of three formulas of (n, d, h)."""
    return lambda length, d_model, num_heads: tuple(
        formula(length, d_model, num_heads) for formula in (projections, pairs, weights))


def _p(n, d, h):
    return 4 * n * d * d


def _q(n, d, h):
    return 2 * n * n * d


def _w(n, d, h):
    return h * n * n


register(
    name="attention_cost",
    lesson="02",
    reference=attention_cost,
    parts=("projections", "pairs", "weights"),
    cases=[
        Case("6 tokens, width 8, two heads", lambda rng: ((6, 8, 2), {})),
        Case("5 tokens, width 12, three heads", lambda rng: ((5, 12, 3), {})),
        Case("7 tokens, width 5, one head", lambda rng: ((7, 5, 1), {})),
        Case("512 tokens of BERT-base: width 768, 12 heads", lambda rng: ((512, 768, 12), {})),
    ],
    mistakes=[
        Mistake("more_heads_more_work", _cost(_p, lambda n, d, h: h * 2 * n * n * d, _w),
                "You count the full width for every head. A head's dot products run over d_model / "
                "num_heads numbers, so over all heads the number of heads cancels."),
        Mistake("one_head_counted", _cost(_p, lambda n, d, h: 2 * n * n * (d // h), _w),
                "You count the pairs of one head. There are num_heads of them."),
        Mistake("no_output", _cost(lambda n, d, h: 3 * n * d * d, _q, _w),
                "You count three projections. The fourth is the output's."),
        Mistake("one_projection", _cost(lambda n, d, h: n * d * d, _q, _w),
                "You count one projection. There are four: query, key, value and output."),
        Mistake("parameters", _cost(lambda n, d, h: 4 * d * d, _q, _w),
                "You count the numbers in the four matrices. Every token is multiplied by all of "
                "them: times length."),
        Mistake("projections_of_one_head", _cost(lambda n, d, h: 4 * n * d * (d // h), _q, _w),
                "You count the projections of one head. The heads' matrices side by side are "
                "(d_model, d_model)."),
        Mistake("heads_in_projections", _cost(lambda n, d, h: h * 4 * n * d * d, _q, _w),
                "You count the projections for each head anew. The (d_model, d_model) matrix has "
                "the columns of all heads in it: multiply once."),
        Mistake("only_scores", _cost(_p, lambda n, d, h: n * n * d, _w),
                "Pairs of tokens are met twice: in query @ key.T and again in weights @ value."),
        Mistake("weights_of_one_head", _cost(_p, _q, lambda n, d, h: n * n),
                "You count the attention weights of one head. Every head has its own "
                "(length, length) table."),
        Mistake("linear_weights", _cost(_p, _q, lambda n, d, h: h * n),
                "Every query has an attention weight for every key: length times length for each "
                "head."),
        Mistake("flops", _cost(lambda n, d, h: 8 * n * d * d, lambda n, d, h: 4 * n * n * d, _w),
                "You count additions as well, as FLOPs do: twice as many. Here only "
                "multiplications are counted."),
        Mistake("bytes", _cost(_p, _q, lambda n, d, h: 4 * h * n * n),
                "The attention weights are counted in bytes of float32. How many numbers are "
                "there?"),
        Mistake("floats", _cost(_p, lambda n, d, h: h * 2 * n * n * (d / h), _w),
                "The numbers are right, but `/` makes floats of counts. The number of heads "
                "cancels out of the pairs, so there is nothing to divide (or divide with `//`)."),
        Mistake("linear_pairs", _cost(_p, lambda n, d, h: 2 * n * d, _w),
                "Every query meets every key: length times length dot products, not length."),
    ],
    also_right=[
        _cost_loop,
        lambda length, d_model, num_heads: (4 * length * d_model**2, 2 * length**2 * d_model,
                                            num_heads * length**2),
        lambda length, d_model, num_heads: (
            sum(length * d_model**2 for _ in range(4)),
            num_heads * (2 * length * length * d_model) // num_heads, length * num_heads * length),
    ],
    hints=[
        "A product of (a, b) with (b, c) takes a * b * c multiplications. Write the shapes of each "
        "product in multi_head_attention beside it.",
        "One projection: (length, d_model) times (d_model, d_model). Scores of one head: (length, "
        "d_model / num_heads) times its transpose; the means take as many. Now add up.",
        "projections = 4 * length * d_model**2; pairs = 2 * length**2 * d_model; weights = "
        "num_heads * length**2",
    ],
)

# --- absorb_block -------------------------------------------------------------------------------


def _state(rng, rows, width, keys, first=False, hidden=False, lower=False, dtype="float64"):
    """A running softmax, as it stands after `keys` earlier keys, and a block of three more."""
    earlier, values = rng.normal(size=(*rows, keys)), rng.normal(size=(keys, width))
    scores, value = 2 * rng.normal(size=(*rows, 3)), rng.normal(size=(3, width))
    if lower:
        scores -= 6
    if hidden:
        earlier[0], scores[1] = -np.inf, -np.inf
        scores[0, 0] = -np.inf
    if first:
        earlier[...] = -np.inf
    highest = earlier.max(axis=-1, keepdims=True)
    powers = np.exp(earlier - np.where(highest == -np.inf, 0, highest))
    state = highest, powers.sum(axis=-1, keepdims=True), powers @ values, scores, value
    return tuple(array.astype(dtype) for array in state), {}


def _absorb(highest, total, output, scores, value, *, wrong=""):
    """The step with one part done wrongly."""
    block = scores.max(axis=-1, keepdims=True)
    higher = np.maximum(highest, block)
    shift = np.where(higher == -np.inf, 0, higher)
    if wrong == "no_guard":
        shift = higher
    if wrong == "old_shift":
        shift = np.where(highest == -np.inf, 0, highest)
    if wrong == "block_shift":
        shift = np.where(block == -np.inf, 0, block)
    fade, powers = np.exp(highest - shift), np.exp(scores - shift)
    if wrong == "unshifted":
        powers = np.exp(scores)
    if wrong.startswith("ratio"):
        fade = np.exp(highest) / np.exp(shift)
    if wrong == "ratios_everywhere":
        powers = np.exp(scores) / np.exp(shift)
    if wrong == "inverse":
        fade = np.where(highest == -np.inf, 0, np.exp(np.where(highest == -np.inf, 0,
                                                               shift - highest)))
    fade_total = 1 if wrong in ("no_fade", "total_not_faded") else fade
    fade_output = 1 if wrong in ("no_fade", "output_not_faded") else fade
    total = fade_total * total + powers.sum(axis=-1, keepdims=True)
    if wrong == "keys_faded":
        return higher, total, fade * (output + powers @ value)
    if wrong == "block_divided":
        summed = powers.sum(axis=-1, keepdims=True)
        powers = powers / np.where(summed == 0, 1, summed)
    output = fade_output * output + powers @ value
    if wrong == "divided":
        output = output / np.where(total == 0, 1, total)
    return (highest if wrong == "old_highest" else block if wrong == "block_highest" else higher,
            total, output)


def _stepwise(name):
    return lambda highest, total, output, scores, value: _absorb(
        highest, total, output, scores, value, wrong=name)


def _absorb_one_by_one(highest, total, output, scores, value):
    highest, total, output = highest.copy(), total.copy(), output.copy()
    for place in np.ndindex(scores.shape[:-1]):
        for j, score in enumerate(scores[place]):
            if score == -np.inf:
                continue
            if score > highest[place]:
                fade = np.exp(highest[place] - score)
                total[place] *= fade
                output[place] *= fade
                highest[place] = score
            power = np.exp(score - highest[place])
            total[place] += power
            output[place] += power * value[j]
    return highest, total, output


def _absorb_by_choice(highest, total, output, scores, value):
    higher = np.maximum(highest, np.max(scores, axis=-1, keepdims=True))
    seen = higher > -np.inf
    shift = np.where(seen, higher, 0.0).astype(scores.dtype)
    fade = np.where(seen, np.exp(highest - shift), 1)
    powers = np.where(np.isneginf(scores), 0, np.exp(scores - shift))
    return (higher, total * fade + np.sum(powers, -1, keepdims=True),
            output * fade + np.einsum("...nb,bv->...nv", powers, value))


register(
    name="absorb_block",
    lesson="02",
    reference=multi_head.absorb_block,
    parts=("highest", "total", "output"),
    cases=[
        Case("2 queries, 4 keys seen, 3 more", lambda rng: _state(rng, (2,), 5, 4)),
        Case("the first block", lambda rng: _state(rng, (2,), 3, 2, first=True),
             why="nothing was seen: highest is -inf, total and output are 0"),
        Case("a block of low scores", lambda rng: _state(rng, (3,), 2, 4, lower=True),
             why="the highest score stays the old one"),
        Case("hidden keys, and rows that have seen nothing",
             lambda rng: _state(rng, (3,), 2, 4, hidden=True)),
        Case("a row that sees nothing, before and after",
             lambda rng: ((np.full((1, 1), -np.inf), np.zeros((1, 1)), np.zeros((1, 2)),
                           np.full((1, 3), -np.inf), rng.normal(size=(3, 2))), {})),
        Case("a score of 1000", lambda rng: ((np.array([[2.0]]), np.array([[1.5]]),
                                              np.array([[0.5, 1.0]]), np.array([[1000.0, 999.0]]),
                                              rng.normal(size=(2, 2))), {}),
             why="exp(1000) is inf"),
        Case("two heads, float32", lambda rng: _state(rng, (2, 3), 2, 4, dtype="float32")),
        Case("scores of 1000 before, and of -1000", lambda rng: (
                 (np.array([[1000.0], [-1001.0]]), np.array([[1.5], [2.0]]),
                  np.array([[0.5, 1.0], [1.0, 2.0]]), np.array([[1001.0, 999.0],
                                                                [-1000.0, -1002.0]]),
                  rng.normal(size=(2, 2))), {}),
             why="exp(1000) / exp(1001) is inf / inf; exp(1000 - 1001) is not"),
    ],
    mistakes=[
        Mistake("no_fade", _stepwise("no_fade"),
                "You add the new block and leave the old sums as they were. They were computed "
                "with the old highest score: multiply them by exp(old highest - new highest)."),
        Mistake("output_not_faded", _stepwise("output_not_faded"),
                "The total is brought to the new highest score, the output is not. Both are sums "
                "of the same powers: both fade."),
        Mistake("total_not_faded", _stepwise("total_not_faded"),
                "The output is brought to the new highest score, the total is not. Both are sums "
                "of the same powers: both fade."),
        Mistake("inverse", _stepwise("inverse"),
                "Your factor is exp(new highest - old highest), which grows. The old sums must "
                "shrink: exp(old - new)."),
        Mistake("unshifted", _stepwise("unshifted"),
                "The new block's powers are exp(score). Shift them too, by the new highest score, "
                "or they do not match the old sums."),
        Mistake("block_divided", _stepwise("block_divided"),
                "You use the block's own softmax weights in the output. Add exp(score - highest) * "
                "value as it is: nothing is divided before the last block."),
        Mistake("old_shift", _stepwise("old_shift"),
                "You shift by the highest score so far, without the new block. A large new score "
                "then overflows: take the maximum of both first."),
        Mistake("block_shift", _stepwise("block_shift"),
                "You shift by the block's own highest score. If an earlier one was higher, the old "
                "sums are blown up: take the maximum of both."),
        Mistake("old_highest", _stepwise("old_highest"),
                "The sums are right, but you return the old highest score. The next block would be "
                "shifted by the wrong number."),
        Mistake("block_highest", _stepwise("block_highest"),
                "The sums are right, but you return the block's highest score. Return the maximum "
                "of it and the old one."),
        Mistake("keys_faded", _stepwise("keys_faded"),
                "You fade the new block's part of the output too. It was computed with the new "
                "highest score already: fade only what was there before."),
        Mistake("divided", _stepwise("divided"),
                "You divide the output by the total at each block. The next block would be added "
                "to a mean, not to a sum: divide once, after the last."),
        Mistake("no_guard", _stepwise("no_guard"),
                "Right until a row has seen nothing but -inf: -inf minus -inf is NaN. Shift by 0 "
                "there."),
        Mistake("ratio_of_powers", _stepwise("ratio_of_powers"),
                "You divide exp(old highest) by exp(new highest). On paper that is the same; at "
                "1000 it is inf / inf. Subtract first, then one exp."),
        Mistake("ratios_everywhere", _stepwise("ratios_everywhere"),
                "You take exp(score) / exp(highest). On paper that is exp(score - highest); at "
                "1000 it is inf / inf. Subtract first, then exp."),
    ],
    also_right=[_absorb_one_by_one, _absorb_by_choice],
    hints=[
        "All sums are of exp(score - highest). If the highest score changes from 2 to 6, by which "
        "factor do the old powers change?",
        "By exp(2 - 6). So: higher = the maximum of the old highest and the block's own; fade = "
        "np.exp(highest - higher); multiply total and output by it, then add the block. Where "
        "higher is -inf, shift by 0 instead.",
        "powers = np.exp(scores - shift); total = fade * total + powers.sum(axis=-1, "
        "keepdims=True); output = fade * output + powers @ value; return higher, total, output",
    ],
)

# --- blockwise_attention ------------------------------------------------------------------------


def _blocks_case(n, m, d, v, block, lead=(), mask=None, scale=1.0, dtype="float64"):
    def make(rng):
        shapes = ((*lead, n, d), (*lead, m, d), (*lead, m, v))
        q, k, val = ((scale if i == 0 else 1.0) * rng.normal(size=s)
                     for i, s in enumerate(shapes))
        kw = {"block": block} | ({} if mask is None else {"mask": mask})
        return tuple(a.astype(dtype) for a in (q, k, val)), kw
    return make


def _blocks(query, key, value, mask=None, block=64, *, wrong=""):
    """Attention in blocks with one part done wrongly."""
    rows, m = query.shape[:-1], key.shape[-2]
    highest = np.full((*rows, 1), 0.0 if wrong == "starts_at_zero" else -np.inf, query.dtype)
    total, output = np.zeros_like(highest), np.zeros((*rows, value.shape[-1]), query.dtype)
    stop = m - m % block if wrong == "last_block_lost" else m
    means, blocks = [], 0
    for start in range(0, stop, block):
        part = slice(start, start + block)
        width = 1 if wrong == "unscaled" else query.shape[-1]
        keys = key[..., part, :]
        scores = query @ (keys.T if wrong == "all_turned" else np.swapaxes(keys, -1, -2))
        scores = scores / width**0.5
        if mask is not None and wrong != "mask_ignored":
            of_block = {"first_mask": slice(0, scores.shape[-1]),
                        "whole_mask": slice(None)}.get(wrong, part)
            scores = np.where(mask[..., of_block], scores, -np.inf)
        highest, total, output = absorb_block(highest, total, output, scores, value[..., part, :])
        means.append(softmax(scores) @ value[..., part, :])
        blocks += 1
    if wrong == "mean_of_means":
        return sum(means) / blocks
    if wrong == "sum_of_means":
        return sum(means)
    if wrong == "not_divided":
        return output
    return output / (total if wrong == "no_guard" else np.where(total == 0, 1, total))


def _collected(query, key, value, mask=None, block=64):
    """The scores block by block, all of them kept: the whole table again, in pieces."""
    scores = np.concatenate([
        query @ np.swapaxes(key[..., i:i + block, :], -1, -2) / query.shape[-1] ** 0.5
        for i in range(0, key.shape[-2], block)], axis=-1)
    return softmax(scores if mask is None else np.where(mask, scores, -np.inf)) @ value


def _blocked(name):
    return lambda query, key, value, mask=None, block=64: _blocks(query, key, value, mask, block,
                                                                  wrong=name)


def _blocks_two_passes(query, key, value, mask=None, block=64):
    """First the highest score of all blocks, then the sums: exact as well, at twice the work."""
    def scores(part):
        result = query @ np.swapaxes(key[..., part, :], -1, -2) / query.shape[-1] ** 0.5
        return result if mask is None else np.where(mask[..., part], result, -np.inf)

    parts = [slice(i, i + block) for i in range(0, key.shape[-2], block)]
    highest = np.max([scores(p).max(axis=-1, keepdims=True) for p in parts], axis=0)
    highest = np.where(highest == -np.inf, 0, highest)
    total = sum(np.exp(scores(p) - highest).sum(axis=-1, keepdims=True) for p in parts)
    output = sum(np.exp(scores(p) - highest) @ value[..., p, :] for p in parts)
    return output / np.where(total == 0, 1, total)


class WholeTable(Exception):
    """Raised where as many numbers are made at once as the whole table of scores has."""


class JoinedBlocks(WholeTable):
    """Raised where the blocks of the table were kept and are put together."""


class _Watched(np.ndarray):
    """An array that does not let a table of QUERIES x KEYS numbers be computed from it."""

    QUERIES, KEYS = 6, 41

    def __array_finalize__(self, source):
        if isinstance(source, _Watched):
            _small_enough(self, WholeTable)

    def __array_function__(self, function, types, args, kwargs):
        made = super().__array_function__(function, types, args, kwargs)
        if type(made) is not np.ndarray or made.dtype.kind != "f":
            return made
        joins = (np.concatenate, np.stack, np.hstack, np.column_stack, np.append, np.block)
        _small_enough(made, JoinedBlocks if function in joins else WholeTable)
        return made.view(_Watched)  # einsum, where and others hand back plain arrays


def _small_enough(array, error):
    if array.size >= _Watched.QUERIES * _Watched.KEYS:
        raise error(f"an array of shape {array.shape} was made from the inputs, as large as the "
                    f"whole table of {_Watched.QUERIES} queries and {_Watched.KEYS} keys")


def _watched_case(rng):
    shapes = ((_Watched.QUERIES, 3), (_Watched.KEYS, 3), (_Watched.KEYS, 2))
    return tuple(rng.normal(size=s).view(_Watched) for s in shapes), {"block": 8}


_SOME = np.array([[True, False, True, True, False, False, True],
                  [False] * 7,
                  [False, False, False, False, False, True, True]])

register(
    name="blockwise_attention",
    lesson="02",
    reference=multi_head.blockwise_attention,
    cases=[
        Case("2 queries, 6 keys, blocks of 3", _blocks_case(2, 6, 4, 5, 3)),
        Case("7 keys, blocks of 3: the last has one", _blocks_case(3, 7, 4, 2, 3)),
        Case("one block is enough", _blocks_case(2, 4, 3, 3, 64)),
        Case("a mask, and a row that sees nothing", _blocks_case(3, 7, 4, 2, 3, mask=_SOME)),
        Case("scores far below zero", lambda rng: ((np.full((2, 4), 30.0),
                                                    -30.0 - rng.random(size=(5, 4)),
                                                    rng.normal(size=(5, 2))), {"block": 2}),
             why="a running maximum that starts at 0 underflows"),
        Case("scores near -17 billion",
             lambda rng: ((np.full((1, 1), 2.0**17),
                           -(2.0**17) - np.arange(5.0)[:, None] / 2**17,
                           rng.normal(size=(5, 2))), {"block": 2}),
             why="-1e9 is not the lowest of numbers; -inf is"),
        Case("a batch of 2, three heads, blocks of 2", _blocks_case(2, 5, 4, 6, 2, lead=(2, 3))),
        Case("float32", _blocks_case(2, 5, 4, 3, 2, dtype="float32")),
        Case("6 queries, 41 keys, blocks of 8: never 6 x 41 numbers at once", _watched_case,
             why="plain attention gives the same output, and holds the whole table"),
    ],
    mistakes=[
        Mistake("whole_table",
                lambda query, key, value, mask=None, block=64:
                    attention.scaled_dot_product_attention(query, key, value, mask)[0],
                "The output is right, but all scores are there at once: this is plain attention, "
                "and its (n, m) table is what blocks are to avoid. Score `block` keys, take them "
                "in with absorb_block, let them go, then take the next."),
        Mistake("collected", _collected,
                "You score the keys block by block, but keep every block and join them before the "
                "softmax: the whole (n, m) table stands in memory after all. Take each block in "
                "with absorb_block and let it go."),
        Mistake("mean_of_means", _blocked("mean_of_means"),
                "You average the outputs of the blocks. A block in which nothing fits then counts "
                "as much as one with the best key: carry the sums through and divide once."),
        Mistake("sum_of_means", _blocked("sum_of_means"),
                "You add up the outputs of the blocks, each with weights that sum to 1. Carry the "
                "sums through absorb_block and divide once at the end."),
        Mistake("not_divided", _blocked("not_divided"),
                "You return the running sum. After the last block, divide it by the total."),
        Mistake("unscaled", _blocked("unscaled"),
                "The scores are not divided by the root of the width."),
        Mistake("last_block_lost", _blocked("last_block_lost"),
                "The last keys are lost where the block does not divide their number. "
                "range(0, m, block) reaches them; a slice may run past the end."),
        Mistake("first_mask", _blocked("first_mask"),
                "You use the first columns of the mask for every block. Cut the mask as you cut "
                "the keys: mask[..., part]."),
        Mistake("whole_mask", _blocked("whole_mask"),
                "The scores have one block's columns, your mask has all of them. Cut the mask as "
                "you cut the keys: mask[..., part]."),
        Mistake("all_turned", _blocked("all_turned"),
                "`.T` turns all axes round, batch and heads too. Swap the last two only: "
                "np.swapaxes(keys, -1, -2)."),
        Mistake("mask_ignored", _blocked("mask_ignored"),
                "Right without a mask; with one, nothing is hidden."),
        Mistake("starts_at_zero", _blocked("starts_at_zero"),
                "Your highest score starts at 0. If all scores lie far below, exp underflows to 0 "
                "everywhere: start at -inf."),
        Mistake("no_guard", _blocked("no_guard"),
                "Right except for a query that sees nothing: its total is 0, and 0 / 0 is NaN. "
                "Divide by 1 there."),
    ],
    also_right=[_blocks_two_passes,
                lambda query, key, value, mask=None, block=64: _blocks(query, key, value, mask,
                                                                       block)],
    hints=[
        "A loop over slices of the keys, with three running arrays. Which shapes do they have, and "
        "with which numbers do they start?",
        "highest starts at -inf and total at 0, both (..., n, 1); output at 0, (..., n, v). For "
        "each part = slice(start, start + block): scores, mask, absorb_block. After the loop, "
        "divide.",
        "scores = query @ np.swapaxes(key[..., part, :], -1, -2) / query.shape[-1] ** 0.5; where a "
        "mask is given, np.where(mask[..., part], scores, -np.inf); then highest, total, output = "
        "absorb_block(highest, total, output, scores, value[..., part, :]); at the end output / "
        "np.where(total == 0, 1, total).",
    ],
)
