"""The course's texts, their loaders, the controlled sentences and the vocabulary."""

import json
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from course.texts import (
    VOCAB,
    Gold,
    Mismatch,
    Question,
    Review,
    Sentence,
    load_conll,
    load_reviews,
    load_squad,
    load_tokenizer,
)
from course.texts.generators import (
    BAD,
    GOOD,
    HELD_OUT_NOUNS,
    NOUNS,
    TEMPLATES,
    _fill,
    controlled_reviews,
)
from course.texts.make_vocab import main, make_vocab

from solutions.embeddings import SPECIAL_TOKENS


def words_of(text):
    return re.findall(r"[\w']+", text.lower())


@pytest.fixture
def file(tmp_path):
    """file("text") is the path of a file that holds the text, or the bytes."""

    def write(content):
        path = tmp_path / "data.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


# --- reviews.tsv --------------------------------------------------------------------------------


def overlaps(texts, size):
    """For each pair of texts, how many different runs of `size` words they share; and each own."""
    runs = [
        {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}
        for words in map(words_of, texts)
    ]
    column = {run: i for i, run in enumerate(sorted(set().union(*runs)))}
    table = np.zeros((len(texts), len(column)), dtype=np.float32)
    for row, found in enumerate(runs):
        table[row, [column[run] for run in found]] = 1
    return table @ table.T, table.sum(axis=1)


def test_reviews_are_complete_and_balanced():
    reviews = load_reviews()
    assert len(reviews) == 900
    labels = ("negative", "neutral", "positive")
    for split, count in (("train", 200), ("dev", 50), ("test", 50)):
        assert Counter(r.label for r in reviews if r.split == split) == dict.fromkeys(labels, count)
        assert load_reviews(split=split) == [r for r in reviews if r.split == split]
    subjects = {review.subject for review in reviews}
    assert subjects == {"films", "meals", "journeys", "tools", "books", "shops"}
    cells = Counter((review.split, review.label, review.subject) for review in reviews)
    for split, sizes in (("train", {33, 34}), ("dev", {8, 9}), ("test", {8, 9})):
        assert {cells[split, label, subject] for label in labels for subject in subjects} == sizes
    lengths = [len(review.text.split()) for review in reviews]
    assert min(lengths) >= 4
    assert max(lengths) <= 40


def test_no_review_is_a_near_duplicate_of_another():
    reviews = load_reviews()
    texts = [review.text for review in reviews]
    assert len({" ".join(words_of(text)) for text in texts}) == 900
    split = np.array([review.split for review in reviews])
    other = np.triu(np.ones((900, 900), dtype=bool), 1)
    across = other & (split[:, None] != split)

    shared, own = overlaps(texts, 1)
    jaccard = shared / (own[:, None] + own - shared)
    assert jaccard[other].max() <= 0.5
    assert jaccard[across].max() < 0.35
    shared, own = overlaps(texts, 3)
    share = shared / np.maximum(1, np.minimum(own[:, None], own))
    assert share[across].max() < 0.35


def test_reviews_are_in_no_order():
    labels = [review.label for review in load_reviews()]
    changes = sum(a != b for a, b in pairwise(labels))
    assert 540 < changes < 660  # two of three neighbors differ, in a shuffled file


# --- the other texts, as far as the loaders see them ----------------------------------------------


def test_entities_load():
    sentences = load_conll()
    assert len(sentences) >= 700
    assert {sentence.split for sentence in sentences} == {"train", "dev", "test"}
    kinds = {label for sentence in sentences for label in sentence.labels}
    assert kinds == {"O"} | {f"{b}-{kind}" for b in "BI" for kind in ("PER", "ORG", "LOC")}


def test_reading_loads_and_every_answer_stands_where_it_says():
    questions, mismatches = load_squad()
    assert mismatches == []
    assert len({question.passage for question in questions}) >= 100
    assert sum(question.is_impossible for question in questions) >= 0.2 * len(questions)
    splits = {}
    for question in questions:
        splits.setdefault(question.passage, set()).add(question.split)
        for answer in question.answers:
            stop = answer.start + len(answer.text)
            assert question.passage[answer.start : stop] == answer.text
    assert all(len(of_passage) == 1 for of_passage in splits.values())
    train, _ = load_squad(split="train")
    assert train == [question for question in questions if question.split == "train"]


# --- load_reviews -------------------------------------------------------------------------------


