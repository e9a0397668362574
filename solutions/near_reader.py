"""Question answering on long passages: only the sentences near the question are read.

Lesson 09. Sentence vectors find them, a QuestionAnswerer reads them, and what it answers is placed
in the whole passage again.

Chen et al., 2017, "Reading Wikipedia to answer open-domain questions", arXiv 1704.00051
"""

import itertools
import re
from dataclasses import dataclass, replace

import numpy as np

from solutions import _checks
from solutions._checks import describe
from solutions.sentence_vectors import search, sentence_vectors

# Where a sentence ends: a mark, perhaps closing quotes or brackets, and then a blank.
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*\s+")


def sentence_spans(text):
    """Where the sentences of a text stand: [(start, stop), ...] in characters, blanks left out.

    A rule, not a model: it also cuts behind an abbreviation ("Dr. Lind").
    """
    if not isinstance(text, str):
        raise ValueError(f"sentence_spans: expected a str, got {describe(text)}")
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    spans = []
    for first, stop in itertools.pairwise(cuts):
        piece = text[first:stop]
        start = first + len(piece) - len(piece.lstrip())
        if piece.strip():
            spans.append((start, start + len(piece.strip())))
    return spans


@dataclass(frozen=True)
class Excerpt:
    """Some sentences of a passage, joined by blanks.

    pieces: for each its (start in the excerpt, start in the passage, length), in characters.
    """

    text: str
    pieces: tuple

    @classmethod
    def of(cls, passage, spans):
        """The excerpt of a passage that consists of some of its spans, in their order."""
        pieces, at = [], 0
        for start, stop in spans:
            pieces.append((at, start, stop - start))
            at += stop - start + 1
        return cls(" ".join(passage[start:stop] for start, stop in spans), tuple(pieces))

    def in_passage(self, start, end):
        """(start, end) of an answer found here, as characters of the passage.

        An answer does not leave the sentence in which it starts: what lies beyond is cut off.
        """
        for here, there, length in reversed(self.pieces):
            if start >= here:
                return start - here + there, min(end - here, length) + there
        raise ValueError(f"in_passage: expected characters of the excerpt, got {start} to {end}")

    def in_excerpt(self, start, end):
        """(start, end) of a piece of the passage, as characters of the excerpt; None if absent."""
        for here, there, length in self.pieces:
            if there <= start and end <= there + length:
                return start - there + here, end - there + here
        return None


@dataclass(frozen=True)
class Item:
    """A question about a passage; answers: [(text, start), ...], none if the passage has none."""

    question: str
    passage: str
    answers: list


class NearReader:
    """Finds the sentences that are nearest to a question, and lets a QuestionAnswerer read those.

    encoder, tokenizer: for the sentences' vectors, as in `sentence_vectors`. reader: the
    QuestionAnswerer. keep: how many sentences it reads, in the order of the passage. The reader has
    less to read, and less to be misled by; what is not among the sentences it cannot find.

    Chen et al., 2017, "Reading Wikipedia to answer open-domain questions", arXiv 1704.00051
    """

    def __init__(self, encoder, tokenizer, reader, keep=3):
        _checks.whole("NearReader: keep", keep, 1)
        self.encoder, self.tokenizer, self.reader, self.keep = encoder, tokenizer, reader, keep
        self._vectors = {}

    def excerpts(self, items):
        """The Excerpt of each item (with `question` and `passage`)."""
        spans = {item.passage: sentence_spans(item.passage) for item in items}
        self._remember([item.question for item in items])
        self._remember([text[a:b] for text, places in spans.items() for a, b in places])
        made = []
        for item in items:
            places = spans[item.passage]
            texts = [item.passage[start:stop] for start, stop in places]
            order = []
            if texts:
                vectors = np.stack([self._vectors[text] for text in texts])
                nearest = search(self._vectors[item.question], vectors, self.keep)
                order = sorted(index for index, _ in nearest)
            made.append(Excerpt.of(item.passage, [places[i] for i in order]))
        return made

    def _remember(self, texts):
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            vectors = sentence_vectors(self.encoder, self.tokenizer, new)
            self._vectors.update(zip(new, vectors))

    def prepare(self, items):
        """Windows for `fit`, of the excerpts. A lost answer counts as "no answer": it is not there.

        items: as QuestionAnswerer.prepare takes them.
        """
        return self.reader.prepare([
            Item(item.question, excerpt.text, _moved(item.answers, excerpt))
            for item, excerpt in zip(items, self.excerpts(items))
        ])

    def answer(self, question, passage):
        """As QuestionAnswerer.answer; places are those in the whole passage."""
        return self.answer_all([Item(question, passage, [])])[0]

    def answer_all(self, items, decide=True):
        """As QuestionAnswerer.answer_all; places are those in the whole passage."""
        excerpts = self.excerpts(items)
        found = self.reader.answer_all(
            [Item(item.question, e.text, []) for item, e in zip(items, excerpts)], decide
        )
        answers = []
        for item, excerpt, one in zip(items, excerpts, found):
            if one.text:
                start, end = excerpt.in_passage(one.start, one.end)
                one = replace(one, text=item.passage[start:end], start=start, end=end)
            answers.append(one)
        return answers


def _moved(answers, excerpt):
    """The answers that the excerpt holds, [(text, start)] in its characters."""
    moved = []
    for text, start in answers:
        place = excerpt.in_excerpt(start, start + len(text))
        if place is not None:
            moved.append((text, place[0]))
    return moved
