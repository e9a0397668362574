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

# The blocks that BERT's authors took for Chinese characters; each becomes a word of its own. The
# seventh should start at 2B820; the library that made the checkpoints starts it here.
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
    return "" if _unicode.category(character) == "Mn" else character.lower()


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


@dataclass(frozen=True)
class Encoding:
    """A text, or a pair of texts, as an encoder reads it: lists with one entry for each token.

    input_ids            the token's place in the vocabulary
    tokens               the token itself; a piece that continues a word begins with "##"
    token_type_ids       segment: 0 up to the first [SEP], 1 for what follows
    attention_mask       True for a real token (padding, added later by pad_batch, is False)
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
        """The encoding of a slice of the tokens: encoding[2:7]."""
        if not isinstance(tokens, slice):
            raise ValueError(f"Encoding: expected a slice such as [2:7], got {describe(tokens)}")
        return Encoding(*(getattr(self, field.name)[tokens] for field in fields(self)))

    def __add__(self, other):
        names = [field.name for field in fields(self)]
        return Encoding(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def sequence_ids(self):
        """0 for a token of the first text, 1 for one of the second, None for [CLS] and [SEP]."""
        return [
            None if special else segment
            for segment, special in zip(self.token_type_ids, self.special_tokens_mask, strict=True)
        ]


class WordPieceTokenizer:
    """BERT's uncased tokenizer.

    vocab            the tokens in the order of their ids, [UNK], [CLS] and [SEP] among them
    special_in_text  whether "[MASK]" and the other special tokens, typed in a text, stand for
                     themselves (as in the libraries; the default) or are words like any other
    max_chars        a longer word is [UNK]

    Ids, offsets and word ids equal those of the `tokenizers` library.
    """

    def __init__(self, vocab, special_in_text=True, max_chars=100):
        self.tokens = _vocabulary(vocab)
        self.vocab = {token: index for index, token in enumerate(self.tokens)}
        _checks.whole("WordPieceTokenizer: max_chars", max_chars, 1)
        self.special_in_text = bool(special_in_text)
        self.max_chars = max_chars
        for token in ("[UNK]", "[CLS]", "[SEP]"):
            if token not in self.vocab:
                raise ValueError(
                    f"WordPieceTokenizer: vocab: expected {token} among its {len(self.tokens)} "
                    "tokens, and it is not there"
                )
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self.vocab.get(token) for token in SPECIAL_TOKENS
        )
        present = [token for token in SPECIAL_TOKENS if token in self.vocab]
        self._special = re.compile("(" + "|".join(map(re.escape, present)) + ")")
        self._cache = {}

    @classmethod
    def from_file(cls, path, **options):
        """The tokenizer of a vocab.txt: one token a line, in the order of their ids."""
        text = Path(path).read_text(encoding="utf-8")
        return cls(text.removesuffix("\n").split("\n"), **options)

    def __len__(self):
        return len(self.tokens)

    def encode(self, text, pair=None, max_length=None, add_special_tokens=True):
        """The Encoding of [CLS] text [SEP], or of [CLS] text [SEP] pair [SEP].

        With `max_length`, tokens are dropped from the end until all fit, those of the longer text
        first; [CLS] and [SEP] stay. Without special tokens `pair` is not possible.
        """
        _text("encode: text", text)
        if pair is not None:
            _text("encode: pair", pair)
        first = self._encode_text(text)
        second = None if pair is None else self._encode_text(pair)
        return self._finish("encode", first, second, max_length, add_special_tokens)

    def encode_words(self, words, pair_words=None, max_length=None, add_special_tokens=True):
        """The Encoding of a text that comes as a list of words.

        Word ids are places in `words`: a word of several pieces keeps one id, punctuation within it
        too, and a word of which nothing is left (an empty one) has no token. Offsets are within the
        word: words[word_id][start:stop].
        """
        first = self._encode_words("encode_words: words", words)
        second = pair_words
        if second is not None:
            second = self._encode_words("encode_words: pair_words", pair_words)
        return self._finish("encode_words", first, second, max_length, add_special_tokens)

    def combine(self, first, second=None, max_length=None):
        """[CLS] first [SEP], or [CLS] first [SEP] second [SEP], from encodings without specials.

        For a slice of a long text: tokenizer.combine(question, passage[100:200]), where both come
        from tokenizer.encode(text, add_special_tokens=False).
        """
        for name, part in (("first", first), ("second", second)):
            if not isinstance(part, Encoding) and not (name == "second" and part is None):
                raise ValueError(f"combine: {name}: expected an Encoding, got {describe(part)}")
            if part is not None and any(part.special_tokens_mask):
                raise ValueError(
                    f"combine: {name}: expected an Encoding made with add_special_tokens=False, "
                    "got one with [CLS] and [SEP]"
                )
        return self._finish("combine", first, second, max_length, True)

    def decode(self, ids, skip_special_tokens=True):
        """The text of some ids: pieces joined to words, words separated by one space."""
        words = []
        for index in ids:
            _checks.whole("decode: ids", index, 0, len(self.tokens) - 1)
            token = self.tokens[index]
            if token in SPECIAL_TOKENS and skip_special_tokens:
                continue
            if token.startswith("##") and words:
                words[-1] += token[2:]
            else:
                words.append(token)
        return " ".join(words)

    def _encode_stretch(self, typed):
        """(number of words, [(id, token, start, stop, word)]) of a text without blanks."""
        known = self._cache.get(typed)
        if known is not None:
            return known
        normal, origins = normalize(typed)
        words = pre_tokenize(normal)
        tokens = []
        for number, (word, (at, end)) in enumerate(words):
            pieces = wordpiece(word, self.vocab, max_chars=self.max_chars)
            for index, piece in enumerate(pieces):
                stop = at + len(piece) - (2 if index > 0 else 0)
                if piece == "[UNK]":  # never a part of a word: brackets are words of their own
                    stop = end
                made_from = origins[at:stop]
                tokens.append((self.vocab[piece], piece, min(made_from), max(made_from) + 1, number))
                at = stop
        if len(typed) <= 100:
            if len(self._cache) >= 50_000:
                self._cache.clear()
            self._cache[typed] = len(words), tokens
        return len(words), tokens

    def _encode_text(self, text):
        encoding, num_words, at = _no_tokens(), 0, 0
        parts = self._special.split(text) if self.special_in_text else [text]
        for index, part in enumerate(parts):
            if index % 2:  # the odd parts of a split are what it splits at
                _append(encoding, [(self.vocab[part], part, 0, len(part), 0)], at, num_words)
                num_words += 1
            else:
                for match in _STRETCH.finditer(part):
                    count, tokens = self._encode_stretch(match[0])
                    _append(encoding, tokens, at + match.start(), num_words)
                    num_words += count
            at += len(part)
        return encoding

    def _encode_words(self, name, words):
        if isinstance(words, str) or not isinstance(words, Iterable):
            raise ValueError(f"{name}: expected a list of words, got {describe(words)}")
        encoding = _no_tokens()
        for number, word in enumerate(words):
            _text(f"{name}: word {number}", word)
            of_word = self._encode_text(word)
            encoding.word_ids.extend([number] * len(of_word))
            for name_of_list in ("input_ids", "tokens", "offsets"):
                getattr(encoding, name_of_list).extend(getattr(of_word, name_of_list))
        return _with_masks(encoding, 0, False)

    def _finish(self, where, first, second, max_length, add_special_tokens):
        num_special = 0 if not add_special_tokens else 2 if second is None else 3
        if not add_special_tokens and second is not None:
            raise ValueError(f"{where}: pair: expected None without special tokens, got a pair")
        if max_length is not None:
            _checks.whole(f"{where}: max_length", max_length, 0)
            if max_length < num_special:
                raise ValueError(
                    f"{where}: max_length: expected at least {num_special}, for [CLS] and "
                    f"[SEP], got {max_length}"
                )
            lengths = truncated_lengths(
                len(first), 0 if second is None else len(second), max_length - num_special
            )
            first = first[: lengths[0]]
            second = second if second is None else second[: lengths[1]]
