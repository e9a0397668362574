"""Lesson 10's checks: they look at what comes out, and leave the way there to you."""

from functools import cache

import numpy as np

from course.exercises import Case, Mistake, register
from course.texts import load_tokenizer
from solutions.embeddings import pad_batch
from solutions.pretrained import linear_probe

# --- pair_batch -----------------------------------------------------------------------------------


def pair_batch(tokenizer, pairs, max_length=64):
    """One batch of pairs as an encoder takes it: [CLS] first [SEP] second [SEP], padded.

    pairs: a list of (first, second), two texts each. Returns a dict of input_ids, attention_mask
    and token_type_ids, each (pairs, length): as long as the longest pair, at most `max_length`. A
    pair that is longer is cut as `tokenizer.encode` cuts it, so that both [SEP] stay.
    """
    return pad_batch([tokenizer.encode(a, b, max_length=max_length) for a, b in pairs])


PAIRS = [
    ("The soup was cold.", "Nobody had warmed it."),
    ("Two boys carried the boat down to the river before it rained.", "It rained."),
    ("A", "Every seat in the theater was taken, and still more people came in from the street."),
]


@cache
def _tokenizer():
    return load_tokenizer()


def _pairs_case(pairs, **options):
    return lambda rng: ((_tokenizer(), list(pairs)), dict(options))


def _encoded(how):
    def wrong(tokenizer, pairs, max_length=64):
        return pad_batch([how(tokenizer, a, b, max_length) for a, b in pairs])

    return wrong


def _no_segments(tokenizer, pairs, max_length=64):
    batch = pair_batch(tokenizer, pairs, max_length)
    return {**batch, "token_type_ids": np.zeros_like(batch["token_type_ids"])}


def _all_real(tokenizer, pairs, max_length=64):
    batch = pair_batch(tokenizer, pairs, max_length)
    return {**batch, "attention_mask": np.ones_like(batch["attention_mask"])}


def _always_longest(tokenizer, pairs, max_length=64):
    encodings = [tokenizer.encode(a, b, max_length=max_length) for a, b in pairs]
    return pad_batch(encodings, length=max_length)


def _cut_batch(tokenizer, pairs, max_length=64):
    batch = pad_batch([tokenizer.encode(a, b) for a, b in pairs])
    return {name: array[:, :max_length] for name, array in batch.items()}


def _by_hand(tokenizer, pairs, max_length=64):
    encodings = [tokenizer.encode(a, b, max_length=max_length) for a, b in pairs]
    shape = (len(pairs), max(map(len, encodings)))
    batch = {
        "input_ids": np.zeros(shape, dtype=np.int64),
        "attention_mask": np.zeros(shape, dtype=bool),
        "token_type_ids": np.zeros(shape, dtype=np.int64),
    }
    for row, encoding in enumerate(encodings):
        for name, table in batch.items():
            table[row, : len(encoding)] = getattr(encoding, name)
    return batch


def _by_combining(tokenizer, pairs, max_length=64):
    def part(text):
        return tokenizer.encode(text, add_special_tokens=False)

    return pad_batch([tokenizer.combine(part(a), part(b), max_length) for a, b in pairs])