def test_reviews_in_the_formats_of_the_field(file):
    assert load_reviews(file("a fine film\t1\nso dull\t0\n")) == [
        Review("a fine film", 1),
        Review("so dull", 0),
    ]
    assert load_reviews(file("sentence\tlabel\nso dull\t0\n")) == [Review("so dull", 0)]
    assert load_reviews(file("label\tnote\ttext\nbad\t7\tso dull\n")) == [Review("so dull", "bad")]
    assert load_reviews(file("one\tgood\ntwo\t3\n"))[1] == Review("two", "3")
    assert load_reviews(file("a\t-1\nb\t1")) == [Review("a", -1), Review("b", 1)]
    # A mark at the start, line ends of Windows, a last line without an end, empty lines behind.
    assert load_reviews(file("\ufefftext\tlabel\r\n“so” dull\tx\r\n\n")) == [
        Review("“so” dull", "x")
    ]
    # Quotes and other separators are part of the text.
    assert load_reviews(file('"a\u2028b\x0b"\t1\n'))[0].text == '"a\u2028b\x0b"'
    assert load_reviews(file("text\tlabel\n")) == []
    assert load_reviews(file("text\tlabel\tsplit\na\tx\ttrain\nb\ty\ttest\n"), split="test") == [
        Review("b", "y", "test")
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"line 1: expected text<TAB>label \(2 columns\), got 1 column: ''"),
        ("a\t1\nb 0\n", r"line 2: expected text<TAB>label \(2 columns\), got 1 column: 'b 0'"),
        ("a\t1\n\nb\t0\n", r"line 2: .* got 1 column: ''"),
        ("a\t1\nb\t0\tx\n", r"line 2: .* got 3 columns: 'b\\t0\\tx'"),
        ("a\t1\nb\t\n", r"line 2: expected text<TAB>label, got an empty label: 'b\\t'"),
        ("a\t1\n \t1\n", r"line 2: .* got an empty text"),
        ("index\tsentence\n0\tso dull\n", r"line 1: expected one column text and one column label"),
        ("text\tlabel\tlabel\na\t1\t1\n", r"line 1: expected one column text and one column label"),
        ("text\tlabel\tsplit\na\t1\n", r"line 2: expected text<TAB>label<TAB>split \(3 columns\)"),
        (b"a\t1\nb\xff\t0\n", r"line 2: expected UTF-8, got the byte 0xff"),
    ],
)  # fmt: skip
def test_a_malformed_review_is_refused_with_its_line(file, content, message):
    path = file(content)
    with pytest.raises(ValueError, match=message) as error:
        load_reviews(path)
    assert str(path) in str(error.value)


def test_a_split_that_is_not_there(file):
    with pytest.raises(ValueError, match=r"expected split to be one of .*'dev'.* got 'val'"):
        load_reviews(split="val")
    with pytest.raises(ValueError, match=r"one of \['None'\], got 'train'"):
        load_reviews(file("a\t1\n"), split="train")


# --- load_conll ---------------------------------------------------------------------------------

CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC
call NN I-NP O

-DOCSTART- -X- O O

