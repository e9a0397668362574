"""The masked-word model that lesson 05 shows before it trains one itself, and what it reads."""

import re
from functools import cache
from pathlib import Path

import numpy as np

from course.texts import load_conll, load_reviews, load_squad, load_tokenizer
from course.texts.generators import controlled_reviews
from course.weights import FOLDER
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.pretraining import MaskedWordModel
from solutions.training import fit

MASKED_WORDS = FOLDER / "pretrained_mlm.npz"
WIDER = 5.0  # 0.02 suits a width of 768; at 64, attention would start out with next to no say


def sentences(split):
    """Every sentence of one split of the course's texts: reviews, entities, reading."""
    found = [review.text for review in load_reviews(split=split)]
    found += [" ".join(sentence.words) for sentence in load_conll(split=split)]
    questions = load_squad(split=split)[0]
    for passage in dict.fromkeys(question.passage for question in questions):
        found += [part for part in re.split(r"(?<=[.!?])\s+", passage) if part.strip()]
    return found + [question.question for question in questions]


def rule_sentences():
    """The sentences that lesson 06 trains on, without their labels."""
    return [review.text for review in controlled_reviews(2400, seed=1)]


def untrained(seed=0, **sizes):
    """An encoder with random weights, of the size that lessons 05 and 06 train."""
    config = EncoderConfig(**{
        "vocab_size": len(load_tokenizer()), "d_model": 64, "num_layers": 2, "num_heads": 4,
        "d_ff": 128, "max_length": 64, "dropout": 0.0, "attention_dropout": 0.0, **sizes,
    })  # fmt: skip
    params = init_params(config, seed)
    return Encoder(config, {n: a * WIDER if a.ndim == 2 else a for n, a in params.items()})


def make(folder):
    """Write pretrained_mlm.npz into a folder; says how well it guesses unseen sentences."""
    path = Path(folder) / MASKED_WORDS.name
    model = MaskedWordModel(untrained(), load_tokenizer())
    train = model.prepare(sentences("train") + rule_sentences())
    dev = model.prepare(sentences("dev"))
    fit(model, train, dev, steps=5000, lr=3e-3, dev_every=625)
    model.save(path)
    score = MaskedWordModel.load(path, load_tokenizer()).score(dev)
    return f"{path.name}, dev loss {score['loss']:.3f}, accuracy {score['accuracy']:.3f}"


@cache
def masked_words():
    """The model that has read the course's texts for longer than a lesson lasts."""
    return MaskedWordModel.load(MASKED_WORDS, load_tokenizer())


@cache
def random_masked_words():
    """The same model with random weights."""
    return MaskedWordModel(untrained(), load_tokenizer())


def frequency_loss(model, train, dev, seed=0):
    """Loss and accuracy on the same hidden tokens for whoever only knows how often words occur."""
    counts = np.full(len(model.tokenizer), 0.1)
    for encoding in train:
        np.add.at(counts, np.array(encoding.input_ids)[~np.array(encoding.special_tokens_mask)], 1)
    labels = model.guesses(dev, seed)[1]
    return (float(-np.log(counts[labels] / counts.sum()).mean()),
            float((labels == counts.argmax()).mean()))