register(
    name="pair_batch",
    lesson="10",
    reference=pair_batch,
    cases=[
        Case("three pairs of different lengths", _pairs_case(PAIRS)),
        Case("one pair", _pairs_case(PAIRS[:1])),
        Case("cut at 12 tokens", _pairs_case(PAIRS, max_length=12), why="the longer text is cut"),
    ],
    mistakes=[
        Mistake("first_only", _encoded(lambda t, a, b, n: t.encode(a, max_length=n)),
                "Only the first sentence of each pair is in the batch."),
        Mistake("swapped", _encoded(lambda t, a, b, n: t.encode(b, a, max_length=n)),
                "The sentences changed places. The first one comes first: whether B follows from "
                "A is not whether A follows from B."),
        Mistake("joined", _encoded(lambda t, a, b, n: t.encode(a + " " + b, max_length=n)),
                "Both sentences are there, as one text. Without a [SEP] between them, and with "
                "one segment, nothing says where the second begins."),
        Mistake("typed", _encoded(lambda t, a, b, n: t.encode(f"{a} [SEP] {b}", max_length=n)),
                "You wrote [SEP] into one text. The tokenizer then does not know that there are "
                "two, and all segments are 0: hand it the texts as two arguments."),
        Mistake("typed_not_cut", _encoded(lambda t, a, b, n: t.encode(f"{a} [SEP] {b}")),
                "You wrote [SEP] into one text. The tokenizer then does not know that there are "
                "two, and all segments are 0: hand it the texts as two arguments."),
        Mistake("segments", _no_segments,
                "All segments are 0. The second sentence and its [SEP] have segment 1."),
        Mistake("all_real", _all_real,
                "The attention mask is True everywhere. Padding is False."),
        Mistake("always_longest", _always_longest,
                "You pad to max_length, however short the pairs are. Pad to the longest pair: "
                "each column of padding is computed for nothing."),
        Mistake("fixed_length",
                lambda tokenizer, pairs, max_length=64: pad_batch(
                    [tokenizer.encode(a, b) for a, b in pairs], max_length),
                "You pad to max_length, however short the pairs are, and do not cut those that "
                "are longer. Cut in tokenizer.encode, then pad to the longest."),
        Mistake("cut_batch", _cut_batch,
                "You cut the finished batch: what falls off at its end is the second sentence and "
                "its [SEP]. Cut while encoding, where the longer text gives way."),
        Mistake("not_cut", _encoded(lambda t, a, b, n: t.encode(a, b)),
                "Long pairs are not cut at max_length."),
    ],
    also_right=[_by_hand, _by_combining],
    hints=[
        "Lesson 03 has a tokenizer that takes a pair, and a function that pads a batch.",
        "tokenizer.encode(first, second, max_length=...) and pad_batch.",
        "pad_batch([tokenizer.encode(a, b, max_length=max_length) for a, b in pairs])",
    ],
)  # fmt: skip

# --- pair_features --------------------------------------------------------------------------------


def pair_features(first, second):
    """What a linear layer needs to compare two vectors: (n, d) and (n, d) to (n, any width).

    Rows belong together: row i of `first` and row i of `second`. Any features will do from which a
    linear classifier can tell two things: whether two vectors are (nearly) equal, and which of two
    different ones has the larger sum. The second asks whether your features know the order.
    """
    return np.concatenate([first, second, np.abs(first - second), first * second], axis=1)


WANTED = 0.88  # right answers reach 0.91 or more, products without a difference 0.84 at most


def _compare_features(found, expected, arguments):
    """Judge features by what a linear probe can do with them, not by their numbers."""
    first, second = arguments[0], arguments[1]
    if not isinstance(found, np.ndarray) or found.ndim != 2 or len(found) != len(first):
        came = f"shape {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
        return (
            f"Expected a table with one row of features for each pair, shape ({len(first)}, any "
            f"width), got {came}."
        )
    if not np.issubdtype(found.dtype, np.floating):
        return f"Expected floats, got {found.dtype}."
    if not np.isfinite(found).all():
        return "Expected finite floats, got inf or NaN among them."
    alike = np.abs(first - second).sum(axis=1) < 0.5
    larger = first.sum(axis=1) > second.sum(axis=1)
    for question, true, asked in (
        ("whether two vectors are alike", alike, np.ones_like(alike)),
        ("which of two different vectors has the larger sum", larger, ~alike),
    ):
        labels, rows = true[asked].astype(int), found[asked]
        half = len(rows) // 2
        said = linear_probe(rows[:half], labels[:half], rows[half:], 1.0)
        right = float((said == labels[half:]).mean())
        if right < WANTED:
            return (
                f"From your features a linear layer does not tell well enough {question}: "
                f"{right:.0%} right on unseen pairs, {WANTED:.0%} wanted, 50% by guessing."
            )
    return None


def _vectors(width):
    def make(rng):
        first = rng.normal(size=(1500, width))
        second = np.where(rng.random((1500, 1)) < 0.5, first, rng.normal(size=(1500, width)))
        return (first, second + rng.normal(0, 0.01, second.shape)), {}

    return make


