"""Lesson 08's sliders, and the pictures that its cells draw."""

import html
from functools import cache

import numpy as np

from course.drawing import (
    BLANK,
    CARD,
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
from course.explore import Choice, Range, Text, slider
from course.texts.small_passages import RELATIONS, small_passages, small_vocabulary
from course.weights import lesson08 as shipped
from solutions.embeddings import WordPieceTokenizer
from solutions.question_answering import answer_mask, best_spans, masked_softmax, windows

PASSAGE = (
    "John Smith works at Google headquarters. Mara Lind plays the violin. "
    "Ormond Bank employs Mara Lind. John Smith lives in New York."
)


def trained():
    """What the pictures use until the lesson has trained a model of its own."""
    return {"model": shipped.answers()}


def marked(passage, start, end, note):
    """A passage as HTML with the characters start to end marked; typed text is data."""
    before, inside, after = (
        html.escape(visible(part)) for part in (passage[:start], passage[start:end], passage[end:])
    )
    fill = mix(PALETTE["value"], 0.35)
    mark = f'<span style="background:{fill};color:{INK};border-radius:4px;padding:1px 4px">'
    return (
        '<div style="white-space:pre-wrap;line-height:1.8;overflow-wrap:anywhere">'
        + before + (f"{mark}<b>{inside}</b></span>" if inside else "") + after
        + f'</div><div style="margin-top:6px;color:{SOFT_INK}">{html.escape(note)}</div>'
    )  # fmt: skip


def plain_note(text):
    """A card with a line of text, where there is nothing to draw."""
    return card(
        28 + text_width(text, 13), 34, [label(14, 22, text, size=13, font=SANS)], alt=text
    )


# --- Ask ------------------------------------------------------------------------------------------


@slider(
    question=Text("Where does Mara work?", label="question", max_length=80),
    passage=Text(PASSAGE, label="passage", max_length=400),
    lesson="08",
    given=trained,
)
def ask(question, passage, model):
    """The answer of a trained model to any question, marked in the passage, and what came close."""
    try:
        best = model.answers(question, passage, top_k=3)
    except ValueError as error:
        return plain_note(str(error))
    chosen = model.answer(question, passage)
    note = f"Answer: {chosen.text}" if chosen.text else "No answer in this passage, says the model."
    found = [answer for answer in best if answer.text]
    names = [shorten(answer.text, 26) for answer in found] + ["no answer"]
    scores = [answer.score for answer in found] + [best[0].no_answer_score]
    colors = [PALETTE["value"]] * len(found) + [PALETTE["reference"]]
    chart = bars(scores, names, title="score: start logit + end logit", vmin=-20, vmax=30,
                 color=colors, fmt="{:.1f}")  # fmt: skip
    return Picture(
        marked(passage, chosen.start, chosen.end, note)
        + f'<div style="margin-top:8px">{chart._repr_html_()}</div>',
        f"{visible(question)} {note} {chart.alt}",
        {"scores": np.array(scores)},
        kind="html",
    )


# --- The score matrix -----------------------------------------------------------------------------

TOY = ("Where does John work?", "John works at Google headquarters.")


@cache
def toy():
    """The toy passage: its tokens, who may answer, and logits chosen by hand."""
    words = "where does john work works at google headquarters ? .".split()
    encoding = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words]).encode(*TOY)
    starts = np.array([0.5, 2, -1, 4, 1, -1, 0, 1, -1, 0, 0, 0, -2, 1])
    ends = np.array([0.5, -1, 0, 3, 1, 0, 1, 1, -1, -1, 0, 0, 0, 3])
    return encoding.tokens, answer_mask(encoding), starts, ends


@slider(
    start_google=Range(-6.0, 6.0, 0.5, start=3.0, label="start at google"),
    end_google=Range(-6.0, 6.0, 0.5, start=1.0, label="end at google"),
    start_headquarters=Range(-6.0, 6.0, 0.5, start=0.0, label="start at headq."),
    end_headquarters=Range(-6.0, 6.0, 0.5, start=2.0, label="end at headq."),
    longest=Range(1, 6, 1, start=6, label="max answer length", words=lambda v: f"{v} tokens"),
    lesson="08",
)
def score_matrix(start_google, end_google, start_headquarters, end_headquarters, longest):
    """Sums of the logits of all pairs: forbidden ones hatched, the best one framed."""
    tokens, allowed, starts, ends = toy()
    starts, ends = starts.copy(), ends.copy()
    google, headquarters = tokens.index("google"), tokens.index("headquarters")
    starts[[google, headquarters]] = start_google, start_headquarters
    ends[[google, headquarters]] = end_google, end_headquarters
    return matrix_picture(tokens, starts, ends, allowed, longest)


