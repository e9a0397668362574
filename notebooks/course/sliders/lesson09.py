"""Lesson 09's sliders, and the pictures that its cells draw."""

import html
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

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
from course.texts import Review, load_tokenizer
from course.weights import lesson07, lesson08
from solutions.embeddings import pad_batch
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.pretrained import NearReader, cosine_similarity, search, sentence_vectors
from solutions.question_answering import QuestionAnswerer, mean_scores
from solutions.text_classification import BagOfWords, TextClassifier, mean_pool
from solutions.token_classification import TokenClassifier, decode_entities, entity_scores
from solutions.training import fit

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


LONGEST = {"similarity": 24, "head": 22}  # tokens that a picture has room for


def _remarks(tokenizer, texts, longest):
    """What a reader has to know about the texts typed, a sentence each."""
    said = []
    for text in texts:
        tokens = tokenizer.encode(text).tokens
        if len(tokens) == 2:
            said.append("A text without a word: only [CLS] and [SEP] are left of it.")
        if "[UNK]" in tokens:
            said.append("[UNK] stands for all that the vocabulary lacks: what it was is lost.")
        if len(tokens) > longest:
            said.append(f"Only the first {longest} of {len(tokens)} tokens are shown and used.")
    return list(dict.fromkeys(said))


def _hidden(encoder, tokenizer, text, longest=LONGEST["similarity"]):
    """Tokens without [CLS] and [SEP], their hidden states, and the text's vector."""
    encoding = tokenizer.encode(text, max_length=longest)
    batch = pad_batch([encoding])
    hidden = encoder(**batch)
    return encoding.tokens[1:-1], hidden[0, 1:-1], mean_pool(hidden, batch["attention_mask"])


@slider(
    first=Text("The film was far too long.", label="first sentence", max_length=120),
    second=Text("It never seemed to end.", label="second", max_length=120),
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
    remarks = map(plain_note, _remarks(tokenizer, (first, second), LONGEST["similarity"]))
    if not rows or not columns:
        return side_by_side(scale, *remarks, down=True, similarity=np.array([whole]))
    table = cosine_similarity(left, right)
    best = [(i, int(j)) for i, j in enumerate(table.argmax(axis=1))]
    grid = heatmap(table, rows, columns, marks=best, vmin=0, vmax=1, cell=34, fmt="{:.1f}",
                   title="Cosine of each pair of tokens")  # fmt: skip
    return side_by_side(scale, grid, *remarks, down=True, similarity=np.array([whole]))


# --- Search ---------------------------------------------------------------------------------------


def _shelf():
    encoder, tokenizer = stand_in()
    reviews = [Review(text, "neutral") for text in ("It opens at nine.", "Cold soup.", "We left.")]
    vectors = sentence_vectors(encoder, tokenizer, [review.text for review in reviews])
    return {"encoder": encoder, "tokenizer": tokenizer, "reviews": reviews, "vectors": vectors}


@slider(
    query=Text("waste of money", label="search for", max_length=100),
    lesson="09",
    given=_shelf,
)
def search_picture(query, encoder, tokenizer, reviews, vectors):
    """The five reviews nearest to what the reader types, with their cosines and labels."""
    (vector,) = sentence_vectors(encoder, tokenizer, [query])
    found = search(vector, vectors, top_k=5)
    lines = [(f"{similarity:.2f}", reviews[i].label, reviews[i].text) for i, similarity in found]
    cell = '<td style="padding: 2px 14px 2px 0; text-align: left; vertical-align: top">'
    rows = [("<b>cosine</b>", "<b>label</b>", "<b>review</b>"),
            *((number, label, html.escape(text)) for number, label, text in lines)]  # fmt: skip
    body = "".join("<tr>" + "".join(f"{cell}{part}</td>" for part in row) + "</tr>" for row in rows)
    remarks = _remarks(tokenizer, [query], encoder.config.max_length)
    body = f"<table>{body}</table>" + "".join(f"<div>{one}</div>" for one in remarks)
    said = "; ".join(f"{number} ({label}) {text}" for number, label, text in lines)
    alt = " ".join([f"Nearest to “{visible(query)}”: {said}", *remarks])
    return Picture(body, alt, {"similarity": np.array([s for _, s in found])}, kind="html")


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
        verticals=[(layer, "")], x_title="layer (0 = embeddings)",
        y_title="accuracy on dev", title="What a linear probe reads from each layer",
        lines=[(value, f"always the most frequent: {name}") for name, value in chance.items()],
        colors={"sentiment": PALETTE["key"], "entity type": PALETTE["query"]},
    )  # fmt: skip


