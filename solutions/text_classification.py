"""One label for a whole text: pool the hidden states, then one linear layer.

Lesson 06. The shapes, from left to right:

    hidden_states (batch, length, d)  --pool-->  (batch, d)  --head-->  logits (batch, classes)

Two ways to pool: take the vector at [CLS], or the mean of the real tokens. [CLS] here is the
encoder's last hidden state itself; BERT's "pooler", one more linear layer and a tanh, is left out.

Devlin et al., 2019, "BERT", section 4.1, https://arxiv.org/abs/1810.04805
"""

import warnings
from dataclasses import dataclass

import numpy as np

from solutions import _checks, _heads
from solutions._checks import checked
from solutions.attention import softmax
from solutions.embeddings import Encoding, WordPieceTokenizer, pad_batch
from solutions.encoder import dropout, linear, linear_backward
from solutions.training import cross_entropy

# --- Pooling --------------------------------------------------------------------------------------


def _cls_pool_input(hidden_states):
    _checks.floats("cls_pool: hidden_states", hidden_states, shape=("batch", "length", "d"))
    if hidden_states.shape[1] == 0:
        raise ValueError("cls_pool: hidden_states: expected at least the token [CLS], got length 0")


@checked(_cls_pool_input)
def cls_pool(hidden_states):
    """The vector at [CLS], the first token: (batch, length, d) to (batch, d)."""
    return hidden_states[:, 0].copy()


def _mean_pool_input(hidden_states, attention_mask):
    _checks.floats("mean_pool: hidden_states", hidden_states, shape=("batch", "length", "d"))
    _checks.real_tokens("mean_pool: attention_mask", attention_mask, hidden_states.shape[:2])


@checked(_mean_pool_input)
def mean_pool(hidden_states, attention_mask):
    """Mean of the real tokens' vectors, padding left out: (batch, length, d) to (batch, d).

    attention_mask: (batch, length), True or 1 for a real token. A text without any gives zeros.
    """
    real = attention_mask.astype(hidden_states.dtype)[:, :, None]
    total = (hidden_states * real).sum(axis=1)
    return total / np.maximum(real.sum(axis=1), 1)


def cls_pool_backward(grad_pooled, length):
    """Gradient of the hidden states (batch, length, d): all of it arrives at [CLS]."""
    grad = np.zeros((len(grad_pooled), length, grad_pooled.shape[-1]), grad_pooled.dtype)
    grad[:, 0] = grad_pooled
    return grad


def _mean_pool_backward_input(grad_pooled, attention_mask):
    _checks.real_tokens("mean_pool_backward: attention_mask", attention_mask)
    _checks.floats("mean_pool_backward: grad_pooled", grad_pooled,
                   shape=(len(attention_mask), "d"))


@checked(_mean_pool_backward_input)
def mean_pool_backward(grad_pooled, attention_mask):
    """Gradient of the hidden states: each real token gets an equal share, padding gets nothing.

    grad_pooled: (batch, d). attention_mask: (batch, length). Returns (batch, length, d).
    """
    real = attention_mask.astype(grad_pooled.dtype)[:, :, None]
    return grad_pooled[:, None, :] * real / np.maximum(real.sum(axis=1, keepdims=True), 1)


# --- A text without word order --------------------------------------------------------------------


def _bag_of_words_input(input_ids, attention_mask, vocab_size):
    _checks.whole("bag_of_words: vocab_size", vocab_size, 1)
    _checks.ids("bag_of_words: input_ids", input_ids, vocab_size, ("batch", "length"))
    _checks.real_tokens("bag_of_words: attention_mask", attention_mask, input_ids.shape)


@checked(_bag_of_words_input)
def bag_of_words(input_ids, attention_mask, vocab_size):
    """How often each token of the vocabulary occurs in each text: (batch, vocab_size) floats.

    input_ids, attention_mask: (batch, length). Padding is not counted.
    """
    counts = np.zeros((len(input_ids), vocab_size))
    rows = np.arange(len(input_ids))[:, None]
    np.add.at(counts, (rows, input_ids), attention_mask)
    return counts


# --- Evaluation -----------------------------------------------------------------------------------