def matrix_picture(tokens, starts, ends, allowed, longest=30):
    """The table start x end of one input; rows of tokens that may not start are hatched whole."""
    place = np.arange(len(tokens))
    length = place - place[:, None] + 1
    valid = allowed[:, None] & allowed & (length >= 1) & (length <= longest)
    best = best_spans(starts, ends, allowed, longest)
    first, last, score = best[0]
    text = " ".join(tokens[first : last + 1])
    return heatmap(
        starts[:, None] + ends,
        [f"{token} {value:+.1f}" for token, value in zip(tokens, starts)],
        [f"{token} {value:+.1f}" for token, value in zip(tokens, ends)],
        title=f"Best: {text}, score {score:g}",
        mask=valid, vmin=0, vmax=8, fmt="{:.1f}", cell=44, marks=[(first, last)],
        color=PALETTE["value"], row_title="start", column_title="end",
        row_color=PALETTE["start"], column_color=PALETTE["end"],
        alt=f"Table of start and end: {int(valid.sum())} of {valid.size} pairs are spans. The best "
        f"is {text}, with score {score:g}.",
        valid=valid, best=np.array([first, last]),
    )  # fmt: skip


# --- The longest answer ---------------------------------------------------------------------------


def two_models():
    return {"model": shipped.answers(), "random": shipped.untrained(seed=17)}


@slider(
    longest=Range(1, 30, 1, start=30, label="max answer length", words=lambda v: f"{v} tokens"),
    weights=Choice(["random", "trained"], label="weights"),
    question=Choice(["What does Mara play?", "Where does John live?", "Where does Mara work?"],
                    label="question"),
    lesson="08",
    given=two_models,
)  # fmt: skip
def longest_answer(longest, weights, question, model, random):
    """The best answer under a limit of its length, from random and from trained weights."""
    chosen = random if weights == "random" else model
    window = chosen.inputs(question, PASSAGE)[0]
    starts, ends = chosen.logits([window])[0]
    found = [best_spans(starts, ends, window.allowed, n)[0] for n in range(1, 31)]
    first, last, score = found[longest - 1]
    offsets = window.encoding.offsets
    start, end = offsets[first][0], offsets[last][1]
    lengths = [j - i + 1 for i, j, _ in found]
    count = last - first + 1
    note = f"{count} token{'s' * (count > 1)}, score {score:.1f}"
    chart = curves({"tokens of the best answer": lengths}, x=np.arange(1, 31), y_limits=(0, 31),
                   x_title="max answer length", y_title="tokens", size=(380, 150),
                   title="Its length under each limit",
                   points=[(longest, lengths[longest - 1], f"{lengths[longest - 1]}")])  # fmt: skip
    return Picture(
        f"<div><b>{html.escape(question)}</b></div>" + marked(PASSAGE, start, end, note)
        + f'<div style="margin-top:8px">{chart._repr_html_()}</div>',
        f"{question} The best answer of at most {longest} token{'s' * (longest > 1)} from "
        f"{weights} weights is {PASSAGE[start:end]}, {note}.",
        {"lengths": np.array(lengths)},
        kind="html",
    )  # fmt: skip


# --- The plateau and the breakthrough -------------------------------------------------------------


class Snapshots:
    """A watcher for `fit` that also keeps what the model does at each look at the dev split.

    model, probes: small passages of two people with one fact each. watch: the watcher to pass
    everything on to. `taken` is the list of snapshots.
    """

    def __init__(self, model, probes, watch=None):
        self.model, self.probes, self.watch, self.taken = model, probes, watch, []

    def start(self, total):
        self.taken = [snapshot(self.model, self.probes, 0, None)]
        if self.watch:
            self.watch.start(total)

    def step(self, step, loss, rate):
        if self.watch:
            self.watch.step(step, loss, rate)

    def dev(self, step, score):
        self.taken.append(snapshot(self.model, self.probes, step, score))
        if self.watch:
            self.watch.dev(step, score)

    def end(self, reason):
        if self.watch:
            self.watch.end(reason)


