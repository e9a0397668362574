"""Lesson 03's exercises: from text to word pieces, ids, padded batches, positions and vectors."""

import re
import string
import unicodedata

import numpy as np

from course.exercises import Case, Mistake, register
from solutions import embeddings as solution
from solutions.embeddings import (
    WordPieceTokenizer,
    is_blank,
    is_punctuation,
    pre_tokenize,
    truncated_lengths,
    wordpiece,
)


def _given(*args, **kwargs):
    """The inputs of a case that draws nothing."""
    return lambda rng: (args, kwargs)


# Where in a text the code point number i stands, counted in other units.


def _utf16_places(text):
    return [len(text[:i].encode("utf-16-le")) // 2 for i in range(len(text) + 1)]


def _byte_places(text):
    return [len(text[:i].encode()) for i in range(len(text) + 1)]


# --- normalize_letters --------------------------------------------------------------------------


def normalize_letters(text):
    """Lower case without accents, and where each character came from: (normal, origins).

    Character i of the string `normal` was made from text[origins[i]].
    """
    normal, origins = "", []
    for index, typed in enumerate(text):
        for part in unicodedata.normalize("NFD", typed):
            if unicodedata.category(part) != "Mn":
                normal += part.lower()
                origins.append(index)
    return normal, origins


def _letters(text, form="NFD", marks=False, change=str.lower, places=None):
    """`normalize_letters` with one part chosen wrongly."""
    places = places or range(len(text))
    made = [(new, places[i]) for i, typed in enumerate(text)
            for part in unicodedata.normalize(form, typed)
            if marks or unicodedata.category(part) != "Mn" for new in change(part)]
    return "".join(new for new, _ in made), [i for _, i in made]


def _letters_ascii(text):
    parts = [(part, i) for i, typed in enumerate(text)
             for part in unicodedata.normalize("NFD", typed) if part.isascii()]
    return "".join(part for part, _ in parts).lower(), [i for _, i in parts]


def _letters_lowered_first(text):
    """Lower case first, then the parts; a mark is told by its combining class."""
    normal, origins, index = "", [], -1
    for typed in text:
        index += 1
        for part in unicodedata.normalize("NFD", typed.lower()):
            if not unicodedata.combining(part):
                normal, origins = normal + part, [*origins, index]
    return normal, origins


def _letters_of_the_whole(text):
    """Takes the whole text apart first, and counts in what came out."""
    made = [(part.lower(), i) for i, part in enumerate(unicodedata.normalize("NFD", text))
            if unicodedata.category(part) != "Mn"]
    return "".join(part for part, _ in made), [i for _, i in made]


register(
    name="normalize_letters",
    lesson="03",
    reference=normalize_letters,
    parts=("normal", "origins"),
    cases=[
        Case("Tea", _given("Tea")),
        Case("Zoë", _given("Zoë"), why="ë is one code point that decomposes into two"),
        Case("Cafe and a mark of its own, then s", _given("Cafe\u0301s"),
             why="the text has a code point more than its normal form: origins jump"),
        Case("Việt with two marks on one letter", _given("Vi\u1ec7t")),
        Case("ﬁne Straße", _given("ﬁne Straße"), why="neither ﬁ nor ß has an accent"),
        Case("Zoë met 👍🏽 Ana", _given("Zoë met 👍🏽 Ana"),
             why="an emoji takes two UTF-16 units, or four bytes"),
        Case("an empty text", _given("")),
    ],
    mistakes=[
        Mistake("only_text", lambda text: normalize_letters(text)[0],
                "You return the text alone. Return two things, (normal, origins): without origins "
                "nobody can find the typed text again."),
        Mistake("only_lower", lambda text: (text.lower(), list(range(len(text)))),
                "Lower case is there, the accents are too. Decompose each character with "
                "unicodedata.normalize(\"NFD\", ...) and drop the marks."),
        Mistake("case_kept", lambda text: _letters(text, change=str),
                "The accents are gone, the capitals are not: take .lower() of what is left."),
        Mistake("marks_kept", lambda text: _letters(text, marks=True),
                "You decompose, but the marks stay in the text as characters of their own. Drop "
                "those whose unicodedata.category is \"Mn\"."),
        Mistake("capitals", lambda text: _letters(text, change=lambda p: p.upper()),
                "These are capitals. BERT's uncased models know small letters only: .lower()."),
        Mistake("ascii_only", _letters_ascii,
                "You keep ASCII alone. That also throws away ß, every emoji and every other "
                "script. Drop the marks, category \"Mn\", and nothing else."),
        Mistake("compatibility", lambda text: _letters(text, form="NFKD"),
                "NFKD replaces more than accents: ﬁ becomes two letters. Use NFD, which takes "
                "apart letters and their accents."),
        Mistake("casefold", lambda text: _letters(text, change=str.casefold),
                "casefold makes “ss” of “ß”. Lower case leaves it: use .lower()."),
        Mistake("places_in_normal",
                lambda text: (normalize_letters(text)[0],
                              list(range(len(normalize_letters(text)[0])))),
                "Your origins count 0, 1, 2, ... in the new string. Where a mark was dropped, the "
                "typed text is ahead of it: note the place in `text`."),
        Mistake("places_in_decomposed", _letters_of_the_whole,
                "You take the whole text apart and count in the result. That is longer than what "
                "was typed: go through `text` itself, and take apart one character at a time."),
        Mistake("utf16", lambda text: _letters(text, places=_utf16_places(text)),
                "Your origins count UTF-16 units, as JavaScript does: an emoji counts twice. "
                "Python's text[i] counts code points."),
        Mistake("bytes", lambda text: _letters(text, places=_byte_places(text)),
                "Your origins count bytes: ë counts twice, an emoji four times. Python's text[i] "
                "counts code points."),
    ],
    also_right=[
        _letters_lowered_first,
        lambda text: _letters(text),
    ],
    hints=[
        "Two loops: over the characters of the text with their places, and over the parts of each "
        "character.",
        "unicodedata.normalize(\"NFD\", \"ë\") is the two characters e and ¨. The second has "
        "category \"Mn\". Whatever you keep, append its place to origins at the same moment.",
        "for index, typed in enumerate(text): for part in unicodedata.normalize(\"NFD\", typed): "
        "if unicodedata.category(part) != \"Mn\", add part.lower() to normal and index to origins.",
    ],
)

# --- pre_tokenize -------------------------------------------------------------------------------


def _words(text, mark=is_punctuation, blank=is_blank):
    """Words and marks with offsets, by regular steps: each run of other characters, each mark."""
    found, at = [], 0
    while at < len(text):
        stop = at + 1
        if not blank(text[at]):
            if not mark(text[at]):
                while stop < len(text) and not mark(text[stop]) and not blank(text[stop]):
                    stop += 1
            found.append((text[at:stop], (at, stop)))
        at = stop
    return found


def _words_by_pattern(text):
    """Put blanks around the marks of a copy, then find what is not blank."""
    kinds = "".join(" " if is_blank(c) else "!" if is_punctuation(c) else "w" for c in text)
    return [(text[m.start():m.end()], m.span()) for m in re.finditer("w+|!", kinds)]


def _words_glued(text):
    kinds = "".join(" " if is_blank(c) else "!" if is_punctuation(c) else "w" for c in text)
    return [(text[m.start():m.end()], m.span()) for m in re.finditer("w+|!+", kinds)]


def _last_lost(text):
    """The loop without the blank at the end."""
    words, start = [], None
    for index, character in enumerate(text):
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


def _empty_words(text):
    """A word at every blank and mark, even where nothing stood before it."""
    words, start = [], 0
    for index, character in enumerate(text + " "):
        mark = is_punctuation(character)
        if mark or is_blank(character):
            words.append((text[start:index], (start, index)))
            if mark:
                words.append((character, (index, index + 1)))
            start = index + 1
    return words


def _start_kept(text):
    """Forgets to say that a word has ended."""
    words, start = [], None
    for index, character in enumerate(text + " "):
        mark = is_punctuation(character)
        if mark or is_blank(character):
            if start is not None:
                words.append((text[start:index], (start, index)))
            if mark:
                words.append((character, (index, index + 1)))
        elif start is None:
            start = index
    return words


register(
    name="pre_tokenize",
    lesson="03",
    reference=pre_tokenize,
    cases=[
        Case("a thin plot", _given("a thin plot"), why="the last word has nothing after it"),
        Case("well, no!", _given("well, no!")),
        Case("no no no", _given("no no no"), why="searching for a word finds the first of them"),
        Case("so-so ... don't", _given("so-so ... don't"), why="three marks are three words"),
        Case("blanks of all kinds", _given("  two\tkinds \n of\u3000blank ")),
        Case("$5 or 5€, “yes” — 👍🏽!", _given("$5 or 5€, “yes” — 👍🏽!"),
             why="curly quotes are punctuation, the emoji and € are not"),
        Case("an empty text", _given("")),
        Case("one mark", _given("?")),
    ],
    mistakes=[
        Mistake("no_offsets", lambda text: [word for word, _ in pre_tokenize(text)],
                "The words are right; each needs its offsets: (word, (start, stop))."),
        Mistake("blanks_only", lambda text: _words(text, mark=lambda c: False),
                "You split at blanks only, so “no!” stays one word, and the vocabulary would need "
                "it beside “no”. Every punctuation character is a word of its own."),
        Mistake("marks_dropped",
                lambda text: [w for w in pre_tokenize(text) if not is_punctuation(w[0][0])],
                "The punctuation is gone. It carries meaning (“no!” or “no?”): keep each mark as "
                "a word."),
        Mistake("last_word_lost", _last_lost,
                "The last word is missing when the text ends in the middle of it. What ends a word "
                "in your loop, and what does at the end of the text?"),
        Mistake("empty_words", _empty_words,
                "There are empty words, where a mark stands beside a blank or another mark. Add a "
                "word only if it has begun."),
        Mistake("start_kept", _start_kept,
                "Every word reaches back to the start of the first one. When a word ends, forget "
                "where it began."),
        Mistake("marks_glued", _words_glued,
                "“...” came out as one word. Each punctuation character is a word by itself."),
        Mistake("ascii_marks",
                lambda text: _words(text, mark=lambda c: c in string.punctuation),
                "You know the punctuation of ASCII only; “ ” and — are punctuation too. "
                "is_punctuation knows them."),
        Mistake("not_alphanumeric", lambda text: _words(text, mark=lambda c: not c.isalnum()
                                                        and not is_blank(c)),
                "You take whatever is no letter and no digit for punctuation. An emoji is neither, "
                "and must stay whole: use is_punctuation."),
        Mistake("ascii_blanks", lambda text: _words(text, blank=lambda c: c in " \t\n"),
                "Some blanks are outside ASCII, such as the wide space of Japanese. is_blank knows "
                "them."),
        Mistake("stop_inclusive",
                lambda text: [(w, (a, b - 1)) for w, (a, b) in pre_tokenize(text)],
                "Your stop is the place of the last character. Python's slices end before it: "
                "text[start:stop] must be the word."),
        Mistake("searched",
                lambda text: [(w, (text.find(w), text.find(w) + len(w)))
                              for w, _ in pre_tokenize(text)],
                "You search for each word in the text, and a word that occurs twice is found at "
                "its first place both times. Note the place while you read."),
    ],
    also_right=[_words, _words_by_pattern],
    hints=[
        "Read character by character and remember where the present word began, or None.",
        "A blank or a mark ends the present word; a mark is also a word itself, (index, index + "
        "1). To end the last word, read one blank more: text + \" \".",
        "for index, character in enumerate(text + \" \"): if it is a mark or blank, append "
        "(text[start:index], (start, index)) if start is not None and set start to None; append "
        "the mark. Otherwise, if start is None, start = index.",
    ],
)

# --- wordpiece ----------------------------------------------------------------------------------

PIECES = {"[UNK]", "un", "unh", "##happy", "##happi", "##hap", "##py", "##ness", "##ly", "happy",
          "hap", "u", "n", "h", "a", "##n", "##h", "##a", "##p", "##i", "##e", "##s", "##y", "##l",
          "s", "x", "##nes", "play", "##ing", "##er", "##playing"}


def _pieces_shortest(word, vocab, unknown="[UNK]", max_chars=100):
    if len(word) > max_chars:
        return [unknown]
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for stop in range(start + 1, len(word) + 1):
            if prefix + word[start:stop] in vocab:
                break
        else:
            return [unknown]
        pieces.append(prefix + word[start:stop])
        start = stop
    return pieces


def _pieces_from_right(word, vocab, unknown="[UNK]", max_chars=100):
    if len(word) > max_chars:
        return [unknown]
    pieces, stop = [], len(word)
    while stop > 0:
        for start in range(stop):
            piece = ("##" if start else "") + word[start:stop]
            if piece in vocab:
                break
        else:
            return [unknown]
        pieces.insert(0, piece)
        stop = start
    return pieces


def _pieces_backtracking(word, vocab, unknown="[UNK]", max_chars=100):
    def cut(start):
        if start == len(word):
            return []
        for stop in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:stop]
            if piece in vocab:
                rest = cut(stop)
                if rest is not None:
                    return [piece, *rest]
        return None
    if len(word) > max_chars:
        return [unknown]
    found = cut(0)
    return [unknown] if found is None else found


