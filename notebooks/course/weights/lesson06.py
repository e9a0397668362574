"""Trains the sentiment classifier that lessons 00 and 06 show first: sentiment.npz."""

from course.texts import load_tokenizer
from course.texts.generators import HELD_OUT_NOUNS, controlled_reviews
from solutions.encoder import Encoder, EncoderConfig, init_params
from solutions.text_classification import TextClassifier
from solutions.training import fit

LABELS = ["negative", "positive"]


def as_typed(review, i):
    """Some reviews in the present tense, some plain ones with "very": readers type both."""
    text = review.text
    if review.subject == "plain" and i % 2:
        text = text.replace(" was ", (" was very ", " was really ")[i % 4 // 2])
    if review.subject not in ("then and now", "expectation") and i % 3 == 0:
        text = text.replace(" was ", " is ")
    return review._replace(text=text)


def make(folder):
    """Write sentiment.npz; returns what it reaches, as text."""
    tokenizer = load_tokenizer()
    config = EncoderConfig(vocab_size=len(tokenizer), d_model=64, num_layers=2, num_heads=4,
                           d_ff=128, max_length=96)
    model = TextClassifier(Encoder(config, init_params(config, 0)), tokenizer, LABELS)

    def examples(reviews):
        return model.prepare([r.text for r in reviews], [r.label for r in reviews])

    dev, test = controlled_reviews(300, seed=2), controlled_reviews(600, 3, HELD_OUT_NOUNS)
    train = [as_typed(r, i) for i, r in enumerate(controlled_reviews(4000, seed=1))]
    fit(model, examples(train), examples(dev), epochs=14, lr=1e-3)
    model.save(folder / "sentiment.npz")
    saved = TextClassifier.load(folder / "sentiment.npz", tokenizer)
    return f"controlled sentences {saved.evaluate(examples(test)):.3f}"