SENTENCE = "The chef thanked her sister because she had carried the flour."


@slider(
    sentence=Text(SENTENCE, label="sentence", max_length=90),
    layer=Range(1, 6, 1, start=1, label="layer"),
    head=Range(1, 12, 1, start=3, label="head"),
    lesson="09",
    given=_stand_in,
)
def head_picture(sentence, layer, head, encoder, tokenizer):
    """The attention of one head in one layer, over a sentence of the reader's."""
    encoding = tokenizer.encode(sentence, max_length=LONGEST["head"])
    _, attention = encoder.layers_and_attention(**pad_batch([encoding]))
    weights = attention[min(layer, len(attention)) - 1][0]
    weights = weights[min(head, len(weights)) - 1]
    grid = heatmap(weights, encoding.tokens, encoding.tokens, row_title="query",
                   column_title="key", row_color=PALETTE["query"], cell=30, fmt="",
                   column_color=PALETTE["key"], title=f"Layer {layer}, head {head}",
                   weights=weights)  # fmt: skip
    remarks = map(plain_note, _remarks(tokenizer, [sentence], LONGEST["head"]))
    return side_by_side(grid, *remarks, down=True)


@slider(
    top=Range(0, 6, 1, start=2, label="layers trained",
              words=lambda v: "the head alone" if v == 0 else f"the top {v}"),
    lesson="09",
    given=lambda: {"config": stand_in()[0].config},
)  # fmt: skip
def layers_trained(top, config):
    """How many numbers train, and how much of a step's work is left, when the bottom is frozen."""
    layer = 4 * config.d_model**2 + 2 * config.d_model * config.d_ff + 9 * config.d_model
    layer += config.d_ff
    top = min(top, config.num_layers)
    tables = (config.vocab_size + config.max_length + config.num_segments + 2) * config.d_model
    parts = np.array([top * layer, (config.num_layers - top) * layer, tables]) / 1e6
    mine, other = PALETTE["mine"], PALETTE["reference"]
    numbers = bars(parts, ["layers trained", "layers frozen", "embeddings, frozen"], width=260,
                   vmax=max(tables, config.num_layers * layer) / 1e6, color=[mine, other, other],
                   title="Parameters, in millions", parameters=parts)  # fmt: skip
    # A layer costs one unit forward and two backward; kept hidden states cost nothing.
    steps = bars([3 * top, 3 * config.num_layers], ["this choice", "all layers"], width=260,
                 fmt="{:.0f}", color=[mine, other],
                 title="Work of a step (a layer forward = 1)")  # fmt: skip
    return side_by_side(numbers, steps, down=True)


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
        if np.isfinite(lead):
            said += f" (score of the best piece minus that of no answer: {lead:.1f})"
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


# --- Reading by search ----------------------------------------------------------------------------

MOST_KEPT = 8


def measure_kept(reader, items):
    """How often the answer is among the k sentences nearest to the question, and what one reads.

    reader: a NearReader. items: questions that have an answer. Returns {"found", "tokens"}, each
    (MOST_KEPT,) for k = 1, 2, ...: a share, and the mean number of tokens of an input.
    """
    found, tokens = [], []
    for keep in range(1, MOST_KEPT + 1):
        near = NearReader(reader.encoder, reader.tokenizer, reader.reader, keep)
        near._vectors = reader._vectors  # each sentence goes through the encoder once
        windows = near.prepare(items)
        found.append(np.mean([window.start > 0 for window in windows]))
        tokens.append(np.mean([len(window) for window in windows]))
    return {"found": np.array(found), "tokens": np.array(tokens)}


@slider(
    keep=Range(1, MOST_KEPT, 1, start=2, label="sentences read"),
    lesson="09",
    given=lambda: {"found": np.linspace(0.6, 1, MOST_KEPT), "tokens": np.linspace(30, 120, 8)},
)
def sentences_kept(keep, found, tokens):
    """What reading only the nearest sentences saves, and how many answers it loses."""
    points = [(keep, float(found[keep - 1]), f"{found[keep - 1]:.2f}")]
    share = curves(
        {"the answer is among them": found}, x=np.arange(1, len(found) + 1), points=points,
        y_limits=(0, 1), x_title="sentences read", y_title="share of the questions",
        title="Answers that are still there (dev)", size=(380, 170),
        colors={"the answer is among them": PALETTE["mine"]},
    )  # fmt: skip
    read = bars(
        [tokens[keep - 1], tokens[-1]], [f"{keep} read", f"{len(tokens)} read"], fmt="{:.0f}",
        vmin=0, color=[PALETTE["mine"], PALETTE["reference"]], title="Tokens of an input",
    )  # fmt: skip
    return side_by_side(share, read, down=True)


