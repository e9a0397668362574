"""Lesson 06's exercises: pooling, the head, a bag of words, and honest evaluation."""

import numpy as np

from course.exercises import Case, Mistake, _unstable, register
from solutions import encoder
from solutions import text_classification as solution
from solutions.attention import softmax

# --- cls_pool -----------------------------------------------------------------------------------


def _hidden(batch=2, length=3, d=4, dtype="float64"):
    return lambda rng: ((rng.normal(size=(batch, length, d)).astype(dtype),), {})


register(
    name="cls_pool",
    lesson="06",
    reference=solution.cls_pool,
    cases=[
        Case("2 texts of 3 tokens, width 4", _hidden(), why="all sizes differ"),
        Case("3 texts of 3 tokens, width 3", _hidden(3, 3, 3), why="every wrong axis runs here"),
        Case("one text, one token", _hidden(1, 1, 2)),
        Case("float32", _hidden(2, 2, 3, "float32")),
    ],
    mistakes=[
        Mistake("first_text", lambda hidden_states: hidden_states[0],
                "hidden_states[0] is the first text with all its tokens. [CLS] is the first token "
                "of every text: the second axis."),
        Mistake("first_number", lambda hidden_states: hidden_states[:, :, 0],
                "You took the first number of every token. [CLS] is a place on the second axis, "
                "tokens; keep its whole vector."),
        Mistake("kept_axis", lambda hidden_states: hidden_states[:, :1],
                "Right numbers with an axis of size 1 left over. An index instead of a slice drops "
                "the axis."),
        Mistake("last_token", lambda hidden_states: hidden_states[:, -1],
                "You took the last token. [CLS] stands first; the last one is [SEP] or padding."),
        Mistake("mean", lambda hidden_states: hidden_states.mean(axis=1),
                "That is a mean of all tokens. This exercise wants the vector of [CLS] alone."),
    ],
    also_right=[
        lambda hidden_states: hidden_states[:, 0],
        lambda hidden_states: np.take(hidden_states, 0, axis=1),
        lambda hidden_states: np.stack([text[0] for text in hidden_states]),
    ],
    hints=[
        "The axes are batch, length, width. Which one do you want a single place of?",
        "Keep all texts and the whole width; take place 0 of the second axis.",
        "hidden_states[:, 0]",
    ],
)

# --- mean_pool ----------------------------------------------------------------------------------


def _padded(mask, d=2, dtype="float64"):
    mask = np.array(mask)
    return lambda rng: ((rng.normal(size=(*mask.shape, d)).astype(dtype), mask), {})


AS_PLACES = (
    "attention_mask holds 1 and 0 here, and in square brackets those are places: the second token "
    "and the first. Make it Boolean before it chooses: attention_mask.astype(bool)."
)
FROM_THE_FRONT = (
    "You count the real tokens and take as many from the front. The mask says which ones are real; "
    "padding may stand before them too."
)


def _three_tokens(rng):
    return ((np.array([[[2.0, 0.0], [4.0, 2.0], [9.0, 9.0]]]), np.array([[1, 1, 0]])), {})


def _mean_loop(hidden_states, attention_mask):
    rows = []
    for text, real in zip(hidden_states, attention_mask, strict=True):
        vectors = [v for v, r in zip(text, real, strict=True) if r]
        rows.append(np.mean(vectors, axis=0) if vectors else np.zeros(text.shape[-1]))
    return np.array(rows, dtype=hidden_states.dtype)


def _mean_einsum(hidden_states, attention_mask):
    real = attention_mask.astype(hidden_states.dtype)
    weights = real / np.maximum(real.sum(axis=1, keepdims=True), 1)
    return np.einsum("bl,bld->bd", weights, hidden_states)


def _real(hidden_states, attention_mask):
    return hidden_states * attention_mask.astype(hidden_states.dtype)[:, :, None]


