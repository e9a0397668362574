"""Lesson 05's exercises: a loss and its gradient, two ways back, the step, and what is hidden."""

import numpy as np

from course.exercises import Case, Mistake, register
from course.exercises.lesson04 import CANCELLATION, LARGE, LARGE_WHY, AsksMe
from solutions import encoder, pretraining, training
from solutions.attention import softmax

# --- cross_entropy ------------------------------------------------------------------------------


def _logits(*shape, ignored=(), **options):
    """Random logits and labels; the labels at the flat places `ignored` are not counted."""

    def make(rng):
        labels = rng.integers(shape[-1], size=shape[:-1])
        labels.reshape(-1)[list(ignored)] = options.get("ignore_index", -100)
        return (rng.normal(size=shape) * 1.5, labels), options

    return make


def _given(logits, labels):
    return lambda rng: ((np.array(logits, dtype=float), np.array(labels)), {})


# What is put in place of each row minus its maximum.
SHIFTED = {
    "logs_not_shifted": lambda rows: rows,
    "one_maximum": lambda rows: rows - rows.max(),
    "mean_shift": lambda rows: rows - rows.mean(axis=-1, keepdims=True),
    "zero_shift": lambda rows: rows - np.maximum(rows.max(axis=-1, keepdims=True), 0),
    "clipped": lambda rows: np.clip(rows, -500, 500),
}


def _cross_entropy(logits, labels, ignore_index=-100, *, fault=""):
    """The loss and its gradient, with one part wrong: for the mistakes below."""
    flat, wanted = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    rows = np.flatnonzero(wanted != ignore_index)
    grad = np.zeros_like(flat)
    if len(rows) == 0 and fault != "empty":
        return 0.0, grad.reshape(logits.shape)
    picked = flat[rows]
    if fault == "no_shift":
        powers = np.exp(picked)
        probabilities = powers / powers.sum(axis=-1, keepdims=True)
    else:
        probabilities = softmax(picked) if len(rows) else picked
    if fault == "twice":
        probabilities = softmax(probabilities)
    right = np.arange(len(rows)), wanted[rows]
    if fault in ("no_shift", "log_of_zero"):
        logs = np.log(probabilities)
    elif fault == "small_number_added":
        logs = np.log(probabilities + 1e-12)
    else:
        shifted = picked - picked.max(axis=-1, keepdims=True, initial=-1e300)
        if fault == "twice":
            shifted = softmax(picked)
        if fault in SHIFTED:
            shifted = SHIFTED[fault](picked)
        logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        if fault in SHIFTED:
            probabilities = np.exp(logs)
    if fault == "one_sum":
        logs = shifted - np.log(np.exp(shifted).sum())
        probabilities = np.exp(logs)
    if fault == "columns":
        probabilities = softmax(picked, axis=0)
        logs = np.log(probabilities)
    if fault == "log2":
        logs = logs / np.log(2)
    each = -logs[right]
    grad_rows = probabilities.copy()
    if fault == "one_everywhere":
        grad_rows -= 1
    elif fault != "no_one":
        grad_rows[right] -= 1
    if fault == "uphill":
        grad_rows = -grad_rows
    count = {"all_rows": len(wanted), "sum": 1}.get(fault, len(rows))
    loss = each.sum() / count if count else np.nan
    grad[rows] = grad_rows / {"grad_sum": 1}.get(fault, count)
    if fault == "first_sign":
        loss = -loss
    if fault == "ignored_pulled":
        rest = wanted == ignore_index
        grad[rest] = softmax(flat[rest]) / count
    return float(loss), grad.reshape(logits.shape)


def _ce(fault):
    return lambda logits, labels, ignore_index=-100: _cross_entropy(
        logits, labels, ignore_index, fault=fault)


def _ignored_as_index(logits, labels, ignore_index=-100):
    flat, wanted = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    logs = np.log(softmax(flat))
    grad = softmax(flat)
    grad[np.arange(len(flat)), wanted] -= 1
    return float(-logs[np.arange(len(flat)), wanted].mean()), (grad / len(flat)).reshape(
        logits.shape)


def _columns_of_all(logits, labels, ignore_index=-100):
    """Softmax down the columns of the logits as they came, ignored rows included."""
    flat, wanted = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    rows, grad = np.flatnonzero(wanted != ignore_index), np.zeros_like(flat)
    if len(rows) == 0:
        return 0.0, grad.reshape(logits.shape)
    logs = np.log(softmax(logits, axis=0)).reshape(flat.shape)[rows]
    grad_rows, right = np.exp(logs), (np.arange(len(rows)), wanted[rows])
    grad_rows[right] -= 1
    grad[rows] = grad_rows / len(rows)
    return float(-logs[right].mean()), grad.reshape(logits.shape)


COLUMNS = (
    "Your softmax goes down the columns: each word's probabilities sum to 1 over the rows. A row "
    "is one question with its own answer, so it is each row that sums to 1: axis=-1."
)


def _always_100(logits, labels, ignore_index=-100):
    if ignore_index != -100 and (labels == ignore_index).any():
        raise IndexError(f"index {ignore_index} is out of bounds for axis 1")
    return _cross_entropy(logits, labels)


def _cross_entropy_loop(logits, labels, ignore_index=-100):
    grad, losses = np.zeros_like(logits), []
    places = [p for p in np.ndindex(labels.shape) if labels[p] != ignore_index]
    for place in places:
        row, label = logits[place], labels[place]
        log_total = row.max() + np.log(sum(np.exp(z - row.max()) for z in row))
        losses.append(log_total - row[label])
        for c, z in enumerate(row):
            grad[(*place, c)] = (np.exp(z - log_total) - (c == label)) / len(places)
    return (float(np.mean(losses)) if losses else 0.0), grad


def _cross_entropy_one_hot(logits, labels, ignore_index=-100):
    counted = labels != ignore_index
    one_hot = np.eye(logits.shape[-1])[np.where(counted, labels, 0)] * counted[..., None]
    count = max(counted.sum(), 1)
    top = logits.max(axis=-1, keepdims=True)
    logs = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    grad = (np.exp(logs) * counted[..., None] - one_hot) / count
    return float(-(logs * one_hot).sum() / count), grad


