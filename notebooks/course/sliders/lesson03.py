"""Lesson 03's sliders."""

import unicodedata
from functools import cache

import numpy as np

from course.drawing import (
    BLANK,
    CARD,
    INK,
    LINE,
    PALETTE,
    SANS,
    SERIES,
    SOFT_INK,
    bars,
    card,
    curves,
    heatmap,
    ink_on,
    label,
    mix,
    pixels,
    rect,
    shorten,
    side_by_side,
    text_width,
    token_strip,
)
from course.explore import Choice, Range, Text, Toggle, slider
from course.texts import load_tokenizer
from solutions.attention import scaled_dot_product_attention
from solutions.embeddings import (
    normalize,
    pre_tokenize,
    sinusoidal_positions,
    truncated_lengths,
    wordpiece,
)

SPECIAL = "#57606a"
WORD_COLORS = SERIES[:6]


def _color(word):
    """The color of a word's pieces; special tokens are gray."""
    return BLANK if word is None else mix(WORD_COLORS[word % len(WORD_COLORS)], 0.38)


def _sign(character):
    """A character as it can be seen alone: blanks, marks and control characters included."""
    if character.isspace():
        return "␣"
    if unicodedata.category(character) in ("Mn", "Me", "Mc"):
        return "◌" + character
    if unicodedata.category(character)[0] == "C":
        return f"{ord(character):X}"
    return character


def _chips(items, y, width, *, x=14, framed=None, step=30, size=13):
    """A row of chips, wrapped: (text, fill, small text beneath) each; returns parts and the y."""
    parts, left, at_end = [], x, bool(items)
    tall = step + (16 if any(under for _, _, under in items) else 0)
    for number, (text, fill, under) in enumerate(items):
        wide = max(text_width(text, size), text_width(under, 11)) + 12
        if left + wide > width and left > x:
            left, y = x, y + tall
        here = number == framed
        parts.append(rect(left, y, wide, 24, fill, radius=4, stroke=INK if here else LINE,
                          stroke_width=2.5 if here else 1))
        parts.append(label(left + wide / 2, y + 17, text, size=size, anchor="middle",
                           color=ink_on(fill)))
        if under:
            parts.append(label(left + wide / 2, y + 37, under, size=11, anchor="middle",
                               color=SOFT_INK))
        left += wide + 4
    return parts, y + (tall if at_end else step)


# --- The finished thing: a text through every stage ----------------------------------------------


@slider(text=Text("Zoë met 👍🏽 unhappy critics", label="text", max_length=120),
        token=Range(0, 40, 1, start=1, label="token", words=lambda v: f"number {v}"), lesson="03")
