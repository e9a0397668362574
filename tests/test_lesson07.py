"""What lesson 07 shows: its sentences of known truth, its sliders, the taggers that it ships."""

import re
from collections import Counter

import numpy as np
import pytest
from course.exercises import get
from course.explore import picture
from course.sliders import lesson07 as play
from course.texts import load_conll
from course.texts import washington as texts
from course.weights import lesson07 as shipped

from solutions.embeddings import WordPieceTokenizer
from solutions.token_classification import decode_entities, entity_scores

NAMES = ("token_probabilities", "align_labels", "decode_entities", "character_spans",
         "entity_scores", "aggregate_words", "error_kinds", "occlusion")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_exercises_have_what_they_need(name):
    exercise = get(name)
    assert exercise.lesson == "07"
    assert len(exercise.mistakes) >= 6
    assert len(exercise.also_right) >= 2


# --- sentences of known truth ---------------------------------------------------------------------


@pytest.mark.parametrize("side", texts.SIDES)
def test_each_name_is_each_type_equally_often(side):
    sentences = texts.controlled_sentences(side, 3 * len(texts.NAMES) * 2)
    counts = Counter((s.words[s.place], s.type) for s in sentences)
    assert set(counts.values()) == {2}
    assert len(counts) == 3 * len(texts.NAMES)
    assert all(decode_entities(s.labels) == [(s.type, s.place, s.place)] for s in sentences)


def shares(side, part):
    """For each text on one side of the name: how often it stands with each type."""
    counts = {}
    for s in texts.controlled_sentences(side, 9000, seed=5):
        words = s.words[: s.place] if part == "left" else s.words[s.place + 1 :]
        counts.setdefault(" ".join(words), Counter())[s.type] += 1
    return [np.array([c[kind] for kind in texts.TYPES]) / c.total() for c in counts.values()]


@pytest.mark.parametrize(
    ("side", "part", "want"),
    [
        ("right", "left", [1 / 3, 1 / 3, 1 / 3]),
        ("right", "right", [0, 0, 1]),
        ("left", "left", [0, 0, 1]),
        ("left", "right", [1 / 3, 1 / 3, 1 / 3]),
        ("both", "left", [0, 1 / 2, 1 / 2]),
        ("both", "right", [0, 1 / 2, 1 / 2]),
    ],
)
def test_only_the_right_words_tell(side, part, want):
    for share in shares(side, part):
        np.testing.assert_allclose(np.sort(share), want, atol=0.07)


def test_held_out_names_are_new_and_made_of_known_pieces():
    assert not set(texts.NAMES) & set(texts.HELD_OUT_NAMES)
    tokenizer = WordPieceTokenizer(texts.vocabulary())
    known = {t for name in texts.NAMES for t in tokenizer.encode(name).tokens}
    for name in texts.HELD_OUT_NAMES:
        pieces = tokenizer.encode(name).tokens
        assert set(pieces) <= known, name
        assert "[UNK]" not in pieces
    for side in texts.SIDES:
        for held_out in (False, True):
            for s in texts.controlled_sentences(side, 60, 1, held_out):
                assert "[UNK]" not in tokenizer.encode_words(s.words).tokens


def test_sentences_are_the_same_each_time():
    one, other = (texts.controlled_sentences("both", 30, seed=4) for _ in range(2))
    assert one == other
    assert one != texts.controlled_sentences("both", 30, seed=5)
    with pytest.raises(ValueError, match="right, left or both"):
        texts.controlled_sentences("up", 3)


def test_everyday_sentences():
    names = {"PER": [["Ana", "Costa"]], "ORG": [["Novatek"]], "LOC": [["Rome"]]}
    made = texts.everyday_sentences(names, 40)
    assert all(len(words) == len(labels) for words, labels in made)
    assert {k for _, labels in made for k, _, _ in decode_entities(labels)} == set(texts.TYPES)
    assert any(not decode_entities(labels) for _, labels in made)
    assert not any(word in texts.TYPES for words, _ in made for word in words)


# --- the taggers that are shipped -----------------------------------------------------------------


def test_the_weights_are_small_and_need_no_pickle():
    for path in (shipped.ENTITIES, *shipped.DIRECTIONS.values()):
        assert path.stat().st_size < 1_500_000
        with np.load(path, allow_pickle=False) as file:
            assert all(file[name].dtype != object for name in file.files)


