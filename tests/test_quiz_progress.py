"""Quizzes, the board and the live curve."""

import html
import re

import course
import numpy as np
import pytest
from course.exercises import Case, Mistake, _registry, _store
from course.live import Live, _svg
from course.progress import Board
from course.quiz import _still, _verdict, _widgets

OPTIONS = [
    ("It sums to `1`", "The <division> does that.", False),
    ("It avoids overflow", "exp(1000) is inf.", True),
    ("It sorts", "Nothing is sorted.", False),
]


# --- quiz ---


def test_quiz_prints_in_plain_python(capsys):
    course.quiz("Why?", OPTIONS)
    assert capsys.readouterr().out == (
        "Why?\n  A. It sums to `1`\n  B. It avoids overflow\n  C. It sorts\n"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([("a", "b", True)], "two or more"),
        ([("a", "b", False), ("c", "d", False)], "right one"),
        ([("a", "b"), ("c", "d", True)], "expected \\(answer"),
        ([("a", "", True), ("c", "d", False)], "explanation"),
        (["abc", ("c", "d", True)], "expected \\(answer"),
    ],
)
def test_quiz_refuses(options, said):
    with pytest.raises(ValueError, match=said):
        course.quiz("Why?", options)


def test_every_answer_has_its_own_explanation():
    box = _widgets("Why?", OPTIONS)
    _head, *buttons, said = box.children
    assert [button.description for button in buttons] == [
        "A. It sums to 1",
        "B. It avoids overflow",
        "C. It sorts",
    ]
    for button, (_, why, right) in zip(buttons, OPTIONS, strict=True):
        button.click()
        assert html.escape(why) in said.value
        assert ("alert-success" in said.value) is right
        assert [one.button_style != "" for one in buttons] == [one is button for one in buttons]
    box.close()


def test_still_quiz_folds_each_explanation():
    shown = _still("Why <b>?", OPTIONS)
    assert shown.count("<details>") == 3
    assert "<b>" not in shown
    assert "&lt;division&gt;" in shown
    assert "<summary>B. It avoids overflow</summary>" in shown


def test_verdict_says_right_or_not_in_words():
    assert "Right." in _verdict(1, OPTIONS[1])
    assert "Not this one." in _verdict(0, OPTIONS[0])


# --- progress ---


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "learner"))
    monkeypatch.delenv("COURSE_STRICT", raising=False)

    def reference(x):
        """Twice `x`."""
        return 2 * x

    with _registry.only():
        for name, lesson in [("second", "06"), ("first", "01")]:
            _register(name, lesson, reference)
        yield tmp_path / "learner"


def _register(name, lesson, reference):
    code = compile("register(**fields)", f"{name}.py", "exec")
    fields = {
        "name": name,
        "lesson": lesson,
        "reference": reference,
        "cases": [Case("one", lambda rng: ((1,), {})), Case("two", lambda rng: ((2,), {}))],
        "mistakes": [Mistake(n, lambda x, n=n: n, n) for n in "abc"],
        "also_right": [lambda x: x + x, lambda x: x * 2],
        "hints": ["1", "2", "3"],
    }
    exec(code, {"register": _registry.register, "fields": fields, "__name__": name})


def test_board_counts_by_lesson(two, capsys):
    course.progress()
    assert "0 of 2 exercises passed" in capsys.readouterr().out
    _store.record("first", "wrong")
    _store.record("first", "passed")
    _store.record("first", "wrong")
    _store.record("second", "error")
    course.progress()
    shown = capsys.readouterr().out
    assert "1 of 2 exercises passed" in shown
    assert "01 attention: 1 of 1" in shown
    assert "✓ first: passed" in shown
    assert "✗ second: error" in shown
    assert shown.index("first") < shown.index("second")


def test_board_says_that_a_file_was_damaged(two, capsys):
    two.mkdir()
    (two / "progress.json").write_text("{")
    course.progress()
    assert "set aside" in capsys.readouterr().out
    course.progress()
    assert "set aside" not in capsys.readouterr().out


