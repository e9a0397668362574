"""From text to numbers: BERT's tokenizer, batches, and positions.

Lesson 03. A text takes four steps:

    "Naïve cafés!"                    normalize      lower case, no accents
    "naive cafes!"                    pre_tokenize   words and punctuation
    ["naive", "cafes", "!"]           wordpiece      the longest pieces that the vocabulary has
    ["naive", "cafe", "##s", "!"]     the vocabulary's ids, between [CLS] and [SEP]

Every step keeps track of where its characters came from, so that each token can be shown in the
text as it was typed. Offsets count code points, as Python's strings do: text[start:stop].

Devlin et al., 2019, "BERT", https://arxiv.org/abs/1810.04805
Wu et al., 2016, "Google's Neural Machine Translation System" (WordPiece), arXiv 1609.08144
Vaswani et al., 2017, "Attention Is All You Need" (positions), https://arxiv.org/abs/1706.03762
"""

import functools
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from solutions import _checks, _unicode
from solutions._checks import checked, describe

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# The blocks of Chinese characters, each of which becomes a word of its own. The last but one should
# start at 2B820; the `tokenizers` library starts it here, and so does the course.
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0xF900, 0xFAFF),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


# --- 1. Normalize -------------------------------------------------------------------------------


@functools.cache
def is_blank(character):
    """Whether a character separates words: a space of any kind, a tab, the end of a line."""
    return character.isspace() and character not in "\x1c\x1d\x1e\x1f"


@functools.cache
def is_punctuation(character):
    """Whether a character is a word of its own: punctuation, or any sign on an ASCII keyboard."""
    sign = "!" <= character <= "~" and not character.isalnum()
    return sign or _unicode.category(character).startswith("P")


@functools.cache
def _is_chinese(character):
    return any(first <= ord(character) <= last for first, last in _CHINESE)


@functools.cache
def _clean(character):
    """What is left of one character before its accents go: nothing, a space, or its parts."""
    if character in "\t\n\r":
        return " "
    if character in "\0\ufffd" or _unicode.category(character) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if is_blank(character):
        return " "
    if _is_chinese(character):
        return " " + _unicode.decompose(character) + " "
    return _unicode.decompose(character)


@functools.cache
def _lower(character):
    """A character of a decomposed text without accents, in lower case."""
    return "" if _unicode.category(character) == "Mn" else _unicode.lower(character)


@functools.cache
def _may_move(character):
    """Whether a character holds a mark that stays, and that the canonical order may move."""
    return any(_unicode.combining(part) and _lower(part) for part in _clean(character))


def _in_canonical_order(parts):
    """Sort each run of marks by class, as NFD does; parts: pairs (character, origin)."""
    ordered, marks = [], []
    for part in [*parts, ("", None)]:
        if part[0] and _unicode.combining(part[0]):
            marks.append(part)
        else:
            ordered += sorted(marks, key=lambda mark: _unicode.combining(mark[0]))
            ordered.append(part)
            marks = []
    return ordered[:-1]


def _text(name, value):
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected a str, got {describe(value)}")


def _normalize_input(text):
    _text("normalize: text", text)


@checked(_normalize_input)
def normalize(text):
    """Lower case, without accents and control characters; and where each character came from.

    Returns (normal, origins): character i of the string `normal` was made from text[origins[i]].
    Blanks of all kinds become spaces, and a Chinese character gets a space on either side. This is
    the normalization of BERT's uncased models.
    """
    if text.isascii() and text.isprintable():
        return text.lower(), list(range(len(text)))
    parts = [(part, index) for index, typed in enumerate(text) for part in _clean(typed)]
    if any(map(_may_move, text)):
        parts = _in_canonical_order(parts)
    lowered = [(new, index) for part, index in parts for new in _lower(part)]
    return "".join(new for new, _ in lowered), [index for _, index in lowered]


# --- 2. Words -----------------------------------------------------------------------------------


def _pre_tokenize_input(text):
    _text("pre_tokenize: text", text)


@checked(_pre_tokenize_input)
def pre_tokenize(text):
    """The words of a text with their offsets; each punctuation character is a word of its own.

    Returns a list of (word, (start, stop)) with word == text[start:stop].
    """
    words, start = [], None
    for index, character in enumerate(text + " "):
        mark = is_punctuation(character)
        if mark or is_blank(character):
            if start is not None:
                words.append((text[start:index], (start, index)))
                start = None
            if mark:
                words.append((character, (index, index + 1)))
        elif start is None:
            start = index
    return words


# --- 3. Pieces ----------------------------------------------------------------------------------