def _pieces_greedy(word, vocab, unknown="[UNK]", max_chars=100, first="", later="##", shown=None,
                   failed="word"):
    """Longest match first with one part chosen wrongly."""
    if len(word) > max_chars:
        return [unknown]
    pieces, start = [], 0
    while start < len(word):
        prefix = later if start else first
        stop = next((stop for stop in range(len(word), start, -1)
                     if prefix + word[start:stop] in vocab), None)
        if stop is None:
            if failed == "word":
                return [unknown]
            pieces.append(unknown)
            if failed == "rest":
                return pieces
            stop = start + 1
        else:
            pieces.append((prefix if shown is None else shown) + word[start:stop])
        start = stop
    return pieces


def _pieces_never_whole(word, vocab, unknown="[UNK]", max_chars=100):
    """Begins with one letter less than the rest of the word."""
    if len(word) > max_chars:
        return [unknown]
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for stop in range(len(word) - 1, start, -1):
            if prefix + word[start:stop] in vocab:
                break
        else:
            return [unknown]
        pieces.append(prefix + word[start:stop])
        start = stop
    return pieces


def _pieces_recursive(word, vocab, unknown="[UNK]", max_chars=100):
    def cut(rest, prefix):
        if not rest:
            return []
        for size in range(len(rest), 0, -1):
            if prefix + rest[:size] in vocab:
                return [prefix + rest[:size], *cut(rest[size:], "##")]
        return [None]
    pieces = cut(word, "") if len(word) <= max_chars else [None]
    return [unknown] if None in pieces else pieces