register(
    name="mean_pool",
    lesson="06",
    reference=solution.mean_pool,
    cases=[
        Case("the three tokens above, the last one padding", _three_tokens),
        Case("two texts of different length", _padded([[1, 1, 1, 0], [1, 1, 0, 0]], d=3)),
        Case("no padding", _padded([[True, True, True]])),
        Case("a text that is all padding", _padded([[True, False], [False, False]])),
        Case("float32", _padded([[True, True, False]], dtype="float32")),
        Case("padding in front", _padded([[0, 0, 1, 1], [0, 1, 1, 1]]),
             why="the mask says which tokens are real, not only how many"),
    ],
    mistakes=[
        Mistake("padding_counted", lambda hidden_states, attention_mask: hidden_states.mean(axis=1),
                "Padding is counted in. Its vectors mean nothing, and the answer would change with "
                "the length of the longest text in the batch."),
        Mistake("divided_by_length",
                lambda h, m: _real(h, m).sum(axis=1) / h.shape[1],
                "You leave padding out of the sum but divide by the full length. Divide by the "
                "number of real tokens."),
        Mistake("sum", lambda h, m: _real(h, m).sum(axis=1),
                "That is the sum of the real tokens. Divide it by how many there are."),
        Mistake("batch_mean",
                lambda h, m: _real(h, m).sum(axis=1) / max(m.astype(float).sum(), 1),
                "You divide by the real tokens of the whole batch. Each text has its own count."),
        Mistake("empty_is_nan",
                lambda h, m: _real(h, m).sum(axis=1) / m.astype(h.dtype).sum(axis=1,
                                                                             keepdims=True),
                "Right, except for a text without real tokens: 0 / 0 is NaN. Let it give zeros."),
        Mistake("inverted", lambda h, m: solution.mean_pool(h, ~m.astype(bool)),
                "You average the padding: True, or 1, marks a real token."),
        Mistake("mask_as_places", lambda h, m: np.array([
                    text[real].mean(axis=0) if real.any() else 0 * text[0]
                    for text, real in zip(h, m, strict=True)]),
                AS_PLACES),
        Mistake("first_tokens", lambda h, m: np.array([
                    text[:count].sum(axis=0) / max(int(count), 1)
                    for text, count in zip(h, m.sum(axis=1), strict=True)]),
                FROM_THE_FRONT),
    ],
    also_right=[_mean_loop, _mean_einsum],
    hints=[
        "Sum the real tokens of each text, count them, divide.",
        "attention_mask is (batch, length); to multiply it with (batch, length, d) it needs a last "
        "axis of size 1. What should the count be at least, so that nothing is divided by 0?",
        "real = attention_mask.astype(hidden_states.dtype)[:, :, None]; then "
        "(hidden_states * real).sum(axis=1) / np.maximum(real.sum(axis=1), 1)",
    ],
)

# --- class_probabilities ------------------------------------------------------------------------


def class_probabilities(pooled, weight, bias):
    """Probabilities (batch, classes) of a linear head on pooled vectors (batch, d).

    weight is (d, classes), bias (classes,).
    """
    logits = pooled @ weight + bias
    return softmax(logits)


def _head(batch=2, d=4, classes=3):
    return lambda rng: ((rng.normal(size=(batch, d)), rng.normal(size=(d, classes)),
                         rng.normal(size=classes)), {})


