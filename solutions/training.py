"""Training: a loss and its gradient, AdamW, warm-up, clipping, and the loop around them.

Lesson 05. One step of training:

    loss, grads = model.loss_and_grads(batch)     how wrong, and which way is worse
    grads = clip_by_global_norm(grads)            no step longer than agreed
    optimizer.step(grads, lr * warmup_linear(..)) a little the other way

The recipe is BERT's: AdamW with betas .9 and .999 and eps 1e-6, weight decay .01 but not on
LayerNorm and biases, gradients clipped to a global norm of 1, warm-up then linear decay.

Loshchilov and Hutter, 2019, https://arxiv.org/abs/1711.05101; Devlin et al., 2019, appendix A.
"""

import dataclasses

import numpy as np

from solutions import _checks
from solutions._checks import checked

# --- Losses ---------------------------------------------------------------------------------------


def _cross_entropy_input(logits, labels, ignore_index=-100):
    _checks.floats("cross_entropy: logits", logits)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"cross_entropy: logits: expected (..., classes), "
                         f"got {_checks.describe(logits)}")
    if not isinstance(labels, np.ndarray) or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"cross_entropy: labels: expected a NumPy array of integers, "
                         f"got {_checks.describe(labels)}")
    if labels.shape != logits.shape[:-1]:
        raise ValueError(f"cross_entropy: labels: expected shape {logits.shape[:-1]}, one label "
                         f"for each row of logits, got {_checks.describe(labels)}")
    counted = labels[labels != ignore_index]
    if counted.size and (counted.min() < 0 or counted.max() >= logits.shape[-1]):
        wrong = counted[(counted < 0) | (counted >= logits.shape[-1])][0]
        raise ValueError(f"cross_entropy: labels: expected 0 to {logits.shape[-1] - 1}, or "
                         f"{ignore_index} to ignore, got {wrong}")


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
        raise ValueError(f"binary_cross_entropy: labels: expected 0 or 1 for each of the logits "
                         f"{logits.shape}, got {_checks.describe(labels)}")


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


class AdamW:
    """Adam with decoupled weight decay; changes the parameters in place.

    params: {name: array}. Each step moves a parameter by lr times m / (sqrt(v) + eps), where m and
    v are running means of its gradient and of its square, corrected for their start at 0; and, by
    itself, by lr * weight_decay times the parameter, unless `decays(name)` is False.

    Kingma and Ba, 2015, https://arxiv.org/abs/1412.6980; Loshchilov and Hutter, 2019.
    """

    def __init__(self, params, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        self.params, self.betas, self.eps, self.weight_decay = params, betas, eps, weight_decay
        self.first = {name: np.zeros_like(array) for name, array in params.items()}
        self.second = {name: np.zeros_like(array) for name, array in params.items()}
        self.steps = 0

    def step(self, grads, lr):
        """One update. grads: {name: gradient}; a parameter without one stays as it is."""
        self.steps += 1
        b1, b2 = self.betas
        rate = lr * (1 - b2**self.steps) ** 0.5 / (1 - b1**self.steps)
        eps = self.eps * (1 - b2**self.steps) ** 0.5
        for name, grad in grads.items():
            param, m, v = self.params[name], self.first[name], self.second[name]
            m *= b1
            m += (1 - b1) * grad
            v *= b2
            v += (1 - b2) * (grad * grad)
            if self.weight_decay and decays(name):
                param *= 1 - lr * self.weight_decay
            move = np.sqrt(v)
            move += eps
            np.divide(m, move, out=move)
            move *= rate
            param -= move


# --- The loop -------------------------------------------------------------------------------------


@dataclasses.dataclass
class History:
    """What a run of `fit` did.

    steps, losses: of every step. dev_steps, dev_scores: of every look at the dev split.
    best_step, best_score: the parameters that were kept. stopped: "" or why it ended early.
    """

    steps: list = dataclasses.field(default_factory=list)
    losses: list = dataclasses.field(default_factory=list)
    dev_steps: list = dataclasses.field(default_factory=list)
    dev_scores: list = dataclasses.field(default_factory=list)
    best_step: int = 0
    best_score: float = float("-inf")
    stopped: str = ""


def batches(examples, batch_size, rng):
    """Lists of examples in random order, those of like length together, to save on padding."""
    order = rng.permutation(len(examples))
    chunk = batch_size * 16
    groups = []
    for first in range(0, len(order), chunk):
        part = sorted(order[first:first + chunk], key=lambda i: _length(examples[i]))
        groups += [part[i:i + batch_size] for i in range(0, len(part), batch_size)]
    return [[examples[i] for i in groups[g]] for g in rng.permutation(len(groups))]


def _length(example):
    return len(example) if hasattr(example, "__len__") else 0


def fit(model, train, dev=None, *, epochs=None, steps=None, batch_size=32, lr=1e-3, warmup=0.1,
        clip=1.0, weight_decay=0.01, seed=0, watch=None, dev_every=None):
    """Train a model and keep its best parameters on the dev split; returns a History.

    model has
        params                                  {name: array}, changed in place
        loss_and_grads(batch, rng)              mean loss, {name: gradient}, how many labels
        evaluate(dev)                           a score, higher is better (only if dev is given)
    train, dev: lists of whatever the model takes; a batch is a list of train's entries.
    epochs or steps: how long, one of the two. warmup: share of the steps. dev_every: look at dev
    every so many steps; once an epoch if None.
    watch: an object with start(total), step(step, loss, lr), dev(step, score), end(reason).

    KeyboardInterrupt ends the run cleanly. The same seed gives the same numbers.
    """
    if (epochs is None) == (steps is None):
        raise ValueError(f"fit: expected epochs or steps, one of them, "
                         f"got epochs={epochs} and steps={steps}")
    if not train:
        raise ValueError("fit: train: expected at least one example, got none")
    _checks.whole("fit: batch_size", batch_size, 1)
    per_epoch = -(-len(train) // batch_size)
    total = epochs * per_epoch if steps is None else steps
    _checks.whole("fit: steps", total, 1)
    rng = np.random.default_rng(seed)
    optimizer = AdamW(model.params, weight_decay=weight_decay)
    history, best, step = History(), None, 0
    warm = round(warmup * total)
    dev_every = dev_every or per_epoch
    if watch:
        watch.start(total)
    try:
        while step < total:
            for batch in batches(train, batch_size, rng):
                step += 1
                loss, grads, _ = model.loss_and_grads(batch, rng)
                rate = lr * warmup_linear(step, warm, total)
                if clip:
                    grads, _ = clip_by_global_norm(grads, clip)
                optimizer.step(grads, rate)
                history.steps.append(step)
                history.losses.append(loss)
                if watch:
                    watch.step(step, loss, rate)
                if dev is not None and (step % dev_every == 0 or step == total):
                    score = model.evaluate(dev)
                    history.dev_steps.append(step)
                    history.dev_scores.append(score)
                    if score > history.best_score:
                        history.best_step, history.best_score = step, score
                        best = {name: array.copy() for name, array in model.params.items()}
                    if watch:
                        watch.dev(step, score)
                if step == total:
                    break
    except KeyboardInterrupt:
        history.stopped = f"interrupted at step {step} of {total}"
    if best is not None:
        for name, array in best.items():
            model.params[name][...] = array
    if watch:
        watch.end(history.stopped)
    return history
