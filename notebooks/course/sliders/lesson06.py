"""Lesson 06's sliders."""

from functools import cache

import numpy as np

from course import weights
from course.drawing import (
    PALETTE,
    bars,
    curves,
    heatmap,
    side_by_side,
    token_strip,
)
from course.explore import Range, Text, slider
from course.texts import load_tokenizer
from course.texts.generators import _with_article as with_article
from solutions.attention import softmax
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.text_classification import (
    TextClassifier,
    calibration_error,
    cls_pool,
    confusion_matrix,
    mean_pool,
)

LABELS = ("negative", "neutral", "positive")
COLORS = {name: PALETTE[name] for name in LABELS}


def _label_bars(probabilities, labels, title):
    return bars(probabilities, labels, vmax=1, width=240, title=title,
                color=[COLORS.get(name, PALETTE["weight"]) for name in labels],
                probabilities=np.asarray(probabilities))


def _words(text):
    """The text, or a stand-in for an empty one."""
    return text if text.strip() else "(nothing typed)"


@slider(text=Text("I expected a dull show but got a lovely one.", label="a sentence",
                  max_length=200),
        lesson="06", given=lambda: {"model": weights.sentiment()})
def read_a_sentence(text, model):
    """The classes that a trained classifier gives a sentence, and where its [CLS] looks.

    The last layer's [CLS] reads places that have read the words before, so one look says little:
    the second strip shows where the place that it reads most had looked, one layer earlier.
    """
    if not text.strip():
        return token_strip(["nothing typed yet"], title="Type a sentence")
    probabilities = model.probabilities([text])[0]
    tokens, attention = model.attention(text)
    look = attention[-1].mean(axis=0)[0]  # last layer, mean over heads, the row of [CLS]
    most = int(look.argmax())
    before = attention[-2].mean(axis=0)[most]
    verdict = model.labels[int(probabilities.argmax())]
    return side_by_side(
        _label_bars(probabilities, model.labels, f"It says: {verdict}"),
        token_strip(tokens, look, vmax=max(look.max(), 1e-9), weights=look,
                    title=f"Layer {len(attention)}: where [CLS] looks"),
        token_strip(tokens, before, vmax=max(before.max(), 1e-9), before=before, most=most,
                    title=f"Layer {len(attention) - 1}: where “{tokens[most]}”, read most above, "
                          "had looked"),
        down=True)


def expectations(first, second):
    """"I expected a ... show but got a ... one." with each pair of adjectives from two lists."""
    return [f"I expected {with_article(a)} show but got {with_article(b)} one."
            for a in first for b in second]


SENTENCE = "This movie was fantastic!"


def random_classifier(seed):
    """An encoder and a head that nobody has trained; the small size keeps it quick."""
    tokenizer = load_tokenizer()
    config = EncoderConfig(vocab_size=len(tokenizer), d_model=32, num_layers=1, num_heads=2,
                           d_ff=64, max_length=32)
    # weights ten times BERT's starting size, so that the noise can be seen
    params = {name: array * (1 if name.endswith(("gamma", "beta", "bias")) else 10)
              for name, array in init_params(config, seed).items()}
    model = TextClassifier(Encoder(config, params), tokenizer, LABELS, seed=seed)
    model.params["head.weight"] *= 10
    return model


@cache
def random_probabilities(seed):
    """What the random classifier of one seed says about SENTENCE."""
    return random_classifier(seed).probabilities([SENTENCE])[0]


@slider(seed=Range(0, 200, 1, start=0, label="seed"), lesson="06")
def random_verdict(seed):
    """An untrained classifier's answer for one seed."""
    probabilities = random_probabilities(seed)
    verdict = LABELS[int(probabilities.argmax())]
    return _label_bars(probabilities, LABELS, f"Seed {seed}: {SENTENCE} is {verdict}")


@slider(padding=Range(0, 8, 1, start=2, label="tokens of padding"), lesson="06")
def pooling_picture(padding):
    """A text of four tokens and some padding, pooled in three ways; all vectors are random."""
    tokens = ["[CLS]", "not", "bad", "[SEP]"] + ["[PAD]"] * padding
    every = np.random.default_rng(6).normal(size=(12, 4))
    vectors, mask = every[:len(tokens)], np.arange(len(tokens)) < 4
    pooled = np.stack([cls_pool(vectors[None])[0], mean_pool(vectors[None], mask[None])[0],
                       vectors.mean(axis=0)])
    alone = np.stack([every[0], every[:4].mean(axis=0), every[:4].mean(axis=0)])
    moved = np.linalg.norm(pooled - alone, axis=1)
    ways = ["[CLS]", "mean, real tokens", "mean, all tokens"]
    look = {"vmin": -2.5, "vmax": 2.5, "color": PALETTE["value"], "fmt": "{:+.2f}"}
    names = [f"no. {i}" for i in range(4)]
    frames = [(i, j) for i in range(4, len(tokens)) for j in range(4)]  # what may leak in
    left = heatmap(vectors, tokens, names, title="vectors; framed: padding", marks=frames, **look,
                   alt=f"Vectors of {len(tokens)} tokens, {padding} of them padding.")
    right = side_by_side(
        heatmap(pooled, ways, names, title="pooled", **look),
        bars(moved, ways, vmax=1, width=150, color=PALETTE["weight"],
             title="how far from the vector without padding"), down=True)
    return side_by_side(left, right, pooled=pooled, moved=moved)


