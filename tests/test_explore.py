"""Sliders: controls, the registry, sweeps, and what `explore` shows."""

import subprocess
import sys

import course
import pytest
from course.drawing import Picture
from course.explore import (
    Choice,
    Range,
    Text,
    Toggle,
    _sliders,
    _Stage,
    explore,
    find,
    picture,
    slider,
    sweep,
)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """A course without sliders, and no strictness."""
    monkeypatch.delenv("COURSE_STRICT", raising=False)
    before = dict(_sliders)
    _sliders.clear()
    yield
    _sliders.clear()
    _sliders.update(before)


def say(text, **facts):
    return Picture(f"<p>{text}</p>", f"alt {text}", facts, kind="html")


def make(**controls):
    calls = []

    @slider(lesson="98", **controls)
    def toy(**values):
        """A toy."""
        calls.append(values)
        return say(values)

    return toy, calls


def stage(draw, **values):
    one = find(draw)
    values = {name: control.first for name, control in one.controls.items()} | values
    return _Stage(one, values, {})


# --- controls ---


def test_range_of_whole_numbers():
    control = Range(1, 8, 1, start=3)
    assert control.first == 3
    assert isinstance(control.first, int)
    assert control.values() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert control.ends() == [1, 8]
    assert control.clean(3.4) == 3
    assert control.clean(99) == 8
    assert control.say(3) == "3"


def test_range_of_floats_has_no_dust():
    control = Range(0.1, 4.0, 0.1, start=1.0, words=lambda v: f"divided by {v:.1f}")
    assert control.clean(0.1 + 0.2) == 0.3
    assert control.first == 1.0
    assert control.ends() == [0.1, 4.0]
    assert len(control.values(9)) <= 11
    assert control.say(1.0) == "divided by 1.0"
    assert all(len(repr(value)) < 5 for value in control.values(40))


def test_range_is_a_whole_number_of_steps():
    with pytest.raises(ValueError, match="whole number of steps"):
        Range(0, 10, 4)
    assert Range(0.1, 5.0, 0.1).ends() == [0.1, 5.0]


@pytest.mark.parametrize("wrong", [(1, 1, 1), (2, 1, 1), (0, 1, 0), (0, 1, -1)])
def test_range_refuses(wrong):
    with pytest.raises(ValueError, match="Range"):
        Range(*wrong)
    with pytest.raises(ValueError, match="start"):
        Range(0, 1, 0.1, start=2)


def test_choice():
    control = Choice(["a", "b"], start="b")
    assert control.first == "b"
    assert control.say("a") == "a"
    named = Choice({"one head": 1, "two heads": 2})
    assert named.first == 1
    assert named.say(2) == "two heads"
    assert named.values() == [1, 2]
    with pytest.raises(ValueError, match="none of"):
        named.clean(3)
    with pytest.raises(ValueError, match="at least one"):
        Choice([])
    with pytest.raises(ValueError, match="start"):
        Choice(["a"], start="b")


def test_toggle_and_text():
    assert Toggle().say(True) == "on"
    assert Toggle(start=1).first is True
    text = Text("hello", max_length=7)
    assert text.clean("x" * 100) == "x" * 7
    assert text.say("x" * 7) == "cut at 7 characters"
    assert text.say("x") == ""
    assert all(len(value) <= 7 for value in text.values())
    assert "" in text.values()


# --- the registry ---


def test_registered_sliders_are_listed():
    toy, _ = make(size=Range(1, 3))
    assert course.sliders()[-1][0] == "98.toy" or ("98.toy", toy, toy.slider.controls) in (
        course.sliders()
    )
    assert find("98.toy").draw is toy
    assert find(toy).controls["size"].label == "size"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"lesson": "1", "x": Range(0, 1)}, "two digits"),
        ({"lesson": "01"}, "at least one control"),
        ({"lesson": "01", "x": 3}, "must be a Range"),
        ({"lesson": "01", "x": Range(0, 1), "given": 3}, "given"),
    ],
)
def test_slider_refuses(arguments, said):
    with pytest.raises(ValueError, match=said):
        slider(**arguments)


def test_two_sliders_of_one_name():
    make(x=Range(0, 1))
    with pytest.raises(ValueError, match="already registered"):

        @slider(lesson="98", x=Range(0, 1))
        def toy(x):
            return say(x)


def test_unknown_slider():
    with pytest.raises(KeyError, match="no slider"):
        find("98.nothing")
    with pytest.raises(TypeError, match="@slider"):
        explore(say)


def test_sweep_has_start_grid_ends_and_corners():
    make(size=Range(1, 20, 1, start=7), on=Toggle(), name=Choice(["a", "b", "c"]))
    values = list(sweep("98.toy"))
    assert values[0] == {"size": 7, "on": False, "name": "a"}
    assert {one["size"] for one in values} >= {1, 20}
    assert {one["name"] for one in values} == {"a", "b", "c"}
    assert {"size": 20, "on": True, "name": "c"} in values
    assert len({repr(one) for one in values}) == len(values)