register(
    name="class_probabilities",
    lesson="06",
    reference=class_probabilities,
    cases=[
        Case("2 texts, width 4, 3 classes", _head()),
        Case("3 texts, width 3, 3 classes", _head(3, 3, 3), why="wrong transpositions run here"),
        Case("one text, two classes", _head(1, 5, 2)),
        Case("logits of 2000 beside 1999, and a row of -2000",
             lambda rng: ((np.eye(3), _unstable.FAR.copy(), np.zeros(3)), {}), why=_unstable.WHY),
    ],
    mistakes=[
        Mistake("logits", lambda pooled, weight, bias: pooled @ weight + bias,
                "These are logits: any numbers. A softmax along the classes turns them into "
                "probabilities."),
        Mistake("turned", lambda pooled, weight, bias: softmax(pooled @ weight.T + bias),
                "weight is stored (d, classes): multiply by it as it stands."),
        Mistake("no_bias", lambda pooled, weight, bias: softmax(pooled @ weight),
                "The bias is missing: each class adds its own number to its logit, before the "
                "softmax."),
        Mistake("softmax_twice",
                lambda pooled, weight, bias: softmax(softmax(pooled @ weight + bias)),
                "softmax is applied twice; the second time it pulls all classes together."),
        Mistake("over_everything",
                lambda pooled, weight, bias: softmax((pooled @ weight + bias).ravel()).reshape(
                    len(pooled), -1),
                "All your probabilities together sum to 1. Those of each text have to: softmax "
                "along the last axis, the classes."),
        Mistake("over_texts", lambda pooled, weight, bias: softmax(pooled @ weight + bias, axis=0),
                "Your columns sum to 1: the texts compete for a class. Each text's classes have to "
                "sum to 1."),
        Mistake("sigmoid",
                lambda pooled, weight, bias: 1 / (1 + np.exp(-(pooled @ weight + bias))),
                "That is a sigmoid on each logit. It fits one logit, or labels that may hold "
                "together; classes that exclude each other share a softmax."),
        Mistake("bias_after", lambda pooled, weight, bias: softmax(pooled @ weight) + bias,
                "The bias belongs to the logits, before the softmax."),
        *_unstable.mistakes(
            lambda softmax: lambda pooled, weight, bias: softmax(pooled @ weight + bias)),
    ],
    also_right=[
        lambda pooled, weight, bias: softmax(encoder.linear(pooled, weight, bias)),
        lambda pooled, weight, bias: softmax(np.einsum("bd,dc->bc", pooled, weight) + bias),
        lambda pooled, weight, bias: np.array([softmax(p @ weight + bias) for p in pooled]),
    ],
    hints=[
        "A linear layer first, then the softmax of lesson 01.",
        "logits = pooled @ weight + bias has shape (batch, classes). Along which axis do the "
        "probabilities of one text lie?",
        "softmax(pooled @ weight + bias)",
    ],
)

# --- mean_pool_backward -------------------------------------------------------------------------


def _grad(mask, d=3):
    mask = np.array(mask)
    return lambda rng: ((rng.normal(size=(len(mask), d)), mask), {})


def _spread(grad_pooled, attention_mask):
    return np.repeat(grad_pooled[:, None, :], attention_mask.shape[1], axis=1)


def _shared(grad_pooled, attention_mask, places):
    """An equal share to each of the places, given for each text."""
    grad = np.zeros((*attention_mask.shape, grad_pooled.shape[-1]), grad_pooled.dtype)
    for b, count in enumerate(attention_mask.sum(axis=1)):
        grad[b, places[b]] = grad_pooled[b] / max(int(count), 1)
    return grad


def _share_loop(grad_pooled, attention_mask):
    grad = np.zeros((*attention_mask.shape, grad_pooled.shape[-1]), grad_pooled.dtype)
    for b, real in enumerate(attention_mask.astype(bool)):
        for t in np.flatnonzero(real):
            grad[b, t] = grad_pooled[b] / real.sum()
    return grad


