"""Lesson 10: its texts, their loader, and what the lesson claims about them."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from course.exercises import lesson10
from course.texts.pairs import LABELS, PAIRS, load_pairs

from solutions.pretrained import linear_probe, load_pretrained, sentence_vectors


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


def test_the_reference_reaches_the_target_and_half_of_the_input_does_not():
    encoder, tokenizer = load_pretrained()
    vectors, labels = {}, {}
    for split in ("train", "test"):
        pairs = load_pairs(split=split)
        vectors[split] = [
            sentence_vectors(encoder, tokenizer, [p[side] for p in pairs]) for side in (0, 1)
        ]
        labels[split] = np.array([LABELS.index(p.label) for p in pairs])
    said = lesson10.pair_model(*vectors["train"], labels["train"], *vectors["test"])
    alone = linear_probe(vectors["train"][1], labels["train"], vectors["test"][1], 300.0)
    right, cheat = ((x == labels["test"]).mean() for x in (said, alone))
    assert right >= 0.6
    assert right > cheat
