"""The pictures of the course: one palette, a handful of plain drawing functions.

Every function returns a `Picture`: an SVG (or, where text must wrap as the reader's own script
does, HTML), the alt text that says what it shows, and the numbers that were drawn, so that tests
can hold the drawing to them. A picture brings its own light card and dark ink, and so reads the
same on a light page, a dark page and a code host.
"""

import base64
import html
import re
import unicodedata
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Okabe and Ito's colors for color-blind readers, with three of Paul Tol's where eight were not
# enough. A role keeps its color through the whole course.
PALETTE = {
    "query": "#0072B2",
    "key": "#D55E00",
    "value": "#009E73",
    "weight": "#5B3E96",
    "PER": "#CC79A7",
    "ORG": "#E69F00",
    "LOC": "#56B4E9",
    "start": "#117733",
    "end": "#882255",
    "positive": "#0072B2",
    "neutral": "#7A7A7A",
    "negative": "#D55E00",
    "bidirectional": "#009E73",
    "causal": "#CC79A7",
    "mine": "#0072B2",
    "reference": "#7A7A7A",
}
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#7A7A7A")
INK, SOFT_INK, LINE, CARD, BLANK = "#1f2328", "#57606a", "#d0d7de", "#fcfcfa", "#e7e9ec"
DASHES = {"dashed": "7 4", "dotted": "2 3"}
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
SANS = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"


@dataclass(frozen=True)
class Picture:
    """A drawing with its alt text and the numbers it shows.

    body  : an SVG document, or HTML where `kind` is "html"
    alt   : what the picture shows, in words, for readers who do not see it
    facts : the arrays that were drawn; the sweeps of the sliders check them
    """

    body: str
    alt: str
    facts: dict[str, Any] = field(default_factory=dict)
    kind: str = "svg"

    def __post_init__(self):
        if not self.alt.strip():
            raise ValueError("Picture: expected alt text that says what is shown, got none")

    @property
    def size(self):
        """(width, height) of the SVG in pixels."""
        return tuple(float(re.search(rf'{side}="([\d.]+)"', self.body)[1])
                     for side in ("width", "height"))

    def _repr_html_(self):
        if self.kind == "html":
            return (f'<div role="group" aria-label="{html.escape(self.alt)}" '
                    f'style="background:{CARD};color:{INK};border:1px solid {LINE};'
                    f'border-radius:8px;padding:10px 14px;max-width:860px">{self.body}</div>')
        data = base64.b64encode(self.body.encode()).decode()
        return (f'<img alt="{html.escape(self.alt)}" style="max-width:100%" '
                f'src="data:image/svg+xml;base64,{data}">')

    def __repr__(self):
        return f"Picture: {self.alt}"


def mix(color, share, ground="#ffffff"):
    """`share` of a color over a ground, both "#rrggbb"; share is cut to 0..1."""
    share = min(max(float(share), 0.0), 1.0)
    one, two = (np.array([int(c[i:i + 2], 16) for i in (1, 3, 5)]) for c in (color, ground))
    return "#" + "".join(f"{round(float(v)):02x}" for v in share * one + (1 - share) * two)


def luminance(color):
    """WCAG's relative luminance of a color, 0 (black) to 1 (white)."""
    levels = np.array([int(color[i:i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, two):
    """WCAG's contrast of two colors, 1 to 21; a text needs 4.5 on its ground."""
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def ink_on(color):
    """Black or white, whichever reads better on a color."""
    return max("#000000", "#ffffff", key=lambda ink: contrast(ink, color))


def as_ink(color, ground=CARD):
    """A color for words: the color itself, darkened until it can be read on the ground.

    The palette's colors are for areas and lines; several are too light for letters.
    """
    shades = (mix(color, share / 20, "#000000") for share in range(20, 0, -1))
    return next((shade for shade in shades if contrast(shade, ground) >= 4.6), "#000000")


def visible(text):
    """Text with control characters made visible; SVG and HTML allow none of them."""
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t" else c
                   for c in str(text))


def text_width(text, size=13):
    """Pixels that `text` takes in the monospaced face, wide and combining characters counted."""
    cells = sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
                for c in str(text))
    return cells * size * 0.605


def shorten(text, most=18):
    """The text, or its first characters and an ellipsis."""
    text = str(text)
    return text if len(text) <= most else text[:most - 1] + "…"


def label(x, y, text, *, size=13, color=INK, anchor="start", font=MONO, weight="normal", turn=0,
          halo=False):
    """One SVG text, its baseline's anchor at (x, y); with `halo`, lines behind it end before it."""
    about = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    if halo:
        about += f' stroke="{CARD}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"'
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" font-family="{font}" '
            f'text-anchor="{anchor}" font-weight="{weight}"{about}>'
            f"{html.escape(visible(text))}</text>")


