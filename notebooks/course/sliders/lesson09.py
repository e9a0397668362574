"""Lesson 09's sliders, and the pictures that its cells draw."""

import html
from functools import cache

import numpy as np

from course.drawing import (
    PALETTE,
    Picture,
    bars,
    curves,
    entities,
    heatmap,
    shorten,
    side_by_side,
    visible,
)
from course.explore import Range, Text, slider
from course.sliders.lesson08 import marked, plain_note
from course.texts import load_tokenizer
from solutions.embeddings import pad_batch
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.pretrained import cosine_similarity
from solutions.question_answering import QuestionAnswerer
from solutions.text_classification import TextClassifier, mean_pool
from solutions.token_classification import TokenClassifier

SENTIMENTS = ["negative", "neutral", "positive"]


@cache
def stand_in():
    """A small encoder with random weights, for pictures that nobody gave a model."""
    tokenizer = load_tokenizer()
    config = EncoderConfig(len(tokenizer), 24, 2, 2, 32, 128)
    params = {n: a * (8 if a.ndim == 2 else 1) for n, a in init_params(config, 0).items()}
    return Encoder(config, params), tokenizer


def _stand_in():
    encoder, tokenizer = stand_in()
    return {"encoder": encoder, "tokenizer": tokenizer}


def _hidden(encoder, tokenizer, text, longest=24):
    """Tokens without [CLS] and [SEP], their hidden states, and the text's vector."""
    encoding = tokenizer.encode(text, max_length=longest)
    batch = pad_batch([encoding])
    hidden = encoder(**batch)
    return encoding.tokens[1:-1], hidden[0, 1:-1], mean_pool(hidden, batch["attention_mask"])


@slider(
    first=Text("The film was far too long.", label="first sentence", max_length=120),
    second=Text("I looked at my watch all through the movie.", label="second", max_length=120),
    lesson="09",
    given=_stand_in,
)
def similarity_picture(first, second, encoder, tokenizer):
    """The cosine of two sentences' vectors, and of each pair of their tokens."""
    rows, left, one = _hidden(encoder, tokenizer, first)
    columns, right, two = _hidden(encoder, tokenizer, second)
    whole = float(cosine_similarity(one, two)[0, 0])
    scale = bars([whole], ["the two sentences"], vmin=-0.2, vmax=1, color=PALETTE["weight"],
                 title="Cosine of their vectors")  # fmt: skip
    if not rows or not columns:
        return scale
    table = cosine_similarity(left, right)
    best = [(i, int(j)) for i, j in enumerate(table.argmax(axis=1))]
    grid = heatmap(table, rows, columns, marks=best, vmin=0, vmax=1, cell=34, fmt="{:.1f}",
                   title="Cosine of each pair of tokens")  # fmt: skip
    return side_by_side(scale, grid, down=True, similarity=np.array([whole]))


# --- Layers ---------------------------------------------------------------------------------------

LAYERS = np.arange(7)
# Shapes of curves for the sweeps; the lesson hands in what it has measured.
EXAMPLE = {
    "sentiment": np.array([0.4, 0.5, 0.55, 0.6, 0.6, 0.55, 0.5]),
    "entity type": np.array([0.6, 0.7, 0.75, 0.75, 0.7, 0.7, 0.6]),
}


@slider(
    layer=Range(0, 6, 1, start=3, label="layer",
                words=lambda v: "the embeddings" if v == 0 else f"after layer {v}"),
    lesson="09",
    given=lambda: {"scores": EXAMPLE, "chance": {}},
)  # fmt: skip
def probe_picture(layer, scores, chance):
    """Accuracy of a linear probe of each layer, one curve a question; one layer marked."""
    points = [(layer, float(values[layer]), f"{values[layer]:.2f}") for values in scores.values()]
    return curves(
        scores, x=LAYERS[: len(next(iter(scores.values())))], points=points, y_limits=(0, 1),
        verticals=[(layer, f"layer {layer}")], x_title="layer (0 = embeddings)",
        y_title="accuracy on dev", title="What a linear probe reads from each layer",
        lines=[(value, f"always the most frequent: {name}") for name, value in chance.items()],
        colors={"sentiment": PALETTE["key"], "entity type": PALETTE["query"]},
    )  # fmt: skip


SENTENCE = "The chef thanked her sister because she had carried the flour."


@slider(
    sentence=Text(SENTENCE, label="sentence", max_length=90),
    layer=Range(1, 6, 1, start=2, label="layer"),
    head=Range(1, 12, 1, start=5, label="head"),
    lesson="09",
    given=_stand_in,
)
def head_picture(sentence, layer, head, encoder, tokenizer):
    """The attention of one head in one layer, over a sentence of the reader's."""
    encoding = tokenizer.encode(sentence, max_length=22)
    _, attention = encoder.layers_and_attention(**pad_batch([encoding]))
    weights = attention[min(layer, len(attention)) - 1][0]
    weights = weights[min(head, len(weights)) - 1]
    return heatmap(weights, encoding.tokens, encoding.tokens, row_title="query",
                   column_title="key", row_color=PALETTE["query"], cell=30, fmt="",
                   column_color=PALETTE["key"], title=f"Layer {layer}, head {head}",
                   weights=weights)  # fmt: skip