register(
    name="mean_pool_backward",
    lesson="06",
    reference=solution.mean_pool_backward,
    cases=[
        Case("two texts of 4 tokens", _grad([[1, 1, 1, 0], [1, 1, 0, 0]])),
        Case("no padding", _grad([[True, True]], d=2)),
        Case("a text of one token", _grad([[1, 0, 0], [1, 1, 1]])),
        Case("a text that is all padding", _grad([[True, False, True], [False] * 3])),
    ],
    mistakes=[
        Mistake("not_shared", lambda g, m: _spread(g, m) * m.astype(g.dtype)[:, :, None],
                "Every real token gets the whole gradient. The forward step divided by the number "
                "of tokens, so the way back divides too."),
        Mistake("to_padding", lambda g, m: _spread(g, m) / m.shape[1],
                "Padding gets a share as well. It did not take part in the mean, so changing it "
                "changes nothing: its gradient is 0."),
        Mistake("by_length",
                lambda g, m: _spread(g, m) * m.astype(g.dtype)[:, :, None] / m.shape[1],
                "You divide by the length with padding. The mean divided by the number of real "
                "tokens."),
        Mistake("padding_too",
                lambda g, m: _spread(g, m)
                / np.maximum(m.astype(g.dtype).sum(axis=1), 1)[:, None, None],
                "Right for real tokens, but padding gets the same share. It did not take part in "
                "the mean: its gradient is 0."),
        Mistake("by_batch",
                lambda g, m: _spread(g, m) * m.astype(g.dtype)[:, :, None] / max(m.sum(), 1),
                "You divide by the real tokens of the whole batch. Each text has its own count."),
        Mistake("to_cls", lambda g, m: solution.cls_pool_backward(g, m.shape[1]),
                "All of it goes to the first token; that would be the way back of cls_pool. The "
                "mean took from every real token: each gets an equal share."),
        Mistake("empty_is_nan",
                lambda g, m: _spread(g, m) * m.astype(g.dtype)[:, :, None]
                / m.astype(g.dtype).sum(axis=1)[:, None, None],
                "Right, except for a text without real tokens: 0 / 0 is NaN. Its gradient is 0."),
        Mistake("mask_as_places", lambda g, m: _shared(g, m, list(m)),
                AS_PLACES),
        Mistake("first_tokens", lambda g, m: _shared(g, m, [slice(n) for n in m.sum(axis=1)]),
                FROM_THE_FRONT),
    ],
    also_right=[
        _share_loop,
        lambda g, m: np.einsum("bd,bl->bld", g, m / np.maximum(m.sum(axis=1, keepdims=True), 1)),
    ],
    hints=[
        "If one number of one real token goes up by 1, by how much does the mean go up?",
        "By 1 / (number of real tokens of that text). The gradient of the mean is handed to each "
        "real token, times that. Shapes: (batch, 1, d) times (batch, length, 1).",
        "real = attention_mask.astype(grad_pooled.dtype)[:, :, None]; then grad_pooled[:, None, :] "
        "* real / np.maximum(real.sum(axis=1, keepdims=True), 1)",
    ],
)

# --- bag_of_words -------------------------------------------------------------------------------


def _ids(ids, mask, size):
    return lambda rng: ((np.array(ids), np.array(mask), size), {})


def _bag_loop(input_ids, attention_mask, vocab_size):
    counts = np.zeros((len(input_ids), vocab_size))
    for row, (ids, real) in enumerate(zip(input_ids, attention_mask, strict=True)):
        for token, r in zip(ids, real, strict=True):
            counts[row, token] += float(r)
    return counts


def _bag_overwritten(input_ids, attention_mask, vocab_size):
    counts = np.zeros((len(input_ids), vocab_size))
    counts[np.arange(len(input_ids))[:, None], input_ids] += attention_mask
    return counts


