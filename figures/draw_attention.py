"""Attention as a table and as arrows, the masks, and how heads are split, used and merged."""

import numpy as np
from kit import (
    BLANK,
    GREY,
    INK,
    LINE,
    MARGIN,
    PALETTE,
    SOFT_INK,
    arrow,
    cell,
    dark,
    frame,
    grid,
    hatch,
    label,
    lines,
    mix,
    number,
    pale,
    path,
    rect,
    say,
    sheet,
    tip,
)

from solutions.attention import (
    causal_mask,
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    softmax,
    split_heads,
)

QUERY, KEY, VALUE, WEIGHT = (PALETTE[role] for role in ("query", "key", "value", "weight"))

# The tiny example of both figures: three tokens, two numbers a vector. `sat` asks.
TOKENS = ["the", "cat", "sat"]
QUERIES = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.5]])
KEYS = np.array([[0.0, 1.0], [1.5, 1.0], [0.5, -0.5]])
VALUES = np.array([[0.0, 2.0], [2.0, 1.0], [1.0, 0.0]])
ASKS = 2


def _example():
    output, weights = scaled_dot_product_attention(QUERIES, KEYS, VALUES)
    return QUERIES @ KEYS.T, weights, output


def _vector(x, y, values, color, *, digits=1, width=42, height=26):
    return grid(x, y, [values], width=width, height=height, fill=pale(color), stroke=color,
                digits=digits)


def _pair(values, digits=2):
    return f"({number(values[0], digits)}, {number(values[1], digits)})"


def table():
    """Scaled dot-product attention of one query, row by row; then all queries at once."""
    products, weights, output = _example()
    scores, row = products / np.sqrt(2), weights[ASKS]
    query, asks = QUERIES[ASKS], TOKENS[ASKS]
    columns = {"key": 124, "product": 278, "scaled": 408, "weight": 526, "value": 652, "part": 762}
    heads = [("key", "key", "", KEY), ("product", "query · key", "how well it fits", INK),
             ("scaled", "÷ √2", "scale", INK), ("weight", "softmax", "weight", WEIGHT),
             ("value", "value", "", VALUE), ("part", "share", "weight × value", VALUE)]
    parts = [say(MARGIN, 88, f"“{asks}” asks with its query", size=13, weight="600",
                 color=dark(QUERY, 0.85)),
             _vector(228, 70, query, QUERY)]
    for name, title, under, color in heads:
        parts.append(say(columns[name], 132, title, size=13, weight="600", anchor="middle",
                         color=dark(color) if color != INK else INK))
        if under:
            parts.append(say(columns[name], 149, under, size=11, anchor="middle", color=SOFT_INK))
    parts.append(path([(270, 97), (270, 116)], QUERY, head=True))
    top, step = 158, 42
    for i, token in enumerate(TOKENS):
        y = top + i * step
        middle = y + step / 2 + 4.5
        parts.append(f'<line x1="{MARGIN}" x2="{840 - MARGIN}" y1="{y}" y2="{y}" stroke="{LINE}"/>')
        parts.append(label(MARGIN + 2, middle, token, size=14, weight="600"))
        parts.append(_vector(columns["key"] - 42, y + 8, KEYS[i], KEY))
        sum_of = " + ".join(f"{number(a, 1)}·{number(b, 1)}" for a, b in zip(query, KEYS[i]))
        parts.append(label(columns["product"], middle, f"{sum_of} = {number(products[ASKS, i])}",
                           size=12, anchor="middle"))
        parts.append(label(columns["scaled"], middle, number(scores[ASKS, i]), size=13,
                           anchor="middle"))
        parts.append(rect(476, y + 9, 100, 24, BLANK, radius=3))
        parts.append(rect(476, y + 9, 100 * row[i], 24, mix(WEIGHT, 0.8), radius=3))
        inside = row[i] > 0.5
        parts.append(label(482 if inside else 482 + 100 * row[i], middle, number(row[i]), size=13,
                           color="#ffffff" if inside else INK, weight="600"))
        parts.append(_vector(columns["value"] - 42, y + 8, VALUES[i], VALUE))
        parts.append(_vector(columns["part"] - 46, y + 8, row[i] * VALUES[i], VALUE, digits=2,
                             width=46))
    y = top + 3 * step
    parts.append(f'<line x1="{MARGIN}" x2="{840 - MARGIN}" y1="{y}" y2="{y}" stroke="{INK}"/>')
    parts.append(say(columns["weight"], y + 28, f"sum {number(row.sum())}", anchor="middle"))
    parts.append(grid(columns["part"] - 46, y + 9, [output[ASKS]], width=46, height=28,
                      fill=mix(VALUE, 0.35), stroke=VALUE, size=13))
    parts.append(say(columns["part"] - 54, y + 28, f"sum = new “{asks}”", anchor="end", size=12,
                     weight="600", color=dark(VALUE, 0.6)))
    parts.append(_matrices(y + 96, scores, weights, output))
    details = (
        f"Attention as a table, for the query of “{asks}”, {_pair(query, 1)}. " + " ".join(
        f"Key of “{t}” {_pair(k, 1)}: dot product {number(p)}, divided by √2 {number(s)}, "
        f"weight {number(w)}, value {_pair(v, 1)}." for t, k, p, s, w, v in
        zip(TOKENS, KEYS, products[ASKS], scores[ASKS], row, VALUES))
        + f" The weights sum to {number(row.sum())}; the weighted sum of the values is "
        f"{_pair(output[ASKS])}. Below, all three queries at once as matrix products."
    )
    return sheet(548, parts, question="How does one token gather from the others?",
                 details=details,
                 alt="The calculation as a table: scores, scaling, softmax, weights, and the "
                     "weighted sum of the values.",
                 answer="Its query meets every key; the softmax turns scores into weights; "
                        "the weights mix the values.")