register(
    name="cross_entropy",
    lesson="05",
    reference=training.cross_entropy,
    parts=("loss", "gradient"),
    cases=[
        Case("one row of three", _logits(1, 3)),
        Case("four rows of three", _logits(4, 3), why="a sum is not a mean"),
        Case("three rows, the middle one ignored: loss .410038",
             _given([[2, 0], [0, 0], [1, 1]], [0, -100, 1]), why="divided by 3 it is .273358"),
        Case("2 sentences of 3 tokens, 5 classes, two ignored", _logits(2, 3, 5, ignored=(1, 5))),
        Case("all ignored", _given([[1, 2], [0.5, -1]], [-100, -100]), why="0 / 0"),
        Case("two sentences, all ignored", _logits(2, 3, 5, ignored=range(6)),
             why="the gradient has the shape of the logits here too"),
        Case("ignore_index is 9", _logits(3, 4, ignored=(0,), ignore_index=9)),
        Case("sure and wrong: logits 1000 and 0, the label is the second",
             _given([[1000, 0], [0, 3]], [1, 1]), why="log(0) and exp(1000)"),
        Case("a logit of 2000, and a row near -2000",
             _given([[2000, 0, 0], [-2000, -2001, -2002]], [1, 2]),
             why="only less its own maximum is a row safe in exp and in log"),
    ],
    mistakes=[
        Mistake("ignored_as_index", _ignored_as_index,
                "The label -100 is used as an index. It means: nothing is asked here. Leave such "
                "rows out before you look anything up."),
        Mistake("first_sign", _ce("first_sign"),
                "Your loss has the opposite sign. The log of a probability is below 0; the loss is "
                "minus that, so that 0 is perfect and more is worse."),
        Mistake("no_one", _ce("no_one"),
                "Your gradient is the probabilities. At the label's own place 1 has to be taken "
                "off: that is the only entry that pulls upward."),
        Mistake("one_everywhere", _ce("one_everywhere"),
                "You take 1 off every entry of a row. Only the label's own place loses 1; the "
                "others keep their probability."),
        Mistake("uphill", _ce("uphill"),
                "Your gradient has the opposite sign. A gradient points to where the loss grows: "
                "probability minus 1 at the label, plus the probability elsewhere."),
        Mistake("sum", _ce("sum"),
                "You add the rows up. Take their mean, in the loss and in the gradient, so that a "
                "batch twice as large does not make steps twice as long."),
        Mistake("grad_sum", _ce("grad_sum"),
                "The loss is a mean, but the gradient is that of the sum: divide it by the number "
                "of counted rows as well."),
        Mistake("all_rows", _ce("all_rows"),
                "Ignored rows are counted in the mean: you divide by all rows. Divide by how many "
                "have a label."),
        Mistake("ignored_pulled", _ce("ignored_pulled"),
                "The loss is right, but ignored rows get a gradient. Nothing is asked there, so "
                "nothing should move: their gradient is 0."),
        Mistake("twice", _ce("twice"),
                "The logits go through a softmax twice. The loss has one inside; give it the "
                "logits themselves."),
        Mistake("one_sum", _ce("one_sum"),
                "The powers of all rows are added into one sum. Each row has its own: "
                "sum(axis=-1, keepdims=True)."),
        Mistake("columns", _ce("columns"), COLUMNS),
        Mistake("columns_of_all", _columns_of_all, COLUMNS),
        Mistake("log2", _ce("log2"),
                "You use another base than e: np.log is the natural one. The gradient (probability "
                "- 1) belongs to that."),
        Mistake("no_shift", _ce("no_shift"),
                "exp(1000) is inf, and inf / inf is NaN. Subtract each row's maximum first, as in "
                "softmax."),
        Mistake("log_of_zero", _ce("log_of_zero"),
                "You take the log of a probability that has been rounded to 0: the loss is inf. "
                "Stay with logs: shifted logit minus log of the sum of exp."),
        Mistake("small_number_added", _ce("small_number_added"),
                "You keep log away from 0 with a small number: log(p + 1e-12). That caps the loss, "
                "here at 27.6 for each row. Stay with logs: shifted logit minus log of the sum of "
                "exp."),
        Mistake("always_100", _always_100,
                "Right, as long as nothing but -100 is ignored. Compare the labels with the "
                "argument `ignore_index`."),
        Mistake("empty", _ce("empty"),
                "Right, until every row is ignored: 0 / 0 is NaN. Then the loss is 0 and so is the "
                "gradient."),
        Mistake("logs_not_shifted", _ce("logs_not_shifted"),
                "exp(1000) is inf, and its log is inf as well. Subtract each row's maximum before "
                "exp: the difference between logit and log of the sum stays the same."),
        Mistake("one_maximum", _ce("one_maximum"),
                "You subtract the maximum of all logits. In a row far below it every exp is 0, and "
                "log(0) is -inf. Each row has its own maximum: max(axis=-1, keepdims=True)."),
        Mistake("mean_shift", _ce("mean_shift"),
                "You subtract each row's mean. A logit far above it still overflows. Less the "
                "maximum, no logit is above 0."),
        Mistake("zero_shift", _ce("zero_shift"),
                "Right unless all logits of a row are far below 0: then each exp is 0, and log(0) "
                "is -inf. Subtract the row's maximum there too, as it is."),
        Mistake("clipped", _ce("clipped"),
                "You cut the logits off before exp, which also cuts off the loss. Nothing has to "
                "be cut: less the maximum of its row, no logit is above 0."),
    ],
    also_right=[_cross_entropy_loop, _cross_entropy_one_hot],
    hints=[
        "Work on the rows that have a label only: np.flatnonzero(labels.reshape(-1) != "
        "ignore_index). How many are they? That number divides both results.",
        "log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)), where "
        "shifted is each row minus its maximum. The loss is minus the mean of those at the labels.",
        "grad_rows = np.exp(log_probabilities); grad_rows[np.arange(n), labels] -= 1; put "
        "grad_rows / n into the rows of np.zeros_like(flat), and reshape to the shape of logits.",
    ],
)

# --- linear_backward ----------------------------------------------------------------------------


def _linear_case(*leading, d_in, d_out):
    def make(rng):
        return (rng.normal(size=(*leading, d_out)), rng.normal(size=(*leading, d_in)),
                rng.normal(size=(d_in, d_out))), {}

    return make


def _linear_parts(grad_output, x, weight):
    return x.reshape(-1, x.shape[-1]), grad_output.reshape(-1, grad_output.shape[-1])


def _linear_wrong(weight_gradient=None, bias_gradient=None, x_gradient=None):
    """The reference with other formulas for some of its three results."""

    def wrong(grad_output, x, weight):
        tokens, grad = _linear_parts(grad_output, x, weight)
        return (
            x_gradient(grad_output, weight) if x_gradient else grad_output @ weight.T,
            weight_gradient(tokens, grad) if weight_gradient else tokens.T @ grad,
            bias_gradient(grad) if bias_gradient else grad.sum(axis=0),
        )

    return wrong


def _linear_batch_kept(grad_output, x, weight):
    inner = np.swapaxes(x, -1, -2) if x.ndim > 1 else x[:, None]
    grad = grad_output if x.ndim > 1 else grad_output[None]
    return grad_output @ weight.T, inner @ grad, grad_output.sum(axis=tuple(range(x.ndim - 1)))


def _linear_first_axis(grad_output, x, weight):
    tokens, grad = _linear_parts(grad_output, x, weight)
    return grad_output @ weight.T, tokens.T @ grad, grad_output.sum(axis=0)


def _linear_turned_whole(grad_output, x, weight):
    return grad_output @ weight.T, x.T @ grad_output, grad_output.sum(axis=0)


def _linear_order(grad_output, x, weight):
    grad_x, grad_weight, grad_bias = encoder.linear_backward(grad_output, x, weight)
    return grad_weight, grad_bias, grad_x


def _linear_weight_first(grad_output, x, weight):
    grad_x, grad_weight, grad_bias = encoder.linear_backward(grad_output, x, weight)
    return grad_weight, grad_x, grad_bias


def _linear_ones(grad_output, x, weight):
    return encoder.linear_backward(np.ones_like(grad_output), x, weight)


def _linear_loop(grad_output, x, weight):
    grad_x, grad_weight = np.zeros_like(x), np.zeros_like(weight)
    grad_bias = np.zeros(weight.shape[1])
    for token in np.ndindex(x.shape[:-1]):
        for i in range(weight.shape[0]):
            for j in range(weight.shape[1]):
                grad_x[(*token, i)] += grad_output[(*token, j)] * weight[i, j]
                grad_weight[i, j] += grad_output[(*token, j)] * x[(*token, i)]
        grad_bias += grad_output[token]
    return grad_x, grad_weight, grad_bias


