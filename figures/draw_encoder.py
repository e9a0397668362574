"""The encoder layer and its stack, what it may see, how it is pretrained, and its three heads."""

import numpy as np
from kit import (
    BLANK,
    GREY,
    INK,
    LINE,
    MARGIN,
    PALETTE,
    SANS,
    SOFT_INK,
    SPAN,
    TEXT,
    TOKEN,
    box,
    cell,
    chips,
    dark,
    frame,
    hatch,
    label,
    lines,
    mix,
    pale,
    path,
    rect,
    say,
    sheet,
    text_width,
    tip,
)

from solutions.attention import causal_mask

QUERY, WEIGHT = PALETTE["query"], PALETTE["weight"]
PART = "#4a6572"  # parts of the network that have no role in attention
SENTENCE = ["John", "works", "at", "Google", "in", "California"]


def encoder_layer():
    """One post-LN layer with the shape at every arrow, and the stack that it is part of."""
    shape = "(batch, length, d_model)"
    parts = []

    # the stack
    middle, wide = 128, 198
    stack = [(92, 34, "input_ids", "#ffffff", GREY), (162, 52, "embeddings", pale(PART), PART),
             (250, 36, "layer 1", pale(WEIGHT), WEIGHT), (322, 36, "layer 2", pale(WEIGHT), WEIGHT),
             (410, 36, "layer N", pale(WEIGHT), WEIGHT),
             (482, 34, "hidden states", "#ffffff", GREY)]
    parts.append(say(MARGIN, 82, "The stack", size=14, weight="600"))
    for y, high, name, fill, color in stack:
        below = ["+ LayerNorm"] if name == "embeddings" else []
        parts.append(box(middle - wide / 2, y + 8, wide, high, name, color, fill=fill, below=below))
    for start, stop, said in ((134, 170, "(batch, length)"), (222, 258, shape), (294, 330, shape),
                              (454, 490, shape)):
        parts.append(path([(middle - 84, start), (middle - 84, stop)]))
        parts.append(label(middle - 74, (start + stop) / 2 + 4, said, size=11, color=SOFT_INK))
    parts.append(path([(middle - 84, 366), (middle - 84, 418)]))
    parts.append(label(middle, 396, "⋮", size=16, anchor="middle", color=SOFT_INK))
    parts.append(lines(MARGIN + 4, 548, ["Every layer has weights of",
                                         "its own; BERT-base has 12."], color=dark(SOFT_INK)))

    # the layer, enlarged
    left, right, top, bottom = 262, 814, 70, 606
    parts.append(f'<polygon points="{middle + wide / 2},{330} {left},{top + 8} {left},{bottom - 8} '
                 f'{middle + wide / 2},{366}" fill="{WEIGHT}" opacity="0.07"/>')
    parts.append(rect(left, top, right - left, bottom - top, "#ffffff", stroke=WEIGHT, radius=10,
                      stroke_width=1.3))
    parts.append(say(left + 16, top + 24, "One layer", size=14, weight="600"))
    center, half, skip = 480, 120, 310
    x0, x1 = center - half, center + half

    def flow(start, stop):
        return (path([(center, start), (center, stop)])
                + label(center + 10, (start + stop) / 2 + 4, shape, size=11, color=SOFT_INK))

    def plus(y):
        return (f'<circle cx="{center}" cy="{y}" r="12" fill="#ffffff" stroke="{INK}" '
                f'stroke-width="1.4"/><path d="M{center - 6} {y}h12M{center} {y - 6}v12" '
                f'stroke="{INK}" stroke-width="1.6"/>')

    parts.append(flow(88, 132))
    parts.append(box(x0, 132, 2 * half, 66, "multi-head self-attention", WEIGHT,
                     below=["tokens look at tokens"]))
    parts.append(flow(198, 236))
    parts.append(plus(250))
    parts.append(flow(262, 290))
    parts.append(box(x0, 290, 2 * half, 36, "LayerNorm", GREY, fill=BLANK))
    parts.append(flow(326, 372))
    parts.append(box(x0, 372, 2 * half, 66, "feed-forward", PART,
                     below=["Linear, GELU, Linear"]))
    parts.append(flow(438, 476))
    parts.append(plus(490))
    parts.append(flow(502, 530))
    parts.append(box(x0, 530, 2 * half, 36, "LayerNorm", GREY, fill=BLANK))
    parts.append(flow(566, 598))
    for start, stop in ((106, 250), (346, 490)):
        parts.append(path([(center, start), (skip, start), (skip, stop), (center - 13, stop)],
                          INK, radius=12, width=1.8))
        parts.append(label(skip - 8, (start + stop) / 2, "residual", size=12, anchor="middle",
                           turn=-90, font=SANS))
    x = x1 + 14
    parts.append(f'<path d="M{x} 134v62" stroke="{LINE}" stroke-width="2"/>')
    parts.append(f'<path d="M{x} 374v62" stroke="{LINE}" stroke-width="2"/>')
    parts.append(say(x + 10, 144, "query, key, value, per head", size=11.5, weight="600"))
    parts.append(label(x + 10, 160, "(…, length, d_model/heads)", size=11, color=SOFT_INK))
    parts.append(say(x + 10, 180, "weights, per head", size=11.5, weight="600",
                     color=dark(WEIGHT)))
    parts.append(label(x + 10, 196, "(…, length, length)", size=11, color=SOFT_INK))
    parts.append(say(x + 10, 384, "every token by itself,", size=11.5, weight="600"))
    parts.append(say(x + 10, 401, "wider in between", size=11.5, weight="600"))
    parts.append(label(x + 10, 418, "(batch, length, d_ff)", size=11, color=SOFT_INK))
    parts.append(say(x + 10, 250, "add: the layer only has", size=11.5))
    parts.append(say(x + 10, 266, "to learn a change", size=11.5))
    parts.append(say(x + 10, 304, "post-LN: normalize", size=11.5))
    parts.append(say(x + 10, 320, "after the addition", size=11.5))
    details = (
        "Left, the stack: input ids of shape (batch, length) go through the embeddings with "
        "their LayerNorm, then through layer 1, layer 2 and so on to layer N; the hidden states "
        "that leave have shape (batch, length, d_model), like those between any two layers. "
        "Right, one layer enlarged, post-LN as in BERT: multi-head self-attention, a residual "
        "addition, LayerNorm, a feed-forward part of Linear, GELU and Linear that is d_ff wide "
        "in between, a second residual addition, a second LayerNorm. The shape at every arrow "
        "is (batch, length, d_model)."
    )
    return sheet(632, parts, question="What happens inside an encoder layer?",
                 details=details,
                 alt="Left, the stack from input ids to hidden states; right, one layer: "
                     "self-attention, add, LayerNorm, feed-forward, add, LayerNorm, with the "
                     "shape at every arrow.",
                 answer="Tokens exchange what they hold, then each is worked on alone; the shape "
                        "stays the same.")


