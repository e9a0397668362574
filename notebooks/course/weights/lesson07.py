"""The taggers that lesson 07 shows before it trains some itself: entities.npz and two of
controlled sentences, one that looks both ways and one that only looks back."""

from functools import cache
from pathlib import Path

import numpy as np

from course.texts import load_conll, load_tokenizer
from course.texts.washington import SIDES, controlled_sentences, everyday_sentences, vocabulary
from course.weights import FOLDER, lesson05
from solutions.embeddings import WordPieceTokenizer
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.token_classification import TokenClassifier, names_of, swap_entities
from solutions.training import fit

ENTITIES = FOLDER / "entities.npz"
DIRECTIONS = {
    "bidirectional": FOLDER / "direction_bidirectional.npz",
    "causal": FOLDER / "direction_causal.npz",
}
WIDER = 5.0  # 0.02 suits a width of 768; narrower encoders start wider


def random_encoder(tokenizer, seed, **sizes):
    """An encoder with random weights."""
    config = EncoderConfig(vocab_size=len(tokenizer), **sizes)
    params = init_params(config, seed)
    return Encoder(config, {n: a * WIDER if a.ndim == 2 else a for n, a in params.items()})


def untrained(seed=0, positions=True, pretrained=False):
    """A tagger with a random head, on a random encoder or on the one that lesson 05 pretrained."""
    tokenizer = load_tokenizer()
    encoder = random_encoder(
        tokenizer, seed, d_model=64, num_layers=2, num_heads=4, d_ff=128, max_length=64,
        positions=positions,
    )  # fmt: skip
    if pretrained:
        for name, array in lesson05.masked_words().encoder.params.items():
            encoder.params[name][...] = array
    return TokenClassifier(encoder, tokenizer, seed=seed)


def prepared(model, split):
    """The sentences of entities.conll of one split, as examples for a model."""
    sentences = load_conll(split=split)
    return model.prepare([s.words for s in sentences], [s.labels for s in sentences])


def training_examples(model, copies=5, everyday=60, strange=0.2, seed=0):
    """The training sentences, and copies of them with their names exchanged.

    The copies also hold `everyday` sentences made by rule. A share of the names, `strange`, is
    random words of the vocabulary that the training sentences never use.
    """
    sentences = load_conll(split="train")
    words, labels = [s.words for s in sentences], [s.labels for s in sentences]
    examples = model.prepare(words, labels)
    made = everyday_sentences(names_of(words, labels), everyday, seed)
    seen = {word.lower() for sentence in words for word in sentence}
    other = [t for t in model.tokenizer.tokens if t.isalpha() and len(t) > 2 and t not in seen]
    words, labels = words + [w for w, _ in made], labels + [own for _, own in made]
    rng = np.random.default_rng(seed)
    for _ in range(copies - 1):
        examples += model.prepare(*swap_entities(words, labels, rng, other, strange))
    return examples


def name_tagger(causal=False, seed=0):
    """A small untrained tagger for the controlled sentences: one layer, 32 wide, four heads."""
    tokenizer = WordPieceTokenizer(vocabulary())
    encoder = random_encoder(
        tokenizer, seed, d_model=32, num_layers=1, num_heads=4, d_ff=64, max_length=32,
        dropout=0.0, attention_dropout=0.0, causal=causal,
    )  # fmt: skip
    return TokenClassifier(encoder, tokenizer, dropout=0.0, all_pieces=False, seed=seed)


def train_on_names(model, seed=0, count=400, epochs=12):
    """Train on `count` controlled sentences of each set; returns the History."""
    train = [s for side in SIDES for s in controlled_sentences(side, count, seed)]
    examples = model.prepare([s.words for s in train], [s.labels for s in train])
    return fit(model, examples, epochs=epochs, lr=4e-3, batch_size=16, seed=seed)


def share_right(model, side, seed=0, count=300):
    """Share of held-out names of one controlled set that get the right type."""
    test = controlled_sentences(side, count, seed, held_out=True)
    found = model.label_words([s.words for s in test])
    return float(np.mean([f[s.place] == s.labels[s.place] for f, s in zip(found, test)]))


def make_entities(path):
    """Train the entity tagger and write it; says how good it is."""
    model = untrained(seed=2, pretrained=True)
    fit(model, training_examples(model, 8, seed=2), epochs=4, lr=2e-3, batch_size=16, seed=2)
    model.save(path)
    saved = TokenClassifier.load(path, load_tokenizer())
    return f"{Path(path).name}, entity F1 on test {saved.evaluate(prepared(saved, 'test')):.3f}"


def make_directions(folder):
    """Train the two small taggers and write them; says how often each is right."""
    said = []
    for name, path in DIRECTIONS.items():
        model = name_tagger(causal=name == "causal")
        train_on_names(model)
        model.save(Path(folder) / path.name)
        said += [f"{name} {side} {share_right(model, side):.2f}" for side in SIDES]
    return ", ".join(said)


def make(folder):
    """Write the three files into a folder."""
    return f"{make_entities(Path(folder) / ENTITIES.name)}; {make_directions(folder)}"


@cache
def entities():
    """The entity tagger of lessons 00 and 07."""
    return TokenClassifier.load(ENTITIES, load_tokenizer())


@cache
def directions():
    """{"bidirectional": tagger, "causal": tagger} of the controlled sentences."""
    tokenizer = WordPieceTokenizer(vocabulary())
    return {name: TokenClassifier.load(path, tokenizer) for name, path in DIRECTIONS.items()}