register(
    name="linear_backward",
    lesson="05",
    reference=encoder.linear_backward,
    parts=("grad_x", "grad_weight", "grad_bias"),
    cases=[
        Case("4 tokens, 3 numbers in, 2 out", _linear_case(4, d_in=3, d_out=2),
             why="unequal sizes"),
        Case("3 tokens, 3 in, 3 out", _linear_case(3, d_in=3, d_out=3),
             why="a missing transpose runs here"),
        Case("one token, 2 in, 3 out", _linear_case(1, d_in=2, d_out=3)),
        Case("2 sentences of 3 tokens, 4 in, 5 out", _linear_case(2, 3, d_in=4, d_out=5),
             why="two leading axes to add up over"),
    ],
    mistakes=[
        Mistake("upstream_ignored", _linear_ones,
                "Your result does not use `grad_output`: you have the gradient of the plain sum of "
                "the outputs. Each output counts as much as the loss cares about it."),
        Mistake("order", _linear_order,
                "The three should come back in another order: x, then weight, then bias."),
        Mistake("weight_first", _linear_weight_first,
                "grad_x and grad_weight have changed places: x comes first."),
        Mistake("x_not_turned", _linear_wrong(x_gradient=lambda g, w: g @ w),
                "grad_x uses `weight` as it stands. Forward it leads from in to out; on the way "
                "back from out to in, so it has to be turned."),
        Mistake("weight_turned", _linear_wrong(lambda x, g: g.T @ x),
                "grad_weight is turned: it has the shape (out, in). A gradient has the shape of "
                "what it belongs to: (in, out)."),
        Mistake("sums_first", _linear_wrong(lambda x, g: np.outer(x.sum(axis=0), g.sum(axis=0))),
                "grad_weight adds the tokens up before it multiplies. Each token's x belongs to "
                "its own gradient: multiply first, then add up. A matrix product does both."),
        Mistake("turned_whole", _linear_turned_whole,
                "Right for tokens in one axis. With sentences and tokens, `.T` turns all three "
                "axes round: bring x and grad_output to (tokens, width) first."),
        Mistake("batch_kept", _linear_batch_kept,
                "There is a grad_weight for every sentence. All sentences used the same weight: "
                "add theirs up too."),
        Mistake("bias_per_token", _linear_wrong(bias_gradient=lambda g: g),
                "grad_bias has one row for each token. They all used the same bias: add the rows "
                "up."),
        Mistake("first_axis", _linear_first_axis,
                "grad_bias is added up over the first axis alone. With sentences and tokens there "
                "are two axes to add up over."),
        Mistake("mean_everywhere",
                _linear_wrong(lambda x, g: x.T @ g / len(g), lambda g: g.mean(axis=0)),
                "grad_weight and grad_bias are means over the tokens. The mean is the business of "
                "the loss, which has taken it already; here the tokens add up."),
        Mistake("bias_mean", _linear_wrong(bias_gradient=lambda g: g.mean(axis=0)),
                "grad_bias is a mean over the tokens. Moving the bias moves every token's output, "
                "so their gradients add up."),
        Mistake("bias_none", _linear_wrong(bias_gradient=lambda g: np.zeros(g.shape[-1])),
                "grad_bias is 0. The bias moves each output one for one: it gets their gradients, "
                "added up over the tokens."),
    ],
    also_right=[
        _linear_loop,
        lambda grad_output, x, weight: (
            np.einsum("...o,io->...i", grad_output, weight),
            np.einsum("ni,no->io", *_linear_parts(grad_output, x, weight)[:2]),
            grad_output.reshape(-1, grad_output.shape[-1]).sum(axis=0)),
    ],
    hints=[
        "A gradient has the shape of what it belongs to. Write the shapes of grad_output, x and "
        "weight down, and see which product gives (in, out) and which gives (..., in).",
        "Flatten the leading axes first: tokens = x.reshape(-1, x.shape[-1]), and grad_output the "
        "same way. Then the sum over tokens is what a matrix product does.",
        "grad_x = grad_output @ weight.T; grad_weight = tokens.T @ grad_tokens; "
        "grad_bias = grad_tokens.sum(axis=0).",
    ],
)

# --- layer_norm_backward ------------------------------------------------------------------------


def _norm_case(*shape, scale=1.0, **options):
    def make(rng):
        d = shape[-1]
        return (rng.normal(size=shape), rng.normal(size=shape) * scale,
                rng.normal(size=d) * 0.5 + 1.5), options

    return make


def _norm_wrong(fault):
    """layer_norm_backward with one term missing or wrong."""

    def wrong(grad_output, x, gamma, eps=1e-12):
        d = x.shape[-1]
        centered = x - x.mean(axis=-1, keepdims=True)
        squares = (centered**2).sum(axis=-1, keepdims=True)
        variance = squares / (d - 1 if fault == "sample" else d)
        if fault == "cancellation":
            variance = (x**2).mean(axis=-1, keepdims=True) - x.mean(axis=-1, keepdims=True) ** 2
        if fault == "eps_outside":
            deviation = np.sqrt(variance) + eps
        else:
            deviation = np.sqrt(variance + (0 if fault == "no_eps" else eps))
        normalized = centered / deviation
        tokens = tuple(range(x.ndim - 1))
        grad_gamma = (grad_output * (x if fault == "gamma_of_x" else normalized))
        grad_beta = grad_output
        if fault == "gamma_everywhere":
            grad_gamma, grad_beta = grad_gamma * gamma, grad_beta * gamma
        if fault == "beta_with_gamma":
            grad_beta = grad_beta * gamma
        if fault == "first_axis" and x.ndim > 1:
            grad_gamma, grad_beta = grad_gamma.sum(axis=0), grad_beta.sum(axis=0)
        elif fault == "token_mean":
            grad_gamma, grad_beta = grad_gamma.mean(axis=tokens), grad_beta.mean(axis=tokens)
        elif fault != "per_token":
            grad_gamma, grad_beta = grad_gamma.sum(axis=tokens), grad_beta.sum(axis=tokens)
        g = grad_output if fault in ("no_gamma", "late_gamma") else grad_output * gamma
        shift = g.mean(axis=-1, keepdims=True)
        stretch = (g * normalized).mean(axis=-1, keepdims=True)
        if fault == "sums":
            shift, stretch = shift * d, stretch * d
        if fault == "stretch_sum":
            stretch = stretch * d
        if fault == "both_centered":
            stretch = stretch * deviation
        if fault in ("no_shift", "frozen"):
            shift = 0
        if fault in ("no_stretch", "frozen"):
            stretch = 0
        along = centered if fault in ("along_centered", "both_centered") else normalized
        grad_x = g - shift - along * stretch
        if fault == "plus":
            grad_x = g - shift + along * stretch
        if fault == "by_variance":
            grad_x = grad_x / deviation**2
        elif fault != "no_deviation":
            grad_x = grad_x / deviation
        if fault == "late_gamma":
            grad_x = grad_x * gamma
        return grad_x, grad_gamma, grad_beta

    return wrong


def _norm_loop(grad_output, x, gamma, eps=1e-12):
    """By the Jacobian of each token: (I - 1/d - n n' / d) / deviation."""
    d = x.shape[-1]
    grad_x, grad_gamma, grad_beta = np.zeros_like(x), np.zeros(d), np.zeros(d)
    for token in np.ndindex(x.shape[:-1]):
        deviation = np.sqrt(x[token].var() + eps)
        n = (x[token] - x[token].mean()) / deviation
        jacobian = (np.eye(d) - 1 / d - np.outer(n, n) / d) / deviation
        grad_x[token] = jacobian @ (grad_output[token] * gamma)
        grad_gamma += grad_output[token] * n
        grad_beta += grad_output[token]
    return grad_x, grad_gamma, grad_beta


def _norm_step_by_step(grad_output, x, gamma, eps=1e-12):
    """By the chain rule through variance and mean, as automatic differentiation would."""
    d = x.shape[-1]
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = np.mean(centered**2, axis=-1, keepdims=True)
    g = grad_output * gamma
    grad_variance = (g * centered).sum(axis=-1, keepdims=True) * -0.5 * (variance + eps) ** -1.5
    grad_centered = g / np.sqrt(variance + eps) + grad_variance * 2 * centered / d
    grad_x = grad_centered - grad_centered.mean(axis=-1, keepdims=True)
    every = grad_output.reshape(-1, d)
    normalized = (centered / np.sqrt(variance + eps)).reshape(-1, d)
    return grad_x, np.einsum("nd,nd->d", every, normalized), every.sum(axis=0)