register(
    name="wordpiece",
    lesson="03",
    reference=wordpiece,
    cases=[
        Case("happy, which the vocabulary has", _given("happy", PIECES)),
        Case("unhappiness", _given("unhappiness", PIECES),
             why="unh is longer than un, and ##ness than ##nes"),
        Case("playing", _given("playing", PIECES), why="##playing cannot begin a word"),
        Case("happyx: its end is not in the vocabulary", _given("happyx", PIECES),
             why="the whole word is [UNK]"),
        Case("xzn: z is in no piece", _given("xzn", PIECES)),
        Case("abcd: the longest first piece leads nowhere",
             _given("abcd", {"a": 0, "ab": 1, "##bcd": 2, "##c": 3}),
             why="no second try: longest match first never goes back"),
        Case("lower with pieces that overlap",
             _given("lower", {"lo", "low", "##wer", "##er", "l", "##ow", "##ower"}),
             why="from the right it would be another cut"),
        Case("a word of max_chars letters, and the unknown token by another name",
             _given("play", {"play"}, unknown="?", max_chars=4)),
        Case("a word longer than max_chars", _given("play", {"play"}, unknown="?", max_chars=3)),
        Case("100 letters", _given("n" * 100, {"n", "##n"})),
        Case("101 letters", _given("n" * 101, {"n", "##n"})),
        Case("an empty word", _given("", PIECES)),
    ],
    mistakes=[
        Mistake("shortest", _pieces_shortest,
                "You take the shortest piece that fits. Begin with the whole rest of the word and "
                "shorten it until the vocabulary has it."),
        Mistake("never_whole", _pieces_never_whole,
                "You never try the whole rest of the word. Slices end before their stop: the first "
                "stop to try is len(word)."),
        Mistake("no_prefix_at_all",
                lambda word, vocab, unknown="[UNK]", max_chars=100: _pieces_greedy(
                    word, vocab, unknown, max_chars, later=""),
                "You look up later pieces without \"##\". The vocabulary keeps “ing” that begins a "
                "word apart from “##ing” that continues one."),
        Mistake("prefix_not_returned",
                lambda word, vocab, unknown="[UNK]", max_chars=100: _pieces_greedy(
                    word, vocab, unknown, max_chars, shown=""),
                "The cut is right, but the pieces come back without \"##\". Their ids are those of "
                "the entries with it."),
        Mistake("prefix_on_first",
                lambda word, vocab, unknown="[UNK]", max_chars=100: _pieces_greedy(
                    word, vocab, unknown, max_chars, first="##"),
                "The first piece begins the word: it is looked up without \"##\"."),
        Mistake("unknown_piece",
                lambda word, vocab, unknown="[UNK]", max_chars=100: _pieces_greedy(
                    word, vocab, unknown, max_chars, failed="piece"),
                "You put [UNK] for a single letter and go on. If any part of a word has no piece, "
                "the whole word is [UNK], once."),
        Mistake("unknown_after_pieces",
                lambda word, vocab, unknown="[UNK]", max_chars=100: _pieces_greedy(
                    word, vocab, unknown, max_chars, failed="rest"),
                "You keep the pieces found so far and add [UNK]. The whole word becomes [UNK], "
                "alone."),
        Mistake("unknown_empty",
                lambda word, vocab, unknown="[UNK]", max_chars=100: [] if wordpiece(
                    word, vocab, "\0", max_chars) == ["\0"] else wordpiece(word, vocab),
                "A word that cannot be cut disappears. It has to leave its [UNK], or the tokens "
                "after it move one place to the left."),
        Mistake("from_right", _pieces_from_right,
                "You cut from the end of the word. Longest match first goes from left to right."),
        Mistake("goes_back", _pieces_backtracking,
                "Where the longest piece leads nowhere you try a shorter one. That may be wiser, "
                "but it is another tokenizer: BERT's never goes back, and its ids are those the "
                "model was trained on."),
        Mistake("any_length",
                lambda word, vocab, unknown="[UNK]", max_chars=100: wordpiece(
                    word, vocab, unknown, 10**6),
                "Right, but for words longer than max_chars, which are [unknown] without a try."),
        Mistake("max_chars_excluded",
                lambda word, vocab, unknown="[UNK]", max_chars=100: [unknown] if len(
                    word) >= max_chars else wordpiece(word, vocab, unknown, max_chars),
                "A word of exactly max_chars characters is still cut; only a longer one is not."),
        Mistake("unknown_ignored",
                lambda word, vocab, unknown="[UNK]", max_chars=100: wordpiece(
                    word, vocab, max_chars=max_chars),
                "You return \"[UNK]\" where the argument `unknown` gives the name to use."),
    ],
    also_right=[_pieces_recursive,
                lambda word, vocab, unknown="[UNK]", max_chars=100: _pieces_greedy(
                    word, vocab, unknown, max_chars)],
    hints=[
        "Keep `start`, the first letter not yet covered. What is the longest piece that can begin "
        "there? Then move start behind it.",
        "Try word[start:stop] with stop = len(word), then one less, and so on. With start > 0 put "
        "\"##\" before it. If stop reaches start, no piece fits.",
        "while start < len(word): set prefix and stop = len(word); while stop > start and prefix + "
        "word[start:stop] not in vocab: stop -= 1; if stop == start: return [unknown]; append the "
        "piece; start = stop.",
    ],
)

# --- locate -------------------------------------------------------------------------------------


def locate(text, vocab):
    """Pieces of a text, the part of the text behind each, its word: (pieces, offsets, word_ids).

    text[start:stop] is what a piece with the offsets (start, stop) was made from.
    """
    normal, origins = normalize_letters(text)
    pieces, offsets, word_ids = [], [], []
    for number, (word, (at, end)) in enumerate(pre_tokenize(normal)):
        for piece in wordpiece(word, vocab):
            stop = end if piece == "[UNK]" else at + len(piece.removeprefix("##"))
            pieces.append(piece)
            offsets.append((origins[at], origins[stop - 1] + 1))
            word_ids.append(number)
            at = stop
    return pieces, offsets, word_ids


TEXT_PIECES = {"[UNK]", "the", "cat", "##s", "zoe", "met", "ana", "un", "##happy", "cafe", "play",
               "##er", "!", "a", "n", "##a", "##ive", "'", "don", "t"}


def _located(text, vocab, places=None, size=None, unknown=None, start=None, last=1):
    """`locate` with one part chosen wrongly."""
    normal, origins = normalize_letters(text)
    places = places or range(len(text) + 1)
    rows = []
    for number, (word, (at, end)) in enumerate(pre_tokenize(normal)):
        if start == "word":
            origins_of_word = range(len(word) + 1)
            end, at = end - at, 0
        for piece in wordpiece(word, vocab):
            bare = len(piece.removeprefix("##"))
            stop = at + (size(piece) if size else bare)
            if piece == "[UNK]":
                stop = at + unknown if unknown else end
            if start == "word":
                rows.append((piece, (origins_of_word[at], origins_of_word[stop]), number))
            else:
                first, final = origins[at], origins[min(stop, len(origins)) - 1]
                rows.append((piece, (places[first], places[final + 1] - 1 + last), number))
            at = stop
    return tuple([row[i] for row in rows] for i in range(3))


