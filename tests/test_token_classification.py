"""The token-classification module: labels of pieces, decoding, scores, spans, the classifier."""

import random
import warnings

import numpy as np
import pytest

from solutions.token_classification import (
    LABELS,
    aggregate_words,
    align_labels,
    character_spans,
    decode_entities,
    entity_scores,
    entity_scores_by_type,
    error_kinds,
    inside,
    token_probabilities,
)


def random_labels(rng, length):
    return [rng.choice(LABELS) for _ in range(length)]


# --- labels of pieces -----------------------------------------------------------------------------


def test_labels_of_two_words_of_two_pieces():
    word_ids, labels = [None, 0, 0, 1, 1, None], ["B-ORG", "I-ORG"]
    assert align_labels(word_ids, labels) == [-100, "B-ORG", -100, "I-ORG", -100, -100]
    assert align_labels(word_ids, labels, all_pieces=True) == [
        -100, "B-ORG", "I-ORG", "I-ORG", "I-ORG", -100,
    ]  # fmt: skip


def test_a_word_without_a_piece_is_skipped_by_its_id():
    assert align_labels([None, 0, 2, None], ["B-PER", "O", "B-LOC"]) == [
        -100, "B-PER", "B-LOC", -100,
    ]  # fmt: skip


def test_first_pieces_may_have_ids():
    assert align_labels([None, 0, 0, 1], [3, 0]) == [-100, 3, -100, 0]


@pytest.mark.parametrize(
    ("word_ids", "labels", "all_pieces", "message"),
    [
        ([0, 1], ["O"], False, "from 0 to 0, got 1"),
        ([0], ["PER"], False, "B-PER, got 'PER'"),
        ([0], [3], True, "B-PER, got 3"),
        ([0.0], ["O"], False, "whole number"),
        ("01", ["O", "O"], False, "a list of word numbers"),
        ([0], "O", False, "a list of labels"),
    ],
)
def test_align_labels_refuses(word_ids, labels, all_pieces, message):
    with pytest.raises(ValueError, match=message):
        align_labels(word_ids, labels, all_pieces)


def test_inside():
    assert [inside(label) for label in ("O", "B-PER", "I-B-X")] == ["O", "I-PER", "I-B-X"]


# --- words out of pieces --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "label", "probability"),
    [("first", 1, 0.50), ("max", 2, 0.55), ("average", 0, 0.41)],
)
def test_a_word_in_two_pieces(strategy, label, probability):
    pieces = np.array([[0.40, 0.50, 0.10], [0.42, 0.03, 0.55]])
    rows = aggregate_words(pieces, [0, 0], strategy)
    assert rows.shape == (1, 3)
    assert rows[0].argmax() == label
    assert rows[0].max() == pytest.approx(probability)
    assert rows.sum() == pytest.approx(1)


def test_rows_stand_at_the_words_numbers():
    pieces = np.arange(12.0).reshape(4, 3).astype(np.float32)
    rows = aggregate_words(pieces, [None, 0, 2, None], "first")
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, [[3, 4, 5], [0, 0, 0], [6, 7, 8]])
    assert aggregate_words(pieces[:2], [None, None], "max").shape == (0, 3)


def test_aggregate_words_refuses():
    pieces = np.ones((2, 3))
    with pytest.raises(ValueError, match="first, max or average, got 'last'"):
        aggregate_words(pieces, [0, 0], "last")
    with pytest.raises(ValueError, match="one word id for each token"):
        aggregate_words(pieces, [0], "first")
    with pytest.raises(ValueError, match="floats"):
        aggregate_words(pieces.astype(int), [0, 0], "first")


def test_token_probabilities():
    rng = np.random.default_rng(0)
    hidden, weight, bias = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5)), rng.normal(size=5)
    probabilities = token_probabilities(hidden, weight, bias)
    assert probabilities.shape == (2, 3, 5)
    powers = np.exp(hidden[1, 2] @ weight + bias)
    np.testing.assert_allclose(probabilities[1, 2], powers / powers.sum())
    with pytest.raises(ValueError, match="hidden_states"):
        token_probabilities(hidden[0], weight, bias)


# --- decoding and scores --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "default", "strict"),
    [
        ("O B-PER I-PER", [("PER", 1, 2)], [("PER", 1, 2)]),
        ("O I-PER I-PER", [("PER", 1, 2)], []),
        ("B-ORG I-LOC I-LOC", [("ORG", 0, 0), ("LOC", 1, 2)], [("ORG", 0, 0)]),
        ("B-PER B-PER", [("PER", 0, 0), ("PER", 1, 1)], [("PER", 0, 0), ("PER", 1, 1)]),
        ("B-PER O I-PER", [("PER", 0, 0), ("PER", 2, 2)], [("PER", 0, 0)]),
        ("B-PER I-ORG I-PER", [("PER", 0, 0), ("ORG", 1, 1), ("PER", 2, 2)], [("PER", 0, 0)]),
        ("B-x-y I-x-y", [("x-y", 0, 1)], [("x-y", 0, 1)]),
        ("O O", [], []),
        ("", [], []),
    ],
)
def test_decoding(labels, default, strict):
    assert decode_entities(labels.split()) == default
    assert decode_entities(labels.split(), strict=True) == strict