def rect(x, y, width, height, fill, *, stroke="none", radius=0, stroke_width=1, extra=""):
    """One SVG rectangle."""
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{radius}" fill="{fill}" stroke="{stroke}" stroke-width="{stroke_width}" '
            f"{extra}/>")


def pixels(colors, x, y, width, height):
    """Many cells as one small image: a browser draws thousands of rectangles too slowly.

    colors: rows of "#rrggbb", all of one length.
    """
    rows, columns = len(colors), len(colors[0])
    # A line of a PNG begins with the filter it uses: 0, none.
    lines = b"".join(bytes.fromhex("00" + "".join(row).replace("#", "")) for row in colors)

    def chunk(kind, data):
        check = zlib.crc32(kind + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + kind + data + check

    size = columns.to_bytes(4, "big") + rows.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size)
    png += chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return (f'<image x="{x}" y="{y}" width="{width}" height="{height}" '
            f'preserveAspectRatio="none" style="image-rendering:pixelated" '
            f'href="data:image/png;base64,{base64.b64encode(png).decode()}"/>')


def arrow(x1, y1, x2, y2, color, *, width=2.0, opacity=1.0, head=True):
    """A straight line from (x1, y1) to (x2, y2) with an arrow head of the same color."""
    parts = [f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" '
             f'stroke-width="{width:.2f}" opacity="{opacity:.2f}" stroke-linecap="round"/>']
    length = float(np.hypot(x2 - x1, y2 - y1))
    if head and length > 1e-6:
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        size = 4 + 2 * width
        points = [(x2, y2)] + [(x2 - size * ux + side * size * 0.5 * uy,
                                y2 - size * uy - side * size * 0.5 * ux) for side in (1, -1)]
        parts.append('<polygon points="' + " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
                     + f'" fill="{color}" opacity="{opacity:.2f}"/>')
    return "".join(parts)


def card(width, height, parts, alt, title="", **facts):
    """A Picture of the given size: a light card, an optional title, and the parts on it."""
    top = 30 if title else 8
    head = label(14, 21, title, size=14, font=SANS, weight="600") if title else ""
    width = max(width, 28 + len(title) * 8.2 if title else 0)
    height = height + top + 8
    body = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">'
            + rect(0.5, 0.5, width - 1, height - 1, CARD, stroke=LINE, radius=8)
            + head + f'<g transform="translate(0 {top})">' + "".join(parts) + "</g></svg>")
    return Picture(body, alt, facts)


def _number(value, fmt):
    return fmt.format(value).replace("-", "−")