register(
    name="pair_features",
    lesson="10",
    reference=pair_features,
    compare=_compare_features,
    cases=[
        Case("1500 pairs of width 6, half of them nearly alike", _vectors(6)),
        Case("1500 pairs of width 10", _vectors(10)),
    ],
    mistakes=[
        Mistake("first_only", lambda first, second: first,
                "The second vector does not appear in your features."),
        Mistake("second_only", lambda first, second: second,
                "The first vector does not appear in your features."),
        Mistake("concatenated", lambda first, second: np.concatenate([first, second], axis=1),
                "Side by side is not enough. A linear layer adds up numbers of each vector; it "
                "cannot see that two of them are equal. Give it something that compares them."),
        Mistake("difference", lambda first, second: first - second,
                "A signed difference tells which is larger, not whether they are alike: a line "
                "cannot separate 0 from both sides of it. Its absolute value can."),
        Mistake("symmetric", lambda first, second: np.abs(first - second),
                "The absolute difference is the same when the two change places, and following "
                "is not symmetric. Keep something that knows the order."),
        Mistake("product", lambda first, second: first * second,
                "A product is large where both numbers are, alike or not: it tells equal from "
                "different only in part. And it is the same when the two change places, though "
                "following is not symmetric. Put something beside it that is 0 for equal numbers, "
                "and something that knows the order."),
        Mistake("product_beside", lambda first, second: np.concatenate(
                    [first, second, first * second], axis=1),
                "The order is there. But a product is large where both numbers are, alike or not: "
                "add something that is 0 for equal numbers, whatever they are."),
        Mistake("difference_beside", lambda first, second: np.concatenate(
                    [first, second, first - second], axis=1),
                "A signed difference is itself a weighted sum of what stands beside it: a linear "
                "layer could have made it. Its absolute value it could not."),
        Mistake("sum", lambda first, second: first + second,
                "In the sum it is no longer visible which number came from which sentence."),
        Mistake("stacked", lambda first, second: np.concatenate([first, second], axis=0),
                "One below the other: twice as many rows. A pair is one row."),
        Mistake("one_number", lambda first, second: (first * second).sum(axis=1),
                "One number for each pair, and no axis for it. A linear layer takes a row of "
                "features for each pair; one product sum is too little for it besides."),
    ],
    also_right=[
        lambda first, second: np.hstack([first - second, np.abs(first - second)]),
        lambda first, second: np.hstack([first, second, (first - second) ** 2]),
    ],
    hints=[
        "A linear layer computes weighted sums of its inputs. Which input would be 0 exactly when "
        "the two vectors are equal?",
        "Something that compares, such as |first - second|, beside something that knows the order.",
        "np.concatenate([first, second, np.abs(first - second), first * second], axis=1)",
    ],
)  # fmt: skip

# --- pair_model -----------------------------------------------------------------------------------


def pair_model(first, second, labels, new_first, new_second):
    """Class numbers (m,) for new pairs, learned from labeled ones by whatever means you like.

    first, second: (n, d), the sentences' vectors. labels: (n,), 0 entailment, 1 contradiction, 2
    neutral. new_first, new_second: (m, d). Judged by how many of the new pairs are right.
    """
    train, new = pair_features(first, second), pair_features(new_first, new_second)
    return linear_probe(train, labels, new, 300.0)


def _truth(first, second):
    """The rule behind the made-up pairs: alike, opposite, or neither."""
    agree = (first * second).sum(axis=1) / np.maximum((first * first).sum(axis=1), 1e-9)
    return np.where(agree > 0.6, 0, np.where(agree < -0.6, 1, 2))


# Features from which a linear layer cannot compare, and what to say to someone whose answers look
# like theirs. Not Mistakes, whose answers must be equal: these depend on how the layer is trained.
TOO_LITTLE = [
    (lambda first, second: second,
     "It looks as if you read the second sentence alone. On real data that can score surprisingly "
     "well; here it cannot, because only the comparison tells."),
    (lambda first, second: first,
     "It looks as if you read the first sentence alone."),
    (lambda first, second: np.concatenate([first, second], axis=1),
     "It looks as if you put the two vectors side by side. A linear layer cannot compare them "
     "then; use your pair_features."),
    (lambda first, second: first - second,
     "It looks as if you use the signed difference. It is a weighted sum, which a linear layer "
     "could make itself; use your pair_features."),
]  # fmt: skip