def bidirectional_causal():
    """Which words the word Google may see: all of them, or only those to its left."""
    asks = SENTENCE.index("Google")
    panels = [("Bidirectional", "BERT and this course", np.ones(6, dtype=bool),
               PALETTE["bidirectional"],
               ["“in California” helps to say what Google is here.",
                "Change a word on either side: Google’s vector moves."]),
              ("Causal", "GPT: writes from left to right", causal_mask(6)[asks], PALETTE["causal"],
               ["What stands to the right is hidden from Google.",
                "Change it: Google’s vector moves by exactly 0."])]
    parts = [hatch("unseen")]
    for p, (name, who, seen, color, notes) in enumerate(panels):
        left = MARGIN + p * 402
        parts.append(rect(left, 70, 386, 268, "#ffffff", stroke=LINE, radius=10))
        parts.append(say(left + 18, 96, name, size=15, weight="600", color=dark(color, 0.65)))
        parts.append(say(left + 368, 96, who, size=12, color=SOFT_INK, anchor="end"))
        fills = [mix(color, 0.28) if s else "url(#unseen)" for s in seen]
        row, centers, widths = chips(SENTENCE, left + 14, 232, gap=9, pad=13, fills=fills,
                                     strokes=[color if s else LINE for s in seen])
        parts.append(row)
        x = centers[asks]
        for j, (center, s) in enumerate(zip(centers, seen)):
            if s and j != asks:
                start = x + (center - x) * 0.3
                parts.append(f'<path d="M{center:.1f} 230C{center:.1f} 178 {start:.1f} 200 '
                             f'{start:.1f} 154" fill="none" stroke="{color}" stroke-width="2"/>')
                parts.append(tip(start, 148, 0, -1, color))
            elif s:
                parts.append(path([(x, 230), (x, 148)], color, width=2))
            parts.append(label(center, 278, "seen" if s else "hidden", size=11, anchor="middle",
                               color=dark(color, 0.65) if s else SOFT_INK))
        parts.append(frame(x - widths[asks] / 2, 232, widths[asks], 28, INK, radius=5))
        parts.append(rect(x - 86, 116, 172, 30, pale(QUERY), stroke=QUERY, radius=6))
        parts.append(say(x, 136, "new vector of Google", size=12.5, weight="600",
                         anchor="middle"))
        parts.append(lines(left + 18, 304, notes, step=18))
    details = (
        "Two panels of the sentence John works at Google in California, seen from the word "
        "Google. Bidirectional: lines from all six words lead to the new vector of Google. "
        "Causal: lines lead only from John, works, at and Google itself; in and California are "
        "hatched and hidden, so a change of them moves the vector of Google by exactly 0."
    )
    return sheet(358, parts, question="What does the word “Google” get to see?",
                 details=details,
                 alt="The sentence John works at Google in California twice: bidirectional, "
                     "Google sees all six words; causal, it sees the four up to itself.",
                 answer="An encoder looks both ways; a causal model sees only what stands to the "
                        "left.")


