"""Lesson 06: what its text and sliders claim of the classifier that it shows first is so."""

import numpy as np
import pytest
from course import weights
from course.sliders import lesson06 as play

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


def test_only_the_mean_of_all_tokens_changes_with_padding():
    def pooled(padding, how):
        alt = play.pooling_picture(padding, how).alt
        return alt[alt.index("pooled"):]

    assert pooled(0, "mean of real tokens") == pooled(8, "mean of real tokens")
    assert pooled(0, "[CLS]") == pooled(8, "[CLS]")
    assert pooled(0, "mean of all tokens") != pooled(8, "mean of all tokens")


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
