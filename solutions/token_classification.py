"""Token classification: a label for every token, and names of people, companies and places.

Lesson 07. From a text to its entities:

    "Ana met Novatek"       words, cut into pieces by the tokenizer: ana met nova ##tek
    (pieces, labels)        a row of probabilities for each piece, from the encoder and one matrix
    (words, labels)         one row for each word: aggregate_words
    B-PER O B-ORG           the likeliest label of each word: B- begins an entity, I- goes on
    [("PER", 0, 0), ...]    entities, first and last word: decode_entities
    Ana, Novatek            the text between two characters: character_spans

Tjong Kim Sang and De Meulder, 2003, "CoNLL-2003 Shared Task", https://arxiv.org/abs/cs/0306050
Ramshaw and Marcus, 1995, "Text Chunking using Transformation-Based Learning" (BIO), cmp-lg/9505040
Devlin et al., 2019, "BERT", section 5.3, https://arxiv.org/abs/1810.04805
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from solutions import _checks, _heads, _unicode
from solutions._checks import checked, describe
from solutions.attention import softmax
from solutions.embeddings import Encoding, pad_batch
from solutions.encoder import dropout, linear, linear_backward
from solutions.question_answering import windows
from solutions.training import cross_entropy

LABELS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")
STRATEGIES = ("first", "max", "average")
IGNORED = -100  # cross_entropy leaves out tokens with this label


# --- The head -----------------------------------------------------------------------------------


def _token_probabilities_input(hidden_states, weight, bias):
    name = "token_probabilities"
    _checks.floats(f"{name}: weight", weight, shape=("d", "labels"))
    _checks.floats(f"{name}: bias", bias, shape=(weight.shape[1],))
    _checks.floats(
        f"{name}: hidden_states", hidden_states, shape=("batch", "length", weight.shape[0])
    )


@checked(_token_probabilities_input)
def token_probabilities(hidden_states, weight, bias):
    """Probabilities of the labels for every token: (batch, length, d) to (batch, length, labels).

    weight: (d, labels). bias: (labels,). The same matrix reads every token's hidden state.
    """
    logits = linear(hidden_states, weight, bias)  # (batch, length, labels)
    return softmax(logits)


# --- Labels of words and of pieces --------------------------------------------------------------


def _split_label_input(label):
    good = isinstance(label, str) and (
        label == "O" or (label[:2] in ("B-", "I-") and len(label) > 2)
    )
    if not good:
        raise ValueError(
            f"label: expected O, B-type or I-type such as B-PER, got {describe(label)}"
        )


@checked(_split_label_input)
def split_label(label):
    """("B", "PER") for "B-PER"; ("O", None) for "O"."""
    return (label[0], label[2:]) if label != "O" else ("O", None)


def _inside_input(label):
    _split_label_input(label)


@checked(_inside_input)
def inside(label):
    """The label of a token that continues `label`: B-PER becomes I-PER; I-PER and O stay."""
    return "I" + label[1:] if label.startswith("B-") else label


def _word_ids(name, word_ids, num_words=None):
    if isinstance(word_ids, str) or not isinstance(word_ids, (Sequence, np.ndarray)):
        raise ValueError(
            f"{name}: expected a list of word numbers, None for special tokens, "
            f"got {describe(word_ids)}"
        )
    for word in word_ids:
        if word is not None:
            _checks.whole(name, word, 0, None if num_words is None else num_words - 1)


def _align_labels_input(word_ids, word_labels, all_pieces=False):
    if isinstance(word_labels, str) or not isinstance(word_labels, Iterable):
        raise ValueError(
            f"align_labels: word_labels: expected a list of labels, got {describe(word_labels)}"
        )
    word_labels = list(word_labels)
    _word_ids("align_labels: word_ids", word_ids, len(word_labels))
    for label in word_labels:
        if isinstance(label, (int, np.integer)) and not isinstance(label, bool) and not all_pieces:
            continue
        _split_label_input(label)


@checked(_align_labels_input)
def align_labels(word_ids, word_labels, all_pieces=False):
    """One label for each token, given one for each word; -100 where the loss must not look.

    word_ids: for each token the number of its word, None for [CLS], [SEP] and padding.
    word_labels: the words' labels, looked up by that number.

    A word's first token gets the word's label. Its other tokens get -100 or, with `all_pieces`,
    the label that goes on: a word has one beginning, so B-ORG becomes I-ORG. Without `all_pieces`
    labels may be ids too.
    """
    aligned, previous = [], None
    for word in word_ids:
        if word is None:
            aligned.append(-100)
        elif word != previous:
            aligned.append(word_labels[word])
        elif all_pieces:
            aligned.append(inside(word_labels[word]))
        else:
            aligned.append(-100)
        previous = word
    return aligned


def _aggregate_words_input(probabilities, word_ids, strategy):
    name = "aggregate_words"
    _checks.floats(f"{name}: probabilities", probabilities, shape=("tokens", "labels"))
    _word_ids(f"{name}: word_ids", word_ids)
    if len(word_ids) != len(probabilities):
        raise ValueError(
            f"{name}: expected one word id for each token, "
            f"got {len(word_ids)} ids and probabilities of shape {probabilities.shape}"
        )
    if probabilities.shape[1] == 0:
        raise ValueError(f"{name}: expected at least one label, got {describe(probabilities)}")
    if strategy not in STRATEGIES:
        raise ValueError(f"{name}: strategy: expected first, max or average, got {strategy!r}")


@checked(_aggregate_words_input)
def aggregate_words(probabilities, word_ids, strategy):
    """One row of probabilities for each word: (tokens, labels) to (words, labels).

    word_ids: for each token the number of its word, or None. There are as many words as the
    highest number says; one that has no token keeps a row of zeros.
    strategy: "first" takes the row of the word's first token, "max" the row of the token that is
    surest of its likeliest label, "average" the mean of the rows.
    """
    tokens_of = {}
    for token, word in enumerate(word_ids):
        if word is not None:
            tokens_of.setdefault(word, []).append(token)
    rows = np.zeros((max(tokens_of, default=-1) + 1, probabilities.shape[1]), probabilities.dtype)
    for word, tokens in tokens_of.items():
        pieces = probabilities[tokens]  # (pieces of this word, labels)
        if strategy == "first":
            rows[word] = pieces[0]
        elif strategy == "max":
            rows[word] = pieces[pieces.max(axis=1).argmax()]
        else:
            rows[word] = pieces.mean(axis=0)
    return rows


# --- Entities out of labels ---------------------------------------------------------------------


def _labels(name, labels):
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise ValueError(f"{name}: expected a list of labels, got {describe(labels)}")
    for label in labels:
        _split_label_input(label)


def _decode_entities_input(labels, strict=False):
    _labels("decode_entities: labels", labels)
    _checks.flag("decode_entities: strict", strict)


@checked(_decode_entities_input)
def decode_entities(labels, strict=False):
    """The entities of one sentence: [(type, first, last)], places of words, `last` included.

    labels: O, B-type or I-type for each word. Anything else raises ValueError.

    B- begins an entity, and I- of the same type goes on with it. What of an I- with nothing of its
    type before it? By default it begins an entity, as in conlleval, the script of the CoNLL shared
    tasks; with `strict` (IOB2) it is left out.
    """
    entities, running = [], None  # running: the type of the entity that the last word belongs to
    for place, label in enumerate(labels):
        prefix, kind = split_label(label)
        if prefix == "I" and kind == running:
            entities[-1] = (kind, entities[-1][1], place)
        elif prefix == "B" or (prefix == "I" and not strict):
            entities.append((kind, place, place))
            running = kind
        else:
            running = None
    return entities


def _entity_scores_input(true, predicted, strict=False):
    name = "entity_scores"
    for side, sentences in (("true", true), ("predicted", predicted)):
        if isinstance(sentences, str) or not isinstance(sentences, Sequence):
            raise ValueError(
                f"{name}: {side}: expected a list of sentences, each a list of labels, "
                f"got {describe(sentences)}"
            )
        for sentence in sentences:
            _labels(f"{name}: {side}: a sentence", sentence)
    if len(true) != len(predicted):
        raise ValueError(
            f"{name}: expected as many predicted as true sentences, "
            f"got {len(predicted)} and {len(true)}"
        )
    for number, (one, other) in enumerate(zip(true, predicted)):
        if len(one) != len(other):
            raise ValueError(
                f"{name}: sentence {number}: expected one predicted label for each of "
                f"{len(one)} words, got {len(other)}"
            )
    _checks.flag(f"{name}: strict", strict)


@checked(_entity_scores_input)
def entity_scores(true, predicted, strict=False):
    """Precision, recall and F1 of whole entities, over all sentences together.

    true, predicted: lists of sentences, each a list of labels.
    Returns {"precision", "recall", "f1", "support"}; support is the number of true entities.

    An entity counts as found only if its type, its first and its last word are right. Precision is
    found / predicted, recall is found / true, and F1 = 2 found / (predicted + true) lies between
    them. Where there is nothing to divide by, the score is 0.0.
    """
    found = num_predicted = support = 0
    for true_labels, predicted_labels in zip(true, predicted):
        true_entities = decode_entities(true_labels, strict)
        predicted_entities = decode_entities(predicted_labels, strict)
        found += len(set(true_entities) & set(predicted_entities))
        num_predicted += len(predicted_entities)
        support += len(true_entities)
    return {
        "precision": found / num_predicted if num_predicted else 0.0,
        "recall": found / support if support else 0.0,
        "f1": 2 * found / (num_predicted + support) if num_predicted + support else 0.0,
        "support": support,
    }


def _of_type(labels, kind, strict):
    """The labels with only the entities of one type left, written so that both modes agree."""
    only = ["O"] * len(labels)
    for entity, first, last in decode_entities(labels, strict):
        if entity == kind:
            only[first : last + 1] = ["B-" + kind] + ["I-" + kind] * (last - first)
    return only


@checked(_entity_scores_input)
def entity_scores_by_type(true, predicted, strict=False):
    """{type: scores} as entity_scores gives them, of every type in `true` or `predicted`."""
    kinds = {
        kind
        for labels in [*true, *predicted]
        for kind, _, _ in decode_entities(labels, strict)
    }
    return {
        kind: entity_scores(
            [_of_type(labels, kind, strict) for labels in true],
            [_of_type(labels, kind, strict) for labels in predicted],
        )
        for kind in sorted(kinds)
    }


def _entities(name, entities):
    if not isinstance(entities, Sequence) or isinstance(entities, str):
        raise ValueError(f"{name}: expected a list of entities, got {describe(entities)}")
    for entity in entities:
        if not isinstance(entity, tuple) or len(entity) != 3:
            raise ValueError(f"{name}: expected (type, first, last), got {entity!r}")
        _checks.whole(f"{name}: first", entity[1], 0)
        _checks.whole(f"{name}: last", entity[2], entity[1])


def _error_kinds_input(true, predicted):
    _entities("error_kinds: true", true)
    _entities("error_kinds: predicted", predicted)


@checked(_error_kinds_input)
def error_kinds(true, predicted):
    """What became of each entity: [(kind, entity)], the true ones in order, then the invented.

    true, predicted: the entities of one sentence, as decode_entities gives them.
    A true entity is "right"; or "wrong type", if the same words were found as another type; or
    "wrong border", if a predicted entity shares some of its words; or else "missed". A predicted
    entity that shares no word with a true one is "invented".
    """
    outcome = []
    for entity in true:
        _, first, last = entity
        if entity in predicted:
            outcome.append(("right", entity))
        elif any((f, l) == (first, last) for _, f, l in predicted):
            outcome.append(("wrong type", entity))
        elif any(f <= last and l >= first for _, f, l in predicted):
            outcome.append(("wrong border", entity))
        else:
            outcome.append(("missed", entity))
    for entity in predicted:
        if not any(f <= entity[2] and l >= entity[1] for _, f, l in true):
            outcome.append(("invented", entity))
    return outcome


def _character_spans_input(entities, word_ids, offsets):
    _entities("character_spans: entities", entities)
    _word_ids("character_spans: word_ids", word_ids)
    if len(offsets) != len(word_ids):
        raise ValueError(
            "character_spans: expected one (start, stop) for each token, "
            f"got {len(offsets)} for {len(word_ids)} tokens"
        )
    known = {word for word in word_ids if word is not None}
    for _, first, last in entities:
        if first not in known or last not in known:
            raise ValueError(
                "character_spans: expected entities whose first and last word have a token, "
                f"got words {first} to {last}"
            )


@checked(_character_spans_input)
def character_spans(entities, word_ids, offsets):
    """Where entities stand in the text: [(start, stop, type)], text[start:stop] is the entity.

    entities: (type, first, last) in words. word_ids, offsets: for each token the number of its
    word (None for a special token) and its (start, stop) in the text, as a tokenizer gives them.

    An entity reaches from the start of the first token of its first word to the stop of the last
    token of its last word, with whatever stands between the words in the text.
    """
    spans = []
    for kind, first, last in entities:
        starts = [start for word, (start, _) in zip(word_ids, offsets) if word == first]
        stops = [stop for word, (_, stop) in zip(word_ids, offsets) if word == last]
        spans.append((min(starts), max(stops), kind))
    return spans


# --- More sentences out of few --------------------------------------------------------------------


def _named_input(name, sentences, labels):
    _entity_scores_input(labels, labels)
    if len(sentences) != len(labels):
        raise ValueError(
            f"{name}: expected labels for each of {len(sentences)} sentences, got {len(labels)}"
        )


def _names_of_input(sentences, labels):
    _named_input("names_of", sentences, labels)


@checked(_names_of_input)
def names_of(sentences, labels):
    """{type: its entities, each a list of words} of labeled sentences, in order."""
    names = {}
    for words, own in zip(sentences, labels):
        for kind, first, last in decode_entities(own):
            names.setdefault(kind, []).append(list(words[first : last + 1]))
    return names


def _swap_entities_input(sentences, labels, rng, strange=(), share=0.3):
    _named_input("swap_entities", sentences, labels)
    if not isinstance(rng, np.random.Generator):
        raise ValueError(
            f"swap_entities: rng: expected a np.random.Generator, got {describe(rng)}"
        )
    _checks.fraction("swap_entities: share", share)


@checked(_swap_entities_input)
def swap_entities(sentences, labels, rng, strange=(), share=0.3):
    """The sentences with each entity exchanged for another of its type: (sentences, labels).

    sentences: lists of words. labels: their lists of labels. The names come from the sentences
    themselves, so their context stays true and the name alone tells less. With words in `strange`,
    a `share` of the names is one or two of those instead: names that only context can tell.

    Dai and Adel, 2020, https://arxiv.org/abs/2010.11683 ("mention replacement")
    """
    names = names_of(sentences, labels)
    new_sentences, new_labels = [], []
    for words, own in zip(sentences, labels):
        new_words, new_own, at = [], [], 0
        for kind, first, last in decode_entities(own):
            name = names[kind][rng.integers(len(names[kind]))]
            if len(strange) and rng.random() < share:
                size = 1 + int(rng.random() < 0.25)
                name = [strange[i] for i in rng.integers(len(strange), size=size)]
            new_words += [*words[at:first], *name]
            new_own += [*own[at:first], "B-" + kind, *["I-" + kind] * (len(name) - 1)]
            at = last + 1
        new_sentences.append([*new_words, *words[at:]])
        new_labels.append([*new_own, *own[at:]])
    return new_sentences, new_labels


# --- Looking at one decision ----------------------------------------------------------------------


def _occlusion_input(probability, words, place):
    if not callable(probability):
        raise ValueError(
            f"occlusion: probability: expected a function of (words, place), "
            f"got {describe(probability)}"
        )
    if isinstance(words, str) or not isinstance(words, Sequence):
        raise ValueError(f"occlusion: words: expected a list of words, got {describe(words)}")
    _checks.whole("occlusion: place", place, 0, len(words) - 1)


@checked(_occlusion_input)
def occlusion(probability, words, place):
    """How far a word's probability falls when each other word is taken out of the sentence.

    probability: a function of a list of words and a place in it, that returns a number.
    Returns (words,) floats: before minus after, above 0 for a word that helped; 0 at `place`.

    Zeiler and Fergus, 2014, https://arxiv.org/abs/1311.2901
    """
    before = probability(words, place)
    fall = np.zeros(len(words))
    for gone in range(len(words)):
        if gone != place:
            rest = words[:gone] + words[gone + 1 :]
            fall[gone] = before - probability(rest, place - (gone < place))
    return fall


# --- Long texts -----------------------------------------------------------------------------------


def _merge_windows_input(rows, spans, num_tokens):
    if len(rows) != len(spans):
        raise ValueError(
            f"merge_windows: expected one (first, stop) for each of {len(rows)} windows, "
            f"got {len(spans)}"
        )
    for row, (first, stop) in zip(rows, spans):
        _checks.floats("merge_windows: rows", row, shape=(stop - first, "labels"))


@checked(_merge_windows_input)
def merge_windows(rows, spans, num_tokens):
    """One row for each token of a long text, out of overlapping windows.

    rows: for each window its (tokens of the window, labels). spans: for each window its
    (first, stop) in the text. Where windows overlap, a token takes its row from the window in
    which it stands farther from the border, and so has more words on both its sides.
    """
    merged = np.zeros((num_tokens, rows[0].shape[1]), rows[0].dtype)
    room = np.full(num_tokens, -1)  # the distance to the border, in the window taken so far
    for row, (first, stop) in zip(rows, spans):
        places = np.arange(first, stop)
        distance = np.minimum(places - first, stop - 1 - places)
        better = distance > room[first:stop]
        merged[places[better]] = row[better]
        room[places[better]] = distance[better]
    return merged


# --- The classifier -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entity:
    """An entity found in a text: text == the_text[start:end], and how sure the model was, 0 to 1.

    score: the mean, over its words, of the probability of the label that the word was given.
    """

    text: str
    type: str
    start: int
    end: int
    score: float


@dataclass(frozen=True)
class Example:
    """A sentence as the classifier reads it: its pieces without [CLS] and [SEP], its words' labels
    by name, and its pieces' labels by id (-100: not in the loss)."""

    encoding: Encoding
    labels: tuple
    targets: tuple

    def __len__(self):
        return len(self.encoding) + 2