def _matrices(top, scores, weights, output):
    """The same numbers for all queries: the matrices in a row, the row of the query framed."""
    parts = [say(MARGIN, top - 12, "All three queries at once", size=13, weight="600"),
             label(MARGIN + 190, top - 12, "weights = softmax(query @ key.T / √2)", size=12,
                   color=dark(WEIGHT)),
             label(MARGIN + 480, top - 12, "output = weights @ value", size=12, color=dark(VALUE))]
    y, x, wide, tall = top + 30, 64, 37, 26
    for i, token in enumerate(TOKENS):
        parts.append(label(x - 8, y + i * tall + 18, token, size=12, anchor="end"))
    plan = [("query", QUERIES, QUERY, 1), ("key.T", KEYS.T, KEY, 1), ("scores", scores, GREY, 2),
            ("weights", weights, WEIGHT, 2), ("value", VALUES, VALUE, 1),
            ("output", output, VALUE, 2)]
    gaps = [26, 48, 58, 26, 26, 0]
    signs = ["@", "÷√2 =", "softmax", "@", "=", ""]
    for (name, matrix, color, digits), gap, sign in zip(plan, gaps, signs):
        n, m = matrix.shape
        high = y + (3 - n) * tall / 2
        if name == "weights":
            def fill(i, j):
                return mix(WEIGHT, 0.06 + 0.9 * weights[i, j])
        else:
            fill = mix(VALUE, 0.35) if name == "output" else pale(color)
        parts.append(grid(x, high, matrix, width=wide, height=tall, fill=fill, digits=digits,
                          stroke=color, size=11.5))
        if name not in ("key.T", "value"):
            parts.append(frame(x - 2, high + ASKS * tall - 1, m * wide + 4, tall + 2, INK,
                               radius=4))
        for j, token in enumerate(TOKENS if m == 3 else ()):
            parts.append(label(x + (j + 0.5) * wide, high - 7, token, size=11, anchor="middle",
                               color=SOFT_INK))
        parts.append(label(x + m * wide / 2, y + 3 * tall + 20, name, size=12, weight="600",
                           anchor="middle", color=dark(color, 0.6)))
        parts.append(label(x + m * wide / 2, y + 3 * tall + 37, f"({n}, {m})", size=11,
                           anchor="middle", color=SOFT_INK))
        x += m * wide
        if sign == "softmax":
            parts.append(label(x + gap / 2, y + 1.5 * tall - 8, sign, size=11, anchor="middle"))
            parts.append(path([(x + 10, y + 1.5 * tall), (x + gap - 8, y + 1.5 * tall)], INK))
        elif sign:
            parts.append(label(x + gap / 2, y + 1.5 * tall + 4, sign, size=12, anchor="middle",
                               weight="600"))
        x += gap
    return "".join(parts)


