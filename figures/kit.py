"""What all figures share: the sheet with its question and answer, and a few shapes.

Colors, faces and the card are those of `course.drawing`. Text is never smaller than 11 pixels, and
a role's color is darkened where it is the color of small letters.
"""

from course.drawing import (
    BLANK,
    CARD,
    INK,
    LINE,
    PALETTE,
    SANS,
    SOFT_INK,
    arrow,
    card,
    ink_on,
    label,
    mix,
    rect,
    text_width,
)

WIDTH = 840
MARGIN = 26
GREY = "#8c959f"
# The heads of lessons 06, 07 and 08, wherever a figure tells them apart.
TEXT, TOKEN, SPAN = PALETTE["query"], PALETTE["ORG"], PALETTE["start"]


def sheet(height, parts, *, question, answer, alt, details):
    """A Picture of the common width: a question in bold, its answer in one line, the drawing.

    alt     : what it shows, in a sentence; pages use these words
    details : all that it shows, numbers included; kept in the SVG for readers who do not see it
    """
    head = [say(MARGIN, 28, question, size=17, weight="600"),
            say(MARGIN, 50, answer, size=13, color=SOFT_INK)]
    return card(WIDTH, height - 16, [*head, *parts], alt, question=question, details=details)


def dark(color, share=0.7):
    """A color for letters: the hue of `color`, dark enough to read on the card."""
    return mix(color, share, "#000000")


def pale(color, share=0.14):
    """A ground in the hue of `color` for dark letters."""
    return mix(color, share)


def say(x, y, text, *, size=12, color=INK, anchor="start", weight="normal"):
    """A line of running text."""
    return label(x, y, text, size=size, color=color, anchor=anchor, font=SANS, weight=weight)


def lines(x, y, texts, *, step=17, **options):
    """Several lines of running text, one below the other."""
    return "".join(say(x, y + step * i, text, **options) for i, text in enumerate(texts))


def number(value, digits=2):
    """A number as it is printed, with a true minus sign."""
    text = f"{value:.{digits}f}"
    return "−" + text[1:] if text.startswith("-") else text


def cell(x, y, text, *, width=40, height=26, fill=CARD, stroke=LINE, size=12, weight="normal",
         radius=3):
    """A rectangle with a text in its middle."""
    return (rect(x, y, width, height, fill, stroke=stroke, radius=radius)
            + label(x + width / 2, y + height / 2 + size * 0.36, text, size=size,
                    color=ink_on(fill) if fill.startswith("#") else INK, anchor="middle",
                    weight=weight))


def grid(x, y, rows, *, width=40, height=26, fill=CARD, stroke=LINE, size=12, digits=2):
    """A matrix in cells; `fill` is one color or a function of (row, column)."""
    parts = []
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            text = value if isinstance(value, str) else number(value, digits)
            parts.append(cell(x + j * width, y + i * height, text, width=width, height=height,
                              fill=fill(i, j) if callable(fill) else fill, stroke=stroke,
                              size=size, radius=0))
    return "".join(parts)


def frame(x, y, width, height, color=INK, *, stroke_width=2, radius=3, dashed=False):
    """An outline without a ground."""
    extra = 'stroke-dasharray="5 4"' if dashed else ""
    return rect(x, y, width, height, "none", stroke=color, stroke_width=stroke_width,
                radius=radius, extra=extra)


def box(x, y, width, height, title, color, *, below=(), size=13, fill=None, weight="600"):
    """A part of a network: a rounded rectangle in a role's color with its name in the middle."""
    fill = fill or pale(color)
    top = y + height / 2 + size * 0.36 - 8 * len(below)
    parts = [rect(x, y, width, height, fill, stroke=color, radius=7, stroke_width=1.3),
             say(x + width / 2, top, title, size=size, anchor="middle", weight=weight)]
    parts += [say(x + width / 2, top + 17 * (i + 1), text, anchor="middle", color=dark(SOFT_INK))
              for i, text in enumerate(below)]
    return "".join(parts)


def path(points, color=GREY, *, width=1.6, head=True, dashed=False, radius=8):
    """A line through points with rounded corners, with an arrow head at its end."""
    shape, last = f"M{points[0][0]:.1f} {points[0][1]:.1f}", len(points) - 1
    for i in range(1, last):
        (x, y), before, after = points[i], points[i - 1], points[i + 1]
        enter, leave = _toward((x, y), before, radius), _toward((x, y), after, radius)
        shape += f"L{enter[0]:.1f} {enter[1]:.1f}Q{x:.1f} {y:.1f} {leave[0]:.1f} {leave[1]:.1f}"
    end = points[last]
    stop = _toward(end, points[last - 1], 5) if head else end
    shape += f"L{stop[0]:.1f} {stop[1]:.1f}"
    extra = ' stroke-dasharray="5 4"' if dashed else ""
    parts = [f'<path d="{shape}" fill="none" stroke="{color}" stroke-width="{width}"'
             f' stroke-linejoin="round"{extra}/>']
    if head:
        back = _toward(end, points[last - 1], 1)
        parts.append(tip(*end, end[0] - back[0], end[1] - back[1], color, 5 + 2 * width))
    return "".join(parts)


def _toward(point, other, distance):
    dx, dy = other[0] - point[0], other[1] - point[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1e-9)
    share = min(distance / length, 0.5 if distance > 5 else 1.0)
    return point[0] + dx * share, point[1] + dy * share


def tip(x, y, ux, uy, color, size=8.0):
    """An arrow head whose point is at (x, y), looking along the unit vector (ux, uy)."""
    corners = [(x, y)] + [(x - size * ux + side * size * 0.5 * uy,
                           y - size * uy - side * size * 0.5 * ux) for side in (1, -1)]
    return ('<polygon points="' + " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
            + f'" fill="{color}"/>')


def hatch(name):
    """The ground of what a mask hides; use it as fill `url(#NAME)`."""
    return (f'<defs><pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
            f'<rect width="6" height="6" fill="{BLANK}"/><path d="M0 6L6 0" stroke="#a3aab2"/>'
            "</pattern></defs>")


def chips(tokens, x, y, *, gap=6, height=28, size=13, pad=14, least=0, fills=None, strokes=None):
    """Tokens in a row. Returns (SVG, centers, widths)."""
    parts, centers, widths = [], [], []
    for i, token in enumerate(tokens):
        wide = max(text_width(token, size) + pad, least)
        fill = fills[i] if fills else "#ffffff"
        parts.append(cell(x, y, token, width=wide, height=height, fill=fill, size=size,
                          stroke=strokes[i] if strokes else LINE, radius=5))
        centers.append(x + wide / 2)
        widths.append(wide)
        x += wide + gap
    return "".join(parts), centers, widths


__all__ = [
    "BLANK", "CARD", "GREY", "INK", "LINE", "MARGIN", "PALETTE", "SANS", "SOFT_INK", "SPAN", "TEXT",
    "TOKEN", "WIDTH", "arrow", "box", "cell", "chips", "dark", "frame", "grid", "hatch", "ink_on",
    "label", "lines", "mix", "number", "pale", "path", "rect", "say", "sheet", "text_width", "tip",
]