def _toy_forecasts():
    """Forecasts of an overconfident classifier, for the sweeps and for readers without a model."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 150)
    logits = rng.normal(size=(150, 3)) * 1.5
    logits[np.arange(150), true] += 1.2
    return {"logits": logits * 2, "true": true, "labels": list(LABELS)}


@slider(threshold=Range(0.0, 1.0, 0.01, start=0.5, label="threshold",
                        words=lambda v: f"call it positive from {v:.2f} on"),
        lesson="06", given=_toy_forecasts)
def threshold_picture(threshold, logits, true, labels):
    """Precision and recall of "positive" as the threshold moves, and the four kinds of case."""
    score = softmax(logits)[:, labels.index("positive")]
    is_positive = np.asarray(true) == labels.index("positive")
    grid = np.linspace(0, 1, 101)
    precision, recall = np.array([_precision_recall(score >= t, is_positive) for t in grid]).T
    now = _precision_recall(score >= threshold, is_positive)
    table = confusion_matrix(is_positive.astype(int), (score >= threshold).astype(int), 2)
    said = (f"recall {now[1]:.2f}, nothing is called positive" if np.isnan(now[0]) else
            f"precision {now[0]:.2f}, recall {now[1]:.2f}")
    left = curves({"precision": precision, "recall": recall}, x=grid, x_title="threshold",
                  title=said.capitalize(), y_limits=(0, 1.02), size=(330, 190),
                  colors={"precision": PALETTE["mine"], "recall": PALETTE["key"]},
                  verticals=[(threshold, "")],
                  points=[(threshold, value, "") for value in now if np.isfinite(value)],
                  alt=f"At threshold {threshold:.2f}: {said}.")
    right = heatmap(table, ["other", "positive"], ["not called", "called"], vmax=len(is_positive),
                    fmt="{:.0f}", title="How many of each", row_title="true",
                    column_title="positive", cell=90)
    return side_by_side(left, right)


def _precision_recall(called, is_positive):
    hits = np.sum(called & is_positive)
    return (hits / called.sum() if called.any() else np.nan,
            hits / is_positive.sum() if is_positive.any() else 0.0)


@slider(temperature=Range(0.2, 5.0, 0.1, start=1.0, label="temperature",
                          words=lambda v: f"logits divided by {v:.1f}"),
        lesson="06", given=_toy_forecasts)
def calibration_picture(temperature, logits, true, labels):
    """Confidence against being right, in five bins, after a temperature."""
    probabilities = softmax(logits / temperature)
    confidence = probabilities.max(axis=-1)
    right = probabilities.argmax(axis=-1) == np.asarray(true)
    bin_of = np.minimum((confidence * 5).astype(int), 4)
    centers, shares = [], []
    for b in range(5):
        if (bin_of == b).any():
            centers.append(confidence[bin_of == b].mean())
            shares.append(right[bin_of == b].mean())
    error = calibration_error(probabilities, np.asarray(true), bins=5)
    return curves({"as sure as right": ([0, 1], [0, 1]), "this classifier": (centers, shares)},
                  x_title="confidence", y_title="share right", y_limits=(0, 1.02), size=(300, 220),
                  colors={"as sure as right": PALETTE["reference"],
                          "this classifier": PALETTE["mine"]},
                  styles={"as sure as right": "dashed", "this classifier": "dots"},
                  title=f"Off by {error:.2f} on average", probabilities=probabilities)


@slider(text=Text("The hotel was not good but bad.", label="a sentence",
                  max_length=200),
        layer=Range(1, 2, 1, start=1, label="layer"),
        lesson="06", given=lambda: {"model": weights.sentiment()})
def cls_attention(text, layer, model):
    """The attention of [CLS] on the words: all heads of one layer."""
    tokens, attention = model.attention(_words(text))
    looks = attention[layer - 1][:, 0]  # (heads, tokens)
    probabilities = model.probabilities([_words(text)])[0]
    best = int(probabilities.argmax())
    return side_by_side(*(
        token_strip(tokens, look, vmax=max(look.max(), 1e-9), weights=look,
                    title=f"Layer {layer}, head {head}" + (
                        "" if head > 1 else f"; the classifier says {model.labels[best]} "
                                            f"({probabilities[best]:.2f})"))
        for head, look in enumerate(looks, start=1)), down=True, gap=4, weights=looks)
