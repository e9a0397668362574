"""Pooling, the head, baselines and metrics of lesson 06."""

import numpy as np
import pytest
from course.texts import load_tokenizer
from sklearn import metrics as peer

from solutions.attention import softmax
from solutions.embeddings import WordPieceTokenizer
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.text_classification import (
    BagOfWords,
    TextClassifier,
    accuracy,
    bag_of_words,
    calibration_error,
    cls_pool,
    cls_pool_backward,
    confusion_matrix,
    macro_f1,
    mean_pool,
    mean_pool_backward,
)
from solutions.training import fit

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "soup", "was", "good", "bad", "not"]


def small_classifier(pooling="cls", dtype=np.float64, seed=0):
    """An encoder of one layer over eleven words, in float64 for differences."""
    config = EncoderConfig(vocab_size=len(WORDS), d_model=8, num_layers=1, num_heads=2, d_ff=12,
                           max_length=10)
    params = {name: array * (1 if name.endswith(("gamma", "beta", "bias")) else 20)
              for name, array in init_params(config, seed, dtype).items()}
    model = TextClassifier(Encoder(config, params), WordPieceTokenizer(WORDS),
                           ["negative", "neutral", "positive"], pooling=pooling, seed=seed)
    model.params["head.weight"] *= 20
    return model


# --- Pooling --------------------------------------------------------------------------------------


def test_mean_pool_counts_real_tokens_only():
    hidden = np.array([[[2.0, 0.0], [4.0, 2.0], [9.0, 9.0]]])
    np.testing.assert_allclose(mean_pool(hidden, np.array([[1, 1, 0]])), [[3.0, 1.0]])
    np.testing.assert_array_equal(mean_pool(hidden, np.zeros((1, 3), bool)), [[0.0, 0.0]])


def test_pooling_keeps_float32_and_writes_into_nothing():
    hidden = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    before = hidden.copy()
    mask = np.array([[1, 1, 0], [1, 0, 0]])
    assert cls_pool(hidden).dtype == mean_pool(hidden, mask).dtype == np.float32
    cls_pool(hidden)[...] = 7.0
    np.testing.assert_array_equal(hidden, before)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_pooling_gradients_equal_differences(pooling):
    rng = np.random.default_rng(1)
    hidden, upstream = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 2))
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]])

    def pooled(h):
        return cls_pool(h) if pooling == "cls" else mean_pool(h, mask)

    grad = (cls_pool_backward(upstream, 4) if pooling == "cls"
            else mean_pool_backward(upstream, mask))
    for place in np.ndindex(hidden.shape):
        step = np.zeros_like(hidden)
        step[place] = 1e-6
        difference = ((pooled(hidden + step) - pooled(hidden - step)) * upstream).sum() / 2e-6
        assert grad[place] == pytest.approx(difference, abs=1e-8)


@pytest.mark.parametrize(("call", "said"), [
    (lambda: cls_pool(np.zeros((2, 3))), "batch, length, d"),
    (lambda: mean_pool(np.zeros((2, 3, 4)), np.ones((2, 4), bool)), r"\(2, 3\)"),
    (lambda: mean_pool(np.zeros((2, 3, 4)), np.full((2, 3), 2)), "0 and 1"),
    (lambda: bag_of_words(np.array([[5]]), np.array([[1]]), 5), "0 to 4"),
    (lambda: confusion_matrix([0, 3], [0, 0], 3), "0 to 2"),
    (lambda: accuracy([0, 1], [0]), "equally long"),
    (lambda: macro_f1(["a"], ["a"]), "class numbers"),
    (lambda: calibration_error(np.array([0.5, 0.5]), [0]), "texts, classes"),
    (lambda: calibration_error(np.array([[0.5, np.nan]]), [0]), "from 0 to 1, got nan to nan"),
    (lambda: calibration_error(np.array([[-0.5, 1.5]]), [0]), "from 0 to 1, got -0.5 to 1.5"),
])
def test_wrong_input_says_what_was_expected(call, said):
    with pytest.raises(ValueError, match=said):
        call()


# --- Metrics against scikit-learn -----------------------------------------------------------------


