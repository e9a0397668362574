"""From a text to the vectors that enter the encoder, one stage a row."""

import numpy as np
from kit import (
    GREY,
    INK,
    LINE,
    MARGIN,
    PALETTE,
    SOFT_INK,
    WIDTH,
    cell,
    chips,
    dark,
    label,
    mix,
    pale,
    path,
    rect,
    say,
    sheet,
    text_width,
)

from solutions.embeddings import WordPieceTokenizer, normalize, pre_tokenize

WEIGHT = PALETTE["weight"]
TEXT = "The café was unforgettable!"
# Small enough to be shown whole. "##able" is there to lose against the longer "##table".
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "!", "##able", "##forget", "##table",
              "cafe", "forget", "table", "the", "un", "was"]


def tokens_to_ids():
    """A text with an accent and a word of three pieces, from typing to vectors."""
    tokenizer = WordPieceTokenizer(VOCABULARY)
    encoding = tokenizer.encode(TEXT)
    normal, _ = normalize(TEXT)
    words = [word for word, _ in pre_tokenize(normal)]
    n = len(encoding)

    first = 168
    widths = [max(text_width(t, 13) + 14, 58) for t in encoding.tokens]
    gap = (WIDTH - MARGIN - first - sum(widths)) / (n - 1)
    xs = [first + sum(widths[:i]) + gap * i for i in range(n)]
    centers = [x + w / 2 for x, w in zip(xs, widths)]
    inner, end = xs[1], xs[-2] + widths[-2]
    parts = []

    def stage(y, name, under, *, code=False):
        parts.append(say(MARGIN, y + 12, name, size=13, weight="600"))
        parts.append(label(MARGIN, y + 28, under, size=11, color=dark(SOFT_INK)) if code else
                     say(MARGIN, y + 28, under, size=11.5, color=dark(SOFT_INK)))

    def down(y, at, color=GREY):
        parts.extend(path([(x, y), (x, y + 17)], color) for x in at)

    rows = [74 + 49 * i for i in range(6)]
    stage(rows[0], "text", "as it was typed")
    parts.append(cell(inner, rows[0], TEXT, width=end - inner, height=30, fill="#ffffff", size=14,
                      radius=5))
    down(rows[0] + 31, [(inner + end) / 2])
    stage(rows[1], "normalized", "lower case, no accents")
    parts.append(cell(inner, rows[1], normal, width=end - inner, height=30, fill="#ffffff",
                      size=14, radius=5))
    stage(rows[2], "words", "and punctuation")
    for number, word in enumerate(words):
        mine = [i for i in range(n) if encoding.word_ids[i] == number]
        left, right = xs[mine[0]], xs[mine[-1]] + widths[mine[-1]]
        down(rows[1] + 31, [(left + right) / 2])
        split = len(mine) > 1
        parts.append(cell(left, rows[2], word, width=right - left, height=30, radius=5, size=13,
                          fill=pale(WEIGHT, 0.2) if split else "#ffffff",
                          stroke=WEIGHT if split else LINE))
    stage(rows[3], "word pieces", "longest match first")
    stage(rows[4], "tokens", "with [CLS] and [SEP]")
    stage(rows[5], "ids", "in the vocabulary")
    for i, token in enumerate(encoding.tokens):
        special = encoding.word_ids[i] is None
        split = encoding.word_ids.count(encoding.word_ids[i]) > 1 and not special
        fill, stroke = (pale(WEIGHT, 0.2), WEIGHT) if split else ("#ffffff", LINE)
        if special:
            fill, stroke = "#e7e9ec", GREY
        if not special:
            down(rows[2] + 31, [centers[i]])
            parts.append(cell(xs[i], rows[3], token, width=widths[i], height=30, fill=fill,
                              stroke=stroke, size=13, radius=5))
            down(rows[3] + 31, [centers[i]])
        parts.append(cell(xs[i], rows[4], token, width=widths[i], height=30, fill=fill,
                          stroke=stroke, size=13, radius=5))
        down(rows[4] + 31, [centers[i]])
        parts.append(cell(xs[i], rows[5], str(encoding.input_ids[i]), width=widths[i], height=30,
                          fill=fill, stroke=stroke, size=14, radius=5, weight="600"))

    top = rows[5] + 44
    parts.append(rect(MARGIN - 8, top, WIDTH - 2 * MARGIN + 16, 178, "#ffffff", stroke=LINE,
                      radius=9))
    tables = [("token table", encoding.input_ids, 0.3), ("position table", range(n), 0.18),
              ("segment table", encoding.token_type_ids, 0.08)]
    for row, (name, ids, share) in enumerate(tables):
        y = top + 14 + 38 * row
        sign = "+ " if row else ""
        parts.append(say(MARGIN + 4, y + 17, f"{sign}{name}", size=13, weight="600"))
        for i, place in enumerate(ids):
            parts.append(cell(centers[i] - 27, y, f"row {place}", width=54, height=26,
                              fill=mix(WEIGHT, share), stroke="none", size=11.5, radius=4))
    y = top + 14 + 38 * 3
    parts.append(f'<path d="M{first - 4} {y - 4}H{WIDTH - MARGIN}" stroke="{INK}"/>')
    parts.append(say(MARGIN + 4, y + 20, "= vectors", size=13, weight="600"))
    parts.append(label(MARGIN + 4, y + 37, "(length, d_model)", size=11, color=dark(SOFT_INK)))
    for i in range(n):
        for j in range(4):
            shade = 0.18 + 0.6 * abs(np.sin(1.7 * i + 1.3 * j + 0.9))
            parts.append(rect(centers[i] - 26 + 13 * j, y + 6, 13, 24, mix(WEIGHT, shade),
                              stroke="#ffffff"))

    y = top + 204
    parts.append(say(MARGIN, y, f"The whole vocabulary of this example, {len(VOCABULARY)} tokens "
                     "in the order of their ids; BERT’s has 30,522.", size=12.5, weight="600"))
    used, x, line = set(encoding.input_ids), MARGIN, y + 12
    for place, token in enumerate(VOCABULARY):
        text = f"{place} {token}"
        wide = text_width(text, 11) + 14
        if x + wide > WIDTH - MARGIN:
            x, line = MARGIN, line + 30
        row, _, _ = chips([text], x, line, size=11, height=24,
                          fills=[pale(WEIGHT, 0.2) if place in used else "#ffffff"],
                          strokes=[WEIGHT if place in used else LINE])
        parts.append(row)
        x += wide + 6
    details = (
        f"From text to vectors, row by row. Text: “{TEXT}”. Normalized: “{normal}”. Words: "
        + ", ".join(words) + ". Pieces, longest match first: "
        + ", ".join(encoding.tokens[1:-1]) + ". Tokens: the same between [CLS] and [SEP]. Ids: "
        + ", ".join(map(str, encoding.input_ids)) + ". Each token then gets the sum of three "
        "rows: that of its id in the token table, that of its place in the position table, and "
        "row 0 of the segment table. Below, the whole vocabulary of the example."
    )
    return sheet(line + 48, parts, question="How does a text become numbers?",
                 details=details,
                 alt="A text becomes numbers, row by row: normalized text, words, word "
                     "pieces, tokens with [CLS] and [SEP], ids, and the sum of three vectors "
                     "for each token.",
                 answer="It is cut into pieces that a vocabulary knows; each piece has an id, and "
                        "each id a vector.")
