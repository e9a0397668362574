"""Masked-word pretraining: hide some tokens of a text, and learn to say which they were.

Lesson 05. No labels are needed: the text itself is the answer.

    input_ids (batch, length)  --mask_tokens-->  ids with gaps, labels (-100 where nothing is asked)
    hidden states at the gaps (gaps, d)  --transform-->  (gaps, d)  --token table-->  (gaps, vocab)

The head is BERT's: a linear layer, GELU and LayerNorm, then the dot product with the embedding of
every token, plus a bias for each. The same table that turns ids into vectors turns vectors into
scores for ids ("tied" weights).

Devlin et al., 2019, "BERT", section 3.1, https://arxiv.org/abs/1810.04805; Press and Wolf, 2017,
"Using the Output Embedding to Improve Language Models", https://arxiv.org/abs/1608.05859
"""


import numpy as np

from solutions import _checks, _heads
from solutions._checks import checked
from solutions.attention import softmax
from solutions.embeddings import Encoding, WordPieceTokenizer, pad_batch
from solutions.encoder import (
    gelu,
    gelu_backward,
    layer_norm,
    layer_norm_backward,
    linear,
    linear_backward,
)
from solutions.training import cross_entropy

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# --- What is hidden -------------------------------------------------------------------------------


def _mask_tokens_input(input_ids, special_tokens_mask, vocab_size, mask_id, rng, rate=0.15):
    _checks.whole("mask_tokens: vocab_size", vocab_size, 1)
    _checks.ids("mask_tokens: input_ids", input_ids, vocab_size)
    _checks.whole("mask_tokens: mask_id", mask_id, 0, vocab_size - 1)
    _checks.mask("mask_tokens: special_tokens_mask", special_tokens_mask, input_ids.shape)
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"mask_tokens: rng: expected a np.random.Generator, "
                         f"got {_checks.describe(rng)}")
    if rate != 1:
        _checks.fraction("mask_tokens: rate", rate)


@checked(_mask_tokens_input)
def mask_tokens(input_ids, special_tokens_mask, vocab_size, mask_id, rng, rate=0.15):
    """Ids with some tokens hidden, and labels: the hidden token's id, -100 where nothing is asked.

    input_ids: integers of any shape. special_tokens_mask: Booleans of that shape, True where a
    token is never chosen ([CLS], [SEP], padding). Each other token is chosen with probability
    `rate`; of the chosen, 80 % become [MASK], 10 % a random token, and 10 % stay.

    Draws in this order: rng.random (chosen or not), rng.random (which of the three), rng.integers
    (the random tokens), each of the shape of input_ids.
    """
    chosen = (rng.random(input_ids.shape) < rate) & ~special_tokens_mask
    turn = rng.random(input_ids.shape)
    random_ids = rng.integers(vocab_size, size=input_ids.shape)
    hidden = np.where(turn < 0.8, mask_id, np.where(turn < 0.9, random_ids, input_ids))
    return np.where(chosen, hidden, input_ids), np.where(chosen, input_ids, -100)


# --- The model ------------------------------------------------------------------------------------


