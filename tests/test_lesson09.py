"""Lesson 09: what its cells compute, and what the lesson claims."""

import numpy as np
import pytest
from course.sliders import lesson09 as play
from course.texts import load_conll, load_reviews

from solutions import pretrained
from solutions.pretrained import load_pretrained


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