def _pair(where, true, predicted):
    true, predicted = np.asarray(true), np.asarray(predicted)
    if true.ndim != 1 or true.shape != predicted.shape:
        raise ValueError(f"{where}: expected two equally long rows of labels, "
                         f"got shapes {true.shape} and {predicted.shape}")
    return true, predicted


def accuracy(true, predicted):
    """Share of labels that are right, 0 to 1; 0.0 where there are none."""
    true, predicted = _pair("accuracy", true, predicted)
    return float((true == predicted).mean()) if len(true) else 0.0


def _confusion_input(true, predicted, num_classes):
    _pair("confusion_matrix", true, predicted)
    _checks.whole("confusion_matrix: num_classes", num_classes, 1)
    _checks.ids("confusion_matrix: true", np.asarray(true, dtype=int), num_classes)
    _checks.ids("confusion_matrix: predicted", np.asarray(predicted, dtype=int), num_classes)


@checked(_confusion_input)
def confusion_matrix(true, predicted, num_classes):
    """Counts (num_classes, num_classes): row = the true class, column = the predicted one."""
    counts = np.zeros((num_classes, num_classes), dtype=int)
    for t, p in zip(true, predicted, strict=True):
        counts[t, p] += 1
    return counts


def _macro_f1_input(true, predicted, num_classes=None):
    true, predicted = _pair("macro_f1", true, predicted)
    for name, labels in (("true", true), ("predicted", predicted)):
        if labels.size and not np.issubdtype(labels.dtype, np.integer):
            raise ValueError(f"macro_f1: {name}: expected class numbers, "
                             f"got {_checks.describe(labels)}")
    if num_classes is not None:
        _confusion_input(true.astype(int), predicted.astype(int), num_classes)


@checked(_macro_f1_input)
def macro_f1(true, predicted, num_classes=None):
    """Mean over the classes of F1, 0 to 1; a class with nothing to divide counts as 0.

    true, predicted: class numbers. num_classes: None for the classes that occur in either.

    F1 of a class is 2 hits / (times true + times predicted): the harmonic mean of precision and
    recall. Each class counts the same, however rare it is.
    """
    true, predicted = np.asarray(true), np.asarray(predicted)
    classes = np.union1d(true, predicted) if num_classes is None else range(num_classes)
    scores = []
    for c in classes:
        hits = np.sum((true == c) & (predicted == c))
        both = np.sum(true == c) + np.sum(predicted == c)
        scores.append(2 * hits / both if both else 0.0)
    return float(np.mean(scores)) if scores else 0.0


def _calibration_input(probabilities, true, bins=10):
    _checks.floats("calibration_error: probabilities", probabilities, shape=("texts", "classes"))
    if not np.all((probabilities >= 0) & (probabilities <= 1 + 1e-6)):  # not of NaN either
        raise ValueError("calibration_error: probabilities: expected numbers from 0 to 1, "
                         f"got {probabilities.min():g} to {probabilities.max():g}")
    _checks.whole("calibration_error: bins", bins, 1)
    _checks.ids("calibration_error: true", np.asarray(true, dtype=int), probabilities.shape[1],
                (len(probabilities),))


@checked(_calibration_input)
def calibration_error(probabilities, true, bins=10):
    """How far confidence is from being right, weighted over equal bins of confidence, 0 to 1.

    probabilities: (texts, classes). true: class numbers. Confidence is the highest probability of
    a text; in each bin it is compared, on average, with the share of texts that are right. Bin b
    holds confidences from b / bins up to, not including, (b + 1) / bins; the last also holds 1.

    Guo et al., 2017, https://arxiv.org/abs/1706.04599
    """
    confidence = probabilities.max(axis=-1)
    right = probabilities.argmax(axis=-1) == np.asarray(true)
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    error = 0.0
    for b in range(bins):
        inside = bin_of == b
        if inside.any():
            error += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    return float(error)


# --- The classifiers ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """One text as the model reads it, and its class number."""

    encoding: Encoding
    label: int

    def __len__(self):
        return len(self.encoding)


