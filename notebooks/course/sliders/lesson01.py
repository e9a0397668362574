"""Lesson 01's sliders."""

from functools import cache

import numpy as np

from course.drawing import PALETTE, arcs, bars, curves, heatmap, plane, side_by_side
from course.explore import Choice, Range, slider
from solutions.attention import (
    causal_mask,
    entropy,
    scaled_dot_product_attention,
    softmax,
    softmax_backward,
)

# Two numbers a word, (person, place), chosen by hand.
SENTENCES = {
    "Washington signed it": np.array([[1.0, 1.0], [2.0, 0.0], [0.2, 0.2]]),
    "flew to Washington": np.array([[0.0, 2.0], [0.2, 0.2], [1.0, 1.0]]),
    "Washington flew to Washington": np.array([[1.0, 1.0], [0.0, 2.0], [0.2, 0.2], [1.0, 1.0]]),
}


@slider(sentence=Choice(list(SENTENCES), label="sentence"),
        sharpness=Range(0.0, 4.0, 0.1, start=1.0, label="sharpness",
                        words=lambda v: "all words alike" if v == 0 else f"scores times {v:.1f}"),
        lesson="01")
def which_washington(sentence, sharpness):
    """What attention makes of Washington: where it looks, and the vector that comes out."""
    words, x = sentence.split(), SENTENCES[sentence]
    at = words.index("Washington")
    output, weights = scaled_dot_product_attention(sharpness * x, x, x)
    person, place = output[at]
    verdict = "neither" if abs(person - place) < 1e-9 else "person" if person > place else "place"
    look = arcs(words, weights[at], at, title="Where Washington looks")
    after = bars([1.0, 1.0, person, place],
                 ["before: person", "before: place", "after: person", "after: place"],
                 title=f"Its vector leans to: {verdict}", vmax=2.0,
                 color=[PALETTE["reference"]] * 2 + [PALETTE["PER"], PALETTE["LOC"]])
    return side_by_side(look, after, weights=weights)


KEYS = {"fish": np.array([0.2, 1.2]), "bank": np.array([1.0, 0.9]), "money": np.array([1.3, 0.0])}


@slider(angle=Range(0, 355, 5, start=335, label="angle of the query",
                    words=lambda v: f"{v} degrees"),
        length=Range(0.0, 3.0, 0.1, start=1.0, label="length of the query"), lesson="01")
def query_direction(angle, length):
    """A query turned in the plane; the dot product with three keys and the softmax of it."""
    query = length * np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
    scores = np.array([query @ key for key in KEYS.values()])
    weights = softmax(scores)
    arrows = plane([("query", query, PALETTE["query"])]
                   + [(name, key, PALETTE["key"]) for name, key in KEYS.items()],
                   title="Query and keys", limit=3.2, size=280)
    top = bars(scores, list(KEYS), title="dot products", vmin=-4, vmax=4, width=220,
               color=PALETTE["key"])
    low = bars(weights, list(KEYS), title="weights (softmax)", vmax=1, width=220)
    return side_by_side(arrows, side_by_side(top, low, down=True), weights=weights)


SCORES = np.array([2.0, 1.0, 0.0, -1.0])


@slider(temperature=Range(0.1, 5.0, 0.1, start=1.0, label="temperature",
                          words=lambda v: f"scores divided by {v:.1f}"), lesson="01")
def temperature_picture(temperature):
    """The softmax of four fixed scores, divided by a temperature first."""
    weights = softmax(SCORES / temperature)
    spread = float(entropy(weights))
    names = [f"score {s:+.0f}".replace("-", "−") for s in SCORES]
    return bars(weights, names, vmax=1, weights=weights,
                title=f"Spread over about {np.exp(spread):.1f} keys of {len(SCORES)}")


@slider(width=Range(1, 512, 1, start=64, label="width d"),
        scaled=Choice(["divided by √d", "not divided"], label="scores"), lesson="01")
def width_picture(width, scaled):
    """Weights of one random query over eight random keys, and what softmax lets back through."""
    rng = np.random.default_rng(3)
    query, keys = rng.normal(size=512)[:width], rng.normal(size=(8, 512))[:, :width]
    scores = keys @ query / (np.sqrt(width) if scaled.startswith("divided") else 1.0)
    weights = softmax(scores)
    slope = np.abs(np.diag(softmax_backward(np.eye(8), np.tile(weights, (8, 1)))))
    names = [f"key {i}" for i in range(8)]
    left = bars(weights, names, vmax=1, width=220,
                title=f"weights: about {np.exp(float(entropy(weights))):.1f} of 8 keys")
    right = bars(slope, names, vmax=0.25, width=220, fmt="{:.4f}", color=PALETTE["value"],
                 title="slope of each weight")
    return side_by_side(left, right, weights=weights)


MASK_WORDS = ["they", "flew", "to", "Rome", "[PAD]", "[PAD]"]


@slider(padding=Choice(["off", "on"], label="padding mask"),
        causal=Choice(["off", "on"], label="causal mask"),
        order=Choice(["before the softmax", "after the softmax"], label="applied"), lesson="01")
def mask_picture(padding, causal, order):
    """Attention of six tokens under two masks, applied at the right or at the wrong moment."""
    x = np.random.default_rng(5).normal(size=(6, 4))
    mask = np.ones((6, 6), dtype=bool)
    if padding == "on":
        mask &= np.array([True] * 4 + [False] * 2)
    if causal == "on":
        mask &= causal_mask(6)
    if order.startswith("before"):
        weights = scaled_dot_product_attention(x, x, x, mask)[1]
    else:
        weights = scaled_dot_product_attention(x, x, x)[1] * mask
    grid = heatmap(weights, MASK_WORDS, MASK_WORDS, mask=mask, title="weights", row_title="query",
                   column_title="key", row_color=PALETTE["query"], column_color=PALETTE["key"])
    sums = bars(weights.sum(axis=-1), MASK_WORDS, vmax=1, width=160, title="sum of each row",
                color=PALETTE["weight"])
    facts = {"weights": weights, "mask": mask} if order.startswith("before") else {}
    return side_by_side(grid, sums, **facts)


@slider(width=Range(1, 512, 1, start=64, label="mark the width"), lesson="01")
def entropy_by_width(width):
    """Spread of attention over 32 keys against the width, scaled and not."""
    widths, plain, scaled = spread_by_width()
    at = int(np.argmin(np.abs(widths - width)))
    return curves({"not divided": plain, "divided by √d": scaled}, x=widths, x_log=True,
                  x_title="width d", y_title="entropy (nats)", y_limits=(0, 3.7),
                  title="How widely a query spreads over 32 keys",
                  lines=[(float(np.log(32)), "all keys alike")],
                  verticals=[(width, f"d = {width}")],
                  points=[(widths[at], plain[at], f"{plain[at]:.2f}"),
                          (widths[at], scaled[at], f"{scaled[at]:.2f}")])


@cache
def spread_by_width(widths=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512), keys=32, tries=200, seed=0):
    """Mean entropy of the weights of random unit-scale queries: widths, unscaled, scaled."""
    rng = np.random.default_rng(seed)
    plain, scaled = [], []
    for width in widths:
        scores = np.einsum("td,tkd->tk", rng.normal(size=(tries, width)),
                           rng.normal(size=(tries, keys, width)))
        plain.append(entropy(softmax(scores)).mean())
        scaled.append(entropy(softmax(scores / np.sqrt(width))).mean())
    return np.array(widths), np.array(plain), np.array(scaled)
