"""Lesson 10: its texts, their loader, and what the lesson claims about them."""

import re
from collections import Counter, defaultdict
from pathlib import Path

import course
import nbformat
import numpy as np
import pytest
from course.exercises import lesson10
from course.sliders import lesson10 as play
from course.texts.pairs import LABELS, PAIRS, load_pairs

from solutions.pretrained import linear_probe, load_pretrained, sentence_vectors

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "10_your_own_task.ipynb"


def test_there_are_enough_pairs_each_label_as_often():
    pairs = load_pairs()
    assert len(pairs) >= 300
    assert len(set(pairs)) == len(pairs)
    assert len({(p.sentence1, p.sentence2) for p in pairs}) == len(pairs)
    for split in ("train", "dev", "test"):
        counts = Counter(p.label for p in load_pairs(split=split))
        assert set(counts) == set(LABELS) and len(set(counts.values())) == 1


def test_a_first_sentence_has_each_label_once_and_one_split():
    seen = defaultdict(list)
    for pair in load_pairs():
        seen[pair.sentence1].append(pair)
    for sentence, group in seen.items():
        assert sorted(p.label for p in group) == sorted(LABELS), sentence
        assert len({p.split for p in group}) == 1, sentence


def test_sentences_are_clean():
    for pair in load_pairs():
        for text in pair[:2]:
            assert text == text.strip() and text[-1] in ".?!" and "  " not in text, text
            assert len(text.split()) <= 20, text


def _write(tmp_path, text):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(text.encode())
    return path


def test_snli_and_mnli_files_are_read(tmp_path):
    path = _write(
        tmp_path,
        "index\tgold_label\tsentence2\tsentence1\n1\tneutral\tB.\tA.\n"
        "2\t-\tD.\tC.\r\n3\tentailment\tF\tE\n",
    )
    assert [tuple(p) for p in load_pairs(path)] == [
        ("A.", "B.", "neutral", None),
        ("E", "F", "entailment", None),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sentence1\tlabel\nA\tneutral\n", "line 1: expected the columns sentence1"),
        ("sentence1\tsentence2\tlabel\nA\tB\n", "line 2: expected 3 columns, got 2"),
        ("sentence1\tsentence2\tlabel\nA\tB\tmaybe\n", "line 2: expected one of entailment"),
        ("sentence1\tsentence2\tlabel\nA\t\tneutral\n", "line 2: expected two sentences"),
    ],
)
def test_a_line_that_does_not_fit_is_named(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        load_pairs(_write(tmp_path, text))


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="expected split to be one of"):
        load_pairs(PAIRS, "validation")


@pytest.fixture(scope="module")
def real():
    """The encoder, its tokenizer, and each split's vectors and labels."""
    encoder, tokenizer = load_pretrained()
    vectors, labels = {}, {}
    for split in ("train", "dev", "test"):
        pairs = load_pairs(split=split)
        vectors[split] = [
            sentence_vectors(encoder, tokenizer, [p[side] for p in pairs]) for side in (0, 1)
        ]
        labels[split] = np.array([LABELS.index(p.label) for p in pairs])
    return encoder, tokenizer, vectors, labels


def _right(vectors, labels, split):
    """Which pairs of a split the reference has right, and which the second sentence alone."""
    said = lesson10.pair_model(*vectors["train"], labels["train"], *vectors[split])
    alone = linear_probe(vectors["train"][1], labels["train"], vectors[split][1], 300.0)
    return said == labels[split], alone == labels[split]


def test_the_reference_reaches_the_target_and_half_of_the_input_does_not(real):
    _, _, vectors, labels = real
    right, alone = _right(vectors, labels, "test")
    assert right.mean() >= 0.6
    assert right.mean() > alone.mean()


def test_half_of_the_input_is_worth_far_more_than_a_guess(real):
    _, _, vectors, labels = real
    for split in ("dev", "test"):
        assert _right(vectors, labels, split)[1].mean() > 0.45, split


def test_the_lead_could_be_luck(real):
    """As the lesson says of so few pairs: coins do as well in more than one of twenty trials."""
    _, _, vectors, labels = real
    right, alone = _right(vectors, labels, "test")
    won, lost = (right & ~alone).sum(), (alone & ~right).sum()
    coins = np.random.default_rng(1).binomial(won + lost, 0.5, size=20_000)
    assert (coins >= won).mean() > 0.05


