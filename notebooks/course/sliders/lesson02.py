"""Lesson 02's sliders."""

from functools import cache
from itertools import combinations

import numpy as np

from course import weights as weights_of
from course.drawing import (
    BLANK,
    INK,
    LINE,
    PALETTE,
    SANS,
    SERIES,
    SOFT_INK,
    arcs,
    as_ink,
    bars,
    card,
    curves,
    heatmap,
    ink_on,
    label,
    mix,
    pixels,
    rect,
    shorten,
    side_by_side,
    text_width,
)
from course.explore import Choice, Range, Text, slider
from solutions.attention import scaled_dot_product_attention, softmax, split_heads
from solutions.multi_head import absorb_block

# --- The finished thing: four heads on one sentence, all weights chosen by hand -------------------

WORDS = ["The", "chef", "who", "met", "the", "pilot", "cooked"]
FEATURES = ("verb", "takes an object", "subject", "object", "kitchen", "cockpit", "east", "north")
HEADS = {"head 0: who did it": 0, "head 1: to whom": 1, "head 2: the next word": 2,
         "head 3: the word before": 3, "one head for everything": 4}
TURN = np.radians(30)  # each word stands 30 degrees further on a circle


@cache
def sentence_vectors():
    """(7 words, 8 numbers): what kind of word, what it means, and where it stands."""
    x = np.zeros((len(WORDS), len(FEATURES)))
    for word, names in {1: ("subject", "kitchen"), 3: ("verb", "takes an object"),
                        5: ("object", "cockpit"), 6: ("verb",)}.items():
        x[word, [FEATURES.index(name) for name in names]] = 1
    x[:, 6] = np.cos(TURN * np.arange(len(WORDS)))
    x[:, 7] = np.sin(TURN * np.arange(len(WORDS)))
    return x


@cache
def sentence_projections():
    """W_query, W_key, W_value, each (8, 8): head h owns columns 2h and 2h + 1."""
    query, key, value = np.zeros((8, 8)), np.zeros((8, 8)), np.zeros((8, 8))
    query[0, 0], key[2, 0] = 8, 1  # a verb asks for a subject
    query[1, 2], key[3, 2] = 8, 1  # a verb that takes an object asks for one
    for head, step in ((2, 1), (3, -1)):  # every word asks for the place one step on, or back
        own = slice(2 * head, 2 * head + 2)
        turned = [[np.cos(TURN), step * np.sin(TURN)], [-step * np.sin(TURN), np.cos(TURN)]]
        query[6:, own], key[6:, own] = 40 * np.array(turned), np.eye(2)
    for head in range(4):
        value[4:6, 2 * head:2 * head + 2] = np.eye(2)  # all hand over kitchen and cockpit
    return query, key, value


@slider(word=Range(0, len(WORDS) - 1, 1, start=6, label="word that looks",
                   words=lambda v: WORDS[v]),
        head=Choice(HEADS, label="head"), lesson="02")
def which_head(word, head):
    """Where one word looks, in one head of four, or in one head that has all their numbers."""
    x = sentence_vectors()[None]
    heads = 1 if head == 4 else 4
    query, key, value = (split_heads(x @ w, heads) for w in sentence_projections())
    output, weights = scaled_dot_product_attention(query, key, value)
    row = weights[0, 0 if head == 4 else head, word]
    found = output[0, 0, word, :2] if head == 4 else output[0, head, word]
    name = next(text for text, one in HEADS.items() if one == head)
    look = arcs(WORDS, row, word, title=f"“{WORDS[word]}” looks; {name}")
    taken = bars(found, ["kitchen", "cockpit"], title="what it takes over", vmax=1, width=110,
                 color=[SERIES[4], SERIES[5]])
    return side_by_side(look, taken, weights=row)


# --- One pattern or two ---------------------------------------------------------------------------

MEANING = {"chef": (1.0, 0.0), "met": (0.0, 0.0), "pilot": (0.0, 1.0)}


def vectors(sentence):
    """Three words as (kitchen, cockpit, place, action); the place of the verb is 0."""
    first, verb, last = sentence.split()
    return np.array([[*MEANING[first], -1.0, 0.0], [*MEANING[verb], 0.0, 1.0],
                     [*MEANING[last], 1.0, 0.0]])