register(
    name="bag_of_words",
    lesson="06",
    reference=solution.bag_of_words,
    cases=[
        Case("a token that occurs twice", _ids([[3, 3, 1]], [[1, 1, 1]], 5),
             why="counts[rows, ids] += 1 counts it once"),
        Case("two texts, one with padding", _ids([[2, 4, 2], [1, 0, 0]], [[1, 1, 1], [1, 0, 0]],
                                                 6)),
        Case("padding whose id is also a real token's",
             _ids([[0, 0, 2]], [[True, False, False]], 3)),
        Case("padding in front", _ids([[0, 0, 3, 1]], [[0, 0, 1, 1]], 4),
             why="the mask says which tokens are real, not only how many"),
    ],
    mistakes=[
        Mistake("once", _bag_overwritten,
                "A token that occurs twice is counted once: with repeated indices, counts[rows, "
                "ids] += 1 adds only the last time. np.add.at adds every time."),
        Mistake("present", lambda i, m, v: np.minimum(_bag_loop(i, m, v), 1.0),
                "You note whether a token occurs, not how often."),
        Mistake("padding", lambda i, m, v: _bag_loop(i, np.ones_like(m), v),
                "Padding is counted. Use attention_mask to leave it out."),
        Mistake("id_0_left_out", lambda i, m, v: _bag_loop(i, i > 0, v),
                "You leave out the id 0. What is padding is said by attention_mask; in a "
                "vocabulary of another make, 0 may be a word."),
        Mistake("share", lambda i, m, v: _bag_loop(i, m, v) / m.sum(axis=1, keepdims=True),
                "These are shares of the text. Return the counts themselves."),
        Mistake("whole_batch",
                lambda i, m, v: np.tile(_bag_loop(i, m, v).sum(axis=0), (len(i), 1)),
                "You count over the whole batch. Each text has a row of its own."),
        Mistake("mask_as_places", lambda i, m, v: np.array([
                    np.bincount(ids[real], minlength=v) * 1.0
                    for ids, real in zip(i, m, strict=True)]),
                AS_PLACES),
        Mistake("first_tokens", lambda i, m, v: np.array([
                    np.bincount(ids[:count], minlength=v) * 1.0
                    for ids, count in zip(i, m.sum(axis=1), strict=True)]),
                FROM_THE_FRONT),
    ],
    also_right=[
        _bag_loop,
        lambda i, m, v: np.einsum("bl,blv->bv", m.astype(float), np.eye(v)[i]),
        lambda i, m, v: np.array([np.bincount(a, weights=b, minlength=v) for a, b in
                                  zip(i, m, strict=True)]),
    ],
    hints=[
        "One row for each text, one column for each token of the vocabulary. A loop over tokens "
        "is a fine answer.",
        "np.add.at(counts, (rows, input_ids), attention_mask) adds at repeated places too; rows is "
        "a column of row numbers.",
        "counts = np.zeros((len(input_ids), vocab_size)); rows = "
        "np.arange(len(input_ids))[:, None]; np.add.at(counts, (rows, input_ids), attention_mask)",
    ],
)

# --- confusion_matrix ---------------------------------------------------------------------------


def _labels(true, predicted, classes):
    return lambda rng: ((np.array(true), np.array(predicted), classes), {})


def _one_each(true, predicted, num_classes):
    counts = np.zeros((num_classes, num_classes), dtype=int)
    counts[true, predicted] += 1
    return counts


def _seen_only(true, predicted, num_classes):
    size = int(max(*true, *predicted)) + 1 if len(true) else 0
    return solution.confusion_matrix(true, predicted, size) if size else np.zeros((0, 0), int)