register(
    name="layer_norm_backward",
    lesson="05",
    reference=encoder.layer_norm_backward,
    parts=("grad_x", "grad_gamma", "grad_beta"),
    cases=[
        Case("3 tokens of width 4", _norm_case(3, 4)),
        Case("3 tokens of width 3", _norm_case(3, 3), why="every wrong axis runs here"),
        Case("one token of width 5", _norm_case(1, 5)),
        Case("2 sentences of 3 tokens, width 4", _norm_case(2, 3, 4)),
        Case("numbers ten times as wide", _norm_case(2, 4, scale=10.0),
             why="one division by the deviation, not two"),
        Case("a large eps, 0.5", _norm_case(3, 4, eps=0.5), why="eps belongs under the root"),
        Case("0, 1, 2 and -1 beside a mean of 134 million", lambda rng: (
                 (rng.normal(size=(1, 4)), LARGE[None].copy(), rng.normal(1.5, 0.5, size=4)), {}),
             why=LARGE_WHY),
    ],
    mistakes=[
        Mistake("frozen", _norm_wrong("frozen"),
                "Two terms are missing: you treat the mean and the deviation as constants. Both "
                "depend on every number of x, so moving one number moves them too."),
        Mistake("no_shift", _norm_wrong("no_shift"),
                "The mean term is missing. Moving one number moves the mean, and with it all "
                "outputs: take off the mean of the gradient (of each token, over its numbers)."),
        Mistake("no_stretch", _norm_wrong("no_stretch"),
                "The projection term is missing. Moving one number changes the deviation, which "
                "stretches all outputs: take off normalized * mean(gradient * normalized)."),
        Mistake("no_deviation", _norm_wrong("no_deviation"),
                "The factor 1 / deviation is missing: the output moves less where the inputs are "
                "spread widely."),
        Mistake("by_variance", _norm_wrong("by_variance"),
                "You divide by the variance. The forward pass divides by its square root once, and "
                "so does the way back."),
        Mistake("no_gamma", _norm_wrong("no_gamma"),
                "gamma is forgotten in grad_x. It multiplied the normalized numbers on the way "
                "there, so it multiplies their gradient on the way back."),
        Mistake("late_gamma", _norm_wrong("late_gamma"),
                "gamma comes last in your grad_x. It was the last thing on the way there, so on "
                "the way back it is the first: multiply before the means are taken."),
        Mistake("sums", _norm_wrong("sums"),
                "The two terms are summed over the width where they should be means: mean and "
                "variance both divide by d."),
        Mistake("stretch_sum", _norm_wrong("stretch_sum"),
                "The projection term is a sum over the width where it should be a mean: take off "
                "normalized * mean(gradient * normalized)."),
        Mistake("plus", _norm_wrong("plus"),
                "The projection term has the wrong sign: the part along the normalized vector is "
                "taken off, because stretching x changes nothing."),
        Mistake("along_centered", _norm_wrong("along_centered"),
                "The projection goes along the centered vector. It goes along the normalized one, "
                "which has been divided by the deviation."),
        Mistake("both_centered", _norm_wrong("both_centered"),
                "The projection term uses x minus its mean, twice. It needs the normalized vector "
                "in both places: x minus its mean, divided by the deviation."),
        Mistake("sample", _norm_wrong("sample"),
                "Your variance divides by d - 1. LayerNorm uses the population's: divide by d."),
        Mistake("no_eps", _norm_wrong("no_eps"),
                "Right, but eps is left out: it was under the root on the way there."),
        Mistake("eps_outside", _norm_wrong("eps_outside"),
                "eps is added to the deviation. It belongs under the root: "
                "sqrt(variance + eps)."),
        Mistake("gamma_of_x", _norm_wrong("gamma_of_x"),
                "grad_gamma multiplies with x. gamma multiplied the normalized x."),
        Mistake("gamma_everywhere", _norm_wrong("gamma_everywhere"),
                "grad_gamma and grad_beta contain gamma. It is on the way to x only: these two "
                "start from grad_output as it comes in."),
        Mistake("beta_with_gamma", _norm_wrong("beta_with_gamma"),
                "grad_beta contains gamma. beta is added after gamma has multiplied, so it gets "
                "grad_output as it comes in."),
        Mistake("per_token", _norm_wrong("per_token"),
                "grad_gamma and grad_beta have a row for each token. All tokens used the same "
                "gamma and beta: add the rows up."),
        Mistake("first_axis", _norm_wrong("first_axis"),
                "grad_gamma and grad_beta are added up over the first axis alone: with sentences "
                "and tokens there are two."),
        Mistake("token_mean", _norm_wrong("token_mean"),
                "grad_gamma and grad_beta are means over the tokens. They are sums: the mean "
                "belongs to the loss."),
        Mistake("cancellation", _norm_wrong("cancellation"), CANCELLATION),
    ],
    also_right=[_norm_loop, _norm_step_by_step],
    hints=[
        "Three results. grad_beta: beta is added to every token. grad_gamma: gamma multiplies the "
        "normalized numbers of every token. Do these two first; both are sums over the tokens.",
        "For grad_x, let g = grad_output * gamma. Two moves of x change nothing in the output: all "
        "numbers up by the same amount, and all stretched away from their mean. So take the mean "
        "out of g, and its part along the normalized vector.",
        "grad_x = (g - g.mean(axis=-1, keepdims=True) - normalized * (g * normalized)."
        "mean(axis=-1, keepdims=True)) / deviation, with deviation = sqrt(variance + eps).",
    ],
)

# --- clip_by_global_norm ------------------------------------------------------------------------


def _grads(max_norm, scale=1.0, **shapes):
    return lambda rng: (({name: rng.normal(size=shape) * scale
                          for name, shape in shapes.items()}, max_norm), {})


def _norm_of(grads):
    return float(np.sqrt(sum((grad**2).sum() for grad in grads.values())))


def _clip_with(norm_of, *, always=False):
    def clip(grads, max_norm):
        norm = float(norm_of(grads))
        if norm <= max_norm and not always:
            return dict(grads), norm
        return {name: grad * (max_norm / np.float64(norm)) for name, grad in grads.items()}, norm

    return clip


def _clip_each(grads, max_norm):
    lengths = {name: float(np.sqrt((grad**2).sum())) for name, grad in grads.items()}
    return {name: grad * min(1.0, max_norm / max(lengths[name], 1e-30))
            for name, grad in grads.items()}, _norm_of(grads)


def _clip_to_one(grads, max_norm):
    norm = _norm_of(grads)
    scale = 1 / norm if norm > max_norm else 1.0
    return {name: grad * scale for name, grad in grads.items()}, norm


def _clip_upside_down(grads, max_norm):
    norm = _norm_of(grads)
    scale = norm / max_norm if norm > max_norm else 1.0
    return {name: grad * scale for name, grad in grads.items()}, norm


def _clip_norm_after(grads, max_norm):
    clipped, norm = training.clip_by_global_norm(grads, max_norm)
    return clipped, min(norm, max_norm)


