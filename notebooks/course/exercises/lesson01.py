"""Lesson 01's exercises: from the dot product to masked attention."""

import numpy as np

from course.exercises import Case, Mistake, _unstable, register
from solutions import attention as solution

# --- similarity ---------------------------------------------------------------------------------


def similarity(query, key):
    """Dot product of every query with every key: (n, d) and (m, d) to (n, m).

    Row i belongs to query i, column j to key j.
    """
    return query @ key.T


def _similarity_loop(query, key):
    scores = np.zeros((len(query), len(key)))
    for i, q in enumerate(query):
        for j, k in enumerate(key):
            scores[i, j] = sum(a * b for a, b in zip(q, k, strict=True))
    return scores


def _cosine(query, key):
    lengths = np.linalg.norm(query, axis=1)[:, None] * np.linalg.norm(key, axis=1)
    return query @ key.T / lengths


def _two(n, m, d):
    """Arguments of unit scale: n queries and m keys of width d."""
    return lambda rng: ((rng.normal(size=(n, d)), rng.normal(size=(m, d))), {})


register(
    name="similarity",
    lesson="01",
    reference=similarity,
    cases=[
        Case("2 queries and 3 keys of width 4", _two(2, 3, 4), why="n and m differ"),
        Case("2 queries and 3 keys of width 3", _two(2, 3, 3), why="query @ key runs here"),
        Case("3 queries and 3 keys of width 2", _two(3, 3, 2), why="query * key runs here"),
        Case("one query, five keys", _two(1, 5, 2)),
    ],
    mistakes=[
        Mistake("transposed", lambda query, key: key @ query.T,
                "You have a row for each key. Each query asks for itself, so the result needs one "
                "row for each query: shape (n, m), not (m, n)."),
        Mistake("no_transpose", lambda query, key: query @ key,
                "query @ key multiplies rows of query with columns of key. A key is a row, so key "
                "has to be turned first."),
        Mistake("elementwise", lambda query, key: (query * key).sum(axis=-1),
                "You compare query i with key i only. Every query is compared with every key, "
                "which gives n times m numbers."),
        Mistake("cosine", _cosine,
                "These are cosines: you divided by the lengths of the vectors. Attention keeps the "
                "plain dot product, so a long key can win by its length."),
        Mistake("distance", lambda query, key: ((query[:, None] - key) ** 2).sum(axis=-1),
                "These are squared distances, which are small where vectors are alike. A dot "
                "product is large where they are alike."),
    ],
    also_right=[
        _similarity_loop,
        lambda query, key: np.einsum("nd,md->nm", query, key),
        lambda query, key: (query[:, None, :] * key[None, :, :]).sum(axis=-1),
    ],
    hints=[
        "One number for each pair (query, key). How many is that for 2 queries and 3 keys?",
        "A matrix product takes rows of the left with columns of the right. Here both sides have "
        "their vectors in rows, so the right one must be turned.",
        "The dot product of row i of `query` with row j of `key` is entry (i, j) of "
        "`query @ key.T`.",
    ],
)

# --- softmax ------------------------------------------------------------------------------------


def _softmax_loop(scores, axis=-1):
    rows = np.moveaxis(scores, axis, -1)
    weights = np.zeros_like(rows)
    for place in np.ndindex(rows.shape[:-1]):
        row = rows[place]
        seen = row > -np.inf
        if seen.any():
            powers = np.exp(row[seen] - row[seen].max())
            weights[place][seen] = powers / powers.sum()
    return np.moveaxis(weights, -1, axis)


def _softmax_by_logs(scores, axis=-1):
    highest = scores.max(axis=axis, keepdims=True)
    shifted = scores - np.where(np.isfinite(highest), highest, 0)
    with np.errstate(divide="ignore"):
        logs = np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return np.exp(shifted - np.where(np.isfinite(logs), logs, 0))


def _softmax_shifted(scores, axis=-1, *, over="row", guard=True):
    """The formula with one part chosen wrongly, for the mistakes below."""
    where = {"row": axis, "all": None, "other": 0 if axis in (-1, scores.ndim - 1) else -1}[over]
    highest = scores.max(axis=axis if over != "all" else None, keepdims=True)
    if guard:
        highest = np.where(highest == -np.inf, 0, highest)
    powers = np.exp(scores - highest)
    total = powers.sum(axis=where if over == "other" else axis, keepdims=True)
    return powers / (np.where(total == 0, 1, total) if guard else total)


