"""Pairs of sentences, and whether the second follows from the first: `pairs.tsv`.

entailment: if the first sentence is true, so is the second. contradiction: then the second is not.
neutral: it may be or not. Each first sentence comes three times, once with each label, and all its
pairs are in one split. The format is that of SNLI and MNLI as tab-separated files: columns
sentence1, sentence2 and label (or gold_label), in any order, others are passed over.
"""

from typing import NamedTuple

from course.texts import FOLDER, _lines, _of_split, _refuse

PAIRS = FOLDER / "pairs.tsv"
LABELS = ["entailment", "contradiction", "neutral"]


class Pair(NamedTuple):
    """Two sentences and how the second stands to the first."""

    sentence1: str
    sentence2: str
    label: str
    split: str | None = None


def load_pairs(path=None, split=None):
    """The Pairs of a tab-separated file; all of them, or those of one split.

    A pair on whose label people did not agree (in SNLI and MNLI: "-") is left out. A line that does
    not fit raises ValueError with the file, the line, what was expected and what came.
    """
    path = PAIRS if path is None else path
    lines = _lines(path)
    names = [name.strip().lower() for name in lines[0][1].split("\t")]
    names = ["label" if name == "gold_label" else name for name in names]
    wanted = ("sentence1", "sentence2", "label")
    if any(names.count(name) != 1 for name in wanted):
        _refuse(path, 1, "the columns sentence1, sentence2 and label", repr(lines[0][1]))
    pairs = []
    for number, line in lines[1:]:
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != len(names):
            _refuse(path, number, f"{len(names)} columns", f"{len(cells)}: {line!r}")
        row = dict(zip(names, cells))
        if row["label"] == "-":
            continue
        if row["label"] not in LABELS:
            _refuse(path, number, f"one of {', '.join(LABELS)}", repr(row["label"]))
        if not row["sentence1"] or not row["sentence2"]:
            _refuse(path, number, "two sentences", repr(line))
        pairs.append(Pair(*(row[name] for name in wanted), row.get("split")))
    return _of_split(path, pairs, split)
