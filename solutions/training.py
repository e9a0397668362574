"""Training: a loss and its gradient, AdamW, warm-up, clipping, and the loop around them.

Lesson 05. One step of training:

    loss, grads, labels = model.loss_and_grads(batch, rng)    how wrong, and which way is worse
    grads, norm = clip_by_global_norm(grads, 1.0)             no step longer than agreed
    optimizer.step(grads, lr * warmup_linear(...))            a little the other way

The recipe is BERT's: AdamW with betas .9 and .999 and eps 1e-6, weight decay .01 but not on
LayerNorm and biases, gradients clipped to a global norm of 1, warm-up then linear decay.

Loshchilov and Hutter, 2019, https://arxiv.org/abs/1711.05101; Devlin et al., 2019, appendix A.
"""

import dataclasses
import itertools
import sys

import numpy as np

from solutions import _checks, _inference
from solutions._checks import checked

# --- Losses ---------------------------------------------------------------------------------------


def _cross_entropy_input(logits, labels, ignore_index=-100):
    _checks.floats("cross_entropy: logits", logits)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(
            f"cross_entropy: logits: expected (..., classes), got {_checks.describe(logits)}"
        )
    if not isinstance(labels, np.ndarray) or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"cross_entropy: labels: expected a NumPy array of integers, "
            f"got {_checks.describe(labels)}"
        )
    if labels.shape != logits.shape[:-1]:
        raise ValueError(
            f"cross_entropy: labels: expected shape {logits.shape[:-1]}, one label "
            f"for each row of logits, got {_checks.describe(labels)}"
        )
    counted = labels[labels != ignore_index]
    if counted.size and (counted.min() < 0 or counted.max() >= logits.shape[-1]):
        wrong = counted[(counted < 0) | (counted >= logits.shape[-1])][0]
        raise ValueError(
            f"cross_entropy: labels: expected 0 to {logits.shape[-1] - 1}, or "
            f"{ignore_index} to ignore, got {wrong}"
        )