def _softmax_no_keepdims(scores, axis=-1):
    powers = np.exp(scores - scores.max(axis=axis))
    return powers / powers.sum(axis=axis)


def _softmax_over_everything(scores, axis=-1):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


register(
    name="softmax",
    lesson="01",
    reference=solution.softmax,
    cases=[
        Case("one row of three", lambda rng: ((rng.normal(size=3),), {})),
        Case("two rows of three", lambda rng: ((rng.normal(size=(2, 3)),), {}),
             why="unequal sizes: a forgotten keepdims raises"),
        Case("three columns, axis=0", lambda rng: ((rng.normal(size=(2, 3)),), {"axis": 0})),
        Case("a square of scores", lambda rng: ((rng.normal(size=(3, 3)),), {}),
             why="a forgotten keepdims passes silently"),
        Case("a score of 1000 beside 0",
             lambda rng: ((np.array([[1000.0, 0.0, -1.0]]),), {}), why="exp(1000) is inf"),
        Case("two rows far apart, [0, 0] and [1000, 0]",
             lambda rng: ((np.array([[0.0, 0.0], [1000.0, 0.0]]),), {}),
             why="the maximum of the whole array empties the first row"),
        Case("a score of -inf in a row", lambda rng: ((np.array([[0.5, -np.inf, 1.0]]),), {})),
        Case("a row of -inf only", lambda rng: ((np.array([[-np.inf] * 3, [0.0, 1.0, 2.0]]),), {}),
             why="nothing may be attended: zeros, not NaN"),
        Case("four axes, float32",
             lambda rng: ((rng.normal(size=(2, 2, 3, 4)).astype("float32"),), {})),
        Case("scores of 2000 beside 1999, and a row of -2000",
             lambda rng: ((_unstable.FAR.copy(),), {}), why=_unstable.WHY),
    ],
    mistakes=[
        Mistake("no_exp", lambda scores, axis=-1: scores / scores.sum(axis=axis, keepdims=True),
                "You divided the scores by their sum. Scores may be negative, and then so are your "
                "weights: take exp of the scores first."),
        Mistake("not_divided",
                lambda scores, axis=-1: np.exp(scores - scores.max(axis=axis, keepdims=True)),
                "These are the powers, and the largest of each row is 1. Weights have to sum to 1: "
                "divide each row by its own sum."),
        Mistake("not_divided_not_shifted", lambda scores, axis=-1: np.exp(scores),
                "These are the powers. Divide each row by its own sum; and shift the scores first, "
                "or exp(1000) will be inf."),
        Mistake("other_axis", lambda scores, axis=-1: _softmax_shifted(scores, axis, over="other"),
                "Your weights sum to 1 along the wrong axis. Both the maximum and the sum go along "
                "`axis`."),
        Mistake("axis_ignored", lambda scores, axis=-1: solution.softmax(scores),
                "Right along the last axis, but `axis` is not used: with axis=0 the columns must "
                "sum to 1."),
        Mistake("axis_ignored_no_guard",
                lambda scores, axis=-1: _softmax_shifted(scores, -1, guard=False),
                "`axis` is not used: with axis=0 the columns must sum to 1. Both the maximum and "
                "the sum go along `axis`. (Then the row of -inf: it gives NaN, and should give "
                "zeros.)"),
        Mistake("axis_ignored_no_shift",
                lambda scores, axis=-1: np.exp(scores) / np.exp(scores).sum(-1, keepdims=True),
                "`axis` is not used: with axis=0 the columns must sum to 1. And nothing is "
                "subtracted before exp, so exp(1000) is inf and inf / inf is NaN."),
        Mistake("everything", _softmax_over_everything,
                "All your weights together sum to 1. Each row has to sum to 1 by itself: sum along "
                "`axis`."),
        Mistake("no_keepdims", _softmax_no_keepdims,
                "A sum along an axis drops that axis, and then NumPy divides columns by the rows' "
                "sums. Pass keepdims=True so that each row meets its own sum."),
        Mistake("no_shift",
                lambda scores, axis=-1: np.exp(scores) / np.exp(scores).sum(axis, keepdims=True),
                "The formula is right and overflows: exp(1000) is inf, and inf / inf is NaN. "
                "Subtract each row's maximum first; the weights stay the same."),
        Mistake("global_maximum", lambda scores, axis=-1: _softmax_shifted(scores, over="all",
                                                                           axis=axis, guard=False),
                "You subtract the maximum of the whole array. A row far below it underflows to "
                "zeros, and 0 / 0 is NaN. Take the maximum of each row."),
        Mistake("empty_row", lambda scores, axis=-1: _softmax_shifted(scores, axis, guard=False),
                "Right except for a row of -inf only: -inf minus -inf is NaN. Such a row has "
                "nothing to attend to, and its weights are zeros."),
        *_unstable.mistakes(lambda softmax: softmax, _unstable.GUARDED[1:]),
    ],
    also_right=[_softmax_loop, _softmax_by_logs],
    hints=[
        "Three steps: make every score positive, add up each row, divide each row by its sum.",
        "exp makes a score positive. Subtract each row's maximum before it (keepdims=True), and "
        "nothing overflows. Then look at the row of -inf: what is its maximum?",
        "highest = scores.max(axis=axis, keepdims=True), replaced by 0 where it is -inf; powers = "
        "np.exp(scores - highest); total = powers.sum(axis=axis, keepdims=True), replaced by 1 "
        "where it is 0; return powers / total.",
    ],
)

