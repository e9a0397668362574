"""Lesson 07's sliders, and the pictures that its cells draw."""

import html
from functools import cache

import numpy as np

from course.drawing import (
    BLANK,
    INK,
    LINE,
    PALETTE,
    SANS,
    SOFT_INK,
    Picture,
    bars,
    card,
    curves,
    heatmap,
    label,
    mix,
    rect,
    shorten,
    side_by_side,
    text_width,
    token_strip,
    visible,
)
from course.drawing import entities as marked
from course.explore import Choice, Range, Text, Toggle, slider
from course.texts.washington import LEFT_KNOWN, TYPES
from course.weights import lesson07 as shipped
from solutions.token_classification import (
    LABELS,
    aggregate_words,
    character_spans,
    decode_entities,
    error_kinds,
    occlusion,
)

KIND_COLORS = {
    "right": PALETTE["value"], "wrong type": PALETTE["end"], "wrong border": PALETTE["ORG"],
    "missed": PALETTE["neutral"], "invented": PALETTE["key"],
}  # fmt: skip


def color_of(name):
    """The color of a label: that of its type; none for O."""
    return PALETTE.get(name[2:], BLANK) if name != "O" else BLANK


def trained():
    """What the pictures use until the lesson has trained a tagger of its own."""
    return {"model": shipped.entities()}


def note(text):
    """A card with a line of text, where there is nothing to draw."""
    return card(28 + text_width(text, 13), 34, [label(14, 22, text, font=SANS)], alt=text)


def label_strip(words, labels, scores=None, *, title="", **facts):
    """Words in a row, each over its label, colored by type and as strongly as the score."""
    scores = np.ones(len(words)) if scores is None else np.asarray(scores, dtype=float)
    under = [name if name == "O" else f"{name} {s:.2f}" for name, s in zip(labels, scores)]
    if (scores == 1).all():
        under = list(labels)
    values = [0.0 if name == "O" else 0.6 * s for name, s in zip(labels, scores)]
    colors = [color_of(name) if name != "O" else PALETTE["neutral"] for name in labels]
    return token_strip(words, values, under=under, color=colors, title=title, **facts)


# --- Tag a sentence -------------------------------------------------------------------------------


@slider(
    sentence=Text("Jordan works at Amazon and lives in Jordan.",
                  label="sentence", max_length=160),
    strategy=Choice(["first", "max", "average"], label="pieces to words"),
    threshold=Range(0.0, 1.0, 0.05, start=0.0, label="at least this sure",
                    words=lambda v: "everything" if v == 0 else f"score {v:.2f} or more"),
    lesson="07", given=trained,
)  # fmt: skip
def tag_sentence(sentence, strategy, threshold, model):
    """The entities that a model finds in a typed text, and the label of every word below it."""
    encoding, pieces = model.piece_probabilities(sentence)
    rows = aggregate_words(pieces, encoding.word_ids, strategy)
    if not len(rows):
        return note("There is no word in this text.")
    found = model.predict(sentence, strategy, threshold=threshold)
    head = marked(sentence, [(e.start, e.end, e.type) for e in found])
    spans = [character_spans([("W", i, i)], encoding.word_ids, encoding.offsets)[0]
             if i in encoding.word_ids else (0, 0, "") for i in range(len(rows))]
    words = [sentence[start:stop] or "(nothing)" for start, stop, _ in spans][:24]
    labels = [model.labels[i] for i in rows.argmax(axis=1)][:24]
    strip = label_strip(words, labels, rows.max(axis=1)[:24], probabilities=rows)
    said = "; ".join(f"{visible(e.text)}: {e.type} {e.score:.2f}" for e in found)
    return Picture(
        f'{head.body}<div style="margin-top:10px">{strip._repr_html_()}</div>',
        f"{visible(sentence)} Entities: {said or 'none'}.",
        {"probabilities": rows, "scores": np.array([e.score for e in found])},
        kind="html",
    )


# --- BIO by hand ----------------------------------------------------------------------------------

BIO_WORDS = "Ana Costa left Rome Paris and Novatek Labs".split()