class TokenClassifier:
    """An encoder with one linear layer on every token's hidden state.

    labels: "O", and B- and I- of every type. dropout: on the hidden states, in training.
    all_pieces: train all pieces of a word, or (False) only its first. The head starts at
    normal(0, 0.02) weights from `seed` and biases of 0. `params` shares its arrays with the
    encoder: an optimizer that changes them in place trains both.
    """

    SETTINGS = ("labels", "dropout", "all_pieces")  # what a file keeps, apart from the parameters

    def __init__(
        self, encoder, tokenizer, labels=LABELS, dropout=0.1, all_pieces=True, seed=0
    ):
        labels = _heads.as_list("labels", labels)
        for label in labels:
            _split_label_input(label)
        types = {label[2:] for label in labels if label != "O"}
        wanted = {"O"} | {prefix + kind for kind in types for prefix in ("B-", "I-")}
        if sorted(labels) != sorted(wanted):
            raise ValueError(
                "TokenClassifier: labels: expected O, and a B- and an I- of each type, once each, "
                f"got {labels}"
            )
        _heads.check_tokenizer(tokenizer, encoder)
        _checks.whole("TokenClassifier: the encoder's max_length", encoder.config.max_length, 3)
        _checks.fraction("TokenClassifier: dropout", dropout)
        self.encoder, self.tokenizer, self.labels = encoder, tokenizer, [str(l) for l in labels]
        self.dropout, self.all_pieces = float(dropout), bool(all_pieces)
        self.params = {
            **_heads.of_encoder(encoder.params),
            **_heads.linear_head(encoder, len(labels), seed),
        }

    # Training

    def prepare(self, sentences, labels):
        """Examples for `fit`: sentences, each a list of words, with their lists of label names."""
        sentences, labels = _heads.as_list("sentences", sentences), _heads.as_list("labels", labels)
        if len(sentences) != len(labels):
            raise ValueError(
                f"prepare: expected labels for each of {len(sentences)} sentences, "
                f"got {len(labels)}"
            )
        examples = []
        for number, (words, names) in enumerate(zip(sentences, labels)):
            for what, own in (("words", words), ("labels", names)):
                if not isinstance(own, (Sequence, np.ndarray)) or isinstance(own, str):
                    raise ValueError(
                        f"prepare: sentence {number}: expected a list of {what}, "
                        f"got {describe(own)}"
                    )
            if len(words) != len(names):
                raise ValueError(
                    f"prepare: sentence {number}: expected as many words as labels "
                    f"({len(names)}), got {len(words)} words"
                )
            unknown = [name for name in names if name not in self.labels]
            if unknown:
                raise ValueError(
                    f"prepare: sentence {number}: expected labels out of "
                    f"{', '.join(self.labels)}, got {unknown[0]!r}"
                )
            encoding = self.tokenizer.encode_words(words, add_special_tokens=False)
            aligned = align_labels(encoding.word_ids, names, self.all_pieces)
            targets = [IGNORED if name == IGNORED else self.labels.index(name) for name in aligned]
            examples.append(Example(encoding, tuple(names), tuple(targets)))
        return examples

    def loss_and_grads(self, examples, rng=None):
        """Mean loss of the labeled tokens of some examples, {name: gradient}, and their number.

        With an rng dropout is on.
        """
        _heads.check_examples(examples, Example)
        parts = [part for e in examples for part in self._labeled_windows(e)]
        batch = self._batch([(e.encoding, first, stop) for e, first, stop, _ in parts])
        targets = np.full(batch["input_ids"].shape, IGNORED)
        for row, (_, first, stop, labels) in enumerate(parts):
            targets[row, 1 : 1 + stop - first] = labels
        hidden, cache = self.encoder.forward(**batch, rng=rng, keep=True)
        read, scale = hidden, None
        if rng is not None and self.dropout:
            read, scale = dropout(hidden, self.dropout, rng)
        weight = self.params["head.weight"]
        loss, grad = cross_entropy(linear(read, weight, self.params["head.bias"]), targets)
        grad_read, grad_weight, grad_bias = linear_backward(grad, read, weight)
        grad_hidden = grad_read if scale is None else grad_read * scale
        grads = _heads.of_encoder(self.encoder.backward(grad_hidden, cache))
        grads |= {"head.weight": grad_weight, "head.bias": grad_bias}
        return loss, grads, int(np.sum(targets != IGNORED))

    def evaluate(self, examples):
        """F1 of whole entities on prepared examples: what `fit` keeps the best parameters by."""
        _heads.check_examples(examples, Example)
        predicted = self.label_examples(examples)
        return entity_scores([list(e.labels) for e in examples], predicted)["f1"]

    # Use

    def label_examples(self, examples, strategy="first"):
        """The most probable label of each word of each example."""
        rows = self._probabilities([e.encoding for e in examples])
        return [
            self._names(aggregate_words(row, e.encoding.word_ids, strategy), len(e.labels))
            for row, e in zip(rows, examples)
        ]

    def label_words(self, sentences, strategy="first"):
        """The most probable label of each word: sentences are lists of words."""
        encodings = [self.tokenizer.encode_words(s, add_special_tokens=False) for s in sentences]
        return [
            self._names(aggregate_words(row, encoding.word_ids, strategy), len(words))
            for row, encoding, words in zip(self._probabilities(encodings), encodings, sentences)
        ]

    def word_probabilities(self, words, strategy="first"):
        """Probabilities (words, labels) of one sentence, a list of words.

        A word of which the tokenizer leaves nothing is O for certain.
        """
        encoding = self.tokenizer.encode_words(words, add_special_tokens=False)
        found = aggregate_words(self._probabilities([encoding])[0], encoding.word_ids, strategy)
        rows = np.zeros((len(words), len(self.labels)), found.dtype)
        rows[: len(found)] = found
        rows[rows.sum(axis=1) == 0, self.labels.index("O")] = 1
        return rows

    def piece_probabilities(self, text):
        """The Encoding of a text without [CLS] and [SEP], and probabilities (pieces, labels)."""
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        return encoding, self._probabilities([encoding])[0]

    def predict(self, text, strategy="first", strict=False, threshold=0.0):
        """The entities of a text, [Entity], in the order of the text.

        A text longer than the position table is read in overlapping windows. Entities with a score
        below `threshold` are left out.
        """
        encoding, pieces = self.piece_probabilities(text)
        rows = aggregate_words(pieces, encoding.word_ids, strategy)
        entities = decode_entities(self._names(rows, len(rows)), strict)
        spans = character_spans(entities, encoding.word_ids, encoding.offsets)
        found = []
        for (_, first, last), (start, end, kind) in zip(entities, spans):
            score = float(rows[first : last + 1].max(axis=1).mean())
            if score >= threshold:
                end = _with_marks(text, end)
                found.append(Entity(text[start:end], kind, start, end, score))
        return found

    def attention(self, words):
        """Tokens of a short sentence, their word ids, and the weights (layers, heads, queries,
        keys) found on the way."""
        encoding = self.tokenizer.encode_words(words, max_length=self.encoder.config.max_length)
        weights = self.encoder.layers_and_attention(**pad_batch([encoding]))[1]
        return encoding.tokens, encoding.word_ids, np.stack([layer[0] for layer in weights])

    def _names(self, rows, num_words):
        names = [self.labels[row.argmax()] if row.any() else "O" for row in rows]
        return names + ["O"] * (num_words - len(names))

    def _spans(self, num_tokens):
        room = self.encoder.config.max_length - 2  # [CLS] and [SEP] take two
        return windows(num_tokens, room, room // 2) or [(0, 0)]

    def _labeled_windows(self, example):
        """[(example, first, stop, labels)] of its windows, each label in one of them.

        As in `merge_windows`, a token counts where it stands farther from the border.
        """
        spans, targets = self._spans(len(example.encoding)), np.array(example.targets, dtype=int)
        numbers = [np.full((stop - first, 1), float(n)) for n, (first, stop) in enumerate(spans)]
        window_of = merge_windows(numbers, spans, len(targets))[:, 0]
        return [
            (example, first, stop, np.where(window_of == n, targets, IGNORED)[first:stop])
            for n, (first, stop) in enumerate(spans)
        ]

    def _batch(self, parts):
        combine = self.tokenizer.combine
        pad_id = self.tokenizer.pad_id or 0
        return pad_batch([combine(e[first:stop]) for e, first, stop in parts], pad_id=pad_id)

    def _probabilities(self, encodings, batch_size=32):
        """For each encoding its (tokens, labels); like lengths are computed together."""
        parts = [
            (number, first, stop)
            for number, encoding in enumerate(encodings)
            for first, stop in self._spans(len(encoding))
        ]
        rows, spans = [[] for _ in encodings], [[] for _ in encodings]
        for places in _heads.by_length([stop - first for _, first, stop in parts], batch_size):
            some = [parts[place] for place in places]
            batch = self._batch([(encodings[number], first, stop) for number, first, stop in some])
            every = token_probabilities(
                self.encoder(**batch), self.params["head.weight"], self.params["head.bias"]
            )
            _heads.check_logits(every)
            for one, (number, first, stop) in zip(every, some):
                rows[number].append(one[1 : 1 + stop - first])
                spans[number].append((first, stop))
        return [
            merge_windows(own, place, len(encoding))
            for own, place, encoding in zip(rows, spans, encodings)
        ]

    # On disk

    def save(self, path):
        """Write everything but the tokenizer to an .npz file that needs no pickle to read."""
        _heads.save_model(path, self)

    @classmethod
    def load(cls, path, tokenizer):
        """The classifier that `save` wrote, in float32. Raises ValueError if the file is none."""
        return _heads.load_model(path, cls, tokenizer)


def _with_marks(text, stop):
    """`stop` moved behind the accents that follow: the tokenizer drops them, the text has them."""
    while stop < len(text) and _unicode.category(text[stop]) == "Mn":
        stop += 1
    return stop