def _in_normal(text, vocab):
    normal, _ = normalize_letters(text)
    return _located(normal, vocab)


def _located_by_next(text, vocab):
    normal, origins = normalize_letters(text)
    pieces, offsets, word_ids = [], [], []
    for number, (word, (at, end)) in enumerate(pre_tokenize(normal)):
        for piece in wordpiece(word, vocab):
            stop = end if piece == "[UNK]" else at + len(piece.removeprefix("##"))
            pieces.append(piece)
            offsets.append((origins[at], origins[stop]))
            word_ids.append(number)
            at = stop
    return pieces, offsets, word_ids


def _located_up_to_next(text, vocab):
    """`_located_by_next`, with the end of the text where there is no next character."""
    normal, origins = normalize_letters(text)
    ends, offsets = [*origins, len(text)], []
    for word, (at, end) in pre_tokenize(normal):
        for piece in wordpiece(word, vocab):
            stop = end if piece == "[UNK]" else at + len(piece.removeprefix("##"))
            offsets.append((origins[at], ends[stop]))
            at = stop
    return _with(text, vocab, offsets=offsets)


def _not_normalized(text, vocab):
    """Cuts the typed text as it stands."""
    pieces, offsets, word_ids = [], [], []
    for number, (word, (at, end)) in enumerate(pre_tokenize(text)):
        for piece in wordpiece(word, vocab):
            stop = end if piece == "[UNK]" else at + len(piece.removeprefix("##"))
            pieces.append(piece)
            offsets.append((at, stop))
            word_ids.append(number)
            at = stop
    return pieces, offsets, word_ids


def _with(text, vocab, **changed):
    """The right triple with one part replaced."""
    parts = dict(zip(("pieces", "offsets", "word_ids"), locate(text, vocab), strict=True))
    return tuple({**parts, **changed}.values())


def _counting_new_words(text, vocab):
    pieces = locate(text, vocab)[0]
    return _with(text, vocab, word_ids=[int(i) for i in np.cumsum(
        [not piece.startswith("##") for piece in pieces])])


def _by_blanks(text, vocab):
    pieces, offsets, _ = locate(text, vocab)
    return pieces, offsets, [len(text[:a].split()) - (0 if a == 0 or text[a - 1].isspace() else 1)
                             for a, _ in offsets]


def _searched(text, vocab):
    normal = normalize_letters(text)[0]
    pieces = locate(text, vocab)[0]
    found = [normal.find(piece.removeprefix("##")) for piece in pieces]
    return _with(text, vocab, offsets=[(a, a + len(p.removeprefix("##")))
                                       for a, p in zip(found, pieces, strict=True)])


def _locate_by_characters(text, vocab):
    """Another way: hand each word its own origins, and take from their front."""
    normal, origins = normalize_letters(text)
    rows = []
    for number, (word, span) in enumerate(pre_tokenize(normal)):
        own = origins[slice(*span)]
        for piece in wordpiece(word, vocab):
            size = len(own) if piece == "[UNK]" else len(piece) - 2 * piece.startswith("##")
            rows.append((piece, (own[0], own[size - 1] + 1), number))
            own = own[size:]
    return [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows]


def _locate_by_tokenizer(text, vocab):
    tokens = ["[UNK]", "[CLS]", "[SEP]", *sorted(set(vocab) - {"[UNK]"})]
    found = WordPieceTokenizer(tokens).encode(text, add_special_tokens=False)
    return found.tokens, found.offsets, found.word_ids


register(
    name="locate",
    lesson="03",
    reference=locate,
    parts=("pieces", "offsets", "word_ids"),
    cases=[
        Case("the cat", _given("the cat", TEXT_PIECES)),
        Case("the cats!", _given("the cats!", TEXT_PIECES)),
        Case("unhappy players don't", _given("unhappy players don't", TEXT_PIECES)),
        Case("Zoë met 👍🏽 Ana", _given("Zoë met 👍🏽 Ana", TEXT_PIECES),
             why="Ana starts at 11; UTF-16 would say 13, bytes 18"),
        Case("cafés typed with a separate mark, then !",
             _given("the Cafe\u0301s the players!", TEXT_PIECES),
             why="the typed text is longer than the normal one"),
        Case("naïve and a word that has no pieces",
             _given("naïve extraordinary cat cats", TEXT_PIECES),
             why="[UNK] has five characters, the word has more"),
        Case("an empty text", _given("", TEXT_PIECES)),
    ],
    mistakes=[
        Mistake("pieces_only", lambda text, vocab: locate(text, vocab)[0],
                "You return the pieces alone. Return three lists: (pieces, offsets, word_ids)."),
        Mistake("pieces_counted",
                lambda text, vocab: _with(text, vocab,
                                          word_ids=list(range(len(locate(text, vocab)[0])))),
                "Your word ids count pieces. All pieces of one word share its number, so that a "
                "label or an answer of a word can be found from any of them."),
        Mistake("words_from_one", _counting_new_words,
                "Your first word has number 1. Word ids are places in the list of words: the first "
                "is 0."),
        Mistake("words_by_blanks", _by_blanks,
                "A punctuation mark got the number of the word before it. For the tokenizer it is "
                "a word of its own: number what pre_tokenize returns."),
        Mistake("whole_words",
                lambda text, vocab: _with(text, vocab, offsets=[
                    (min(a for (a, _), w in zip(*locate(text, vocab)[1:], strict=True)
                         if w == word),
                     max(b for (_, b), w in zip(*locate(text, vocab)[1:], strict=True)
                         if w == word))
                    for word in locate(text, vocab)[2]]),
                "Every piece has the offsets of its whole word. Move on by the length of each "
                "piece."),
        Mistake("within_word", lambda text, vocab: _located(text, vocab, start="word"),
                "Your offsets start at 0 in each word. They count from the start of the text: "
                "begin at the word's own start."),
        Mistake("prefix_counted", lambda text, vocab: _located(text, vocab, size=len),
                "You count the two signs of \"##\" as letters of the word. They are not in the "
                "text."),
        Mistake("unknown_has_five", lambda text, vocab: _located(text, vocab, unknown=5),
                "[UNK] stands for the whole word: it ends where the word ends, not five "
                "characters on."),
        Mistake("searched", _searched,
                "You search for each piece, and find its first occurrence. Keep the place while "
                "you go through the words."),
        Mistake("stop_inclusive", lambda text, vocab: _located(text, vocab, last=0),
                "Your stop is the last character of the piece. A slice ends one behind it."),
        Mistake("next_origin", _located_by_next,
                "You take the origin of the character after the piece. The last piece has none "
                "after it: take the origin of its last character, plus 1."),
        Mistake("up_to_next", _located_up_to_next,
                "Your stop is the origin of the character after the piece. Where a mark stands "
                "between them, that is one too far: take the origin of the piece's last character, "
                "plus 1."),
        Mistake("not_normalized", _not_normalized,
                "The typed text is cut as it stands, so “Zoë” and “Ana” are unknown. Normalize it "
                "first, and split what comes out."),
        Mistake("offsets_of_normal", _in_normal,
                "Your offsets count in the normalized text. Where a mark was dropped, the typed "
                "text is longer: translate every place with `origins`."),
        Mistake("utf16", lambda text, vocab: _located(text, vocab, places=_utf16_places(text)),
                "Your offsets count UTF-16 units, as JavaScript and Java do. Python slices by code "
                "points: Ana starts at 11."),
        Mistake("bytes", lambda text, vocab: _located(text, vocab, places=_byte_places(text)),
                "Your offsets count bytes. Python slices by code points: Ana starts at 11."),
    ],
    also_right=[_locate_by_characters, _locate_by_tokenizer],
    hints=[
        "Three of your functions in a row: normalize, split into words, cut each word. Keep `at`, "
        "the place in the normal text where the next piece begins.",
        "A piece covers normal[at:stop], with stop = at + its length without \"##\"; [UNK] covers "
        "all of its word. Its typed text begins at origins[at].",
        "for number, (word, (at, end)) in enumerate(pre_tokenize(normal)): for each piece: stop = "
        "end if it is [UNK], else at + its bare length; append (origins[at], origins[stop - 1] + "
        "1) and number; at = stop.",
    ],
)

