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
    "In town Washington signed it there": np.array(
        [[0.1, 0.1], [0.0, 1.2], [1.0, 1.0], [2.0, 0.0], [0.2, 0.2], [0.0, 1.2]]),
}


@slider(sentence=Choice(list(SENTENCES), label="sentence"),
        sharpness=Range(0.0, 4.0, 0.1, start=1.0, label="sharpness",
                        words=lambda v: "all words alike" if v == 0 else f"scores times {v:.1f}"),
        lesson="01")
def which_washington(sentence, sharpness):
    """What attention makes of Washington: where it looks, and the vector that comes out."""
    words, x = sentence.split(), SENTENCES[sentence]
    places = [i for i, word in enumerate(words) if word == "Washington"]
    output, weights = scaled_dot_product_attention(sharpness * x, x, x)
    look = arcs(words, weights[places[0]], places[0], title="Where Washington looks")
    names, numbers, colors = [], [1.0, 1.0], [PALETTE["reference"]] * 2
    for number, at in enumerate(places):
        after = "after" if len(places) == 1 else f"{('first', 'second')[number]}, after"
        names += [f"{after}: person", f"{after}: place"]
        numbers += list(output[at])
        colors += [PALETTE["PER"], PALETTE["LOC"]]
    person, place = output[places[0]]
    verdict = "neither" if abs(person - place) < 1e-9 else "person" if person > place else "place"
    # one word with one set of neighbors comes out as one vector
    leans = "Both vectors lean" if len(places) > 1 else "Its vector leans"
    after = bars(numbers, ["before: person", "before: place", *names], vmax=2.0, color=colors,
                 title=f"{leans} to: {verdict}")
    return side_by_side(look, after, weights=weights, output=output[places], verdict=verdict)


KEYS = {"fish": np.array([0.0, 1.2]), "bank": np.array([1.0, 0.8]), "money": np.array([1.3, 0.0])}


@slider(angle=Range(0, 355, 5, start=335, label="angle of the query",
                    words=lambda v: f"{v} degrees"),
        length=Range(0.0, 2.0, 0.1, start=1.0, label="length of the query"), lesson="01")
def query_direction(angle, length):
    """A query turned in the plane; the dot product with three keys and the softmax of it."""
    query = length * np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
    # at a right angle 0, not the dust that a sine of 180 degrees leaves
    scores = np.array([query @ key for key in KEYS.values()]).round(12) + 0.0
    weights = softmax(scores)
    arrows = plane([("query", query, PALETTE["query"])]
                   + [(name, key, PALETTE["key"]) for name, key in KEYS.items()],
                   title="Query and keys", limit=2.2, size=280)
    top = bars(scores, list(KEYS), title="dot products", vmin=-2.6, vmax=2.6, width=220,
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


@cache
def by_width(keys=8, tries=200, seed=0):
    """Means over many random queries, for widths of 1, 2, 4, ... 512 numbers.

    Returns {"divided by √d": parts, "not divided": parts}, each with `weights` (widths, keys) from
    the largest to the smallest, `slopes` of the same places and `spread` (widths,): how many keys
    with equal weights would be as widely spread, exp of the entropy.
    """
    rng = np.random.default_rng(seed)
    found = {name: {"weights": [], "slopes": [], "spread": []}
             for name in ("divided by √d", "not divided")}
    for width in WIDTHS:
        scores = np.einsum("td,tkd->tk", rng.normal(size=(tries, width)),
                           rng.normal(size=(tries, keys, width)))
        for name, divisor in zip(found, (np.sqrt(width), 1.0), strict=True):
            weights = np.sort(softmax(scores / divisor), axis=-1)[:, ::-1]
            slopes = [softmax_backward(np.tile(one, (tries, 1)), weights) @ one
                      for one in np.eye(keys)]
            found[name]["weights"].append(weights.mean(axis=0))
            found[name]["slopes"].append(np.mean(slopes, axis=1))
            found[name]["spread"].append(np.exp(entropy(weights)).mean())
    return {name: {part: np.array(rows) for part, rows in parts.items()}
            for name, parts in found.items()}


WIDTHS = [2**i for i in range(10)]


@slider(doublings=Range(0, 9, 1, start=2, label="doublings of the width",
                        words=lambda v: f"d = {2**v}"), lesson="01")
def width_picture(doublings):
    """Weights, slopes and spread of random queries at one width, scores divided by √d and not."""
    found, rows = by_width(), []
    names = ["largest", "2nd", "3rd"] + [f"{n}th" for n in range(4, 9)]
    for name, parts in found.items():
        weights, slopes = parts["weights"][doublings], parts["slopes"][doublings]
        rows.append(side_by_side(
            bars(weights, names, vmax=1, width=120, title=f"Weights, {name}"),
            bars(slopes, names, vmax=0.2, width=100, fmt="{:.3f}", color=PALETTE["value"],
                 title="Their slopes")))
    spread = curves({name: parts["spread"] for name, parts in found.items()}, x=WIDTHS, x_log=True,
                    x_title="width d", y_title="keys", y_limits=(0, 8), size=(230, 330),
                    title="About so many of 8 keys",
                    points=[(WIDTHS[doublings], parts["spread"][doublings],
                             f"{parts['spread'][doublings]:.1f}") for parts in found.values()])
    shown = {part: np.array([parts[part][doublings] for parts in found.values()])
             for part in ("weights", "slopes", "spread")}
    return side_by_side(side_by_side(*rows, down=True), spread, **shown)


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
                   column_title="key")
    sums = bars(weights.sum(axis=-1), MASK_WORDS, vmax=1, width=160, title="sum of each row",
                color=PALETTE["weight"])
    facts = {"weights": weights, "mask": mask} if order.startswith("before") else {}
    return side_by_side(grid, sums, **facts)
