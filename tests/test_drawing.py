"""The drawing functions: what is typed is data, alt text is there, text can be read."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from course import drawing, environment
from course.drawing import (
    PALETTE,
    SERIES,
    Picture,
    as_ink,
    bars,
    contrast,
    curves,
    entities,
    heatmap,
    ink_on,
    mix,
)

HOSTILE = '<script>alert("x")</script>&\x07'


def pictures():
    """One of each kind, with hostile labels."""
    words = ["a", HOSTILE, "c"]
    yield heatmap(np.eye(3), words, words, title=HOSTILE, row_title=HOSTILE, column_title="key",
                  mask=np.tri(3, dtype=bool), marks=[(0, 0)])
    yield heatmap(np.array([[np.nan, -np.inf, -3.0]]), vmin=-3, vmax=3)
    yield bars([0.2, -0.5, np.nan], words, title="bars", vmin=-1, vmax=1, line=0.1, line_text="t")
    yield drawing.plane([(HOSTILE, (1.0, 0.5), PALETTE["query"]), ("zero", (0, 0), "#000000")])
    yield drawing.token_strip(words, [0.1, 0.9, np.nan], title="strip")
    yield drawing.arcs(words, [0.2, 0.3, 0.5], 1, mask=[True, True, False])
    yield entities("Zoë met " + HOSTILE, [(0, 3, "PER")])
    yield curves({HOSTILE: [1, 2, np.nan, 3], "b": ([1, 2], [3, 4])}, x=[1, 2, 3, 4], x_log=True,
                 lines=[(2, HOSTILE)], verticals=[(2, "v")], points=[(2, 2, "p")],
                 bands={"b": [0.1, 0.1]}, x_title="x", y_title="y")
    yield curves({"flat": np.ones(3)})


@pytest.mark.parametrize("picture", list(pictures()))
def test_pictures_are_well_formed_and_escape_what_they_show(picture):
    assert picture.alt.strip()
    assert "<script" not in picture.body
    shown = picture._repr_html_()
    assert "<script" not in shown
    assert "nan" not in re.sub(r">[^<]*<", "><", picture.body)  # no NaN among the coordinates
    if picture.kind == "svg":
        ET.fromstring(picture.body)
        assert '<img alt="' in shown


def test_two_pictures_in_one_keep_their_own_patterns():
    mask = np.tri(2, dtype=bool)
    both = drawing.side_by_side(heatmap(np.eye(2), mask=mask), heatmap(np.eye(2), mask=~mask))
    ids = re.findall(r' id="([^"]+)"', both.body)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", both.body)) <= set(ids)
    ET.fromstring(both.body)


def test_a_picture_needs_alt_text():
    with pytest.raises(ValueError, match="alt text"):
        Picture("<svg/>", " ")


def test_letters_on_every_strength_of_every_color_can_be_read():
    for color in {*PALETTE.values(), *drawing.SERIES}:
        for share in np.linspace(0, 1, 21):
            ground = mix(color, share)
            assert contrast(ink_on(ground), ground) >= 4.5, (color, share)
    assert contrast(drawing.INK, drawing.CARD) >= 4.5
    assert contrast(drawing.SOFT_INK, drawing.CARD) >= 4.5


def test_entity_spans_keep_the_text():
    text = "Ana  met\nBo"
    picture = entities(text, [(9, 11, "PER")])
    assert re.sub(r"<span[^>]*>PER</span>|<[^>]+>", "", picture.body).replace("Bo ", "Bo") == text


def test_the_environment_is_named_when_something_is_missing(monkeypatch):
    assert environment.problems() == []
    assert "Everything is there" in repr(environment.check_environment())
    monkeypatch.setattr(environment, "NEEDED", {"no-such-package": (1, 0), "numpy": (99, 0)})
    said = repr(environment.check_environment())
    assert "no-such-package is missing" in said
    assert "older than 99.0" in said
    assert "pip install -r requirements.txt" in said


def test_contrast_is_that_of_the_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffffff", "#ffffff") == 1
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)  # its known example


@pytest.mark.parametrize("color", sorted({*PALETTE.values(), *SERIES}))
def test_a_color_for_words_can_be_read_and_keeps_its_hue(color):
    ink = as_ink(color)
    assert contrast(ink, drawing.CARD) >= 4.5
    if contrast(color, drawing.CARD) >= 4.6:
        assert ink == color.lower()
    order = np.argsort([int(color[i:i + 2], 16) for i in (1, 3, 5)], kind="stable")
    levels = np.array([int(ink[i:i + 2], 16) for i in (1, 3, 5)])
    assert (np.diff(levels[order]) >= 0).all()  # only darker


def _texts(picture):
    """The words of an SVG with their place: (text, x, y)."""
    found = re.findall(r'<text x="([-\d.]+)" y="([-\d.]+)"[^>]*>([^<]*)</text>', picture.body)
    return [(text, float(x), float(y)) for x, y, text in found]


@pytest.mark.parametrize("limit", [0.5, 1.0, 1.5, 2, 3.5, 5, 10, 40])
def test_a_plane_has_a_few_round_numbers_on_each_axis_at_any_limit(limit):
    shown = _texts(drawing.plane([("v", (0.7 * limit, 0.6 * limit), PALETTE["query"])],
                                 limit=limit))
    ticks = [float(text.replace("−", "-")) for text, _, _ in shown if text != "v"]
    assert 2 <= len(ticks) / 2 <= 8
    assert set(ticks) == {-tick for tick in ticks}
    assert max(ticks) < limit


def test_names_that_would_stand_over_each_other_are_moved_apart():
    ends = [(1.0, 0.0), (1.02, 0.01), (1.0, -0.02)]
    shown = _texts(drawing.plane([(f"name {i}", end, PALETTE["key"]) for i, end in enumerate(ends)],
                                 limit=3))
    heights = sorted(y for text, _, y in shown if text.startswith("name"))
    assert len(heights) == 3
    assert min(np.diff(heights)) >= 10

    plot = curves({"a": [1.0, 2, 3]}, lines=[(2.0, "one line"), (2.01, "another line")],
                  verticals=[(1.9, "here")], points=[(1.9, 2.02, "a point")])
    words = [(t, y) for t, _, y in _texts(plot) if t in ("one line", "another line")]
    assert abs(words[0][1] - words[1][1]) >= 10


def test_a_point_beyond_the_limits_stands_at_the_edge_and_says_so():
    plot = curves({"a": [1.0, 2, 3]}, points=[(1, 12.0, "12")], y_limits=(0, 5))
    assert "↑ 12" in [text for text, _, _ in _texts(plot)]
    heights = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([-\d.]+)"', plot.body)]
    assert heights == [0.0]


def test_a_long_number_at_the_end_of_a_bar_is_inside_the_picture():
    picture = bars([3.0], ["a"], vmax=3, fmt="{:.0f} thousand million")
    (x,) = [x for text, x, _ in _texts(picture) if "thousand" in text]
    assert x + drawing.text_width("3 thousand million", 12) <= picture.size[0]


def test_pixels_are_a_png_of_the_colors_given():
    import base64
    import io
    import re

    import matplotlib.image

    colors = [["#000000", "#ff8001", "#0072b2"], ["#ffffff", "#123456", "#cc79a7"]]
    found = re.search(r'href="data:image/png;base64,([^"]+)"', drawing.pixels(colors, 1, 2, 30, 20))
    shown = matplotlib.image.imread(io.BytesIO(base64.b64decode(found[1])))
    values = [[[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in row] for row in colors]
    assert np.array_equal(np.round(255 * shown[:, :, :3]), values)