@slider(
    labels=Text("B-PER I-PER O B-LOC B-LOC O B-ORG I-ORG", label="labels", max_length=80),
    strict=Toggle(label="strict"), lesson="07",
)  # fmt: skip
def decode_by_hand(labels, strict):
    """Labels typed by hand over eight words, and the entities that they stand for."""
    names = labels.split()
    if len(names) != len(BIO_WORDS):
        return note(f"Eight labels are needed, one a word; these are {len(names)}.")
    try:
        found = decode_entities(names, strict)
    except ValueError as error:
        return note(shorten(str(error), 90))
    strip = label_strip(BIO_WORDS, names)
    rows, at, x = [], strip.size[0], [14.0]
    for word, name in zip(BIO_WORDS, names):
        x.append(x[-1] + max(text_width(word, 13), text_width(name, 11)) + 16)
    for kind, first, last in found:
        fill = mix(PALETTE.get(kind, PALETTE["neutral"]), 0.5)
        rows.append(rect(x[first], 4, x[last + 1] - x[first] - 4, 22, fill, radius=4))
        rows.append(label((x[first] + x[last + 1]) / 2 - 2, 20, kind, size=12, anchor="middle",
                          weight="600"))
    said = ", ".join(f"{k} {' '.join(BIO_WORDS[f:n + 1])}" for k, f, n in found) or "no entity"
    below = card(max(at, x[-1] + 10), 30, rows, alt=f"Entities: {said}.")
    return side_by_side(strip, below, down=True, gap=4,
                        alt=f"Labels {' '.join(names)} decode to: {said}.")


# --- From pieces to words -------------------------------------------------------------------------


@slider(
    strategy=Choice(["first", "max", "average"], label="pieces to words"),
    second=Range(0.0, 1.0, 0.05, start=0.55, label="second piece: LOC",
                 words=lambda v: f"the rest, {1 - v:.2f}, goes to O and a little to PER"),
    lesson="07",
)  # fmt: skip
def pieces_to_words(strategy, second):
    """Two pieces of one word, and the row that the word gets of them."""
    pieces = np.array([[0.40, 0.50, 0.10], [0.93 * (1 - second), 0.07 * (1 - second), second]])
    word = aggregate_words(pieces, [0, 0], strategy)
    rows = np.vstack([pieces, word])
    best = ("O", "PER", "LOC")[int(word[0].argmax())]
    return heatmap(rows, ["piece 1", "piece 2", f"word: {strategy}"], ["O", "PER", "LOC"],
                   title=f"The word becomes {best} ({word[0].max():.2f})", cell=74,
                   marks=[(2, int(word[0].argmax()))], color=PALETTE["weight"],
                   probabilities=rows,
                   alt=f"Piece 1 {np.round(pieces[0], 2)}, piece 2 {np.round(pieces[1], 2)}; by "
                   f"{strategy} the word has {np.round(word[0], 2)} and becomes {best}.")


# --- How sure is sure enough? ---------------------------------------------------------------------


def scored_entities(model, sentences):
    """Of every entity that a model finds in labeled sentences: its score, and whether it is right;
    and how many true entities there are."""
    scores, right, support = [], [], 0
    for sentence in sentences:
        rows = model.word_probabilities(sentence.words)
        true = decode_entities(sentence.labels)
        support += len(true)
        for entity in decode_entities([model.labels[i] for i in rows.argmax(axis=1)]):
            scores.append(float(rows[entity[1]:entity[2] + 1].max(axis=1).mean()))
            right.append(entity in true)
    return np.array(scores), np.array(right, dtype=bool), support


def by_threshold(scores, right, support, steps=41):
    """Thresholds 0 to 1, and precision and recall of the entities at least that sure."""
    thresholds = np.linspace(0, 1, steps)
    kept = scores >= thresholds[:, None]
    found = (kept & right).sum(axis=1)
    precision = np.where(kept.any(axis=1), found / np.maximum(kept.sum(axis=1), 1), np.nan)
    return thresholds, precision, found / max(support, 1)


@cache
def _shipped_scores():
    from course.texts import load_conll

    return scored_entities(shipped.entities(), load_conll(split="dev"))


@slider(
    threshold=Range(0.0, 1.0, 0.05, start=0.0, label="at least this sure"), lesson="07",
    given=lambda: {"scored": _shipped_scores()},
)  # fmt: skip
def precision_recall(threshold, scored):
    """Precision and recall of a tagger when it may keep quiet below a threshold."""
    scores, right, support = scored
    thresholds, precision, recall = by_threshold(scores, right, support)
    kept = scores >= threshold
    found = int((kept & right).sum())
    said = (f"{int(kept.sum())} of {len(scores)} entities kept, {found} of them right; "
            f"{support} to find")
    # The numbers stand in the legend: beside the points they would lie on the curves.
    names = [f"recall {found / max(support, 1):.2f}", "precision: nothing kept"]
    points = [(threshold, found / max(support, 1), "")]
    if kept.any():
        names[1] = f"precision {found / kept.sum():.2f}"
        points.append((threshold, found / kept.sum(), ""))
    return curves(dict(zip(names, (recall, precision))), x=thresholds, y_limits=(0, 1.05),
                  x_title="threshold", y_title="share", title=said,
                  colors=dict(zip(names, (PALETTE["key"], PALETTE["query"]))),
                  verticals=[(threshold, "")], points=points,
                  alt=f"At threshold {threshold:.2f}: {said}. " + ", ".join(names))


# --- Bidirectional or causal ----------------------------------------------------------------------

