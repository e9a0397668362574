"""Small trained models that a lesson shows before it trains its own.

The files are remade by `python -m course weights`. They hold numbers and a line of JSON; none of
them needs pickle to be read.
"""

from functools import cache
from pathlib import Path

from course.texts import load_tokenizer

FOLDER = Path(__file__).resolve().parent
SENTIMENT = FOLDER / "sentiment.npz"


@cache
def sentiment():
    """The sentiment classifier of lessons 00 and 06."""
    from solutions.text_classification import TextClassifier

    return TextClassifier.load(SENTIMENT, load_tokenizer())