def _wordpiece_input(word, vocab, unknown="[UNK]", max_chars=100):
    _text("wordpiece: word", word)
    if isinstance(vocab, str) or not isinstance(vocab, Container):
        raise ValueError(
            f"wordpiece: vocab: expected a collection of tokens, got {describe(vocab)}"
        )
    _text("wordpiece: unknown", unknown)
    _checks.whole("wordpiece: max_chars", max_chars, 1)


@checked(_wordpiece_input)
def wordpiece(word, vocab, unknown="[UNK]", max_chars=100):
    """Cut a word into the pieces of a vocabulary, from left to right, always the longest that fits.

    Returns the list of pieces. All but the first begin with "##". A word of which some part is not
    in `vocab` (a dict or set of tokens), or of more than `max_chars` characters, is [unknown].
    """
    if len(word) > max_chars:
        return [unknown]
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start > 0 else ""
        stop = len(word)
        while stop > start and prefix + word[start:stop] not in vocab:
            stop -= 1
        if stop == start:
            return [unknown]
        pieces.append(prefix + word[start:stop])
        start = stop
    return pieces


# --- 4. Ids -------------------------------------------------------------------------------------


def _truncated_lengths_input(first, second, room):
    for name, value in (("first", first), ("second", second), ("room", room)):
        _checks.whole(f"truncated_lengths: {name}", value, 0)