# --- Errors of a tagger ---------------------------------------------------------------------------


def entity_errors(true, said):
    """How predicted and true entities go together: {kind: count}, over lists of sentences.

    "right"; "borders" (the type is right, first or last word is not); "type" (the place overlaps,
    the type is another); "invented" (nothing is there); "missed" (true, and nothing said there).
    """
    counts = dict.fromkeys(("right", "borders", "type", "invented", "missed"), 0)
    for gold, labels in zip(true, said, strict=True):
        there, found = decode_entities(gold), decode_entities(labels)
        for kind, first, last in found:
            met = [e for e in there if e[1] <= last and first <= e[2]]
            if (kind, first, last) in there:
                counts["right"] += 1
            elif any(e[0] == kind for e in met):
                counts["borders"] += 1
            else:
                counts["type" if met else "invented"] += 1
        for _, first, last in there:
            counts["missed"] += not any(e[1] <= last and first <= e[2] for e in found)
    return counts


# --- What pretraining bought ----------------------------------------------------------------------


def examples_of(model, reviews):
    """Reviews in the form that `fit` takes."""
    return model.prepare([r.text for r in reviews], [r.label for r in reviews])


def from_scratch(reviews, sentences, questions):
    """Test scores of models that saw the course's texts and nothing else: {task: {name: score}}.

    reviews, sentences, questions: {"train", "dev", "test"} (questions: "test" will do). Sentiment
    is trained here as in lesson 06, in seconds; lessons 07 and 08 ship theirs.
    """
    tokenizer = load_tokenizer()
    bag = BagOfWords(tokenizer, SENTIMENTS)
    config = EncoderConfig(len(tokenizer), 64, 2, 4, 128, 64)
    small = TextClassifier(Encoder(config, init_params(config, 0)), tokenizer, SENTIMENTS)
    mood, recipes = {}, {"bag of words": (bag, 15, 0.01), "lesson 06": (small, 8, 1e-3)}
    for name, (model, epochs, rate) in recipes.items():
        parts = {split: examples_of(model, some) for split, some in reviews.items()}
        fit(model, parts["train"], parts["dev"], epochs=epochs, batch_size=32, lr=rate)
        mood[name] = model.evaluate(parts["test"])
    true = [one.labels for one in sentences["test"]]
    said = lesson07.entities().label_words([one.words for one in sentences["test"]])
    golds = [[gold.text for gold in item.answers] for item in questions["test"]]
    found = lesson08.answers().answer_all(questions["test"], decide=False)
    answers = mean_scores([answer.text for answer in found], golds)["answerable"]["f1"]
    return {
        "sentiment": mood,
        "entities": {"lesson 07": entity_scores(true, said)["f1"]},
        "answers": {"lesson 08": answers},
    }


def bought(scores):
    """{task: {name: score}} as one picture: from scratch gray, on pretrained weights blue."""
    parts = []
    for task, (measure, rows) in scores.items():
        colors = [PALETTE["reference"] if name in SCRATCH else PALETTE["mine"] for name in rows]
        parts.append(bars(list(rows.values()), list(rows), vmax=1, color=colors,
                          title=f"{task}: {measure} on test"))  # fmt: skip
    return side_by_side(*parts, down=True)


SCRATCH = ("bag of words", "lesson 06", "lesson 07", "lesson 08", "nearest sentence")


