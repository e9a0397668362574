"""Lesson 09: what its cells compute, and what the lesson claims."""

import numpy as np
import pytest
from course.sliders import lesson09 as play
from course.texts import load_conll, load_reviews

from solutions import pretrained
from solutions.pretrained import load_pretrained
from solutions.question_answering import QuestionAnswerer


@pytest.fixture(scope="module")
def model():
    return load_pretrained()


def test_broken_readings_differ_and_the_right_one_does_not(model):
    encoder, tokenizer = model
    reference = play.reference()
    inputs = play.batch(tokenizer, reference["texts"])
    found = play.broken_encoders(encoder, inputs, reference["hidden"])
    right, *broken = found.values()
    assert right < 1e-5
    assert min(broken) > 1e-3


def test_pooled_states_are_the_encoders(model):
    encoder, tokenizer = model
    reviews = load_reviews(split="dev")[:5]
    states = play.review_states(encoder, tokenizer, reviews, batch_size=2)
    assert states["mean"].shape == states["cls"].shape == (7, 5, 384)
    vectors = pretrained.sentence_vectors(encoder, tokenizer, [r.text for r in reviews])
    last = states["mean"][-1]
    last = last / np.linalg.norm(last, axis=1, keepdims=True)
    np.testing.assert_allclose(last, vectors, atol=1e-5)
    assert np.ptp(states["cls"][0], axis=0).max() < 1e-5  # before attention every [CLS] is the same


def test_words_have_the_state_of_their_first_piece(model):
    encoder, tokenizer = model
    sentences = load_conll(split="dev")[:4]
    words = play.word_states(encoder, tokenizer, sentences)
    assert words["states"].shape[:2] == (7, sum(len(s.words) for s in sentences))
    types = [play.TYPES[i] for i in words["labels"]]
    assert types == [label.split("-")[-1] for s in sentences for label in s.labels]


def test_one_head_looks_at_the_token_before(model):
    encoder, tokenizer = model
    texts = [review.text for review in load_reviews(split="dev")[:5]]
    layer, _, share = play.simple_heads(encoder, tokenizer, texts)["the token before"]
    assert layer == 1
    assert share > 0.95


def test_search_finds_by_meaning(model):
    encoder, tokenizer = model
    texts = ["The battery lasts a week.", "The soup was cold.", "She sails every summer."]
    vectors = pretrained.sentence_vectors(encoder, tokenizer, texts)
    for query, wanted in (("lukewarm food", 1), ("a boat trip", 2), ("charging the phone", 0)):
        (vector,) = pretrained.sentence_vectors(encoder, tokenizer, [query])
        assert pretrained.search(vector, vectors, 1)[0][0] == wanted, query


def test_typed_text_is_data():
    heads = play.untrained_heads()
    drawn = play.three_heads("<b>x</b> met Ana", "<i>who</i>?", **heads)
    assert "<b>x</b>" not in drawn.body
    assert "<i>who</i>" not in drawn.body


# --- Reading what is near the question ------------------------------------------------------------

PASSAGE = 'Ada sold bread in Oslo. "Who pays?" asked Bo.  The mill, said Cy, burned in 1911!'


def test_sentences_are_cut_at_their_ends_and_nowhere_else():
    spans = pretrained.sentence_spans(PASSAGE)
    assert [PASSAGE[a:b] for a, b in spans] == [
        "Ada sold bread in Oslo.", '"Who pays?"', "asked Bo.", "The mill, said Cy, burned in 1911!"
    ]  # fmt: skip
    assert pretrained.sentence_spans("  one \n") == [(2, 5)]
    assert pretrained.sentence_spans(" \n ") == pretrained.sentence_spans("") == []
    assert pretrained.sentence_spans("3.5 km") == [(0, 6)]


def test_an_excerpt_knows_where_it_comes_from():
    spans = pretrained.sentence_spans(PASSAGE)
    excerpt = pretrained.Excerpt.of(PASSAGE, [spans[0], spans[3]])
    assert excerpt.text == f"{PASSAGE[:23]} {PASSAGE[-34:]}"
    for word in ("Ada", "Oslo", "mill", "1911"):
        there = PASSAGE.index(word)
        here = excerpt.in_excerpt(there, there + len(word))
        assert excerpt.text[slice(*here)] == word
        assert excerpt.in_passage(*here) == (there, there + len(word))
    asked = PASSAGE.index("asked")
    assert excerpt.in_excerpt(asked, asked + 5) is None
    start, end = excerpt.in_passage(excerpt.text.index("Oslo"), len(excerpt.text))
    assert PASSAGE[start:end] == "Oslo."  # cut off at the end of the sentence in which it starts


@pytest.fixture(scope="module")
def near(model):
    encoder, tokenizer = model
    reader = QuestionAnswerer(encoder, tokenizer)
    return pretrained.NearReader(encoder, tokenizer, reader, keep=1)


def test_the_nearest_sentence_is_read(near):
    items = [pretrained.Item("When did the mill burn?", PASSAGE, []),
             pretrained.Item("Where was bread sold?", PASSAGE, []),
             pretrained.Item("Where?", "", [])]  # fmt: skip
    texts = [excerpt.text for excerpt in near.excerpts(items)]
    assert texts == [PASSAGE[-34:], PASSAGE[:23], ""]
    two = pretrained.NearReader(near.encoder, near.tokenizer, near.reader, keep=2)
    (excerpt,) = two.excerpts([pretrained.Item("Who sold bread in the mill?", PASSAGE, [])])
    assert excerpt.text == f"{PASSAGE[:23]} {PASSAGE[-34:]}"  # in the order of the passage


def test_labels_move_with_the_excerpt_and_answers_move_back(near):
    year = PASSAGE.index("1911")
    asked = ("When did the mill burn?", "Where was bread sold?")
    found, lost = near.prepare(
        [pretrained.Item(question, PASSAGE, [("1911", year)]) for question in asked]
    )
    assert found.encoding.tokens[found.start : found.end + 1] == ["1911"]
    assert (lost.start, lost.end) == (0, 0)  # the sentence with the answer is not read
    (answer,) = near.answer_all([pretrained.Item("When did the mill burn?", PASSAGE, [])], False)
    assert answer.text == PASSAGE[answer.start : answer.end] != ""
    assert answer.start >= PASSAGE.index("The mill")
    with pytest.raises(ValueError, match="at least one word"):
        near.answer("", PASSAGE)


def test_more_sentences_hold_more_answers(near):
    year, town = PASSAGE.index("1911"), PASSAGE.index("Oslo")
    items = [pretrained.Item("When did the mill burn?", PASSAGE, [("1911", year)]),
             pretrained.Item("What year is it?", PASSAGE, [("Oslo", town)])]  # fmt: skip
    kept = play.measure_kept(near, items)
    assert kept["found"].shape == kept["tokens"].shape == (play.MOST_KEPT,)
    assert (np.diff(kept["found"]) >= 0).all() and (np.diff(kept["tokens"]) >= 0).all()
    assert kept["found"][0] == 0.5  # the year is found, Oslo only when more is read
    assert kept["found"][-1] == 1


def test_subsets_are_balanced_and_have_no_row_twice():
    labels = np.array([0, 1, 2] * 20)
    for rows in play.subsets(np.random.default_rng(0), 30, labels, copies=3):
        assert len(set(rows.tolist())) == 30
        assert (np.bincount(labels[rows]) == 10).all()
