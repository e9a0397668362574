"""The drawing functions: what is typed is data, alt text is there, text can be read."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from course import drawing, environment
from course.drawing import PALETTE, Picture, bars, curves, entities, heatmap, ink_on, mix

HOSTILE = '<script>alert("x")</script>&\x07'


def contrast(one, two):
    """WCAG's contrast of two colors, 1 to 21."""
    light = []
    for color in (one, two):
        levels = np.array([int(color[i:i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
        light.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return max(light) / min(light)


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
