"""Lesson 08's exercises: from two rows of logits to an answer, and to what it is worth."""

import re
import string
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np

from course.exercises import Case, Mistake, _unstable, register
from course.texts.small_passages import small_vocabulary
from solutions import question_answering as solution
from solutions.attention import softmax
from solutions.embeddings import WordPieceTokenizer
from solutions.question_answering import gold_words, normalize_answer

# --- answer_mask --------------------------------------------------------------------------------


@cache
def _tokenizer():
    return WordPieceTokenizer(small_vocabulary())


def _encoded(question, passage, padding=0, segment=0):
    """Arguments of answer_mask: the encoding of a pair, with padding of the given segment."""
    encoding = _tokenizer().encode(question, passage)
    more = {
        "input_ids": 0, "tokens": "[PAD]", "token_type_ids": segment, "attention_mask": False,
        "offsets": (0, 0), "word_ids": None, "special_tokens_mask": False,
    }  # fmt: skip
    return replace(
        encoding,
        **{name: getattr(encoding, name) + [fill] * padding for name, fill in more.items()},
    )


def _pair(question, passage, **options):
    return lambda rng: ((_encoded(question, passage, **options),), {})


def _lists(encoding):
    return (
        np.array(encoding.token_type_ids) == 1,
        np.array(encoding.special_tokens_mask, dtype=bool),
        np.array(encoding.attention_mask, dtype=bool),
    )


def _answer_mask_loop(encoding):
    allowed = np.zeros(len(encoding.tokens), dtype=bool)
    for i in range(len(encoding.tokens)):
        allowed[i] = (
            encoding.token_type_ids[i] == 1
            and not encoding.special_tokens_mask[i]
            and encoding.attention_mask[i]
        )
    return allowed


def _closing_the_last_place(encoding):
    allowed = _lists(encoding)[0]
    allowed[-1] = False
    return allowed


def _from_the_first_sep(encoding):
    place = np.arange(len(encoding.tokens))
    return (place >= encoding.tokens.index("[SEP]")) & (place < len(encoding.tokens) - 1)


def _answer_mask_wrong(choose):
    """A mistake: `choose(passage, special, real)` gives the mask."""
    return lambda encoding: choose(*_lists(encoding))


register(
    name="answer_mask",
    lesson="08",
    reference=solution.answer_mask,
    cases=[
        Case("John and Google", _pair("Where does John work?",
                                      "John Smith works at Google headquarters.")),
        Case("a question longer than the passage",
             _pair("Where does John Smith from New York work?", "At Google.")),
        Case("padding at the end",
             _pair("Where does Mara live?", "Mara lives in Oslo.", padding=3)),
        Case("padding in segment 1, not marked as special",
             _pair("Where does Mara live?", "In Oslo.", padding=2, segment=1),
             why="only the attention mask tells that padding is not real"),
        Case("an empty passage", _pair("Where does Mara live?", "")),
    ],
    mistakes=[
        Mistake("inverted", _answer_mask_wrong(lambda passage, special, real:
                                               ~(passage & ~special & real)),
                "Inverted: True is for the tokens that may be the answer."),
        Mistake("question_too", _answer_mask_wrong(lambda passage, special, real: ~special & real),
                "You leave out [CLS] and [SEP], but the question is still open. Its words often "
                "get high logits, because they look like the answer's surroundings. Use the "
                "segment."),
        Mistake("question_only", _answer_mask_wrong(lambda passage, special, real:
                                                    ~passage & ~special & real),
                "These are the tokens of the question. The passage is segment 1."),
        Mistake("last_sep_open", _answer_mask_wrong(lambda passage, special, real: passage & real),
                "The final [SEP] is still open: its segment is 1, as the passage's. The segment "
                "alone is not enough; leave out special tokens too."),
        Mistake("all_real", _answer_mask_wrong(lambda passage, special, real: real),
                "You exclude padding alone. Question, [CLS] and [SEP] may not answer either."),
        Mistake("padding_open", _answer_mask_wrong(lambda passage, special, real:
                                                   passage & ~special),
                "Padding is open where it carries segment 1. Only `attention_mask` says for "
                "certain that a token is real."),
        Mistake("last_place", _closing_the_last_place,
                "You close the last place. The final [SEP] stands there only without padding; "
                "`special_tokens_mask` knows where it is."),
        Mistake("from_the_first_sep", _from_the_first_sep,
                "You begin at the first [SEP] itself. It ends the question and may not answer; and "
                "behind the final [SEP] there may be padding. The three lists tell all of this."),
        Mistake("places", lambda encoding: np.flatnonzero(_answer_mask_loop(encoding)),
                "These are the right tokens' places. A mask has an entry for each token, True or "
                "False."),
        Mistake("numbers", _answer_mask_wrong(lambda passage, special, real:
                                              (passage & ~special & real).astype(int)),
                "Right places, but as 0 and 1. A mask in this course is Boolean; with integers, "
                "logits[mask] would pick the tokens number 0 and 1."),
    ],
    also_right=[
        _answer_mask_loop,
        lambda encoding: np.array(
            [place == 1 and bool(real)
             for place, real in zip(encoding.sequence_ids, encoding.attention_mask)]),
        lambda encoding: np.logical_and.reduce(
            [_lists(encoding)[0], ~_lists(encoding)[1], _lists(encoding)[2]]),
    ],
    hints=[
        "Print the encoding of the example: which of its lists tells the passage from the "
        "question, and which tells the final [SEP] from the passage?",
        "Three lists: token_type_ids (1 for the passage), special_tokens_mask, attention_mask. "
        "Turn each into an array; for Booleans & is 'and', ~ is 'not'.",
        "(np.array(encoding.token_type_ids) == 1) & ~np.array(encoding.special_tokens_mask) & "
        "np.array(encoding.attention_mask)",
    ],
)

# --- masked_softmax -----------------------------------------------------------------------------


def _logits(*shape, mask=None, shift=0.0, dtype="float64"):
    """Arguments of masked_softmax: unit-scale logits and a mask of the last axis or of all."""
    return lambda rng: (
        ((rng.normal(size=shape) + shift).astype(dtype), np.array(mask, dtype=bool)), {})


def _masked_softmax_loop(logits, allowed):
    allowed = np.broadcast_to(allowed, logits.shape)
    result = np.zeros_like(logits)
    for place in np.ndindex(logits.shape[:-1]):
        row, seen = logits[place], allowed[place]
        if seen.any():
            powers = np.exp(row[seen] - row[seen].max())
            result[place][seen] = powers / powers.sum()
    return result


def _renormalized(logits, allowed):
    kept = softmax(logits) * allowed
    return kept / kept.sum(axis=-1, keepdims=True)


def _over_everything(logits, allowed):
    masked = np.where(allowed, logits, -np.inf)
    powers = np.exp(masked - masked.max())
    return powers / powers.sum()


def _over_everything_unshifted(logits, allowed):
    powers = np.where(allowed, np.exp(logits), 0)
    return powers / powers.sum()


