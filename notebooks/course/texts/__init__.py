"""The course's texts, and loaders for them and for data sets of the same formats.

    load_reviews()          sentences with a label             lesson 06    or SST-2, GLUE
    load_conll()            words with BIO labels              lesson 07    or CoNLL-2003, WNUT
    load_squad()            passages, questions, answers       lesson 08    or SQuAD 1.1 and 2.0
    load_tokenizer()        the tokenizer of vocab.txt

Give a loader a path to put another data set in the place of the course's. A line that does not
fit its format raises ValueError with the file, the line, what was expected and what came.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from solutions.embeddings import WordPieceTokenizer

FOLDER = Path(__file__).resolve().parent
REVIEWS = FOLDER / "reviews.tsv"
ENTITIES = FOLDER / "entities.conll"
READING = FOLDER / "reading.json"
VOCAB = FOLDER / "vocab.txt"


class Review(NamedTuple):
    """A text and its label: a name as str, or an int if every label of the file is one."""

    text: str
    label: str | int
    split: str | None = None
    subject: str | None = None


class Sentence(NamedTuple):
    """The words of a sentence and a BIO label for each: O, B-type or I-type."""

    words: list[str]
    labels: list[str]
    split: str | None = None
    subject: str | None = None


class Gold(NamedTuple):
    """An answer that a person gave: text == passage[start : start + len(text)]."""

    text: str
    start: int


class Question(NamedTuple):
    """A question about a passage, and the answers people gave: none if the passage has none."""

    id: str
    question: str
    passage: str
    answers: list[Gold]
    title: str = ""
    split: str | None = None

    @property
    def is_impossible(self):
        return not self.answers


class Mismatch(NamedTuple):
    """An answer that does not stand at its answer_start, and what stands there."""

    id: str
    answer: str
    start: int
    found: str


@cache
def load_tokenizer(path=VOCAB):
    """The tokenizer of the course's vocabulary, or of another vocab.txt; one for each file."""
    return WordPieceTokenizer.from_file(path)


def _refuse(path, line, expected, got):
    got = got if len(got) <= 80 else got[:77] + "..."
    raise ValueError(f"{path}, line {line}: expected {expected}, got {got}")


def _read(path):
    """The text of a UTF-8 file, with a byte-order mark or without, and \\n at the end of lines."""
    data = Path(path).read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        _refuse(path, line, "UTF-8", f"the byte {data[error.start]:#04x}")
    return text.replace("\r\n", "\n")


def _lines(path):
    """Pairs (number, line); only \\n ends a line, so that a text may hold other separators."""
    return list(enumerate(_read(path).rstrip("\n").split("\n"), start=1))


def _of_split(path, examples, split):
    if split is None:
        return examples
    chosen = [example for example in examples if example.split == split]
    if not chosen:
        there = sorted({str(example.split) for example in examples})
        raise ValueError(f"{path}: expected split to be one of {there}, got {split!r}")
    return chosen


# --- Labelled texts -----------------------------------------------------------------------------


def load_reviews(path=None, split=None):
    """The Reviews of a tab-separated file; all of them, or those of one split.

    The first line may name the columns, in any order: text (or sentence), label, and perhaps split
    and subject; others are passed over. Without such a line a row is text<TAB>label, as in SST-2.
    """
    path = REVIEWS if path is None else path
    lines = _lines(path)
    header = lines[0][1]
    names = [name.strip().lower() for name in header.split("\t")]
    names = ["text" if name == "sentence" else name for name in names]
    if "text" in names or "label" in names:
        lines = lines[1:]
        if names.count("text") != 1 or names.count("label") != 1:
            _refuse(path, 1, "one column text and one column label", repr(header))
    else:
        names = ["text", "label"]
    reviews = [_review(path, number, line, names) for number, line in lines]
    if reviews and all(re.fullmatch(r"-?\d+", review.label) for review in reviews):
        reviews = [review._replace(label=int(review.label)) for review in reviews]
    return _of_split(path, reviews, split)


def _review(path, number, line, names):
    cells = [cell.strip() for cell in line.split("\t")]
    wanted = "<TAB>".join(names)
    if len(cells) != len(names):
        columns = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
        _refuse(path, number, f"{wanted} ({len(names)} columns)", f"{columns}: {line!r}")
    row = dict(zip(names, cells))
    for name in ("text", "label", "split", "subject"):
        if row.get(name) == "":
            _refuse(path, number, wanted, f"an empty {name}: {line!r}")
    return Review(row["text"], row["label"], row.get("split"), row.get("subject"))


# --- Labelled words -----------------------------------------------------------------------------

_COMMENT = re.compile(r"#\s*(\w+)\s*=\s*(.*?)\s*")
_BIO = re.compile(r"O|[BI]-\S+")