register(
    name="confusion_matrix",
    lesson="06",
    reference=solution.confusion_matrix,
    cases=[
        Case("six texts, three classes", _labels([0, 0, 1, 2, 2, 2], [0, 1, 1, 0, 2, 2], 3)),
        Case("a class that never occurs", _labels([0, 1, 0], [1, 1, 0], 4)),
        Case("no texts", lambda rng: ((np.zeros(0, int), np.zeros(0, int), 2), {})),
    ],
    mistakes=[
        Mistake("turned", lambda t, p, c: solution.confusion_matrix(p, t, c),
                "Rows and columns are swapped: a row belongs to the true class, a column to the "
                "predicted one."),
        Mistake("once", _one_each,
                "A pair that occurs twice is counted once: with repeated indices += adds only the "
                "last time. A loop over the pairs adds every time, and so does np.add.at."),
        Mistake("only_right", lambda t, p, c: np.diag(np.bincount(t[t == p], minlength=c)),
                "Only the right answers are counted. The errors, off the diagonal, are what the "
                "table is for."),
        Mistake("shares",
                lambda t, p, c: solution.confusion_matrix(t, p, c) / max(len(t), 1),
                "You divide by the number of texts. The table holds counts, whole numbers."),
        Mistake("seen_only", _seen_only,
                "The table has as many rows as classes occur. A class without a text still has a "
                "row and a column: use num_classes."),
    ],
    also_right=[
        lambda t, p, c: np.bincount(t * c + p, minlength=c * c).reshape(c, c),
        lambda t, p, c: (np.eye(c, dtype=int)[t].T @ np.eye(c, dtype=int)[p]),
    ],
    hints=[
        "Start from a square of zeros, whole numbers. Which cell does one text belong to?",
        "For each pair (true, predicted) add 1 to counts[true, predicted].",
        "for t, p in zip(true, predicted): counts[t, p] += 1",
    ],
)

# --- macro_f1 -----------------------------------------------------------------------------------


def _f1_parts(true, predicted, num_classes=None):
    classes = np.union1d(true, predicted) if num_classes is None else np.arange(num_classes)
    hits = np.array([np.sum((true == c) & (predicted == c)) for c in classes], dtype=float)
    return (hits, np.array([np.sum(true == c) for c in classes], dtype=float),
            np.array([np.sum(predicted == c) for c in classes], dtype=float))


def _over(top, bottom):
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def _mean(scores):
    return float(np.mean(scores)) if len(scores) else 0.0


def _f1(true, predicted, num_classes=None):
    hits, n_true, n_predicted = _f1_parts(true, predicted, num_classes)
    return _over(2 * hits, n_true + n_predicted)


def _f1_of_means(true, predicted, num_classes=None):
    hits, n_true, n_predicted = _f1_parts(true, predicted, num_classes)
    precision, recall = _mean(_over(hits, n_predicted)), _mean(_over(hits, n_true))
    return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


def _f1_harmonic(true, predicted, num_classes=None):
    hits, n_true, n_predicted = _f1_parts(true, predicted, num_classes)
    precision, recall = _over(hits, n_predicted), _over(hits, n_true)
    return _mean(_over(2 * precision * recall, precision + recall))


def _f1_skipping(true, predicted, num_classes=None):
    hits, n_true, n_predicted = _f1_parts(true, predicted, num_classes)
    kept = n_true + n_predicted > 0
    return _mean(2 * hits[kept] / (n_true + n_predicted)[kept])


def _f1_weighted(true, predicted, num_classes=None):
    shares = _f1_parts(true, predicted, num_classes)[1] / max(len(true), 1)
    return float((_f1(true, predicted, num_classes) * shares).sum())