def mlm():
    """Masked-word pretraining: which tokens are chosen, what becomes of them, where the loss is."""
    parts = []
    x, wide = MARGIN, 788
    chosen = wide * 0.15
    parts.append(rect(x, 76, wide - chosen, 30, BLANK, radius=4))
    parts.append(say(x + (wide - chosen) / 2, 96, "85 % of tokens: left alone, no loss", size=12.5,
                     anchor="middle"))
    parts.append(rect(x + wide - chosen, 76, chosen, 30, mix(WEIGHT, 0.85), radius=4))
    parts.append(say(x + wide - chosen / 2, 96, "15 % chosen", size=12.5, anchor="middle",
                     color="#ffffff", weight="600"))
    left, span = 250, x + wide - 250
    parts.append(f'<polygon points="{x + wide - chosen:.0f},107 {x + wide},107 {x + wide},142 '
                 f'{left},142" fill="{WEIGHT}" opacity="0.12"/>')
    at = left
    fates = [(0.8, "80 %: replaced by [MASK]", mix(WEIGHT, 0.5)), (0.1, "10 %", mix(WEIGHT, 0.3)),
             (0.1, "10 %", mix(WEIGHT, 0.12))]
    for share, said, fill in fates:
        parts.append(rect(at, 143, span * share - 2, 30, fill, radius=4))
        parts.append(say(at + span * share / 2 - 1, 163, said, size=12.5, anchor="middle",
                         weight="600"))
        at += span * share
    parts.append(say(left + span * 0.85 - 1, 190, "random", anchor="middle", size=11.5))
    parts.append(say(left + span * 0.95 - 1, 190, "kept", anchor="middle", size=11.5))

    tokens = ["[CLS]", "the", "soup", "was", "hot", "and", "the", "bread", "was", "fresh", "[SEP]"]
    seen = list(tokens)
    seen[2], seen[7] = "[MASK]", "train"
    picked = {2: 0.5, 7: 0.3, 9: 0.12}  # the depth of its color above
    rows = [(226, "text", tokens), (278, "input", seen)]
    first, widths = 92, [max(text_width(t, 12), text_width(s, 12)) + 12
                          for t, s in zip(tokens, seen)]
    gap = (MARGIN + wide - first - sum(widths)) / (len(tokens) - 1)
    xs = [first + sum(widths[:i]) + gap * i for i in range(len(tokens))]
    for y, name, row in rows:
        parts.append(say(MARGIN, y + 19, name, size=12.5, weight="600"))
        for i, token in enumerate(row):
            fill = mix(WEIGHT, picked[i]) if i in picked and y > 240 else "#ffffff"
            stroke = WEIGHT if i in picked else LINE
            parts.append(cell(xs[i], y, token, width=widths[i], height=28, fill=fill,
                              stroke=stroke, size=12, radius=5))
    for i in range(len(tokens)):
        center = xs[i] + widths[i] / 2
        color = WEIGHT if i in picked else "#c3c9d0"
        parts.append(path([(center, 256), (center, 276)], color))
        parts.append(path([(center, 308), (center, 328)], color))
    parts.append(rect(first, 330, MARGIN + wide - first, 34, pale(WEIGHT), stroke=WEIGHT, radius=7,
                      stroke_width=1.3))
    parts.append(say((first + MARGIN + wide) / 2, 352, "encoder, then a score for every token of "
                     "the vocabulary at every position", size=12.5, anchor="middle"))
    parts.append(say(MARGIN, 409, "label", size=12.5, weight="600"))
    for i, token in enumerate(tokens):
        center = xs[i] + widths[i] / 2
        if i in picked:
            parts.append(path([(center, 366), (center, 388)], WEIGHT))
            parts.append(cell(xs[i], 390, token, width=widths[i], height=28, fill="#ffffff",
                              stroke=WEIGHT, size=12, radius=5, weight="600"))
        else:
            parts.append(label(center, 408, "-100", size=11, anchor="middle", color=SOFT_INK))
    parts.append(say(MARGIN, 446, "The loss counts the chosen tokens only; a label of -100 is left "
                     "out. [CLS], [SEP] and [PAD] are never chosen.", color=dark(SOFT_INK)))
    parts.append(say(MARGIN, 464, "Here one token of each fate is shown; in so short a text one or "
                     "two would be chosen.", color=dark(SOFT_INK)))
    details = (
        "15 % of the tokens are chosen, 85 % are left alone. Of the chosen, 80 % become [MASK], "
        "10 % a random token, 10 % stay as they are. Example: in “the soup was hot and the "
        "bread was fresh”, soup becomes [MASK], bread becomes train, fresh stays. The encoder "
        "scores the vocabulary at every position; the labels are soup, bread and fresh at the "
        "chosen places and -100, left out of the loss, everywhere else."
    )
    return sheet(492, parts, question="How can an encoder learn without labels?",
                 details=details,
                 alt="Masked-word pretraining: 15 % of the tokens are chosen; of these 80 % "
                     "become [MASK], 10 % a random token, 10 % stay; only they count in the "
                     "loss.",
                 answer="Hide some words and let it guess them from both sides: the text is its "
                        "own label.")