def _class_numbers(labels, names, count):
    labels = _heads.as_list("labels", labels)
    if len(labels) != count:
        raise ValueError(f"labels: expected one for each of {count} texts, got {len(labels)}")
    for label in labels:
        if label not in names:
            raise ValueError(f"labels: expected {', '.join(map(repr, names))}, got {label!r}")
    return [names.index(label) for label in labels]


def _parts(texts):
    """Each text as a tuple of the one string or the two that it consists of."""
    made = []
    for number, text in enumerate(_heads.as_list("texts", texts)):
        parts = (text,) if isinstance(text, str) else text
        strings = isinstance(parts, (tuple, list)) and all(isinstance(p, str) for p in parts)
        if not strings or (parts is text and len(parts) != 2):
            raise ValueError(f"texts: {number}: expected a string or a pair of strings, "
                             f"got {_checks.describe(text)}")
        made.append(tuple(parts))
    return made


def _names(labels):
    """The names of the classes as a list, of Python's own values where they were NumPy's."""
    names = [name.item() if isinstance(name, np.generic) else name
             for name in _heads.as_list("labels", labels)]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"labels: expected at least two different names, got {names}")
    return names


class _Classifier:
    """What a classifier of texts does, whatever computes its logits.

    Subclasses set `tokenizer`, `labels`, `params` and `max_length`, and have `_logits(batch)`.
    """

    def prepare(self, texts, labels=None):
        """Examples for `fit`: texts (strings, or pairs of strings) with their label names.

        A text longer than the position table is cut behind its last token that fits, and a warning
        says so. Raises ValueError for a label that is not among `self.labels`.
        """
        texts = _parts(texts)
        encodings = [self.tokenizer.encode(*text) for text in texts]
        too_long = sum(len(e) > self.max_length for e in encodings)
        if too_long:
            warnings.warn(f"{too_long} of {len(encodings)} texts are longer than the "
                          f"{self.max_length} tokens of the position table; only their beginning "
                          "is read", stacklevel=2)
            encodings = [e if len(e) <= self.max_length
                         else self.tokenizer.encode(*text, max_length=self.max_length)
                         for e, text in zip(encodings, texts, strict=True)]
        numbers = ([0] * len(texts) if labels is None
                   else _class_numbers(labels, self.labels, len(texts)))
        return [Example(e, n) for e, n in zip(encodings, numbers, strict=True)]

    def logits(self, texts, batch_size=64):
        """Logits (texts, classes), without dropout. Like lengths are computed together.

        Raises FloatingPointError where a broken model gives NaN.
        """
        examples = self.prepare(texts)
        if not examples:
            raise ValueError("texts: expected at least one text, got none")
        return self._logits_of(examples, batch_size)

    def probabilities(self, texts):
        """Probabilities (texts, classes), each row summing to 1."""
        return softmax(self.logits(texts))

    def predict(self, texts):
        """The name of the most probable class of each text."""
        return [self.labels[i] for i in self.logits(texts).argmax(axis=-1)]

    def evaluate(self, examples):
        """Accuracy on prepared examples: what `fit` keeps the best parameters by."""
        predicted = self._logits_of(examples).argmax(axis=-1)
        return accuracy([e.label for e in examples], predicted)

    def _logits_of(self, examples, batch_size=64):
        _heads.check_examples(examples, Example)
        result = None
        for rows in _heads.by_length([len(e) for e in examples], batch_size):
            logits = self._logits(pad_batch([examples[i].encoding for i in rows]))
            _heads.check_logits(logits)
            if result is None:
                result = np.empty((len(examples), logits.shape[-1]), logits.dtype)
            result[rows] = logits
        return result