def arrows():
    """The same example as a picture: the query goes out to the keys, the values come back."""
    products, weights, output = _example()
    scores, row = products[ASKS] / np.sqrt(2), weights[ASKS]
    asks, centers = TOKENS[ASKS], [110, 278, 446]
    parts = [rect(178, 76, 200, 34, pale(QUERY), stroke=QUERY, radius=6, stroke_width=1.4),
             label(278, 98, f"query of {asks} {_pair(QUERIES[ASKS], 1)}", size=12, anchor="middle",
                   weight="600")]
    parts.append(say(MARGIN, 145, "scores", size=12.5, weight="600", color=dark(QUERY, 0.85)))
    parts.append(say(MARGIN, 311, "weights", size=12.5, weight="600", color=WEIGHT))
    for i, x in enumerate(centers):
        parts.append(arrow(278 + (i - 1) * 50, 112, x, 172, QUERY, width=1.6))
    for i, (x, token) in enumerate(zip(centers, TOKENS)):
        side = (278 + (i - 1) * 50 + x) / 2
        parts.append(rect(side - 36, 130, 72, 20, "#fcfcfa", radius=3))
        parts.append(label(side, 145, number(scores[i]), size=12, anchor="middle",
                           color=dark(QUERY, 0.85), weight="600"))
        parts.append(rect(x - 70, 174, 140, 96, "#ffffff", stroke=LINE, radius=8))
        parts.append(label(x, 196, token, size=15, weight="600", anchor="middle"))
        for y, name, vector, color in ((206, "key", KEYS[i], KEY),
                                       (238, "value", VALUES[i], VALUE)):
            parts.append(rect(x - 62, y, 124, 25, pale(color), stroke=color, radius=4))
            parts.append(label(x, y + 17, f"{name} {_pair(vector, 1)}", size=11, anchor="middle"))
    for i, x in enumerate(centers):
        end = 278 + (i - 1) * 46
        wide = 1.5 + 13 * row[i]
        length = np.hypot(end - x, 90)
        ux, uy, head = (end - x) / length, 90 / length, 10 + wide
        parts.append(f'<line x1="{x}" y1="272" x2="{end - ux * (head - 1):.1f}" '
                     f'y2="{362 - uy * (head - 1):.1f}" stroke="{WEIGHT}" '
                     f'stroke-width="{wide:.2f}"/>')
        parts.append(tip(end, 362, ux, uy, WEIGHT, head))
        side = x + (end - x) * 0.38
        parts.append(rect(side - 22, 296, 44, 21, "#ffffff", stroke=WEIGHT, radius=10))
        parts.append(label(side, 311, number(row[i]), size=12.5, anchor="middle", weight="600",
                           color=WEIGHT))
    parts.append(rect(168, 364, 220, 36, mix(VALUE, 0.35), stroke=VALUE, radius=6,
                      stroke_width=1.4))
    parts.append(label(278, 387, f"new {asks} {_pair(output[ASKS])}", size=13, anchor="middle",
                       weight="600"))
    parts.append(_values_in_the_plane(row, output[ASKS]))
    details = (
        f"The same example as arrows. The query of “{asks}” goes to three keys; the scores are "
        + ", ".join(f"“{t}” {number(s)}" for t, s in zip(TOKENS, scores))
        + ". The values come back along arrows as thick as their weights: "
        + ", ".join(f"“{t}” {number(w)}" for t, w in zip(TOKENS, row))
        + f". The new vector of “{asks}” is {_pair(output[ASKS])}. In the plane it lies inside "
        f"the triangle of the three values, nearest to that of “{TOKENS[int(row.argmax())]}”."
    )
    return sheet(424, parts, question="Where does the new vector of “sat” come from?",
                 details=details,
                 alt="Attention of “sat” as arrows: its query goes to three keys, and "
                     "three values come back along arrows as thick as their weights.",
                 answer="From all three values, most from the token whose key fits the query best.")