def test_metrics_equal_scikit_learn():
    rng = np.random.default_rng(2)
    for _ in range(200):
        classes, n = int(rng.integers(2, 6)), int(rng.integers(1, 30))
        true, predicted = rng.integers(0, classes, (2, n))
        assert accuracy(true, predicted) == pytest.approx(peer.accuracy_score(true, predicted))
        assert macro_f1(true, predicted) == pytest.approx(
            peer.f1_score(true, predicted, average="macro", zero_division=0))
        np.testing.assert_array_equal(
            confusion_matrix(true, predicted, classes),
            peer.confusion_matrix(true, predicted, labels=range(classes)))


def test_metrics_where_nothing_is_to_divide():
    assert accuracy([], []) == 0.0
    assert macro_f1([], []) == 0.0
    assert macro_f1([0, 0], [0, 0], num_classes=2) == 0.5  # a class that never occurs counts as 0


def test_calibration_of_a_forecaster_who_is_right_as_often_as_it_says():
    probabilities = np.tile([0.75, 0.25], (4, 1))
    assert calibration_error(probabilities, [0, 0, 0, 1]) == pytest.approx(0.0)
    assert calibration_error(probabilities, [1, 1, 1, 1]) == pytest.approx(0.75)


# --- The classifier -------------------------------------------------------------------------------


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_every_parameter_of_the_classifier_has_the_gradient_of_differences(pooling):
    model = small_classifier(pooling)
    examples = model.prepare(["the soup was good", "bad", "not not bad"],
                             ["positive", "negative", "neutral"])
    _, grads, count = model.loss_and_grads(examples)
    assert count == 3
    assert grads.keys() == model.params.keys()
    rng = np.random.default_rng(3)
    for name, array in model.params.items():
        for _ in range(3):
            place = tuple(rng.integers(0, size) for size in array.shape)
            kept = array[place]
            losses = []
            for step in (1e-6, -1e-6):
                array[place] = kept + step
                losses.append(model.loss_and_grads(examples)[0])
            array[place] = kept
            difference = (losses[0] - losses[1]) / 2e-6
            assert grads[name][place] == pytest.approx(difference, abs=1e-7), name


def test_training_changes_the_encoder_in_place_and_repeats():
    def run():
        model = small_classifier(dtype=np.float32)
        examples = model.prepare(["good", "bad", "not good", "not bad"] * 4,
                                 ["positive", "negative", "negative", "positive"] * 4)
        fit(model, examples, examples, epochs=30, batch_size=4, lr=5e-3)
        return model, model.evaluate(examples)

    (one, score), (two, _) = run(), run()
    assert score == 1.0
    assert one.params["encoder.embeddings.token"] is one.encoder.params["embeddings.token"]
    for name in one.params:
        np.testing.assert_array_equal(one.params[name], two.params[name])


def test_padding_and_order_of_texts_change_nothing():
    model = small_classifier("mean")
    texts = ["good", "the soup was not bad", "bad bad"]
    together, alone = model.logits(texts), [model.logits([text])[0] for text in texts]
    np.testing.assert_allclose(together, alone, atol=1e-10)


def test_saved_and_loaded_classifier_says_the_same(tmp_path):
    model = small_classifier("mean", dtype=np.float32)
    model.save(tmp_path / "model.npz")
    again = TextClassifier.load(tmp_path / "model.npz", model.tokenizer)
    assert again.labels == model.labels
    assert again.pooling == "mean"
    np.testing.assert_allclose(again.probabilities(["not bad"]), model.probabilities(["not bad"]),
                               atol=5e-3)
    np.savez(tmp_path / "other.npz", x=np.zeros(2))
    with pytest.raises(ValueError, match=r"expected a file that TextClassifier\.save wrote"):
        TextClassifier.load(tmp_path / "other.npz", model.tokenizer)


@pytest.mark.parametrize("text", ["", " ", "<script>alert(1)</script>", "👍🏽", "مرحبا بالعالم",
                                  "soup " * 5, "\x00", "𝒢𝑜𝑜𝒹"])
def test_any_text_gets_probabilities(text):
    probabilities = small_classifier().probabilities([text])
    assert probabilities.shape == (1, 3)
    assert np.isfinite(probabilities).all()
    assert probabilities.sum() == pytest.approx(1.0)


def test_a_text_longer_than_the_table_is_cut_and_it_is_said():
    model = small_classifier()
    with pytest.warns(UserWarning, match="1 of 2 texts are longer than the 10 tokens"):
        probabilities = model.probabilities(["good", "soup " * 2000])
    assert np.isfinite(probabilities).all()
    with pytest.raises(ValueError, match="at most 10 tokens"):
        model.encoder(np.zeros((1, 11), int))