def places(item, tokens):
    """Where in the input stand: the first name of the person asked for, her value, the other's."""
    first = tokens.index("[SEP]") + 1
    values = {value.lower().split()[0] for value in RELATIONS[item.relation].values}
    right = item.answers[0].text.lower().split()[0]
    inside = range(first, len(tokens))
    name = next(i for i in inside if tokens[i] == item.person.lower().split()[0])
    facts = [i for i in inside if tokens[i] in values and tokens[i] != "the"] or [name]
    own = next((i for i in inside if tokens[i] == right), name)
    return name, own, next((i for i in facts if i != own), own)


def snapshot(model, probes, step, score):
    """A model at one step: share exact, attention of right and wrong value to the name, a map."""
    own, other, shown = 0.0, 0.0, None
    for item in probes:
        tokens, weights = model.attention(item.question, item.passage)
        name, right, wrong = places(item, tokens)
        own = own + weights[:, :, right, name] / len(probes)
        other = other + weights[:, :, wrong, name] / len(probes)
        if shown is None:
            window = model.inputs(item.question, item.passage)[0]
            starts, _ = model.logits([window])[0]
            shown = {
                "question": item.question, "tokens": tokens, "rows": (right, wrong),
                "weights": weights[:, :, [right, wrong]],
                "starts": masked_softmax(starts, window.allowed),
            }  # fmt: skip
    if score is None:
        score = model.evaluate(model.prepare(probes))
    return {"step": step, "score": score, "own": own, "other": other, **shown}


@cache
def _few_snapshots():
    probes = probe_passages()
    return [snapshot(shipped.untrained(), probes, 0, None),
            snapshot(shipped.answers(), probes, 300, None)]  # fmt: skip


def probe_passages():
    """Passages on which the attention is watched: two people, one fact each of the same kind."""
    items = small_passages(600, 7, people=2, facts=1, no_answer=0, turned=0, alike=1)
    known = set(small_vocabulary()) - {"the"}
    return [
        item for item in items if set(item.passage.lower().replace(".", "").split()) <= known
    ][:16]


@slider(
    step=Range(0, 300, 20, start=80, label="training step"),
    head=Choice({"the head that changes most": 0, "second": 1, "third": 2}, label="head"),
    lesson="08",
    given=lambda: {"snapshots": _few_snapshots()},
)  # fmt: skip
def breakthrough(step, head, snapshots):
    """Exact match and attention while a model trains, with the attention map at one step."""
    at = min(snapshots, key=lambda one: abs(one["step"] - step))
    last = snapshots[-1]
    change = last["own"] - last["other"]
    layer, number = np.unravel_index(np.argsort(-change, axis=None)[head], change.shape)
    steps = [one["step"] for one in snapshots]
    chart = curves(
        {
            "exact match": [one["score"] for one in snapshots],
            "attention: right value to the name": [one["own"][layer, number] for one in snapshots],
            "wrong value to the name": [one["other"][layer, number] for one in snapshots],
        },
        x=steps, x_title="step", y_limits=(0, 1), size=(560, 170),
        title=f"Layer {layer + 1}, head {number + 1}",
        colors={"exact match": INK, "attention: right value to the name": PALETTE["value"],
                "wrong value to the name": PALETTE["key"]},
        verticals=[(at["step"], f"step {at['step']}")],
    )  # fmt: skip
    tokens, (right, wrong) = at["tokens"], at["rows"]
    inside = slice(tokens.index("[SEP]") + 1, len(tokens) - 1)
    grid = heatmap(
        at["weights"][layer, number][:, inside], [tokens[right], tokens[wrong]], tokens[inside],
        title=f"{at['question']} Where do the two values look?", fmt="{:.2f}",
        row_color=PALETTE["query"], column_color=PALETTE["key"], row_title="",
    )  # fmt: skip
    strip = token_strip(tokens[inside], at["starts"][inside], color=PALETTE["start"],
                        title="Probability that the answer starts here")  # fmt: skip
    return side_by_side(
        chart, grid, strip, down=True,
        alt=f"At step {at['step']} exact match is {at['score']:.2f}; in layer {layer + 1}, head "
        f"{number + 1}, the right value gives the name {at['own'][layer, number]:.2f} of its "
        f"attention, the wrong one {at['other'][layer, number]:.2f}.",
        probabilities=at["starts"], weights=at["weights"][layer, number],
    )  # fmt: skip


# --- The threshold --------------------------------------------------------------------------------


def some_margins():
    """Margins of a made-up model: no-answer score minus best score, and what answers earn."""
    rng = np.random.default_rng(0)
    answerable = np.arange(200) < 140
    margins = np.where(answerable, rng.normal(-8, 5, 200), rng.normal(5, 4, 200))
    right = answerable & (rng.random(200) < 0.9)
    return {"margins": margins, "if_answered": right.astype(float),
            "if_declined": (~answerable).astype(float)}  # fmt: skip


