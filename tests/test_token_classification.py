"""The token-classification module: labels of pieces, decoding, scores, spans, the classifier."""

import random
import warnings

import numpy as np
import pytest

from solutions.embeddings import WordPieceTokenizer
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.token_classification import (
    IGNORED,
    LABELS,
    TokenClassifier,
    aggregate_words,
    align_labels,
    character_spans,
    decode_entities,
    entity_scores,
    entity_scores_by_type,
    error_kinds,
    inside,
    merge_windows,
    names_of,
    occlusion,
    swap_entities,
    token_probabilities,
)
from solutions.training import fit


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


# --- the classifier -------------------------------------------------------------------------------

WORDS = "ana met novatek in rome again new york and lima".split()


def small_tagger(dtype=np.float32, max_length=16, **options):
    pieces = ["##" + letter for letter in "abcdefghijklmnopqrstuvwxyz"]
    letters = list("abcdefghijklmnopqrstuvwxyz.,'")
    tokenizer = WordPieceTokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters, *pieces]
    )
    config = EncoderConfig(len(tokenizer), 16, 2, 2, 32, max_length)
    encoder = Encoder(config, {n: a * (8 if a.ndim == 2 else 1)
                               for n, a in init_params(config, 3, dtype).items()})  # fmt: skip
    model = TokenClassifier(encoder, tokenizer, seed=1, **options)
    model.params["head.weight"] *= 60
    return model


SENTENCES = [["Ana", "met", "Novatek", "."], ["in", "New", "York"], ["Lima", "again", "Zoe"]]
SENTENCE_LABELS = [["B-PER", "O", "B-ORG", "O"], ["O", "B-LOC", "I-LOC"], ["B-LOC", "O", "B-PER"]]


@pytest.mark.parametrize("all_pieces", [True, False])
def test_gradients_of_the_whole_model(all_pieces):
    model = small_tagger(np.float64, all_pieces=all_pieces)
    examples = model.prepare(SENTENCES, SENTENCE_LABELS)
    _, grads, count = model.loss_and_grads(examples)
    assert count == (12 if all_pieces else 10)  # Zoe is three pieces
    rng = np.random.default_rng(0)
    for name in ("head.weight", "head.bias", "encoder.embeddings.token",
                 "encoder.layers.0.attention.qkv.weight"):  # fmt: skip
        array = model.params[name]
        direction = rng.normal(size=array.shape)
        slopes = []
        for sign in (1, -1):
            array += sign * 1e-6 * direction
            slopes.append(sign * model.loss_and_grads(examples)[0])
            array -= sign * 1e-6 * direction
        np.testing.assert_allclose(sum(slopes) / 2e-6, np.sum(grads[name] * direction), rtol=1e-5)


def test_it_learns_three_sentences():
    model = small_tagger()
    examples = model.prepare(SENTENCES, SENTENCE_LABELS)
    fit(model, examples, steps=80, lr=3e-3, batch_size=3)
    assert model.label_words(SENTENCES) == SENTENCE_LABELS
    assert model.evaluate(examples) == 1.0
    found = model.predict("Ana met Novatek .")
    assert [(e.text, e.type, e.start, e.end) for e in found] == [
        ("Ana", "PER", 0, 3), ("Novatek", "ORG", 8, 15),
    ]  # fmt: skip
    assert all(0.5 < e.score <= 1 for e in found)
    assert model.predict("Ana met Novatek .", threshold=1.1) == []


@pytest.mark.parametrize(
    "text",
    [
        "Zoë met 👍🏽 Ana in  New\nYork.",
        "Zoe\u0308 met Ana",
        "\u200bAna",
        "  Ana\t\tin\u00a0Rome\n\n",
        "ANA'S Ｎew york",
        "",
        " \n",
        "\u0301",
        "ana " * 100,
        "x" * 300,
    ],
)
@pytest.mark.parametrize("strategy", ["first", "max", "average"])
def test_entities_are_slices_of_the_text(text, strategy):
    model = small_tagger()
    model.params["head.bias"][0] = -50  # nothing is O
    found = model.predict(text, strategy)
    assert all(text[e.start : e.end] == e.text and e.text.strip() == e.text for e in found)
    assert [e.start for e in found] == sorted(e.start for e in found)
    inside = [i for e in found for i in range(e.start, e.end)]
    assert len(inside) == len(set(inside))
    letters = {i for i, letter in enumerate(text) if letter.isalpha()}
    assert letters <= set(inside)


def test_an_accent_stays_with_its_letter():
    model = small_tagger()
    model.params["head.bias"][:] = [-50, 50, -50, -50, -50, -50, -50]
    assert [e.text for e in model.predict("Zoe\u0308 met Ana")] == ["Zoe\u0308", "met", "Ana"]


def test_a_long_text_is_read_to_its_end():
    model = small_tagger()
    text = "ana met rome and lima . " * 40
    encoding, pieces = model.piece_probabilities(text)
    assert len(pieces) == len(encoding) == 240
    np.testing.assert_allclose(pieces.sum(axis=1), 1, rtol=1e-5)
    assert len(model.label_words([text.split()])[0]) == 240
    short = model.piece_probabilities("ana met rome")[1]
    whole = model._probabilities([model.tokenizer.encode("ana met rome", add_special_tokens=False)])
    np.testing.assert_array_equal(short, whole[0])
    examples = model.prepare([text.split()], [["O"] * 240])
    assert model.loss_and_grads(examples)[2] == 240