def _found_by_met(sentence, queries):
    """What *met* takes over, (kitchen, cockpit) for each query, and the weights."""
    x = vectors(sentence)
    output, weights = scaled_dot_product_attention(np.array(queries, dtype=float), x, x[:, :2])
    return output.ravel(), weights


PAIRS = {"another on the left": ("chef met pilot", "pilot met pilot"),
         "another on the right": ("chef met pilot", "chef met chef"),
         "the two swapped": ("chef met pilot", "pilot met chef")}


@slider(lean=Range(-6.0, 6.0, 0.25, start=0.0, label="lean",
                   words=lambda v: ("both sides alike" if v == 0 else
                                    f"toward the {'left' if v < 0 else 'right'}")), lesson="02")
def one_head_leans(lean):
    """One pattern for *met*, leaning to one side; how well its output tells sentences apart."""
    _, weights = _found_by_met("chef met pilot", [[8, 8, lean, 0]])
    look = arcs(["chef", "met", "pilot"], weights[0], 1, title="One head of met")
    apart, names = [], []
    for name, (one, other) in PAIRS.items():
        for many, queries in (("one", [[8, 8, lean, 0]]),
                              ("two", [[0, 0, -12, 0], [0, 0, 12, 0]])):
            gap = _found_by_met(one, queries)[0] - _found_by_met(other, queries)[0]
            apart.append(float(np.linalg.norm(gap)))
            names.append(f"{name}, {many}")
    told = bars(apart, names, vmax=2.0, width=190,
                color=[PALETTE["weight"], PALETTE["reference"]] * len(PAIRS),
                title="How far met's output moves, one head or two")
    return side_by_side(look, told, weights=weights, apart=np.array(apart[::2]))


@slider(share=Range(0.0, 1.0, 0.05, start=0.0, label="key matrix",
                    words=lambda v: ("its own" if v == 0 else "the query's matrix" if v == 1 else
                                     f"{v:.0%} of the query's matrix")), lesson="02")
def shared_projection(share):
    """The key matrix slides toward the query matrix: *met* finds itself."""
    words, x = ["chef", "met", "pilot"], vectors("chef met pilot")
    w_query, w_key = np.array([[0.0], [0], [0], [3]]), np.array([[0.0], [0], [1], [0]])
    query, key = x @ w_query, x @ ((1 - share) * w_key + share * w_query)
    weights = softmax(query @ key.T)
    asks = {"row_title": "query", "column_title": "key"}
    scores = heatmap(query @ key.T, words, words, title="scores", vmax=9, fmt="{:.1f}", **asks)
    return side_by_side(scores, heatmap(weights, words, words, title="weights", **asks),
                        weights=weights)


# --- Which numbers go where -----------------------------------------------------------------------


