"""Every slider of the course, drawn over its whole range: pictures, and what they claim is true."""

import statistics
import time

import course
import numpy as np
import pytest
from course.drawing import Picture
from course.explore import _sliders, find, load_lessons, picture, sweep

FAILED = load_lessons()
NAMES = sorted(_sliders)
# A picture is drawn and seen within 100 ms of a key; the drawing alone is reported here.
SECONDS = 0.1


def test_every_lesson_loads():
    assert FAILED == {}
    assert [name for name, _, _ in course.sliders()] == NAMES


def _numbers(value):
    """Every array of numbers among a picture's facts."""
    if isinstance(value, dict):
        for one in value.values():
            yield from _numbers(one)
    elif isinstance(value, (list, tuple)) and not all(np.isscalar(one) for one in value):
        for one in value:
            yield from _numbers(one)
    else:
        array = np.asarray(value)
        if array.dtype.kind in "biufc":
            yield array


def _check(drawn, values):
    assert isinstance(drawn, Picture), f"at {values}: expected a Picture, got {type(drawn)}"
    assert drawn.alt.strip(), f"at {values}: no alt text"
    shown = drawn._repr_html_()
    assert shown.strip()
    assert "<script" not in shown.lower(), f"at {values}: markup came through"
    for name, fact in drawn.facts.items():
        for array in _numbers(fact):
            assert not np.isnan(array.astype(complex)).any(), f"at {values}: NaN in {name}"
    for name in ("weights", "probabilities"):
        if name in drawn.facts:
            array = np.asarray(drawn.facts[name], dtype=float)
            assert (array > -1e-6).all(), f"at {values}: negative {name}"
            sums = array.sum(axis=-1)
            right = np.isclose(sums, 1, atol=1e-5) | np.isclose(sums, 0, atol=1e-5)
            assert right.all(), f"at {values}: {name} sum to {sums}"
    if "weights" in drawn.facts and "mask" in drawn.facts:
        weights = np.asarray(drawn.facts["weights"], dtype=float)
        mask = np.broadcast_to(np.asarray(drawn.facts["mask"], dtype=bool), weights.shape)
        assert (weights[~mask] == 0).all(), f"at {values}: a masked weight is not 0"


@pytest.mark.parametrize("name", NAMES)
def test_slider_draws_everywhere(name, record_property):
    one = find(name)
    given = one.given() if one.given else {}
    elapsed = []
    for values in sweep(name):
        began = time.perf_counter()
        drawn = picture(name, values, given)
        elapsed.append(time.perf_counter() - began)
        _check(drawn, values)
        for key, control in one.controls.items():
            assert isinstance(control.say(values[key]), str)
    median = statistics.median(elapsed)
    record_property("median_milliseconds", round(median * 1e3, 1))
    print(f"{name}: {len(elapsed)} pictures, median {median * 1e3:.1f} ms")
    if median > SECONDS:
        print(f"{name}: slower than {SECONDS * 1e3:.0f} ms")


@pytest.mark.parametrize("name", NAMES)
def test_same_values_give_the_same_picture(name):
    one = find(name)
    given = one.given() if one.given else {}
    values = next(iter(sweep(name)))
    assert picture(name, values, given)._repr_html_() == picture(name, values, given)._repr_html_()


@pytest.mark.parametrize("name", NAMES)
def test_controls_change_the_picture(name):
    """A control that changes nothing is broken or of no use."""
    one = find(name)
    given = one.given() if one.given else {}
    pictures = {picture(name, values, given)._repr_html_() for values in sweep(name)}
    assert len(pictures) > 1


@pytest.mark.parametrize("name", NAMES)
def test_name_and_labels(name):
    one = find(name)
    assert one.draw.__doc__, "a drawing function says in its docstring what it shows"
    labels = [control.label for control in one.controls.values()]
    assert all(label.strip() for label in labels)
    assert len(set(labels)) == len(labels)