register(
    name="clip_by_global_norm",
    lesson="05",
    reference=training.clip_by_global_norm,
    parts=("gradients", "norm"),
    cases=[
        Case("one gradient [3, 4], limit 1: it becomes [.6, .8]",
             lambda rng: (({"w": np.array([3.0, 4.0])}, 1.0), {})),
        Case("a matrix and a bias, limit 2", _grads(2.0, 3.0, weight=(3, 4), bias=(4,))),
        Case("below the limit", _grads(50.0, weight=(2, 3), bias=(3,)), why="nothing to shrink"),
        Case("three gradients of very different size, limit 0.5",
             lambda rng: (({"a": rng.normal(size=4) * 10, "b": rng.normal(size=(2, 2)),
                            "c": rng.normal(size=3) * 0.01}, 0.5), {}),
             why="one by one, the small ones keep their size and the direction turns"),
        Case("all zeros", lambda rng: (({"w": np.zeros(3), "b": np.zeros(2)}, 1.0), {}),
             why="0 / 0"),
    ],
    mistakes=[
        Mistake("each_alone", _clip_each,
                "You clip each gradient by its own norm. Then the large ones shrink and the small "
                "ones don't, and the step points elsewhere. One norm over all, one factor for "
                "all."),
        Mistake("by_value",
                lambda grads, max_norm: ({n: np.clip(g, -max_norm, max_norm)
                                          for n, g in grads.items()}, _norm_of(grads)),
                "You cut single numbers off at the limit. That bends the direction; multiply "
                "everything by one factor instead."),
        Mistake("always", _clip_with(_norm_of, always=True),
                "You scale to the limit even where the norm is below it. Short gradients stay as "
                "they are (and 0 / 0 is NaN)."),
        Mistake("to_one", _clip_to_one,
                "Your clipped gradients have norm 1 whatever the limit is. The factor is "
                "max_norm / norm."),
        Mistake("upside_down", _clip_upside_down,
                "The factor is upside down: your gradients grow. It is max_norm / norm."),
        Mistake("sizes_added",
                _clip_with(lambda grads: sum(np.abs(g).sum() for g in grads.values())),
                "You add up the sizes of all numbers. The norm is the root of the sum of their "
                "squares: the length of the vector."),
        Mistake("norms_added",
                _clip_with(lambda grads: sum(np.sqrt((g**2).sum()) for g in grads.values())),
                "You add the norms of the parts. The common norm is the root of the sum of all "
                "squares."),
        Mistake("no_root", _clip_with(lambda grads: sum((g**2).sum() for g in grads.values())),
                "The square root is missing: that is the norm squared."),
        Mistake("mean_square",
                _clip_with(lambda grads: np.sqrt(np.mean(np.concatenate(
                    [g.ravel() for g in grads.values()]) ** 2))),
                "You take the root of the mean square. A norm adds the squares up."),
        Mistake("largest", _clip_with(lambda grads: max(np.abs(g).max() for g in grads.values())),
                "You use the largest number as the norm. The norm is the root of the sum of all "
                "squares."),
        Mistake("norm_after", _clip_norm_after,
                "The gradients are right. Return the norm as it was before clipping: that is what "
                "one watches in training."),
    ],
    also_right=[
        lambda grads, max_norm: (
            {n: g * min(1.0, max_norm / max(_norm_of(grads), max_norm)) for n, g in grads.items()},
            _norm_of(grads)),
        lambda grads, max_norm: (lambda norm: (
            {n: g / max(1.0, norm / max_norm) for n, g in grads.items()}, norm))(
                float(np.linalg.norm(np.concatenate([g.ravel() for g in grads.values()])))),
    ],
    hints=[
        "Think of all gradients, laid end to end, as one long vector. How long is it?",
        "The norm is the square root of the sum of all squares of all arrays. If it is at most "
        "max_norm, nothing changes. Else every array is multiplied by one and the same factor.",
        "norm = float(np.sqrt(sum((g ** 2).sum() for g in grads.values()))); the factor is "
        "max_norm / norm; return ({name: g * factor ...}, norm).",
    ],
)

# --- adamw_step ---------------------------------------------------------------------------------


def _adam_case(*shape, step=1, lr=0.1, scale=1.0, fresh=False, **options):
    def make(rng):
        first = rng.normal(size=shape) * scale * (not fresh)
        second = rng.uniform(0.5, 2.0, size=shape) * scale**2 * (not fresh)
        return (rng.normal(size=shape), rng.normal(size=shape) * scale, first, second, step,
                lr), options

    return make


def _adam_wrong(fault):
    """adamw_step with one part wrong."""

    def wrong(param, grad, first, second, step, lr, decay=0.01):
        b1, b2 = {"swapped": (0.999, 0.9), "new_counts_most": (0.1, 0.001)}.get(
            fault, (0.9, 0.999))
        if fault == "l2":
            grad = grad + decay * param
        squared = {"abs": np.abs(grad), "mean_squared": grad}.get(fault, grad**2)
        old = first, second
        first = b1 * first + (1 if fault == "sums" else 1 - b1) * grad
        if fault == "mean_squared":
            squared = first**2
        second = b2 * second + (1 if fault == "sums" else 1 - b2) * squared
        late = {"from_zero": step - 1, "first_step_always": 1}.get(fault, step)
        with np.errstate(all="ignore"):
            first_fair, second_fair = first / np.float64(1 - b1**late), second / np.float64(
                1 - b2**late)
            if fault == "no_correction":
                first_fair, second_fair = first, second
            if fault == "second_uncorrected":
                second_fair = second
            if fault == "first_uncorrected":
                first_fair = first
            if fault == "times":
                first_fair, second_fair = first * (1 - b1**step), second * (1 - b2**step)
            if fault == "no_first":
                first_fair = grad
            if fault == "eps_inside":
                bottom = np.sqrt(second_fair + 1e-6)
            elif fault == "no_root":
                bottom = second_fair + 1e-6
            elif fault == "no_eps":
                bottom = np.sqrt(second_fair)
            elif fault == "eps8":
                bottom = np.sqrt(second_fair) + 1e-8
            else:
                bottom = np.sqrt(second_fair) + 1e-6
            if fault == "eps_uncorrected":
                bottom = (np.sqrt(second) + 1e-6) / np.sqrt(1 - b2**late)
            move = first_fair / bottom
        if fault == "plain":
            move = grad
        if fault == "momentum":
            move = first_fair
        if fault == "decay_after":
            new = (param - lr * move) * (1 - lr * decay)
        elif fault == "decay_alone":
            new = param - lr * move - decay * param
        elif fault in ("no_decay", "l2"):
            new = param - lr * move
        elif fault == "uphill":
            new = param + lr * (move - decay * param)
        elif fault == "growth":
            new = param - lr * (move - decay * param)
        else:
            new = param - lr * (move + decay * param)
        if fault == "fair_kept":
            return new, first_fair, second_fair
        if fault == "old_means":
            return new, *old
        return new, first, second

    return wrong


def _adam_bert(param, grad, first, second, step, lr, decay=0.01):
    """As in solutions.training.AdamW: the corrections moved into rate and eps."""
    m = first + (1 - 0.9) * (grad - first)
    v = second + (1 - 0.999) * (grad * grad - second)
    root = (1 - 0.999**step) ** 0.5
    return (param * (1 - lr * decay)
            - lr * root / (1 - 0.9**step) * m / (np.sqrt(v) + 1e-6 * root)), m, v


def _adam_loop(param, grad, first, second, step, lr, decay=0.01):
    new, m, v = np.zeros_like(param), np.zeros_like(param), np.zeros_like(param)
    for at in np.ndindex(param.shape):
        m[at] = 0.9 * first[at] + 0.1 * grad[at]
        v[at] = 0.999 * second[at] + 0.001 * grad[at] ** 2
        fair = m[at] / (1 - 0.9**step), v[at] / (1 - 0.999**step)
        new[at] = param[at] - lr * fair[0] / (fair[1] ** 0.5 + 1e-6) - lr * decay * param[at]
    return new, m, v