def test_the_shipped_tagger_beats_memory():
    counts = {}
    for s in load_conll(split="train"):
        for word, label in zip(s.words, s.labels):
            counts.setdefault(word.lower(), Counter())[label] += 1
    test = load_conll(split="test")
    memory = [[counts[w.lower()].most_common(1)[0][0] if w.lower() in counts else "O"
               for w in s.words] for s in test]  # fmt: skip
    true = [s.labels for s in test]
    found = shipped.entities().label_words([s.words for s in test])
    assert entity_scores(true, found)["f1"] > entity_scores(true, memory)["f1"] + 0.05


@pytest.mark.parametrize("text", ["John works at Google in California.",
                                  "John works at Google in California"])  # fmt: skip
def test_the_shipped_tagger_reads_the_first_example(text):
    found = shipped.entities().predict(text)
    assert [(e.text, e.type) for e in found] == [
        ("John", "PER"), ("Google", "ORG"), ("California", "LOC"),
    ]  # fmt: skip


@pytest.mark.parametrize("side", texts.SIDES)
def test_both_directions_are_needed_where_the_right_decides(side):
    models = shipped.directions()
    assert shipped.share_right(models["bidirectional"], side, seed=50) >= 0.97
    causal = shipped.share_right(models["causal"], side, seed=50, count=600)
    assert abs(causal - texts.LEFT_KNOWN[side]) < 0.08


def test_random_weights_give_noise():
    test = load_conll(split="test")
    found = shipped.untrained().label_words([s.words for s in test])
    assert entity_scores([s.labels for s in test], found)["f1"] < 0.05


# --- sliders --------------------------------------------------------------------------------------


def test_what_a_causal_encoder_takes_a_name_for_never_moves():
    story = "right decides: signed the letter"
    drawn = {
        model: [picture("07.which_direction", {"story": story, "model": model, "shown": n})
                for n in (0, 3, 6)] for model in ("bidirectional", "causal")
    }  # fmt: skip
    values = [p.facts["values"] for p in drawn["causal"]]
    assert all(np.allclose(values[0], one, atol=1e-6) for one in values)
    values = [p.facts["values"] for p in drawn["bidirectional"]]
    assert not np.allclose(values[0], values[-1], atol=0.1)


def test_precision_and_recall_of_the_threshold():
    scores, right = np.array([0.9, 0.8, 0.3, 0.6]), np.array([True, False, True, True])
    thresholds, precision, recall = play.by_threshold(scores, right, 5)
    assert (precision[0], recall[0]) == (0.75, 0.6)
    at = int(np.argmin(np.abs(thresholds - 0.7)))
    assert (precision[at], recall[at]) == (0.5, 0.2)
    assert np.isnan(precision[-1])
    assert recall[-1] == 0


@pytest.mark.parametrize("story", play.LOOKED_AT)
def test_attention_and_need_of_a_word_stand_in_line(story):
    drawn = picture("07.looked_and_needed", {"story": story}).body
    for word in play.LOOKED_AT[story][0].split():
        places = re.findall(rf'<text x="([\d.]+)"[^>]*>{re.escape(word)}</text>', drawn)
        assert len(places) >= 2
        assert places[: len(places) // 2] == places[len(places) // 2 :]


@pytest.mark.parametrize(("threshold", "said"), [(0.0, "precision 0.75"), (1.0, "nothing kept")])
def test_precision_and_recall_stand_in_the_legend(threshold, said):
    scored = np.array([0.9, 0.8, 0.3, 0.6]), np.array([True, False, True, True]), 5
    drawn = picture("07.precision_recall", {"threshold": threshold}, {"scored": scored})
    assert said in drawn.alt
    assert said in drawn.body


def test_pieces_to_words_shows_where_the_strategies_part():
    alts = {s: picture("07.pieces_to_words", {"strategy": s, "second": 0.55}).alt
            for s in ("first", "max", "average")}  # fmt: skip
    assert "becomes PER" in alts["first"]
    assert "becomes LOC" in alts["max"]
    assert "becomes O" in alts["average"]


def test_typed_labels_are_data():
    drawn = picture("07.decode_by_hand", {"labels": "<b> O O O O O O O", "strict": False})
    assert "expected O, B-type or I-type" in drawn.alt
    assert "<b>" not in drawn.body
    assert "3" in picture("07.decode_by_hand", {"labels": "O O B-PER"}).alt
