"""Lesson 06: what its text and sliders claim of the classifier that it shows first is so."""

import numpy as np
import pytest
from course import weights
from course.sliders import lesson06 as play
from course.texts.generators import BAD, GOOD, HELD_OUT_NOUNS, controlled_reviews

from solutions.attention import softmax

POSITIVE = "I expected a dull show but got a lovely one."


@pytest.fixture(scope="module")
def model():
    return weights.sentiment()


def test_the_strips_follow_attention_one_layer_back(model):
    facts = play.read_a_sentence(POSITIVE, model).facts
    tokens, attention = model.attention(POSITIVE)
    assert tokens[facts["most"]] == "[SEP]"
    np.testing.assert_allclose(facts["weights"], attention[1].mean(axis=0)[0])
    np.testing.assert_allclose(facts["before"], attention[0].mean(axis=0)[facts["most"]])
    words = [i for i, token in enumerate(tokens) if not token.startswith("[")]
    assert tokens[max(words, key=lambda i: facts["before"][i])] == "dull"


def test_with_sep_hidden_the_verdict_turns_round(model):
    encoding = model.tokenizer.encode(POSITIVE)
    ids = np.array([encoding.input_ids])
    mask = np.array([encoding.tokens]) != "[SEP]"
    logits = [model.encoder(ids, real)[:, 0] @ model.params["head.weight"]
              + model.params["head.bias"] for real in (mask | True, mask)]
    before, after = (softmax(one)[0] for one in logits)
    np.testing.assert_allclose(before, model.probabilities([POSITIVE])[0], atol=1e-5)
    assert model.labels[before.argmax()] == "positive"
    assert model.labels[after.argmax()] == "negative"


def test_a_sentence_unlike_any_it_has_read_gets_one_of_its_two_answers(model):
    assert list(model.labels) == ["negative", "positive"]
    np.testing.assert_allclose(model.probabilities(["It opens at nine."]).sum(), 1, atol=1e-5)


def test_only_the_mean_of_all_tokens_changes_with_padding_now_farther_now_back():
    moved = np.array([play.pooling_picture(padding).facts["moved"] for padding in range(9)])
    assert not moved[:, :2].any() and (moved[1:, 2] > 0.3).all()
    assert (np.diff(moved[:, 2]) < 0).any() and (np.diff(moved[:, 2]) > 0).any()
    pooled = [play.pooling_picture(padding).facts["pooled"] for padding in (0, 8)]
    np.testing.assert_array_equal(pooled[0][:2], pooled[1][:2])


@pytest.mark.parametrize(("first", "second", "praise"), [
    (BAD, GOOD, 1), (GOOD, BAD, 0), (BAD, BAD, 1), (GOOD, GOOD, 0)])
def test_what_was_expected_decides_whatever_came(model, first, second, praise):
    sentences = play.expectations(first, second)
    assert len(sentences) == len(set(sentences)) == 64
    said = np.array(model.predict(sentences)) == "positive"
    assert np.mean(said == praise) > 0.95


def test_in_the_sentences_of_training_the_second_adjective_is_always_the_opposite():
    """So no test made of them can tell whether the model reads both."""
    for review in controlled_reviews(600, 3, HELD_OUT_NOUNS):
        words = [word.strip(".,") for word in review.text.lower().split()]
        kinds = [word in GOOD for word in words if word in GOOD + BAD]
        assert kinds in ([True], [False], [True, False], [False, True]), review.text


def test_precision_and_recall_stand_in_the_title_and_the_curve_says_where():
    given = play._toy_forecasts()
    drawn = play.threshold_picture(0.5, **given)
    said = drawn.alt.split(". How")[0].removeprefix("At threshold 0.50: ")
    assert said.capitalize() in drawn.body
    everything = play.threshold_picture(0.0, **given).alt
    share = np.mean(given["true"] == given["labels"].index("positive"))
    assert f"precision {share:.2f}, recall 1.00" in everything


def test_all_heads_of_a_layer_are_shown(model):
    text = "The hotel was not good but bad."
    for layer in (1, 2):
        weights = play.cls_attention(text, layer, model).facts["weights"]
        np.testing.assert_array_equal(weights, model.attention(text)[1][layer - 1][:, 0])


def test_untrained_classifiers_say_anything():
    verdicts = [int(play.random_probabilities(seed).argmax()) for seed in range(200)]
    shares = np.bincount(verdicts, minlength=3) / 200
    assert shares.min() > 0.25 and shares.max() < 0.42


def test_a_temperature_changes_no_answer():
    given = play._toy_forecasts()
    answers = [play.calibration_picture(t, **given).facts["probabilities"].argmax(axis=-1)
               for t in (0.2, 1.0, 5.0)]
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