# --- add_specials -------------------------------------------------------------------------------


def add_specials(first, second=None):
    """Tokens and segments of [CLS] first [SEP], or of [CLS] first [SEP] second [SEP].

    first, second: lists of pieces. The segment is 0 up to the first [SEP], 1 after it.
    """
    tokens = ["[CLS]", *first, "[SEP]"]
    segments = [0] * len(tokens)
    if second is not None:
        tokens = [*tokens, *second, "[SEP]"]
        segments = segments + [1] * (len(second) + 1)
    return tokens, segments


def _specials_by_loop(first, second=None):
    tokens, segments = ["[CLS]"], [0]
    for number, part in enumerate([first, second]):
        if part is not None:
            for piece in part:
                tokens.append(piece)
                segments.append(number)
            tokens.append("[SEP]")
            segments.append(number)
    return tokens, segments


def _specials_by_counting(first, second=None):
    both = [] if second is None else [*second, "[SEP]"]
    tokens = ["[CLS]", *first, "[SEP]", *both]
    return tokens, [int(i > len(first) + 1) for i in range(len(tokens))]


def _second_started(first, second=None):
    tokens, segments = add_specials(first)
    if second is not None:
        tokens = [*tokens, "[CLS]", *second, "[SEP]"]
        segments = segments + [1] * (len(second) + 2)
    return tokens, segments


def _extended(first, second=None):
    first.insert(0, "[CLS]")
    first.append("[SEP]")
    segments = [0] * len(first)
    if second is not None:
        segments += [1] * (len(second) + 1)
        first += [*second, "[SEP]"]
    return first, segments


ASK, TELL = ["who", "play", "##ed", "?"], ["the", "cat", "##s", "play", "##ed", "here", "."]

register(
    name="add_specials",
    lesson="03",
    reference=add_specials,
    parts=("tokens", "segments"),
    cases=[
        Case("one text", _given(list(TELL))),
        Case("a question and a passage", _given(list(ASK), list(TELL)), why="unequal lengths"),
        Case("one text of no pieces", _given([])),
        Case("a pair whose second text is empty", _given(list(ASK), []),
             why="an empty text is not the same as no text"),
        Case("a pair of one piece each", _given(["a"], ["b"])),
    ],
    mistakes=[
        Mistake("only_tokens", lambda first, second=None: add_specials(first, second)[0],
                "You return the tokens alone. Return two lists: (tokens, segments)."),
        Mistake("no_last_separator",
                lambda first, second=None: add_specials(first, second) if second is None else tuple(
                    part[:-1] for part in add_specials(first, second)),
                "The second text has no [SEP]. Both texts end with one."),
        Mistake("no_separator_between",
                lambda first, second=None: add_specials(first) if second is None else (
                    ["[CLS]", *first, *second, "[SEP]"],
                    [0] * (len(first) + 1) + [1] * (len(second) + 1)),
                "There is no [SEP] between the texts: where does the first one end?"),
        Mistake("second_start", _second_started,
                "The second text begins with a [CLS] of its own. There is one [CLS] for the whole "
                "row."),
        Mistake("all_zero",
                lambda first, second=None: (add_specials(first, second)[0],
                                            [0] * len(add_specials(first, second)[0])),
                "All segments are 0, so the two texts look like one. After the first [SEP] the "
                "segment is 1."),
        Mistake("middle_in_second",
                lambda first, second=None: add_specials(first) if second is None else (
                    add_specials(first, second)[0],
                    [0] * (len(first) + 1) + [1] * (len(second) + 2)),
                "The [SEP] in the middle ends the first text, so it belongs to segment 0."),
        Mistake("last_in_first",
                lambda first, second=None: add_specials(first) if second is None else (
                    add_specials(first, second)[0],
                    [0] * (len(first) + 2) + [1] * len(second) + [0]),
                "The last [SEP] has segment 0. It ends the second text, and has segment 1. (That "
                "is why lesson 08 cannot tell the passage by its segment alone.)"),
        Mistake("specials_apart",
                lambda first, second=None: add_specials(first, second) and (
                    add_specials(first, second)[0],
                    [2 if t in ("[CLS]", "[SEP]") else s
                     for t, s in zip(*add_specials(first, second), strict=True)]),
                "You gave [CLS] and [SEP] a segment of their own. BERT has two segments: they "
                "belong to the text they begin or end."),
        Mistake("empty_is_none", lambda first, second=None: add_specials(first, second or None),
                "Right except for a second text that is empty: `if second` is False for [] too. "
                "Ask `if second is not None`."),
        Mistake("swapped", lambda first, second=None: add_specials(first, second)[::-1],
                "Both lists are right, in the other order: tokens first, then segments."),
        Mistake("input_extended", _extended,
                "You extend the list `first` itself, so the caller's pieces change. Build a new "
                "list."),
    ],
    also_right=[_specials_by_loop, _specials_by_counting],
    hints=[
        "Begin with one text: which tokens go before and behind it? All of them have segment 0.",
        "For a second text, add its pieces and one [SEP], and as many ones to the segments. Ask "
        "`second is not None`, because an empty list is a text too.",
        "tokens = [\"[CLS]\", *first, \"[SEP]\"]; segments = [0] * len(tokens); with a second "
        "text: tokens = [*tokens, *second, \"[SEP]\"] and segments + [1] * (len(second) + 1).",
    ],
)

# --- fit_pair -----------------------------------------------------------------------------------


def fit_pair(first, second, max_length):
    """Tokens and segments of a pair, cut to `max_length`, [CLS] and both [SEP] kept.

    truncated_lengths(len_first, len_second, room) says how many pieces of each text stay.
    """
    room = max_length - 3
    keep_first, keep_second = truncated_lengths(len(first), len(second), room)
    return add_specials(first[:keep_first], second[:keep_second])