def _values_in_the_plane(row, output):
    """The three values, the triangle between them, and their weighted mean within."""
    left, base, unit = 590, 326, 86

    def at(v):
        return left + v[0] * unit, base - v[1] * unit

    corners = [at(v) for v in VALUES]
    parts = [say(560, 97, "The values as points in the plane", size=13, weight="600"),
             f'<line x1="{left - 12}" x2="{left + 2.3 * unit:.0f}" y1="{base}" y2="{base}" '
             f'stroke="{GREY}"/>',
             f'<line x1="{left}" x2="{left}" y1="{base + 12}" y2="{base - 2.3 * unit:.0f}" '
             f'stroke="{GREY}"/>']
    for tick in (1, 2):
        parts.append(label(left + tick * unit, base + 18, str(tick), size=11, anchor="middle",
                           color=SOFT_INK))
        parts.append(label(left - 9, base - tick * unit + 4, str(tick), size=11, anchor="end",
                           color=SOFT_INK))
    parts.append('<polygon points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
                 + f'" fill="{pale(VALUE, 0.18)}" stroke="{VALUE}" stroke-width="1" '
                 'stroke-dasharray="4 3"/>')
    x, y = at(output)
    for (cx, cy), weight in zip(corners, row):
        parts.append(f'<line x1="{cx:.1f}" y1="{cy:.1f}" x2="{x:.1f}" y2="{y:.1f}" '
                     f'stroke="{WEIGHT}" stroke-width="{1 + 9 * weight:.2f}" opacity="0.7"/>')
    places = [(12, -4, "start"), (12, 5, "start"), (12, -10, "start")]
    for (cx, cy), token, (dx, dy, anchor) in zip(corners, TOKENS, places):
        parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="6" fill="{VALUE}"/>')
        parts.append(label(cx + dx, cy + dy, token, size=13, anchor=anchor, weight="600",
                           color=dark(VALUE, 0.65)))
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8" fill="{WEIGHT}" stroke="#ffffff" '
                 'stroke-width="2"/>')
    parts.append(say(x - 14, y + 8, f"new {TOKENS[ASKS]}", size=12.5, weight="600", anchor="end",
                     color=WEIGHT))
    parts.append(lines(560, 376, ["A weighted mean never leaves the shape",
                                  "of its values; a larger weight pulls harder."],
                       color=dark(SOFT_INK)))
    return "".join(parts)


def masks():
    """No mask, padding, causal, both: which keys each query may see, and its weights if all tie."""
    tokens = ["the", "cat", "sat", "[PAD]", "[PAD]"]
    real = np.array([[True, True, True, False, False]])
    free = np.ones((5, 5), dtype=bool)
    padding = np.broadcast_to(padding_mask(real)[0, 0], (5, 5))
    causal = causal_mask(5)
    panels = [
        ("No mask", "mask=None", free,
         ["Every query sees", "every key, padding too."]),
        ("Padding", "padding_mask(real)", padding,
         ["The same keys are hidden", "from every query."]),
        ("Causal", "causal_mask(5)", causal,
         ["Each query sees itself", "and what stands before it."]),
        ("Both", "padding & causal", padding & causal,
         ["A key must be allowed", "by both masks."]),
    ]
    parts, size, step, first = [hatch("hidden")], 29, 200, 70
    for p, (name, code, mask, notes) in enumerate(panels):
        x, y = first + p * step, 158
        weights = softmax(np.where(mask, 0.0, -np.inf))
        middle = x + 2.5 * size
        parts.append(say(middle, 82, name, size=14, weight="600", anchor="middle"))
        parts.append(label(middle, 100, code, size=11, anchor="middle", color=dark(WEIGHT)))
        for i, token in enumerate(tokens):
            parts.append(label(x - 6, y + i * size + 17.5, token, size=11, anchor="end",
                               color=dark(QUERY, 0.85)))
            parts.append(label(x + (i + 0.5) * size + 3, y - 6, token, size=11, turn=-90,
                               color=dark(KEY)))
            for j in range(5):
                at = x + j * size, y + i * size
                if mask[i, j]:
                    text = "1" if weights[i, j] == 1 else number(weights[i, j]).lstrip("0")
                    fill = mix(WEIGHT, 0.08 + 0.72 * weights[i, j])
                    parts.append(cell(*at, text, width=size - 2, height=size - 2, fill=fill,
                                      stroke="none", size=11))
                else:
                    parts.append(rect(*at, size - 2, size - 2, "url(#hidden)", radius=3))
        parts.append(lines(middle, y + 5 * size + 24, notes, anchor="middle", color=dark(SOFT_INK)))
    y = 378
    parts.append(say(MARGIN, y, "rows: queries", size=12, weight="600", color=dark(QUERY, 0.85)))
    parts.append(say(MARGIN + 108, y, "columns: keys", size=12, weight="600", color=dark(KEY)))
    parts.append(rect(248, y - 13, 18, 18, mix(WEIGHT, 0.35), radius=3))
    parts.append(say(272, y, "seen, with its weight if all scores are equal", size=12))
    parts.append(rect(548, y - 13, 18, 18, "url(#hidden)", radius=3))
    parts.append(say(572, y, "hidden: weight exactly 0", size=12))
    parts.append(say(MARGIN, y + 26, "The rows of [PAD] stay: masks hide keys, not queries, and "
                     "what a padded query finds is dropped later.", color=dark(SOFT_INK)))
    details = (
        "Four grids of five queries (rows) by five keys (columns) for the tokens the, cat, sat, "
        "[PAD], [PAD]. No mask: all 25 cells are seen. Padding mask: the two [PAD] columns are "
        "hidden in every row, the rows of [PAD] too. Causal mask: row i sees the keys 0 to i, "
        "the upper triangle is hidden. Both: a key is seen only where both masks allow it. With "
        "equal scores the seen keys of a row share the weight 1 equally."
    )
    return sheet(430, parts, question="Who may look at whom?",
                 details=details,
                 alt="Four grids of queries and keys: no mask, padding mask, causal mask, "
                     "and both together.",
                 answer="A mask hides keys before the softmax; what is left of a row still sums "
                        "to 1.")