def test_a_label_counts_once_whatever_the_windows():
    model = small_tagger()
    room = model.encoder.config.max_length - 2
    for count in (1, room - 1, room, room + 1, 2 * room, 5 * room + 3):
        example = model.prepare([["ana"] * count], [["B-PER"] * count])[0]
        parts = model._labeled_windows(example)
        assert [(first, stop) for _, first, stop, _ in parts] == model._spans(count)
        seen = np.zeros(count, int)
        for _, first, stop, labels in parts:
            seen[first:stop] += labels != IGNORED
        np.testing.assert_array_equal(seen, 1)
    labels = [labels for *_, labels in model._labeled_windows(example)]
    assert (labels[1][: room // 4] == IGNORED).all()  # the window before sees more of what follows


def test_windows_are_merged_by_the_middle():
    rows = [np.full((4, 1), 0.0), np.full((4, 1), 1.0)]
    merged = merge_windows(rows, [(0, 4), (2, 6)], 6)
    np.testing.assert_array_equal(merged[:, 0], [0, 0, 0, 1, 1, 1])


def test_words_without_a_piece_are_o():
    model = small_tagger()
    model.params["head.bias"][0] = -50
    labels = model.label_words([["\u200b", "ana", "\u200b"], ["\u200b"]])
    assert labels[0][0] == labels[0][2] == "O"
    assert labels[1] == ["O"]
    assert labels[0][1] != "O"
    np.testing.assert_array_equal(model.word_probabilities(["\u200b"]), [[1, 0, 0, 0, 0, 0, 0]])


def test_saved_and_loaded(tmp_path):
    model = small_tagger(all_pieces=False)
    path = tmp_path / "tagger.npz"
    model.save(path)
    loaded = TokenClassifier.load(path, model.tokenizer)
    assert loaded.labels == model.labels
    assert loaded.all_pieces is False
    assert loaded.encoder.config == model.encoder.config
    one, other = (m.word_probabilities(WORDS) for m in (model, loaded))
    np.testing.assert_allclose(one, other, atol=0.02)
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)
    np.savez(tmp_path / "other.npz", x=np.zeros(2))
    with pytest.raises(ValueError, match=r"TokenClassifier\.save wrote"):
        TokenClassifier.load(tmp_path / "other.npz", model.tokenizer)


def test_the_classifier_refuses():
    model = small_tagger()
    with pytest.raises(ValueError, match="a B- and an I- of each type"):
        TokenClassifier(model.encoder, model.tokenizer, labels=("O", "B-PER"))
    with pytest.raises(ValueError, match="sentence 0: expected labels out of"):
        model.prepare([["ana"]], [["B-MISC"]])
    with pytest.raises(ValueError, match=r"as many words as labels \(1\), got 2 words"):
        model.prepare([["ana", "met"]], [["O"]])
    with pytest.raises(ValueError, match="sentence 1: expected a list of words, got 'met'"):
        model.prepare([["ana"], "met"], [["O"], ["O"]])
    with pytest.raises(ValueError, match="sentence 0: expected a list of labels, got None"):
        model.prepare([["ana"]], [None])
    with pytest.raises(ValueError, match="a str"):
        model.predict(["ana"])


def test_nothing_writes_into_its_arguments():
    pieces = np.random.default_rng(0).random((3, 2))
    before = pieces.copy()
    word_ids, labels = [None, 0, 0], ["B-PER"]
    aggregate_words(pieces, word_ids, "average")[:] = 9
    align_labels(word_ids, labels, True)
    np.testing.assert_array_equal(pieces, before)
    assert (word_ids, labels) == ([None, 0, 0], ["B-PER"])


def test_swapped_names_keep_their_type():
    words = [["Ana", "Costa", "left", "Rome"], ["Lima", "is", "far"], ["again"]]
    labels = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O", "O"], ["O"]]
    new, new_labels = swap_entities(words, labels, np.random.default_rng(0))
    assert [k for own in new_labels for k, _, _ in decode_entities(own)] == ["PER", "LOC", "LOC"]
    assert all(len(w) == len(own) for w, own in zip(new, new_labels))
    assert new[2] == ["again"]
    assert names_of(words, labels) == {"PER": [["Ana", "Costa"]], "LOC": [["Rome"], ["Lima"]]}
    strange, _ = swap_entities(words, labels, np.random.default_rng(0), ["xyz"], 0.999)
    assert "xyz" in strange[1]
    assert words[0] == ["Ana", "Costa", "left", "Rome"]


def test_occlusion_counts_places_anew():
    def probability(words, place):
        assert words[place] == "x"
        return words.count("b") / 4

    fall = occlusion(probability, ["b", "b", "a", "x", "c"], 3)
    np.testing.assert_allclose(fall, [0.25, 0.25, 0, 0, 0])