@pytest.mark.parametrize(("call", "said"), [
    (lambda m: m.prepare("one string"), "a list of texts"),
    (lambda m: m.prepare(["good"], ["great"]), "'great'"),
    (lambda m: m.logits([]), "at least one text"),
    (lambda m: m.prepare([3]), "texts: 0: expected a string or a pair of strings, got 3"),
    (lambda m: m.prepare(["good", None]), "texts: 1: expected .*, got None"),
    (lambda m: m.prepare([["good", "bad", "soup"]]), "texts: 0: expected .*, got a list"),
    (lambda m: m.prepare([("good", "bad", 5)]), "texts: 0: expected .*, got a tuple"),
    (lambda m: m.prepare([("good",)]), "texts: 0: expected .*, got a tuple"),
    (lambda m: m.prepare(["good", "bad"], ["positive"]), "one for each of 2 texts, got 1"),
    (lambda m: m.prepare(["good"], ["positive", "negative"]), "one for each of 1 texts, got 2"),
    (lambda m: m.prepare(["good"], "positive"), "a list of labels, got one string"),
    (lambda m: m.prepare(["good"], [1]), "labels: expected 'negative', .*, got 1"),
    (lambda m: TextClassifier(m.encoder, m.tokenizer, ["1", "2"]).prepare(["good"], [1]), "got 1"),
    (lambda m: TextClassifier(m.encoder, m.tokenizer, ["a", "b"], dropout=1.0), "dropout"),
    (lambda m: TextClassifier(m.encoder, m.tokenizer, "ab"), "a list of labels, got one string"),
    (lambda m: BagOfWords(m.tokenizer, ["a", "a"]), "two different names"),
    (lambda m: TextClassifier(m.encoder, m.tokenizer, ["a"]), "two different names"),
    (lambda m: TextClassifier(m.encoder, m.tokenizer, ["a", "b"], pooling="max"), "'max'"),
])
def test_wrong_use_of_the_classifier_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call(small_classifier())


@pytest.mark.filterwarnings("ignore:1 of 3 texts are longer")
def test_texts_may_be_anything_that_gives_strings_or_pairs():
    model = small_classifier()
    texts = ["good", ("the soup", "was bad"), "soup " * 30]
    expected = model.prepare(texts, ["positive", "negative", "neutral"])
    assert model.prepare(iter(texts), iter(["positive", "negative", "neutral"])) == expected
    pair = model.tokenizer.encode("the soup", "was bad")
    assert expected[1].encoding == model.prepare([["the soup", "was bad"]])[0].encoding == pair
    np.testing.assert_array_equal(model.logits(np.array(["good", "bad"])),
                                  model.logits(["good", "bad"]))


def test_labels_that_came_from_numpy_are_python_s():
    model = TextClassifier(small_classifier().encoder, WordPieceTokenizer(WORDS),
                           np.unique([7, 5, 7]))
    assert [type(label) for label in model.labels] == [int, int]
    assert model.prepare(["good", "bad"], np.array([7, 5]))[0].label == 1
    assert model.predict(["good"])[0] in (5, 7)


def test_bag_of_words_counts_and_learns():
    tokenizer = WordPieceTokenizer(WORDS)
    np.testing.assert_array_equal(
        bag_of_words(np.array([[2, 5, 5]]), np.array([[1, 1, 1]]), 6), [[0, 0, 1, 0, 0, 2]])
    bag = BagOfWords(tokenizer, ["negative", "positive"])
    examples = bag.prepare(["good", "bad"] * 10, ["positive", "negative"] * 10)
    fit(bag, examples, examples, epochs=20, lr=0.05)
    assert bag.predict(["good soup", "bad soup"]) == ["positive", "negative"]


def test_the_classifier_that_lesson_06_shows_first_reads_word_order():
    from course import weights

    model = weights.sentiment()
    assert model.tokenizer is load_tokenizer()
    assert model.predict(["I expected a dull show but got a lovely one.",
                          "I expected a lovely show but got a dull one."]) == ["positive",
                                                                              "negative"]
    tokens, attention = model.attention("The hotel was not good but bad.")
    assert attention.shape == (2, 4, len(tokens), len(tokens))
    np.testing.assert_allclose(attention.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(softmax(model.logits(["good"])), model.probabilities(["good"]))
