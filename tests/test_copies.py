"""Run All tells the truth on copies that are half done or wrong, twice, and after a restart.

The light lessons stand here, each with right, wrong and open answers in one copy; `python
tests/copies.py` does it for every lesson, half-done and wrong copies apart.
"""

import re

import pytest
from copies import (
    COPIES,
    Expected,
    Kernel,
    errors,
    filled_copy,
    run_all,
    text_of,
    untruths,
    with_body,
)
from course import build
from course.exercises import get
from nbformat import v4

LIGHT = ("00", "01", "02", "03", "04")
# What changes from run to run by its nature: the next hint, the clock, and what is made from it.
CHANGES = re.compile(r"^hint\(|timeit|perf_counter|measure", re.MULTILINE)


@pytest.fixture(scope="module", params=LIGHT)
def mixed(request, tmp_path_factory):
    """A mixed copy of a lesson: each cell run twice, and then all again in the same kernel."""
    (lesson,) = build.lessons(numbers=[request.param])
    made, expected = filled_copy(lesson, COPIES["mixed"])
    home = tmp_path_factory.mktemp(f"home{request.param}")
    cells = build.code_cells(made)
    with Kernel(home) as kernel:
        twice = [(kernel.run(cell.source), kernel.run(cell.source)) for cell in cells]
        again = [kernel.run(cell.source) for cell in cells]
    return made, expected, home, twice, again


def test_run_all_reaches_its_end_and_says_what_is_so(mixed):
    made, expected, home, twice, _ = mixed
    assert untruths(made, [first for first, _ in twice], expected, home) == []


def test_running_again_shows_the_same(mixed):
    """A cell run twice, and the whole lesson run twice."""
    made, _, _, twice, again = mixed
    for cell, (first, second), third in zip(build.code_cells(made), twice, again, strict=True):
        assert errors(second) == errors(third) == []
        if not CHANGES.search(cell.source):
            assert text_of(second) == text_of(first), cell.source
            assert text_of(third) == text_of(first), cell.source


@pytest.mark.parametrize("lesson", build.lessons(), ids=lambda lesson: lesson.name)
def test_a_wrong_copy_can_be_made_of_every_lesson(lesson):
    """Each exercise's cell takes one of its named mistakes."""
    made, expected = filled_copy(lesson, ("wrong",))
    cells = [cell.source for cell in build.code_cells(made) if build.exercise_name(cell.source)]
    assert [build.exercise_name(source) for source in cells] == list(expected)
    for source, name in zip(cells, expected, strict=True):
        assert expected[name].status in ("wrong", "error")
        assert expected[name].message in {one.message.split("\n")[0] for one in get(name).mistakes}
        assert not build.is_blank(build.exercise_definition(source))


# ---------------------------------------------------------------- out of order, after a restart


@pytest.fixture(scope="module")
def attention():
    """Lesson 01 with every answer right, as a list of sources."""
    (lesson,) = build.lessons(numbers=["01"])
    made, _ = filled_copy(lesson, ("right",))
    return [cell.source for cell in build.code_cells(made)]


def cell_of(sources, name):
    return next(source for source in sources if build.exercise_name(source) == name)


def test_out_of_order_and_after_a_restart(attention, tmp_path):
    """What a new kernel says to a cell in the middle, and that the cells above mend it."""
    place = attention.index(cell_of(attention, "attention"))
    with Kernel(tmp_path) as kernel:
        early = kernel.run(attention[place])
        assert errors(early) == ["NameError: name 'exercise' is not defined"]
        # Only the imports have run: the answer is right, and calls exercises that are not there.
        kernel.run(attention[0])
        told = text_of(kernel.run(attention[place]))
        assert told.startswith("✗ attention: error")
        assert "comes from a cell above that has not run in this kernel" in told
        assert "Run All Above Selected Cell" in told
        assert "From here on `attention` is the reference" in told
        # A lesson's own cell, too early, is Python's NameError and nothing else.
        assert errors(kernel.run("print(all_scores)")) == [
            "NameError: name 'all_scores' is not defined"
        ]
        above = [kernel.run(source) for source in attention[:place]]
        assert [error for output in above for error in errors(output)] == []
        now = text_of(kernel.run(attention[place]))
        assert now.startswith("✓ attention: passed")
        rest = [kernel.run(source) for source in attention[place + 1 :]]
    fresh = run_all(v4.new_notebook(cells=[v4.new_code_cell(s) for s in attention]), tmp_path)
    for source, mine, right in zip(attention, [*above, [], *rest], fresh, strict=True):
        if source != attention[place] and not CHANGES.search(source):
            assert text_of(mine) == text_of(right), source


def test_an_earlier_cell_run_again_with_another_answer(attention, tmp_path):
    """right, then wrong, then open, then right: the name and the notice follow each time."""
    right = cell_of(attention, "softmax")
    body = right.split('"""')
    wrong = '"""'.join([*body[:2], "\n    return scores * 0.0"])
    blank = '"""'.join([*body[:2], "\n    ..."])
    later = 'print(softmax(np.zeros(2)), softmax.__module__ == "__main__")'
    with Kernel(tmp_path) as kernel:
        kernel.run(attention[0])
        for source, status, shown in (
            (right, "✓ softmax: passed", "[0.5 0.5] True"),
            (wrong, "✗ softmax: wrong", "[0.5 0.5] False"),
            (blank, "○ softmax: not started", "[0.5 0.5] False"),
            (right, "✓ softmax: passed", "[0.5 0.5] True"),
        ):
            assert text_of(kernel.run(source)).startswith(status)
            assert text_of(kernel.run(later)).strip() == shown


# ---------------------------------------------------------------- the helper itself


def test_an_untruth_is_found(tmp_path):
    """`untruths` finds a wrong status, a missing message, an error and a board that differs."""
    source = "@exercise\ndef average(numbers):\n    ..."
    notebook = v4.new_notebook(cells=[v4.new_code_cell(source)])

    def shown(text):
        return [v4.new_output("display_data", {"text/plain": text})]

    blank = shown("○ average: not started\nUntil then `average` is the reference")
    assert untruths(notebook, [blank], {"average": Expected("not started")}, tmp_path) == []
    assert untruths(notebook, [blank], {"average": Expected("passed")}, tmp_path)
    assert untruths(notebook, [blank], {"average": Expected("not started", "why")}, tmp_path)
    assert untruths(notebook, [shown("hello")], {"average": Expected("not started")}, tmp_path)
    broken = [v4.new_output("error", ename="ValueError", evalue="x", traceback=[])]
    found = untruths(notebook, [[*blank, *broken]], {"average": Expected("not started")}, tmp_path)
    assert any("ValueError" in one for one in found)
    assert with_body(source, "return 1").endswith("    return 1")
