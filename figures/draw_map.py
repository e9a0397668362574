"""The map of the course: what each lesson builds, and what it is built from."""

from kit import (
    GREY,
    MARGIN,
    PALETTE,
    SOFT_INK,
    SPAN,
    TEXT,
    TOKEN,
    cell,
    dark,
    lines,
    pale,
    path,
    rect,
    say,
    sheet,
)

ACCENT = PALETTE["weight"]
# number: (column, row of the map, title, what is built)
LESSONS = {
    "01": (0, 0, "Attention", ["dot products, softmax,", "masks"]),
    "02": (1, 0, "Multi-head attention", ["projections, heads,", "self-attention"]),
    "03": (2, 0, "Embeddings", ["a WordPiece tokenizer,", "positions, segments"]),
    "04": (1, 1, "Encoder", ["LayerNorm, residuals,", "feed-forward, a stack"]),
    "05": (2, 1, "Training", ["cross-entropy, AdamW,", "masked-word pretraining"]),
    "06": (0, 2, "Text classification", ["one class for a text"]),
    "07": (1, 2, "Token classification", ["one label for each word"]),
    "08": (2, 2, "Question answering", ["a span of the passage"]),
    "09": (1, 3, "Pretrained encoder", ["real weights, loaded into", "your own code"]),
    "10": (2, 3, "Your own task", ["a sentence-pair head,", "without scaffolding"]),
}
COLORS = {"06": TEXT, "07": TOKEN, "08": SPAN}


def course_map():
    """Lessons 00 to 10 as boxes in four rows, with arrows from each to those that need it."""
    left, wide, step = 132, 208, 237
    tops, highs = [140, 252, 364, 462], [78, 78, 62, 78]

    def where(number):
        column, row = LESSONS[number][:2]
        return left + column * step, tops[row], highs[row]

    def middle(number):
        return where(number)[0] + wide / 2

    parts = [rect(left, 72, 2 * step + wide, 44, "#ffffff", stroke=GREY, radius=8),
             _badge(left + 12, 83, "00", SOFT_INK),
             say(left + 50, 99, "Start here", size=14, weight="600"),
             say(left + 140, 99, "a look at the finished system, the tools, the progress board",
                 size=12.5, color=dark(SOFT_INK))]
    for row, texts in enumerate([["Build", "the parts"], ["Put them", "together"],
                                 ["Use them", "three ways"], ["Go", "further"]]):
        parts.append(lines(MARGIN, tops[row] + highs[row] / 2 - 4, texts, size=13, weight="600",
                           color=ACCENT, step=18))
    # what feeds what
    x1, y1, h1 = where("01")
    parts.append(path([(x1 + wide, y1 + h1 / 2), (left + step, y1 + h1 / 2)]))
    parts.append(path([(middle("02"), y1 + h1), (middle("02"), tops[1])]))
    gap = (y1 + h1 + tops[1]) / 2
    parts.append(path([(middle("03"), y1 + h1), (middle("03"), gap), (middle("04") + 60, gap),
                       (middle("04") + 60, tops[1])]))
    parts.append(path([(left + step + wide, tops[1] + 39), (left + 2 * step, tops[1] + 39)]))
    bus = (tops[1] + highs[1] + tops[2]) / 2
    parts.append(path([(middle("05"), bus), (middle("06"), bus), (middle("06"), tops[2])]))
    parts.append(path([(middle("07"), bus), (middle("07"), tops[2])]))
    parts.append(path([(middle("05"), tops[1] + highs[1]), (middle("05"), tops[2])]))
    bus = (tops[2] + highs[2] + tops[3]) / 2
    for number in ("06", "08"):
        parts.append(path([(middle(number), tops[2] + highs[2]), (middle(number), bus),
                           (middle("09"), bus)], head=False))
    parts.append(path([(middle("07"), tops[2] + highs[2]), (middle("07"), tops[3])]))
    parts.append(path([(left + step + wide, tops[3] + 39), (left + 2 * step, tops[3] + 39)]))
    for number, (_, _, title, below) in LESSONS.items():
        x, y, high = where(number)
        color = COLORS.get(number, ACCENT)
        parts.append(rect(x, y, wide, high, pale(color, 0.12), stroke=color, radius=8,
                          stroke_width=1.3))
        parts.append(_badge(x + 10, y + 11, number, color))
        parts.append(say(x + 43, y + 26, title, size=13.5, weight="600"))
        parts.append(lines(x + 43, y + 46, below, size=12, color=dark(SOFT_INK), step=16))
    details = (
        "A map of the eleven lessons. 00 Start here shows the finished system. Build the parts: "
        "01 Attention leads to 02 Multi-head attention; 03 Embeddings stands beside them. Put "
        "them together: 02 and 03 feed 04 Encoder, which feeds 05 Training. Use them three "
        "ways: from there come 06 Text classification, 07 Token classification and 08 Question "
        "answering. Go further: all three lead to 09 Pretrained encoder, and that to 10 Your "
        "own task."
    )
    return sheet(570, parts, question="What will you build, and in which order?",
                 details=details,
                 alt="Map of the course: attention, heads, embeddings, the encoder and its "
                     "training lead to the three task heads, then to pretrained weights and "
                     "a task of your own.",
                 answer="Attention becomes an encoder, the encoder carries three heads, and all of "
                        "it is your own code.")


def _badge(x, y, number, color):
    return cell(x, y, number, width=27, height=21, fill=color, stroke="none", size=12,
                weight="600", radius=5)