# --- scaled_scores ------------------------------------------------------------------------------


def scaled_scores(query, key):
    """Scores whose scale does not grow with the width: (n, d) and (m, d) to (n, m).

    The dot products of `similarity`, divided by the square root of the width d.
    """
    return query @ key.T / np.sqrt(query.shape[-1])


register(
    name="scaled_scores",
    lesson="01",
    reference=scaled_scores,
    cases=[
        Case("2 queries and 3 keys of width 5", _two(2, 3, 5), why="n, m and d all differ"),
        Case("3 queries and 2 keys of width 16", _two(3, 2, 16)),
        Case("width 1", _two(2, 4, 1), why="the root of 1 changes nothing"),
    ],
    mistakes=[
        Mistake("unscaled", lambda query, key: query @ key.T,
                "These are the plain dot products. Divide them by the square root of the width."),
        Mistake("by_width", lambda query, key: query @ key.T / query.shape[-1],
                "You divided by d. The spread of a dot product grows with the square root of d; "
                "divided by d, the scores would shrink toward 0 and all weights become equal."),
        Mistake("by_keys", lambda query, key: query @ key.T / np.sqrt(len(key)),
                "You divided by the root of the number of keys. It is the width of the vectors "
                "that makes dot products large."),
        Mistake("by_queries", lambda query, key: query @ key.T / np.sqrt(len(query)),
                "You divided by the root of the number of queries: shape[0] instead of shape[-1]."),
        Mistake("multiplied", lambda query, key: query @ key.T * np.sqrt(query.shape[-1]),
                "You multiplied by the root of the width; that makes the scores larger still. "
                "Divide."),
    ],
    also_right=[
        lambda query, key: (query / query.shape[1] ** 0.5) @ key.T,
        lambda query, key: _similarity_loop(query, key) * query.shape[-1] ** -0.5,
    ],
    hints=[
        "Start from your `similarity`. Which of the three sizes n, m and d is the width?",
        "The width is the last axis of `query`: query.shape[-1]. Divide by its square root.",
        "similarity(query, key) / np.sqrt(query.shape[-1])",
    ],
)

# --- attention ----------------------------------------------------------------------------------


def attention(query, key, value):
    """Output (n, v) and weights (n, m): a mean of the values, weighted by scaled scores.

    query is (n, d), key (m, d), value (m, v).
    """
    weights = softmax(scaled_scores(query, key))
    return weights @ value, weights


softmax = solution.softmax  # the name that `attention` finds in a notebook


def _three(n, m, d, v, dtype="float64"):
    return lambda rng: (tuple(rng.normal(size=s).astype(dtype) for s in ((n, d), (m, d), (m, v))),
                        {})


def _three_far(rng):
    return (*_unstable.far_vectors(), rng.normal(size=(3, 2))), {}


def _attention_loop(query, key, value):
    output, every = [], []
    for q in query:
        scores = [float(q @ k) / len(q) ** 0.5 for k in key]
        powers = [np.exp(s - max(scores)) for s in scores]
        weights = [p / sum(powers) for p in powers]
        output.append(sum(w * v for w, v in zip(weights, value, strict=True)))
        every.append(weights)
    return np.array(output), np.array(every)


def _attend(weights, value):
    return weights @ value, weights