class TextClassifier(_Classifier):
    """An encoder with a linear head on its pooled hidden states.

    encoder, tokenizer: as in `solutions.encoder` and `solutions.embeddings`.
    labels: the names of the classes. pooling: "cls" or "mean". dropout: on the pooled vector, in
    training. The head starts at normal(0, 0.02) weights from `seed` and biases of 0.
    """

    SETTINGS = ("labels", "pooling", "dropout")  # what a file keeps, apart from the parameters

    def __init__(self, encoder, tokenizer, labels, pooling="cls", dropout=0.1, seed=0):
        if pooling not in ("cls", "mean"):
            raise ValueError(f"pooling: expected 'cls' or 'mean', got {pooling!r}")
        _heads.check_tokenizer(tokenizer, encoder)
        _checks.fraction("dropout", dropout)
        self.encoder, self.tokenizer, self.labels = encoder, tokenizer, _names(labels)
        self.pooling, self.dropout = pooling, float(dropout)
        self.max_length = encoder.config.max_length
        self.params = {**_heads.of_encoder(encoder.params),
                       **_heads.linear_head(encoder, len(self.labels), seed)}

    def _pool(self, hidden, batch):
        return (cls_pool(hidden) if self.pooling == "cls"
                else mean_pool(hidden, batch["attention_mask"]))

    def _logits(self, batch):
        hidden = self.encoder(**batch)
        return linear(self._pool(hidden, batch), self.params["head.weight"],
                      self.params["head.bias"])

    def loss_and_grads(self, examples, rng=None):
        """Mean loss of a batch of examples, {name: gradient}, and how many examples it counts.

        With an rng dropout is on.
        """
        _heads.check_examples(examples, Example)
        batch = pad_batch([e.encoding for e in examples])
        hidden, cache = self.encoder.forward(**batch, rng=rng, keep=True)
        pooled, scale = self._pool(hidden, batch), None
        if rng is not None and self.dropout:
            pooled, scale = dropout(pooled, self.dropout, rng)
        logits = linear(pooled, self.params["head.weight"], self.params["head.bias"])
        loss, grad = cross_entropy(logits, np.array([e.label for e in examples]))

        grad_pooled, grad_weight, grad_bias = linear_backward(grad, pooled,
                                                              self.params["head.weight"])
        if scale is not None:
            grad_pooled = grad_pooled * scale
        if self.pooling == "cls":
            grad_hidden = cls_pool_backward(grad_pooled, hidden.shape[1])
        else:
            grad_hidden = mean_pool_backward(grad_pooled, batch["attention_mask"])
        grads = _heads.of_encoder(self.encoder.backward(grad_hidden, cache))
        return loss, {**grads, "head.weight": grad_weight, "head.bias": grad_bias}, len(examples)

    def attention(self, text):
        """Tokens of one text, and the weights (layers, heads, queries, keys) found on the way."""
        encoding = self.prepare([text])[0].encoding
        weights = self.encoder.layers_and_attention(**pad_batch([encoding]))[1]
        return encoding.tokens, np.stack([w[0] for w in weights])

    def save(self, path):
        """Write encoder, head and settings to one .npz file that needs no pickle to read."""
        _heads.save_model(path, self)

    @classmethod
    def load(cls, path, tokenizer):
        """The classifier that `save` wrote. Raises ValueError if the file is not one."""
        return _heads.load_model(path, cls, tokenizer)


class BagOfWords(_Classifier):
    """The baseline that cannot see word order: a linear layer on `bag_of_words`."""

    def __init__(self, tokenizer, labels):
        if not isinstance(tokenizer, WordPieceTokenizer):
            raise ValueError(f"tokenizer: expected a WordPieceTokenizer, "
                             f"got {_checks.describe(tokenizer)}")
        self.tokenizer, self.labels, self.max_length = tokenizer, _names(labels), 10**9
        self.params = {"head.weight": np.zeros((len(tokenizer), len(self.labels))),
                       "head.bias": np.zeros(len(self.labels))}

    def _logits(self, batch):
        counts = bag_of_words(batch["input_ids"], batch["attention_mask"], len(self.tokenizer))
        return linear(counts, self.params["head.weight"], self.params["head.bias"])

    def loss_and_grads(self, examples, rng=None):
        """As TextClassifier.loss_and_grads; nothing is dropped."""
        _heads.check_examples(examples, Example)
        batch = pad_batch([e.encoding for e in examples])
        counts = bag_of_words(batch["input_ids"], batch["attention_mask"], len(self.tokenizer))
        logits = linear(counts, self.params["head.weight"], self.params["head.bias"])
        loss, grad = cross_entropy(logits, np.array([e.label for e in examples]))
        _, grad_weight, grad_bias = linear_backward(grad, counts, self.params["head.weight"])
        return loss, {"head.weight": grad_weight, "head.bias": grad_bias}, len(examples)