@checked(_cross_entropy_input)
def cross_entropy(logits, labels, ignore_index=-100):
    """Mean of -log(probability of the label), and its gradient with respect to the logits.

    logits: (..., classes). labels: integers (...). Returns the loss, a float, and the gradient, of
    the shape of logits. Where the label is ignore_index the loss does not look: such places are
    left out of the mean, and their gradient is 0. If all are ignored, the loss is 0.

    The gradient is (probability - 1 at the label, probability elsewhere) / number of labels.
    """
    flat = logits.reshape(-1, logits.shape[-1])
    rows = np.flatnonzero(labels.reshape(-1) != ignore_index)
    grad = np.zeros_like(flat)
    if len(rows) == 0:
        return 0.0, grad.reshape(logits.shape)
    shifted = flat[rows] - flat[rows].max(axis=-1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    right = np.arange(len(rows)), labels.reshape(-1)[rows]
    grad_rows = np.exp(log_probabilities)
    grad_rows[right] -= 1
    grad[rows] = grad_rows / len(rows)
    return float(-log_probabilities[right].mean()), grad.reshape(logits.shape)


def _binary_input(logits, labels):
    _checks.floats("binary_cross_entropy: logits", logits)
    labels = np.asarray(labels)
    if labels.shape != logits.shape or not np.isin(labels, (0, 1)).all():
        raise ValueError(
            f"binary_cross_entropy: labels: expected 0 or 1 for each of the logits "
            f"{logits.shape}, got {_checks.describe(labels)}"
        )


@checked(_binary_input)
def binary_cross_entropy(logits, labels):
    """Loss of one logit a text, through a sigmoid, and its gradient: (sigmoid - label) / count.

    logits, labels: one shape; labels are 0 or 1. Large logits of either sign stay finite.
    """
    loss = np.maximum(logits, 0) - logits * labels + np.log1p(np.exp(-np.abs(logits)))
    sigmoid = np.exp(np.minimum(logits, 0)) / (1 + np.exp(-np.abs(logits)))
    grad = (sigmoid - labels) / max(logits.size, 1)
    return float(loss.mean()) if logits.size else 0.0, grad.astype(logits.dtype)


# --- The step -------------------------------------------------------------------------------------


def _warmup_input(step, warmup, total):
    _checks.whole("warmup_linear: total", total, 1)
    _checks.whole("warmup_linear: warmup", warmup, 0, total)
    _checks.whole("warmup_linear: step", step, 1, total)


@checked(_warmup_input)
def warmup_linear(step, warmup, total):
    """Factor of the learning rate: up to 1.0 at step `warmup`, then down to 0 at step `total`.

    Steps are counted from 1, so the first update already moves: its factor is 1 / warmup. With
    warmup 0 the factor starts at (total - 1) / total. The last step's factor is 0, unless warm-up
    lasts to the end.
    """
    if step <= warmup:
        return step / warmup
    return (total - step) / (total - warmup)


def _clip_input(grads, max_norm):
    _checks.positive("clip_by_global_norm: max_norm", max_norm)


@checked(_clip_input)
def clip_by_global_norm(grads, max_norm):
    """Gradients shrunk together so that their common norm is at most `max_norm`; and that norm.

    grads: {name: array}. Returns ({name: array}, the norm before clipping). All are scaled by one
    factor, so the direction of the step stays.

    Pascanu et al., 2013, https://arxiv.org/abs/1211.5063
    """
    norm = float(np.sqrt(sum(float(np.vdot(grad, grad)) for grad in grads.values())))
    if not norm > max_norm:
        return dict(grads), norm
    scale = max_norm / norm
    return {name: grad * grad.dtype.type(scale) for name, grad in grads.items()}, norm


def decays(name):
    """Whether weight decay applies to a parameter: not to LayerNorm and biases."""
    return not name.endswith((".gamma", ".beta", "bias"))


def adamw_step(param, grad, first, second, step, lr, decay=0.01):
    """One AdamW update: the new parameter, and the new running means of gradient and square.

    first, second: running means before this step, 0 before step 1. step: counted from 1.
    BERT's constants: 0.9 for the first mean, 0.999 for the second, eps 1e-6.

    The means start at 0, so early ones are too small; they are divided by the share of the true
    mean that they have by now. Decay is decoupled: it pulls the parameter itself toward 0, and does
    not go through the means.

    Kingma and Ba, 2015, https://arxiv.org/abs/1412.6980; Loshchilov and Hutter, 2019.
    """
    first = 0.9 * first + 0.1 * grad
    second = 0.999 * second + 0.001 * grad**2
    first_fair = first / (1 - 0.9**step)
    second_fair = second / (1 - 0.999**step)
    move = first_fair / (np.sqrt(second_fair) + 1e-6) + decay * param
    return param - lr * move, first, second


class AdamW:
    """`adamw_step` for all parameters of a model, in place.

    params: {name: array}; the arrays themselves change, which is what an optimizer is for.
    Parameters for which `decays(name)` is False do not decay. lr_scale: a function from a name to a
    factor of the learning rate, such as 0.1 for the encoder under a new head; all 1 if None.
    """

    _BLOCK = 2**15  # numbers; what one update touches stays in the cache

    def __init__(self, params, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01, lr_scale=None):
        for name, array in params.items():
            _checks.floats(f"AdamW: {name}", array)
            if not array.flags.c_contiguous:
                raise ValueError(f"AdamW: {name}: expected a contiguous array, got a view")
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise ValueError(f"AdamW: betas: expected two numbers, got {betas!r}")
        for which, beta in zip(("first", "second"), betas, strict=True):
            _checks.fraction(f"AdamW: {which} beta", beta)
        _checks.positive("AdamW: eps", eps)
        _checks.fraction("AdamW: weight_decay", weight_decay)
        self.params, self.betas, self.eps, self.weight_decay = params, betas, eps, weight_decay
        self.lr_scale = lr_scale
        self.first = {name: np.zeros_like(array) for name, array in params.items()}
        self.second = {name: np.zeros_like(array) for name, array in params.items()}
        self.steps = 0

    def step(self, grads, lr):
        """One update. grads: {name: gradient}; a parameter without one stays as it is."""
        _checks.at_least_zero("AdamW: lr", lr)
        for name, grad in grads.items():
            if name not in self.params:
                raise ValueError(f"AdamW: grads: expected the names of params, got {name!r}")
            _checks.floats(f"AdamW: gradient of {name}", grad, shape=self.params[name].shape)
        self.steps += 1
        for name, grad in grads.items():
            rate = lr if self.lr_scale is None else lr * self.lr_scale(name)
            decay = self.weight_decay if decays(name) else 0
            arrays = (self.params[name], grad, self.first[name], self.second[name])
            flat = [array.reshape(-1) for array in arrays]
            for start in range(0, grad.size, self._BLOCK):
                self._update(*(array[start : start + self._BLOCK] for array in flat), rate, decay)

    def _update(self, param, grad, first, second, lr, decay):
        """`adamw_step` in place, with both corrections moved into rate and eps."""
        (beta1, beta2), root = self.betas, (1 - self.betas[1] ** self.steps) ** 0.5
        scratch = grad - first
        scratch *= 1 - beta1
        first += scratch
        np.square(grad, out=scratch)
        scratch -= second
        scratch *= 1 - beta2
        second += scratch
        np.sqrt(second, out=scratch)
        scratch += self.eps * root
        np.divide(first, scratch, out=scratch)
        scratch *= lr * root / (1 - beta1**self.steps)
        if decay:
            param *= 1 - lr * decay
        param -= scratch

    def state(self):
        """{name: array} of all that the next step depends on, apart from the parameters."""
        arrays = {"steps": np.array(self.steps)}
        for name in self.params:
            arrays[f"first.{name}"] = self.first[name].copy()
            arrays[f"second.{name}"] = self.second[name].copy()
        return arrays

    def restore(self, state):
        """Go on from where `state` was taken."""
        if state.keys() != self.state().keys():
            raise ValueError("AdamW.restore: expected a state of the same parameters, got another")
        for kind in ("first", "second"):
            for name, array in getattr(self, kind).items():
                _checks.floats(
                    f"AdamW.restore: {kind}.{name}", state[f"{kind}.{name}"], None, array.shape
                )
        for kind in ("first", "second"):
            for name, array in getattr(self, kind).items():
                array[...] = state[f"{kind}.{name}"]
        self.steps = int(state["steps"])


# --- The loop -------------------------------------------------------------------------------------


def mean_loss(losses, weights):
    """Mean loss over labels, of batches that have different numbers of them; 0.0 without labels.

    A batch's loss is already a mean, over its own labels. The mean of such means would count the
    labels of a small batch for more.
    """
    total = sum(weights)
    return sum(l * w for l, w in zip(losses, weights, strict=True)) / total if total else 0.0


@dataclasses.dataclass
class History:
    """What a run of `fit` did.

    steps, losses, weights: of every step; its weight is how many labels it saw. dev_steps,
    dev_scores: of every look at the dev split. best_step, best_score: of the parameters that were
    kept. stopped: "" or why it ended early.
    """

    steps: list = dataclasses.field(default_factory=list)
    losses: list = dataclasses.field(default_factory=list)
    weights: list = dataclasses.field(default_factory=list)
    dev_steps: list = dataclasses.field(default_factory=list)
    dev_scores: list = dataclasses.field(default_factory=list)
    best_step: int = 0
    best_score: float = float("-inf")
    stopped: str = ""

    def mean_loss(self, last=None):
        """Mean loss over the labels of the `last` steps; of all if None."""
        start = 0 if last is None else max(0, len(self.losses) - last)
        return mean_loss(self.losses[start:], self.weights[start:])


def batches(examples, batch_size, rng):
    """Lists of examples in random order, those of like length together, to save on padding.

    Every example comes once. Pools of 16 batches, drawn at random, are sorted by length and cut.
    """
    order = rng.permutation(len(examples))
    pool = batch_size * 16
    groups = []
    for first in range(0, len(order), pool):
        part = sorted(order[first : first + pool], key=lambda i: _length(examples[i]))
        groups += [part[i : i + batch_size] for i in range(0, len(part), batch_size)]
    return [[examples[i] for i in groups[g]] for g in rng.permutation(len(groups))]


def _length(example):
    return len(example) if hasattr(example, "__len__") else 0


def fit(
    model,
    train,
    dev=None,
    *,
    epochs=None,
    steps=None,
    batch_size=32,
    lr=1e-3,
    warmup=0.1,
    clip=1.0,
    weight_decay=0.01,
    lr_scale=None,
    seed=0,
    score=None,
    watch=None,
    dev_every=None,
):
    """Train a model and keep its best parameters on the dev split; returns a History.

    model has
        params                                  {name: array}, changed in place
        loss_and_grads(batch, rng)              mean loss, {name: gradient}, how many labels
        evaluate(dev)                           a score, higher is better (only if dev is given)
    train, dev: lists of whatever the model takes; a batch is a list of train's entries.
    epochs or steps: how long, one of the two. warmup: share of the steps, at least one step. Then
    the rate falls in a line; at the last step it is 0. clip: greatest global norm of the gradients,
    None for any. lr_scale: see AdamW. score: a function of (model, dev) in the place of evaluate.
    dev_every: look at dev every so many steps, and at the end; once an epoch if None.
    watch: an object with start(total), step(step, loss, lr), dev(step, score), end(reason).

    KeyboardInterrupt ends the run cleanly. So does a loss, a norm of the gradients or a score that
    is no longer a number, and a FloatingPointError, by which evaluate and score say the same of
    logits. In all these cases, too, the best parameters so far are kept. The same seed gives the
    same numbers.
    """
    _fit_input(train, dev, epochs, steps, batch_size, lr, warmup, clip, dev_every)
    per_epoch = -(-len(train) // batch_size)
    total = epochs * per_epoch if steps is None else steps
    warm = max(1, round(warmup * total))
    dev_every = dev_every or per_epoch
    look = score or (lambda model, dev: model.evaluate(dev))
    rng = np.random.default_rng(seed)
    optimizer = AdamW(model.params, weight_decay=weight_decay, lr_scale=lr_scale)
    history, best = History(), None
    if watch:
        watch.start(total)
    try:
        for step, batch in enumerate(_rounds(train, batch_size, rng, total), start=1):
            loss, grads, weight = model.loss_and_grads(batch, rng)
            rate = lr * warmup_linear(step, warm, total)
            history.steps.append(step)
            history.losses.append(loss)
            history.weights.append(weight)
            if watch:
                watch.step(step, loss, rate)
            if not np.isfinite(loss):
                history.stopped = f"diverged at step {step} of {total}: the loss is {loss}"
                break
            grads, norm = clip_by_global_norm(grads, clip or sys.float_info.max)
            if not np.isfinite(norm):  # the step would make NaN of all parameters
                history.stopped = (
                    f"diverged at step {step} of {total}: the norm of the gradients is {norm}"
                )
                break
            optimizer.step(grads, rate)
            if dev is not None and (step % dev_every == 0 or step == total):
                try:
                    result = float(look(model, dev))
                except FloatingPointError as error:
                    history.stopped = f"diverged at step {step} of {total}: {error}"
                    break
                if np.isnan(result):
                    history.stopped = f"diverged at step {step} of {total}: the score is nan"
                    break
                history.dev_steps.append(step)
                history.dev_scores.append(result)
                if result > history.best_score:
                    history.best_step, history.best_score = step, result
                    best = {name: array.copy() for name, array in model.params.items()}
                if watch:
                    watch.dev(step, result)
    except KeyboardInterrupt:
        history.stopped = f"interrupted at step {len(history.steps)} of {total}"
    if best is not None:
        for name, array in best.items():
            model.params[name][...] = array
    if watch:
        watch.end(history.stopped)
    return history


class SideBySide:
    """A model for `fit` that works on the parts of a batch at the same time, one a thread.

    A large matrix product uses all processors by itself; what stands between two products uses one.
    Where inputs are long that is much of the time. The gradients of the parts are averaged by how
    many labels each counts, so that they are those of the whole batch. What is random (dropout, the
    tokens that a MaskedWordModel hides) is drawn for each part: not as for the whole batch, but the
    same for the same seed and number of parts, whatever the machine.

    model: as for `fit`. parts: into how many to cut a batch, at least 1.
    """

    def __init__(self, model, parts=2):
        _checks.whole("SideBySide: parts", parts, 1)
        self.model, self.parts = model, parts

    @property
    def params(self):
        return self.model.params

    def evaluate(self, dev):
        return self.model.evaluate(dev)

    def loss_and_grads(self, batch, rng=None):
        """As the model's own, for the whole batch."""
        cuts = [len(batch) * i // self.parts for i in range(self.parts + 1)]
        parts = [batch[first:stop] for first, stop in itertools.pairwise(cuts) if first < stop]
        rngs = [None] * len(parts) if rng is None else rng.spawn(len(parts))
        found = [None] * len(parts)

        def work(i):
            found[i] = self.model.loss_and_grads(parts[i], rngs[i])

        _inference.side_by_side(work, range(len(parts)))
        count = sum(labels for _, _, labels in found)
        loss, grads = 0.0, {}
        for part_loss, part_grads, labels in found:
            share = labels / max(count, 1)
            loss += share * part_loss
            for name, grad in part_grads.items():
                grad = np.multiply(grad, share, out=grad if grad.flags.writeable else None)
                grads[name] = np.add(grads[name], grad, out=grads[name]) if name in grads else grad
        return loss, grads, count


def _rounds(train, batch_size, rng, total):
    """`total` batches: all of train in a random order, then again in another."""
    done = 0
    while True:
        for batch in batches(train, batch_size, rng):
            if done == total:
                return
            yield batch
            done += 1


def _fit_input(train, dev, epochs, steps, batch_size, lr, warmup, clip, dev_every):
    if (epochs is None) == (steps is None):
        raise ValueError(
            f"fit: expected epochs or steps, one of them, got epochs={epochs} and steps={steps}"
        )
    for name, examples in (("train", train), ("dev", [] if dev is None else dev)):
        listed = hasattr(examples, "__len__") and hasattr(examples, "__getitem__")
        if not listed or isinstance(examples, (str, dict)):
            raise ValueError(
                f"fit: {name}: expected a list of examples, got {_checks.describe(examples)}"
            )
    if len(train) == 0:
        raise ValueError("fit: train: expected at least one example, got none")
    if dev is not None and len(dev) == 0:
        raise ValueError("fit: dev: expected at least one example, or None, got none")
    _checks.whole("fit: batch_size", batch_size, 1)
    if steps is None:
        _checks.whole("fit: epochs", epochs, 1)
    else:
        _checks.whole("fit: steps", steps, 1)
    _checks.positive("fit: lr", lr)
    if warmup != 1:
        _checks.fraction("fit: warmup", warmup)
    if clip is not None:
        _checks.positive("fit: clip", clip)
    if dev_every is not None:
        _checks.whole("fit: dev_every", dev_every, 1)