STORIES = {
    "right decides: signed the letter": ("In short , Milton signed the letter .", 3),
    "right decides: has two bridges": ("In short , Milton has two bridges .", 3),
    "left decides: We flew over": ("We flew over Milton last week .", 3),
    "both decide: sued, asleep": ("A neighbor sued Milton , asleep under the stars .", 3),
    "both decide: sued, full of scholars": ("A neighbor sued Milton , full of scholars .", 3),
}


def type_probabilities(model, words, place):
    """Probabilities of PER, ORG and LOC for one word, B- and I- together."""
    row = model.word_probabilities(words)[place]
    return np.array([sum(p for p, name in zip(row, model.labels) if name[2:] == kind)
                     for kind in TYPES])


@slider(
    story=Choice(list(STORIES), label="sentence"),
    model=Choice(["bidirectional", "causal"], label="encoder"),
    shown=Range(0, 6, 1, start=0, label="words to its right",
                words=lambda v: "the name is the last word" if v == 0 else f"at most {v} shown"),
    lesson="07", given=lambda: {"models": shipped.directions()},
)  # fmt: skip
def which_direction(story, model, shown, models):
    """What an encoder takes a name for, as the words to its right are uncovered."""
    text, place = STORIES[story]
    words = text.split()
    visible_words = words[: place + 1 + shown]
    found = type_probabilities(models[model], visible_words, place)
    strip = token_strip(words, [0.7 if i == place else 0.0 for i in range(len(words))],
                        under=["" if i < len(visible_words) else "not yet"
                               for i in range(len(words))], color=PALETTE[model])
    chart = bars(found, list(TYPES), vmax=1, color=[PALETTE[k] for k in TYPES],
                 title=f"{model}: {words[place]} is")
    return side_by_side(strip, chart, down=True, gap=4,
                        alt=f"{' '.join(visible_words)}: the {model} encoder takes {words[place]} "
                        "for " + ", ".join(f"{k} {p:.2f}" for k, p in zip(TYPES, found)) + ".")


def direction_picture(results):
    """The experiment: results[direction][side] is a list, one share right for each seed."""
    width, height, left, gap = 520, 220, 60, 150
    parts = []
    for share in (0, 0.25, 0.5, 0.75, 1.0):
        y = height - share * height + 20
        parts.append(f'<line x1="{left}" x2="{left + width - 60}" y1="{y:.1f}" y2="{y:.1f}" '
                     f'stroke="{LINE}"/>')
        parts.append(label(left - 8, y + 4, f"{share:.0%}", size=11, color=SOFT_INK, anchor="end"))
    said = []
    for s, side in enumerate(("left", "right", "both")):
        x = left + 30 + s * gap
        best = height - LEFT_KNOWN[side] * height + 20
        for d, direction in enumerate(("bidirectional", "causal")):
            shares = np.array(results[direction][side])
            mean, spread = shares.mean(), shares.std()
            at, top = x + d * 44, height - mean * height + 20
            parts.append(rect(at, top, 36, height + 20 - top, mix(PALETTE[direction], 0.75)))
            low, high = (height - (mean + sign * spread) * height + 20 for sign in (-1, 1))
            parts.append(f'<line x1="{at + 18}" x2="{at + 18}" y1="{low:.1f}" y2="{high:.1f}" '
                         f'stroke="{INK}" stroke-width="2"/>')
            for i, one in enumerate(shares):
                parts.append(f'<circle cx="{at + 9 + 18 * i / max(len(shares) - 1, 1):.1f}" '
                             f'cy="{height - one * height + 20:.1f}" r="2.5" fill="{INK}"/>')
            above = min(high, height - shares.max() * height + 20) - 7  # clear of the dots
            parts.append(label(at + 18, above, f"{mean:.0%}", size=11, anchor="middle"))
            said.append(f"{direction}, {side}: {mean:.0%} plus or minus {spread:.1%}")
        parts.append(f'<line x1="{x - 8}" x2="{x + 88}" y1="{best:.1f}" y2="{best:.1f}" '
                     f'stroke="{INK}" stroke-dasharray="4 3"/>')
        parts.append(label(x + 40, height + 38, f"{side} decides" if side != "both"
                           else "both decide", size=12, anchor="middle", font=SANS))
    for d, direction in enumerate(("bidirectional", "causal")):
        x = left + 20 + d * 150
        parts.append(rect(x, height + 52, 14, 14, mix(PALETTE[direction], 0.75)))
        parts.append(label(x + 20, height + 64, direction, size=12, font=SANS))
    parts.append(label(left + 300, height + 64, "- - best without the right", size=12, font=SANS))
    return card(width + 30, height + 76, parts,
                "Names of the right type, by which words decide. " + "; ".join(said)
                + ". Dashed: the best that is possible without the words to the right.",
                "Names with the right type, held-out names",
                shares=np.array([[results[d][s] for s in ("left", "right", "both")]
                                 for d in ("bidirectional", "causal")]))


