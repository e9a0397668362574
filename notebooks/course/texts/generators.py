"""Sentences made by a rule, for experiments whose truth is known.

In `controlled_reviews` the words alone do not tell the verdict; their order does:

    I expected a dull show but got a lovely one.      positive
    I expected a lovely show but got a dull one.      negative

Each template is filled as often for one verdict as for the other, and with the same words, so a
bag of words cannot do well. Give the test set nouns of its own (`HELD_OUT_NOUNS`), and no test
sentence has been seen in training.
"""

import numpy as np

from . import Review

GOOD = ("good", "great", "lovely", "wonderful", "excellent", "pleasant", "delightful", "superb")
BAD = ("bad", "awful", "terrible", "dreadful", "poor", "dull", "horrible", "disappointing")

# Places and events: all can be called any of these, and can have changed since the last time.
NOUNS = (
    "hotel", "restaurant", "bakery", "market", "museum", "show", "series", "festival", "choir",
    "band", "magazine", "course", "ferry", "park", "garden", "beach", "bar", "tour", "play",
    "concert", "zoo", "club", "fair", "cinema",
)  # fmt: skip
HELD_OUT_NOUNS = (
    "theater", "canteen", "castle", "orchestra", "gallery", "diner", "circus", "library",
)  # fmt: skip
PARTS = ("start", "weather", "music", "parking", "first hour", "waiting line")
OPENERS = ("", "", "", "Honestly, ", "In short, ", "To be clear, ", "Well, ")

# kind, sentence, and whether {x} is the verdict (+1) or its opposite (-1). {y} is always the
# opposite of {x}; {a x} is {x} with its article.
TEMPLATES = (
    ("plain", "the {noun} was {x}.", +1),
    ("plain", "we found the {noun} {x}.", +1),
    ("plain", "it was {a x} {noun}, all in all.", +1),
    ("negation", "the {noun} was not {x} at all.", -1),
    ("negation", "the {noun} was anything but {x}.", -1),
    ("negation", "nobody could call the {noun} {x}.", -1),
    ("negation", "I never found the {noun} {x}.", -1),
    ("double negation", "nobody could say the {noun} was not {x}.", +1),
    ("double negation", "it is not true that the {noun} was not {x}.", +1),
    ("double negation", "do not let anyone tell you the {noun} was not {x}.", +1),
    ("correction", "the {noun} was not {y} but {x}.", +1),
    ("correction", "the {noun} was {x}, not {y}.", +1),
    ("correction", "instead of {a y} {noun} we had {a x} one.", +1),
    ("expectation", "I expected {a y} {noun} but got {a x} one.", +1),
    ("expectation", "I got {a x} {noun}, but had expected {a y} one.", +1),
    ("then and now", "the {noun} used to be {y} and now it is {x}.", +1),
    ("then and now", "the {noun} is {x} now, and used to be {y}.", +1),
    ("other people", "my friends called the {noun} {y}, but to me it was {x}.", +1),
    ("other people", "to me the {noun} was {x}, but my friends called it {y}.", +1),
    ("other people", "the critics were right to call the {noun} {x}.", +1),
    ("other people", "the critics were wrong to call the {noun} {x}.", -1),
    ("whole and part", "the {part} was {y}, but the {noun} as a whole was {x}.", +1),
    ("whole and part", "the {noun} as a whole was {x}, but the {part} was {y}.", +1),
)


def _with_article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def _fill(sentence, x, y, noun, part, opener):
    sentence = sentence.replace("{a x}", _with_article(x)).replace("{a y}", _with_article(y))
    sentence = sentence.format(x=x, y=y, noun=noun, part=part)
    return opener + sentence if opener else sentence[0].upper() + sentence[1:]


def controlled_reviews(n, seed, nouns=NOUNS):
    """`n` Reviews, half of them positive and half negative, whose truth follows from a rule.

    The label is "positive" or "negative"; `subject` is the kind of template, such as "negation".
    Every template comes equally often (give or take one) and equally often with each label. A
    sentence may come twice.
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise ValueError(f"controlled_reviews: n: expected a whole number from 0, got {n!r}")
    if isinstance(nouns, str) or len(nouns) == 0:
        raise ValueError(f"controlled_reviews: nouns: expected a list of words, got {nouns!r}")
    rng = np.random.default_rng(seed)
    first = rng.permutation(len(TEMPLATES))
    reviews = []
    for i in range(n):
        kind, sentence, sign = TEMPLATES[first[i // 2 % len(TEMPLATES)]]
        positive = i % 2 == 0
        good, bad, noun, part, opener = (
            str(rng.choice(words)) for words in (GOOD, BAD, nouns, PARTS, OPENERS)
        )
        x, y = (good, bad) if positive == (sign > 0) else (bad, good)
        text = _fill(sentence, x, y, noun, part, opener)
        reviews.append(Review(text, "positive" if positive else "negative", None, kind))
    return [reviews[i] for i in rng.permutation(n)]