@checked(_truncated_lengths_input)
def truncated_lengths(first, second, room):
    """How many tokens of two texts to keep so that together they fit in `room`.

    Returns (first, second). The longer text is cut first; when both are cut they share the room,
    and the longer (the second if they are equal) has the odd token.
    """
    if first + second <= room:
        return first, second
    shorter = min(first, second, room // 2)
    return (room - shorter, shorter) if first > second else (shorter, room - shorter)


@dataclass(frozen=True)
class Encoding:
    """A text, or a pair of texts, as an encoder reads it: lists with one entry for each token.

    input_ids            the token's place in the vocabulary
    tokens               the token itself; a piece that continues a word begins with "##"
    token_type_ids       segment: 0 up to the first [SEP], 1 after it
    attention_mask       True: a real token (pad_batch adds those that are not)
    offsets              (start, stop) in code points: text[start:stop] is what the token was made
                         from, in its own text of the two; (0, 0) for [CLS] and [SEP]
    word_ids             which word of its own text the token belongs to; None for [CLS] and [SEP]
    special_tokens_mask  True for the [CLS] and [SEP] that the tokenizer added
    """

    input_ids: list
    tokens: list
    token_type_ids: list
    attention_mask: list
    offsets: list
    word_ids: list
    special_tokens_mask: list

    def __len__(self):
        return len(self.input_ids)

    def __getitem__(self, tokens):
        """The encoding of a slice of the tokens, encoding[2:7]."""
        if not isinstance(tokens, slice):
            raise ValueError(f"Encoding: expected a slice such as [2:7], got {describe(tokens)}")
        return Encoding(*(getattr(self, field.name)[tokens] for field in fields(self)))

    @property
    def sequence_ids(self):
        """0 for a token of the first text, 1 for one of the second, None for [CLS] and [SEP]."""
        return [
            None if special else segment
            for segment, special in zip(self.token_type_ids, self.special_tokens_mask)
        ]


# What a tokenizer splits a text at before it looks at the words. (The control characters that
# Python counts as blanks are missing: normalization removes them, and joins what they separate.)
_STRETCH = re.compile(r"[^\t\n\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


def _vocabulary(vocab):
    name = "WordPieceTokenizer: vocab"
    if isinstance(vocab, (str, Path)):
        raise ValueError(
            f"{name}: expected the tokens in the order of their ids, got {describe(vocab)}; "
            "for a file, use WordPieceTokenizer.from_file(path)"
        )
    if isinstance(vocab, (dict, set, frozenset)) or not isinstance(vocab, Iterable):
        raise ValueError(
            f"{name}: expected a list of tokens in the order of their ids, got {describe(vocab)}"
        )
    places = {}
    for index, token in enumerate(vocab):
        _text(f"{name}: token {index}", token)
        if token in places:
            raise ValueError(
                f"{name}: expected each token once, got {token!r} as {places[token]} and {index}"
            )
        places[token] = index
    for token in ("[UNK]", "[CLS]", "[SEP]"):
        if token not in places:
            raise ValueError(f"{name}: expected {token} among the tokens, got {len(places)} others")
    return places


class WordPieceTokenizer:
    """BERT's uncased tokenizer.

    vocab            the tokens in the order of their ids, [UNK], [CLS] and [SEP] among them
    special_in_text  True (as in the libraries): "[MASK]" or another special token, typed in a
                     text, is that token; False: it is typed text like any other
    max_chars        a longer word is [UNK]

    Ids, tokens and word ids are those of the `tokenizers` library, and offsets too, but for one
    case. Where two marks on one letter change places in the canonical order (NFD) and one of them
    stays in the text, the library gives it the place of the other; here it has its own. In
    " a\\u0301\\u1baa" the word "a\\u1baa" is at (1, 4), in the library at (1, 3).
    """

    def __init__(self, vocab, special_in_text=True, max_chars=100):
        self.vocab = _vocabulary(vocab)
        self.tokens = list(self.vocab)
        _checks.whole("WordPieceTokenizer: max_chars", max_chars, 1)
        self.max_chars = max_chars
        self.special_in_text = bool(special_in_text)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self.vocab.get(token) for token in SPECIAL_TOKENS
        )
        self._special = {token for token in SPECIAL_TOKENS if token in self.vocab}
        self._split = re.compile("(" + "|".join(map(re.escape, sorted(self._special))) + ")").split
        self._seen = {}

    @classmethod
    def from_file(cls, path, **options):
        """The tokenizer of a vocab.txt: one token a line, in the order of their ids."""
        text = Path(path).read_text(encoding="utf-8")
        return cls(text.removesuffix("\n").split("\n"), **options)

    def __len__(self):
        return len(self.tokens)

    def encode(self, text, pair=None, max_length=None, add_special_tokens=True):
        """The Encoding of [CLS] text [SEP], or of [CLS] text [SEP] pair [SEP].

        With `max_length`, tokens are dropped from the end until all fit, first those of the longer
        text; [CLS] and [SEP] stay. `add_special_tokens=False` gives the text's tokens alone.
        """
        first = self._rows("encode: text", text)
        second = None if pair is None else self._rows("encode: pair", pair)
        return self._encoding("encode", first, second, max_length, add_special_tokens)

    def encode_words(self, words, pair_words=None, max_length=None, add_special_tokens=True):
        """The Encoding of a text that comes as a list of words.

        Word ids are places in the list: the pieces and the punctuation of one word share its place,
        and a word of which normalization leaves nothing has no token. Offsets count within the
        word: words[word_id][start:stop].
        """
        first = self._rows_of_words("encode_words: words", words)
        second = pair_words
        if second is not None:
            second = self._rows_of_words("encode_words: pair_words", second)
        return self._encoding("encode_words", first, second, max_length, add_special_tokens)

    def combine(self, first, second=None, max_length=None):
        """[CLS] first [SEP] second [SEP], from encodings without special tokens or slices of them.

        For a window of a long text: tokenizer.combine(question, passage[100:200]), both of them
        from tokenizer.encode(text, add_special_tokens=False).
        """
        rows = []
        for name, part in (("first", first), ("second", second)):
            if name == "second" and part is None:
                rows.append(None)
            elif not isinstance(part, Encoding) or any(part.special_tokens_mask):
                came = "one with [CLS] or [SEP]" if isinstance(part, Encoding) else describe(part)
                raise ValueError(
                    f"combine: {name}: expected an Encoding without special tokens, got {came}"
                )
            else:
                rows.append(list(zip(part.input_ids, part.tokens, part.offsets, part.word_ids)))
        return self._encoding("combine", *rows, max_length, True)

    def decode(self, ids, skip_special_tokens=True):
        """The text of some ids: pieces joined to words, one space between words."""
        words = []
        for index in ids:
            _checks.whole("decode: ids", index, 0, len(self.tokens) - 1)
            token = self.tokens[index]
            if token.startswith("##") and words:
                words[-1] += token.removeprefix("##")
            elif token not in SPECIAL_TOKENS or not skip_special_tokens:
                words.append(token)
        return " ".join(words)

    # A row is one token: (id, token, (start, stop), word).

    def _rows(self, name, text):
        _text(name, text)
        rows, at, num_words = [], 0, 0
        for part in self._split(text) if self.special_in_text else [text]:
            if self.special_in_text and part in self._special:
                rows.append((self.vocab[part], part, (at, at + len(part)), num_words))
                num_words += 1
            else:
                for match in _STRETCH.finditer(part):
                    start = at + match.start()
                    stretch, words = self._rows_of_stretch(match[0])
                    for index, token, (first, last), word in stretch:
                        rows.append((index, token, (start + first, start + last), num_words + word))
                    num_words += words
            at += len(part)
        return rows

    def _rows_of_stretch(self, typed):
        """The rows of a text without blanks, and how many words it has; remembered."""
        if typed in self._seen:
            return self._seen[typed]
        normal, origins = normalize(typed)
        words = pre_tokenize(normal)
        rows = []
        for number, (word, (at, end)) in enumerate(words):
            for place, piece in enumerate(wordpiece(word, self.vocab, max_chars=self.max_chars)):
                size = len(piece) - 2 if place > 0 else len(piece)
                stop = end if piece == "[UNK]" else at + size
                made_from = origins[at:stop]
                offsets = min(made_from), max(made_from) + 1
                rows.append((self.vocab[piece], piece, offsets, number))
                at = stop
        if len(typed) <= 100:
            if len(self._seen) == 50_000:
                self._seen.clear()
            self._seen[typed] = rows, len(words)
        return rows, len(words)

    def _rows_of_words(self, name, words):
        if isinstance(words, str) or not isinstance(words, Iterable):
            raise ValueError(f"{name}: expected a list of words, got {describe(words)}")
        return [
            (index, token, offsets, number)
            for number, word in enumerate(words)
            for index, token, offsets, _ in self._rows(f"{name}: word {number}", word)
        ]

    def _encoding(self, where, first, second, max_length, add_special_tokens):
        if second is not None and not add_special_tokens:
            raise ValueError(f"{where}: expected one text without special tokens, got a pair")
        num_special = 0 if not add_special_tokens else 2 if second is None else 3
        if max_length is not None:
            _checks.whole(f"{where}: max_length", max_length, num_special)
            room = max_length - num_special
            keep, keep_second = truncated_lengths(len(first), len(second or ()), room)
            first = first[:keep]
            second = second if second is None else second[:keep_second]
        start = [(self.cls_id, "[CLS]", (0, 0), None)] if add_special_tokens else []
        stop = [(self.sep_id, "[SEP]", (0, 0), None)] if add_special_tokens else []
        parts = [start, first, stop] + ([] if second is None else [second, stop])
        rows = [row for part in parts for row in part]
        ids, tokens, offsets, word_ids = map(list, zip(*rows)) if rows else ([], [], [], [])
        num_first = len(start) + len(first) + len(stop)
        return Encoding(
            input_ids=ids,
            tokens=tokens,
            token_type_ids=[0] * num_first + [1] * (len(rows) - num_first),
            attention_mask=[True] * len(rows),
            offsets=offsets,
            word_ids=word_ids,
            special_tokens_mask=[word is None for word in word_ids],
        )


# --- 5. Batches ---------------------------------------------------------------------------------


def _pad_batch_input(encodings, length=None, pad_id=0):
    if not isinstance(encodings, (list, tuple)) or not encodings:
        came = "an empty list" if encodings == [] else describe(encodings)
        raise ValueError(f"pad_batch: encodings: expected a list of at least one, got {came}")
    for number, encoding in enumerate(encodings):
        if not isinstance(encoding, Encoding):
            raise ValueError(
                f"pad_batch: encodings: {number}: expected an Encoding, got {describe(encoding)}"
            )
    if length is not None:
        _checks.whole("pad_batch: length", length, max(len(encoding) for encoding in encodings))
    _checks.whole("pad_batch: pad_id", pad_id, 0)


@checked(_pad_batch_input)
def pad_batch(encodings, length=None, pad_id=0):
    """Arrays of one shape from encodings of several lengths, with padding at the end of each row.

    Returns a dict of input_ids (int64), attention_mask (Boolean, True = real token) and
    token_type_ids (int64), each (batch, length), where `length` is the longest encoding's unless
    it is given. `encoder(**pad_batch(encodings))` runs an encoder on them.
    """
    if length is None:
        length = max(len(encoding.input_ids) for encoding in encodings)
    shape = (len(encodings), length)
    input_ids = np.full(shape, pad_id, dtype=np.int64)
    attention_mask = np.zeros(shape, dtype=bool)
    token_type_ids = np.zeros(shape, dtype=np.int64)
    for row, encoding in enumerate(encodings):
        real = len(encoding.input_ids)
        input_ids[row, :real] = encoding.input_ids
        attention_mask[row, :real] = True
        token_type_ids[row, :real] = encoding.token_type_ids
    return {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "token_type_ids": token_type_ids,
    }


# --- 6. Positions -------------------------------------------------------------------------------


def _sinusoidal_positions_input(length, d_model):
    _checks.whole("sinusoidal_positions: length", length, 0)
    _checks.whole("sinusoidal_positions: d_model", d_model, 1)


@checked(_sinusoidal_positions_input)
def sinusoidal_positions(length, d_model):
    """A vector for each position: sines and cosines of slower and slower waves.

    Returns (length, d_model) float64: column 2i is sin(position / 10000 ** (2i / d_model)) and
    column 2i + 1 the cosine of the same angle. With an odd `d_model` the last sine has no cosine.
    """
    positions = np.arange(length)[:, np.newaxis]  # (length, 1)
    speeds = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)  # (waves,)
    angles = positions * speeds  # (length, waves)
    table = np.zeros((length, d_model))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, : d_model // 2])
    return table