register(
    name="attention",
    lesson="01",
    reference=attention,
    parts=("output", "weights"),
    cases=[
        Case("2 queries, 3 keys of width 4, values of width 5", _three(2, 3, 4, 5)),
        Case("3 queries, 3 keys, all of width 3", _three(3, 3, 3, 3),
             why="every wrong transposition runs here"),
        Case("one query, four keys", _three(1, 4, 2, 3)),
        Case("scores of 2000 beside 1999, and a row of -2000", _three_far, why=_unstable.WHY),
    ],
    mistakes=[
        Mistake("only_output", lambda query, key, value: attention(query, key, value)[0],
                "You return the output alone. Return two things, (output, weights): the weights "
                "are what the pictures show."),
        Mistake("swapped", lambda query, key, value: attention(query, key, value)[::-1],
                "Both are right, in the other order: the output comes first, then the weights."),
        Mistake("unscaled", lambda query, key, value: _attend(softmax(query @ key.T), value),
                "The scores are not scaled: use scaled_scores, not similarity."),
        Mistake("over_queries",
                lambda query, key, value: _attend(softmax(scaled_scores(query, key), axis=0),
                                                  value),
                "Your columns sum to 1, so the queries compete for a key. Each query shares out "
                "its own attention: softmax along the last axis."),
        Mistake("no_softmax",
                lambda query, key, value: _attend(scaled_scores(query, key), value),
                "You weight the values with raw scores. They are negative in places and do not "
                "sum to 1: pass them through softmax first."),
        Mistake("keys_for_values",
                lambda query, key, value: (softmax(scaled_scores(query, key)) @ key,
                                           softmax(scaled_scores(query, key))),
                "The weights are right, but you averaged the keys. A key says how to be found, a "
                "value says what to hand over: average `value`."),
        Mistake("softmax_twice",
                lambda query, key, value: _attend(softmax(softmax(scaled_scores(query, key))),
                                                  value),
                "softmax is applied twice; the second time it makes all weights nearly equal."),
        *_unstable.mistakes(lambda softmax: lambda query, key, value: _attend(
            softmax(scaled_scores(query, key)), value)),
    ],
    also_right=[
        _attention_loop,
        lambda query, key, value: solution.scaled_dot_product_attention(query, key, value),
        lambda query, key, value: (
            np.einsum("nm,mv->nv", softmax(scaled_scores(query, key)), value),
            softmax(scaled_scores(query, key))),
    ],
    hints=[
        "Scores, then weights, then a weighted mean. You have written the first two.",
        "weights = softmax(scaled_scores(query, key)) has shape (n, m); value has shape (m, v). "
        "Which product gives (n, v)?",
        "weights = softmax(scaled_scores(query, key)); return weights @ value, weights",
    ],
)

# --- causal_mask --------------------------------------------------------------------------------

register(
    name="causal_mask",
    lesson="01",
    reference=solution.causal_mask,
    cases=[Case(f"length {n}", lambda rng, n=n: ((n,), {})) for n in (3, 1, 6)],
    mistakes=[
        Mistake("future", lambda length: np.triu(np.ones((length, length), dtype=bool)),
                "Upside down: each of your rows sees itself and what comes after it. Row i may "
                "see keys 0 to i."),
        Mistake("hidden_is_true",
                lambda length: np.triu(np.ones((length, length), dtype=bool), k=1),
                "Inverted: you have True where a key is hidden. In this course True always means "
                "'may be attended'."),
        Mistake("not_itself",
                lambda length: np.tril(np.ones((length, length), dtype=bool), k=-1),
                "The diagonal is missing: a token may see itself. Row 0 would have nothing to "
                "attend to."),
        Mistake("additive",
                lambda length: np.where(np.tril(np.ones((length, length))) > 0, 0.0, -np.inf),
                "This is a mask to add to scores. Ours are Boolean: True or False."),
        Mistake("numbers", lambda length: np.tril(np.ones((length, length))),
                "The right pattern in numbers 0 and 1. A mask here is Boolean: dtype=bool."),
    ],
    also_right=[
        lambda length: np.arange(length)[:, None] >= np.arange(length),
        lambda length: np.array([[j <= i for j in range(length)] for i in range(length)]),
        lambda length: ~np.triu(np.ones((length, length), dtype=bool), k=1),
    ],
    hints=[
        "Write the mask for length 3 on paper: row 0 sees one key, row 1 sees two, row 2 three.",
        "np.tril keeps the lower triangle of a matrix, the diagonal included.",
        "np.tril(np.ones((length, length), dtype=bool))",
    ],
)

# --- padding_mask -------------------------------------------------------------------------------


def _rows_of_tokens(rng):
    return ((np.array([[True, True, True, False], [True, True, False, False]]),), {})


