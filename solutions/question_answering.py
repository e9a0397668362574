"""Extractive question answering: the answer is a piece of the passage.

Lesson 08. From a question and a passage to an answer:

    [CLS] question [SEP] passage [SEP]     one input, read by the encoder
    start and end logits (length,) each    two numbers a token, from one linear layer (d, 2)
    allowed (length,)                      only tokens of the passage may answer
    [(start, end, score), ...]             the best pairs, end >= start, searched together
    passage[a:b]                           the characters those tokens were made from

A passage that is too long is read in windows that overlap. The score of "no answer" is that of the
pair ([CLS], [CLS]).

Rajpurkar et al., 2016, "SQuAD", https://arxiv.org/abs/1606.05250
Rajpurkar et al., 2018, "Know What You Don't Know" (SQuAD 2.0), https://arxiv.org/abs/1806.03822
Devlin et al., 2019, "BERT", sections 4.2 and 4.3, https://arxiv.org/abs/1810.04805
Chen et al., 2017, "DrQA" (words of the passage that are in the question), arXiv 1704.00051
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from solutions import _checks, _heads
from solutions._checks import checked, describe
from solutions.attention import softmax
from solutions.embeddings import Encoding, normalize, pad_batch
from solutions.encoder import linear, linear_backward
from solutions.training import cross_entropy

# --- Which tokens may answer ----------------------------------------------------------------------


def _answer_mask_input(encoding):
    if not isinstance(encoding, Encoding):
        raise ValueError(f"answer_mask: expected an Encoding, got {describe(encoding)}")


@checked(_answer_mask_input)
def answer_mask(encoding):
    """Boolean (length,): True for the tokens of the passage, which alone may be an answer.

    encoding: of [CLS] question [SEP] passage [SEP]. Not the question, not [CLS], not the final
    [SEP] (its segment is the passage's, so the segment alone does not tell), not padding.
    """
    passage = np.array(encoding.token_type_ids, dtype=int) == 1
    special = np.array(encoding.special_tokens_mask, dtype=bool)
    real = np.array(encoding.attention_mask, dtype=bool)
    return passage & ~special & real


def _masked_softmax_input(logits, allowed):
    _checks.floats("masked_softmax: logits", logits)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(
            f"masked_softmax: logits: expected at least one token, got {describe(logits)}"
        )
    _checks.mask("masked_softmax: allowed", allowed, logits.shape)


@checked(_masked_softmax_input)
def masked_softmax(logits, allowed):
    """Probabilities over the allowed tokens; the others get exactly 0.

    logits: (..., length). allowed: Boolean, broadcasts to it. A row without any allowed token gives
    zeros. The mask comes first, so that the allowed ones share the whole probability.
    """
    return softmax(np.where(allowed, logits, -np.inf))


# --- The best spans -------------------------------------------------------------------------------


def _best_spans_input(start_logits, end_logits, allowed, max_answer_length=30, top_k=1):
    _checks.floats("best_spans: start_logits", start_logits, ndim=1)
    _checks.floats("best_spans: end_logits", end_logits, shape=start_logits.shape)
    if not isinstance(allowed, np.ndarray) or allowed.dtype != np.bool_:
        raise ValueError(
            "best_spans: allowed: expected a Boolean array (True = may answer), "
            f"got {describe(allowed)}"
        )
    if allowed.shape != start_logits.shape:
        raise ValueError(
            f"best_spans: allowed: expected shape {start_logits.shape}, got {describe(allowed)}"
        )
    for name, logits in (("start_logits", start_logits), ("end_logits", end_logits)):
        if np.isnan(logits[allowed]).any() or np.isposinf(logits[allowed]).any():
            raise ValueError(f"best_spans: {name}: expected numbers, got NaN or infinity")
    _checks.whole("best_spans: max_answer_length", max_answer_length, 1)
    _checks.whole("best_spans: top_k", top_k, 1)


@checked(_best_spans_input)
def best_spans(start_logits, end_logits, allowed, max_answer_length=30, top_k=1):
    """The best answers [(start, end, score), ...] in tokens, `end` included, best first.

    start_logits, end_logits: (length,). allowed: Boolean (length,), where an answer may start and
    end. An answer has 1 to `max_answer_length` tokens; its score is the sum of its two logits.
    Returns at most `top_k`, and [] where nothing is allowed. Of equal scores the earlier start
    comes first, then the earlier end.

    All pairs are compared, because the best start and the best end need not fit together.
    """
    scores = start_logits[:, None] + end_logits  # (start, end)
    place = np.arange(len(start_logits))
    length = place - place[:, None] + 1  # tokens from start to end
    valid = allowed[:, None] & allowed & (length >= 1) & (length <= max_answer_length)
    starts, ends = np.nonzero(valid)
    best = np.argsort(-scores[starts, ends], kind="stable")[:top_k]
    return [(int(starts[i]), int(ends[i]), float(scores[starts[i], ends[i]])) for i in best]


# --- Long passages --------------------------------------------------------------------------------


def _windows_input(num_context, room, overlap):
    _checks.whole("windows: num_context", num_context, 0)
    _checks.whole("windows: room", room, 1)
    _checks.whole("windows: overlap", overlap, 0)


@checked(_windows_input)
def windows(num_context, room, overlap):
    """Where to cut a passage: [(first, stop), ...], `stop` not included.

    num_context: the passage's tokens. room: how many fit in one window. overlap: how many a window
    shares with the one before it. The last window ends at the last token, and there is none after
    it. An empty passage needs no window. No room, or an overlap that leaves none, is a ValueError:
    the windows would never move on.
    """
    if not 0 <= overlap < room:
        raise ValueError(f"windows: expected 0 <= overlap < room, got {overlap} and {room}")
    spans, first = [], 0
    while first < num_context:
        stop = min(first + room, num_context)
        spans.append((first, stop))
        if stop == num_context:
            break
        first += room - overlap
    return spans


# --- Is there an answer? --------------------------------------------------------------------------


def _has_answer_input(null_scores, best_score, threshold=0.0):
    scores = np.asarray(null_scores, dtype=float)
    if scores.ndim != 1 or len(scores) == 0:
        raise ValueError(
            "has_answer: null_scores: expected the no-answer score of each window, "
            f"got {describe(null_scores)}"
        )
    if np.isnan(scores).any() or np.isnan(best_score) or np.isnan(threshold):
        raise ValueError("has_answer: expected numbers, got NaN")


@checked(_has_answer_input)
def has_answer(null_scores, best_score, threshold=0.0):
    """False where "no answer" beats the best answer by more than the threshold.

    null_scores: the score of "no answer" in each window. The least of them counts: one window that
    has the answer is enough, and most windows of a long passage rightly say that they have none.
    """
    return bool(min(null_scores) - best_score <= threshold)


def _best_threshold_input(margins, if_answered, if_declined):
    margins = np.asarray(margins, dtype=float)
    if margins.ndim != 1 or len(margins) == 0:
        raise ValueError("best_threshold: margins: expected one number for each question, got none")
    if np.isnan(margins).any():
        raise ValueError("best_threshold: margins: expected numbers, got NaN")
    for name, values in (("if_answered", if_answered), ("if_declined", if_declined)):
        if np.shape(values) != margins.shape:
            raise ValueError(
                f"best_threshold: {name}: expected {len(margins)} numbers, "
                f"got shape {np.shape(values)}"
            )


@checked(_best_threshold_input)
def best_threshold(margins, if_answered, if_declined):
    """The threshold with the best mean score, and that score: (threshold, score).

    margins: for each question no-answer score minus best answer's score. if_answered: what the best
    answer would earn. if_declined: what "no answer" would earn. Question i is declined if its
    margin is above the threshold. To be tuned on questions that are used for nothing else.

    Only the order of the margins counts, so it is enough to try one threshold between each two
    neighbors, one below them all and one above; of equally good ones the least is taken. A margin
    of inf (nothing to answer with) is declined at any threshold.
    """
    margins = np.asarray(margins, dtype=float)
    known = np.unique(margins[np.isfinite(margins)])
    between = (known[:-1] + known[1:]) / 2
    tries = [known[0] - 1, *between, known[-1] + 1] if len(known) else [0.0]
    scores = [np.where(margins > at, if_declined, if_answered).mean() for at in tries]
    best = int(np.argmax(scores))
    return float(tries[best]), float(scores[best])


# --- How good is an answer? -----------------------------------------------------------------------


def _normalize_answer_input(text):
    if not isinstance(text, str):
        raise ValueError(f"normalize_answer: expected a str, got {describe(text)}")


@checked(_normalize_answer_input)
def normalize_answer(text):
    """What counts of an answer: lower case, no ASCII punctuation, no articles, single spaces.

    In this order, as in SQuAD's own script: "The U.S.A." gives "usa", "a's" gives "as".
    """
    text = text.lower()
    text = "".join(character for character in text if character not in string.punctuation)
    text = re.sub(r"\b(a|an|the)\b", " ", text)
    return " ".join(text.split())


def _golds_input(name):
    def check(prediction, golds):
        if not isinstance(prediction, str):
            raise ValueError(f"{name}: prediction: expected a str, got {describe(prediction)}")
        if isinstance(golds, str) or not isinstance(golds, Sequence):
            raise ValueError(f"{name}: golds: expected a list of answers, got {describe(golds)}")
        for gold in golds:
            if not isinstance(gold, str):
                raise ValueError(f"{name}: golds: expected strings, got {describe(gold)}")

    return check


def _gold_words_input(golds):
    _golds_input("gold_words")("", golds)


@checked(_gold_words_input)
def gold_words(golds):
    """The words of each right answer, normalized: a list of lists; [[]] if there is none.

    An answer of which normalization leaves nothing is left out.
    """
    known = [normalize_answer(gold).split() for gold in golds]
    return [words for words in known if words] or [[]]


@checked(_golds_input("exact_match"))
def exact_match(prediction, golds):
    """1.0 if the prediction, normalized, equals one of the right answers; else 0.0.

    golds: the right answers; [] if there is none, and then the right prediction is "".
    """
    return float(normalize_answer(prediction).split() in gold_words(golds))


@checked(_golds_input("f1"))
def f1(prediction, golds):
    """How many words a prediction shares with the right answer, 0 to 1; the best over `golds`.

    F1 = 2 shared / (predicted + right), in words, order aside; a word that occurs twice in both is
    shared twice. Where one of the two is empty, 1.0 if the other is too, else 0.0.
    golds: the right answers; [] if there is none.
    """
    words, best = normalize_answer(prediction).split(), 0.0
    for gold in gold_words(golds):
        shared = sum((Counter(words) & Counter(gold)).values())
        if words and gold:
            best = max(best, 2 * shared / (len(words) + len(gold)))
        else:
            best = max(best, float(words == gold))
    return best


def mean_scores(predictions, golds):
    """Means over questions: {"exact_match", "f1", "questions"}, and the same split by kind.

    predictions: strings. golds: for each question a list of right answers, [] for none.
    "answerable" and "unanswerable" hold the three numbers of each kind.
    """
    if len(predictions) != len(golds):
        raise ValueError(
            f"mean_scores: expected one prediction for each of {len(golds)} questions, "
            f"got {len(predictions)}"
        )
    rows = [
        (exact_match(text, right), f1(text, right), any(map(normalize_answer, right)))
        for text, right in zip(predictions, golds)
    ]

    def means(chosen):
        exact, overlap = (
            float(np.mean([row[i] for row in chosen])) if chosen else 0.0 for i in (0, 1)
        )
        return {"exact_match": exact, "f1": overlap, "questions": len(chosen)}

    return {
        **means(rows),
        "answerable": means([row for row in rows if row[2]]),
        "unanswerable": means([row for row in rows if not row[2]]),
    }


# --- Training labels ------------------------------------------------------------------------------


def _span_labels_input(offsets, allowed, answer):
    if not isinstance(allowed, np.ndarray) or allowed.dtype != np.bool_:
        raise ValueError(
            f"span_labels: allowed: expected a Boolean array, got {describe(allowed)}"
        )
    if len(offsets) != len(allowed):
        raise ValueError(
            f"span_labels: expected one (start, stop) for each of {len(allowed)} tokens, "
            f"got {len(offsets)}"
        )
    if answer is not None:
        _checks.whole("span_labels: answer: start", answer[0], 0)
        _checks.whole("span_labels: answer: stop", answer[1], answer[0] + 1)


@checked(_span_labels_input)
def span_labels(offsets, allowed, answer):
    """The tokens at which an answer starts and ends, (start, end), `end` included.

    offsets: (start, stop) of each token in characters. allowed: which of them are the passage's,
    as `answer_mask` gives it. answer: (start, stop) in characters, or None if there is none.

    An answer that begins or ends inside a token takes in the whole token. Without an answer, and
    where it is not wholly within this window, the label is [CLS]: (0, 0).
    """
    inside = np.flatnonzero(allowed)
    if answer is None or len(inside) == 0:
        return 0, 0
    start, stop = answer
    if start < offsets[inside[0]][0] or stop > offsets[inside[-1]][1]:
        return 0, 0
    touched = [int(i) for i in inside if offsets[i][0] < stop and offsets[i][1] > start]
    return (touched[0], touched[-1]) if touched else (0, 0)


# --- Words of the question in the passage ---------------------------------------------------------


def _words_of(text, encoding):
    """The word that each token of a text belongs to, normalized."""
    spans = {}
    for word, (start, stop) in zip(encoding.word_ids, encoding.offsets):
        first, last = spans.get(word, (start, stop))
        spans[word] = min(first, start), max(last, stop)
    words = {word: normalize(text[start:stop])[0].strip() for word, (start, stop) in spans.items()}
    return [words[word] for word in encoding.word_ids]


def _shared_words_input(question, passage, question_encoding, passage_encoding):
    for name, text in (("question", question), ("passage", passage)):
        if not isinstance(text, str):
            raise ValueError(f"shared_words: {name}: expected a str, got {describe(text)}")
    for name, encoding in (("question", question_encoding), ("passage", passage_encoding)):
        if not isinstance(encoding, Encoding) or any(encoding.special_tokens_mask):
            raise ValueError(
                f"shared_words: {name}: expected an Encoding without special tokens, "
                f"got {describe(encoding)}"
            )


@checked(_shared_words_input)
def shared_words(question, passage, question_encoding, passage_encoding):
    """Boolean (tokens of the passage,): whose word also occurs in the question.

    The two encodings are of the two texts, without special tokens. Words are compared as text, not
    as ids, so that two names which the vocabulary does not know can be told apart. Punctuation
    does not count.
    """
    asked = {word for word in _words_of(question, question_encoding) if word.isalnum()}
    return np.array([word in asked for word in _words_of(passage, passage_encoding)], dtype=bool)


# --- The question answerer ------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """A piece of the passage: text == passage[start:end], in characters; "" for no answer.

    score: start logit + end logit of the best piece, -inf if there was none to choose.
    no_answer_score: the same sum at [CLS], the least over all windows.
    """

    text: str
    start: int
    end: int
    score: float
    no_answer_score: float


@dataclass(frozen=True)
class Window:
    """One input of the encoder: a question and a piece of its passage, with its labels.

    segments: 0 question, 1 passage and, if the model marks them, 2 for words of the passage that
    are in the question. start, end: the labels in tokens; 0, 0 ([CLS]) if the answer is not here.
    """

    encoding: Encoding
    allowed: np.ndarray
    segments: tuple
    start: int = 0
    end: int = 0

    def __len__(self):
        return len(self.encoding)


def span_loss(start_logits, end_logits, starts, ends, allowed):
    """Mean of the two cross-entropies, and the gradients of both logits: (loss, grad, grad).

    start_logits, end_logits, allowed: (batch, length). starts, ends: (batch,) labels, 0 for [CLS].
    Only [CLS] and the allowed tokens compete.
    """
    candidates = np.array(allowed)
    candidates[:, 0] = True
    low = np.finfo(start_logits.dtype).min / 4  # filled in, not added: exp of it is exactly 0
    start_loss, grad_start = cross_entropy(np.where(candidates, start_logits, low), starts)
    end_loss, grad_end = cross_entropy(np.where(candidates, end_logits, low), ends)
    return (start_loss + end_loss) / 2, grad_start / 2, grad_end / 2


def _items(items, *names):
    """The items as a list. Raises ValueError for one that lacks some of the names."""
    items = _heads.as_list("items", items)
    for number, item in enumerate(items):
        if not all(hasattr(item, name) for name in names):
            raise ValueError(
                f"items: {number}: expected an object with {', '.join(names)}, got {describe(item)}"
            )
    return items


class QuestionAnswerer:
    """An encoder with a start and an end head.

    encoder, tokenizer: as in `solutions.encoder` and `solutions.embeddings`.
    mark_shared: whether words of the passage that are in the question get segment 2; the encoder
    then needs num_segments of 3. word_dropout: in training, the share of words (a word wherever it
    occurs in an input) that become [UNK], so that the model learns to do without knowing a name.
    threshold: "no answer" where its score leads by more. overlap: of windows, in tokens; None for
    half of the room. The heads start at normal(0, 0.02) weights from `seed` and biases of 0.
    """

    # What a file keeps, apart from the parameters and the tokens.
    SETTINGS = ("mark_shared", "word_dropout", "max_answer_length", "threshold", "overlap")

    def __init__(
        self,
        encoder,
        tokenizer,
        mark_shared=False,
        word_dropout=0.0,
        max_answer_length=30,
        threshold=0.0,
        overlap=None,
        seed=0,
    ):
        config = encoder.config
        _heads.check_tokenizer(tokenizer, encoder)
        if config.num_segments < 2 + bool(mark_shared):
            raise ValueError(
                f"encoder: expected num_segments of at least {2 + bool(mark_shared)}, "
                f"got {config.num_segments}"
            )
        _checks.fraction("word_dropout", word_dropout)
        _checks.whole("max_answer_length", max_answer_length, 1)
        if overlap is not None:
            _checks.whole("overlap", overlap, 0)
        self.encoder, self.tokenizer = encoder, tokenizer
        self.mark_shared, self.word_dropout = bool(mark_shared), float(word_dropout)
        self.max_answer_length, self.threshold = int(max_answer_length), float(threshold)
        self.overlap = None if overlap is None else int(overlap)
        self.params = {
            **_heads.of_encoder(encoder.params),
            **_heads.linear_head(encoder, 2, seed),  # (d, 2): start and end
        }

    # From texts to inputs

    def inputs(self, question, passage, answer=None):
        """The encoder's inputs for one question, a list of Windows, at least one.

        answer: (start, stop) in characters of the passage, for the labels; None for no answer.
        """
        for name, text in (("question", question), ("passage", passage)):
            if not isinstance(text, str):
                raise ValueError(f"{name}: expected a str, got {describe(text)}")
        asked = self.tokenizer.encode(question, add_special_tokens=False)
        read = self.tokenizer.encode(passage, add_special_tokens=False)
        if len(asked) == 0:
            raise ValueError(f"question: expected at least one word, got {question!r:.40}")
        room = self.encoder.config.max_length - 3 - len(asked)
        if room < 1:
            raise ValueError(
                f"question: expected at most {self.encoder.config.max_length - 4} tokens, so that "
                f"the passage has room beside it, got {len(asked)}"
            )
        overlap = room // 2 if self.overlap is None else self.overlap
        shared = np.zeros(len(read), dtype=bool)
        if self.mark_shared:
            shared = shared_words(question, passage, asked, read)
        made = []
        for first, stop in windows(len(read), room, overlap) or [(0, 0)]:
            encoding = self.tokenizer.combine(asked, read[first:stop])
            allowed = answer_mask(encoding)
            segments = np.array(encoding.token_type_ids)
            segments[allowed] += shared[first:stop]
            start, end = span_labels(encoding.offsets, allowed, answer)
            made.append(Window(encoding, allowed, tuple(segments.tolist()), start, end))
        return made

    def prepare(self, items):
        """Windows with their labels for `fit`.

        items: objects with `question`, `passage` and `answers`, a list of (text, start); the first
        answer is learned, and [] is "no answer". Raises ValueError if an answer is not where it
        is said to be.
        """
        made = []
        for number, item in enumerate(_items(items, "question", "passage", "answers")):
            answer = None
            if len(item.answers) > 0:
                text, start = item.answers[0]
                if not text or item.passage[start : start + len(text)] != text:
                    raise ValueError(
                        f"item {number}: expected {text!r} at character {start} of the passage, "
                        f"got {item.passage[start : start + len(text)]!r}"
                    )
                answer = start, start + len(text)
            made += self.inputs(item.question, item.passage, answer)
        return made

    # Logits, loss and gradients

    def _batch(self, made):
        batch = pad_batch([window.encoding for window in made])
        allowed = np.zeros(batch["input_ids"].shape, dtype=bool)
        for row, window in enumerate(made):
            batch["token_type_ids"][row, : len(window)] = window.segments
            allowed[row, : len(window)] = window.allowed
        return batch, allowed

    def logits(self, made, batch_size=32):
        """[(start logits, end logits), ...] of windows, each (length of the window,).

        Raises FloatingPointError where a broken model gives NaN.
        """
        result = [None] * len(made)
        for rows in _heads.by_length([len(window) for window in made], batch_size):
            batch, _ = self._batch([made[i] for i in rows])
            both = linear(
                self.encoder(**batch), self.params["head.weight"], self.params["head.bias"]
            )
            _heads.check_logits(both)
            for row, i in enumerate(rows):
                result[i] = both[row, : len(made[i]), 0], both[row, : len(made[i]), 1]
        return result

    def loss_and_grads(self, examples, rng=None):
        """Mean loss of a batch of windows, {name: gradient}, and how many windows it counts.

        With an rng dropout is on, that of whole words too.
        """
        _heads.check_examples(examples, Window)
        batch, allowed = self._batch(examples)
        if rng is not None and self.word_dropout:
            batch["input_ids"] = self._drop_words(batch["input_ids"], rng)
        hidden, cache = self.encoder.forward(**batch, rng=rng, keep=True)
        both = linear(hidden, self.params["head.weight"], self.params["head.bias"])
        starts = np.array([window.start for window in examples])
        ends = np.array([window.end for window in examples])
        loss, grad_start, grad_end = span_loss(both[..., 0], both[..., 1], starts, ends, allowed)

        grad = np.stack([grad_start, grad_end], axis=-1).astype(hidden.dtype)
        grad_hidden, grad_weight, grad_bias = linear_backward(
            grad, hidden, self.params["head.weight"]
        )
        grads = _heads.of_encoder(self.encoder.backward(grad_hidden, cache))
        return loss, {**grads, "head.weight": grad_weight, "head.bias": grad_bias}, len(examples)

    def _drop_words(self, input_ids, rng):
        """Input ids with some words, each wherever it occurs in a row, turned into [UNK]."""
        tokenizer = self.tokenizer
        drawn = rng.random((len(input_ids), len(tokenizer))) < self.word_dropout
        special = (tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
        drawn[:, [token for token in special if token is not None]] = False
        dropped = np.take_along_axis(drawn, input_ids, axis=1)
        return np.where(dropped, tokenizer.unk_id, input_ids)

    def evaluate(self, examples):
        """Share of windows whose best span, or "no answer", is the label: for `fit`."""
        _heads.check_examples(examples, Window)
        right = 0
        for window, (start_logits, end_logits) in zip(examples, self.logits(examples)):
            best = best_spans(start_logits, end_logits, window.allowed, self.max_answer_length)
            null = float(start_logits[0] + end_logits[0])
            found = bool(best) and has_answer([null], best[0][2], self.threshold)
            right += (best[0][:2] if found else (0, 0)) == (window.start, window.end)
        return right / len(examples)

    # Answers

    def answers(self, question, passage, top_k=5):
        """The best answers, best first, whatever "no answer" scores.

        At least one: of a passage without a token, the empty answer.
        """
        made = self.inputs(question, passage)
        return self._answers(passage, made, self.logits(made), top_k)

    def _answers(self, passage, made, logits, top_k):
        found, nulls = {}, []
        for window, (start_logits, end_logits) in zip(made, logits):
            nulls.append(float(start_logits[0] + end_logits[0]))
            for first, last, score in best_spans(
                start_logits, end_logits, window.allowed, self.max_answer_length, top_k
            ):
                place = window.encoding.offsets[first][0], window.encoding.offsets[last][1]
                found[place] = max(score, found.get(place, -np.inf))
        best = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:top_k]
        return [Answer(passage[a:b], a, b, score, min(nulls)) for (a, b), score in best] or [
            Answer("", 0, 0, -np.inf, min(nulls))
        ]

    def _decide(self, best):
        if best.text and has_answer([best.no_answer_score], best.score, self.threshold):
            return best
        return replace(best, text="", start=0, end=0)

    def answer(self, question, passage):
        """The best Answer; its text is "" where "no answer" leads by more than the threshold.

        Raises ValueError for a question without a word, or one that leaves the passage no room.
        """
        return self._decide(self.answers(question, passage, 1)[0])

    def answer_all(self, items, decide=True):
        """An Answer for each of many items (with `question` and `passage`), computed in batches.

        With decide=False the best answer is given even where "no answer" leads.
        """
        items = _items(items, "question", "passage")
        made = [self.inputs(item.question, item.passage) for item in items]
        logits = iter(self.logits([window for group in made for window in group]))
        best = [
            self._answers(item.passage, group, [next(logits) for _ in group], 1)[0]
            for item, group in zip(items, made)
        ]
        return [self._decide(one) for one in best] if decide else best

    def attention(self, question, passage):
        """Tokens of the first window, and the weights (layers, heads, queries, keys) in it."""
        window = self.inputs(question, passage)[0]
        batch, _ = self._batch([window])
        weights = self.encoder.layers_and_attention(**batch)[1]
        return window.encoding.tokens, np.stack([layer[0] for layer in weights])

    # On disk

    def save(self, path):
        """Write everything but the tokenizer's rules to one .npz file that needs no pickle."""
        _heads.save_model(path, self, tokens=self.tokenizer.tokens)

    @classmethod
    def load(cls, path):
        """The question answerer that `save` wrote. Raises ValueError if the file is not one."""
        return _heads.load_model(path, cls)