def heatmap(matrix, rows=None, columns=None, *, title="", row_title="", column_title="", vmin=0.0,
            vmax=1.0, color=PALETTE["weight"], negative=PALETTE["key"], mask=None, fmt="{:.2f}",
            marks=(), cell=None, row_color=None, column_color=None, alt=None, **facts):
    """A matrix as colored cells with its numbers in them.

    matrix  : (rows, columns) numbers; below zero they take the color `negative`
    mask    : (rows, columns) Booleans, False = hatched out ("may not be attended")
    marks   : (row, column) cells that get a frame
    vmin, vmax : the values of no color and of full color; give them where the data move
    row_color, column_color : of the names; where they are queries and keys, their roles' colors
    """
    matrix = np.asarray(matrix, dtype=float)
    n, m = matrix.shape
    roles = {name: PALETTE[name] for name in ("query", "key")}
    row_color = as_ink(row_color or roles.get(row_title, INK))
    column_color = as_ink(column_color or roles.get(column_title, INK))
    rows = [shorten(r) for r in (rows if rows is not None else range(n))]
    columns = [shorten(c) for c in (columns if columns is not None else range(m))]
    longest = max([len(_number(v, fmt)) for v in matrix.ravel() if np.isfinite(v)] + [1])
    numbers = fmt and n * m <= 400
    cell = cell or (max(22.0, longest * 7.2 + 8) if numbers else max(6.0, min(22.0, 460 / m)))
    tall = min(max(cell * 0.62, 22.0), 34.0) if numbers else cell
    every_row, every_column = max(1, int(14 // tall) + 1 if tall < 14 else 1), 1
    if cell < 12:
        every_column = int(np.ceil(14 / cell))
    left = 14 + max(text_width(r, 12) for r in rows) + 8 + (20 if row_title else 0)
    slanted = max(text_width(c, 12) for c in columns) > cell - 2
    head = (max(text_width(c, 12) for c in columns) * 0.72 + 12 if slanted else 20)
    head += 18 if column_title else 0
    parts = ['<defs><pattern id="off" width="6" height="6" patternUnits="userSpaceOnUse">'
             f'<rect width="6" height="6" fill="{BLANK}"/><path d="M0 6L6 0" stroke="#9aa1a9"/>'
             "</pattern></defs>"]
    if column_title:
        parts.append(label(left + m * cell / 2, 12, column_title, size=12, color=column_color,
                           anchor="middle", font=SANS))
    if row_title:
        parts.append(label(20, head + n * tall / 2, row_title, size=12, color=row_color,
                           anchor="middle", font=SANS, turn=-90))
    for j, name in enumerate(columns):
        if j % every_column:
            continue
        x = left + j * cell + cell / 2
        parts.append(label(x + (2 if slanted else 0), head - 6, name, size=12, color=column_color,
                           anchor="start" if slanted else "middle", turn=-42 if slanted else 0))
    span = (vmax - vmin) or 1.0
    for i, name in enumerate(rows):
        y = head + i * tall
        if i % every_row == 0:
            parts.append(label(left - 8, y + tall / 2 + 4, name, size=12, color=row_color,
                               anchor="end"))
        for j in range(m):
            x, value = left + j * cell, matrix[i, j]
            if mask is not None and not mask[i][j]:
                parts.append(rect(x, y, cell - 1, tall - 1, "url(#off)", radius=2))
                continue
            if not np.isfinite(value):
                parts.append(rect(x, y, cell - 1, tall - 1, BLANK, radius=2))
                text = "NaN" if np.isnan(value) else ("−∞" if value < 0 else "∞")
                parts.append(label(x + cell / 2, y + tall / 2 + 4, text, size=11, anchor="middle"))
                continue
            share = (value - vmin) / span if value >= 0 or vmin < 0 else -value / span
            fill = mix(color if value >= 0 or vmin < 0 else negative, 0.04 + 0.96 * share)
            parts.append(rect(x, y, cell - 1, tall - 1, fill, radius=2))
            if numbers:
                parts.append(label(x + (cell - 1) / 2, y + tall / 2 + 4, _number(value, fmt),
                                   size=11, color=ink_on(fill), anchor="middle"))
    for i, j in marks:
        parts.append(rect(left + j * cell - 1, head + i * tall - 1, cell + 1, tall + 1, "none",
                          stroke=INK, stroke_width=2, radius=3))
    if alt is None:
        shown = np.where(np.isfinite(matrix), matrix, -np.inf)[:8]
        best = [f"{rows[i]}: most on {columns[int(row.argmax())]} ({_number(row.max(), '{:.2f}')})"
                for i, row in enumerate(shown)]
        alt = f"{title or 'Heat map'}, {n} rows by {m} columns. " + "; ".join(best) + "."
    extra = max(text_width(columns[-1], 12) * 0.74 if slanted else 0, 0)
    return card(left + m * cell + 14 + max(0, extra - cell / 2), head + n * tall + 2, parts, alt,
                title, matrix=matrix, **facts)


def bars(values, labels, *, title="", vmin=0.0, vmax=None, color=PALETTE["weight"], fmt="{:.2f}",
         width=300, line=None, line_text="", alt=None, **facts):
    """Horizontal bars, one a label, the value written at its end.

    color : one color, or one for each bar
    line  : a value at which a dashed line stands (a threshold, a baseline)
    """
    values = np.asarray(values, dtype=float)
    labels = [shorten(t, 34) for t in labels]
    colors = [color] * len(values) if isinstance(color, str) else list(color)
    vmax = float(vmax if vmax is not None else max(values.max(initial=0), vmin + 1e-9))
    left = 14 + max([text_width(t, 12) for t in labels] + [0]) + 8
    scale = width / ((vmax - vmin) or 1.0)
    zero = left + (min(max(0.0, vmin), vmax) - vmin) * scale
    parts, widest = [], left + width + 50
    for i, (value, name) in enumerate(zip(values, labels, strict=True)):
        y = 4 + i * 24
        end = left + (min(max(value, vmin), vmax) - vmin) * scale if np.isfinite(value) else zero
        parts.append(label(left - 8, y + 15, name, size=12, anchor="end"))
        parts.append(rect(min(zero, end), y + 2, max(abs(end - zero), 1), 18, colors[i], radius=2))
        text = _number(value, fmt) if np.isfinite(value) else "NaN"
        parts.append(label(max(end, zero) + 6, y + 15, text, size=12))
        widest = max(widest, max(end, zero) + 6 + text_width(text, 12))
    height = 8 + 24 * len(values)
    if line is not None:
        x = left + (line - vmin) * scale
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="2" y2="{height}" stroke="{INK}" '
                     'stroke-dasharray="4 3"/>')
        if line_text:
            half = text_width(line_text, 11) / 2
            x = max(x, half + 8)
            widest = max(widest, x + half)
            parts.append(label(x, height + 12, line_text, size=11, anchor="middle", font=SANS))
            height += 18
    if alt is None:
        alt = f"{title or 'Bars'}: " + ", ".join(
            f"{n} {_number(v, fmt)}" for n, v in zip(labels, values, strict=True)) + "."
    return card(widest + 14, height, parts, alt, title, values=values, **facts)


def _text_box(x, y, text, size, anchor):
    """(left, top, right, bottom) of a text whose baseline is anchored at (x, y)."""
    wide = text_width(text, size)
    left = x - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
    return left, y - size * 0.85, left + wide, y + 3


def _meet(one, two):
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def _free_place(box, taken, turn, height):
    """The box moved up or down, the way `turn` says first, until it meets none that is taken."""
    left, top, right, bottom = box
    for step in range(40):
        for way in (turn, -turn):
            moved = left, top + way * 4 * step, right, bottom + way * 4 * step
            inside = moved[1] >= 0 and moved[3] <= height
            if (inside or not step) and not any(_meet(moved, other) for other in taken):
                return moved
    return box


def _round_step(span, most):
    """The smallest of 1, 2, 2.5, 5 times a power of ten that cuts a span in at most `most`."""
    unit = 10.0 ** np.floor(np.log10(span / most))
    return next(unit * m for m in (1, 2, 2.5, 5, 10) if span / (unit * m) <= most + 1e-9)


def plane(vectors, *, title="", limit=1.5, size=300, notes=(), alt=None, **facts):
    """Arrows from the origin of the plane.

    vectors : (name, (x, y), color) each
    limit   : the axes go from -limit to limit
    notes   : lines of text beside the drawing
    """
    middle, scale = size / 2 + 8, size / 2 / limit
    parts = [f'<line x1="8" x2="{size + 8}" y1="{middle}" y2="{middle}" stroke="{LINE}"/>',
             f'<line y1="8" y2="{size + 8}" x1="{middle}" x2="{middle}" stroke="{LINE}"/>']
    names, taken = [], []
    for name, (x, y), color in vectors:
        tip = middle + x * scale, middle - y * scale
        parts.append(arrow(middle, middle, *tip, color, width=2.5))
        reach = max(float(np.hypot(x, y)), 1e-9)
        dx, dy = 12 * x / reach, -12 * y / reach
        anchor = "middle" if abs(dx) < 5 else ("start" if dx > 0 else "end")
        box = _text_box(tip[0] + dx, tip[1] + dy + 4, name, 12, anchor)
        box = _free_place(box, taken, -1 if dy < 0 else 1, size + 16)
        taken.append(box)
        names.append(label(box[0], box[3] - 3, name, size=12, color=as_ink(color), weight="600",
                           halo=True))
    step = _round_step(1.8 * limit, 6 if limit > 2 else 4)
    most = np.floor(0.95 * limit / step)  # a number at the very end would stand over the edge
    for tick in np.arange(-most, most + 1) * step:
        text = f"{tick:g}".replace("-", "−")
        for x, y, anchor in ((middle + tick * scale, middle + 14, "middle"),
                             (middle - 6, middle - tick * scale + 4, "end")):
            box = _text_box(x, y, text, 10, anchor)
            if tick and not any(_meet(box, other) for other in taken):
                parts.append(label(x, y, text, size=10, color=SOFT_INK, anchor=anchor, halo=True))
    parts += names
    wide = max([text_width(t, 12) for t in notes] + [0])
    for i, text in enumerate(notes):
        parts.append(label(size + 34, 30 + 20 * i, text, size=12))
    if alt is None:
        alt = f"{title or 'Vectors in the plane'}: " + ", ".join(
            f"{n} at ({x:.2f}, {y:.2f})" for n, (x, y), _ in vectors) + ". " + " ".join(notes)
    return card(size + 34 + wide + 14, size + 12, parts, alt, title, **facts)


def token_strip(tokens, values=None, *, title="", color=PALETTE["weight"], vmax=1.0, under=None,
                width=760, fmt="{:.2f}", alt=None, **facts):
    """Tokens in a row (wrapped at `width`), each on a ground as strong as its value.

    values : one number a token, or None for plain tokens; NaN = not shown (a masked token)
    under  : a second line of text under each token (an id, a label); None for the values
    color  : one color, or one for each token
    """
    tokens = [shorten(t, 24) for t in tokens]
    values = None if values is None else np.asarray(values, dtype=float)
    colors = [color] * len(tokens) if isinstance(color, str) else list(color)
    below = under
    if below is None and values is not None and fmt:
        below = ["" if np.isnan(v) else _number(v, fmt) for v in values]
    parts, x, y, step = [], 14.0, 4.0, 52 if below is not None else 34
    widest = x
    for i, token in enumerate(tokens):
        wide = max(text_width(token, 13), text_width(below[i], 11) if below is not None else 0) + 12
        if x + wide > width and x > 14:
            x, y = 14.0, y + step
        share = 0.0 if values is None or np.isnan(values[i]) else values[i] / (vmax or 1.0)
        fill = BLANK if values is None else mix(colors[i], 0.03 + 0.97 * share)
        if values is None and not isinstance(color, str):
            fill = mix(colors[i], 0.35)
        parts.append(rect(x, y, wide, 26, fill, stroke=LINE, radius=4))
        parts.append(label(x + wide / 2, y + 18, token, color=ink_on(fill), anchor="middle"))
        if below is not None:
            parts.append(label(x + wide / 2, y + 41, below[i], size=11, color=SOFT_INK,
                               anchor="middle"))
        x += wide + 4
        widest = max(widest, x)
    if alt is None:
        said = (tokens if below is None
                else [f"{t} ({b})" for t, b in zip(tokens, below, strict=True)])
        alt = f"{title or 'Tokens'}: " + " ".join(said)
    return card(widest + 10, y + step, parts, alt, title,
                **({} if values is None else {"values": values}), **facts)


def arcs(tokens, weights, query, *, title="", keys=None, mask=None, color=PALETTE["weight"],
         alt=None, **facts):
    """Attention of one token as lines: the query above, the keys below, width = weight.

    weights : (keys,) numbers that sum to 1
    keys    : the tokens below, where they are not `tokens` themselves (cross-attention)
    """
    keys = list(tokens if keys is None else keys)
    weights = np.asarray(weights, dtype=float)
    widths = [max(text_width(shorten(t), 13) + 16, 46) for t in keys]
    top_widths = [max(text_width(shorten(t), 13) + 16, 46) for t in tokens]
    if keys == list(tokens):
        top_widths = widths
    centers = np.cumsum([14, *widths[:-1]]) + np.array(widths) / 2
    top = np.cumsum([14, *top_widths[:-1]]) + np.array(top_widths) / 2
    parts = []
    for j, weight in enumerate(weights):
        if weight > 0.005:
            parts.append(arrow(top[query], 34, centers[j], 116, color, width=1 + 7 * weight,
                               opacity=0.25 + 0.75 * min(weight * 1.5, 1), head=False))
    for i, token in enumerate(tokens):
        here = i == query
        parts.append(rect(top[i] - top_widths[i] / 2 + 2, 8, top_widths[i] - 4, 26,
                          mix(PALETTE["query"], 0.25) if here else CARD, radius=4,
                          stroke=PALETTE["query"] if here else LINE))
        parts.append(label(top[i], 26, shorten(token), anchor="middle",
                           weight="600" if here else "normal"))
    for j, token in enumerate(keys):
        off = mask is not None and not mask[j]
        fill = BLANK if off else mix(color, 0.03 + 0.97 * weights[j])
        parts.append(rect(centers[j] - widths[j] / 2 + 2, 116, widths[j] - 4, 26, fill, stroke=LINE,
                          radius=4))
        parts.append(label(centers[j], 134, shorten(token), color=ink_on(fill), anchor="middle"))
        parts.append(label(centers[j], 158, "hidden" if off else f"{weights[j]:.2f}", size=11,
                           color=SOFT_INK, anchor="middle"))
    if alt is None:
        alt = f"{title or 'Attention'}: from {tokens[query]} to " + ", ".join(
            f"{t} {w:.2f}" for t, w in zip(keys, weights, strict=True)) + "."
    wide = max(centers[-1] + widths[-1] / 2, top[-1] + top_widths[-1] / 2) + 14
    return card(wide, 164, parts, alt, title, weights=weights, **facts)


def entities(text, spans, *, title="", alt=None, **facts):
    """Running text with colored spans, each with its type written behind it.

    spans : (first, stop, type) in code points of `text`, not overlapping
    """
    body, at = [f"<b>{html.escape(title)}</b><br>" if title else ""], 0
    for first, stop, kind in sorted(spans):
        color = PALETTE.get(kind, SERIES[-1])
        fill = mix(color, 0.35)
        body.append(html.escape(visible(text[at:first])))
        body.append(f'<span style="background:{fill};color:{INK};border-radius:4px;'
                    f'padding:1px 4px">'
                    f"{html.escape(visible(text[first:stop]))} <span "
                    f'style="font-size:11px;font-weight:600;color:{INK}">{html.escape(kind)}</span>'
                    "</span>")
        at = stop
    body.append(html.escape(visible(text[at:])))
    said = "; ".join(f"{visible(text[a:b])}: {kind}" for a, b, kind in sorted(spans))
    alt = alt or f"{title or 'Text with its entities'}: {said or 'none marked'}."
    return Picture('<span style="white-space:pre-wrap;line-height:2">' + "".join(body) + "</span>",
                   alt, {"spans": list(spans), **facts}, kind="html")


def curves(series, *, x=None, title="", x_title="", y_title="", x_log=False, y_log=False,
           y_limits=None, bands=None, lines=(), verticals=(), points=(), size=(440, 220),
           colors=None, styles=None, alt=None, **facts):
    """Lines over a common axis, light enough to be redrawn while a slider moves.

    series    : {name: values}; or {name: (x, values)} where each has an x of its own
    bands     : {name: half-widths} shaded around a series (a deviation over seeds)
    lines     : (value, name) horizontal dashed lines (baselines)
    verticals : (value, name) vertical dashed lines
    points    : (x, y, name) marked points
    size      : width and height of the plot in pixels, labels not counted
    styles    : {name: "dashed" | "dotted" | "dots"}
    NaN or, on a log axis, numbers below zero leave a gap.
    """
    drawn = {}
    for name, values in series.items():
        own, values = values if isinstance(values, tuple) else (x, values)
        values = np.asarray(values, dtype=float)
        own = np.arange(len(values)) if own is None else np.asarray(own, dtype=float)
        drawn[name] = own, values
    every_x = np.concatenate([o for o, _ in drawn.values()] + [[v for v, _ in verticals],
                                                               [p[0] for p in points]])
    tops = [v + np.asarray((bands or {}).get(n, 0)) for n, (_, v) in drawn.items()]
    lows = [v - np.asarray((bands or {}).get(n, 0)) for n, (_, v) in drawn.items()]
    every_y = np.concatenate([*tops, *lows, [v for v, _ in lines], [p[1] for p in points]])
    across = _Axis(every_x, 0, size[0], x_log)
    up = _Axis(every_y, size[1], 0, y_log, y_limits)
    marks = [f"{t:g}".replace("-", "−") for t in up.ticks]
    left = 14 + max([text_width(m, 11) for m in marks] + [0]) + 8 + (20 if y_title else 0)
    parts = [f'<g transform="translate({left:.0f} 6)">',
             f'<clipPath id="plot"><rect width="{size[0]}" height="{size[1]}"/></clipPath>']
    for tick, text in zip(up.ticks, marks, strict=True):
        y = up(tick)
        parts.append(f'<path d="M0 {y:.1f}H{size[0]}" stroke="{LINE}" stroke-width=".7"/>')
        parts.append(label(-6, y + 4, text, size=11, color=SOFT_INK, anchor="end"))
    for tick in across.ticks:
        parts.append(f'<path d="M{across(tick):.1f} 0V{size[1]}" stroke="{LINE}" '
                     'stroke-width=".7"/>')
        parts.append(label(across(tick), size[1] + 15, f"{tick:g}".replace("-", "−"), size=11,
                           color=SOFT_INK, anchor="middle"))
    parts.append(f'<path d="M0 0V{size[1]}H{size[0]}" fill="none" stroke="{SOFT_INK}"/>')
    notes = []
    for value, name in lines:
        parts.append(f'<path d="M0 {up(value):.1f}H{size[0]}" stroke="{SOFT_INK}" '
                     'stroke-dasharray="5 4"/>')
        notes.append((size[0] - 4, up(value) - 4, name, "end", SANS, SOFT_INK))
    for value, name in verticals:
        x_at = across(value)
        parts.append(f'<path d="M{x_at:.1f} 0V{size[1]}" stroke="{INK}" stroke-dasharray="3 3"/>')
        right = x_at < size[0] * 0.7
        notes.append((x_at + (5 if right else -5), 12, name, "start" if right else "end", SANS,
                      INK))
    names = list(drawn)
    chosen = {n: (colors or {}).get(n, SERIES[i % len(SERIES)]) for i, n in enumerate(names)}
    parts.append('<g clip-path="url(#plot)">')
    for name, (own, values) in drawn.items():
        color, style = chosen[name], (styles or {}).get(name, "")
        if bands and name in bands:
            half = np.broadcast_to(np.asarray(bands[name], dtype=float), values.shape)
            edge = [(across(a), up(b)) for a, b in zip(own, values + half, strict=True)]
            edge += [(across(a), up(b)) for a, b in zip(own[::-1], (values - half)[::-1],
                                                       strict=True)]
            parts.append('<polygon points="' + " ".join(
                f"{a:.1f},{b:.1f}" for a, b in edge if np.isfinite(a) and np.isfinite(b))
                + f'" fill="{color}" opacity=".18"/>')
        path, pen = [], "M"
        for a, b in zip(own, values, strict=True):
            place = across(a), up(b)
            if np.isfinite(place).all():
                path.append(f"{pen}{place[0]:.1f} {np.clip(place[1], -1e4, 1e4):.1f}")
                pen = "L"
                if style == "dots":
                    parts.append(f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="3.5" '
                                 f'fill="{color}"/>')
            else:
                pen = "M"
        dash = DASHES.get(style, "none")
        if style != "dots":
            parts.append(f'<path d="{"".join(path)}" fill="none" stroke="{color}" '
                         f'stroke-width="2" stroke-dasharray="{dash}" stroke-linejoin="round"/>')
    parts.append("</g>")
    for a, b, name in points:
        right, at_y = across(a) < size[0] * 0.8, min(max(up(b), 0), size[1])
        if at_y != up(b):  # beyond the limits: it stands at the edge, and says so
            name = f"{'↑' if up(b) < 0 else '↓'} {name}"
        parts.append(f'<circle cx="{across(a):.1f}" cy="{at_y:.1f}" r="4.5" fill="{INK}"/>')
        notes.append((across(a) + (8 if right else -8), at_y - 6, name,
                      "start" if right else "end", MONO, INK))
    taken = []
    for x_at, y_at, name, anchor, font, ink in notes:  # none over another, none under a line
        box = _text_box(x_at, min(max(y_at, 12), size[1] - 4), name, 11, anchor)
        box = _free_place(box, taken, 1 if y_at < 20 else -1, size[1])
        taken.append(box)
        parts.append(label(x_at, box[3] - 3, name, size=11, color=ink, anchor=anchor, font=font,
                           halo=True))
    bottom = size[1] + 22
    if x_title:
        parts.append(label(size[0] / 2, bottom + 12, x_title, size=12, anchor="middle", font=SANS))
        bottom += 20
    parts.append("</g>")
    if y_title:
        parts.append(label(20, 6 + size[1] / 2, y_title, size=12, anchor="middle", font=SANS,
                           turn=-90))
    at = left
    if len(names) > 1:
        bottom += 8
        for name in names:
            wide = text_width(name, 12) + 40
            if at + wide > left + size[0] + 16 and at > left:
                at, bottom = left, bottom + 18
            if (styles or {}).get(name) == "dots":
                parts.append(f'<circle cx="{at + 10:.1f}" cy="{bottom + 4}" r="4" '
                             f'fill="{chosen[name]}"/>')
            else:
                dash = DASHES.get((styles or {}).get(name, ""), "none")
                parts.append(f'<path d="M{at:.1f} {bottom + 4}h22" stroke="{chosen[name]}" '
                             f'stroke-width="3" stroke-dasharray="{dash}"/>')
            parts.append(label(at + 25, bottom + 8, name, size=12))
            at += wide
        bottom += 14
    if alt is None:
        ends = "; ".join(_from_to(name, values) for name, (_, values) in drawn.items())
        over = f"{y_title or 'values'} over {x_title or 'steps'}"
        alt = f"{title or 'Curves'} ({over}): {ends}"
        alt += "".join(f"; {name} at {value:.3g}" for value, name in lines) + "."
    return card(left + size[0] + 20, bottom + 8, parts, alt, title, **facts)


class _Axis:
    """Values to pixels along one axis, with a handful of round ticks."""

    def __init__(self, values, at_low, at_high, log, limits=None):
        values = values[np.isfinite(values) & ((values > 0) | (not log))]
        low, high = limits or ((values.min(), values.max()) if len(values) else (0.0, 1.0))
        self.log = log
        if log:
            low, high = np.log10(low), np.log10(high)
        if high - low < 1e-12:
            low, high = low - 0.5, high + 0.5
        margin = 0 if limits else 0.03 * (high - low)
        self.low, self.span = low - margin, high - low + 2 * margin
        self.at_low, self.length = at_low, at_high - at_low
        if log:
            powers = np.arange(np.ceil(self.low - 1e-9), np.floor(self.low + self.span + 1e-9) + 1)
            few = len(powers) < 3
            self.ticks = [m * 10.0**p for p in np.append(powers, powers[-1:] + 1)
                          for m in ((1, 2, 5) if few else (1,))]
            if few and len(powers):
                self.ticks = [m * 10.0 ** (powers[0] - 1) for m in (2, 5)] + self.ticks
            self.ticks = [t for t in self.ticks
                          if self.low - 1e-9 <= np.log10(t) <= self.low + self.span + 1e-9]
            kept = []
            for tick in self.ticks:  # labels of powers are wide: leave out what would not fit
                if not kept or abs(self(tick) - self(kept[-1])) >= 36:
                    kept.append(tick)
            self.ticks = kept
        else:
            raw = self.span / 5
            unit = 10 ** np.floor(np.log10(raw))
            whole = bool((values == np.round(values)).all())  # layers, steps: none at a half
            rounds = (1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)
            step = unit * min(rounds, key=lambda m: abs(m * unit - raw))
            step = max(step, 1.0) if whole and len(values) else step
            first = np.ceil(self.low / step - 1e-9)
            last = np.floor((self.low + self.span) / step + 1e-9)
            self.ticks = [round(float(i * step), 12) + 0.0 for i in np.arange(first, last + 1)]

    def __call__(self, value):
        if self.log:
            value = np.log10(value) if value > 0 else np.nan
        return self.at_low + (value - self.low) / self.span * self.length


def _from_to(name, values):
    values = np.asarray(values, dtype=float)
    return f"{name} from {values[0]:.3g} to {values[-1]:.3g}" if len(values) else f"{name}: empty"


def side_by_side(*pictures, alt=None, gap=10, down=False, **facts):
    """Several SVG pictures as one, in a row (or, with `down`, in a column)."""
    parts, at, other = [], 0.0, 0.0
    for number, picture in enumerate(pictures):
        width, height = picture.size
        x, y = (0, at) if down else (at, 0)
        # pattern ids live in one document from here on
        body = re.sub(r'(id="|url\(#|href="#|clip-path="url\(#)', rf"\g<1>p{number}", picture.body)
        parts.append(body.replace("<svg ", f'<svg x="{x:.0f}" y="{y:.0f}" ', 1))
        at += (height if down else width) + gap
        other = max(other, width if down else height)
    wide, high = (other, at - gap) if down else (at - gap, other)
    merged = {k: v for p in pictures for k, v in p.facts.items()}
    return Picture(f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" '
                   f'height="{high:.0f}" viewBox="0 0 {wide:.0f} {high:.0f}">'
                   + "".join(parts) + "</svg>",
                   alt or " ".join(p.alt for p in pictures), {**merged, **facts})
