"""Small passages of known truth: a few people, a few facts about each, and a question.

    John Smith works at Google headquarters. Mara Lind lives in Oslo. Ormond Bank employs Mara Lind.
    Where does Mara work?    ->    Ormond Bank

To answer, a model has to find the right kind of fact (a place of work) *and* the right person. The
people of the held-out passages never occur in training, neither their first names nor their last.
"""

from dataclasses import dataclass

import numpy as np

from . import Gold

FIRST_NAMES = (
    "John Mara Ana Omar Lena Peter Ruth Ivan Clara Hugo Nadia Felix Iris Paul Elsa Karim Alice "
    "Otto Vera Simon Dina Erik Laura Yusuf Martha Leo Sofia Bruno Helen Ravi Greta Tom Amina "
    "Victor Jane Pavel Rosa Martin Ingrid Daniel"
).split()
LAST_NAMES = (
    "Smith Lind Costa Haddad Novak Berg Moreau Petrov Weber Garcia Ito Larsen Kaya Rossi Brown "
    "Silva Jansen Okafor Kumar Fischer Dahl Marsh Ferrari Stone"
).split()
HELD_OUT_FIRST_NAMES = (
    "Maria Jonas Selma Oscar Tamar Henry Noor Gilbert Anouk Mateo Freya Walter".split()
)
HELD_OUT_LAST_NAMES = "Keller Tanaka Adams Vidal Sorensen Cohen Mills Popov".split()


@dataclass(frozen=True)
class Relation:
    """A kind of fact: how one asks for it, two ways to state it, and what it can be.

    The second statement names the value before anything that says what it is.
    """

    question: str
    statement: str
    turned: str
    values: tuple


RELATIONS = {
    "work": Relation(
        "Where does {} work?", "{name} works at {value}.", "{value} employs {name}.",
        ("Google headquarters", "Ormond Bank", "Hill Farm", "Silver Bakery", "City Hospital",
         "Blue Lamp Films", "Northern Rail", "Harbor Hotel", "Green Mill", "Castle Museum",
         "Union Press", "Falcon Mines", "Grand Theater", "Bell Telephone", "Atlas", "Meridian")),
    "live": Relation(
        "Where does {} live?", "{name} lives in {value}.", "{value} is the home of {name}.",
        ("Oslo", "Rome", "Lisbon", "Cairo", "New York", "Vienna", "Lima", "Dublin", "Prague",
         "Delhi", "San Marino", "Toronto", "Tunis", "Geneva", "Cape Town", "Kyoto")),
    "born": Relation(
        "When was {} born?", "{name} was born in {value}.", "{value} is when {name} was born.",
        ("1971", "1974", "1978", "1980", "1983", "1985", "1987", "1990", "1992", "1995", "1998",
         "2001", "March 1969", "June 1976", "May 1988", "August 1994")),
    "play": Relation(
        "What does {} play?", "{name} plays {value}.", "{value} is what {name} plays.",
        ("chess", "tennis", "football", "the violin", "the piano", "the flute", "the drums",
         "table tennis", "the bass guitar", "cards", "golf", "hockey", "the cello", "the trumpet",
         "water polo", "darts")),
}  # fmt: skip


@dataclass(frozen=True)
class SmallPassage:
    """A passage with one question; `answers` is [] if the passage does not tell.

    same_kind: how many facts of the kind asked for the passage tells, about anyone.
    """

    question: str
    passage: str
    answers: list  # of Gold(text, start), start in code points of the passage
    relation: str
    person: str
    same_kind: int


def small_passages(
    count, seed, people=2, facts=2, no_answer=0.2, turned=0.25, alike=0.5, held_out=False
):
    """`count` passages with a question each.

    people: how many. facts: how many about each.
    no_answer: the share of questions about a fact that the passage does not give.
    turned: the share of sentences that name the value first.
    alike: the share of passages that tell the same kinds of facts about everyone, so that the kind
    alone never gives the answer; in the others each person has kinds of their own.
    held_out: True for people who never occur in training.
    """
    if not 1 <= facts <= len(RELATIONS) or not 1 <= people <= 8:
        raise ValueError(
            f"small_passages: expected 1 to 8 people and 1 to {len(RELATIONS)} facts about each, "
            f"got {people} and {facts}"
        )
    if no_answer > 0 and facts == len(RELATIONS):
        raise ValueError("small_passages: with every fact given, no question lacks an answer")
    rng = np.random.default_rng(seed)
    names = (
        (HELD_OUT_FIRST_NAMES, HELD_OUT_LAST_NAMES) if held_out else (FIRST_NAMES, LAST_NAMES)
    )
    return [_one(rng, names, people, facts, no_answer, turned, alike) for _ in range(count)]


def _one(rng, names, people, facts, no_answer, turned, alike):
    first, last = (rng.permutation(list_of)[:people] for list_of in names)
    people = [f"{a} {b}" for a, b in zip(first, last)]
    told = _facts(rng, people, facts, rng.random() < alike)
    passage, golds = _write(rng, told, turned)
    if rng.random() < no_answer:
        name = people[rng.integers(len(people))]
        given = {kind for other, kind, _ in told if other == name}
        missing = [kind for kind in RELATIONS if kind not in given]
        # Half of the time, if it can be, ask for what the passage tells about someone else.
        others = [kind for kind in missing if any(kind == other for _, other, _ in told)]
        kinds = others if others and rng.random() < 0.5 else missing
        kind, answers = kinds[rng.integers(len(kinds))], []
    else:
        which = rng.integers(len(told))
        (name, kind, _), answers = told[which], [golds[which]]
    who = name if rng.random() < 0.3 else name.split()[0]
    same_kind = sum(other == kind for _, other, _ in told)
    question = RELATIONS[kind].question.format(who)
    return SmallPassage(question, passage, answers, kind, name, same_kind)


def _facts(rng, people, facts, alike):
    """[(name, kind, value), ...] in random order; no value occurs twice."""
    told, shared = [], rng.permutation(list(RELATIONS))[:facts]
    for name in people:
        for kind in shared if alike else rng.permutation(list(RELATIONS))[:facts]:
            taken = {value for _, other, value in told if other == kind}
            free = [value for value in RELATIONS[kind].values if value not in taken]
            told.append((name, str(kind), free[rng.integers(len(free))]))
    return [told[i] for i in rng.permutation(len(told))]


def _write(rng, told, turned):
    """The passage, and where it states the value of each fact."""
    passage, golds = "", []
    for name, kind, value in told:
        relation = RELATIONS[kind]
        template = relation.turned if rng.random() < turned else relation.statement
        sentence = template.format(name=name, value=value)
        at = sentence.index(value)
        sentence = sentence[0].upper() + sentence[1:]
        passage += " " if passage else ""
        golds.append(Gold(sentence[at : at + len(value)], len(passage) + at))
        passage += sentence
    return passage, golds


def small_vocabulary():
    """The tokens of a tokenizer for these passages: whole words, and half of the training names.

    The other half are [UNK], so that a model learns to do without knowing a name; so are the
    held-out names, and every word that is not in the passages.
    """
    text = " ".join(
        [*FIRST_NAMES[: len(FIRST_NAMES) // 2], *LAST_NAMES[: len(LAST_NAMES) // 2]]
        + [s.format("", name="", value="") for r in RELATIONS.values()
           for s in (r.question, r.statement, r.turned)]
        + [value for r in RELATIONS.values() for value in r.values]
    )  # fmt: skip
    words = text.lower().replace("?", " ? ").replace(".", " . ").split()
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(words))]