def subsets(rng, size, labels, copies):
    """`copies` random choices of `size` rows each, the classes equally often."""
    kinds = np.unique(labels)
    chosen = []
    for _ in range(copies):
        rows = [rng.permutation(np.flatnonzero(labels == k))[: size // len(kinds)] for k in kinds]
        chosen.append(np.concatenate(rows))
    return chosen


# --- What the lesson's cells compute --------------------------------------------------------------

CHECKED = Path(__file__).resolve().parents[3] / "tests" / "pretrained_reference.npz"


def reference():
    """What transformers computed: texts, and hidden states (6, length, 384), 0 at padding."""
    with np.load(CHECKED) as file:
        texts = json.loads(str(file["about"]))["texts"]
        return {"texts": texts, "hidden": file["batch_hidden"] * file["batch_mask"][:, :, None]}


def batch(tokenizer, texts):
    """Texts as the encoder takes them."""
    return pad_batch([tokenizer.encode(text) for text in texts])


def broken_encoders(encoder, inputs, expected):
    """{what was changed: largest difference} for popular wrong readings of a checkpoint."""
    config, params = encoder.config, encoder.params
    wide, real = config.d_model, inputs["attention_mask"]

    def differs(changed_config, changed):
        hidden = Encoder(changed_config, {**params, **changed})(**inputs)
        return float(np.abs(hidden - expected)[real].max())

    names = [f"layers.{i}.attention.output.weight" for i in range(config.num_layers)]
    turned = {n: np.ascontiguousarray(params[n].T) for n in names}
    swapped = {}
    for i in range(config.num_layers):
        for kind in ("weight", "bias"):
            name = f"layers.{i}.attention.qkv.{kind}"
            query, key, value = np.split(params[name], 3, axis=-1)
            swapped[name] = np.concatenate([query, value, key], axis=-1)
    zeros = np.zeros((config.num_segments, wide), np.float32)
    return {
        "as it should be": differs(config, {}),
        "eps of LayerNorm 1e-5, not 1e-12": differs(replace(config, eps=1e-5), {}),
        "no segment vector added": differs(config, {"embeddings.segment": zeros}),
        "6 heads, not 12": differs(replace(config, num_heads=6), {}),
        "one square weight of each layer not turned": differs(config, turned),
        "key and value swapped": differs(config, swapped),
    }


def review_states(encoder, tokenizer, reviews, batch_size=32):
    """Pooled vectors of every layer: {"cls", "mean"}: (7, reviews, d), and class numbers."""
    encodings = [tokenizer.encode(review.text) for review in reviews]
    order = np.argsort([len(e) for e in encodings], kind="stable")
    shape = (encoder.config.num_layers + 1, len(reviews), encoder.config.d_model)
    out = {"cls": np.empty(shape, np.float32), "mean": np.empty(shape, np.float32)}
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        inputs = pad_batch([encodings[i] for i in rows])
        states, _ = encoder.layers_and_attention(**inputs)
        for layer, state in enumerate(states):
            out["cls"][layer, rows] = state[:, 0]
            out["mean"][layer, rows] = mean_pool(state, inputs["attention_mask"])
    return {**out, "labels": np.array([SENTIMENTS.index(review.label) for review in reviews])}


TYPES = ["O", "PER", "ORG", "LOC"]


def word_states(encoder, tokenizer, sentences, batch_size=32):
    """First pieces' vectors of every layer, {"states": (7, words, d)}, and the words' types."""
    states, labels = [], []
    for first in range(0, len(sentences), batch_size):
        some = sentences[first : first + batch_size]
        encodings = [tokenizer.encode_words(sentence.words) for sentence in some]
        layers, _ = encoder.layers_and_attention(**pad_batch(encodings))
        for row, (encoding, sentence) in enumerate(zip(encodings, some)):
            ids = encoding.word_ids
            at = [i for i, w in enumerate(ids) if w is not None and w != ids[i - 1]]
            states.append(np.stack([layer[row, at] for layer in layers]))
            labels += [TYPES.index(sentence.labels[ids[i]].split("-")[-1]) for i in at]
    return {"states": np.concatenate(states, axis=1), "labels": np.array(labels)}


def simple_heads(encoder, tokenizer, texts):
    """{pattern: (layer, head, share)}: the head that follows each simple pattern most closely."""
    sums, count = 0, 0
    for text in texts:
        encoding = tokenizer.encode(text, max_length=64)
        _, attention = encoder.layers_and_attention(**pad_batch([encoding]))
        weights = np.stack([layer[0] for layer in attention])  # (layers, heads, n, n)
        inner = slice(1, len(encoding) - 1)
        own = np.arange(1, len(encoding) - 1)
        shares = [
            weights[:, :, own, own - 1],
            weights[:, :, own, own + 1],
            weights[:, :, own, own],
            weights[:, :, inner, -1],
            weights[:, :, inner, 0],
        ]
        sums = sums + np.stack([share.sum(axis=-1) for share in shares])
        count += len(own)
    names = ["the token before", "the token after", "the token itself", "[SEP]", "[CLS]"]
    found = {}
    for name, share in zip(names, sums / count):
        layer, head = np.unravel_index(share.argmax(), share.shape)
        found[name] = int(layer) + 1, int(head) + 1, float(share.max())
    return found