def _fit(first, second, max_length, taken=3, rule=truncated_lengths, tail=False):
    keep, keep_second = rule(len(first), len(second), max(max_length - taken, 0))
    if tail:
        return add_specials(first[len(first) - keep:], second[len(second) - keep_second:])
    return add_specials(first[:keep], second[:keep_second])


def _second_only(first, second, room):
    return first, max(room - first, 0)


def _halves(first, second, room):
    return min(first, room // 2), min(second, room - room // 2)


def _in_proportion(first, second, room):
    if first + second <= room:
        return first, second
    return room * first // (first + second), room - room * first // (first + second)


def _fit_loop(first, second, max_length):
    """Piece by piece from the longer; on a tie from the one that was not the longer."""
    first, second, longer = list(first), list(second), len(first) > len(second)
    while len(first) + len(second) + 3 > max_length:
        if len(first) > len(second) or (len(first) == len(second) and not longer):
            first.pop()
        else:
            second.pop()
    tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    return tokens, [0] * (len(first) + 2) + [1] * (len(second) + 1)


def _pieces(letter, count):
    return [f"{letter}{i}" for i in range(count)]


register(
    name="fit_pair",
    lesson="03",
    reference=fit_pair,
    parts=("tokens", "segments"),
    cases=[
        Case("4 and 7 pieces, max_length 20", _given(list(ASK), list(TELL), 20),
             why="everything fits, nothing is cut"),
        Case("4 and 7 pieces, max_length 14", _given(list(ASK), list(TELL), 14),
             why="fits exactly"),
        Case("4 and 7 pieces, max_length 13", _given(list(ASK), list(TELL), 13)),
        Case("4 and 7 pieces, max_length 10", _given(list(ASK), list(TELL), 10),
             why="room 7: the longer text keeps the odd piece"),
        Case("9 and 2 pieces, max_length 9", _given(_pieces("a", 9), _pieces("b", 2), 9),
             why="the short second text stays whole"),
        Case("6 and 6 pieces, max_length 10", _given(_pieces("a", 6), _pieces("b", 6), 10)),
        Case("max_length 3", _given(list(ASK), list(TELL), 3), why="room for special tokens only"),
    ],
    mistakes=[
        Mistake("uncut", lambda first, second, max_length: add_specials(first, second),
                "Nothing is cut: the row is longer than max_length."),
        Mistake("separator_cut_off",
                lambda first, second, max_length: tuple(
                    part[:max_length] for part in add_specials(first, second)),
                "You cut the finished row, and its last [SEP] falls off. Cut the texts first, then "
                "add the special tokens."),
        Mistake("separator_pasted",
                lambda first, second, max_length: add_specials(first, second) if len(
                    first) + len(second) + 3 <= max_length else (
                    [*add_specials(first, second)[0][:max_length - 1], "[SEP]"],
                    add_specials(first, second)[1][:max_length]),
                "You cut the finished row and put [SEP] at its end. Then only the second text is "
                "shortened, and the middle [SEP] can be lost. Share the room with "
                "truncated_lengths."),
        Mistake("no_room_for_specials",
                lambda first, second, max_length: _fit(first, second, max_length, taken=0),
                "The row is three tokens too long. [CLS] and two [SEP] need room as well."),
        Mistake("room_for_two",
                lambda first, second, max_length: _fit(first, second, max_length, taken=2),
                "The row is one token too long. A pair has three special tokens: [CLS] and two "
                "[SEP]."),
        Mistake("room_for_four",
                lambda first, second, max_length: _fit(first, second, max_length, taken=4),
                "The row is shorter than it need be. A pair has three special tokens."),
        Mistake("ends_kept",
                lambda first, second, max_length: _fit(first, second, max_length, tail=True),
                "You keep the end of each text. BERT keeps the beginning."),
        Mistake("second_only",
                lambda first, second, max_length: _fit(first, second, max_length,
                                                       rule=_second_only),
                "You cut the second text only. When the first is the longer one, it is cut first: "
                "truncated_lengths knows."),
        Mistake("halves",
                lambda first, second, max_length: _fit(first, second, max_length, rule=_halves),
                "Each text gets half of the room, even where the other leaves some of its half "
                "free. truncated_lengths gives the rest to the longer text."),
        Mistake("in_proportion",
                lambda first, second, max_length: _fit(first, second, max_length,
                                                       rule=_in_proportion),
                "You cut both texts in proportion, so that a short question loses words too. The "
                "longer text is cut first."),
        Mistake("swapped_lengths",
                lambda first, second, max_length: _fit(
                    first, second, max_length,
                    rule=lambda a, b, room: truncated_lengths(a, b, room)[::-1]),
                "The two lengths have changed places: the first number is for the first text."),
    ],
    also_right=[
        _fit_loop,
        lambda first, second, max_length: _fit(first, second, max_length),
        lambda first, second, max_length: _specials_by_loop(
            *(part[:keep] for part, keep in zip((first, second), truncated_lengths(
                len(first), len(second), max_length - 3), strict=True))),
    ],
    hints=[
        "Cut first, add the special tokens last. How many of the max_length places do the special "
        "tokens of a pair take?",
        "truncated_lengths(len(first), len(second), max_length - 3) gives two numbers: how many "
        "pieces of each text to keep, from the front.",
        "keep_first, keep_second = truncated_lengths(len(first), len(second), max_length - 3); "
        "return add_specials(first[:keep_first], second[:keep_second]).",
    ],
)

# --- pad_batch ----------------------------------------------------------------------------------

BATCH_VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "sat", "on", "the", "mat",
               "who", "?", "it"]


def _batch(*texts, **options):
    """Encodings of texts and of pairs."""
    def make(rng):
        tokenizer = WordPieceTokenizer(BATCH_VOCAB)
        return ([tokenizer.encode(*(t if isinstance(t, tuple) else (t,))) for t in texts],), options
    return make


def _padded(encodings, length=None, pad_id=0, *, left=False, pad_segment=0, cut=None):
    longest = cut(len(e) for e in encodings) if cut else max(len(e) for e in encodings)
    length = longest if length is None else length
    names = ("input_ids", "attention_mask", "token_type_ids")
    rows = {name: [] for name in names}
    for e in encodings:
        rest = max(length - len(e), 0)
        for name, real, filler in ((names[0], e.input_ids, pad_id), (names[1], [True] * len(e),
                                   False), (names[2], e.token_type_ids, pad_segment)):
            real = list(real)[:length]
            rows[name].append([filler] * rest + real if left else real + [filler] * rest)
    return {name: np.array(rows[name], dtype=bool if name == names[1] else np.int64)
            for name in names}


def _mask_changed(change):
    def wrong(encodings, length=None, pad_id=0):
        batch = solution.pad_batch(encodings, length, pad_id)
        return {**batch, "attention_mask": change(batch, pad_id)}
    return wrong


def _pad_by_place(encodings, length=None, pad_id=0):
    """One array of places against the lengths gives the mask, and the mask takes the ids."""
    sizes = np.array([len(e.input_ids) for e in encodings])
    length = int(sizes.max()) if length is None else length
    mask = np.arange(length) < sizes[:, None]
    ids, segments = np.full(mask.shape, pad_id, np.int64), np.zeros(mask.shape, np.int64)
    ids[mask] = [i for e in encodings for i in e.input_ids]
    segments[mask] = [i for e in encodings for i in e.token_type_ids]
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