def _outer(attention_mask):
    real = attention_mask.astype(bool)
    return real[:, None, :, None] & real[:, None, None, :]


register(
    name="padding_mask",
    lesson="01",
    reference=solution.padding_mask,
    cases=[
        Case("two sentences of length 4", _rows_of_tokens),
        Case("given as 0 and 1", lambda rng: ((np.array([[1, 1, 0], [1, 0, 0]]),), {})),
        Case("one sentence without padding", lambda rng: ((np.ones((1, 3), dtype=bool),), {})),
        Case("a sentence that is all padding", lambda rng: ((np.zeros((1, 3), dtype=bool),), {})),
    ],
    mistakes=[
        Mistake("two_axes", lambda attention_mask: attention_mask.astype(bool),
                "Right numbers, but of shape (batch, length). The scores of a batch are (batch, "
                "heads, queries, keys): put two axes of size 1 in the middle."),
        Mistake("three_axes", lambda attention_mask: attention_mask.astype(bool)[:, None, :],
                "One axis is missing: (batch, 1, 1, length) stands for batch, heads, queries, "
                "keys."),
        Mistake("hides_queries",
                lambda attention_mask: attention_mask.astype(bool)[:, None, :, None],
                "You hide queries: the length stands on the third axis. Padding is hidden as a "
                "key, so the length goes on the last axis. Hidden queries would have empty rows."),
        Mistake("both", _outer,
                "You hide padding as key and as query. The rows of padded queries come out empty "
                "for nothing: what they find is never read. Hide keys only."),
        Mistake("inverted", lambda attention_mask: ~attention_mask.astype(bool)[:, None, None, :],
                "Inverted: True must mean 'is real, may be attended'."),
        Mistake("numbers", lambda attention_mask: attention_mask[:, None, None, :].astype(int),
                "Right pattern and shape, in numbers. A mask here is Boolean: .astype(bool)."),
    ],
    also_right=[
        lambda attention_mask: np.expand_dims(attention_mask.astype(bool), (1, 2)),
        lambda attention_mask: (attention_mask.reshape(len(attention_mask), 1, 1, -1) > 0),
    ],
    hints=[
        "The scores of a batch have four axes: batch, heads, queries, keys. Which two does a row "
        "of `attention_mask` speak about?",
        "Batch and keys. Indexing with None puts in an axis of size 1, which NumPy stretches.",
        "attention_mask.astype(bool)[:, None, None, :]",
    ],
)

# --- scaled_dot_product_attention ---------------------------------------------------------------


def _batch(rng, mask, heads=2, n=3, m=4, d=5, v=3, dtype="float64"):
    """(batch 2, heads) queries, keys and values of unit scale, and a mask."""
    q, k, val = (rng.normal(size=(2, heads, *s)).astype(dtype) for s in ((n, d), (m, d), (m, v)))
    return (q, k, val), ({} if mask is None else {"mask": mask})


_REAL = np.array([[True, True, True, False], [True, True, False, False]])[:, None, None, :]
_EMPTY = np.array([[True, False, True, False], [False] * 4, [True, True, True, True]])


def _masked(query, key, value, mask=None, *, how, scale=None):
    """Attention with the mask applied in one of the popular wrong ways."""
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(scale or query.shape[-1])
    if mask is None:
        return _attend(softmax(scores), value)
    if how == "after":
        return _attend(softmax(scores) * mask, value)
    if how == "added":
        return _attend(softmax(scores + mask), value)
    if how == "multiplied":
        return _attend(softmax(scores * mask), value)
    if how == "inverted":
        return _attend(softmax(np.where(mask, -np.inf, scores)), value)
    if how == "ignored":
        return _attend(softmax(scores), value)
    if how == "sentinel":
        return _attend(softmax(np.where(mask, scores, -1e9).astype(scores.dtype)), value)
    if how == "sentinel_added":
        return _attend(softmax((scores + np.where(mask, 0, -1e9)).astype(scores.dtype)), value)
    if how == "inf_times":
        return _attend(softmax(scores + (1 - mask) * -np.inf), value)
    weights = softmax(scores) * mask
    return _attend(weights / weights.sum(axis=-1, keepdims=True), value)  # renormalized


def _wrong(how):
    return lambda query, key, value, mask=None: _masked(query, key, value, mask, how=how)


def _unscaled(query, key, value, mask=None):
    return _masked(query * np.sqrt(query.shape[-1]), key, value, mask, how="sentinel")