@slider(
    top=Range(0, 6, 1, start=2, label="layers trained",
              words=lambda v: "the head alone" if v == 0 else f"the top {v}"),
    lesson="09",
    given=lambda: {"config": stand_in()[0].config, "measured": {0: 0.5, 2: 0.7}},
)  # fmt: skip
def layers_trained(top, config, measured):
    """How many numbers train, and how much of a step's work is left, when the bottom is frozen."""
    layer = 4 * config.d_model**2 + 2 * config.d_model * config.d_ff + 9 * config.d_model
    layer += config.d_ff
    top = min(top, config.num_layers)
    trained = top * layer / 1e6
    every = config.vocab_size + config.max_length + config.num_segments + 2
    rest = every * config.d_model / 1e6 + (config.num_layers - top) * layer / 1e6
    numbers = bars([trained, rest], ["trained", "frozen"], title="Parameters, in millions", width=200,
                   color=[PALETTE["mine"], PALETTE["reference"]])  # fmt: skip
    # A layer costs one unit forward and two backward; kept hidden states cost nothing.
    steps = bars([3 * top, 3 * config.num_layers], ["this choice", "all layers"], width=200,
                 fmt="{:.0f}", color=[PALETTE["mine"], PALETTE["reference"]],
                 title="Work of a step (a layer forward = 1)")  # fmt: skip
    names = [f"top {n}" if n else "head alone" for n in measured]
    known = bars(
        list(measured.values()),
        names,
        vmax=1,
        width=200,
        title="Measured, on dev",
        color=[PALETTE["mine"] if n == top else PALETTE["reference"] for n in measured],
    )
    return side_by_side(side_by_side(numbers, known), steps, down=True)


# --- Three heads ----------------------------------------------------------------------------------


def untrained_heads():
    """The three heads with random weights, on the stand-in."""
    encoder, tokenizer = stand_in()
    return {
        "classifier": TextClassifier(encoder, tokenizer, SENTIMENTS, "mean"),
        "tagger": TokenClassifier(encoder, tokenizer),
        "answerer": QuestionAnswerer(encoder, tokenizer),
    }


PASSAGE = "Mara Lind drove from Zurich to Oslo last May. She hated the long road, but loved Oslo."


@slider(
    passage=Text(PASSAGE, label="passage", max_length=400),
    question=Text("Where did Mara Lind drive?", label="question", max_length=100),
    lesson="09",
    given=untrained_heads,
)
def three_heads(passage, question, classifier, tagger, answerer):
    """Sentiment, entities and an answer from what the reader types, with how sure each head is."""
    probabilities = classifier.probabilities([passage])[0]
    mood = bars(probabilities, classifier.labels, vmax=1, width=220, title="Sentiment",
                color=[PALETTE[name] for name in classifier.labels],
                probabilities=probabilities)  # fmt: skip
    found = tagger.predict(passage)
    names = entities(passage, [(e.start, e.end, e.type) for e in found])
    sure = ", ".join(f"{shorten(visible(e.text), 24)}: {e.type} {e.score:.2f}" for e in found[:8])
    try:
        answer = answerer.answer(question, passage)
        lead = answer.score - answer.no_answer_score
        said = f"“{visible(answer.text)}”" if answer.text else "no answer in this passage"
        said += f" (best piece ahead of no answer by {lead:.1f})" if np.isfinite(lead) else ""
        reply = marked(passage, answer.start, answer.end, said)
    except ValueError as error:
        said = str(error)
        reply = plain_note(said)._repr_html_()
    body = (
        mood._repr_html_()
        + f"<h4>Entities</h4>{names.body}<div>{html.escape(sure) or 'none found'}</div>"
        + f"<h4>Answer</h4>{reply}"
    )
    alt = f"{mood.alt} {names.alt} Answer: {said}."
    return Picture(body, alt, {"probabilities": probabilities}, kind="html")


def found_picture(query, texts, found):
    """What a search has found: texts with their similarity as bars."""
    return bars([score for _, score in found], [shorten(texts[i], 34) for i, _ in found], vmax=1,
                title=f"Nearest to: {shorten(query, 60)}")  # fmt: skip


def results(rows, aim=None):
    """A table of results as bars: {name: score}."""
    return bars(list(rows.values()), list(rows), vmax=1, line=aim,
                        line_text="" if aim is None else "aim")  # fmt: skip