def _too_little(found, arguments):
    """What to say where answers that compare nothing are almost these; "" otherwise."""
    first, second, labels, new_first, new_second = arguments[:5]
    alike = [
        linear_probe(features(first, second), labels, features(new_first, new_second)) == found
        for features, _ in TOO_LITTLE
    ]
    shares = [float(same.mean()) for same in alike]
    best = int(np.argmax(shares))
    return f" {TOO_LITTLE[best][1]}" if shares[best] >= 0.9 else ""


def _compare_model(found, expected, arguments):
    true = _truth(arguments[3], arguments[4])
    if not isinstance(found, np.ndarray) or found.shape != true.shape:
        came = f"shape {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
        advice = ""
        if isinstance(found, np.ndarray) and found.shape == arguments[2].shape:
            advice = " These are as many as there are labeled pairs: answer for the new ones."
        return (
            f"Expected one class number for each new pair, shape {true.shape}, got {came}.{advice}"
        )
    if not np.issubdtype(found.dtype, np.integer):
        return f"Expected class numbers (integers), got {found.dtype}."
    right = float((found == true).mean())
    if right < 0.5:  # who does not compare stays at a third; every feature that compares is above
        said = f"{right:.0%} of the new pairs are right; 50% wanted, 33% by guessing."
        return said + _too_little(found, arguments)
    return None


def _made_up(n, m, d):
    def make(rng):
        def pairs(count):
            first = rng.normal(size=(count, d))
            kind = rng.permutation(np.arange(count) % 3)[:, None]
            second = np.where(kind == 0, first, np.where(kind == 1, -first, 0.0))
            other = rng.normal(size=(count, d))
            other -= first * (other * first).sum(1, keepdims=True) / (first**2).sum(1)[:, None]
            return first, second + np.where(kind == 2, other, 0.1 * other)

        first, second = pairs(n)
        new_first, new_second = pairs(m)
        return (first, second, _truth(first, second), new_first, new_second), {}

    return make


def _with_features(features, strength=10.0):
    def wrong(first, second, labels, new_first, new_second):
        train, new = features(first, second), features(new_first, new_second)
        return linear_probe(train, labels, new, strength)

    return wrong


def _nearest(first, second, labels, new_first, new_second):
    """Class means of the products' sums: a rule of one number."""
    train, new = (first * second).sum(axis=1), (new_first * new_second).sum(axis=1)
    train, new = train / (first**2).sum(axis=1), new / (new_first**2).sum(axis=1)
    means = np.array([train[labels == c].mean() for c in range(3)])
    return np.abs(new[:, None] - means).argmin(axis=1)


register(
    name="pair_model",
    lesson="10",
    reference=pair_model,
    compare=_compare_model,
    cases=[
        Case("600 made-up pairs, 90 new ones", _made_up(600, 90, 5)),
        Case("900 made-up pairs, 60 new ones", _made_up(900, 60, 8)),
    ],
    mistakes=[
        Mistake("majority",
                lambda first, second, labels, new_first, new_second: np.full(
                    len(new_first), np.bincount(labels).argmax()),
                "You give every pair the most frequent class. A third of them are right, and "
                "nothing was learned."),
        Mistake("training_rows",
                lambda first, second, labels, new_first, new_second: labels[: len(new_first)],
                "You return labels of training pairs. The new pairs are other ones."),
        Mistake("answers_training",
                lambda first, second, labels, new_first, new_second: linear_probe(
                    pair_features(first, second), labels, pair_features(first, second)),
                "You learn and answer on the same pairs; new_first and new_second are not used."),
    ],
    also_right=[
        _nearest,
        _with_features(lambda a, b: np.concatenate([a * b, np.abs(a - b), np.abs(a + b)], axis=1)),
        # Whatever passes as pair_features must do here, at any strength that dev may choose.
        _with_features(lambda a, b: np.concatenate([a, b, np.abs(a - b)], axis=1), 300.0),
        _with_features(lambda a, b: np.concatenate([a - b, np.abs(a - b)], axis=1), 100.0),
        _with_features(pair_features, 3000.0),
    ],
    hints=[
        "Two steps that you have: features of each pair, and a classifier on features.",
        "pair_features for the labeled and for the new pairs, then linear_probe of lesson 09 (or a "
        "head trained with fit).",
        "linear_probe(pair_features(first, second), labels, pair_features(new_first, new_second))",
    ],
)  # fmt: skip