def three_heads():
    """The hidden states of one sentence, and the three heads that read them."""
    tokens = ["[CLS]", *SENTENCE, "[SEP]"]
    first, wide = 188, MARGIN + 788 - 188
    widths = [text_width(t, 13) + 14 for t in tokens]
    gap = (wide - sum(widths) - 8) / (len(tokens) - 1)
    xs = [first + 4 + sum(widths[:i]) + gap * i for i in range(len(tokens))]
    centers = [x + w / 2 for x, w in zip(xs, widths)]
    parts = [say(MARGIN, 95, "tokens", size=13, weight="600")]
    for x, w, token in zip(xs, widths, tokens):
        parts.append(cell(x, 76, token, width=w, height=28, fill="#ffffff", size=13, radius=5))
    for center in centers:
        parts.append(path([(center, 105), (center, 121)]))
        parts.append(path([(center, 157), (center, 173)]))
    parts.append(rect(first, 122, wide, 34, pale(WEIGHT), stroke=WEIGHT, radius=7,
                      stroke_width=1.3))
    parts.append(say(first + wide / 2, 144, "encoder", size=13.5, weight="600", anchor="middle"))
    parts.append(say(MARGIN, 184, "hidden states", size=13, weight="600"))
    parts.append(label(MARGIN, 200, "(length, d_model)", size=11, color=SOFT_INK))
    for i, center in enumerate(centers):
        for j in range(4):
            shade = 0.18 + 0.6 * abs(np.sin(1.7 * i + 2.3 * j + 0.4))
            parts.append(rect(center - 20 + 10 * j, 176, 10, 24, mix(WEIGHT, shade),
                              stroke="#ffffff"))

    bands = [(222, 104, TEXT, "06", "Text classification", "(classes,)"),
             (336, 104, TOKEN, "07", "Token classification", "(length, labels)"),
             (450, 152, SPAN, "08", "Question answering", "(length, 2)")]
    for y, high, color, lesson, name, shape in bands:
        parts.append(rect(MARGIN - 8, y, 788 + 16, high, pale(color, 0.08), stroke=mix(color, 0.5),
                          radius=9))
        parts.append(say(MARGIN + 4, y + 24, name, size=12.5, weight="600"))
        parts.append(say(MARGIN + 4, y + 42, f"lesson {lesson}: logits", size=11.5, color=SOFT_INK))
        parts.append(label(MARGIN + 4, y + 60, shape, size=11, color=SOFT_INK))

    # one class for the sentence
    y = 222
    parts.append(path([(centers[0], 203), (centers[0], y + 34)], TEXT, width=2.2))
    parts.append(box(centers[0] - 32, y + 36, 64, 34, "Linear", TEXT, fill="#ffffff", size=12))
    parts.append(path([(centers[0] + 33, y + 53), (centers[0] + 62, y + 53)], TEXT, width=2.2))
    classes, x = [("negative", 0.12), ("neutral", 0.78), ("positive", 0.10)], centers[0] + 148
    for i, (name, share) in enumerate(classes):
        top = y + 20 + 23 * i
        parts.append(label(x - 6, top + 15, name, size=12, anchor="end",
                           weight="600" if share > 0.5 else "normal"))
        parts.append(rect(x, top + 3, 130, 15, "#ffffff", stroke=LINE, radius=2))
        parts.append(rect(x, top + 3, 130 * share, 15, mix(TEXT, 0.75), radius=2))
    parts.append(lines(x + 160, y + 42, ["The vector of [CLS], or the mean of all,",
                                         "stands for the whole text."], color=dark(SOFT_INK)))

    # a label for every token
    y = 336
    labels = ["", "B-PER", "O", "O", "B-ORG", "O", "B-LOC", ""]
    for center, name in zip(centers, labels):
        if not name:
            parts.append(say(center, y + 66, "no label", size=11, anchor="middle",
                             color=dark(SOFT_INK)))
            continue
        kind = PALETTE.get(name[2:], None)
        parts.append(path([(center, y + 14), (center, y + 46)], dark(TOKEN, 0.85), width=1.8))
        parts.append(cell(center - 27, y + 48, name, width=54, height=26,
                          fill=mix(kind, 0.5) if kind else "#ffffff", stroke=kind or LINE,
                          size=12, radius=5, weight="600" if kind else "normal"))
    parts.append(say(first + 4, y + 94, "The same Linear reads every vector. B- begins an entity, "
                     "I- goes on, O is none.", color=dark(SOFT_INK)))

    # a start and an end score for every token
    y, starts, ends = 450, [.1, .16, .1, .12, .92, .1, .3], [.12, .2, .08, .1, .88, .12, .42]
    parts.append(say(first + 4, y + 24, "The input begins with a question: Where does John work?",
                     weight="600"))
    for i, center in enumerate(centers):
        if i == len(starts):
            parts.append(say(center, y + 94, "masked", size=11, anchor="middle",
                             color=dark(SOFT_INK)))
            continue
        for side, share, color in ((-15, starts[i], PALETTE["start"]),
                                   (3, ends[i], PALETTE["end"])):
            parts.append(rect(center + side, y + 96 - 56 * share, 13, 56 * share, color, radius=1))
        parts.append(f'<path d="M{center - 20:.1f} {y + 96.5}h40" stroke="{GREY}"/>')
    parts.append(frame(centers[4] - 27, y + 38, 54, 64, INK, radius=5, stroke_width=1.6))
    parts.append(rect(MARGIN + 4, y + 76, 12, 12, PALETTE["start"], radius=2))
    parts.append(say(MARGIN + 22, y + 87, "start score", size=11.5))
    parts.append(rect(MARGIN + 4, y + 98, 12, 12, PALETTE["end"], radius=2))
    parts.append(say(MARGIN + 22, y + 109, "end score", size=11.5))
    parts.append(say(centers[0], y + 119, "no answer", size=12, anchor="middle"))
    parts.append(say(centers[4], y + 119, "answer: Google", size=12, weight="600",
                     anchor="middle"))
    parts.append(say(first + 4, y + 140, "The best pair with start ≤ end is the answer. (All bars "
                     "here are a sketch, not a result.)", color=dark(SOFT_INK)))
    details = (
        "One encoder, three heads. The sentence John works at Google in California, with [CLS] "
        "and [SEP], becomes one hidden vector a token. Text classification reads the vector of "
        "[CLS] and gives one class, neutral. Token classification reads every vector and gives "
        "each word a label: John B-PER, Google B-ORG, California B-LOC, the others O. Question "
        "answering, for the question Where does John work, gives every token a start and an end "
        "score; both are highest at Google, the answer; those of [CLS] stand for no answer. "
        "The bars are a sketch, not a result."
    )
    return sheet(626, parts, question="What is one encoder good for?",
                 details=details,
                 alt="One encoder, three heads: [CLS] gives a class, every token gives a "
                     "label, every token gives a start and an end score.",
                 answer="Three small heads read the same vectors: one class a text, one label a "
                        "token, one span a question.")