def _with_softmax(softmax):
    def answer(query, key, value, mask=None):
        scores = query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5
        return _attend(softmax(scores if mask is None else np.where(mask, scores, -np.inf)), value)
    return answer


def _sdpa_einsum(query, key, value, mask=None):
    scores = np.einsum("...nd,...md->...nm", query, key) / query.shape[-1] ** 0.5
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return np.einsum("...nm,...mv->...nv", weights, value), weights


def _sdpa_loop(query, key, value, mask=None):
    shape = (*query.shape[:-1], key.shape[-2])
    mask = np.broadcast_to(True if mask is None else mask, shape)
    weights = np.zeros(shape, dtype=query.dtype)
    for place in np.ndindex(shape[:-1]):
        keys = key[place[:-1]]
        seen = mask[place]
        if seen.any():
            scores = keys[seen] @ query[place] / np.sqrt(query.shape[-1])
            powers = np.exp(scores - scores.max())
            weights[place][seen] = powers / powers.sum()
    return weights @ value, weights


register(
    name="scaled_dot_product_attention",
    lesson="01",
    reference=solution.scaled_dot_product_attention,
    parts=("output", "weights"),
    cases=[
        Case("no mask, no batch", _three(2, 3, 4, 5)),
        Case("a batch of 2, two heads, no mask", lambda rng: _batch(rng, None),
             why="key.T would turn all axes"),
        Case("padding hidden", lambda rng: _batch(rng, _REAL)),
        Case("causal", lambda rng: _batch(rng, solution.causal_mask(4), n=4)),
        Case("a row that may see nothing", lambda rng: _batch(rng, _EMPTY)),
        Case("float32, a row that may see nothing",
             lambda rng: _batch(rng, _EMPTY, dtype="float32")),
        Case("scores of 2000 beside 1999, and a row of -2000", _three_far, why=_unstable.WHY),
    ],
    mistakes=[
        Mistake("unscaled", _unscaled,
                "The scores are not divided by the square root of the width."),
        Mistake("all_axes_turned",
                lambda query, key, value, mask=None: _masked(
                    query, np.swapaxes(key.T, -1, -2), value, mask, how="sentinel"),
                "Other axes of key than its last two were turned, the batch too (key.T reverses "
                "them all). np.swapaxes(key, -1, -2) turns the last two."),
        Mistake("mask_ignored", _wrong("ignored"),
                "Right without a mask; with one, your weights are the same as without. Use `mask` "
                "on the scores."),
        Mistake("inverted", _wrong("inverted"),
                "You hide exactly the keys that may be attended: True means visible."),
        Mistake("mask_after", _wrong("after"),
                "You multiply the weights by the mask after the softmax. The hidden keys have "
                "taken their share by then, and the rest no longer sums to 1."),
        Mistake("mask_added", _wrong("added"),
                "You add the mask to the scores. That adds 1 to the visible keys and hides nothing "
                "from anybody: replace hidden scores by -inf."),
        Mistake("mask_multiplied", _wrong("multiplied"),
                "You multiply the scores by the mask. A hidden score becomes 0, and exp(0) is 1: "
                "it still gets weight. Replace it by -inf."),
        Mistake("inf_times", _wrong("inf_times"),
                "(1 - mask) * -inf is NaN where the mask is True, because 0 * inf is NaN. Choose "
                "with np.where instead of multiplying."),
        Mistake("renormalized", _wrong("renormalized"),
                "Multiplying after the softmax and dividing again gives the right weights until a "
                "row may see nothing: 0 / 0 is NaN. Mask the scores before the softmax."),
        Mistake("sentinel", _wrong("sentinel"),
                "A large negative number in place of -inf: a row that may see nothing then spreads "
                "its attention evenly over hidden keys. With -inf it gets zeros."),
        Mistake("sentinel_added", _wrong("sentinel_added"),
                "You add a large negative number. In a row that may see nothing the hidden keys "
                "then get weight all the same. Replace the scores: "
                "np.where(mask, scores, -np.inf)."),
        *_unstable.mistakes(_with_softmax, _unstable.GUARDED),
    ],
    also_right=[_sdpa_einsum, _sdpa_loop],
    hints=[
        "Your `attention` with two changes: any number of leading axes, and a mask on the scores.",
        "np.swapaxes(key, -1, -2) turns the last two axes whatever stands before them. Then, if "
        "there is a mask: which number makes exp(score) exactly 0?",
        "scores = query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5; with a mask, scores = "
        "np.where(mask, scores, -np.inf); then softmax and @ value.",
    ],
)