# --- most_confused --------------------------------------------------------------------------------


def most_confused(true, predicted):
    """The most frequent mistake: (true label, predicted label, how often); None without mistakes.

    true, predicted: lists of label names, equally long. Of equally frequent mistakes the one that
    comes first in the lists. For true a, a, b and predicted b, b, a it gives ("a", "b", 2).
    """
    counts = {}
    for pair in zip(true, predicted):
        if pair[0] != pair[1]:
            counts[pair] = counts.get(pair, 0) + 1
    if not counts:
        return None
    often = max(counts.values())
    return next((*pair, n) for pair, n in counts.items() if n == often)


def _labels_case(true, predicted):
    return lambda rng: ((true.split(), predicted.split()), {})


def _with_hits(true, predicted):
    counts = {}
    for pair in zip(true, predicted):
        counts[pair] = counts.get(pair, 0) + 1
    pair = max(counts, key=counts.get)
    return (*pair, counts[pair])


def _unordered(true, predicted):
    counts = {}
    for a, b in zip(true, predicted):
        if a != b:
            pair = tuple(sorted((a, b)))
            counts[pair] = counts.get(pair, 0) + 1
    pair = max(counts, key=counts.get) if counts else None
    return pair and (*pair, counts[pair])


def _turned(true, predicted):
    found = most_confused(true, predicted)
    return found and (found[1], found[0], found[2])


def _last(true, predicted):
    found = most_confused(true[::-1], predicted[::-1])
    return found


def _raises(true, predicted):
    found = most_confused(true, predicted)
    if found is None:
        raise ValueError("max() of an empty sequence")
    return found


def _counter(true, predicted):
    from collections import Counter

    wrong = Counter((a, b) for a, b in zip(true, predicted, strict=True) if a != b)
    if not wrong:
        return None
    ((a, b), n), *_ = wrong.most_common(1)
    return a, b, n


def _nested_loops(true, predicted):
    best = None
    for a, b in zip(true, predicted):
        n = sum(x == a and y == b for x, y in zip(true, predicted))
        if a != b and (best is None or n > best[2]):
            best = (a, b, n)
    return best


register(
    name="most_confused",
    lesson="10",
    reference=most_confused,
    cases=[
        Case("one kind leads", _labels_case("e e n c n e", "n n e c n e")),
        Case("mostly right", _labels_case("e e e e c", "e e e e n"), why="hits are no mistakes"),
        Case("both directions", _labels_case("a b b c c b", "b a c b b a"), why="a for b is not "
             "b for a"),
        Case("equally often", _labels_case("n e n e", "e n e n")),
        Case("three ways, equally often", _labels_case("c b a", "a c b")),
        Case("no mistakes", _labels_case("e c", "e c")),
    ],
    mistakes=[
        Mistake("hits", _with_hits,
                "Your most frequent pair is a right answer. Only mistakes count."),
        Mistake("turned", _turned, "The true label comes first, then the predicted one."),
        Mistake("unordered", _unordered,
                "You count 'a taken for b' and 'b taken for a' together. They are two mistakes."),
        Mistake("last", _last,
                "Of equally frequent mistakes you give the last one. The first, please."),
        Mistake("raises", _raises, "Without mistakes it should give None, not an error."),
    ],
    also_right=[_counter, _nested_loops],
    hints=[
        "Count pairs (true, predicted), but only where they differ.",
        "A dict from pair to number keeps the order in which the pairs came. max of its values "
        "is the number you look for.",
        "Counter((a, b) for a, b in zip(true, predicted) if a != b).most_common(1), and None if "
        "there is nothing to count.",
    ],
)  # fmt: skip