def heads():
    """Split and merge of arange(8), and what the reshape without the transpose would do."""
    x = np.arange(8.0).reshape(1, 2, 4)
    split = split_heads(x, 2)[0]
    merged = merge_heads(split[None])[0]
    wrong = x[0].reshape(2, 2, 2)
    fills = [pale(WEIGHT, 0.2), mix(WEIGHT, 0.85)]
    rows, size, tall, gap = ["token 0", "token 1"], 32, 30, 22

    def head_of(value):
        return fills[int(value) % 4 // 2]

    def matrix(left, top, values):
        return grid(left, top, values, width=size, height=tall, digits=0, size=14,
                    stroke="#ffffff", fill=lambda i, j: head_of(values[i][j]))

    def step(left, right, y, texts, color=GREY):
        middle = (left + right) / 2
        return (path([(left + 8, y), (right - 8, y)], color)
                + label(middle, y - 10, texts[0], size=11, anchor="middle")
                + label(middle, y + 21, texts[1], size=11, anchor="middle", color=SOFT_INK))

    y, xs = 142, [88, 300, 534, 684]
    mid = y + tall
    parts = []
    parts.append(say(MARGIN, 84, "arange(8), the batch axis left out", color=dark(SOFT_INK)))
    for i, name in enumerate(rows):
        parts.append(label(xs[0] - 8, y + i * tall + 20, name, size=11, anchor="end"))
    parts.append(matrix(xs[0], y, x[0]))
    parts.append(step(xs[0] + 4 * size, xs[1], mid, ("reshape", "(2, 2, 2)")))
    for h in range(2):
        parts.append(matrix(xs[1] + h * (2 * size + gap), y, x[0, :, 2 * h:2 * h + 2]))
        parts.append(say(xs[1] + h * (2 * size + gap) + size, y - 10, f"head {h}", size=11,
                         anchor="middle", color=SOFT_INK))
    parts.append(step(xs[1] + 4 * size + gap, xs[2], mid, ("transpose", "(1, 0, 2)")))
    for h in range(2):
        top = y - 43 + h * (2 * tall + 26)
        parts.append(matrix(xs[2], top, split[h]))
        parts.append(say(xs[2] + size, top - 6, f"head {h}", size=11, anchor="middle",
                         color=SOFT_INK))
    parts.append(step(xs[2] + 2 * size, xs[3], mid, ("merge", "undo both")))
    parts.append(matrix(xs[3], y, merged))
    for left, name, shape, wide in ((xs[0], "length, d", "(2, 4)", 4 * size),
                                    (xs[1], "length, heads, d / heads", "(2, 2, 2)",
                                     4 * size + gap),
                                    (xs[2], "heads, length, d / heads", "(2, 2, 2)", 2 * size),
                                    (xs[3], "length, d", "(2, 4)", 4 * size)):
        parts.append(label(left + wide / 2, 262, shape, size=12, weight="600", anchor="middle"))
        parts.append(label(left + wide / 2, 279, name, size=11, anchor="middle", color=SOFT_INK))
    parts.append(f'<line x1="{MARGIN}" x2="{840 - MARGIN}" y1="302" y2="302" stroke="{LINE}"/>')
    parts.append(say(MARGIN, 328, "The reshape alone, without the transpose", size=13, weight="600",
                     color=dark(PALETTE["end"], 0.9)))
    y, mid = 378, 378 + tall
    for i, name in enumerate(rows):
        parts.append(label(xs[0] - 8, y + i * tall + 20, name, size=11, anchor="end"))
    parts.append(matrix(xs[0], y, x[0]))
    parts.append(step(xs[0] + 4 * size, xs[1], mid, ("reshape", "(2, 2, 2)"), PALETTE["end"]))
    for h in range(2):
        left = xs[1] + h * (2 * size + gap)
        parts.append(matrix(left, y, wrong[h]))
        parts.append(say(left + size, y - 10, f"“head {h}”", size=11, anchor="middle",
                         color=SOFT_INK))
    parts.append(frame(xs[1] - 4, y - 4, 4 * size + gap + 8, 2 * tall + 8, PALETTE["end"],
                       dashed=True, stroke_width=1.4))
    for h in range(2):
        parts.append(say(xs[1] + h * (2 * size + gap) + size, y + 2 * tall + 22,
                         f"all of token {h}", size=11, anchor="middle",
                         color=dark(PALETTE["end"], 0.9)))
    parts.append(lines(xs[2] - 40, y - 4, ["The shape is right and nothing raises. But “head 0”",
                                           "holds all four numbers of token 0, and “head 1” all",
                                           "of token 1. A head then compares two halves of",
                                           "one token, never two tokens. (Light numbers belong",
                                           "in head 0, dark ones in head 1.)"], size=12, step=18))
    details = (
        "Two tokens of four numbers, 0 1 2 3 and 4 5 6 7, split into two heads. Reshape to "
        "(2, 2, 2), then transpose: head 0 holds 0 1 and 4 5, head 1 holds 2 3 and 6 7. Merging "
        "goes both steps back and gives the first matrix again. Below, the reshape alone: "
        "“head 0” holds 0 1 and 2 3, all of token 0, and “head 1” holds 4 5 and 6 7, all of "
        "token 1; the shape is the same and the numbers are in the wrong heads."
    )
    return sheet(486, parts, question="How does one vector become several heads?",
                 details=details,
                 alt="Eight numbers split into two heads by reshape and transpose and merged "
                     "again; below, a reshape alone puts each token into one head.",
                 answer="Every head gets its own slice of every token; merging puts the slices "
                        "side by side again.")


def multi_head():
    """All steps of multi-head attention on the tiny sentence of lesson 02, with its numbers."""
    tokens = ["chef", "met", "pilot"]
    x = np.array([[1.0, 0, -1, 0], [0, 0, 0, 1], [0, 1, 1, 0]])
    asks = np.zeros((4, 4))
    asks[3, [0, 2]] = -8, 8  # an action asks for the left in head 0, for the right in head 1
    found_by, hands_over = np.zeros((4, 4)), np.zeros((4, 4))
    found_by[2, [0, 2]] = 1  # a word is found by its place
    hands_over[[0, 1, 0, 1], [0, 1, 2, 3]] = 1  # and hands over kitchen and cockpit
    projected = [x @ matrix + 0.0 for matrix in (asks, found_by, hands_over)]
    query, key, value = (split_heads(one[None], 2) for one in projected)
    findings, weights = scaled_dot_product_attention(query, key, value)
    merged = merge_heads(findings)[0]
    findings, weights = findings[0], weights[0]

    tall, small, wide = 25, 27, 40
    at = {"x": 72, "projected": 228, "weights": 428, "findings": 576, "merged": 668}
    middle = 305.5
    parts = [label(at["x"] - 7, middle - 1.5 * tall + i * tall + 17, token, size=12, anchor="end")
             for i, token in enumerate(tokens)]
    parts += [grid(at["x"], middle - 1.5 * tall, x, width=small, height=tall, digits=0),
              say(at["x"] + 2 * small, middle - 1.5 * tall - 10, "x", size=13, weight="600",
                  anchor="middle")]
    steps = ((at["x"] + 2 * small, "words", "(3, 4)"),
             (at["projected"] + 2 * small, "project", "three times (3, 4)"),
             (at["weights"] + 1.5 * wide, "split, attend", "(2, 3, 3)"),
             (at["findings"] + wide, "findings", "(2, 3, 2)"),
             (at["merged"] + 2 * wide - 10, "merge, then output", "(3, 4)"))
    for left, name, shape in steps:
        parts.append(say(left, 86, name, size=13, weight="600", anchor="middle"))
        parts.append(label(left, 104, shape, size=11, anchor="middle", color=SOFT_INK))
    for n, (name, matrix, color) in enumerate(zip(("query", "key", "value"), projected,
                                                  (QUERY, KEY, VALUE))):
        y = 146 + n * 122
        parts.append(say(at["projected"] + 2 * small, y - 8, name, size=13, weight="600",
                         anchor="middle", color=dark(color)))
        parts.append(grid(at["projected"], y, matrix, width=small, height=tall, digits=0,
                          stroke=color,
                          fill=lambda i, j, color=color: mix(color, 0.1 if j < 2 else 0.35)))
        parts.append(path([(at["x"] + 4 * small + 6, middle), (at["x"] + 4 * small + 26, middle),
                           (at["x"] + 4 * small + 26, y + 1.5 * tall),
                           (at["projected"] - 6, y + 1.5 * tall)]))
    for h, (name, share) in enumerate((("head 0: left", 0.1), ("head 1: right", 0.35))):
        y = 190 + h * 156
        parts.append(say(at["weights"] + 1.5 * wide, y - 8, f"{name}, weights", anchor="middle",
                         color=dark(WEIGHT)))
        parts.append(grid(at["weights"], y, weights[h], width=wide, height=tall,
                          fill=lambda i, j, h=h: mix(WEIGHT, 0.04 + 0.9 * weights[h, i, j]),
                          stroke="#ffffff"))
        parts.append(grid(at["findings"], y, findings[h], width=wide, height=tall, stroke=VALUE,
                          fill=mix(VALUE, share)))
        parts += [label(at["weights"] - 7, y + i * tall + 17, token, size=12, anchor="end")
                  for i, token in enumerate(tokens)]
        parts.append(path([(at["projected"] + 4 * small + 6, middle),
                           (at["projected"] + 4 * small + 22, middle),
                           (at["projected"] + 4 * small + 22, y + 1.5 * tall),
                           (at["weights"] - 52, y + 1.5 * tall)]))
        parts.append(path([(at["weights"] + 3 * wide + 5, y + 1.5 * tall),
                           (at["findings"] - 5, y + 1.5 * tall)]))
    parts.append(grid(at["merged"], middle - 1.5 * tall, merged, width=wide - 3, height=tall,
                      stroke=VALUE, fill=lambda i, j: mix(VALUE, 0.1 if j < 2 else 0.35)))
    parts.append(frame(at["merged"], middle - 0.5 * tall, 4 * (wide - 3), tall))
    for h in range(2):
        y = 190 + h * 156
        parts.append(path([(at["findings"] + wide, y + 3 * tall + 5 if h == 0 else y - 6),
                           (at["findings"] + wide, middle + (-8 if h == 0 else 8)),
                           (at["merged"] - 6, middle + (-8 if h == 0 else 8))]))
    parts.append(lines(at["merged"] - 2, middle + 1.5 * tall + 22,
                       ["the framed row is the new", "“met”: chef on its left,",
                        "pilot on its right"],
                       size=11, step=16, color=SOFT_INK))
    row = "(" + ", ".join(number(v) for v in merged[1]) + ")"
    details = (
        "Multi-head attention on “chef met pilot”, two heads of width 2. The three words, four "
        "numbers each, are projected to queries, keys and values, (3, 4) each; the left half of "
        "every row belongs to head 0, the right half to head 1. Each head has a table of weights "
        f"of its own: in head 0 “met” gives “chef” {number(weights[0, 1, 0])}, in head 1 it gives "
        f"“pilot” {number(weights[1, 1, 2])}; the other words ask for nothing and weigh all alike. "
        f"Side by side, the findings of “met” are {row}, chef first and pilot second; the output "
        "projection then leaves them where they are."
    )
    return sheet(492, parts, question="How do several heads work side by side?", details=details,
                 alt="Multi-head attention on three words: projections in two halves, a table of "
                     "weights for each half, and the two findings side by side again.",
                 answer="Each head has its half of every query, key and value, and a table of "
                        "weights of its own.")