register(
    name="adamw_step",
    lesson="05",
    reference=training.adamw_step,
    parts=("parameter", "first", "second"),
    cases=[
        Case("the first step, means still 0", _adam_case(3, fresh=True)),
        Case("the tenth step of a matrix", _adam_case(2, 3, step=10)),
        Case("step 1000", _adam_case(4, step=1000)),
        Case("a learning rate of 0.5 and decay 0.3", _adam_case(3, step=3, lr=0.5, decay=0.3),
             why="decay before or after the step differ"),
        Case("tiny gradients", _adam_case(3, step=2, scale=1e-6), why="where eps counts"),
        Case("no decay", _adam_case(3, step=5, decay=0.0)),
    ],
    mistakes=[
        Mistake("plain", _adam_wrong("plain"),
                "Your step is lr times the gradient: plain gradient descent. AdamW moves by the "
                "running mean of the gradient, divided by the root of that of its square."),
        Mistake("momentum", _adam_wrong("momentum"),
                "You move by the running mean but do not divide. The division by the root of the "
                "second mean is what gives every parameter steps of like size."),
        Mistake("uphill", _adam_wrong("uphill"),
                "The step goes uphill: subtract it."),
        Mistake("no_correction", _adam_wrong("no_correction"),
                "The correction for the start is missing. Both means begin at 0 and are too small "
                "at first: divide by 1 - 0.9**step and 1 - 0.999**step."),
        Mistake("first_step_always", _adam_wrong("first_step_always"),
                "You divide by 1 - 0.9 and 1 - 0.999 at every step. That is the correction of step "
                "1; it fades: 1 - 0.9**step and 1 - 0.999**step."),
        Mistake("times", _adam_wrong("times"),
                "You multiply by the corrections. The means are too small at first: divide by "
                "1 - 0.9**step and 1 - 0.999**step."),
        Mistake("no_first", _adam_wrong("no_first"),
                "You move by this step's gradient. AdamW moves by its running mean, which evens "
                "out the noise of single batches."),
        Mistake("first_uncorrected", _adam_wrong("first_uncorrected"),
                "The first mean is used uncorrected: divide it by 1 - 0.9**step."),
        Mistake("second_uncorrected", _adam_wrong("second_uncorrected"),
                "The second mean is used uncorrected: divide it by 1 - 0.999**step. Without that, "
                "the first steps are up to thirty times too long."),
        Mistake("from_zero", _adam_wrong("from_zero"),
                "You correct as if steps were counted from 0. At step 1 that divides by 0."),
        Mistake("no_root", _adam_wrong("no_root"),
                "The square root is missing: the second mean holds squares."),
        Mistake("swapped", _adam_wrong("swapped"),
                "The two constants are swapped: 0.9 for the gradient, 0.999 for its square."),
        Mistake("new_counts_most", _adam_wrong("new_counts_most"),
                "The shares are the wrong way round: a running mean keeps 0.9 of what it was and "
                "takes in 0.1 of the new (0.999 and 0.001 for the square)."),
        Mistake("sums", _adam_wrong("sums"),
                "Your running means take in all of the new. Then they are sums, not means: 0.9 of "
                "the old and 0.1 of the new (0.999 and 0.001 for the square)."),
        Mistake("mean_squared", _adam_wrong("mean_squared"),
                "The second mean takes the square of the first one. It takes the square of this "
                "step's gradient."),
        Mistake("abs", _adam_wrong("abs"),
                "The second mean takes the size of the gradient. It takes its square, because a "
                "root is drawn later."),
        Mistake("l2", _adam_wrong("l2"),
                "You add decay * param to the gradient. Then it is divided like a gradient, and "
                "parameters with large gradients hardly decay: that is Adam with L2. The W in "
                "AdamW stands for taking it off by itself."),
        Mistake("no_decay", _adam_wrong("no_decay"),
                "Right, but without weight decay: take off lr * decay * param too."),
        Mistake("decay_alone", _adam_wrong("decay_alone"),
                "The decay is not multiplied by the learning rate: take off lr * decay * param."),
        Mistake("growth", _adam_wrong("growth"),
                "The decay has the wrong sign: your parameter grows by it."),
        Mistake("decay_after", _adam_wrong("decay_after"),
                "You shrink the parameter after the step. The decay takes the parameter as it was "
                "before."),
        Mistake("eps_inside", _adam_wrong("eps_inside"),
                "eps stands under the root. Here it is added to the root: sqrt(...) + 1e-6."),
        Mistake("no_eps", _adam_wrong("no_eps"),
                "Right, but without eps. Add 1e-6 to the root: it keeps a weight whose gradients "
                "are 0 from dividing 0 by 0."),
        Mistake("eps_uncorrected", _adam_wrong("eps_uncorrected"),
                "You add eps to the root of the uncorrected mean and correct the sum, so early on "
                "eps counts too much. Correct the mean first, then its root, then plus 1e-6."),
        Mistake("eps8", _adam_wrong("eps8"),
                "Right, with eps 1e-8 as in Adam's paper. BERT's is 1e-6, as the docstring says."),
        Mistake("old_means", _adam_wrong("old_means"),
                "The parameter is right. Return the running means as they are after this step, "
                "not as they came in."),
        Mistake("fair_kept", _adam_wrong("fair_kept"),
                "The step is right. Return the running means as they are, not the corrected ones: "
                "the next step would correct them once more."),
    ],
    also_right=[_adam_bert, _adam_loop],
    hints=[
        "Five lines: two running means, two corrections, one update. A running mean keeps most of "
        "what it was and takes in a little of the new: 0.9 * first + 0.1 * grad.",
        "first / (1 - 0.9 ** step) is the fair mean, and the same for the second with 0.999. Keep "
        "the running means themselves to return them.",
        "param - lr * (first_fair / (np.sqrt(second_fair) + 1e-6) + decay * param)",
    ],
)

# --- warmup_linear ------------------------------------------------------------------------------


def _schedule(step, warmup, total):
    return lambda rng: ((step, warmup, total), {})


def _ratio(top, bottom):
    """top / bottom for wrong forms that divide by 0: they raise, as the learner's would."""
    return top / bottom


