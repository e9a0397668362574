"""Sentences of known truth: is this name a person, a firm or a place, and which words say so?

    right   In short , Washington signed the letter .           PER: only the words to its right
    left    I bought shares in Washington last week .           ORG: only the words to its left
    both    A neighbor sued Washington , pale in the moonlight .      PER: only the two together

In each of the three sets every name is equally often of each type, before and behind the same
neutral words, so that neither the name nor the rest of the sentence tells. In `both` each side
rules out one type (nobody sues a place, no firm is pale): either side alone leaves two types at
even odds. The names of the held-out sentences never occur in the others.

    set      chance   knowing the left side   knowing the right side
    right    1/3      1/3                     1
    left     1/3      1                       1/3
    both     1/3      1/2                     1/2
"""

from dataclasses import dataclass

import numpy as np

SIDES = ("right", "left", "both")
TYPES = ("PER", "ORG", "LOC")
LEFT_KNOWN = {"right": 1 / 3, "left": 1.0, "both": 1 / 2}  # the best share right without the right

NAMES = (
    "Washington Jordan Lincoln Madison Georgia Paris Chelsea Phoenix Florence Houston Dallas "
    "Carolina Sydney Victoria Charlotte Kingston Hamilton Jackson Montgomery Brooklyn Savannah "
    "Cleveland Columbus Raleigh Denver Chester Lancaster Preston Troy Orlando Regina Vienna "
    "Kenya Dakota Virginia Devon Logan Nelson Darwin Marion"
).split()
HELD_OUT_NAMES = (
    "Milton Dalton Winston Lydia Bristol Denton Verona Holland Diana Florida Clarence Carson"
).split()

_NEUTRAL = {
    "left": (
        "In short ,", "As we know ,", "Some years ago", "In this old story ,", "Then",
        "On Sunday", "It is true that", "They say that",
    ),
    "right": (
        "last week .", "again .", "that summer .", "in May .", "before noon .", "this year .",
        "twice .", "for once .",
    ),
}  # fmt: skip
_LEFT = {
    "PER": (
        "They had tea with", "We wrote to my aunt", "She married", "He thanked Doctor",
        "Please ask Mrs.", "Our teacher is called", "I danced with", "The baby looks like",
    ),
    "ORG": (
        "I bought shares in", "She is the chairman of", "He drove a truck for",
        "They merged with", "The auditors checked", "We compared prices at",
        "My phone is made by", "The shareholders left",
    ),
    "LOC": (
        "They took the train to", "We flew over", "She rented a flat in", "He sailed along",
        "The river runs through", "It rained all day in", "Our bus stopped near",
        "I drove across",
    ),
}  # fmt: skip
_RIGHT = {
    "PER": (
        "signed the letter .", "smiled at the guests .", "wrote a short poem .",
        "married a nurse .", "laughed and sat down .", "lost her keys .",
        "forgot his umbrella .", "sang two songs .",
    ),
    "ORG": (
        "sells used trucks .", "hired forty clerks .", "published its accounts .",
        "went bankrupt .", "merged with a bank .", "opened three more shops .",
        "paid out a dividend .", "moved its factory .",
    ),
    "LOC": (
        "lies on a river .", "has two bridges .", "floods in spring .", "borders a desert .",
        "has warm summers .", "grew around a harbor .", "is an hour by train .",
        "became the capital .",
    ),
}  # fmt: skip
# The type that these words rule out, each leaving the other two alike.
_LEFT_RULES_OUT = {
    "LOC": ("The judge fined", "A neighbor sued", "They owe money to", "She got an offer from"),
    "PER": ("He planned the budget of", "She drew the flag of", "They joined the choir of",
            "We toured the offices of"),
    "ORG": ("She often dreams of", "This song is about", "The ship is named after",
            "The painting shows"),
}  # fmt: skip
_RIGHT_RULES_OUT = {
    "LOC": (", a loyal customer .", ", the tenant next door .", ", a rival of ours .",
            ", our old debtor ."),
    "PER": (", founded long ago .", ", now open to visitors .", ", run by monks .",
            ", full of scholars ."),
    "ORG": (", pale in the moonlight .", ", lovely as ever .", ", quiet at dawn .",
            ", asleep under the stars ."),
}  # fmt: skip