@pytest.mark.parametrize(
    "features",
    [lesson10.pair_features, lambda a, b: np.concatenate([a - b, np.abs(a - b)], axis=1)],
)
def test_the_picture_answers_as_the_probe_does(real, features):
    _, _, vectors, labels = real
    train, dev = features(*vectors["train"]), features(*vectors["dev"])
    head = play.linear_head(train, labels["train"])
    said = (dev @ head["weight"] + head["bias"]).argmax(axis=1)
    np.testing.assert_array_equal(said, linear_probe(train, labels["train"], dev, 300.0))


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("Nobody in the office speaks Finnish.", "One colleague in the office speaks Finnish.",
         "contradiction"),
        ("Everybody in the office speaks Finnish.", "One colleague in the office speaks Finnish.",
         "contradiction"),
        ("There are three cats in the garden.", "There are five cats in the garden.",
         "contradiction"),
        ("There are three cats in the garden.", "There are not three cats in the garden.",
         "entailment"),
    ],
)  # fmt: skip
def test_what_the_reader_is_asked_to_try_shows_what_the_lesson_means(real, first, second, said):
    encoder, tokenizer, vectors, labels = real
    head = play.linear_head(lesson10.pair_features(*vectors["train"]), labels["train"])
    picture = play.pair_picture(
        first, second, encoder, tokenizer, features=lesson10.pair_features, **head
    )
    assert LABELS[int(np.argmax(picture.facts["probabilities"]))] == said


def test_reading_both_at_once_runs_as_written_and_leaves_the_encoder_alone(real):
    encoder, tokenizer, _, _ = real
    before = {name: array.copy() for name, array in encoder.params.items()}
    notebook = nbformat.read(NOTEBOOK, 4)
    (text,) = [c.source for c in notebook.cells if 'live("Both at once")' in c.source]
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert code.count("epochs=12") == 1
    pairs = {split: load_pairs(split=split) for split in ("train", "dev")}
    names = dict(encoder=encoder, tokenizer=tokenizer, pairs=pairs, LABELS=LABELS, np=np)
    exec(code.replace("epochs=12", "steps=2"), names)
    said = names["answers"]("dev")
    assert said.shape == (len(pairs["dev"]),) and set(said) <= {0, 1, 2}
    changed = [n for n in before if not np.array_equal(before[n], names["fresh"].params[n])]
    assert changed
    assert all(np.array_equal(before[name], encoder.params[name]) for name in before)


@pytest.mark.parametrize("strength", [10.0, 100.0, 300.0, 1000.0])
@pytest.mark.parametrize(
    ("features", "said"),
    [
        (lambda a, b: b, "the second sentence alone"),
        (lambda a, b: a, "the first sentence alone"),
        (lambda a, b: np.concatenate([a, b], axis=1), "side by side"),
        (lambda a, b: b - a, "the signed difference"),
    ],
)
def test_a_model_that_does_not_compare_is_told_what_it_reads(features, said, strength):
    def pair_model(first, second, labels, new_first, new_second):
        return linear_probe(
            features(first, second), labels, features(new_first, new_second), strength
        )

    report = course.check("pair_model", pair_model)
    assert report.status == "wrong"
    assert said in str(report)


@pytest.mark.parametrize("strength", [1.0, 30.0, 300.0, 3000.0])
@pytest.mark.parametrize(
    "features",
    [
        lesson10.pair_features,
        lambda a, b: np.concatenate([a, b, np.abs(a - b)], axis=1),
        lambda a, b: np.concatenate([a, b, (a - b) ** 2], axis=1),
        lambda a, b: np.concatenate([b - a, np.abs(a - b), a * b], axis=1),
    ],
)
def test_features_that_pass_do_for_the_model_at_any_strength(features, strength):
    def pair_features(first, second):
        return features(first, second)

    def pair_model(first, second, labels, new_first, new_second):
        return linear_probe(
            features(first, second), labels, features(new_first, new_second), strength
        )

    assert course.check("pair_features", pair_features).passed
    assert course.check("pair_model", pair_model).passed