Peter NNP I-NP I-PER
Ana NNP I-NP B-PER
Lee NNP I-NP I-PER
Bonn NNP I-NP I-LOC
"""


def test_conll_2003_in_iob1(file):
    first, second = load_conll(file(CONLL_2003))
    assert first == Sentence(["EU", "rejects", "German", "call"], ["B-ORG", "O", "B-MISC", "O"])
    assert second.labels == ["B-PER", "B-PER", "I-PER", "B-LOC"]
    chunks, _ = load_conll(file(CONLL_2003), column=2)
    assert chunks.labels == ["B-NP", "B-VP", "B-NP", "I-NP"]


def test_conll_of_other_makers(file):
    assert load_conll(file("Ana\tB-PER\nNew York\tB-LOC\n")) == [
        Sentence(["Ana", "New York"], ["B-PER", "B-LOC"])
    ]
    # The word last, labels first; blanks of any width; no empty line at the end.
    path = file("O  we\nB-LOC \t  rome".replace("\t", ""))
    assert load_conll(path, column=0, word_column=1) == [Sentence(["we", "rome"], ["O", "B-LOC"])]
    path = file("# split = dev\n# subject = sport\n# O\n#\tO\n\n\n \nx O\n".replace("\t", " "))
    assert load_conll(path) == [
        Sentence(["#", "#"], ["O", "O"], "dev", "sport"),
        Sentence(["x"], ["O"]),
    ]
    assert load_conll(path, split="dev") == load_conll(path)[:1]
    assert load_conll(file("-DOCSTART- O\na O\n-DOCSTART- O\nb O\n")) == [
        Sentence(["a"], ["O"]),
        Sentence(["b"], ["O"]),
    ]
    assert load_conll(file("")) == []


def test_labels_in_bio_stay_as_they_are():
    text = VOCAB.with_name("entities.conll").read_text(encoding="utf-8")
    written = [line.split("\t")[1] for line in text.splitlines() if "\t" in line]
    assert [label for sentence in load_conll() for label in sentence.labels] == written


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a O\nb\n", {}, r"line 2: expected 2 columns, got 1: 'b'"),
        ("a\n", {}, r"line 1: expected 2 columns, got 1: 'a'"),
        ("a O\n\nb N O\n", {}, r"line 3: expected 2 columns, got 3: 'b N O'"),
        ("a\tO\nb\t\n", {}, r"line 2: expected 2 columns, got 1: 'b\\t'"),
        ("a\tO\n\tO\n", {}, r"line 2: expected 2 columns, got 1"),
        ("a O\nb B\n", {}, r"line 2: expected a label O, B-type or I-type, got 'B'"),
        ("a O\nb S-PER\n", {}, r"line 2: .* got 'S-PER'"),
        ("a O\nb B-\n", {}, r"line 2: .* got 'B-'"),
        ("a NN O\n", {"column": 1}, r"line 1: expected a label O, B-type or I-type, got 'NN'"),
        ("a O\n", {"column": 2}, r"line 1: expected a column 2, got 2 columns: \['a', 'O'\]"),
        ("a O\n", {"word_column": -3}, r"line 1: expected a column -3, got 2 columns"),
        (b"a O\n\xc3 O\n", {}, r"line 2: expected UTF-8, got the byte 0xc3"),
    ],
)
def test_a_malformed_conll_line_is_refused_with_its_number(file, content, options, message):
    path = file(content)
    with pytest.raises(ValueError, match=message) as error:
        load_conll(path, **options)
    assert str(path) in str(error.value)


# --- load_squad ---------------------------------------------------------------------------------

PASSAGE = "Zoë 👍🏽 met Ana in Rome."


def squad(*entries, **article):
    return json.dumps({"data": [{"paragraphs": [{"context": PASSAGE, "qas": entries}], **article}]})


def entry(name, *answers, **more):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": name, "question": "Who?", "answers": answers, **more}


def test_squad_one_and_two(file):
    questions, mismatches = load_squad(file(squad(entry("q", ("Ana", 11), ("Zoë", 0)), title="T")))
    golds = [Gold("Ana", 11), Gold("Zoë", 0)]  # code points, whatever the emoji takes elsewhere
    assert questions == [Question("q", "Who?", PASSAGE, golds, "T")]
    assert mismatches == []
    two = squad(entry("a", ("Ana", 11), is_impossible=False), entry("b", is_impossible=True))
    questions, _ = load_squad(file(two))
    assert [question.is_impossible for question in questions] == [False, True]
    questions, _ = load_squad(file(squad(entry("q"), split="dev")), split="dev")
    assert questions[0].is_impossible


def test_answers_that_do_not_match_are_reported(file):
    path = file(
        squad(
            entry("a", ("Ana", 11), ("Ana", 12)),
            entry("b", ("Rome", 18)),
            entry("c", ("Rome", -5), ("Ana", 999)),
            entry("d", ("", 0)),
            entry("e", is_impossible=True),
        )
    )
    questions, mismatches = load_squad(path)
    assert [question.id for question in questions] == ["a", "b", "e"]
    assert questions[0].answers == [Gold("Ana", 11)]
    assert mismatches == [
        Mismatch("a", "Ana", 12, "na "),
        Mismatch("c", "Rome", -5, ""),  # where Python would count from the end
        Mismatch("c", "Ana", 999, ""),
        Mismatch("d", "", 0, ""),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [\n\n}', r"line 3: expected JSON, got Expecting value at column 1"),
        ("", r"line 1: expected JSON"),
        ("[]", r"top level: expected 'data', a list, got list"),
        ('{"data": 5}', r"\.data: expected a list, got 5"),
        ('{"data": [{"title": "x"}]}', r"data\[0\]: expected 'paragraphs', .* got \['title'\]"),
        ('{"data": [7]}', r"data\[0\]: expected 'paragraphs', a list, got int"),
        (squad({"id": "q", "answers": []}), r"qas\[0\]: expected 'question', a text"),
        (squad(entry("q"), {"id": 5}), r"qas\[1\]\.id: expected a text, got 5"),
        (squad(entry("q", ("Ana", "11"))), r"answers\[0\]\.answer_start: expected a whole number"),
        (squad(entry("q", ("Ana", True))), r"answers\[0\]\.answer_start: expected a whole number"),
        (squad(entry("q", is_impossible=False)), r"got 0 answers and is_impossible False"),
        (squad(entry("q", ("Ana", 11), is_impossible=True)), r"got 1 answers and is_impossible"),
        (b'{"data": "\xff"}', r"line 1: expected UTF-8, got the byte 0xff"),
    ],
)  # fmt: skip
def test_a_malformed_squad_file_is_refused_with_its_place(file, content, message):
    path = file(content)
    with pytest.raises(ValueError, match=message) as error:
        load_squad(path)
    assert str(path) in str(error.value)


# --- controlled sentences -------------------------------------------------------------------------

# One sentence of each template, with the verdict as a reader gave it.
JUDGED = {
    "The bar was lovely.": "positive",
    "We found the bar lovely.": "positive",
    "It was a lovely bar, all in all.": "positive",
    "The bar was not lovely at all.": "negative",
    "The bar was anything but lovely.": "negative",
    "Nobody could call the bar lovely.": "negative",
    "I never found the bar lovely.": "negative",
    "Nobody could say the bar was not lovely.": "positive",
    "It is not true that the bar was not lovely.": "positive",
    "Do not let anyone tell you the bar was not lovely.": "positive",
    "The bar was not awful but lovely.": "positive",
    "The bar was lovely, not awful.": "positive",
    "Instead of an awful bar we had a lovely one.": "positive",
    "I expected an awful bar but got a lovely one.": "positive",
    "I got a lovely bar, but had expected an awful one.": "positive",
    "The bar used to be awful and now it is lovely.": "positive",
    "The bar is lovely now, and used to be awful.": "positive",
    "My friends called the bar awful, but to me it was lovely.": "positive",
    "To me the bar was lovely, but my friends called it awful.": "positive",
    "The critics were right to call the bar lovely.": "positive",
    "The critics were wrong to call the bar lovely.": "negative",
    "The music was awful, but the bar as a whole was lovely.": "positive",
    "The bar as a whole was lovely, but the music was awful.": "positive",
}


def test_every_template_means_what_a_reader_says():
    filled = {}
    for _, sentence, sign in TEMPLATES:
        text = _fill(sentence, "lovely", "awful", "bar", "music", "")
        filled[text] = "positive" if sign > 0 else "negative"
    assert filled == JUDGED
    assert len(TEMPLATES) >= 12


def test_controlled_reviews_are_balanced_in_every_template():
    reviews = controlled_reviews(2 * len(TEMPLATES) * 20, seed=3)
    assert Counter(review.label for review in reviews) == {"positive": 460, "negative": 460}
    per_kind = Counter((review.subject, review.label) for review in reviews)
    for kind, count in Counter(kind for kind, _, _ in TEMPLATES).items():
        assert per_kind[kind, "positive"] == per_kind[kind, "negative"] == 20 * count
    assert len({review.text for review in reviews}) > 850
    labels = [review.label for review in reviews]
    changes = sum(a != b for a, b in pairwise(labels))
    assert 400 < changes < 520


def test_controlled_reviews_come_from_their_seed_and_nouns():
    assert controlled_reviews(50, seed=1) == controlled_reviews(50, seed=1)
    assert controlled_reviews(50, seed=1) != controlled_reviews(50, seed=2)
    assert controlled_reviews(0, seed=1) == []
    assert not set(NOUNS) & set(HELD_OUT_NOUNS)
    held_out = controlled_reviews(300, seed=1, nouns=HELD_OUT_NOUNS)
    seen = {word for review in held_out for word in words_of(review.text)}
    assert seen & set(HELD_OUT_NOUNS) == set(HELD_OUT_NOUNS)
    assert not seen & set(NOUNS)
    for wrong in (-1, 2.0, True, "9"):
        with pytest.raises(ValueError, match="n: expected a whole number"):
            controlled_reviews(wrong, seed=1)
    for wrong in ((), "bar"):
        with pytest.raises(ValueError, match="nouns: expected a list of words"):
            controlled_reviews(4, seed=1, nouns=wrong)


def test_every_word_of_the_controlled_sentences_is_one_token():
    tokenizer = load_tokenizer()
    for nouns in (NOUNS, HELD_OUT_NOUNS):
        for review in controlled_reviews(500, seed=4, nouns=nouns):
            encoding = tokenizer.encode(review.text)
            assert not any(token.startswith("##") for token in encoding.tokens)
            assert "[UNK]" not in encoding.tokens


def bag_accuracy(train, test, size, penalty, steps=400):
    """Test accuracy of logistic regression on counts of runs of 1 to `size` words."""

    def runs(review):
        words = re.findall(r"\w+|[,.]", review.text.lower())
        return [
            tuple(words[i : i + n]) for n in range(1, size + 1) for i in range(len(words) - n + 1)
        ]

    column = {run: i for i, run in enumerate(sorted({run for r in train for run in runs(r)}))}

    def counts(reviews):
        table = np.zeros((len(reviews), len(column) + 1))
        table[:, -1] = 1
        for row, review in enumerate(reviews):
            for run in runs(review):
                if run in column:
                    table[row, column[run]] += 1
        return table, np.array([review.label == "positive" for review in reviews])

    features, truth = counts(train)
    weights, speed = np.zeros(features.shape[1]), np.zeros(features.shape[1])
    for _ in range(steps):  # gradient descent with momentum
        probability = 1 / (1 + np.exp(-features @ weights))
        gradient = features.T @ (probability - truth) / len(train) + penalty * weights
        speed = 0.9 * speed - 0.1 * gradient
        weights = weights + speed
    features, truth = counts(test)
    return np.mean((features @ weights > 0) == truth)


def test_a_bag_of_words_cannot_read_the_controlled_sentences(measured):
    train = controlled_reviews(2000, seed=5)
    same, held_out = (
        controlled_reviews(1000, seed=6, nouns=nouns) for nouns in (NOUNS, HELD_OUT_NOUNS)
    )
    for penalty in (1e-2, 1e-4, 0):
        assert bag_accuracy(train, same, 1, penalty) < 0.75
        assert bag_accuracy(train, held_out, 1, penalty) < 0.75
        assert bag_accuracy(train, train, 1, penalty) < 0.75
    one, two = (bag_accuracy(train, held_out, size, 1e-4) for size in (1, 2))
    measured(f"controlled reviews: bag of words {one:.1%}, with pairs of words {two:.1%}")
    assert two < 0.9
    # The instrument works: where the words do tell, it reads them.
    plain = [review for review in train if review.subject == "plain"]
    assert bag_accuracy(plain[:150], plain[150:], 1, 1e-4) > 0.95


def test_a_bag_has_both_verdicts():
    """Where two verdicts are named, the same words in another order mean the opposite."""
    swapped = [sentence for _, sentence, _ in TEMPLATES if "y}" in sentence]
    assert len(swapped) >= 10
    for sentence in swapped:
        bags = [
            sorted(words_of(_fill(sentence, x, y, "bar", "music", "")))
            for x, y in ((GOOD[0], BAD[5]), (BAD[5], GOOD[0]))
        ]
        assert bags[0] == bags[1]


# --- the vocabulary -----------------------------------------------------------------------------


def test_the_vocabulary_is_what_the_command_makes(tmp_path, capsys):
    assert main(["--into", str(tmp_path / "vocab.txt")]) == 0
    assert capsys.readouterr().out == "vocab.txt: 3000 tokens\n"
    assert (tmp_path / "vocab.txt").read_bytes() == VOCAB.read_bytes()
    assert make_vocab(500) == make_vocab(500)


def test_the_vocabulary_fits_the_texts():
    tokenizer = load_tokenizer()
    assert tokenizer.tokens[:5] == list(SPECIAL_TOKENS)
    assert len(tokenizer) == 3000
    texts = [review.text for review in load_reviews(split="test")]
    texts += [" ".join(sentence.words) for sentence in load_conll(split="test")]
    texts += list({question.passage for question in load_squad(split="test")[0]})
    encodings = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    tokens = [token for encoding in encodings for token in encoding.tokens]
    words = sum(len(set(encoding.word_ids)) for encoding in encodings)
    assert tokens.count("[UNK]") < 0.002 * len(tokens)
    assert 1.15 < len(tokens) / words < 1.5  # most words whole, sub-words seen
    # Any word of ASCII letters can be spelled.
    spelled = tokenizer.encode("qzxjv 7y9 #@ ~").tokens
    assert "[UNK]" not in spelled