@dataclass(frozen=True)
class Controlled:
    """A sentence in words with its BIO labels; the name's place and type; which side tells it."""

    words: list
    labels: list
    place: int
    type: str
    side: str

    @property
    def text(self):
        return " ".join(self.words)


def _sides_of(side, kind, rng):
    """The words before and behind the name, drawn at random for one set and type."""
    if side == "right":
        return rng.choice(_NEUTRAL["left"]), rng.choice(_RIGHT[kind])
    if side == "left":
        return rng.choice(_LEFT[kind]), rng.choice(_NEUTRAL["right"])
    one, other = rng.permutation([other for other in TYPES if other != kind])
    return rng.choice(_LEFT_RULES_OUT[one]), rng.choice(_RIGHT_RULES_OUT[other])


def controlled_sentences(side, count, seed=0, held_out=False):
    """`count` sentences of one set ("right", "left" or "both"), a third of them of each type.

    Names come in turn, each three times in a row, once as each type. held_out: take the names that
    the other sentences never use.
    """
    if side not in SIDES:
        raise ValueError(f"side: expected right, left or both, got {side!r}")
    rng = np.random.default_rng([seed, SIDES.index(side), held_out])
    names = HELD_OUT_NAMES if held_out else NAMES
    sentences = []
    for number in range(count):
        name, kind = names[number // 3 % len(names)], TYPES[number % 3]
        before, behind = (str(part).split() for part in _sides_of(side, kind, rng))
        words = [*before, name, *behind]
        labels = ["O"] * len(words)
        labels[len(before)] = f"B-{kind}"
        sentences.append(Controlled(words, labels, len(before), kind, side))
    return sentences


def vocabulary():
    """The tokens an uncased tokenizer needs for the sentences, in the order of their ids.

    [PAD], [UNK], [CLS], [SEP], [MASK], every common word, and of the names only pieces: the first
    letter, and the two or one letters that go on. So a name never seen is made of pieces that were.
    """
    groups = (_NEUTRAL, _LEFT, _RIGHT, _LEFT_RULES_OUT, _RIGHT_RULES_OUT)
    phrases = " ".join(phrase for group in groups for some in group.values() for phrase in some)
    words = set(phrases.lower().replace(".", " .").split())
    pieces = set()
    for name in (name.lower() for name in NAMES + HELD_OUT_NAMES):
        pieces.add(name[0])
        pieces.update("##" + name[at : at + 2] for at in range(1, len(name), 2))
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(words | pieces)]


# --- Everyday sentences ---------------------------------------------------------------------------

# What people type when they try a tagger. PER, ORG and LOC stand for names of that type.
_EVERYDAY = """
PER works at ORG in LOC .|PER works for ORG .|My name is PER and I live in LOC .|PER lives in LOC .
PER moved from LOC to LOC .|PER left ORG and joined ORG .|ORG hired PER last year .
ORG opened an office in LOC .|PER met PER in LOC .|PER , the head of ORG , flew to LOC .
We went to LOC with PER .|Is LOC near LOC ?|ORG bought ORG .|I was born in LOC .
PER studied in LOC and now works at ORG .|A friend of PER found a job at ORG .
The ORG office in LOC is closed .|PER wrote to ORG about it .|Have you ever been to LOC ?
Hello PER , greetings from LOC !|Yesterday PER called me .|It rains in LOC today .
I bought it from ORG .|My sister PER sells cars .|The meeting starts at nine .
Nothing happened today .|It works again .|I like this town and its people .
""".replace("\n", "|").strip("|").split("|")


def everyday_sentences(names, count, seed=0):
    """`count` sentences such as people type to try a tagger: [(words, labels)].

    names: {"PER": [list of words, ...], "ORG": ..., "LOC": ...}, drawn from at random.
    """
    rng = np.random.default_rng([seed, 99])
    sentences = []
    for number in range(count):
        words, labels = [], []
        for word in _EVERYDAY[number % len(_EVERYDAY)].split():
            if word in TYPES:
                name = names[word][rng.integers(len(names[word]))]
                words += name
                labels += [f"B-{word}"] + [f"I-{word}"] * (len(name) - 1)
            else:
                words.append(word)
                labels.append("O")
        sentences.append((words, labels))
    return sentences