def _grid(matrix, x, y, cell, tall):
    """Numbers in cells, each in the color of the token that it came from (8 numbers a token)."""
    parts = []
    for i, row in enumerate(matrix):
        for j, number in enumerate(row):
            fill = mix(SERIES[int(number) // 8], 0.45)
            parts.append(rect(x + j * cell, y + i * tall, cell - 1, tall - 1, fill, radius=2))
            parts.append(label(x + (j + 0.5) * cell, y + (i + 0.5) * tall + 4, int(number), size=11,
                               color=ink_on(fill), anchor="middle"))
    return parts


@slider(num_heads=Choice([1, 2, 4, 8], start=2, label="number of heads"),
        how=Choice(["reshape, then transpose", "reshape alone"], label="split by"), lesson="02")
def where_numbers_go(num_heads, how):
    """4 tokens of 8 numbers, 0 to 31, and which of them each head gets."""
    x = np.arange(32.0).reshape(1, 4, 8)
    width = 8 // num_heads
    right = how != "reshape alone"
    heads = split_heads(x, num_heads) if right else x.reshape(1, num_heads, 4, width)
    cell, tall, top = 27, 23, 20
    parts = [label(84, 14, "x", size=12, font=SANS)]
    for i in range(4):
        parts.append(label(76, top + i * tall + 16, f"token {i}", size=12, anchor="end"))
    parts += _grid(x[0], 84, top, cell, tall)
    left, step = 84 + 8 * cell + 46, 4 * tall + 30
    per_row = 2 if num_heads < 8 else 4
    for h in range(num_heads):
        at_x = left + (h % per_row) * (width * cell + 26 + (26 if width < 2 else 0))
        at_y = (h // per_row) * step
        parts.append(label(at_x, at_y + 14, f"head {h}", size=12, font=SANS))
        parts += _grid(heads[0, h], at_x, at_y + top, cell, tall)
    tokens = sorted({int(n) // 8 for n in heads[0, 0].ravel()})
    said = f"Head 0 has numbers of {len(tokens)} of 4 tokens: {', '.join(map(str, tokens))}."
    rows = -(-num_heads // per_row)
    parts.append(label(14, rows * step + 10, said, size=12, font=SANS, weight="600"))
    alt = (f"Four tokens of eight numbers, split into {num_heads} heads by {how}: shape "
           f"{x.shape} to {heads.shape}. {said} Head 0 holds {heads[0, 0].astype(int).tolist()}.")
    wide = left + per_row * (width * cell + 52) + 10
    return card(max(wide, 560), rows * step + 18, parts, alt,
                f"{x.shape} to {heads.shape}, by {how}", heads=heads)


# --- How many heads -------------------------------------------------------------------------------

CROWD = 12  # keys, whose numbers are random


@cache
def winners(num_heads, d_model=16):
    """(heads, keys) Booleans: whether some query of that head gives that key the highest score.

    Exact: a key that is a weighted mean of others scores between them, whatever the query; any
    other key stands at a corner, and some query finds it.
    """
    keys = np.random.default_rng(2).normal(size=(1, CROWD, d_model))
    heads = split_heads(keys, num_heads)[0]
    return np.array([[not _between(head[j], np.delete(head, j, axis=0)) for j in range(CROWD)]
                     for head in heads])


def _between(point, others):
    """Whether a point is a weighted mean of others; w + 1 of them are enough in w dimensions."""
    width = len(point)
    if len(others) < width + 1:
        return False  # so few random vectors never have another one between them
    chosen = np.array(list(combinations(range(len(others)), width + 1)))
    corners = np.swapaxes(others[chosen], -1, -2)  # (subsets, width, width + 1)
    shares = np.linalg.solve(
        np.concatenate([corners, np.ones((len(chosen), 1, width + 1))], axis=1),
        np.append(point, 1.0)[:, None])
    return bool((shares >= 0).all(axis=(1, 2)).any())


@slider(num_heads=Choice([1, 2, 4, 8, 16], start=4, label="number of heads"), lesson="02")
def number_of_heads(num_heads):
    """16 numbers a key, shared out among heads; which of twelve keys a head can single out."""
    can = winners(num_heads)
    each = can.sum(axis=1).mean()
    heads = f"{num_heads} head{'s' * (num_heads > 1)}"
    grid = heatmap(can.astype(float), [f"head {h}" for h in range(num_heads)], range(CROWD), fmt="",
                   cell=24, color=PALETTE["key"], column_title="key",
                   title=f"{heads} of width {16 // num_heads}: colored = can be singled out",
                   alt=f"{heads} of width {16 // num_heads}. A head can single out "
                       f"{each:.2f} of {CROWD} keys on average; the others never win.")
    pair = bars([num_heads, each], ["patterns at once", "keys a head can single out"],
                vmax=16, width=150, fmt="{:.4g}", color=[PALETTE["weight"], PALETTE["key"]],
                title="what you gain and lose")
    return side_by_side(grid, pair, down=True, can=can)


# --- Cross-attention ------------------------------------------------------------------------------

# (person, action, place), chosen by hand
QUESTION = {"who": (2.0, 0, 0), "flew": (0, 2.0, 0), "where": (0, 0, 2.0)}
PASSAGE = {"the": (0.0, 0, 0), "pilot": (2.0, 0, 0), "flew": (0, 2.0, 0), "to": (0, 0, 0.5),
           "Rome": (0, 0, 2.0)}
ASKS = {"the question asks the passage": (QUESTION, PASSAGE),
        "the passage asks the question": (PASSAGE, QUESTION),
        "the question asks itself": (QUESTION, QUESTION),
        "the passage asks itself": (PASSAGE, PASSAGE)}


@slider(who=Choice(list(ASKS), label="who asks whom"), lesson="02")
def cross_picture(who):
    """Weights between two texts: rows belong to the text that asks, columns to the one asked."""
    asking, asked = ASKS[who]
    x, memory = (np.array(list(text.values()), dtype=float) for text in (asking, asked))
    output, weights = scaled_dot_product_attention(2 * x, memory, memory)
    grid = heatmap(weights, list(asking), list(asked), title=f"weights {weights.shape}",
                   row_title="query", column_title="key")
    new = heatmap(output, list(asking), ["person", "action", "place"], vmax=2, fmt="{:.1f}",
                  title=f"output {output.shape}", color=PALETTE["value"])
    return side_by_side(grid, new, weights=weights)


# --- Cost -----------------------------------------------------------------------------------------

BERT_WIDTH = 768  # of BERT-base, which has 12 heads


@slider(length=Range(128, 8192, 64, start=512, label="length in tokens"),
        num_heads=Choice([1, 4, 12], start=12, label="number of heads"), lesson="02")
def cost_by_length(length, num_heads):
    """Multiplications and memory of one layer's attention at half, this, and double the length."""
    lengths = np.array([length / 2, length, length * 2])
    projections = 4 * lengths * BERT_WIDTH**2 / 1e9
    pairs = 2 * lengths**2 * BERT_WIDTH / 1e9
    memory = num_heads * lengths**2 * 4 / 1e6  # float32
    names = ["half as long", f"{length} tokens", "twice as long"]
    work = bars(np.stack([projections, pairs], axis=1).ravel(),
                [f"{name}, {part}" for name in names for part in ("projections", "pairs")],
                title="Billions of multiplications", width=190,
                color=[PALETTE["value"], PALETTE["weight"]] * 3)
    share = pairs[1] / (pairs[1] + projections[1])
    kept = bars(memory, names, title="Megabytes of attention weights", width=150, fmt="{:.1f}")
    note = card(310, 26, [label(14, 16, f"Pairs of tokens take {share:.0%} of the work.", size=13,
                                font=SANS, weight="600")],
                f"At {length} tokens, pairs of tokens take {share:.0%} of the multiplications.")
    return side_by_side(work, side_by_side(kept, note, down=True), multiplications=pairs,
                        memory=memory)


def fit_exponent(lengths, cost):
    """(exponent, factor) of cost = factor * length ** exponent, a straight line in logarithms."""
    slope, start = np.polyfit(np.log(lengths), np.log(cost), 1)
    return float(slope), float(np.exp(start))


def _sample():
    """Stands for a measurement where there is none: an exact square law."""
    lengths = np.array([128, 256, 512, 1024])
    return {"lengths": lengths, "megabytes": 5e-5 * lengths**2.0}


@slider(doublings=Range(7, 15, 1, start=12, label="doublings of the length",
                        words=lambda v: f"{2**v:,} tokens"), lesson="02", given=_sample)
def measured_cost(doublings, lengths, megabytes):
    """The memory that you measured, the line fitted to it, and where it leads at another length."""
    length = 2**doublings
    grid = np.array([100.0, 2**15])
    slope, factor = fit_exponent(lengths, megabytes)
    at = factor * float(length)**slope
    line = f"length to the power {slope:.2f}"
    return curves({"measured": (lengths, megabytes), line: (grid, factor * grid**slope)},
                  x_log=True, y_log=True, x_title="tokens", y_title="megabytes", size=(400, 220),
                  title=f"{length:,} tokens: {at:,.3g} megabytes" if at < 1000 else
                        f"{length:,} tokens: {at / 1000:,.3g} gigabytes",
                  colors={"measured": PALETTE["key"], line: SOFT_INK},
                  styles={"measured": "dots", line: "dashed"}, points=[(length, at, "")],
                  alt=f"Measured memory against length, on logarithmic axes, with a fitted line "
                      f"of slope {slope:.2f}. At {length} tokens the line says {at:.3g} megabytes.",
                  at=at)


# --- What training finds --------------------------------------------------------------------------


@slider(text=Text("The hotel was not bad but good.", label="a sentence", max_length=60),
        lesson="02", given=lambda: {"model": weights_of.sentiment()})
def trained_heads(text, model):
    """All heads of the classifier of lesson 00 on one sentence: who looks at whom."""
    tokens, attention = model.attention(text if text.strip() else "(nothing typed)")
    size = len(tokens)
    cell = max(3, min(14, 150 // size))
    left = 26 + max(text_width(shorten(token), 11) for token in tokens)
    every = -(-12 // cell)  # so many rows to a label, where rows are low
    parts, said = [], []
    for layer, heads in enumerate(attention):
        top = 26 + layer * (size * cell + 44)
        parts += [label(left - 6, top + (i + 0.5) * cell + 4, shorten(token), size=11,
                        anchor="end", color=as_ink(PALETTE["query"]))
                  for i, token in enumerate(tokens) if i % every == 0]
        for h, one in enumerate(heads):
            x = left + h * (max(size * cell, 110) + 24)
            parts.append(label(x, top - 8, f"layer {layer + 1}, head {h}", size=12, font=SANS,
                               weight="600"))
            shades = (one * (len(SHADES) - 1)).round().astype(int)
            parts.append(pixels([[SHADES[k] for k in row] for row in shades], x, top,
                                size * cell, size * cell))
            said.append(f"Layer {layer + 1}, head {h}: " + ", ".join(
                f"{token} at {tokens[row.argmax()]} {row.max():.2f}"
                for token, row in zip(tokens, one, strict=True)) + ".")
    high = len(attention) * (size * cell + 44)
    return card(x + max(size * cell, 110) + 14, high, parts, " ".join(said),
                "Each row asks, each column is asked, both in this order",
                weights=np.array(attention))


SHADES = [mix(PALETTE["weight"], 0.04 + 0.96 * share) for share in np.linspace(0, 1, 65)]


# --- In blocks ------------------------------------------------------------------------------------

ROW = np.array([1.0, 2.0, 0.0, 3.0, -1.0, 2.0, 6.0, 1.0, 0.0, 4.0, 2.0, 7.0])
CARRIED = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 8.0])


@slider(step=Range(0, 6, 1, start=1, label="blocks seen"), lesson="02")
def running_blocks(step, block=2):
    """One query's scores, two keys at a time: highest, sum and mean of what was seen so far."""
    highest, total, output = np.full((1, 1), -np.inf), np.zeros((1, 1)), np.zeros((1, 1))
    before = highest
    for start in range(0, step * block, block):
        part, before = slice(start, start + block), highest
        highest, total, output = absorb_block(highest, total, output, ROW[None, part],
                                              CARRIED[part, None])
    fade = f"{np.exp(before - highest)[0, 0]:.4f}" if step > 1 else "nothing summed yet"
    plain = float(softmax(ROW) @ CARRIED)
    mean = float(output[0, 0] / total[0, 0]) if step else 0.0
    parts = []
    for r, (name, row, color) in enumerate((("score", ROW, PALETTE["key"]),
                                            ("value", CARRIED, PALETTE["value"]))):
        parts.append(label(64, 22 + r * 30, name, size=12, anchor="end"))
        for j, number in enumerate(row):
            seen, now = j < step * block, (step - 1) * block <= j < step * block
            fill = BLANK if not seen else mix(color, 0.6 if now else 0.2)
            x = 74 + j * 38 + (j // block) * 8
            parts.append(rect(x, 6 + r * 30, 36, 26, fill, radius=3,
                              stroke=INK if now else LINE))
            parts.append(label(x + 18, 23 + r * 30, f"{number:g}".replace("-", "−"), size=12,
                               anchor="middle", color=ink_on(fill) if seen else SOFT_INK))
    lines = [("highest score so far", f"{highest[0, 0]:g}" if step else "−∞"),
             ("factor on what was summed before", fade),
             ("sum of exp(score − highest)", f"{total[0, 0]:.4f}"),
             ("mean of the values so far", f"{mean:.4f}" if step else "none yet"),
             ("mean by the plain softmax of all 12", f"{plain:.4f}")]
    for i, (name, value) in enumerate(lines):
        parts.append(label(300, 92 + 22 * i, name, size=12, anchor="end", font=SANS))
        parts.append(label(312, 92 + 22 * i, value, size=13, weight="600"))
    alt = (f"Twelve scores in blocks of {block}, {step} blocks seen. "
           + "; ".join(f"{name}: {value}" for name, value in lines) + ".")
    return card(74 + 12 * 38 + 6 * 8, 196, parts, alt, f"{step} of {len(ROW) // block} blocks seen",
                total=total, mean=mean, plain=plain,
                fade=float(np.exp(before - highest)[0, 0]) if step > 1 else 1.0)
