"""Lesson 10's slider: a pair of the reader's, through the frozen encoder and a linear head."""

from functools import cache

import numpy as np

from course.drawing import PALETTE, bars
from course.exercises.lesson10 import pair_features
from course.explore import Text, slider
from course.sliders.lesson09 import stand_in
from course.texts.pairs import LABELS
from solutions.attention import softmax
from solutions.pretrained import sentence_vectors

COLORS = [PALETTE["value"], PALETTE["key"], PALETTE["reference"]]
SURE = 4.0  # by how much the scores of least squares, near 0 and 1, are stretched for the softmax


def linear_head(features, labels, strength=300.0):
    """{"weight", "bias"} of the linear layer that `linear_probe` solves for, in one piece.

    features: (n, width). labels: (n,) class numbers. `features @ weight + bias` are scores whose
    largest is linear_probe's answer; they are stretched, so that a softmax makes bars of them.
    """
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    deviation = np.where(deviation == 0, 1, deviation)
    scaled = (features - mean) / deviation
    targets = np.eye(len(LABELS), dtype=features.dtype)[labels]
    shift = targets.mean(axis=0)
    ridge = scaled.T @ scaled + strength * np.eye(scaled.shape[1], dtype=features.dtype)
    weight = np.linalg.solve(ridge, scaled.T @ (targets - shift)) / deviation[:, None]
    return {"weight": SURE * weight, "bias": SURE * (shift - mean @ weight)}


@cache
def _stand_in():
    """Random weights in the shape that a lesson's head has."""
    encoder, tokenizer = stand_in()
    weight = np.random.default_rng(0).normal(size=(4 * encoder.config.d_model, len(LABELS)))
    return {"encoder": encoder, "tokenizer": tokenizer, "features": pair_features,
            "weight": weight, "bias": np.zeros(3)}  # fmt: skip


@slider(
    first=Text("Nobody in the office speaks Finnish.", label="first sentence", max_length=120),
    second=Text("One colleague in the office speaks Finnish.", label="second", max_length=120),
    lesson="10",
    given=_stand_in,
)
def pair_picture(first, second, encoder, tokenizer, features, weight, bias):
    """How strongly a linear head on `features` is for each relation of the reader's sentences."""
    u, v = sentence_vectors(encoder, tokenizer, [first, second])
    probabilities = softmax((features(u[None], v[None]) @ weight + bias)[0])
    return bars(probabilities, LABELS, vmax=1, color=COLORS, title="Second, given the first",
                probabilities=probabilities)  # fmt: skip
