"""Figures: drawn again they are the same bytes, and each can be read by everyone.

The sizes of texts are measured in DejaVu Sans, which comes with matplotlib and is as wide as any
of the faces that a reader may have.
"""

import html
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "figures"
NAMES = sorted(file.stem for file in FOLDER.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The figures, drawn again into another folder."""
    folder = tmp_path_factory.mktemp("figures")
    done = subprocess.run([sys.executable, FOLDER / "make.py", "--into", folder],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for file in folder.iterdir():
        assert file.name in done.stdout
    return folder


def test_every_figure_is_made_by_the_script(drawn):
    assert sorted(file.stem for file in drawn.glob("*.svg")) == NAMES
    assert len(NAMES) >= 10


@pytest.mark.parametrize("name", [*(f"{name}.svg" for name in NAMES), "alt.json"])
def test_drawn_again_it_is_the_same_bytes(drawn, name):
    assert (drawn / name).read_bytes() == (FOLDER / name).read_bytes(), (
        f"figures/{name} is stale: run `python figures/make.py`")


def test_an_unknown_name_is_refused():
    done = subprocess.run([sys.executable, FOLDER / "make.py", "no_such_figure"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "no_such_figure" in done.stderr


@cache
def tree(name):
    return ET.parse(FOLDER / f"{name}.svg").getroot()


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_shows(name):
    root, alt = tree(name), json.loads((FOLDER / "alt.json").read_text(encoding="utf-8"))[name]
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    assert title.text.endswith("?")
    assert 60 <= len(alt) <= 200
    assert desc.text.startswith(alt + " ")
    assert 250 <= len(desc.text) <= 1200
    assert not re.search(r"\bnan\b|\binf\b|np\.", desc.text)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_readable_size(name):
    root = tree(name)
    assert 600 <= float(root.get("width")) <= 900
    assert 300 <= float(root.get("height")) <= 760
    for text in root.iter(f"{SVG}text"):
        assert float(text.get("font-size")) >= 11, text.text


# --- where texts lie ----------------------------------------------------------------------------


def _shift(node):
    moved = re.match(r"translate\(([-\d.]+)[ ,]+([-\d.]+)\)", node.get("transform") or "")
    return (float(moved[1]), float(moved[2])) if moved else (0.0, 0.0)


def _leaves(node, dx=0.0, dy=0.0):
    """Every shape and text in the order of drawing, with the shift of its groups."""
    for child in node:
        if child.tag in (f"{SVG}defs", f"{SVG}title", f"{SVG}desc"):
            continue
        if child.tag == f"{SVG}g":
            x, y = _shift(child)
            yield from _leaves(child, dx + x, dy + y)
        else:
            yield child, dx, dy


@cache
def _face(mono, bold):
    from matplotlib.font_manager import FontProperties
    return FontProperties(family="DejaVu Sans Mono" if mono else "DejaVu Sans",
                          weight="bold" if bold else "normal")


@cache
def _extent(text, size, mono, bold):
    """(left, bottom, right, top) of the ink, from the start of the baseline, y upward."""
    from matplotlib.textpath import TextPath
    box = TextPath((0, 0), text, size=size, prop=_face(mono, bold)).get_extents()
    return box.x0, box.y0, box.x1, box.y1


def _box(text, dx, dy):
    """(left, top, right, bottom) of the ink of a <text>."""
    x, y = float(text.get("x")), float(text.get("y"))
    mono = "mono" in text.get("font-family").lower()
    bold = text.get("font-weight") not in (None, "normal")
    left, low, right, high = _extent(text.text, float(text.get("font-size")), mono, bold)
    back = {"start": 0, "middle": (left + right) / 2, "end": right}[text.get("text-anchor")]
    corners = np.array([(a - back, -b) for a in (left, right) for b in (low, high)])
    turn = re.match(r"rotate\(([-\d.]+)", text.get("transform") or "")
    if turn:
        angle = np.deg2rad(float(turn[1]))
        corners = corners @ np.array([[np.cos(angle), np.sin(angle)],
                                      [-np.sin(angle), np.cos(angle)]])
    corners += (x + dx, y + dy)
    return (*corners.min(axis=0), *corners.max(axis=0))


def _texts(name):
    return [(leaf, _box(leaf, dx, dy)) for leaf, dx, dy in _leaves(tree(name))
            if leaf.tag == f"{SVG}text" and (leaf.text or "").strip()]


def _rects(name):
    for leaf, dx, dy in _leaves(tree(name)):
        if leaf.tag == f"{SVG}rect":
            x, y, w, h = (float(leaf.get(side)) for side in ("x", "y", "width", "height"))
            yield leaf, (x + dx, y + dy, x + dx + w, y + dy + h)


@pytest.mark.parametrize("name", NAMES)
def test_no_text_leaves_the_card(name):
    wide, high = (float(tree(name).get(side)) for side in ("width", "height"))
    for text, (left, top, right, bottom) in _texts(name):
        assert left >= 10, text.text
        assert top >= 8, text.text
        assert right <= wide - 10, text.text
        assert bottom <= high - 8, text.text


@pytest.mark.parametrize("name", NAMES)
def test_no_two_texts_touch(name):
    texts = _texts(name)
    for i, (one, a) in enumerate(texts):
        for other, b in texts[i + 1:]:
            apart = a[2] + 2 <= b[0] or b[2] + 2 <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            assert apart, f"{one.text!r} and {other.text!r}"


@pytest.mark.parametrize("name", NAMES)
def test_no_text_crosses_the_edge_of_its_box(name):
    """A text that begins inside a box with an outline, or beside it, stays there."""
    boxes = [box for leaf, box in _rects(name) if leaf.get("stroke") not in (None, "none")]
    for text, (left, top, right, bottom) in _texts(name):
        for x0, y0, x1, y1 in boxes:
            if bottom <= y0 or top >= y1 or right <= x0 or left >= x1:
                continue  # apart
            inside = left >= x0 + 1 and right <= x1 - 1 and top >= y0 and bottom <= y1
            assert inside, f"{text.text!r} crosses the box at {x0:.0f}, {y0:.0f}"


def _luminance(color):
    levels = np.array([int(color[i:i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("name", NAMES)
def test_letters_stand_out_from_their_ground(name):
    """Contrast of at least 4.5 between a text and the last opaque rectangle below its middle."""
    grounds = [("#fcfcfa", (-1e9, -1e9, 1e9, 1e9))]
    for leaf, dx, dy in _leaves(tree(name)):
        fill = leaf.get("fill") or ""
        if leaf.tag == f"{SVG}rect" and fill != "none":
            x, y, w, h = (float(leaf.get(side)) for side in ("x", "y", "width", "height"))
            # the ground of the hatching; its lines are thin
            fill = "#e7e9ec" if fill.startswith("url") else fill
            grounds.append((fill, (x + dx, y + dy, x + dx + w, y + dy + h)))
        elif leaf.tag == f"{SVG}text":
            left, top, right, bottom = _box(leaf, dx, dy)
            x, y = (left + right) / 2, (top + bottom) / 2
            ground = next(color for color, (x0, y0, x1, y1) in reversed(grounds)
                          if x0 <= x <= x1 and y0 <= y <= y1)
            light, deep = sorted((_luminance(ground), _luminance(fill)), reverse=True)
            contrast = (light + 0.05) / (deep + 0.05)
            assert contrast >= 4.5, f"{leaf.text!r}: {fill} on {ground} is {contrast:.2f}"


# --- where figures are used ---------------------------------------------------------------------


def _pages():
    """(page, text) of the README and of every Markdown cell."""
    for file in [ROOT / "README.md"]:
        if file.exists():
            yield file.name, file.read_text(encoding="utf-8")
    for file in sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("solutions/*.ipynb")]):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            if cell["cell_type"] == "markdown":
                yield file.name, "".join(cell["source"])


def _uses():
    """(page, figure, alt text) of every picture from figures/ on a page."""
    for page, text in _pages():
        for said, name in re.findall(
                r"!\[((?:[^\[\]\\]|\\.|\[[^\]]*\])*)\]\([^)\s]*figures/([\w.-]+)\)", text):
            yield page, name, re.sub(r"\\([\[\]\\*_])", r"\1", said)
        for tag in re.findall(r"<img\b[^>]*>", text):
            source = re.search(r'src="[^"]*figures/([\w.-]+)"', tag)
            said = re.search(r'alt="([^"]*)"', tag)
            if source:
                yield page, source[1], html.unescape(said[1]) if said else ""


def test_pages_use_figures_that_exist_with_their_alt_text():
    alts = json.loads((FOLDER / "alt.json").read_text(encoding="utf-8"))
    for page, name, said in _uses():
        assert (FOLDER / name).exists(), f"{page} shows figures/{name}, which is not there"
        if name.endswith(".svg"):
            assert " ".join(said.split()) == alts[name.removesuffix(".svg")], (
                f"{page}: the alt text of {name} is not that of figures/alt.json")


def test_every_figure_is_shown_somewhere():
    assert set(NAMES) <= {name.removesuffix(".svg") for _, name, _ in _uses()}
