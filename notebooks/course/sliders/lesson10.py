"""Lesson 10's slider: a pair of the reader's, through the frozen encoder and a probe."""

from functools import cache

import numpy as np

from course.drawing import PALETTE, bars
from course.explore import Text, slider
from course.sliders.lesson09 import stand_in
from course.texts.pairs import LABELS
from solutions.attention import softmax
from solutions.pretrained import sentence_vectors

COLORS = [PALETTE["value"], PALETTE["key"], PALETTE["reference"]]


@cache
def _stand_in():
    """Random weights in the shape that a lesson's probe has."""
    encoder, tokenizer = stand_in()
    weight = np.random.default_rng(0).normal(size=(4 * encoder.config.d_model, len(LABELS)))
    return {"encoder": encoder, "tokenizer": tokenizer, "weight": weight, "bias": np.zeros(3)}


@slider(
    first=Text("Nobody in the office speaks Finnish.", label="first sentence", max_length=120),
    second=Text("One colleague in the office speaks Finnish.", label="second", max_length=120),
    lesson="10",
    given=_stand_in,
)
def pair_picture(first, second, encoder, tokenizer, weight, bias):
    """How likely a linear head finds each of the three relations, for sentences of the reader's."""
    u, v = sentence_vectors(encoder, tokenizer, [first, second])
    features = np.concatenate([u, v, np.abs(u - v), u * v])
    probabilities = softmax(features @ weight + bias)
    return bars(probabilities, LABELS, vmax=1, color=COLORS, title="Second, given the first",
                probabilities=probabilities)  # fmt: skip