register(
    name="macro_f1",
    lesson="06",
    reference=solution.macro_f1,
    cases=[
        Case("eight texts, a rare class", _labels([0, 0, 0, 0, 0, 1, 1, 2],
                                                  [0, 0, 0, 1, 0, 1, 0, 1], 3)),
        Case("classes counted by what occurs",
             lambda rng: ((np.array([1, 1, 4]), np.array([1, 4, 4])), {})),
        Case("a class that is never predicted, and one that is never true",
             lambda rng: ((np.array([0, 0, 2]), np.array([0, 5, 0])), {}),
             why="both count, as 0"),
        Case("a class that never occurs", _labels([0, 1, 1], [0, 1, 0], 3),
             why="num_classes = 3 makes it count as 0"),
        Case("all wrong", _labels([0, 1], [1, 0], 2)),
        Case("no texts, so no classes", lambda rng: ((np.zeros(0, int), np.zeros(0, int)), {}),
             why="the mean of nothing is NaN; here it is 0"),
    ],
    mistakes=[
        Mistake("accuracy", lambda t, p, num_classes=None: _mean(t == p),
                "That is accuracy: it counts each text alike, so a large class hides a small one. "
                "Compute F1 of each class, then their plain mean."),
        Mistake("recall", lambda t, p, num_classes=None: _mean(
            _over(*_f1_parts(t, p, num_classes)[:2])),
            "That is the mean recall: hits over how often a class is true. F1 also counts how "
            "often it was predicted."),
        Mistake("precision", lambda t, p, num_classes=None: _mean(
            _over(*_f1_parts(t, p, num_classes)[::2])),
            "That is the mean precision: hits over how often a class was predicted. F1 also counts "
            "how often it is true."),
        Mistake("no_two", lambda t, p, num_classes=None: _mean(_f1(t, p, num_classes)) / 2,
                "Half of what it should be: F1 is 2 hits over (times true + times predicted)."),
        Mistake("f1_of_means", _f1_of_means,
                "You averaged precision and recall over the classes first. Macro F1 is the mean of "
                "the classes' F1."),
        Mistake("weighted", _f1_weighted,
                "You weight each class by its size. Macro F1 counts every class the same."),
        Mistake("skips", _f1_skipping,
                "A class of num_classes that never occurs counts as 0 here; you leave it out."),
    ],
    also_right=[_f1_harmonic, lambda t, p, num_classes=None: _mean(_f1(t, p, num_classes))],
    hints=[
        "One number for each class first, then their plain mean; without any class, 0.",
        "For class c: hits are the texts that are c and predicted c. F1 is 2 hits / (times true + "
        "times predicted), and 0 where that would be 0 / 0.",
        "classes = np.union1d(true, predicted) if num_classes is None else range(num_classes); for "
        "each c append 2 * hits / both if both else 0.0; return float(np.mean(scores)) if scores "
        "else 0.0",
    ],
)

# --- calibration_error --------------------------------------------------------------------------


def _forecasts(probabilities, true, **options):
    return lambda rng: ((np.array(probabilities), np.array(true)), options)


def _random_forecasts(rng):
    return ((softmax(rng.normal(size=(40, 3)) * 2), rng.integers(0, 3, 40)), {"bins": 5})


def _calibration(probabilities, true, bins=10, *, weighted=True, signed=False, overall=False,
                 confidence_of=None, bin_of=None):
    confidence = (probabilities.max(axis=-1) if confidence_of is None
                  else confidence_of(probabilities, true))
    right = probabilities.argmax(axis=-1) == true
    if overall:
        return float(abs(confidence.mean() - right.mean()))
    where = (np.minimum((confidence * bins).astype(int), bins - 1) if bin_of is None
             else bin_of(confidence, bins))
    gaps, sizes = [], []
    for b in np.unique(where):
        gap = confidence[where == b].mean() - right[where == b].mean()
        gaps.append(gap if signed else abs(gap))
        sizes.append(np.mean(where == b))
    return float(np.dot(gaps, sizes) if weighted else np.mean(gaps))


def _with(**options):
    return lambda probabilities, true, bins=10: _calibration(probabilities, true, bins, **options)


def _calibration_by_text(probabilities, true, bins=10):
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == true
    where = [min(int(c * bins), bins - 1) for c in confidence]
    gaps = np.zeros(bins)
    for b, c, r in zip(where, confidence, right, strict=True):
        gaps[b] += c - float(r)
    return float(np.abs(gaps).sum() / len(true))


