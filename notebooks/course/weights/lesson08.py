"""The question answerer that lesson 08 shows before it trains one itself."""

from functools import cache
from pathlib import Path

import numpy as np

from course.texts.small_passages import small_passages, small_vocabulary
from course.weights import FOLDER
from solutions.embeddings import WordPieceTokenizer
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.question_answering import QuestionAnswerer, best_threshold, exact_match, mean_scores
from solutions.training import fit

ANSWERS = FOLDER / "answers.npz"
# Two short facts first, of one kind: the person is all that tells them apart.
FIRST_STAGE = {"people": 2, "facts": 1, "no_answer": 0.0, "alike": 1.0}


def untrained(causal=False, seed=0):
    """An encoder and its two heads with random weights, of the size that the lesson trains."""
    tokenizer = WordPieceTokenizer(small_vocabulary())
    config = EncoderConfig(
        len(tokenizer), d_model=64, num_layers=2, num_heads=4, d_ff=128, max_length=64,
        num_segments=3, dropout=0.0, attention_dropout=0.0, causal=causal,
    )  # fmt: skip
    params = init_params(config, seed)
    for name, array in params.items():
        if array.ndim == 2:
            params[name] = array * 5  # 0.02 suits a width of 768; at 64 it leaves all scores near 0
    return QuestionAnswerer(
        Encoder(config, params), tokenizer, mark_shared=True, word_dropout=0.1,
        max_answer_length=5, seed=seed,
    )  # fmt: skip


def margins(model, items):
    """For each question: no-answer score minus best score, what answering and declining earn."""
    best = model.answer_all(items, decide=False)
    golds = [[gold.text for gold in item.answers] for item in items]
    return (
        np.array([answer.no_answer_score - answer.score for answer in best]),
        np.array([exact_match(answer.text, gold) for answer, gold in zip(best, golds)]),
        np.array([exact_match("", gold) for gold in golds]),
    )


def make_answers(path):
    """Train the question answerer in two stages and write it; says how good it is."""
    model = untrained()
    first = small_passages(3000, 1, **FIRST_STAGE)
    fit(model, model.prepare(first), steps=300, lr=1.5e-3)
    train = small_passages(12000, 2, turned=0.5, no_answer=0.25, alike=0.7)
    dev = small_passages(500, 3)
    fit(model, model.prepare(train), model.prepare(dev), steps=2200, lr=3e-3, dev_every=200)
    model.threshold = best_threshold(*margins(model, dev))[0]
    model.save(path)
    test = small_passages(500, 4, held_out=True)
    scores = mean_scores(
        [answer.text for answer in model.answer_all(test)],
        [[gold.text for gold in item.answers] for item in test],
    )
    return f"{Path(path).name}, exact match on held-out people {scores['exact_match']:.3f}"


def make(folder):
    """Write answers.npz into a folder."""
    return make_answers(Path(folder) / "answers.npz")


@cache
def answers():
    """The question answerer of lessons 00 and 08."""
    return QuestionAnswerer.load(ANSWERS)