register(
    name="pad_batch",
    lesson="03",
    reference=solution.pad_batch,
    cases=[
        Case("rows of 4, 8 and 5 tokens", _batch("a cat", "a cat sat on the mat", "it sat on")),
        Case("a pair beside a single text", _batch(("who sat ?", "the cat"), "it")),
        Case("two rows of one length", _batch("a cat", "it sat"), why="nothing to pad"),
        Case("rows of 4 and 3 tokens, length 6, pad_id 7", _batch("a cat", "it", length=6,
                                                                 pad_id=7)),
        Case("a text that has [PAD] typed in it", _batch("a [PAD] cat", "it sat on the mat"),
             why="a real token whose id is 0: the mask goes by place, not by id"),
        Case("one row", _batch("the cat sat")),
    ],
    mistakes=[
        Mistake("only_ids",
                lambda encodings, length=None, pad_id=0: solution.pad_batch(
                    encodings, length, pad_id)["input_ids"],
                "You return the ids alone. Return a dict of input_ids, attention_mask and "
                "token_type_ids."),
        Mistake("left", lambda encodings, length=None, pad_id=0: _padded(
                    encodings, length, pad_id, left=True),
                "The padding is in front. BERT's is at the end, so that [CLS] stays at place 0."),
        Mistake("cut_to_shortest", lambda encodings, length=None, pad_id=0: _padded(
                    encodings, length, pad_id, cut=min),
                "You cut every row to the shortest. Fill the short ones up to the longest."),
        Mistake("mask_inverted", _mask_changed(lambda batch, pad: ~batch["attention_mask"]),
                "Your mask is True where the padding is. True means: a real token, may be "
                "attended."),
        Mistake("mask_all_true",
                _mask_changed(lambda batch, pad: np.ones_like(batch["attention_mask"])),
                "Your mask is True everywhere, so every token will listen to the padding."),
        Mistake("mask_of_numbers",
                _mask_changed(lambda batch, pad: batch["attention_mask"].astype(np.int64)),
                "The mask holds 1 and 0. In this course masks are Boolean: with 1 and 0, ~mask and "
                "scores[mask] mean something else."),
        Mistake("mask_by_pad_id", _mask_changed(lambda batch, pad: batch["input_ids"] != pad),
                "You find the padding by its id. A real token can have that id too (someone types "
                "[PAD]; other models pad with the id of another token): go by the lengths."),
        Mistake("mask_by_zero", _mask_changed(lambda batch, pad: batch["input_ids"] != 0),
                "You take every id that is not 0 for a real token. `pad_id` may be another one, "
                "and a real token may have id 0: go by the lengths."),
        Mistake("segment_one", lambda encodings, length=None, pad_id=0: _padded(
                    encodings, length, pad_id, pad_segment=1),
                "The padding has segment 1. By BERT's convention it has 0."),
        Mistake("zero_for_pad", lambda encodings, length=None, pad_id=0: solution.pad_batch(
                    encodings, length, 0),
                "The padding is always 0; it should be pad_id."),
        Mistake("length_ignored", lambda encodings, length=None, pad_id=0: solution.pad_batch(
                    encodings, None, pad_id),
                "`length` is not used: where it is given, rows are filled up to it."),
    ],
    also_right=[_padded, _pad_by_place],
    hints=[
        "Make three arrays of the final shape that hold nothing but padding. Then write each row "
        "over its beginning.",
        "np.full((rows, length), pad_id, dtype=np.int64) for the ids, np.zeros(..., dtype=bool) "
        "for the mask. real = len(encoding.input_ids) says how far a row reaches.",
        "for row, encoding in enumerate(encodings): input_ids[row, :real] = encoding.input_ids; "
        "attention_mask[row, :real] = True; token_type_ids[row, :real] = encoding.token_type_ids.",
    ],
)

# --- sinusoidal_positions -----------------------------------------------------------------------


def _waves(length, d_model, *, start=0, base=10000.0, exponent=None, order="sc"):
    """The table with one part chosen wrongly."""
    positions = np.arange(start, start + length)[:, None]
    columns = np.arange(d_model)
    exponent = (columns // 2 * 2) / d_model if exponent is None else exponent(columns, d_model)
    angles = positions / base**exponent
    sine, cosine = np.sin(angles), np.cos(angles)
    return np.where(columns % 2 == 0, *((sine, cosine) if order == "sc" else (cosine, sine)))


def _waves_in_halves(length, d_model):
    table = solution.sinusoidal_positions(length, d_model)
    return np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1)