def load_conll(path=None, column=-1, split=None, word_column=0):
    """The Sentences of a CoNLL file; all of them, or those of one split.

    A line has a word and its labels, between tabs or blanks; an empty line ends a sentence.
    `column` says which label (-1: the last). Lines with -DOCSTART- are passed over. A comment
    `# split = train` or `# subject = sport` before a sentence is about that sentence.

    Labels in IOB1, where an entity may begin with I-, become BIO, where it begins with B-.
    """
    path = ENTITIES if path is None else path
    sentences, words, labels, about = [], [], [], {}
    num_columns = None
    for number, line in [*_lines(path), (None, "")]:
        comment = _COMMENT.fullmatch(line) if not words else None
        if comment:
            about[comment[1]] = comment[2]
        elif not line.strip() or line.startswith("-DOCSTART-"):
            if words:
                of_sentence = about.get("split"), about.get("subject")
                sentences.append(Sentence(words, _bio(labels), *of_sentence))
                words, labels, about = [], [], {}
        else:
            cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())]
            num_columns = num_columns or max(len(cells), 2)
            if len(cells) != num_columns or "" in cells:
                filled = len(cells) - cells.count("")
                _refuse(path, number, f"{num_columns} columns", f"{filled}: {line!r}")
            word, label = _word_and_label(path, number, cells, word_column, column)
            words.append(word)
            labels.append(label)
    return _of_split(path, sentences, split)


def _word_and_label(path, number, cells, word_column, column):
    for wanted in (word_column, column):
        if not -len(cells) <= wanted < len(cells):
            _refuse(path, number, f"a column {wanted}", f"{len(cells)} columns: {cells}")
    if not _BIO.fullmatch(cells[column]):
        _refuse(path, number, "a label O, B-type or I-type", repr(cells[column]))
    return cells[word_column], cells[column]


def _bio(labels):
    """BIO from IOB1 or BIO: an I- that continues nothing becomes a B-."""
    out, inside = [], None
    for label in labels:
        kind = None if label == "O" else label[2:]
        out.append(f"B-{kind}" if label.startswith("I-") and kind != inside else label)
        inside = kind
    return out


# --- Passages and questions ---------------------------------------------------------------------


def load_squad(path=None, split=None):
    """(questions, mismatches) of a SQuAD file, 1.1 or 2.0; all of them, or those of one split.

    Every answer is looked up in its passage. One that does not stand at its answer_start is left
    out and reported as a Mismatch; a question that loses all its answers is left out too.
    """
    path = READING if path is None else path
    try:
        content = json.loads(_read(path))
    except json.JSONDecodeError as error:
        _refuse(path, error.lineno, "JSON", f"{error.msg} at column {error.colno}")
    questions, mismatches = [], []
    for i, article in enumerate(_get(path, content, "", "data", list)):
        at = f"data[{i}]"
        title = article.get("title", "") if isinstance(article, dict) else ""
        for j, paragraph in enumerate(_get(path, article, at, "paragraphs", list)):
            at = f"data[{i}].paragraphs[{j}]"
            passage = _get(path, paragraph, at, "context", str)
            for k, entry in enumerate(_get(path, paragraph, at, "qas", list)):
                question, wrong = _question(path, f"{at}.qas[{k}]", entry, passage)
                mismatches += wrong
                if question.answers or not wrong:
                    split_of = article.get("split")
                    questions.append(question._replace(title=title, split=split_of))
    return _of_split(path, questions, split), mismatches


def _get(path, entry, at, key, kind):
    words = {list: "a list", str: "a text", int: "a whole number"}[kind]
    if not isinstance(entry, dict) or key not in entry:
        got = sorted(entry) if isinstance(entry, dict) else type(entry).__name__
        raise ValueError(f"{path}, {at or 'top level'}: expected {key!r}, {words}, got {got}")
    value = entry[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{path}, {at}.{key}: expected {words}, got {value!r}")
    return value


def _question(path, at, entry, passage):
    name = str(_get(path, entry, at, "id", str))
    text = _get(path, entry, at, "question", str)
    golds, wrong = [], []
    answers = _get(path, entry, at, "answers", list)
    for number, answer in enumerate(answers):
        where = f"{at}.answers[{number}]"
        gold = Gold(
            _get(path, answer, where, "text", str), _get(path, answer, where, "answer_start", int)
        )
        found = passage[gold.start : gold.start + len(gold.text)] if gold.start >= 0 else ""
        if gold.text and found == gold.text:
            golds.append(gold)
        else:
            wrong.append(Mismatch(name, gold.text, gold.start, found))
    impossible = entry.get("is_impossible", not answers)
    if impossible is not (not answers):
        raise ValueError(
            f"{path}, {at}: expected answers unless is_impossible, got {len(answers)} answers "
            f"and is_impossible {impossible!r}"
        )
    return Question(name, text, passage, golds), wrong