register(
    name="calibration_error",
    lesson="06",
    reference=solution.calibration_error,
    cases=[
        Case("two confident answers, one of them wrong",
             _forecasts([[0.95, 0.05], [0.95, 0.05]], [0, 1])),
        Case("over- and underconfident bins that would cancel",
             _forecasts([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.6, 0.4]],
                        [1, 0, 0, 0, 0])),
        Case("40 random forecasts, 5 bins", _random_forecasts),
        Case("complete certainty", _forecasts([[1.0, 0.0], [0.0, 1.0]], [0, 0]),
             why="a confidence of 1 belongs to the last bin"),
        Case("a border between bins", _forecasts([[0.5, 0.5], [0.75, 0.25]], [1, 0], bins=4)),
        Case("a confidence on the border of two bins",
             _forecasts([[0.5, 0.5], [0.4, 0.6], [0.55, 0.45]], [1, 1, 0], bins=2)),
        Case("0.9 begins a bin", _forecasts([[0.9, 0.1], [0.85, 0.15]], [1, 0]),
             why="0.9 // 0.1 is 8, because 0.1 is a little more than a tenth"),
        Case("0.64 and 0.66 share a bin", _forecasts([[0.64, 0.36], [0.66, 0.34]], [0, 1]),
             why="rounded to tenths they would not"),
        Case("0.95 and 1.0 share the last bin", _forecasts([[0.95, 0.05], [1.0, 0.0]], [0, 1])),
    ],
    mistakes=[
        Mistake("one_minus_accuracy",
                lambda p, t, bins=10: float(np.mean(p.argmax(axis=-1) != t)),
                "That is the share of wrong answers. Calibration compares it with the confidence: "
                "someone who is right 6 times in 10 and says '60 %' is well calibrated."),
        Mistake("no_bins", _with(overall=True),
                "You compare one mean confidence with one accuracy. Too sure here and too unsure "
                "there then cancel out; compare bin by bin."),
        Mistake("signed", _with(signed=True),
                "The gaps of the bins may have either sign and cancel in your sum. Take absolute "
                "values."),
        Mistake("unweighted", _with(weighted=False),
                "Every bin counts the same in your mean. Weight a bin by its share of the texts."),
        Mistake("each_text",
                lambda p, t, bins=10: float(np.abs(p.max(axis=-1)
                                                   - (p.argmax(axis=-1) == t)).mean()),
                "You compare each text's confidence with its own right or wrong, so even a perfect "
                "forecaster of a fair coin is off by half. Average inside a bin first."),
        Mistake("bin_center",
                lambda p, t, bins=10: _calibration(
                    (np.minimum((p * bins).astype(int), bins - 1) + 0.5) / bins, t, bins),
                "You take the middle of the bin for its confidence. Take the mean of the "
                "confidences that fell into it."),
        Mistake("true_class",
                _with(confidence_of=lambda p, t: p[np.arange(len(t)), t]),
                "You took the probability of the true class. Confidence is the probability of the "
                "class that the model chose: the highest one."),
        Mistake("floor_division",
                _with(bin_of=lambda confidence, bins: np.minimum(confidence // (1 / bins),
                                                                 bins - 1)),
                "You divide by the width of a bin with //. A tenth has no exact float: 0.9 // 0.1 "
                "is 8. Multiply: int(confidence * bins)."),
        Mistake("rounded",
                _with(bin_of=lambda confidence, bins: np.minimum(np.round(confidence * bins),
                                                                 bins - 1)),
                "You round confidence * bins. Bin b begins at b / bins: cut off what stands behind "
                "the point, with int."),
        Mistake("bin_too_many",
                _with(bin_of=lambda confidence, bins: (confidence * bins).astype(int)),
                "A confidence of 1 gets a bin of its own, number `bins`. It belongs to the last "
                "one, bins - 1."),
    ],
    also_right=[_calibration_by_text, _with()],
    hints=[
        "Sort the texts into bins by confidence. In each bin: mean confidence, and share of right "
        "answers. How far apart are they?",
        "bin = int(confidence * bins), at most bins - 1. Add up abs(mean confidence - share right) "
        "over the bins, each times the bin's share of all texts.",
        "inside = bin_of == b; error += inside.mean() * abs(confidence[inside].mean() - "
        "right[inside].mean()), for each bin b that is not empty",
    ],
)