def _waves_loop(length, d_model):
    table = np.zeros((length, d_model))
    for position in range(length):
        for column in range(d_model):
            angle = position / 10000 ** (column // 2 * 2 / d_model)
            table[position, column] = np.cos(angle) if column % 2 else np.sin(angle)
    return table


def _waves_by_complex(length, d_model):
    speeds = np.exp(-np.log(10000.0) * np.arange(0, d_model, 2) / d_model)
    turned = np.exp(1j * np.outer(np.arange(length), speeds))
    return np.stack([turned.imag, turned.real], axis=-1).reshape(length, -1)[:, :d_model]


def _one_cosine_too_many(length, d_model):
    angles = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    table = np.zeros((length, d_model))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


register(
    name="sinusoidal_positions",
    lesson="03",
    reference=solution.sinusoidal_positions,
    cases=[
        Case("5 positions of width 4", _given(5, 4)),
        Case("3 positions of width 8", _given(3, 8), why="four waves: the exponent shows"),
        Case("7 positions of width 5", _given(7, 5), why="the last sine has no cosine"),
        Case("200 positions of width 6", _given(200, 6), why="the slow waves move too"),
        Case("4 positions of width 1", _given(4, 1)),
    ],
    mistakes=[
        Mistake("turned", lambda length, d_model: solution.sinusoidal_positions(length, d_model).T,
                "You have a row for each dimension. Each position needs a row: (length, d_model)."),
        Mistake("halves", _waves_in_halves,
                "Sines fill your first half, cosines the second. The waves are right, the columns "
                "are not: here sine and cosine of one wave stand side by side, in columns 2i and "
                "2i + 1. (Both layouts exist; weights trained with one do not fit the other.)"),
        Mistake("cosine_first", lambda length, d_model: _waves(length, d_model, order="cs"),
                "Sine and cosine have changed places: column 0 is a sine, so position 0 begins "
                "with 0."),
        Mistake("one_based", lambda length, d_model: _waves(length, d_model, start=1),
                "Your first position is 1. Positions count from 0: the first row is 0, 1, 0, 1, "
                "and so on."),
        Mistake("own_exponent",
                lambda length, d_model: _waves(length, d_model, exponent=lambda c, d: c / d),
                "Each column has an exponent of its own. The cosine in column 2i + 1 turns at the "
                "speed of the sine beside it, so both take 2i."),
        Mistake("exponent_doubled",
                lambda length, d_model: _waves(length, d_model,
                                               exponent=lambda c, d: 2 * (c // 2 * 2) / d),
                "Your exponent is twice too large: np.arange(0, d_model, 2) is already 2i. The "
                "speeds should end just above 1/10000."),
        Mistake("exponent_halved",
                lambda length, d_model: _waves(length, d_model, exponent=lambda c, d: c // 2 / d),
                "Your exponent is i / d_model. It is 2i / d_model: the speeds should go down to "
                "nearly 1/10000, yours end at 1/100."),
        Mistake("no_width",
                lambda length, d_model: _waves(length, d_model,
                                               exponent=lambda c, d: c // 2 * 2.0),
                "The exponent is not divided by d_model. The second wave is then already too slow "
                "to see."),
        Mistake("last_wave_full",
                lambda length, d_model: _waves(length, d_model, exponent=lambda c, d: c // 2 * 2
                                               / max(d - 2, 1)),
                "You divide by d_model - 2, so that the last speed is exactly 1/10000. The formula "
                "divides by d_model."),
        Mistake("multiplied",
                lambda length, d_model: _waves(length, d_model, base=1 / 10000),
                "You multiply by the power where you should divide: the speeds must fall from 1, "
                "not grow."),
        Mistake("base_1000", lambda length, d_model: _waves(length, d_model, base=1000.0),
                "Your base is 1000; it is 10000, with four zeros."),
        Mistake("cosine_too_many", _one_cosine_too_many,
                "Right for an even d_model. With an odd one there is one cosine less than there "
                "are sines: take the first d_model // 2 of them."),
        Mistake("constant_speed",
                lambda length, d_model: _waves(length, d_model, exponent=lambda c, d: 0 * c),
                "All your waves have one speed, so positions a full turn apart look alike. Divide "
                "by 10000 ** (2i / d_model)."),
    ],
    also_right=[_waves_loop, _waves_by_complex],
    hints=[
        "First a matrix of angles: position p times speed i, shape (length, number of waves). Then "
        "its sines and cosines go into every second column.",
        "speeds = 10000.0 ** (-np.arange(0, d_model, 2) / d_model) are 1, then smaller. "
        "table[:, 0::2] are the columns for the sines. With an odd d_model there is one cosine "
        "less: d_model // 2.",
        "angles = np.arange(length)[:, None] * speeds; table = np.zeros((length, d_model)); "
        "table[:, 0::2] = np.sin(angles); table[:, 1::2] = np.cos(angles[:, : d_model // 2]).",
    ],
)

# --- embed --------------------------------------------------------------------------------------


def embed(input_ids, token_type_ids, token_table, segment_table, position_table):
    """The sum of three vectors for each token: (batch, length) ids to (batch, length, d_model).

    The rows come from token_table by id, from segment_table by segment, and from position_table
    by place: 0, 1, 2, ... in every row of the batch.
    """
    length = input_ids.shape[1]
    return token_table[input_ids] + segment_table[token_type_ids] + position_table[:length]


def _tables(batch, length, d, vocab=9, most=12, dtype="float64"):
    def make(rng):
        ids = rng.integers(0, vocab, size=(batch, length))
        kinds = np.sort(rng.integers(0, 2, size=(batch, length)), axis=1)
        tables = [rng.normal(size=(rows, d)).astype(dtype) for rows in (vocab, 2, most)]
        return (ids, kinds, *tables), {}
    return make


def _embed_loop(input_ids, token_type_ids, token_table, segment_table, position_table):
    rows = []
    for ids, kinds in zip(input_ids, token_type_ids, strict=True):
        rows.append([token_table[i] + segment_table[k] + position_table[p]
                     for p, (i, k) in enumerate(zip(ids, kinds, strict=True))])
    return np.array(rows)


def _embed_one_hot(input_ids, token_type_ids, token_table, segment_table, position_table):
    def rows(ids, table):
        return np.eye(len(table), dtype=table.dtype)[ids] @ table
    places = np.broadcast_to(np.arange(input_ids.shape[1]), input_ids.shape)
    return (rows(input_ids, token_table) + rows(token_type_ids, segment_table)
            + rows(places, position_table))


register(
    name="embed",
    lesson="03",
    reference=embed,
    cases=[
        Case("2 rows of 3 tokens, width 4", _tables(2, 3, 4), why="every size differs"),
        Case("3 rows of 3 tokens, width 3", _tables(3, 3, 3), why="a wrong axis runs silently"),
        Case("4 rows of 12 tokens: as long as the table", _tables(4, 12, 2)),
        Case("1 row of 5 tokens, float32", _tables(1, 5, 6, dtype="float32")),
    ],
    mistakes=[
        Mistake("tokens_only", lambda ids, kinds, token, segment, position: token[ids],
                "You look up the token vectors only. Add those of the segments and the positions."),
        Mistake("no_positions",
                lambda ids, kinds, token, segment, position: token[ids] + segment[kinds],
                "The positions are missing: without them, attention cannot tell two orders of the "
                "same tokens apart."),
        Mistake("no_segments",
                lambda ids, kinds, token, segment, position: token[ids] + position[:ids.shape[1]],
                "The segments are missing: add segment_table[token_type_ids]."),
        Mistake("position_of_row",
                lambda ids, kinds, token, segment, position: token[ids] + segment[kinds]
                + position[:len(ids), None],
                "The position goes by the row of the batch. It is the place inside a sentence: "
                "axis 1, the same for all rows."),
        Mistake("all_positions",
                lambda ids, kinds, token, segment, position: token[ids] + segment[kinds] + position,
                "You add the whole position table. It has a row for the longest text there may be; "
                "take as many as these texts have tokens."),
        Mistake("position_by_id",
                lambda ids, kinds, token, segment, position: token[ids] + segment[kinds]
                + position[ids],
                "You look the position up by the token's id. It goes by the token's place: 0, 1, "
                "2, ..."),
        Mistake("positions_from_one",
                lambda ids, kinds, token, segment, position: token[ids] + segment[kinds]
                + position[np.arange(1, ids.shape[1] + 1)],
                "Your positions begin at 1, so the first row of the table is never used and the "
                "longest text falls off its end."),
        Mistake("last_positions",
                lambda ids, kinds, token, segment, position: token[ids] + segment[kinds]
                + position[-ids.shape[1]:],
                "You take the last rows of the position table. The first token has position 0."),
        Mistake("mean",
                lambda ids, kinds, token, segment, position: embed(ids, kinds, token, segment,
                                                                  position) / 3,
                "You average the three vectors. BERT adds them."),
        Mistake("product",
                lambda ids, kinds, token, segment, position: token[ids] * segment[kinds]
                * position[:ids.shape[1]],
                "You multiply the three vectors. BERT adds them."),
        Mistake("side_by_side",
                lambda ids, kinds, token, segment, position: np.concatenate(
                    [token[ids], segment[kinds],
                     np.broadcast_to(position[:ids.shape[1]], token[ids].shape)], axis=-1),
                "You put the three side by side, which makes the vector three times as wide. They "
                "are added, so the width stays d_model."),
    ],
    also_right=[_embed_loop, _embed_one_hot],
    hints=[
        "A table with an array of ids in its brackets gives a row for each id: what shape is "
        "token_table[input_ids]?",
        "Positions do not depend on the ids: the first `length` rows of position_table, shape "
        "(length, d_model), are added to every row of the batch by themselves.",
        "token_table[input_ids] + segment_table[token_type_ids] + "
        "position_table[:input_ids.shape[1]]",
    ],
)
