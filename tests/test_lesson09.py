"""Lesson 09: what its cells compute, and what the lesson claims."""

import numpy as np
import pytest
from course.explore import find
from course.sliders import lesson09 as play
from course.texts import Review, load_conll, load_reviews

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


# --- What the lesson says about its examples ------------------------------------------------------


def _cosines(model, first, *others):
    one, *rest = pretrained.sentence_vectors(*model, [first, *others])
    return [float(one @ other) for other in rest]


def _words(text):
    return set(text.lower().replace(".", "").replace(",", "").split())


def test_no_common_word_is_near_and_the_opposite_is_nearer(model):
    controls = find("09.similarity_picture").controls
    first, second = controls["first"].start, controls["second"].start
    assert not _words(first) & _words(second)
    others = (second, "The film was far too short.", "The bread is excellent.")
    near, opposite, other = _cosines(model, first, *others)
    assert opposite > near > 0.4 > 0.1 > other


def test_the_search_finds_snoring_and_does_not_hear_a_not(model):
    texts = [review.text for review in load_reviews(split="train")]
    vectors = pretrained.sentence_vectors(*model, texts)

    def found(query):
        (vector,) = pretrained.sentence_vectors(*model, [query])
        return [i for i, _ in pretrained.search(vector, vectors)]

    best = texts[found("falling asleep")[0]]
    assert "snoring" in best
    assert not _words("falling asleep") & _words(best)
    assert texts[found("too expensive")[0]].startswith("Cheap")
    assert found("the actors are bad") == found("the actors are not bad")


def test_a_head_looks_from_she_at_one_place_whoever_stands_there(model):
    encoder, tokenizer = model
    for person in ("sister", "brother"):
        text = play.SENTENCE.replace("sister", person)
        drawn = play.head_picture(text, layer=6, head=3, encoder=encoder, tokenizer=tokenizer)
        tokens = tokenizer.encode(text).tokens
        weights = drawn.facts["weights"][tokens.index("she")]
        assert tokens[int(weights.argmax())] == person
        assert weights.max() > 0.5
        best = drawn.facts["weights"].argmax(axis=1)
        assert (best == tokens.index(person)).mean() > 0.5  # most of the other rows do the same


def test_three_simple_patterns_have_a_head_and_two_have_none(model):
    texts = [review.text for review in load_reviews(split="dev")][:40]
    found = play.simple_heads(*model, texts)
    shares = {name: share for name, (_, _, share) in found.items()}
    assert min(shares[n] for n in ("the token before", "the token after", "[CLS]")) > 0.6
    assert max(shares[n] for n in ("the token itself", "[SEP]")) < 0.2
    # the lesson asks to look at these
    assert found["the token before"][:2] == (1, 3)
    assert found["the token after"][:2] == (2, 9)
    assert found["[CLS]"][:2] == (3, 10)


def test_small_letters_change_no_entity():
    heads = play.untrained_heads()
    found = [heads["tagger"].predict(text) for text in (play.PASSAGE, play.PASSAGE.lower())]
    assert found[0]
    places = [[(e.start, e.end, e.type, e.score) for e in some] for some in found]
    assert places[0] == places[1]


# --- Pictures -------------------------------------------------------------------------------------


def test_parameters_are_counted_where_they_lie(model):
    config = model[0].config
    total = sum(a.size for a in model[0].params.values()) / 1e6
    for top in range(7):
        trained, frozen, tables = play.layers_trained(top, config).facts["parameters"]
        assert trained + frozen + tables == pytest.approx(total)
        named = pretrained.trained_names(list(model[0].params), 6 - top)
        assert trained == pytest.approx(sum(model[0].params[n].size for n in named) / 1e6)
    assert tables > total / 2


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "only [CLS] and [SEP]"), ("\U0001f642", "[UNK]"), ("a " * 40, "first 24 of 42 tokens")],
)
def test_a_picture_says_what_it_did_to_odd_text(model, text, said):
    encoder, tokenizer = model
    for one, two in ((text, "It rains."), ("It rains.", text)):
        assert said in play.similarity_picture(one, two, encoder, tokenizer).alt
    plain = play.similarity_picture("It rains.", "It rains.", encoder, tokenizer)
    assert said not in plain.alt


def test_errors_of_a_tagger_are_counted_by_hand():
    true = [["B-PER", "I-PER", "O", "B-LOC", "O"], ["B-ORG", "O", "O", "B-LOC", "O"]]
    said = [["B-PER", "O", "O", "B-LOC", "O"], ["B-PER", "O", "O", "O", "B-LOC"]]
    assert play.entity_errors(true, said) == {
        "right": 1, "borders": 1, "type": 1, "invented": 1, "missed": 1}  # fmt: skip
    assert play.entity_errors(true, true) == {
        "right": 4, "borders": 0, "type": 0, "invented": 0, "missed": 0}  # fmt: skip


def test_typed_text_is_data():
    heads = play.untrained_heads()
    drawn = play.three_heads("<b>x</b> met Ana", "<i>who</i>?", **heads)
    assert "<b>x</b>" not in drawn.body
    assert "<i>who</i>" not in drawn.body
    shelf = play._shelf()
    shelf["reviews"][0] = Review("<b>x</b>", "neutral")
    drawn = play.search_picture("<i>who</i>", **shelf)
    assert "<b>x</b>" not in drawn.body and "&lt;b&gt;" in drawn.body
    assert "<i>who</i>" not in drawn.body
    assert "only [CLS] and [SEP]" in play.search_picture("", **play._shelf()).alt


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