def test_board_as_html(two):
    board = Board(course.exercises(), {"first": {"passed": "x"}, "second": {"status": "<odd>"}})
    shown = board._repr_mimebundle_()["text/html"]
    assert '<progress value="1" max="2"' in shown
    assert 'href="01_attention.ipynb"' in shown
    assert "<odd>" not in shown
    assert 'scope="row"' in shown


def test_board_of_nothing():
    with _registry.only():
        course.progress()


# --- the live curve ---


@pytest.fixture
def shown(monkeypatch):
    """A notebook that records what is displayed."""
    displays = []

    class Handle:
        def update(self, bundle, raw):
            displays.append(bundle)

    def display(bundle, raw=False, display_id=None):
        displays.append(bundle)
        return Handle()

    import IPython.display

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr("course.live.in_notebook", lambda: True, raising=False)
    monkeypatch.setattr(
        __import__("sys").modules["course.live"], "in_notebook", lambda: True, raising=True
    )
    assert IPython.display.display is display
    return displays


def train(watch, steps=200):
    watch.start(steps)
    for step in range(1, steps + 1):
        watch.step(step, 2 / step, 1e-3)
        if step % 50 == 0:
            watch.dev(step, step / (steps + 1))
    watch.end("all steps done")


def test_live_is_quiet_in_plain_python(capsys):
    train(course.live())
    assert capsys.readouterr().out == ""


def test_live_draws_seldom_and_ends_with_a_picture(shown, monkeypatch):
    monkeypatch.delenv("COURSE_QUIET", raising=False)
    train(course.live("a toy"))
    assert 2 <= len(shown) <= 10
    assert "<progress" in shown[0]["text/html"]
    last = shown[-1]["text/html"]
    assert "<progress" not in last
    assert re.search('<img alt="a toy: step 200 of 200, loss from 2.000 to [^"]+', last)
    assert "best dev score 0.995 at step 200" in shown[-1]["text/plain"]
    assert "all steps done" in shown[-1]["text/plain"]


def test_live_leaves_the_last_picture_alone_when_quiet(shown, monkeypatch):
    monkeypatch.setenv("COURSE_QUIET", "1")
    train(course.live())
    assert len(shown) == 1
    assert "<img alt=" in shown[0]["text/html"]


def test_a_coin_stands_at_one_height_on_both_axes():
    """Its loss, log 2, is the middle of the left axis; its score, 0.5, that of the right one."""
    losses, scores = [(1, np.log(2)), (2, np.log(2))], [(1, 0.5), (2, 0.5)]
    svg = _svg(losses, scores, 2, coin=True)
    (line,) = re.findall(r'y1="([\d.]+)" y2="[\d.]+" stroke="#\w+" stroke-dasharray="2 4"', svg)
    for points in re.findall(r'<polyline points="([^"]+)"', svg):
        assert {point.split(",")[1] for point in points.split()} == {line}
    assert "a coin: loss 0.693, score 0.5" in svg and "a coin" not in _svg(losses, scores, 2)
    watch = Live("a toy", coin=True)
    assert watch.alt.endswith("a coin's loss is 0.693 and its score 0.5")


def test_live_of_nothing(shown):
    watch = Live()
    watch.start(0)
    watch.end("interrupted")
    assert "interrupted" in shown[-1]["text/plain"]


def test_curve_survives_nan_and_infinity():
    losses = [(1, 2.0), (2, float("nan")), (3, float("inf")), (4, 1.0)]
    svg = _svg(losses, [(2, float("nan")), (4, 0.5)], 4)
    assert "nan" not in svg
    assert "inf" not in svg
    assert _svg([(1, 0.0), (2, 0.0)], [], 2)
    assert len(_svg([(i, np.sin(i)) for i in range(100_000)], [], 100_000)) < 20_000