@pytest.mark.parametrize("label", ["PER", "B", "B-", "I-", "b-PER", "o", "", "E-PER", -100, None])
def test_decoding_refuses_what_is_no_label(label):
    with pytest.raises(ValueError, match="expected O, B-type or I-type"):
        decode_entities(["O", label])
    with pytest.raises(ValueError, match="expected O, B-type or I-type"):
        entity_scores([["O", label]], [["O", "O"]])


def seqeval_scores(true, predicted, strict):
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support as default
    from seqeval.metrics.v1 import precision_recall_fscore_support as exact
    from seqeval.scheme import IOB2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = {}
        for average in ("micro", None):
            if strict:
                result[average] = exact(true, predicted, average=average, scheme=IOB2)
            else:
                result[average] = default(true, predicted, average=average)
    return result


@pytest.mark.parametrize("strict", [False, True])
def test_scores_equal_seqeval(strict):
    """2,400 random sentences a mode, broken label sequences included, in groups of one to four."""
    rng = random.Random(7)
    sentences = 0
    while sentences < 2400:
        size = rng.choice([1, 2, 3, 4])
        true = [random_labels(rng, rng.randint(1, 9)) for _ in range(size)]
        predicted = [
            [label if rng.random() < 0.7 else rng.choice(LABELS) for label in labels]
            for labels in true
        ]
        sentences += size
        theirs = seqeval_scores(true, predicted, strict)
        mine = entity_scores(true, predicted, strict)
        names = ("precision", "recall", "f1", "support")
        kinds = entity_scores_by_type(true, predicted, strict)
        if not kinds:  # seqeval divides by nothing here
            assert mine == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0}
            continue
        np.testing.assert_allclose([mine[name] for name in names], theirs["micro"], atol=1e-12)
        for place, name in enumerate(names):
            np.testing.assert_allclose(
                [scores[name] for scores in kinds.values()], theirs[None][place], atol=1e-12
            )


@pytest.mark.parametrize("strict", [False, True])
def test_entities_equal_seqeval(strict):
    from seqeval.metrics.sequence_labeling import get_entities
    from seqeval.scheme import IOB2, Tokens

    rng = random.Random(11)
    for _ in range(2000):
        labels = random_labels(rng, rng.randint(1, 10))
        if strict:
            theirs = [(e.tag, e.start, e.end - 1) for e in Tokens(labels, IOB2).entities]
        else:
            theirs = get_entities(labels)
        assert decode_entities(labels, strict) == theirs, labels


def test_scores_by_hand():
    true, predicted = [["B-PER", "I-PER", "I-PER", "O"]], [["B-PER", "I-PER", "O", "O"]]
    assert entity_scores(true, predicted)["f1"] == 0.0  # three of four labels are right
    assert entity_scores([["O", "B-PER", "I-PER"]], [["O", "I-PER", "I-PER"]])["f1"] == 1.0
    assert entity_scores([["O", "B-PER", "I-PER"]], [["O", "I-PER", "I-PER"]], True)["f1"] == 0.0
    assert entity_scores([], []) == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0}
    some = entity_scores([["B-PER", "B-LOC", "O", "B-ORG"]], [["B-PER", "O", "O", "B-PER"]])
    assert some == {"precision": 1 / 2, "recall": 1 / 3, "f1": 0.4, "support": 3}


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        (["O"], ["O"], "expected a list of labels, got 'O'"),
        ([["O"]], [], "as many predicted"),
        ([["O", "O"]], [["O"]], "sentence 0"),
        ("O", [["O"]], "a list of sentences"),
    ],
)
def test_scores_refuse(true, predicted, message):
    with pytest.raises(ValueError, match=message):
        entity_scores(true, predicted)


def test_error_kinds():
    true = [("PER", 0, 1), ("ORG", 3, 3), ("LOC", 5, 7), ("PER", 9, 9)]
    predicted = [("PER", 0, 1), ("LOC", 3, 3), ("LOC", 6, 7), ("ORG", 11, 12)]
    assert error_kinds(true, predicted) == [
        ("right", true[0]),
        ("wrong type", true[1]),
        ("wrong border", true[2]),
        ("missed", true[3]),
        ("invented", predicted[3]),
    ]
    assert error_kinds([], []) == []


def test_character_spans():
    word_ids = [None, 0, 1, 1, 2, 3, None]
    offsets = [(0, 0), (0, 3), (4, 7), (7, 9), (11, 15), (16, 19), (0, 0)]
    entities = [("PER", 0, 0), ("ORG", 1, 2)]
    assert character_spans(entities, word_ids, offsets) == [(0, 3, "PER"), (4, 15, "ORG")]
    with pytest.raises(ValueError, match="words 4 to 4"):
        character_spans([("PER", 4, 4)], word_ids, offsets)