@slider(
    threshold=Range(-20.0, 20.0, 0.5, start=0.0, label="threshold",
                    words=lambda v: f"decline where 'no answer' leads by more than {v:g}"),
    lesson="08",
    given=some_margins,
)  # fmt: skip
def threshold_picture(threshold, margins, if_answered, if_declined):
    """How far "no answer" leads, for both kinds of questions, and both kinds of error."""
    none = np.asarray(if_declined) > 0
    declined = np.asarray(margins) > threshold
    edges = np.linspace(-25, 25, 26)
    middle = (edges[:-1] + edges[1:]) / 2
    counts = {
        name: np.histogram(np.clip(np.asarray(margins)[chosen], -24.9, 24.9), edges)[0]
        for name, chosen in (("answer in the passage", ~none), ("no answer in it", none))
    }
    chart = curves(counts, x=middle, x_title="lead of 'no answer' (no-answer score − best score)",
                   y_title="questions", title="Two kinds of questions", size=(440, 180),
                   colors={"answer in the passage": PALETTE["value"],
                           "no answer in it": PALETTE["key"]},
                   verticals=[(threshold, "declined →")])  # fmt: skip
    missed = float(declined[~none].mean()) if (~none).any() else 0.0
    invented = float((~declined[none]).mean()) if none.any() else 0.0
    exact = float(np.where(declined, if_declined, if_answered).mean())
    shares = bars([missed, invented, exact],
                  ["has an answer, declined", "has none, answered all the same", "exact match"],
                  title="Both kinds of error", vmax=1, width=180,
                  color=[PALETTE["value"], PALETTE["key"], INK])  # fmt: skip
    return side_by_side(
        chart, shares, down=True,
        alt=f"At threshold {threshold:g}, {missed:.0%} of the questions with an answer are "
        f"declined and {invented:.0%} of those without are answered; exact match {exact:.2f}.",
        errors=np.array([missed, invented]), exact=np.array(exact),
    )  # fmt: skip


# --- Windows --------------------------------------------------------------------------------------

LONG = ("the ferry to the old harbor of lim leaves at half past six every morning except in "
        "winter when it waits for the sun").split()  # fmt: skip
ANSWER = (10, 13)  # half past six


@slider(
    room=Range(2, 24, 1, start=12, label="room", words=lambda v: f"{v} tokens a window"),
    overlap=Range(0, 12, 1, start=0, label="overlap", words=lambda v: f"{v} tokens shared"),
    lesson="08",
)
def window_picture(room, overlap):
    """A passage cut into windows, and which of them hold the whole answer."""
    if overlap >= room:
        return plain_note(
            f"An overlap of {overlap} leaves a window of {room} tokens no room to move on."
        )
    cut = windows(len(LONG), room, overlap)
    widths = [text_width(word, 12) + 8 for word in LONG]
    edges = np.concatenate([[14], 14 + np.cumsum(widths)])
    parts = []
    for i, word in enumerate(LONG):
        inside = ANSWER[0] <= i < ANSWER[1]
        fill = mix(PALETTE["value"], 0.45) if inside else CARD
        parts.append(rect(edges[i] + 1, 4, widths[i] - 2, 24, fill, stroke=LINE, radius=3))
        parts.append(label(edges[i] + widths[i] / 2, 20, word, size=12, anchor="middle"))
    whole = 0
    for row, (first, stop) in enumerate(cut):
        y = 38 + 24 * row
        has = first <= ANSWER[0] and stop >= ANSWER[1]
        touches = first < ANSWER[1] and stop > ANSWER[0]
        whole += has
        fill = mix(PALETTE["value"], 0.6) if has else mix(PALETTE["key"], 0.5) if touches else BLANK
        said = "whole answer" if has else "cut in two" if touches else "no answer here"
        parts.append(rect(edges[first], y, edges[stop] - edges[first], 18, fill, stroke=LINE,
                          radius=3))  # fmt: skip
        at = min(edges[first] + 4, edges[-1] - text_width(said, 11))
        parts.append(label(at, y + 13, said, size=11, font=SANS))
    total = sum(stop - first for first, stop in cut)
    title = f"{len(cut)} windows, {total} tokens to read, the answer whole in {whole}"
    return card(edges[-1] + 14, 44 + 24 * len(cut), parts, title=title,
                alt=f"{title}. Room {room}, overlap {overlap}.", whole=np.array(whole))  # fmt: skip