# --- Which word mattered --------------------------------------------------------------------------

LOOKED_AT = {
    "Milton signed the letter": ("In short , Milton signed the letter .", 3),
    "tea with Milton": ("They had tea with Milton this year .", 4),
    "flew over Milton": ("We flew over Milton last week .", 3),
    "owe money to Milton, quiet at dawn": ("They owe money to Milton , quiet at dawn .", 4),
    "Milton published its accounts": ("In short , Milton published its accounts .", 3),
}


def attention_to_words(model, words, place):
    """Attention of a word's first piece to each word, per head of the last layer, (heads, words);
    what goes to [CLS] and [SEP] is left out."""
    _, word_ids, weights = model.attention(words)
    query = word_ids.index(place)
    rows = np.zeros((weights.shape[1], len(words)))
    for key, word in enumerate(word_ids):
        if word is not None:
            rows[:, word] += weights[-1, :, query, key]
    return rows


def falls(model, words, place):
    """How far the probability of a word's own best label falls without each other word."""
    best = int(model.word_probabilities(words)[place].argmax())

    def probability(some, at):
        return float(model.word_probabilities(some)[at, best])

    return occlusion(probability, words, place), model.labels[best]


@slider(
    story=Choice(list(LOOKED_AT), label="sentence"),
    head=Choice({"mean of all heads": -1, "head 0": 0, "head 1": 1, "head 2": 2, "head 3": 3},
                label="attention of"),
    lesson="07", given=lambda: {"model": shipped.directions()["bidirectional"]},
)  # fmt: skip
def looked_and_needed(story, head, model):
    """Where a tagger looks when it decides on a name, and which words the decision needs."""
    text, place = LOOKED_AT[story]
    words = text.split()
    rows = attention_to_words(model, words, place)
    looked = rows.mean(axis=0) if head < 0 else rows[head]
    fall, name = falls(model, words, place)
    # As many characters below each word as in the strip beneath, so that the words are in line.
    above = token_strip(words, looked, title=f"Attention of {words[place]}", vmax=1,
                        color=PALETTE["weight"], under=[f" {one:.2f}" for one in looked])
    said = [f"{round(float(one), 2) + 0.0:+.2f}".replace("-", "−") for one in fall]  # no −0.00
    below = token_strip(words, fall, vmax=1, color=PALETTE["value"],
                        under=[" " * 5 if i == place else one for i, one in enumerate(said)],
                        title=f"Fall of the probability of {name} without the word")
    others = [i for i in range(len(words)) if i != place]
    most, need = (words[max(others, key=lambda i: row[i])] for row in (looked, fall))
    return side_by_side(above, below, down=True,
                        alt=f"{text} {words[place]} is {name}. It looks most at {most}; the word "
                        f"whose removal costs most is {need}.",
                        looked=looked, fall=fall)


# --- Errors in color ------------------------------------------------------------------------------


def error_picture(words, true, predicted):
    """A sentence with its true labels and a model's, and what became of each entity."""
    parts = []
    for title, labels in (("true", true), ("model", predicted)):
        side = f'<span style="color:{SOFT_INK};display:inline-block;width:52px">{title}</span>'
        shown = _in_color(words, decode_entities(labels))
        parts.append(f'<div style="margin:2px 0">{side}{shown}</div>')
    kinds = error_kinds(decode_entities(true), decode_entities(predicted))
    said = []
    for kind, (name, first, last) in kinds:
        words_of = " ".join(words[first:last + 1])
        said.append(f"{words_of} ({name}): {kind}")
        parts.append(f'<span style="margin-right:14px;border-bottom:3px solid {KIND_COLORS[kind]}">'
                     f"{html.escape(words_of)}: {kind}</span>")
    return Picture("".join(parts), f"{' '.join(words)} " + "; ".join(said) + ".", kind="html")


def _in_color(words, entities):
    """Words as HTML, entities on the ground of their type."""
    out, at = [], 0
    for kind, first, last in entities:
        out += [html.escape(word) for word in words[at:first]]
        inside = html.escape(" ".join(words[first:last + 1]))
        out.append(f'<span style="background:{mix(PALETTE.get(kind, SOFT_INK), 0.4)};color:{INK};'
                   f'border-radius:4px;padding:1px 4px">{inside} <b style="font-size:11px">'
                   f"{kind}</b></span>")
        at = last + 1
    return " ".join(out + [html.escape(word) for word in words[at:]])


def label_table(words, rows, title=""):
    """The probabilities of all labels for every word, as a heat map."""
    return heatmap(rows, words, LABELS, title=title, row_title="word", column_title="label",
                   color=PALETTE["weight"], probabilities=rows)