def test_sweep_is_bounded():
    make(**{f"x{i}": Toggle() for i in range(12)})
    assert len(list(sweep("98.toy"))) < 100


def test_picture_uses_what_is_given():
    @slider(x=Range(0, 3), lesson="98", given=lambda: {"model": "small"})
    def needs(x, model):
        """Needs a model."""
        return say(f"{x} {model}")

    assert picture("98.needs").alt == "alt 0 small"
    assert picture("98.needs", {"x": 2}, {"model": "mine"}).alt == "alt 2 mine"


# --- shown ---


def test_plain_python_prints_the_alt_text(capsys):
    toy, calls = make(size=Range(1, 3))
    explore(toy, size=2)
    assert calls == [{"size": 2}]
    assert capsys.readouterr().out.strip() == "alt {'size': 2}"


def test_explore_refuses_unknown_controls():
    toy, _ = make(size=Range(1, 3))
    with pytest.raises(ValueError, match="no control width; its controls are size"):
        explore(toy, width=2)


def test_moving_a_control_redraws_once():
    toy, calls = make(size=Range(1, 3, words=lambda v: f"{v} wide"), on=Toggle())
    front = stage(toy).front("first")
    assert front.words == {"size": "1 wide", "on": "off"}
    front.values = {"size": 3, "on": True}
    assert calls == [{"size": 3, "on": True}]
    assert front.words == {"size": "3 wide", "on": "on"}
    assert "alt {&#x27;size&#x27;: 3" in front.picture
    front.close()


def test_choices_travel_by_their_place():
    toy, calls = make(kind=Choice({"first": "a", "second": "b"}))
    front = stage(toy).front("first")
    assert front.controls[0]["options"] == ["first", "second"]
    front.values = {"kind": 1}
    assert calls == [{"kind": "b"}]
    front.close()


def test_typed_text_is_cut():
    toy, calls = make(text=Text(max_length=5))
    front = stage(toy).front("first")
    front.values = {"text": "abcdefgh"}
    assert calls == [{"text": "abcde"}]
    front.close()


def _failing():
    @slider(x=Range(0, 3), lesson="98")
    def fails(x):
        """Fails at its end."""
        if x == 3:
            raise ValueError("no <b>three</b>")
        return say(x)

    return fails


def test_an_error_takes_the_place_of_the_picture():
    front = stage(_failing()).front("first")
    front.values = {"x": 3}
    assert "could not be drawn at x = 3" in front.picture
    assert "ValueError" in front.picture
    assert "<b>" not in front.picture
    front.values = {"x": 2}
    assert "alt 2" in front.picture
    front.close()


def test_an_error_in_what_is_given_is_shown_too(capsys):
    @slider(x=Range(0, 3), lesson="98", given=lambda: {"model": 1 / 0})
    def needs(x, model):
        """Needs a model."""
        return say(x)

    explore(needs)
    assert "could not be drawn: ZeroDivisionError" in capsys.readouterr().out


def test_an_error_is_raised_under_strict(monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "1")
    fails = _failing()
    with pytest.raises(ValueError, match="three"):
        explore(fails, x=3)
    front = stage(fails).front("first")
    with pytest.raises(ValueError, match="three"):
        front.values = {"x": 3}
    front.close()


def test_what_is_no_picture_is_an_error():
    @slider(x=Range(0, 3), lesson="98")
    def text(x):
        return "a text"

    assert "could not be drawn" in stage(text).render()


def test_still_picture_for_readers_without_a_kernel():
    toy, _ = make(size=Range(1, 3, words=lambda v: "<i>"), on=Toggle(label="<b>on</b>"))
    one = stage(toy)
    still = one.still(one.render())
    assert "alt {" in still
    assert "&lt;b&gt;on&lt;/b&gt;" in still
    assert "&lt;i&gt;" in still
    assert "<i>" not in still


def test_the_front_knows_what_it_must():
    toy, _ = make(size=Range(0.1, 2.0, 0.1), text=Text("a", max_length=9), kind=Choice(["x"]))
    front = stage(toy).front("first")
    size, text, kind = front.controls
    assert size == {
        "name": "size", "kind": "range", "label": "size", "min": 0.1, "max": 2.0, "step": 0.1,
        "digits": 1,
    }  # fmt: skip
    assert text["max_length"] == 9
    assert kind["options"] == ["x"]
    front.close()


def test_import_loads_no_widgets(measured):
    """A lesson's first cell of a lesson is bounded by its imports."""
    code = (
        "import sys, time; t = time.perf_counter(); import course; d = time.perf_counter() - t; "
        "print(d, 'ipywidgets' in sys.modules, 'matplotlib' in sys.modules, "
        "'IPython' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, *loaded = out.stdout.split()
    assert loaded == ["False"] * 3
    measured(f"import course: {float(seconds):.2f} s (the first cell of a lesson: 3)")


def test_names_of_the_package_are_functions():
    course.sliders()
    course.exercises()
    for name in course.__all__:
        assert callable(getattr(course, name)), name