def stages(text, token):
    """A typed text through every stage; the chosen token is framed, with the text behind it."""
    encoding = load_tokenizer().encode(text)
    token = min(token, len(encoding) - 1)
    normal, _ = normalize(text)
    words = [word for word, _ in pre_tokenize(normal)]
    wide, left = 790, 112
    owner = [None] * len(text)
    for word, (start, stop) in zip(encoding.word_ids, encoding.offsets, strict=True):
        if word is not None:
            owner[start:stop] = [word] * (stop - start)
    first, stop = encoding.offsets[token]
    parts, y, per_line = [], 4, 34
    rows = [("as typed", "code points"), ("normalized", ""), ("words", "word id"),
            ("tokens", "id")]
    starts = []
    starts.append(y)
    for i, character in enumerate(text):
        x, row = left + i % per_line * 19.5, i // per_line
        inside = first <= i < stop
        parts.append(rect(x, y + row * 42, 18.5, 24, CARD if owner[i] is None else
                          _color(owner[i]), radius=3, stroke=INK if inside else LINE,
                          stroke_width=2.5 if inside else 1))
        sign = _sign(character)
        parts.append(label(x + 9, y + row * 42 + 17, sign, anchor="middle",
                           size=13 if len(sign) < 3 else 6, color=INK if sign != "␣" else SOFT_INK))
        parts.append(label(x + 9, y + row * 42 + 35, i, size=9, anchor="middle", color=SOFT_INK,
                           weight="700" if inside else "normal"))
    y += 42 * max(1, -(-len(text) // per_line)) + 6
    starts.append(y)
    some = [normal[i:i + 84] for i in range(0, len(normal), 84)] or [""]
    for line in some:
        parts.append(label(left, y + 16, line, size=13))
        y += 20
    y += 12
    starts.append(y)
    more, y = _chips([(shorten(w, 60), _color(i), str(i)) for i, w in enumerate(words)], y, wide,
                     x=left)
    parts += more
    y += 8
    starts.append(y)
    more, y = _chips([(shorten(t, 60), _color(w), str(n)) for t, w, n in zip(
        encoding.tokens, encoding.word_ids, encoding.input_ids, strict=True)], y, wide, x=left,
        framed=token)
    parts += more
    for (name, under), at in zip(rows, starts, strict=True):
        parts.append(label(14, at + 16, name, size=12, font=SANS, weight="600"))
        parts.append(label(14, at + 32, under, size=11, font=SANS, color=SOFT_INK))
    piece, number, word = (encoding.tokens[token], encoding.input_ids[token],
                           encoding.word_ids[token])
    said = (f"token {token}: {piece}, id {number}, added by the tokenizer" if word is None else
            f"token {token}: {shorten(piece, 24)}, id {number}, word {word}, "
            f"text[{first}:{stop}] = “{shorten(text[first:stop], 24)}”")
    parts.append(label(14, y + 18, said, size=13, weight="600"))
    listed = ", ".join(f"{t} {i}" for t, i in zip(encoding.tokens[:40], encoding.input_ids[:40],
                                                  strict=True))
    return card(wide + 14, y + 26, parts,
                f"The text “{shorten(text, 130)}” becomes {len(encoding)} tokens with ids: "
                f"{listed}. {said}.",
                f"{len(text)} code points, {len(words)} words, {len(encoding)} tokens",
                ids=np.array(encoding.input_ids), span=np.array([first, stop]))


# --- How large a vocabulary ----------------------------------------------------------------------


@cache
def _first_tokens(count):
    return frozenset(load_tokenizer().tokens[:count])


@slider(size=Range(160, 3000, 20, start=400, label="tokens in the vocabulary"),
        text=Text("The restaurant was disappointing, the critics unhappy.", label="text",
                  max_length=120), lesson="03")
def vocabulary_size(size, text):
    """The same text with the first `size` tokens of the vocabulary: how finely it is cut."""
    vocab = _first_tokens(size)
    words = [word for word, _ in pre_tokenize(normalize(text)[0])]
    cut = [wordpiece(word, vocab) for word in words]
    pieces = [(shorten(piece, 40), _color(number), "") for number, word in enumerate(cut)
              for piece in word]
    parts, y = _chips(pieces, 6, 780)
    strip = card(790, y, parts, f"With {size} tokens in the vocabulary the text is cut into: "
                 + shorten(" ".join(p[0] for p in pieces), 400) + ".",
                 f"{len(words)} words, {len(pieces)} pieces")
    cost = bars([len(pieces)], ["pieces to read"], vmax=max(20, len(text)), width=230, fmt="{:.0f}",
                color=PALETTE["query"])
    table = bars([size * 64 / 1000], ["numbers in the table, 64 a token"], vmax=192, width=130,
                 fmt="{:.0f} thousand", color=PALETTE["key"])
    return side_by_side(strip, side_by_side(cost, table), down=True, pieces=len(pieces))


# --- Longest match, step by step -----------------------------------------------------------------

TOY = ("un", "##happi", "##happy", "##hap", "##ness", "##h", "##p", "##s", "##i", "u", "n", "happy",
       "play", "##ing", "##er", "re", "##play", "##ed")
VOCABULARIES = {"18 pieces": "toy", "the course's 3,000": "course"}


def tries(word, vocab):
    """Every look-up of longest match first: (start, stop, prefix, whether it was found)."""
    made, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for stop in range(len(word), start, -1):
            found = prefix + word[start:stop] in vocab
            made.append((start, stop, prefix, found))
            if found:
                break
        else:
            return made
        start = stop
    return made


@slider(word=Text("unhappiness", label="word", max_length=24),
        step=Range(1, 60, 1, start=1, label="look-up", words=lambda v: f"number {v}"),
        pieces=Choice(VOCABULARIES, label="vocabulary"), lesson="03")
def longest_match(word, step, pieces):
    """One look-up after another: the window shrinks from the right until the vocabulary has it."""
    vocab = set(TOY) if pieces == "toy" else load_tokenizer().vocab
    normal = normalize(word)[0]
    word = (pre_tokenize(normal) or [("", None)])[0][0]
    made = tries(word, vocab)
    step = min(step, len(made))
    start, stop, prefix, found = made[step - 1] if made else (0, 0, "", False)
    cuts = [(a, b, p) for a, b, p, ok in made[:step] if ok]
    color = ["none"] * len(word)
    for number, (a, b, _) in enumerate(cuts):
        color[a:b] = [_color(number)] * (b - a)
    parts = []
    for i, letter in enumerate(word):
        x = 14 + 27 * i
        trying = start <= i < stop
        parts.append(rect(x, 8, 25, 30, CARD if color[i] == "none" else color[i], radius=3,
                          stroke=PALETTE["value"] if trying and found else PALETTE["key"]
                          if trying else LINE, stroke_width=3 if trying else 1))
        parts.append(label(x + 12.5, 28, _sign(letter), size=15, anchor="middle"))
    candidate = prefix + word[start:stop]
    failed = bool(made) and not found and step == len(made) and stop - start == 1
    verdict = ("nothing to look up" if not made else f"look-up {step} of {len(made)}: "
               f"“{candidate}” is " + ("in the vocabulary" if found else "not there"))
    result = ["[UNK]"] if failed else [p + word[a:b] for a, b, p in cuts]
    done = "result" if step == len(made) else "so far"
    parts.append(label(14, 64, verdict, size=13, weight="600",
                       color="#00664c" if found else "#a33f00"))
    parts.append(label(14, 88, f"{done}: {'  '.join(result) or 'no piece yet'}", size=13))
    if failed:
        parts.append(label(14, 110, "No piece fits here, so the whole word becomes [UNK].", size=12,
                           font=SANS))
    return card(max(14 + 27 * max(len(word), 1) + 14, 520), 116, parts,
                f"The word “{word}”, {verdict}; {done}: {' '.join(result) or 'no piece yet'}.",
                lookups=len(made))


# --- Too long ------------------------------------------------------------------------------------

QUESTION = ["who", "saw", "the", "first", "night", "?"]
PASSAGE = ["zoe", "met", "ana", "at", "the", "theater", "and", "both", "saw", "the", "play", "."]
CUTS = {"texts first, then [CLS] and [SEP]": "right", "the finished row": "row",
        "the second text only": "second"}


@slider(max_length=Range(4, 21, 1, start=14, label="max_length", words=lambda v: f"{v} tokens"),
        cut=Choice(CUTS, label="what is cut"), lesson="03")
def truncation(max_length, cut):
    """A question and a passage in a row of at most max_length tokens: what stays, what goes."""
    room = max_length - 3
    kept = (len(QUESTION), len(PASSAGE))
    if cut == "right":
        kept = truncated_lengths(len(QUESTION), len(PASSAGE), room)
    elif cut == "second":
        kept = (len(QUESTION), min(len(PASSAGE), max(room - len(QUESTION), 0)))
    row = [("[CLS]", 0, True)]
    for number, (text, keep) in enumerate(zip((QUESTION, PASSAGE), kept, strict=True)):
        row += [(token, number, i < keep) for i, token in enumerate(text)] + [("[SEP]", number,
                                                                              True)]
    if cut == "row":
        row = [(token, number, i < max_length) for i, (token, number, _) in enumerate(row)]
    colors = {0: mix(PALETTE["query"], 0.3), 1: mix(PALETTE["value"], 0.3)}
    parts, y = _chips([(t, colors[n] if ok else CARD, str(n) if ok else "cut")
                       for t, n, ok in row], 6, 760)
    stays = [t for t, _, ok in row if ok]
    faults = []
    if stays.count("[SEP]") < 2:
        faults.append(f"{2 - stays.count('[SEP]')} of 2 [SEP] cut off")
    if len(stays) > max_length:
        faults.append(f"{len(stays)} tokens, more than {max_length}")
    if not faults and not any(ok and n and t != "[SEP]" for t, n, ok in row):
        faults.append("nothing of the passage is left")
    said = ", ".join(faults) or f"{len(stays)} tokens, both [SEP] there"
    parts.append(label(14, y + 14, said, size=13, weight="600",
                       color="#a33f00" if faults else "#00664c"))
    return card(770, y + 22, parts, f"At max_length {max_length}: {' '.join(stays)}. {said}.",
                f"max_length {max_length}", kept=np.array(kept))


# --- Padding -------------------------------------------------------------------------------------

SIZES = (5, 9, 22, 7, 30, 6, 8, 12, 25, 6, 10, 28)  # tokens of twelve sentences


@slider(rows=Choice([2, 3, 4, 6, 12], start=4, label="sentences in a batch"),
        sort=Toggle(label="sorted by length"), lesson="03")
def padding_share(rows, sort):
    """Twelve sentences in batches: how much of the arrays is padding."""
    sizes = sorted(SIZES) if sort else list(SIZES)
    batches = [sizes[i:i + rows] for i in range(0, len(sizes), rows)]
    parts, y, full, real = [], 4, 0, sum(SIZES)
    for batch in batches:
        longest = max(batch)
        full += longest * len(batch)
        for size in batch:
            parts.append(rect(14, y, size * 16, 11, PALETTE["query"], radius=2))
            if size < longest:
                parts.append(rect(14 + size * 16, y, (longest - size) * 16, 11, BLANK, radius=2,
                                  stroke=LINE))
            y += 13
        y += 10
    share = 1 - real / full
    for x, fill, text in ((14, PALETTE["query"], "tokens"), (90, BLANK, "padding")):
        parts += [rect(x, y, 16, 11, fill, radius=2, stroke=LINE),
                  label(x + 22, y + 10, text, size=12, font=SANS)]
    return card(520, y + 18, parts, f"Twelve sentences in batches of {rows}"
                f"{', sorted by length' if sort else ''}: {full} places, {real} of them tokens, "
                f"{share:.0%} padding.", f"{share:.0%} padding: {full} places for {real} tokens",
                share=share)


# --- Positions -----------------------------------------------------------------------------------

WIDTH, PLACES = 32, 64


@cache
def _table_of_positions():
    """The table as colored cells: violet for 1, orange for -1, white for 0."""
    parts = [label(14, 14, "32 dimensions", size=12, font=SANS),
             label(14, 26 + PLACES * 5 + 16, "64 positions, downward", size=12, font=SANS)]
    colors = [[mix(PALETTE["weight" if value >= 0 else "key"], abs(value)) for value in row]
              for row in sinusoidal_positions(PLACES, WIDTH)]
    parts.append(pixels(colors, 14, 26, WIDTH * 9, PLACES * 5))
    return "".join(parts)


@slider(wave=Range(0, WIDTH // 2 - 1, 1, start=2, label="wave i"),
        position=Range(0, PLACES - 1, 1, start=10, label="position"), lesson="03")
def position_waves(wave, position):
    """The table of positions, two of its columns as a wave, and the row of one position."""
    table = sinusoidal_positions(PLACES, WIDTH)
    speed = 10000.0 ** (-2 * wave / WIDTH)
    turn = 2 * np.pi / speed
    cell, top, tall = 9, 26, 5
    parts = [_table_of_positions()]
    parts.append(rect(14 + 2 * wave * cell - 1, top - 2, 2 * cell + 2, PLACES * tall + 4, "none",
                      stroke=INK, stroke_width=2))
    parts.append(rect(12, top + position * tall - 1, WIDTH * cell + 4, tall + 2, "none", stroke=INK,
                      stroke_width=2))
    grid = card(14 + WIDTH * cell + 12, top + PLACES * tall + 22, parts,
                f"Table of {PLACES} positions by {WIDTH} dimensions; columns {2 * wave} and "
                f"{2 * wave + 1} and row {position} are framed.", "sinusoidal_positions(64, 32)")
    name = f"{turn:.1f}" if turn < 100 else f"{turn:,.0f}"
    fine = np.linspace(0, PLACES - 1, 316)
    lines = curves({"sine": (fine, np.sin(fine * speed)), "cosine": (fine, np.cos(fine * speed))},
                   x_title="position", y_limits=(-1.1, 1.1), size=(330, 210),
                   title=f"Wave {wave} comes around every {name} positions",
                   points=[(position, table[position, 2 * wave], ""),
                           (position, table[position, 2 * wave + 1], "")])
    return side_by_side(grid, lines, row=table[position])


@slider(position=Range(0, PLACES - 1, 1, start=20, label="position"),
        base=Choice([10000, 100, 10], label="base"),
        d_model=Choice([4, 16, 64], start=64, label="d_model"), lesson="03")
def position_dots(position, base, d_model):
    """The dot product of one position's vector with those of all positions, and of another's."""
    speeds = float(base) ** (-np.arange(0, d_model, 2) / d_model)
    angles = np.arange(PLACES)[:, None] * speeds
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    dots = table @ table[position] / (d_model / 2)
    other = table @ table[8] / (d_model / 2)
    gap = np.arange(PLACES) - position
    closest = int(np.where(gap == 0, -np.inf, dots).argmax())
    best = dots[closest]
    return curves({f"position {position}": dots, "position 8": other}, x_title="other position",
                  y_title="dot product (1 = itself)", y_limits=(-1.05, 1.1), size=(560, 230),
                  styles={"position 8": "dashed"},
                  colors={f"position {position}": PALETTE["query"], "position 8": SOFT_INK},
                  verticals=[(position, f"most alike: position {closest}, {best:.2f}")],
                  title=f"Position {position} against all others",
                  alt=f"Dot products of position {position} with positions 0 to {PLACES - 1}, base "
                      f"{base}, width {d_model}: 1 at itself, {best:.2f} at the most alike other, "
                      f"position {closest}. The curve of position 8 is the same, moved.",
                  dots=dots, gap=gap)


# --- Order ---------------------------------------------------------------------------------------

ORDERS = {"dog bites man": (0, 1, 2), "man bites dog": (2, 1, 0), "bites dog man": (1, 0, 2),
          "man dog bites": (2, 0, 1)}
LINE_WORDS = ("dog", "bites", "man")


@cache
def word_vectors(d_model=8):
    """A fixed vector for each of the three words."""
    return np.random.default_rng(4).normal(size=(3, d_model))


@slider(order=Choice(list(ORDERS), start="man bites dog", label="words"),
        share=Range(0.0, 1.0, 0.1, start=0.0, label="positions",
                    words=lambda v: "left out" if v == 0 else f"added, times {v:.1f}"), lesson="03")
def order_matters(order, share):
    """Attention's output for each word in “dog bites man” and in another order of the words."""
    places = share * sinusoidal_positions(3, 8)
    x = word_vectors()
    output, weights = [], []
    for ids in (ORDERS["dog bites man"], ORDERS[order]):
        row = x[list(ids)] + places
        out, w = scaled_dot_product_attention(row, row, row)
        output.append(out[np.argsort(ids)])  # back to the order dog, bites, man
        weights.append(w)
    moved = np.linalg.norm(output[1] - output[0], axis=-1)
    grids = [heatmap(out, LINE_WORDS, range(8), title=title, vmax=2.5, fmt="{:.1f}", cell=33,
                     color=PALETTE["value"])
             for out, title in zip(output, ("in “dog bites man”", f"in “{order}”"), strict=True)]
    far = bars(moved, LINE_WORDS, vmax=2.0, width=300, color=PALETTE["key"],
               title="How far each word's output moved")
    same = bool((moved < 1e-9).all())
    return side_by_side(side_by_side(*grids), far, down=True, moved=moved, weights=weights[1],
                        alt=f"Outputs of dog, bites and man in “dog bites man” and in “{order}”, "
                            f"positions times {share:.1f}: "
                            + ("all three the same." if same else "moved by " + ", ".join(
                                f"{v:.2f}" for v in moved) + "."))


# --- Three vectors, one sum ----------------------------------------------------------------------


@slider(token=Range(0, 8, 1, start=4, label="token"), lesson="03")
def three_vectors(token):
    """One token's vector as the sum of the rows of three tables."""
    tokens = ["[CLS]", "who", "met", "ana", "?", "[SEP]", "zoe", "met", "[SEP]"]
    segments = [0] * 6 + [1] * 3
    rng = np.random.default_rng(7)
    by_name = dict(zip(sorted(set(tokens)), rng.normal(size=(len(set(tokens)), 6)), strict=True))
    by_segment = rng.normal(size=(2, 6))
    by_place = sinusoidal_positions(9, 6)
    rows = np.array([by_name[tokens[token]], by_segment[segments[token]], by_place[token]])
    strip = token_strip(tokens, under=[f"{s}, {i}" for i, s in enumerate(segments)],
                        color=[PALETTE["query"] if i == token else "#ffffff"
                               for i in range(len(tokens))],
                        title="tokens; below, segment and position")
    grid = heatmap(np.vstack([rows, rows.sum(axis=0)]),
                   [f"token {tokens[token]}", f"segment {segments[token]}", f"position {token}",
                    "sum"], range(6), vmax=3, fmt="{:.2f}", title="rows of three tables")
    return side_by_side(strip, grid, down=True, total=rows.sum(axis=0))