class MaskedWordModel:
    """An encoder with a head that guesses hidden tokens; trained by `solutions.training.fit`.

    encoder, tokenizer: as in `solutions.encoder` and `solutions.embeddings`. tied: score tokens by
    the encoder's own embedding table; False gives the head a table of its own. rate: share of the
    tokens that are hidden. `params` holds the encoder's arrays under "encoder.", so that training
    changes the encoder itself.
    """

    SETTINGS = ("tied", "rate")  # what a file keeps, apart from the parameters

    def __init__(self, encoder, tokenizer, tied=True, rate=0.15, seed=0):
        if not isinstance(tokenizer, WordPieceTokenizer):
            raise ValueError(f"tokenizer: expected a WordPieceTokenizer, "
                             f"got {_checks.describe(tokenizer)}")
        if tokenizer.mask_id is None:
            raise ValueError("tokenizer: expected one with the token [MASK], got one without")
        _heads.check_tokenizer(tokenizer, encoder)
        _checks.flag("tied", tied)
        if tied and "embeddings.token" not in encoder.params:
            raise ValueError("tied: expected an encoder that trains its embedding table, got one "
                             "that keeps it frozen; with tied=False the head has its own")
        if not 0 < rate <= 1:
            raise ValueError(f"rate: expected a share above 0, at most 1, got {rate!r}")
        self.encoder, self.tokenizer = encoder, tokenizer
        self.tied, self.rate = bool(tied), float(rate)
        self.params = _heads.of_encoder(encoder.params)
        table = encoder.params["embeddings.token"]
        vocab_size, d = table.shape
        rng = np.random.default_rng(seed)
        head = {
            "head.transform.weight": rng.normal(0, 0.02, (d, d)),
            "head.transform.bias": np.zeros(d),
            "head.norm.gamma": np.ones(d),
            "head.norm.beta": np.zeros(d),
            "head.bias": np.zeros(vocab_size),
        }
        if not tied:
            head["head.weight"] = rng.normal(0, 0.02, (vocab_size, d))
        self.params.update({name: array.astype(table.dtype) for name, array in head.items()})

    # Training

    def prepare(self, texts):
        """Encodings for `fit`; a text longer than the position table is cut."""
        texts, longest = _heads.as_list("texts", texts), self.encoder.config.max_length
        return [self.tokenizer.encode(text, max_length=longest) for text in texts]

    def loss_and_grads(self, encodings, rng=None):
        """Mean loss over the hidden tokens of a batch, {name: gradient}, how many were hidden.

        With an rng it hides other tokens each time, and dropout is on. Without, the tokens hidden
        in a text are always the same, whatever else is in the batch, and nothing is dropped.
        """
        _heads.check_examples(encodings, Encoding)
        batch, places, labels = self._hide(encodings, rng)
        hidden, cache = self.encoder.forward(**batch, rng=rng, keep=True)
        logits, head_cache = self._head(hidden[places])
        loss, grad_logits = cross_entropy(logits, labels)
        grad_rows, head_grads = self._head_backward(grad_logits, head_cache)
        grad_hidden = np.zeros_like(hidden)
        grad_hidden[places] = grad_rows
        grads = _heads.of_encoder(self.encoder.backward(grad_hidden, cache))
        table_grad = head_grads.pop("table")
        if self.tied:  # the table was used twice: at the bottom and at the top
            grads["encoder.embeddings.token"] += table_grad
        else:
            head_grads["head.weight"] = table_grad
        return loss, {**grads, **head_grads}, len(labels)

    def evaluate(self, encodings):
        """Minus the mean loss over hidden tokens: higher is better. The same tokens each time."""
        return -self.score(encodings)["loss"]

    def score(self, encodings, seed=0):
        """{"loss", "accuracy", "count"} over the tokens that `seed` hides."""
        logs, labels, guesses = self.guesses(encodings, seed)
        if len(labels) == 0:
            return {"loss": 0.0, "accuracy": 0.0, "count": 0}
        return {
            "loss": float(-logs.mean()),
            "accuracy": float((guesses == labels).mean()),
            "count": len(labels),
        }

    def guesses(self, encodings, seed=0, batch_size=64):
        """For every token that `seed` hides: the log of its probability, its id, the best guess."""
        rng = np.random.default_rng(seed)
        parts = [(np.zeros(0), np.zeros(0, int), np.zeros(0, int))]
        for first in range(0, len(encodings), batch_size):
            batch, places, labels = self._hide(encodings[first : first + batch_size], rng)
            logits, _ = self._head(self.encoder(**batch)[places])
            _heads.check_logits(logits)
            highest = logits.max(axis=-1, initial=-np.inf)
            total = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=-1))
            logs = logits[np.arange(len(labels)), labels] - total
            parts.append((logs, labels, logits.argmax(axis=-1)))
        logs, labels, guesses = (np.concatenate(column) for column in zip(*parts, strict=True))
        return logs, labels, guesses

    # Use

    def fill(self, text, top_k=5):
        """For each [MASK] in a text, the tokens that fit best: [(token, probability)], best first.

        Special tokens are no answer. Raises ValueError for a text without [MASK], or with one
        beyond the position table.
        """
        encoding = self.prepare([text])[0]
        gaps = [i for i, token in enumerate(encoding.tokens) if token == "[MASK]"]
        if not gaps or len(gaps) < text.count("[MASK]"):
            raise ValueError(
                f"fill: text: expected [MASK] among the first {self.encoder.config.max_length} "
                f"tokens, got {text[:60]!r}"
            )
        hidden = self.encoder(**pad_batch([encoding]))[0, gaps]
        logits = self._head(hidden)[0][:, : len(self.tokenizer)]
        _heads.check_logits(logits)
        logits[:, [self.tokenizer.vocab[t] for t in SPECIAL if t in self.tokenizer.vocab]] = -np.inf
        probabilities = softmax(logits)
        best = np.argsort(-probabilities, axis=-1, kind="stable")[:, :top_k]
        return [
            [(self.tokenizer.tokens[i], float(row[i])) for i in ids if row[i] > 0]
            for row, ids in zip(probabilities, best, strict=True)
        ]

    # The parts of loss_and_grads

    def _hide(self, encodings, rng):
        """A padded batch with gaps, where the gaps are, and what stood there.

        Without an rng, each text has its own, made from its ids.
        """
        batch = pad_batch(encodings)
        special = ~batch["attention_mask"]
        for row, encoding in enumerate(encodings):
            special[row, : len(encoding)] = encoding.special_tokens_mask

        def hide(ids, special, rng):
            size, mask_id = len(self.tokenizer), self.tokenizer.mask_id
            return mask_tokens(ids, special, size, mask_id, rng, self.rate)

        if rng is not None:
            batch["input_ids"], labels = hide(batch["input_ids"], special, rng)
        else:
            labels = np.full_like(batch["input_ids"], -100)
            for row, encoding in enumerate(encodings):
                text = row, slice(len(encoding))
                own = np.random.default_rng(encoding.input_ids)
                batch["input_ids"][text], labels[text] = hide(
                    batch["input_ids"][text], special[text], own
                )
        places = np.nonzero(labels != -100)
        return batch, places, labels[places]

    @property
    def _table(self):
        return self.params["encoder.embeddings.token" if self.tied else "head.weight"]

    def _head(self, rows):
        """Logits (gaps, vocab) of hidden states (gaps, d), and what the way back needs."""
        params = self.params
        inner = linear(rows, params["head.transform.weight"], params["head.transform.bias"])
        bent = gelu(inner)
        normed = layer_norm(bent, params["head.norm.gamma"], params["head.norm.beta"])
        return normed @ self._table.T + params["head.bias"], (rows, inner, bent, normed)

    def _head_backward(self, grad_logits, cache):
        """Gradient of the hidden states, and of the head; the table's under "table"."""
        rows, inner, bent, normed = cache
        params, grads = self.params, {}
        grads["table"] = grad_logits.T @ normed
        grads["head.bias"] = grad_logits.sum(axis=0)
        grad, grads["head.norm.gamma"], grads["head.norm.beta"] = layer_norm_backward(
            grad_logits @ self._table, bent, params["head.norm.gamma"]
        )
        grad, grads["head.transform.weight"], grads["head.transform.bias"] = linear_backward(
            gelu_backward(grad, inner), rows, params["head.transform.weight"]
        )
        return grad, grads

    # On disk

    def save(self, path):
        """Write everything to one .npz file of half floats that needs no pickle to read."""
        _heads.save_model(path, self)

    @classmethod
    def load(cls, path, tokenizer):
        """The model that `save` wrote. Raises ValueError if the file is not one."""
        return _heads.load_model(path, cls, tokenizer)