register(
    name="masked_softmax",
    lesson="08",
    reference=solution.masked_softmax,
    cases=[
        Case("a question token of logit 2, two passage tokens of 1",
             lambda rng: ((np.array([2.0, 1.0, 1.0]), np.array([False, True, True])), {})),
        Case("all logits negative, the last not allowed",
             lambda rng: ((np.array([-5.0, -1.0, -2.0]), np.array([True, True, False])), {}),
             why="a 0 in place of a masked logit would win"),
        Case("two rows, each with its own mask",
             _logits(2, 4, mask=[[1, 1, 0, 1], [0, 1, 1, 0]])),
        Case("three rows of three, one mask for all", _logits(3, 3, mask=[1, 0, 1])),
        Case("a row in which nothing is allowed", _logits(2, 3, mask=[[0, 0, 0], [1, 1, 0]])),
        Case("a masked logit of 800 beside small ones",
             lambda rng: ((np.array([800.0, 1.0, 0.5]), np.array([False, True, True])), {}),
             why="after a softmax over everything, nothing is left to share"),
        Case("float32", _logits(2, 5, mask=[1, 1, 0, 1, 1], dtype="float32")),
        Case("logits of 2000 beside 1999, and a row of -2000",
             lambda rng: ((_unstable.FAR.copy(), np.array([[True] * 3, [True] * 3,
                                                           [False, True, True]])), {}),
             why=_unstable.WHY),
    ],
    mistakes=[
        Mistake("no_mask", lambda logits, allowed: softmax(logits),
                "The mask is not used: tokens that may not answer still get probability."),
        Mistake("inverted", lambda logits, allowed: softmax(np.where(allowed, -np.inf, logits)),
                "You mask the allowed tokens. True means: may be the answer."),
        Mistake("after", lambda logits, allowed: softmax(logits) * allowed,
                "You mask after the softmax. The question has taken its share by then, and the "
                "rest no longer sums to 1."),
        Mistake("multiplied", lambda logits, allowed: softmax(logits * allowed),
                "Your masked logits become 0, and a 0 beats every negative logit. Put -inf in "
                "their place."),
        Mistake("added", lambda logits, allowed: softmax(logits + allowed),
                "Adding the mask raises allowed logits by 1 and hides nobody."),
        Mistake("renormalized", _renormalized,
                "You mask the powers and divide by what is left. That works until nothing is left: "
                "where no token is allowed, or beside a masked logit of 800, you divide 0 by 0. "
                "Mask the logits, before the softmax."),
        Mistake("only_the_allowed", lambda logits, allowed: softmax(logits[allowed]),
                "You keep the allowed logits alone. The result has a place for every token, with 0 "
                "where it may not answer: replace logits rather than drop them."),
        Mistake("zero_times_infinity",
                lambda logits, allowed: softmax(logits + ~allowed * -np.inf),
                "-inf times False is 0 * inf, which is not a number. Choose with "
                "np.where(allowed, ..., ...) instead."),
        Mistake("penalty", lambda logits, allowed: softmax(logits - 1e9 * ~allowed),
                "Where nothing is allowed, every logit loses the same large number, and the "
                "softmax shares out probability to tokens that may not answer. With -inf the row "
                "is zeros."),
        Mistake("sentinel", lambda logits, allowed: softmax(np.where(allowed, logits, -1e9)),
                "Where nothing is allowed, your large negative number shares out probability to "
                "tokens that may not answer. With -inf the row is zeros."),
        Mistake("other_axis",
                lambda logits, allowed: softmax(np.where(allowed, logits, -np.inf), axis=0),
                "Your columns sum to 1. The tokens of one passage compete: the last axis."),
        Mistake("over_everything", _over_everything,
                "All rows together sum to 1 in your result: the sum runs over the whole array. "
                "Each row is an input of its own, whose tokens compete with one another alone: sum "
                "along the last axis, or leave it to `softmax`."),
        Mistake("over_everything_unshifted", _over_everything_unshifted,
                "The sum runs over the whole array, so all rows together sum to 1. Each row is an "
                "input of its own: sum along the last axis. And exp(2000) overflows: leave both to "
                "`softmax`, which shifts each row first."),
        *_unstable.mistakes(
            lambda softmax: lambda logits, allowed: softmax(np.where(allowed, logits, -np.inf)),
            _unstable.GUARDED),
    ],
    also_right=[
        _masked_softmax_loop,
        lambda logits, allowed: softmax(np.where(~allowed, -np.inf, logits), axis=-1),
        lambda logits, allowed: softmax(
            logits + np.where(allowed, 0.0, -np.inf).astype(logits.dtype)),
    ],
    hints=[
        "Lesson 01 hid keys from attention. The same two steps hide tokens from the answer.",
        "Replace the logits that are not allowed by -inf, and leave the rest to `softmax`, which "
        "already knows a row of nothing but -inf.",
        "softmax(np.where(allowed, logits, -np.inf))",
    ],
)

# --- best_spans ---------------------------------------------------------------------------------


def _spans(start_logits, end_logits, allowed, **options):
    return lambda rng: ((np.array(start_logits, dtype=float), np.array(end_logits, dtype=float),
                         np.array(allowed, dtype=bool)), options)


def _random_spans(n, first, stop, shift=0.0, **options):
    """Unit-scale logits of n tokens of which first to stop - 1 are the passage's."""
    def make(rng):
        allowed = (np.arange(n) >= first) & (np.arange(n) < stop)
        return (*(rng.normal(size=(2, n)) * 2 + shift), allowed), options
    return make


def _best_spans_loop(start_logits, end_logits, allowed, max_answer_length=30, top_k=1):
    found = []
    for i in range(len(start_logits)):
        for j in range(i, min(i + max_answer_length, len(end_logits))):
            if allowed[i] and allowed[j]:
                found.append((i, j, float(start_logits[i] + end_logits[j])))
    return sorted(found, key=lambda span: -span[2])[:top_k]


def _best_spans_diagonals(start_logits, end_logits, allowed, max_answer_length=30, top_k=1):
    found, n = [], len(start_logits)
    for more in range(min(max_answer_length, n)):
        scores = start_logits[:n - more] + end_logits[more:]
        fits = np.flatnonzero(allowed[:n - more] & allowed[more:])
        found += [(float(scores[i]), int(i), int(i + more)) for i in fits]
    return [(i, j, score) for score, i, j in sorted(found, reverse=True)[:top_k]]


def _best_spans_wrong(*, mask=True, order=True, strict=False, limit=True, extra=0, top=True,
                      sign=1, scores=None, exclusive=0):
    """The search with one part wrong."""
    def search(start_logits, end_logits, allowed, max_answer_length=30, top_k=1):
        first, second = (np.arange(len(start_logits))[:, None], np.arange(len(start_logits)))
        valid = np.ones((len(start_logits), len(start_logits)), dtype=bool)
        if mask and mask != "end":
            valid &= allowed[:, None]
        if mask and mask != "start":
            valid &= allowed
        if order:
            valid &= (second > first) if strict else (second >= first)
        if limit:
            valid &= second - first < max_answer_length + extra
        summed = (scores or np.add.outer)(start_logits, end_logits)
        starts, ends = np.nonzero(valid)
        best = np.argsort(-sign * summed[starts, ends], kind="stable")[:top_k if top else 1]
        return [(int(starts[i]), int(ends[i]) + exclusive, float(summed[starts[i], ends[i]]))
                for i in best]
    return search