register(
    name="warmup_linear",
    lesson="05",
    reference=training.warmup_linear,
    cases=[
        Case("step 1 of 10, warm-up 4: 0.25", _schedule(1, 4, 10)),
        Case("step 3 of 10, warm-up 4", _schedule(3, 4, 10)),
        Case("the end of the warm-up: 1.0", _schedule(4, 4, 10)),
        Case("right after it", _schedule(5, 4, 10)),
        Case("step 8 of 10, warm-up 4", _schedule(8, 4, 10)),
        Case("the last step: 0.0", _schedule(10, 4, 10)),
        Case("no warm-up, step 1 of 5", _schedule(1, 0, 5), why="0 in the denominator"),
        Case("warm-up to the very end, step 3 of 3", _schedule(3, 3, 3),
             why="0 in the other denominator"),
    ],
    mistakes=[
        Mistake("constant", lambda step, warmup, total: 1.0 if step > warmup else step / warmup,
                "The warm-up is right; after it the factor stays at 1. It falls to 0 at the last "
                "step."),
        Mistake("no_warmup", lambda step, warmup, total: (total - step) / total,
                "There is no warm-up: the factor should start low and reach 1.0 at step `warmup`."),
        Mistake("first_lost",
                lambda step, warmup, total: ((step - 1) / warmup if step <= warmup
                                             else (total - step) / (total - warmup)),
                "You count from 0: the first step has factor 0 and is lost, and the warm-up ends "
                "below 1. Steps are counted from 1: step / warmup."),
        Mistake("from_total",
                lambda step, warmup, total: (step / warmup if step <= warmup
                                             else (total - step) / total),
                "After the warm-up the factor jumps down: the way to 0 is total - warmup steps "
                "long, not total."),
        Mistake("never_zero",
                lambda step, warmup, total: (step / warmup if step <= warmup
                                             else (total - step + 1) / (total - warmup + 1)),
                "The factor at the last step is above 0. It should be 0 at step `total`."),
        Mistake("falls_below",
                lambda step, warmup, total: (step / warmup if step <= warmup
                                             else 1 - (step - warmup) / total),
                "The factor falls too slowly and never gets to 0: the way down is total - warmup "
                "steps long."),
        Mistake("rising",
                lambda step, warmup, total: (step / warmup if step <= warmup
                                             else (step - warmup) / (total - warmup)),
                "After the warm-up the factor starts at 0 and rises again. Count the steps that "
                "are left, total - step, not those that are gone."),
        Mistake("both_lines",
                lambda step, warmup, total: min(_ratio(step, warmup),
                                                _ratio(total - step, total - warmup)),
                "Right, until one of the two lines has no steps: you compute both every time, and "
                "warmup = 0 or warmup = total divides by 0. Choose with `if`."),
        Mistake("end_lost",
                lambda step, warmup, total: (step / warmup if step < warmup
                                             else (total - step) / max(1, total - warmup)),
                "Right, until the warm-up lasts to the last step: step `warmup` has the factor 1 "
                "there too, so it belongs to the warm-up (<=)."),
        Mistake("zero_warmup",
                lambda step, warmup, total: (min(_ratio(step, warmup),
                                                 (total - step) / max(total - warmup, 1e-9))
                                             if step != total or warmup != total else 1.0),
                "Right, until warmup is 0: then you divide by 0."),
        Mistake("late_end",
                lambda step, warmup, total: (step / warmup if step < warmup
                                             else (total - step) / (total - warmup)),
                "Right, until the warm-up lasts to the last step: then you divide by 0. Step "
                "`warmup` belongs to the warm-up (<=)."),
        Mistake("whole_numbers",
                lambda step, warmup, total: (step // warmup if step <= warmup
                                             else (total - step) // (total - warmup)),
                "`//` gives whole numbers: the factor is 0 or 1. Use `/`."),
        Mistake("cosine",
                lambda step, warmup, total: float(
                    step / warmup if step <= warmup else
                    0.5 + 0.5 * np.cos(np.pi * (step - warmup) / (total - warmup))),
                "The way down is a cosine. BERT's is a straight line."),
    ],
    also_right=[
        lambda step, warmup, total: (step / warmup if step < warmup or warmup == total
                                     else (total - step) / (total - warmup)),
        lambda step, warmup, total: (1 - (step - warmup) / (total - warmup) if step > warmup
                                     else 1 - (warmup - step) / warmup),
    ],
    hints=[
        "Two straight lines. Which steps belong to the first?",
        "Up: step 1 has 1 / warmup, step `warmup` has 1. Down: how many steps are left, out of how "
        "many?",
        "if step <= warmup: return step / warmup; otherwise (total - step) / (total - warmup).",
    ],
)

# --- mask_tokens --------------------------------------------------------------------------------

VOCABULARY, MASK = 1000, 4


def _to_hide(*shape, seed=0, **options):
    """Ids (shape) between specials: first and last place, and some padding."""

    def make(rng):
        ids = rng.integers(5, VOCABULARY, size=shape)
        special = np.zeros(shape, dtype=bool)
        special[..., [0, -1]] = True
        if len(shape) > 1:
            special[: shape[0] // 2, -shape[-1] // 4:] = True
        ids[special] = 2
        return (ids, special, VOCABULARY, MASK, np.random.default_rng(seed)), options

    return make


def _all_special(rng):
    ids = rng.integers(5, VOCABULARY, size=(2, 6))
    return (ids, np.ones((2, 6), dtype=bool), VOCABULARY, MASK, np.random.default_rng(1)), {}


def _rng_that_raises(rng):
    args, options = _to_hide(40, 30)(rng)
    return (*args[:-1], AsksMe()), options


def _far(count, share, total):
    """Whether a count is further from its share of a total than chance explains."""
    return abs(count - share * total) > 5 * (total * share * (1 - share)) ** 0.5 + 0.5


def compare_masked(got, expected, args, rate=None):
    """None if `got` is a right masking of these inputs, whatever was drawn; else what is wrong.

    The shares are held against chance (five deviations), everything else exactly.
    """
    ids, special = args[0], args[1]
    for name, part in zip(("the ids", "the labels"), got, strict=True):
        if not isinstance(part, np.ndarray) or part.shape != ids.shape or part.dtype.kind != "i":
            return f"Expected {name} as integers of shape {ids.shape}."
    hidden, labels = got
    chosen = labels != -100
    at, place = _first(chosen & special)
    if at:
        return (f"{at} a special token has the label {labels[place]}. [CLS], [SEP] and padding are "
                "never chosen: there special_tokens_mask is True, and the label is -100.")
    at, place = _first(chosen & (labels != ids))
    if at:
        return (f"{at} the label is {labels[place]}, but the id that stood there is {ids[place]}. "
                "Labels hold the original ids.")
    at, place = _first(~chosen & (hidden != ids))
    if at:
        return (f"{at} a token without a label was changed from {ids[place]} to {hidden[place]}. "
                "Only chosen tokens may change.")
    at, place = _first((hidden < 0) | (hidden >= args[2]))
    if at:
        return f"{at} the id {hidden[place]} is outside the vocabulary, 0 to {args[2] - 1}."
    free, count = int((~special).sum()), int(chosen.sum())
    rate = expected_rate(expected, special) if rate is None else rate
    if _far(count, rate, free):
        return (f"{count} of {free} tokens are chosen, {count / max(free, 1):.1%}; expected about "
                f"{rate:.0%}.")
    return _wrong_shares(hidden, labels, chosen, special, args[2], args[3])


def _first(wrong):
    """Where a Boolean array is first True: in words for a message, and as an index."""
    if not wrong.any():
        return "", ()
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"At `[{', '.join(map(str, place))}]`", place


def expected_rate(expected, special):
    """The rate asked for, read off the reference's answer: the nearest of those in the cases."""
    free = max(int((~special).sum()), 1)
    share = (expected[1] != -100).sum() / free
    return min((0.0, 0.15, 0.5, 1.0), key=lambda rate: abs(rate - share))


def _wrong_shares(hidden, labels, chosen, special, vocab_size, mask_id):
    before, after = labels[chosen], hidden[chosen]
    total = len(before)
    if total < 200:
        return None
    shares = {
        "become [MASK]": (int((after == mask_id).sum()), 0.8),
        "stay": (int((after == before).sum()), 0.1),
        "become a random token": (int(((after != before) & (after != mask_id)).sum()), 0.1),
    }
    for what, (count, share) in shares.items():
        if _far(count, share, total):
            return (f"Of the chosen tokens {count / total:.1%} {what}; expected about "
                    f"{share:.0%}.")
    drawn = after[(after != before) & (after != mask_id)]
    if len(np.unique(drawn)) < 0.4 * min(len(drawn), vocab_size):
        return "The random tokens are few different ones: draw a new one for each place."
    if abs(drawn.mean() / vocab_size - 0.5) > 5 * 0.29 / len(drawn) ** 0.5:
        return "The random tokens do not come from the whole vocabulary, each as likely."
    if chosen.ndim > 1 and len(chosen) > 20:
        free = (~special).sum(axis=0)
        rate = total / free.sum()
        counts = chosen.sum(axis=0)
        if any(_far(c, rate, f) for c, f in zip(counts, free, strict=True)) and 0 < rate < 1:
            return ("The same places are chosen in every sentence, or some places never. Draw for "
                    "each token of each sentence.")
    return None


def _mask_wrong(fault):
    """mask_tokens with one part wrong, drawing as the reference does."""

    def wrong(input_ids, special_tokens_mask, vocab_size, mask_id, rng, rate=0.15):
        draw = rng.random(input_ids.shape)
        if fault == "columns":
            draw = np.broadcast_to(draw.reshape(-1, input_ids.shape[-1])[0], input_ids.shape)
        chosen = draw > rate if fault == "inverted_rate" else draw < rate
        if fault == "specials_inverted":
            chosen = chosen & special_tokens_mask
        elif fault != "specials":
            chosen = chosen & ~special_tokens_mask
        turn = rng.random(input_ids.shape)
        random_ids = rng.integers(vocab_size, size=input_ids.shape)
        if fault == "one_random":
            random_ids = np.full_like(input_ids, random_ids.flat[0])
        first, second = {"always_mask": (1, 1), "mask_or_stay": (0.8, 0.8),
                         "mask_or_random": (0.8, 1), "swapped": (0.1, 0.2),
                         "tenth_of_rest": (0.8, 0.82)}.get(fault, (0.8, 0.9))
        hidden = np.where(turn < first, mask_id, np.where(turn < second, random_ids, input_ids))
        masked = np.where(chosen, hidden, input_ids)
        if fault == "all_changed":
            masked = hidden
        labels = np.where(chosen, input_ids, -100)
        if fault == "labels_everywhere":
            labels = input_ids.copy()
        elif fault == "labels_hidden":
            labels = np.where(chosen, hidden, -100)
        elif fault == "labels_elsewhere":
            labels = np.where(chosen, -100, input_ids)
        elif fault == "labels_where_changed":
            labels = np.where(masked != input_ids, input_ids, -100)
        elif fault == "labels_zero":
            labels = np.where(chosen, input_ids, 0)
        return masked, labels

    return wrong


def _own_rng(input_ids, special_tokens_mask, vocab_size, mask_id, rng, rate=0.15):
    return pretraining.mask_tokens(input_ids, special_tokens_mask, vocab_size, mask_id,
                                   np.random.default_rng(0), rate)


def _mask_one_draw(input_ids, special_tokens_mask, vocab_size, mask_id, rng, rate=0.15):
    """One draw decides both whether a token is chosen and what becomes of it."""
    draw = rng.random(input_ids.shape)
    draw = np.where(special_tokens_mask, 1.0, draw)
    masked, labels = input_ids.copy(), np.full_like(input_ids, -100)
    chosen = draw < rate
    labels[chosen] = input_ids[chosen]
    masked[draw < 0.8 * rate] = mask_id
    noise = (draw >= 0.8 * rate) & (draw < 0.9 * rate)
    masked[noise] = rng.integers(0, vocab_size, size=noise.sum())
    return masked, labels


def _mask_loop(input_ids, special_tokens_mask, vocab_size, mask_id, rng, rate=0.15):
    masked, labels = input_ids.copy(), np.full(input_ids.shape, -100)
    for place in np.ndindex(input_ids.shape):
        if not special_tokens_mask[place] and rng.random() < rate:
            labels[place] = input_ids[place]
            turn = rng.integers(10)
            if turn < 8:
                masked[place] = mask_id
            elif turn == 8:
                masked[place] = rng.integers(vocab_size)
    return masked, labels


register(
    name="mask_tokens",
    lesson="05",
    reference=pretraining.mask_tokens,
    parts=("ids", "labels"),
    compare=compare_masked,
    cases=[
        Case("400 sentences of 50 tokens, 15 %", _to_hide(400, 50)),
        Case("120 sentences of 40 tokens, 50 %", _to_hide(120, 40, seed=1, rate=0.5)),
        Case("everything, rate 1", _to_hide(40, 30, seed=2, rate=1.0)),
        Case("nothing, rate 0", _to_hide(3, 8, seed=3, rate=0.0)),
        Case("one long text, one axis", _to_hide(6000, seed=4)),
        Case("special tokens only", _all_special),
    ],
    raises=[Case("an rng that raises RngWasAsked (draw from `rng`, not from np.random)",
                 _rng_that_raises, why="randomness from elsewhere cannot be repeated by a seed")],
    mistakes=[
        Mistake("specials", _mask_wrong("specials"),
                "Special tokens are chosen too. [CLS] and [SEP] stand in every sentence and "
                "padding is no word: nothing is learned there. Leave out where special_tokens_mask "
                "is True."),
        Mistake("specials_inverted", _mask_wrong("specials_inverted"),
                "You choose among the special tokens only: True in special_tokens_mask means "
                "'never choose this'."),
        Mistake("inverted_rate", _mask_wrong("inverted_rate"),
                "You choose where the draw is above the rate: that is 85 % of the tokens."),
        Mistake("all_changed", _mask_wrong("all_changed"),
                "You change tokens that were not chosen. Those keep their id, for they are what "
                "the model has to go by."),
        Mistake("labels_everywhere", _mask_wrong("labels_everywhere"),
                "Every token has a label. Ask only where something was chosen; elsewhere the label "
                "is -100, or the model is paid for copying."),
        Mistake("labels_elsewhere", _mask_wrong("labels_elsewhere"),
                "The labels are the wrong way round: -100 stands where a token was chosen."),
        Mistake("labels_hidden", _mask_wrong("labels_hidden"),
                "Your labels hold what stands there now, mostly [MASK]. They should hold what "
                "stood there before."),
        Mistake("labels_where_changed", _mask_wrong("labels_where_changed"),
                "The tokens that stay have no label. They were chosen too: being asked about a "
                "token that is plain to see keeps the model honest about the others."),
        Mistake("labels_zero", _mask_wrong("labels_zero"),
                "Where nothing is asked your label is 0. That is a token's id; use -100, which "
                "cross_entropy leaves out."),
        Mistake("always_mask", _mask_wrong("always_mask"),
                "All chosen tokens become [MASK]. Later texts have no [MASK]; so that the model "
                "also works on real words, 10 % become a random token and 10 % stay."),
        Mistake("mask_or_random", _mask_wrong("mask_or_random"),
                "No chosen token stays: you have 80 % [MASK] and 20 % random. It is 80, 10, and 10 "
                "that stay."),
        Mistake("mask_or_stay", _mask_wrong("mask_or_stay"),
                "No token is replaced by a random one: you have 80 % [MASK] and 20 % that stay. It "
                "is 80, 10 and 10."),
        Mistake("tenth_of_rest", _mask_wrong("tenth_of_rest"),
                "The random ones are a tenth of the rest, which is 2 %. They are half of the rest: "
                "10 % of all that were chosen."),
        Mistake("swapped", _mask_wrong("swapped"),
                "The shares are mixed up: 10 % become [MASK] and 80 % stay. It is 80 % [MASK], 10 "
                "% random, 10 % stay."),
        Mistake("one_random", _mask_wrong("one_random"),
                "All random tokens are the same one. Draw a new one for each place: give "
                "rng.integers the shape."),
        Mistake("columns", _mask_wrong("columns"),
                "The same places are chosen in every sentence: you draw once for each column. Draw "
                "for every token: rng.random(input_ids.shape)."),
        Mistake("own_rng", _own_rng,
                "The shares are right, but you never ask the `rng` that you are given: you made "
                "one of your own. Then the same words are hidden each time the text is read, and "
                "no seed of the caller changes that. Draw with rng.random(...)."),
    ],
    also_right=[_mask_one_draw, _mask_loop],
    hints=[
        "First decide where: a Boolean array `chosen`. Then decide what stands there. Then the "
        "labels follow from `chosen` alone.",
        "chosen = (rng.random(input_ids.shape) < rate) & ~special_tokens_mask. A second draw of "
        "the same shape splits the chosen: below 0.8, from 0.8 to 0.9, above.",
        "hidden = np.where(turn < 0.8, mask_id, np.where(turn < 0.9, random_ids, input_ids)); "
        "return np.where(chosen, hidden, input_ids), np.where(chosen, input_ids, -100).",
    ],
)