def _two_argmaxes(start_logits, end_logits, allowed, max_answer_length=30, top_k=1, mask=True):
    if mask:
        start_logits, end_logits = (np.where(allowed, x, -np.inf) for x in
                                    (start_logits, end_logits))
    i, j = int(start_logits.argmax()), int(end_logits.argmax())
    return [(i, j, float(start_logits[i] + end_logits[j]))]


def _start_then_end(start_logits, end_logits, allowed, max_answer_length=30, top_k=1):
    if not allowed.any():
        return []
    i = int(np.where(allowed, start_logits, -np.inf).argmax())
    place = np.arange(len(end_logits))
    fits = allowed & (place >= i) & (place < i + max_answer_length)
    j = int(np.where(fits, end_logits, -np.inf).argmax())
    return [(i, j, float(start_logits[i] + end_logits[j]))]


def _upper_triangle_of_sums(start_logits, end_logits, allowed, max_answer_length=30, top_k=1):
    summed = np.where(allowed[:, None] & allowed, start_logits[:, None] + end_logits, -np.inf)
    summed = np.triu(summed) - np.triu(summed, k=max_answer_length)
    summed = np.where(np.isnan(summed), -np.inf, summed)
    best = np.argsort(-summed, axis=None, kind="stable")[:top_k]
    return [(int(b // len(summed)), int(b % len(summed)), float(summed.flat[b])) for b in best
            if summed.flat[b] > -np.inf]


def _nothing_anyway(start_logits, end_logits, allowed, max_answer_length=30, top_k=1):
    found = _best_spans_loop(start_logits, end_logits, allowed, max_answer_length, top_k)
    return found or [(0, 0, -np.inf)]


def _by_place(start_logits, end_logits, allowed, max_answer_length=30, top_k=1):
    found = _best_spans_loop(start_logits, end_logits, allowed, max_answer_length, 10_000)
    return sorted(found, reverse=True)[:top_k]


def _forbidden_last(low, start_logits, end_logits, allowed, max_answer_length=30, top_k=1):
    place = np.arange(len(start_logits))
    length = place - place[:, None] + 1
    valid = allowed[:, None] & allowed & (length >= 1) & (length <= max_answer_length)
    scores = np.where(valid, start_logits[:, None] + end_logits, low)
    best = np.argsort(-scores, axis=None)[:top_k]
    return [(int(b // len(scores)), int(b % len(scores)), float(scores.flat[b])) for b in best]


def _products(start_logits, end_logits):
    return softmax(start_logits)[:, None] * softmax(end_logits)


register(
    name="best_spans",
    lesson="08",
    reference=solution.best_spans,
    cases=[
        Case("the best end stands before the best start",
             _spans([0, 1, 5, 0], [0, 4, 1, 3], [1, 1, 1, 1])),
        Case("a passage in the middle of six tokens", _random_spans(6, 2, 5)),
        Case("all logits negative", _spans([-3, -4], [-2, -5], [1, 1]),
             why="the zeros below the diagonal of np.triu win"),
        Case("logits of 9 at a question token", _spans([9, 1, 2], [9, 1, 3], [0, 1, 1])),
        Case("an end logit of 9 at the final [SEP]",
             _spans([0, 1, 2, 0], [0, 1, 3, 9], [0, 1, 1, 0])),
        Case("the best end alone spoils the best pair",
             _spans([0, 3, 0, 2.5, 0], [0, 0.5, -2, 3, 0], [0, 1, 1, 1, 0]),
             why="start 1 has the higher logit, and its best end is allowed"),
        Case("the best start has no good end after it",
             _spans([1.5, 0, 3], [0, 4, -2], [1, 1, 1]),
             why="choosing the start first misses the best pair"),
        Case("at most two tokens", _spans([5, 0, 1, 0], [0, 1, 2, 9], [1, 1, 1, 1],
                                          max_answer_length=2)),
        Case("at most three tokens, the five best", _random_spans(9, 1, 8, max_answer_length=3,
                                                                  top_k=5)),
        Case("a one-token answer", _spans([0, 4, 0], [0, 4, 0], [1, 1, 1])),
        Case("more asked for than there are", _spans([1, 2, 4], [1, 3, 9], [0, 1, 1], top_k=10)),
        Case("forty tokens, the default limit of thirty",
             lambda rng: ((np.array([9.0] + [0.0] * 39),
                           np.array([0.5] + [0.0] * 28 + [2.0, 3.0] + [0.0] * 8 + [4.0]),
                           np.ones(40, dtype=bool)), {})),
        Case("nothing is allowed", _spans([1, 2], [2, 1], [0, 0])),
    ],
    mistakes=[
        Mistake("two_argmaxes_unmasked",
                lambda *args, **kwargs: _two_argmaxes(*args, mask=False, **kwargs),
                "You take the best start and the best end, each for itself and over all tokens. "
                "The end can stand before the start, and a question token can win."),
        Mistake("two_argmaxes", _two_argmaxes,
                "You take the best start and the best end, each for itself. Nothing keeps the end "
                "behind the start: compare pairs."),
        Mistake("start_then_end", _start_then_end,
                "You fix the best start, then look for its best end. A lower start with a much "
                "better end can have the higher sum: compare all pairs."),
        Mistake("any_order", _best_spans_wrong(order=False),
                "Your pairs may end before they start. Only end >= start is a span."),
        Mistake("mask_ignored", _best_spans_wrong(mask=False),
                "`allowed` is not used: both ends of a span have to be allowed tokens."),
        Mistake("end_not_masked", _best_spans_wrong(mask="start"),
                "You ask whether the start is allowed, and not the end: [SEP] can end an answer."),
        Mistake("start_not_masked", _best_spans_wrong(mask="end"),
                "You ask whether the end is allowed, and not the start: a question token can begin "
                "an answer."),
        Mistake("swapped", lambda start_logits, end_logits, *args, **kwargs: _best_spans_loop(
            end_logits, start_logits, *args, **kwargs),
                "Start and end logits are swapped: a start takes its logit from `start_logits`."),
        Mistake("triu_of_sums", _upper_triangle_of_sums,
                "np.triu fills what it removes with zeros, and a 0 beats every negative score. "
                "Remove pairs by -inf or by a Boolean mask."),
        Mistake("not_one_token", _best_spans_wrong(strict=True),
                "Your spans have two tokens or more. An answer of one token starts and ends at the "
                "same place: end >= start."),
        Mistake("no_limit", _best_spans_wrong(limit=False),
                "max_answer_length is not used: spans of any length are in your list. From start "
                "to end there are end - start + 1 tokens."),
        Mistake("limit_of_thirty", lambda start_logits, end_logits, allowed, max_answer_length=30,
                top_k=1: _best_spans_loop(start_logits, end_logits, allowed, 30, top_k),
                "Your limit is 30 whatever max_answer_length says."),
        Mistake("one_too_long", _best_spans_wrong(extra=1),
                "Your longest answer has one token too many. From start to end there are "
                "end - start + 1 tokens."),
        Mistake("one_too_short", _best_spans_wrong(extra=-1),
                "Your longest answer has one token too few: max_answer_length itself is allowed."),
        Mistake("only_one", _best_spans_wrong(top=False),
                "You return one span whatever top_k says."),
        Mistake("worst_first", _best_spans_wrong(sign=-1),
                "np.argsort sorts upward: your list begins with the worst span."),
        Mistake("by_place", _by_place,
                "Your list is sorted by place. Sort by the score, which stands last in each "
                "triple, highest first."),
        Mistake("forbidden_last", lambda *args, **kwargs: _forbidden_last(-1e9, *args, **kwargs),
                "Forbidden pairs stand at the end of your list with a very low score. Leave them "
                "out: fewer than top_k spans, or none, is a valid result."),
        Mistake("infinite_last", lambda *args, **kwargs: _forbidden_last(-np.inf, *args, **kwargs),
                "Forbidden pairs stand at the end of your list with the score -inf. Leave them "
                "out: fewer than top_k spans, or none, is a valid result."),
        Mistake("end_exclusive", _best_spans_wrong(exclusive=1),
                "Your end is one too far. Here the end is the last token of the answer, included."),
        Mistake("probabilities", _best_spans_wrong(scores=_products),
                "The right spans, with products of probabilities as scores. Those cannot be "
                "compared between windows; the score is the sum of the two logits."),
        Mistake("nothing_as_cls", _nothing_anyway,
                "Where nothing is allowed you return a span all the same. Return []."),
    ],
    also_right=[_best_spans_loop, _best_spans_diagonals],
    hints=[
        "Write down the scores of all pairs of the first case as a 4 by 4 table, starts down, ends "
        "across. Which cells are spans?",
        "scores = start_logits[:, None] + end_logits. Then a Boolean table `valid` of the same "
        "shape: both ends allowed, end >= start, at most max_answer_length tokens.",
        "starts, ends = np.nonzero(valid); order = np.argsort(-scores[starts, ends], "
        "kind='stable')[:top_k]; a list of (int(starts[i]), int(ends[i]), float(scores[starts[i], "
        "ends[i]])) for i in order.",
    ],
)

# --- span_labels --------------------------------------------------------------------------------

# [CLS] where does mara work ? [SEP] ormond bank employs mara lind . [SEP], offsets in characters
_OFFSETS = [(0, 0), (0, 5), (6, 10), (11, 15), (16, 20), (20, 21), (0, 0), (0, 6), (7, 11),
            (12, 19), (20, 24), (25, 29), (29, 30), (0, 0)]
_ALLOWED = [False] * 7 + [True] * 6 + [False]


def _labelled(answer, first=7, stop=13, offsets=_OFFSETS):
    """Arguments of span_labels; tokens first to stop - 1 are the passage's."""
    return lambda rng: (([*list(offsets[:stop]), (0, 0)],
                         np.array([i >= first for i in range(stop)] + [False]), answer), {})


def _window(answer, first, stop):
    """As above, with the passage's tokens first to stop - 1 alone, behind the question."""
    offsets = _OFFSETS[:7] + _OFFSETS[first:stop] + [(0, 0)]
    allowed = [False] * 7 + [True] * (stop - first) + [False]
    return lambda rng: ((offsets, np.array(allowed), answer), {})


def _span_labels_loop(offsets, allowed, answer):
    places = [i for i in range(len(allowed)) if allowed[i]]
    if answer is None or not places:
        return 0, 0
    if offsets[places[0]][0] > answer[0] or offsets[places[-1]][1] < answer[1]:
        return 0, 0
    first = last = None
    for i in places:
        if offsets[i][1] > answer[0] and first is None:
            first = i
        if offsets[i][0] < answer[1]:
            last = i
    return (first, last) if first is not None and first <= last else (0, 0)


def _span_labels_arrays(offsets, allowed, answer):
    if answer is None or not np.any(allowed):
        return 0, 0
    begins, ends = np.array(offsets).T
    touched = allowed & (begins < answer[1]) & (ends > answer[0])
    whole = begins[allowed].min() <= answer[0] and ends[allowed].max() >= answer[1]
    if not whole or not touched.any():
        return 0, 0
    places = np.nonzero(touched)[0]
    return int(places[0]), int(places[-1])


def _each_for_itself(offsets, allowed, answer):
    first = last = 0
    for i in range(len(allowed)):
        if answer is not None and allowed[i]:
            first = i if offsets[i][0] == answer[0] else first
            last = i if offsets[i][1] == answer[1] else last
    return first, last


def _span_labels_wrong(*, everyone=False, cut=True, touch=0, exact=False, inner=False, more=0,
                       left=True, right=True, none=(0, 0), shift=False):
    def label(offsets, allowed, answer):
        inside = [i for i in range(len(allowed)) if everyone or allowed[i]]
        if answer is None or not inside:
            return none
        start, stop = answer
        if cut and left and start < offsets[inside[0]][0]:
            return none
        if cut and right and stop > offsets[inside[-1]][1]:
            return none
        if exact:
            firsts = [i for i in inside if offsets[i][0] == start]
            lasts = [i for i in inside if offsets[i][1] == stop]
            return (firsts[0], lasts[-1]) if firsts and lasts else none
        if inner:
            touched = [i for i in inside if offsets[i][0] >= start and offsets[i][1] <= stop]
        else:
            touched = [i for i in inside
                       if offsets[i][0] < stop + touch and offsets[i][1] > start - touch]
        back = inside[0] if shift else 0
        return (touched[0] - back, touched[-1] - back + more) if touched else none
    return label


register(
    name="span_labels",
    lesson="08",
    reference=solution.span_labels,
    parts=("start", "end"),
    cases=[
        Case("Ormond Bank", _labelled((0, 11)), why="the question has tokens at these offsets too"),
        Case("Mara Lind", _labelled((20, 29)), why="the point stands at character 29"),
        Case("one word, employs", _labelled((12, 19))),
        Case("the last token, the point", _labelled((29, 30))),
        Case("no answer", _labelled(None)),
        Case("an answer that begins and ends inside words", _labelled((9, 22))),
        Case("two words without a space between them",
             _labelled((3, 5), first=1, stop=4, offsets=[(0, 0), (0, 3), (3, 5), (5, 8)])),
        Case("a window that begins inside the answer", _window((0, 11), 8, 12)),
        Case("a window that ends inside the answer", _window((20, 29), 7, 11)),
        Case("a window behind the answer", _window((0, 6), 9, 13)),
        Case("a window that the answer fills", _window((7, 19), 8, 10)),
        Case("a window in the middle", _window((12, 24), 8, 12)),
        Case("an answer that is a blank between two words", _labelled((11, 12))),
        Case("no token of the passage", _labelled((0, 6), first=14)),
    ],
    mistakes=[
        Mistake("question_too", _span_labels_wrong(everyone=True),
                "Your answer can fall on the question: its offsets count in the question's own "
                "text, so the same numbers occur twice. Look at allowed tokens only."),
        Mistake("places_in_passage", _span_labels_wrong(shift=True),
                "You count from the first token of the passage. The logits count from [CLS]."),
        Mistake("end_exclusive", _span_labels_wrong(more=1),
                "Your end is one too far: the label is the answer's last token itself."),
        Mistake("exact_only", _span_labels_wrong(exact=True),
                "You want tokens that begin and end exactly where the answer does. An answer may "
                "begin inside a token (23 in '1923rd'); then the whole token is taken."),
        Mistake("inner_only", _span_labels_wrong(inner=True),
                "You take only tokens that lie wholly inside the answer. One that the answer "
                "touches with a single character belongs to it."),
        Mistake("inner_and_cut_off", _span_labels_wrong(inner=True, cut=False),
                "You take only tokens that lie wholly inside the answer. One that the answer "
                "touches with a single character belongs to it. And where a window cuts the answer "
                "off, the label is (0, 0)."),
        Mistake("each_for_itself", _each_for_itself,
                "You look for a token that begins exactly where the answer does, and for one that "
                "stops exactly where it stops. Where one of them is missing, your label is half "
                "[CLS] and half a word: take the tokens that share a character with the answer."),
        Mistake("neighbors", _span_labels_wrong(touch=1),
                "You take in a token that only borders on the answer: with `<=` in place of `<`, "
                "the point behind the last word is included."),
        Mistake("cut_off", _span_labels_wrong(cut=False),
                "You label the visible part of an answer that the window cuts off. A model trained "
                "so learns to give half answers; the label is [CLS], (0, 0)."),
        Mistake("cut_off_left", _span_labels_wrong(left=False),
                "An answer that began before this window still gets a label. Compare its start "
                "with that of the first passage token."),
        Mistake("cut_off_right", _span_labels_wrong(right=False),
                "An answer that goes on behind this window still gets a label. Compare its stop "
                "with that of the last passage token."),
        Mistake("ignored", _span_labels_wrong(none=(-100, -100)),
                "You leave windows without the answer out of the loss (-100). Then the model never "
                "learns to say that it is not here: the label is [CLS], (0, 0)."),
    ],
    also_right=[_span_labels_loop, _span_labels_arrays],
    hints=[
        "Print the offsets of the example next to its tokens. Which tokens share at least one "
        "character with the answer?",
        "A token (a, b) shares a character with (start, stop) if a < stop and b > start. Look at "
        "np.flatnonzero(allowed) only, and first handle the three cases that give (0, 0).",
        "inside = np.flatnonzero(allowed); return (0, 0) if answer is None, if inside is empty, if "
        "start < offsets[inside[0]][0] or stop > offsets[inside[-1]][1]; else the first and the "
        "last i of inside with offsets[i][0] < stop and offsets[i][1] > start.",
    ],
)

# --- windows ------------------------------------------------------------------------------------


def _cut(*args):
    return lambda rng: (args, {})


def _windows_recursive(num_context, room, overlap):
    if overlap < 0 or overlap >= room:
        raise ValueError("no room")
    if num_context == 0:
        return []
    if num_context <= room:
        return [(0, num_context)]
    step = room - overlap
    later = _windows_recursive(num_context - step, room, overlap)
    return [(0, room)] + [(first + step, stop + step) for first, stop in later]


def _windows_counted(num_context, room, overlap):
    if not room > overlap >= 0:
        raise ValueError("no room")
    if num_context == 0:
        return []
    more = max(0, -(-(num_context - room) // (room - overlap)))
    starts = [i * (room - overlap) for i in range(more + 1)]
    return [(first, min(first + room, num_context)) for first in starts]


def _windows_by_range(num_context, room, overlap, *, step=None, check=True, cut=True, stop=0):
    if check and not 0 <= overlap < room:
        raise ValueError("no room")
    moved = step(room, overlap) if step else room - overlap
    return [(first, (min(first + room, num_context) if cut else first + room) + stop)
            for first in range(0, num_context, max(moved, 1))]


def _windows_wrong(change, check=True):
    """A mistake: `change(windows, num_context, room)` alters the right ones."""
    def cut(num_context, room, overlap):
        if check and not 0 <= overlap < room:
            raise ValueError("no room")
        made = _windows_counted(num_context, room, overlap) if 0 <= overlap < room else []
        return change(made, num_context, room)
    return cut


def _stepping(step):
    def cut(num_context, room, overlap):
        if not 0 <= overlap < room:
            raise ValueError("no room")
        made, first = [], 0
        while first < num_context:
            made.append((first, min(first + room, num_context)))
            if made[-1][1] == num_context:
                break
            first += max(step(room, overlap), 1)
        return made
    return cut


register(
    name="windows",
    lesson="08",
    reference=solution.windows,
    cases=[
        Case("10 tokens, room 4, overlap 1", _cut(10, 4, 1),
             why="the window (6, 10) reaches the end, and a loop has to stop there"),
        Case("11 tokens, room 5, overlap 2", _cut(11, 5, 2), why="the last window is full"),
        Case("9 tokens, room 4, overlap 0", _cut(9, 4, 0)),
        Case("9 tokens, room 5, overlap 3", _cut(9, 5, 3), why="step and overlap differ"),
        Case("a passage that fits", _cut(3, 8, 2)),
        Case("a passage that fits exactly", _cut(4, 4, 2)),
        Case("one token too many", _cut(5, 4, 3)),
        Case("room for one token", _cut(3, 1, 0)),
        Case("an empty passage", _cut(0, 4, 1)),
    ],
    raises=[
        # The titles say what is expected: a loop that is stopped on them is told no more than that.
        Case("an overlap as large as the room, where a ValueError is due", _cut(10, 4, 4),
             why="the next window would start where this one does, and so on without end"),
        Case("an overlap larger than the room, where a ValueError is due", _cut(10, 4, 6)),
        Case("no room, where a ValueError is due", _cut(10, 0, 0),
             why="windows of nothing never reach the end"),
        Case("a negative overlap", _cut(10, 4, -1), why="tokens between windows would be skipped"),
    ],
    mistakes=[
        Mistake("no_overlap", _stepping(lambda room, overlap: room),
                "Your windows do not overlap. An answer that a border cuts in two is then whole in "
                "none of them. Move on by room - overlap."),
        Mistake("step_is_overlap", _stepping(lambda room, overlap: overlap),
                "You move on by `overlap` tokens. The overlap is what two windows share; you move "
                "on by the rest, room - overlap."),
        Mistake("one_less", _stepping(lambda room, overlap: room - overlap - 1),
                "Neighbors share one token too many. Write down two windows in a row for room 4 "
                "and overlap 1: how far is it from one start to the next?"),
        Mistake("one_more", _stepping(lambda room, overlap: room - overlap + 1),
                "Neighbors share one token too few. Write down two windows in a row for room 4 and "
                "overlap 1: how far is it from one start to the next?"),
        Mistake("superfluous", _windows_by_range,
                "Your last window lies wholly inside the one before it: stop as soon as a window "
                "reaches the end of the passage."),
        Mistake("beyond_the_end", _windows_wrong(lambda made, n, room: [(a, a + room)
                                                                        for a, _ in made]),
                "Your last window reaches beyond the passage. Its stop is at most num_context."),
        Mistake("last_moved_back", _windows_wrong(
            lambda made, n, room: [*made[:-1], (max(0, n - room), n)] if made else []),
                "You move the last window back until it is full. It then shares more than "
                "`overlap` tokens with its neighbor; here the last one is simply shorter."),
        Mistake("last_left_out", _windows_wrong(lambda made, n, room: [
            pair for pair in made if pair[1] - pair[0] == room]),
                "Windows that are not full are left out, and with them the end of the passage."),
        Mistake("stop_included", _windows_wrong(lambda made, n, room: [(a, b - 1)
                                                                       for a, b in made]),
                "Your stops are the last tokens of the windows. As in a slice, the stop is the "
                "first token that is not in it."),
        Mistake("starts_only", _windows_wrong(lambda made, n, room: [a for a, _ in made]),
                "You return the starts only; each window is a pair (first, stop)."),
        Mistake("window_of_nothing", _windows_wrong(lambda made, n, room: made or [(0, 0)]),
                "An empty passage needs no window: []."),
        Mistake("unchecked", _windows_wrong(lambda made, n, room: made, check=False),
                "Right where there is room. With an overlap of the room or more the windows never "
                "move on, and a loop never ends: raise ValueError unless 0 <= overlap < room."),
        Mistake("negative_overlap", lambda num_context, room, overlap: (
            _windows_counted(num_context, room, max(overlap, 0))),
                "A negative overlap would skip tokens between windows: raise ValueError unless "
                "0 <= overlap < room."),
    ],
    also_right=[_windows_recursive, _windows_counted],
    seconds=2,
    hints=[
        "Draw ten boxes and lay windows of four over them, each sharing one box with the one "
        "before. Where does each start? When do you stop?",
        "The starts are 0, step, 2 * step and so on, with step = room - overlap; the stop is "
        "min(first + room, num_context), and the window that reaches the end is the last.",
        "if not 0 <= overlap < room: raise ValueError(...). first = 0; while first < num_context: "
        "append (first, stop); if stop == num_context: break; first += room - overlap.",
    ],
)

# --- has_answer ---------------------------------------------------------------------------------


def _decide(nulls, best, *threshold):
    return lambda rng: ((list(nulls), best, *threshold), {})


register(
    name="has_answer",
    lesson="08",
    reference=solution.has_answer,
    cases=[
        Case("two windows, 6 and 2, best answer 5", _decide([6.0, 2.0], 5.0)),
        Case("two windows, 2 and 6, best answer 5", _decide([2.0, 6.0], 5.0)),
        Case("one window, 6, best answer 5", _decide([6.0], 5.0)),
        Case("one window, 3, best answer 5", _decide([3.0], 5.0)),
        Case("ahead by 1, threshold 2", _decide([6.0], 5.0, 2.0)),
        Case("behind by 2, threshold 4", _decide([3.0], 5.0, 4.0)),
        Case("behind by 1, threshold -2", _decide([4.0], 5.0, -2.0)),
        Case("ahead by exactly the threshold", _decide([6.0], 5.0, 1.0)),
        Case("level, threshold 0", _decide([5.0, 7.0], 5.0)),
        Case("mean above, least below", _decide([9.0, 4.0], 5.0)),
        Case("ahead by 3, threshold 4, all negative", _decide([-1.0, -2.0], -5.0, 4.0)),
        Case("three windows, the middle one decides", _decide([8.0, 1.0, 7.0], 2.0)),
        Case("two windows, 3 and 4, best answer 5", _decide([3.0, 4.0], 5.0),
             why="their sum is above it, and neither of them"),
        Case("no candidate at all", _decide([1.0], -np.inf)),
    ],
    mistakes=[
        Mistake("inverted", lambda null_scores, best_score, threshold=0.0:
                min(null_scores) - best_score > threshold,
                "Inverted: this is when there is no answer."),
        Mistake("threshold_unused", lambda null_scores, best_score, threshold=0.0:
                min(null_scores) <= best_score,
                "The threshold is not used: it says by how much 'no answer' may lead before the "
                "model declines."),
        Mistake("maximum", lambda null_scores, best_score, threshold=0.0:
                max(null_scores) - best_score <= threshold,
                "You take the highest no-answer score. A long passage has many windows without the "
                "answer, and each is right to say so; the least of them counts."),
        Mistake("mean", lambda null_scores, best_score, threshold=0.0:
                sum(null_scores) / len(null_scores) - best_score <= threshold,
                "You take the mean no-answer score. One window that has the answer is enough: take "
                "the least."),
        Mistake("first_window", lambda null_scores, best_score, threshold=0.0:
                null_scores[0] - best_score <= threshold,
                "Only the first window is asked. Take the least over all windows."),
        Mistake("last_window", lambda null_scores, best_score, threshold=0.0:
                null_scores[-1] - best_score <= threshold,
                "Only the last window is asked. Take the least over all windows."),
        Mistake("sum", lambda null_scores, best_score, threshold=0.0:
                sum(null_scores) - best_score <= threshold,
                "You add up the no-answer scores. Their number says how long the passage is, not "
                "whether it has the answer: take the least."),
        Mistake("no_answer_ignored", lambda null_scores, best_score, threshold=0.0:
                best_score > threshold,
                "You compare the best score with the threshold alone. It says how far 'no answer' "
                "may lead: compare the difference of the two."),
        Mistake("distance", lambda null_scores, best_score, threshold=0.0:
                abs(min(null_scores) - best_score) <= threshold,
                "You take the distance of the two scores. A best answer that leads by far is to be "
                "given, however far: keep the sign."),
        Mistake("answer_must_lead", lambda null_scores, best_score, threshold=0.0:
                best_score - min(null_scores) > threshold,
                "You want the best answer to lead by more than the threshold. It is 'no answer' "
                "that has to lead by more than that to win; level counts as an answer."),
        Mistake("at_the_threshold", lambda null_scores, best_score, threshold=0.0:
                min(null_scores) - best_score < threshold,
                "Level with the threshold counts as an answer: declined is only what leads by "
                "more."),
        Mistake("threshold_on_the_answer", lambda null_scores, best_score, threshold=0.0:
                min(null_scores) + threshold <= best_score,
                "The threshold is on the wrong side: a higher one must make fewer questions "
                "unanswered."),
        Mistake("other_way_round", lambda null_scores, best_score, threshold=0.0:
                best_score - min(null_scores) <= threshold,
                "The difference is the wrong way round: no-answer score minus best score."),
    ],
    also_right=[
        lambda null_scores, best_score, threshold=0.0:
            not min(null_scores) - best_score > threshold,
        lambda null_scores, best_score, threshold=0.0:
            bool(np.any(np.asarray(null_scores) - best_score <= threshold)),
    ],
    hints=[
        "Ten windows, and the answer stands in one of them. What do the other nine say, and whom "
        "should you believe?",
        "The no-answer score that counts is min(null_scores). By how much may it lead?",
        "return bool(min(null_scores) - best_score <= threshold)",
    ],
)

# --- normalize_answer ---------------------------------------------------------------------------


def _said(text):
    return lambda rng: ((text,), {})


def _lower(text):
    return text.lower()


def _no_punctuation(text):
    return "".join(c for c in text if c not in string.punctuation)


def _no_articles(text):
    return re.sub(r"\b(a|an|the)\b", " ", text)


def _one_blank(text):
    return " ".join(text.split())


def _steps(*steps):
    def normalize(text):
        for step in steps:
            text = step(text)
        return text
    return normalize


def _split_pattern(blank):
    return lambda text: re.sub(r"\ba|an|the\b", blank, text)


def _no_leading_article(text):
    text = _one_blank(_no_punctuation(_lower(text)))
    for article in ("a ", "an ", "the "):
        text = text.removeprefix(article)
    return text


def _normalize_by_words(text):
    kept = "".join("" if c in string.punctuation else c for c in text.lower())
    return " ".join(word for word in re.split(r"\s+", kept) if word not in ("", "a", "an", "the"))


def _normalize_by_table(text):
    kept = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(?:an?|the)\b", " ", kept).split())


register(
    name="normalize_answer",
    lesson="08",
    reference=solution.normalize_answer,
    cases=[
        Case("The Eiffel Tower.", _said("The Eiffel Tower.")),
        Case("a's", _said("a's"), why="articles first would leave s"),
        Case("U.S.A.", _said("U.S.A.")),
        Case("well-known", _said("well-known")),
        Case("the theater and another banana", _said("the theater and another banana")),
        Case("an apple, a pear", _said("an apple, a pear")),
        Case("blanks of all kinds", _said("  in \t the\n park ")),
        Case("A", _said("A")),
        Case("a mark that is not ASCII", _said("“Ode” – to Joy")),
        Case("every ASCII mark", _said("x!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~y")),
        Case("nothing", _said("")),
    ],
    mistakes=[
        Mistake("lower_only", _lower,
                "Lower case is the first of four steps: punctuation, articles and blanks are "
                "left."),
        Mistake("case_kept", _steps(_no_punctuation, _no_articles, _one_blank),
                "Upper case is left. Without lower case first, 'The' is not seen as an article "
                "either."),
        Mistake("lower_last", _steps(_no_punctuation, _no_articles, _one_blank, _lower),
                "You go to lower case last: by then 'The' and 'A' have not been seen as articles."),
        Mistake("punctuation_kept", _steps(_lower, _no_articles, _one_blank),
                "Punctuation is left: 'Tower.' and 'Tower' must be the same answer."),
        Mistake("all_marks_in_a_row", _steps(
            _lower, lambda text: text.replace(string.punctuation, ""), _no_articles, _one_blank),
                "text.replace(string.punctuation, '') looks for all the marks in a row, as one "
                "text. Look at each character for itself."),
        Mistake("marks_at_the_ends", _steps(
            _lower, lambda text: text.strip(string.punctuation), _no_articles, _one_blank),
                "strip removes marks at the ends only. Those inside go too: U.S.A. becomes usa."),
        Mistake("marks_not_escaped", _steps(
            _lower, lambda text: re.sub("[" + string.punctuation + "]", "", text), _no_articles,
            _one_blank),
                "In your pattern the backslash of string.punctuation escapes the bracket behind it "
                "and is not deleted itself: re.escape(string.punctuation), or no pattern at all."),
        Mistake("punctuation_to_blank",
                _steps(_lower, lambda text: "".join(" " if c in string.punctuation else c
                                                    for c in text), _no_articles, _one_blank),
                "You replace punctuation by a blank. It is deleted: U.S.A. becomes usa, one word."),
        Mistake("all_punctuation", _steps(_lower, lambda text: re.sub(r"[^\w\s]|_", "", text),
                                          _no_articles, _one_blank),
                "You delete marks of all alphabets. SQuAD's script deletes the ASCII ones only "
                "(string.punctuation), and numbers are comparable only if everyone does the same."),
        Mistake("articles_first", _steps(_lower, _no_articles, _no_punctuation, _one_blank),
                "You drop articles before punctuation. In \"a's\" the a then counts as a word and "
                "only s is left."),
        Mistake("articles_kept", _steps(_lower, _no_punctuation, _one_blank),
                "The articles a, an and the are left. (With re.sub, does your pattern begin with "
                "r'? Without the r, \\b is a backspace and finds nothing.)"),
        Mistake("leading_article", _no_leading_article,
                "You drop an article at the beginning only. It is dropped wherever it stands as a "
                "word."),
        *(Mistake(name, _steps(_lower, _no_punctuation, _split_pattern(blank), _one_blank),
                  r"The bars of your pattern split it into \ba, an and the\b, which are found "
                  r"inside words too. Parentheses hold the three together, (a|an|the), with \b "
                  "around them.")
          for name, blank in (("no_group", " "), ("no_group_and_no_blank", ""))),
        Mistake("articles_anywhere",
                _steps(_lower, _no_punctuation,
                       lambda text: text.replace("the", " ").replace("an", " ").replace("a", " "),
                       _one_blank),
                "You drop the letters of articles inside words too: 'theater' has lost its head. "
                r"Whole words only: \b in a regular expression, or a comparison word by word."),
        Mistake("only_the", _steps(_lower, _no_punctuation,
                                   lambda text: re.sub(r"\bthe\b", " ", text), _one_blank),
                "'a' and 'an' are articles too."),
        Mistake("blanks_kept", _steps(_lower, _no_punctuation, _no_articles),
                "Blanks are left at the ends or in twos and threes: \" \".join(text.split())."),
        Mistake("blanks_in_twos", _steps(
            _lower, _no_punctuation, _no_articles,
            lambda text: text.replace("  ", " ").strip()),
                "You replace two blanks by one, once. Of three or more some are left, and tabs and "
                "line ends are no blanks: \" \".join(text.split())."),
        Mistake("ends_only", _steps(_lower, _no_punctuation, _no_articles, str.strip),
                "You cut blanks at the ends only; between words there must be exactly one."),
    ],
    also_right=[_normalize_by_words, _normalize_by_table],
    hints=[
        "Four steps in a fixed order: lower case, ASCII punctuation out, articles out, single "
        "blanks.",
        "string.punctuation holds the ASCII marks; keep the characters that are not among them. "
        r"re.sub(r'\b(a|an|the)\b', ' ', text) drops whole words.",
        "text = text.lower(); text = ''.join(c for c in text if c not in string.punctuation); "
        r"text = re.sub(r'\b(a|an|the)\b', ' ', text); return ' '.join(text.split())",
    ],
)

# --- f1 -----------------------------------------------------------------------------------------


def _judged(prediction, *golds):
    return lambda rng: ((prediction, list(golds)), {})


def _f1_loop(prediction, golds):
    scores = []
    for gold in gold_words(golds):
        words, left = normalize_answer(prediction).split(), list(gold)
        if not words or not gold:
            scores.append(1.0 if words == gold else 0.0)
            continue
        shared = 0
        for word in words:
            if word in left:
                left.remove(word)
                shared += 1
        precision, recall = shared / len(words), shared / len(gold)
        scores.append(2 * precision * recall / (precision + recall) if shared else 0.0)
    return max(scores)


def _f1_counts(prediction, golds):
    words = normalize_answer(prediction).split()

    def one(gold):
        if not words and not gold:
            return 1.0
        shared = sum(min(words.count(word), gold.count(word)) for word in set(words))
        return 2 * shared / (len(words) + len(gold))

    return float(max(map(one, gold_words(golds))))


def _letters(prediction, golds):
    text, best = normalize_answer(prediction), 0.0
    for gold in map(normalize_answer, golds or [""]):
        shared = sum((Counter(text) & Counter(gold)).values())
        both = len(text) + len(gold)
        best = max(best, 2 * shared / both if text and gold else float(text == gold))
    return best


def _f1_wrong(*, split=None, known=gold_words, share=None, score=None, over=max, empty=True,
              one_empty=0.0):
    """F1 with one part wrong."""
    def measure(prediction, golds):
        words = (split or (lambda text: normalize_answer(text).split()))(prediction)
        scores = []
        for gold in known(golds):
            if not words or not gold:
                scores.append(float(words == gold or one_empty) if empty else 0.0)
                continue
            shared = (share or (lambda a, b: sum((Counter(a) & Counter(b)).values())))(words, gold)
            scores.append((score or (lambda s, p, g: 2 * s / (p + g)))(shared, len(words),
                                                                       len(gold)))
        return float(over(scores)) if scores else 0.0
    return measure


def _mean(values):
    return sum(values) / len(values)


register(
    name="f1",
    lesson="08",
    reference=solution.f1,
    cases=[
        Case("one word too many", _judged("in Rome", "Rome")),
        Case("to be or not to be", _judged("to be or not to be", "to be to be"),
             why="repeated words count"),
        Case("two right answers, the second nearer", _judged("the blue lamp", "green mill lamp",
                                                             "Blue Lamp!")),
        Case("two right answers, the first nearer", _judged("Blue Lamp Films", "blue films",
                                                            "Green Mill")),
        Case("one right word said three times", _judged("Rome, Rome, Rome", "Rome")),
        Case("the same words in another order", _judged("Lamp, blue", "blue lamp")),
        Case("a short part of a long answer", _judged("mill", "the old green mill at the ford")),
        Case("one of two words on both sides", _judged("blue lamp", "green lamp")),
        Case("case, articles and marks", _judged("The U.S.A.", "USA")),
        Case("nothing in common", _judged("Oslo", "Rome", "Lima")),
        Case("no answer, and none given", _judged("")),
        Case("no answer, but one given", _judged("Rome")),
        Case("an answer, but none given", _judged("", "Rome")),
        Case("a right answer of an article alone, none given", _judged("", "A")),
        Case("an article alone beside a real answer, none given", _judged("", "A", "Rome")),
        Case("an article given", _judged("the", "Rome")),
    ],
    mistakes=[
        Mistake("exact", solution.exact_match,
                "This is exact match: 1 or 0. F1 gives credit for each shared word."),
        Mistake("precision", _f1_wrong(score=lambda s, p, g: s / p),
                "This is precision, shared / predicted words: one right word out of a long answer "
                "would earn 1. Divide twice the shared words by predicted plus right."),
        Mistake("recall", _f1_wrong(score=lambda s, p, g: s / g),
                "This is recall, shared / right words: answering with the whole passage would earn "
                "1. Divide twice the shared words by predicted plus right."),
        Mistake("average", _f1_wrong(score=lambda s, p, g: (s / p + s / g) / 2),
                "You average precision and recall. F1 is their harmonic mean, which is near the "
                "lower of the two: 2 shared / (predicted + right)."),
        Mistake("not_twice", _f1_wrong(score=lambda s, p, g: s / (p + g)),
                "A factor of 2 is missing: a perfect answer shares all its words with both sides."),
        Mistake("jaccard", _f1_wrong(score=lambda s, p, g: s / (p + g - s)),
                "You divide by the words of both together. F1 is 2 shared / (predicted + right)."),
        Mistake("product", _f1_wrong(score=lambda s, p, g: s / p * s / g),
                "You multiply precision and recall. F1 is their harmonic mean, "
                "2 shared / (predicted + right)."),
        Mistake("letters", _letters,
                "You compare letters: a Counter of a text counts characters. Split into words "
                "first; gold_words gives the right answers as lists of words."),
        Mistake("sets", _f1_wrong(share=lambda a, b: len(set(a) & set(b))),
                "Repeated words are counted once. 'to be' twice in both is four shared words: the "
                "sum of the values of Counter(a) & Counter(b); its len counts different words."),
        Mistake("counted_one_way", _f1_wrong(share=lambda a, b: sum(word in b for word in a)),
                "You count every predicted word that occurs in the right answer, however often it "
                "stands there. Repeating one right word must not pay."),
        Mistake("in_place", _f1_wrong(share=lambda a, b: sum(x == y for x, y in zip(a, b))),
                "You compare word by word in place. One word too many at the front would make all "
                "wrong; the order does not count."),
        Mistake("not_normalized", _f1_wrong(split=str.split, known=lambda golds: [
            gold.split() for gold in golds] or [[]]),
                "Neither side is normalized: case, punctuation and articles must not count."),
        Mistake("prediction_not_normalized", _f1_wrong(split=str.split),
                "The prediction is not normalized: pass it through normalize_answer as well."),
        Mistake("mean_of_golds", _f1_wrong(over=_mean),
                "You average over the right answers. Any one of them will do: take the best."),
        Mistake("first_gold", _f1_wrong(over=lambda scores: scores[0]),
                "Only the first right answer is looked at. Take the best over all."),
        Mistake("least_gold", _f1_wrong(over=min),
                "You take the worst over the right answers. Any one of them will do: the best."),
        Mistake("golds_pooled", _f1_wrong(known=lambda golds: [
            [word for gold in gold_words(golds) for word in gold]]),
                "You put the words of all right answers together. They are alternatives: compare "
                "with each for itself and take the best."),
        Mistake("one_side_empty", _f1_wrong(one_empty=1.0),
                "You give 1.0 where either side is empty. That is right only where both are: an "
                "answer where there is none is an error, and so is none where there is one."),
        Mistake("empty_is_zero", _f1_wrong(empty=False),
                "Where there is no answer and none is given, that is right: 1.0."),
        Mistake("empty_golds_kept", _f1_wrong(known=lambda golds: [
            normalize_answer(gold).split() for gold in golds] or [[]]),
                "A right answer of which nothing is left ('A') counts only if there is no other: "
                "gold_words drops it."),
    ],
    also_right=[_f1_loop, _f1_counts],
    hints=[
        "On paper: prediction 'in Rome', right answer 'Rome'. How many words are shared? How many "
        "are there on both sides together?",
        "words = normalize_answer(prediction).split(); for each gold of gold_words(golds), "
        "shared = sum((Counter(words) & Counter(gold)).values()). Think of the empty lists first.",
        "If both lists have words: 2 * shared / (len(words) + len(gold)); else float(words == "
        "gold). Return the highest over the golds.",
    ],
)
