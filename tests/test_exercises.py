"""The checks on toy exercises: what learners write, and what they are told."""

import dataclasses
import gc
import itertools
import linecache
import signal
import threading
import time
import warnings
import weakref

import course
import numpy as np
import pytest
from course.exercises import Case, ExerciseNotPassed, Mistake, _compare, _registry, _run, _store
from course.exercises._compare import a, brief, changed, compare, number
from course.exercises._report import inline

_cells = itertools.count(1)


def cell(source, **names):
    """Run source as a notebook's cell is run, so that its lines can be found; return its names."""
    filename = f"/tmp/ipykernel_1/{next(_cells)}.py"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    scope = {"np": np, **names}
    exec(compile(source, filename, "exec"), scope)
    return scope


def function(source, **names):
    """The function that a cell defines last."""
    scope = cell(source, **names)
    return [one for one in scope.values() if callable(one) and hasattr(one, "__code__")][-1]


# --- toy exercises ---


def softmax(scores, axis=-1):
    """Positive weights that sum to 1 along `axis`."""
    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def _no_shift(scores, axis=-1):
    powers = np.exp(scores)
    return powers / powers.sum(axis=axis, keepdims=True)


def _global_shift(scores, axis=-1):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum(axis=axis, keepdims=True)


def _in_place(scores, axis=-1):
    scores -= scores.max(axis=axis, keepdims=True)
    return softmax(scores, axis)


def _no_keepdims(scores, axis=-1):
    powers = np.exp(scores - scores.max(axis=axis))
    return powers / powers.sum(axis=axis)


def softmax_exercise(**changes):
    fields = {
        "name": "toy_softmax",
        "lesson": "01",
        "reference": softmax,
        "cases": [
            Case("scores of unit size", lambda rng: ((rng.normal(size=(2, 3)),), {})),
            Case(
                "two rows of scores, far apart",
                lambda rng: ((np.array([[0.0, 0.0], [1000.0, 0.0]]),), {}),
                why="shows a maximum that is not the row's own",
            ),
            Case("down the columns", lambda rng: ((rng.normal(size=(2, 3)),), {"axis": 0})),
        ],
        "mistakes": [
            Mistake("no_shift", _no_shift, "You exponentiate the raw scores."),
            Mistake("global_shift", _global_shift, "Each row needs its own maximum."),
            Mistake("no_keepdims", _no_keepdims, "The maximum has lost its axis."),
            Mistake("in_place", _in_place, "You subtract in place."),
        ],
        "also_right": [
            lambda scores, axis=-1: np.apply_along_axis(lambda r: softmax(r), axis, scores),
            lambda scores, axis=-1: softmax(scores, axis),
        ],
        "hints": ["nudge", "closer", "almost"],
    }
    return fields | changes


def pair(x):
    """The sum and the mean of `x`."""
    return x.sum(), x / 2


def toy(reference, cases, name="toy", **changes):
    """An exercise around a reference, with mistakes that nobody makes."""
    wrong = [lambda *args, **kwargs: 1, lambda *args, **kwargs: "2", lambda *args, **kwargs: [3]]
    fields = softmax_exercise(
        name=name,
        reference=reference,
        cases=[Case(f"case {i}", lambda rng, one=one: ((one,), {})) for i, one in enumerate(cases)],
        mistakes=[Mistake(f"m{i}", one, f"mistake {i}") for i, one in enumerate(wrong)],
        also_right=[reference, reference],
    )
    return fields | changes


@pytest.fixture(autouse=True)
def learner(tmp_path, monkeypatch):
    """A learner's folder of this test alone, and a course of toy exercises alone."""
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "learner"))
    monkeypatch.delenv("COURSE_STRICT", raising=False)
    with _registry.only():
        _registry.register(**softmax_exercise())
        yield tmp_path / "learner"


def add(**fields):
    return _registry.register(**fields)


# --- registering ---


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mistakes": []}, "at least 3 named mistakes"),
        ({"also_right": [softmax]}, "at least 2 other right"),
        ({"hints": ["one", "two"]}, "exactly 3 hints"),
        ({"hints": ["one", "two", " "]}, "exactly 3 hints"),
        ({"cases": []}, "at least one case"),
        ({"lesson": "1"}, "two digits"),
        ({"name": "not a name"}, "Python name"),
        ({"reference": lambda x: x}, "docstring"),
        ({"reference": 3}, "callable"),
        ({"mistakes": [Mistake("same", _no_shift, "x")] * 3}, "share a name"),
        ({"mistakes": [Mistake(n, softmax, "x") for n in "abc"]}, "reference itself"),
        ({"mistakes": [Mistake(n, _no_shift, " ") for n in "abc"]}, "needs a message"),
    ],
)
def test_register_refuses(changes, said):
    with pytest.raises(ValueError, match=said):
        add(**softmax_exercise(**{"name": "other"} | changes))


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="already registered"):
        add(**softmax_exercise())


def test_exercises_are_listed_by_lesson():
    add(**softmax_exercise(name="early", lesson="00"))
    assert course.exercises() == ["early", "toy_softmax"]


def test_unknown_name_lists_the_nearest():
    with pytest.raises(KeyError, match="toy_softmax"):
        course.check("toy_sofmax", softmax)


def test_inputs_are_fresh_and_equal():
    exercise = _registry.get("toy_softmax")
    one, two = exercise.inputs(0)[0][0], exercise.inputs(0)[0][0]
    assert one is not two
    np.testing.assert_array_equal(one, two)
    one += 1
    np.testing.assert_array_equal(two, exercise.inputs(0)[0][0])


def test_a_case_of_shared_data_is_copied():
    shared = np.ones(3)
    add(**toy(lambda_with_doc(lambda x: x + 1), [shared, np.zeros(3)]))

    def writes(x):
        result = x + 1
        x[:] = 7
        return result

    assert "writes into" in course.check("toy", writes).message
    np.testing.assert_array_equal(shared, np.ones(3))


def lambda_with_doc(inner):
    def reference(x):
        """A toy."""
        return inner(x)

    return reference


# --- right answers ---


def test_reference_and_others_pass():
    for answer in [softmax, *_registry.get("toy_softmax").also_right]:
        report = course.check("toy_softmax", answer)
        assert report.passed
        assert "all 3 cases" in report.message


def test_pass_tells_the_largest_difference():
    report = course.check("toy_softmax", lambda scores, axis=-1: softmax(scores, axis) + 1e-12)
    assert report.passed
    assert "1.0e-12" in report.message


def test_wider_floats_pass_with_a_note():
    add(**toy(lambda_with_doc(lambda x: x / 2), [np.ones(3, np.float32), np.zeros(2, np.float32)]))
    report = course.check("toy", lambda x: x / np.float64(2))
    assert report.passed
    assert "float64" in report.notes[0]


def test_narrower_floats_are_wrong_where_digits_are_lost():
    add(**toy(lambda_with_doc(lambda x: x / 3), [np.ones(3), np.zeros(2)]))
    report = course.check("toy", lambda x: (x / 3).astype(np.float32))
    assert report.status == "wrong"
    assert "is float32; expected float64" in report.message
    assert "half of their digits lost" in report.message


def test_narrower_floats_pass_where_they_hold_the_values():
    add(**toy(lambda_with_doc(lambda x: x * 3), [np.ones(3), np.array([np.nan, np.inf])]))
    assert course.check("toy", lambda x: (x * 3).astype(np.float32)).passed
    add(**toy(lambda_with_doc(lambda x: float(x.sum() / 3)), [np.ones(3, "f"), np.ones(4, "f")]))
    assert course.check("toy", lambda x: x.sum() / np.float32(3)).passed


def test_a_mistake_that_widens_is_named_for_a_float32_answer():
    wrong = [lambda x: x.astype(float) / 7, lambda x: x / 8, lambda x: x / 9]
    mistakes = [Mistake(f"by_{i}", one, f"by {i}") for i, one in enumerate(wrong, 7)]
    fields = toy(lambda_with_doc(lambda x: x / 3), [np.ones(3, np.float32)])
    add(**(fields | {"mistakes": mistakes}))
    assert course.check("toy", lambda x: x / np.float32(7)).mistake == "by_7"


def test_wider_floats_pass_with_a_note_where_an_exercise_compares_by_itself():
    fields = toy(lambda_with_doc(lambda x: x / 2), [np.ones(3, np.float32)])
    add(**(fields | {"compare": lambda mine, right, args: None}))
    assert "float64" in course.check("toy", lambda x: x / np.float64(2)).notes[0]
    assert course.check("toy", lambda x: x / 2).notes == ()


def test_float32_is_compared_as_float32():
    x = np.linspace(0, 1, 1000, dtype=np.float32)
    add(**toy(lambda_with_doc(lambda x: x.sum()), [x, x[:10]]))
    assert course.check("toy", lambda x: sum(x.tolist())).passed
    assert not course.check("toy", lambda x: x.sum() * 1.001).passed


def test_renamed_parameter_passes_with_a_note():
    report = course.check("toy_softmax", lambda x, axis=-1: softmax(x, axis))
    assert report.passed
    assert "no parameter named `scores`: a call that passes it by name" in report.notes[0]


def test_view_of_the_input_passes():
    add(**toy(lambda_with_doc(lambda x: x.T.copy()), [np.ones((2, 3)), np.zeros((3, 1))]))
    assert course.check("toy", lambda x: x.T).passed


def test_list_for_a_returned_tuple_passes():
    add(**toy(pair, [np.ones(3), np.arange(2.0)]))
    assert course.check("toy", lambda x: [x.sum(), x / 2]).passed


def test_whole_number_for_a_float_passes_but_not_in_arrays():
    add(**toy(lambda_with_doc(lambda x: float(x)), [1, 2]))
    assert course.check("toy", lambda x: x).passed
    assert not course.check("toy", lambda x: x == 1).passed


def test_nan_is_right_only_where_the_reference_has_it():
    add(**toy(lambda_with_doc(lambda x: x / x), [np.array([0.0, 1.0]), np.array([2.0])]))
    with np.errstate(all="ignore"):
        assert course.check("toy", lambda x: x / x).passed
        report = course.check("toy", lambda x: x / 0 * 0)
    assert report.status == "wrong"
    assert "NaN" in report.message


# --- wrong answers ---


@pytest.mark.parametrize("mistake", ["no_shift", "global_shift", "no_keepdims", "in_place"])
def test_named_mistakes(mistake):
    known = {one.name: one for one in _registry.get("toy_softmax").mistakes}[mistake]
    report = course.check("toy_softmax", known.function)
    assert report.status == "wrong"
    assert report.mistake == mistake
    assert report.message.startswith(known.message)


def test_place_values_and_counts():
    add(**toy(lambda_with_doc(lambda x: x * 1.0), [np.arange(6.0).reshape(2, 3), np.ones((2, 3))]))

    def off(x):
        result = x * 1.0
        result[1, 2] += 0.25
        return result

    report = course.check("toy", off)
    assert report.mistake is None
    assert "On the case “case 0”" in report.message
    assert "at `[1, 2]` yours is 5.25; expected 5.0." in report.message
    assert ("how many differ", "1 of 6 entries") in report.rows
    assert ("largest difference", "0.25") in report.rows
    assert report.inputs.startswith("x = np.array([[0., 1., 2.],\n")
    assert report.inputs.endswith("\ntoy(x)")


def test_case_is_named_and_explained():
    report = course.check("toy_softmax", lambda scores, axis=-1: _no_shift(scores, axis) + 0.0)
    assert report.case == "two rows of scores, far apart"
    assert "shows a maximum" in report.inputs


def test_shapes_are_told():
    report = course.check("toy_softmax", lambda scores, axis=-1: softmax(scores, axis).T)
    assert "shape (3, 2); expected shape (2, 3)" in report.message
    assert ("look at", "the shape is the right one transposed") in report.rows


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: -x, "opposite sign"),
        (lambda x: 3 * x, "3 times"),
        (lambda x: x + 2, "+2 away"),
        (lambda x: x[..., ::-1], "reverse order"),
        (lambda x: np.swapaxes(x, -1, -2), "axes swapped"),
    ],
)
def test_patterns_are_told(change, said):
    x = np.random.default_rng(0).normal(size=(4, 4))
    add(**toy(lambda_with_doc(lambda x: x * 1.0), [x, x + 1]))
    report = course.check("toy", lambda x: change(x) * 1.0)
    assert any(said in text for _, text in report.rows)


def test_kinds_are_told():
    add(**toy(lambda_with_doc(lambda x: x > 0), [np.array([1, -1]), np.array([2, 3])]))
    report = course.check("toy", lambda x: (x > 0).astype(int))
    assert "integer values" in report.message
    assert "expected Boolean" in report.message
    assert "The values are right." in report.message


def test_parts_are_named():
    add(**toy(pair, [np.ones(3), np.arange(2.0)], parts=("total", "halves")))
    report = course.check("toy", lambda x: (x.sum(), x / 3))
    assert "at `halves[0]` yours is 0.333333; expected 0.5." in report.message
    report = course.check("toy", lambda x: (x.sum() + 1, x / 2))
    assert "`total` is 4.0; expected 3.0." in report.message
    report = course.check("toy", lambda x: x.sum())
    assert "expected 2 parts (total, halves)" in report.message
    report = course.check("toy", lambda x: (x.sum(), x / 2, 3))
    assert "has 3 parts; expected 2 parts (total, halves)" in report.message


def test_list_for_an_array_is_told_clearly():
    report = course.check("toy_softmax", lambda scores, axis=-1: softmax(scores, axis).tolist())
    assert report.status == "wrong"
    assert "the right numbers, but in a list" in report.message
    report = course.check("toy_softmax", lambda scores, axis=-1: [1.0, 2.0])
    assert "Even as an array it differs: the result has shape (2,)" in report.message


def test_defaults_are_compared():
    def reference(x, eps=1e-12):
        """A toy with an eps."""
        return x * 1.0 + eps * 0

    add(**toy(reference, [np.ones(3), np.zeros(2)]))

    def other(x, eps=1e-5):
        return x * 1.0

    def none(x, eps):
        return x * 1.0

    assert "defaults to `1e-05` in yours; expected `1e-12`" in course.check("toy", other).message
    assert "Missing" not in course.check("toy", other).message
    assert not course.check("toy", none).passed
    assert "has no parameter `eps`" in course.check("toy", lambda x: x * 1.0).message
    assert course.check("toy", lambda x, **more: x * 1.0).passed


def test_missing_parameters_are_named():
    report = course.check("toy_softmax", lambda scores: softmax(scores))
    assert "Missing: `axis`" in report.message
    report = course.check("toy_softmax", lambda scores, axis, more: softmax(scores))
    assert "Not expected: `more`" in report.message


@pytest.mark.parametrize(
    ("reference", "cases", "answer", "said"),
    [
        (lambda x: x.split(), ["a b", "c"], lambda x: x.split()[:1], "has 1 item; expected 2"),
        (lambda x: x.split(), ["a b", "c"], lambda x: x.upper().split(), "`result[0]` is 'A'"),
        (lambda x: x.lower(), ["AB", "C"], lambda x: x, "is 'AB'; expected 'ab'"),
        (lambda x: {"f1": x}, [1.0, 2.0], lambda x: {"F1": x}, "lacks the key 'f1'"),
        (lambda x: {"f1": x}, [1.0, 2.0], lambda x: {"f1": x + 1}, "`['f1']` is 2.0; expected 1.0"),
        (lambda x: {x}, [1, 2], lambda x: {x, 9}, "has 9 too many"),
        (lambda x: [(x, 1)], ["a", "b"], lambda x: [[x, 1]], "is a list; expected a tuple"),
        (lambda x: [x], [1, 2], lambda x: np.array([x]), "`.tolist()`"),
        (lambda x: x > 1, [1, 2], lambda x: int(x > 1), "an integer; expected False, a Boolean"),
        (lambda x: x + 1, [1, 2], lambda x: x + 1.0, "a float; expected 2, an integer"),
        (lambda x: x.sum(), [np.ones(2), np.ones(3)], lambda x: x.sum, "parentheses"),
        (lambda x: x.sum(), [np.ones(2), np.ones(3)], lambda x: x, "expected one number"),
        (lambda x: None, [1, 2], lambda x: x, "expected None"),
        (lambda x: np.ones(x), [1, 2], lambda x: np.ones(x).tolist, "parentheses"),
        (lambda x: np.ones((2, x)), [1, 2], lambda x: [[1.0], [1.0, 2.0]], "unequal length"),
        (lambda x: np.ones(x), [1, 2], lambda x: np.array([None] * x), "Python objects"),
        (lambda x: np.ones((1, x)), [1, 2], lambda x: np.matrix(np.ones((1, x))), "plain array"),
        (lambda x: np.ones((x, 1)), [2, 3], lambda x: np.ones(x), "axis of length 1"),
    ],
)  # fmt: skip
def test_other_types(reference, cases, answer, said):
    add(**toy(lambda_with_doc(reference), cases))
    assert course.check("toy", lambda x: reference(x)).passed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        report = course.check("toy", answer)
    assert report.status == "wrong"
    assert said in str(report)


@dataclasses.dataclass
class Answer:
    text: str
    score: float


def test_records_are_compared_by_field():
    add(**toy(lambda_with_doc(lambda x: Answer("a", x)), [1.0, 2.0]))
    assert course.check("toy", lambda x: Answer("a", x)).passed
    assert "`score` is 3.0; expected 1.0" in course.check("toy", lambda x: Answer("a", 3.0)).message
    assert "expected an Answer" in course.check("toy", lambda x: ("a", x)).message


def test_own_comparison():
    def one_of(mine, right, args):
        return None if mine in args[0] else f"{mine} is not among {args[0]}"

    exercise = toy(lambda_with_doc(lambda x: x[0]), [[1, 2], [3, 4]], compare=one_of)
    add(**exercise)
    assert course.check("toy", lambda x: x[1]).passed
    assert "9 is not among [1, 2]" in course.check("toy", lambda x: 9).message
    assert not course.check("toy", lambda x: None).passed
    assert not course.check("toy", lambda x: float("nan")).passed
    assert not course.check("toy", lambda x: EqualsEverything()).passed


def test_own_comparison_that_breaks_on_an_odd_answer_rejects_it():
    def breaks(mine, right, args):
        raise TypeError("odd")

    add(**toy(lambda_with_doc(lambda x: x), [1, 2], compare=breaks))
    report = course.check("toy", lambda x: x)
    assert report.status == "wrong"
    assert "odd" in report.message


def test_errors_that_are_wanted():
    def reference(x):
        """A toy that refuses."""
        if x < 0:
            raise ValueError("expected x >= 0")
        return x

    wanted = [Case("a negative number", lambda rng: ((-1,), {}))]
    add(**toy(reference, [1, 2], raises=wanted))
    assert course.check("toy", lambda x: reference(x)).passed
    assert "should raise a ValueError; yours returns -1" in course.check("toy", lambda x: x).message

    def other(x):
        if x < 0:
            raise KeyError(x)
        return x

    report = course.check("toy", other)
    assert report.status == "error"
    assert "should raise a ValueError, but: your function raised KeyError" in report.message


def test_functions_that_may_write_are_compared_by_what_they_wrote():
    def reference(x):
        """Adds one in place."""
        x += 1

    add(**toy(reference, [np.ones(3), np.zeros(2)], may_write=True))
    assert course.check("toy", reference).passed

    def twice(x):
        x += 2

    report = course.check("toy", twice)
    assert "after the call" in report.message
    assert not course.check("toy", lambda x: None).passed


# --- code that misbehaves ---


class EqualsEverything:
    def __eq__(self, other):
        return True

    __hash__ = object.__hash__


class ReprRaises:
    def __repr__(self):
        raise RuntimeError("no")


class OddError(Exception):
    def __str__(self):
        raise RuntimeError("no")


def _raise(error):
    def answer(scores, axis=-1):
        raise error

    return answer


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("a <b> message"), "ValueError: a <b> message"),
        (SystemExit(0), "calls `exit`"),
        (KeyboardInterrupt(), "interrupted"),
        (RecursionError("deep"), "without end"),
        (MemoryError(), "more memory"),
        (NotImplementedError(), "still to be written"),
        (NameError("name 'np' is not defined"), "first cell"),
        (StopIteration(), "StopIteration"),
        (GeneratorExit(), "GeneratorExit"),
        (OddError(), "OddError"),
        (AssertionError("x"), "AssertionError: x"),
    ],
)
def test_errors_are_reported(error, said):
    report = course.check("toy_softmax", _raise(error))
    assert report.status == "error"
    assert said in report.message
    assert "Traceback" not in str(report)


@pytest.mark.parametrize(
    "value",
    [None, EqualsEverything(), ReprRaises(), object, "text", {}, [], (), 3, float("nan"), softmax],
)
def test_nonsense_is_rejected_with_a_reason(value):
    report = course.check("toy_softmax", lambda scores, axis=-1: value)
    assert report.status == "wrong"
    assert "expected an array of shape (2, 3)" in report.message.lower()


def test_missing_return_is_suspected():
    answer = function("def toy_softmax(scores, axis=-1):\n    x = scores\n")
    assert "Is a `return` missing?" in course.check("toy_softmax", answer).message
    answer = function("def toy_softmax(scores, axis=-1):\n    x = scores\n    ...\n")
    assert "A `...` still stands" in course.check("toy_softmax", answer).message


def test_generators_are_told_apart():
    def answer(scores, axis=-1):
        yield softmax(scores)

    async def later(scores, axis=-1):
        return softmax(scores)

    assert "`yield`" in course.check("toy_softmax", answer).message
    assert "`async`" in course.check("toy_softmax", later).message


def test_writes_are_named():
    def answer(scores, axis=-1):
        result = softmax(scores, axis)
        scores[0] = 0
        return result

    report = course.check("toy_softmax", answer)
    assert report.status == "wrong"
    assert "writes into its input `scores`" in report.message
    assert "The values it returns are right." in report.message


def test_prints_are_caught_and_shortened(capsys):
    def answer(scores, axis=-1):
        for i in range(100_000):
            print("line", i)
        return scores

    report = course.check("toy_softmax", answer)
    assert capsys.readouterr().out == ""
    assert report.printed.startswith("line 0\nline 1\n")
    assert len(report.printed.split("\n")) < 20
    assert "more lines" in report.printed


def test_endless_loops_are_stopped():
    add(**softmax_exercise(name="quick", seconds=0.3))

    def endless(scores, axis=-1):
        while True:
            try:
                time.monotonic()
            except:  # noqa: E722
                continue

    def slow_inside(scores, axis=-1):
        while True:
            try:
                time.sleep(10)
            except:  # noqa: E722
                continue

    assert "longer than" in course.check("quick", slow_inside).message
    report = course.check("quick", endless)
    assert report.status == "error"
    assert "longer than 0.3 seconds" in report.message
    assert report.mistake is None
    if hasattr(signal, "getitimer"):
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_a_loop_that_collects_is_stopped_by_its_memory(monkeypatch):
    add(**softmax_exercise(name="quick", seconds=5))
    monkeypatch.setattr(_run, "MEMORY", 2**26)
    collected = []  # of each call the first array, without keeping it alive

    def begin():
        kept = [np.ones(10_000)]
        collected.append(weakref.ref(kept[0]))
        return kept

    def hoard(scores, axis=-1):
        kept = begin()
        while True:
            kept.append(np.ones(10_000))

    def hoard_and_catch(scores, axis=-1):
        kept = begin()
        while True:
            try:
                while True:
                    kept.append(np.ones(10_000))
            except:  # noqa: E722
                pass

    before = _run._memory()
    why = "of memory" if before else "longer than"  # some systems do not say what a process holds
    for function in (hoard, hoard_and_catch):
        report = course.check("quick", function)
        assert report.status == "error"
        assert why in report.message
        assert report.timed_out == (not before)
    # What was collected is let go. Whether the system has it back is up to the allocator.
    gc.collect()
    assert len(collected) >= 2
    assert not any(one() is not None for one in collected)


def test_a_stopped_answer_says_so():
    add(**softmax_exercise(name="quick", seconds=0.2))

    def endless(scores, axis=-1):
        while True:
            pass

    assert course.check("quick", endless).timed_out
    assert not course.check("quick", softmax).timed_out
    assert not course.check("quick", lambda scores, axis=-1: 1 / 0).timed_out


def test_endless_loops_are_stopped_in_another_thread():
    add(**softmax_exercise(name="quick", seconds=0.3))
    reports = []

    def endless(scores, axis=-1):
        while True:
            pass

    worker = threading.Thread(target=lambda: reports.append(course.check("quick", endless)))
    worker.start()
    worker.join(10)
    assert "longer than 0.3 seconds" in reports[0].message
    worker = threading.Thread(target=lambda: reports.append(course.check("quick", softmax)))
    worker.start()
    worker.join(10)
    assert reports[1].passed


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such signals on Windows")
def test_another_timer_goes_on():
    rang = []
    previous = signal.signal(signal.SIGALRM, lambda *args: rang.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.15)
        with _run.time_limit(5):
            pass
        time.sleep(0.3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert rang == [1]


def test_recursion_without_end():
    answer = function("def toy_softmax(scores, axis=-1):\n    return toy_softmax(scores, axis)\n")
    report = course.check("toy_softmax", answer)
    assert "calls itself without end" in report.message
    assert report.trace.count("line 2 of the cell") <= 3


def test_warnings_become_notes():
    def answer(scores, axis=-1):
        np.zeros(1) / np.zeros(1)
        return softmax(scores, axis)

    report = course.check("toy_softmax", answer)
    assert report.passed
    assert "invalid value encountered in divide" in report.notes[0]


def test_own_lines_of_a_traceback_and_no_others():
    source = (
        "def helper(x):\n    return np.linalg.inv(x)\n\n"
        "def toy_softmax(scores, axis=-1):\n    y = helper(scores)\n    return y\n"
    )
    report = course.check("toy_softmax", function(source))
    assert report.status == "error"
    assert "in toy_softmax, line 5 of the cell:" in report.trace
    assert "in helper, line 2 of the cell:" in report.trace
    assert "--> " in report.trace
    assert "return np.linalg.inv(x)" in report.trace
    assert "linalg.py" not in report.trace
    assert "_run" not in report.trace


def test_what_is_no_function():
    assert course.check("toy_softmax", 3).status == "wrong"
    assert course.check("toy_softmax", None).status == "wrong"


def test_callables_without_a_signature_or_source():
    assert course.check("toy_softmax", np.exp).status in ("wrong", "error")
    assert course.check("toy_softmax", type).status in ("wrong", "error")
    scope = {}
    exec("def f(scores, axis=-1):\n    return 1", scope)
    assert course.check("toy_softmax", scope["f"]).status == "wrong"


# --- blanks ---


@pytest.mark.parametrize(
    "body",
    ["...", "pass", '"""Doc."""', '"""Doc."""\n    ...', "raise NotImplementedError",
     "raise NotImplementedError('soon')"],
)  # fmt: skip
def test_blanks(body):
    answer = function(f"def toy_softmax(scores, axis=-1):\n    {body}\n")
    assert course.check("toy_softmax", answer).status == "not started"


@pytest.mark.parametrize("body", ["return None", "x = 1", "return ...", "return 0", "scores"])
def test_no_blanks(body):
    answer = function(f"def toy_softmax(scores, axis=-1):\n    {body}\n")
    assert course.check("toy_softmax", answer).status == "wrong"


@pytest.mark.parametrize("body", ["...", "pass", "'doc'"])
def test_blanks_without_source(body):
    scope = {}
    exec(f"def f(scores, axis=-1):\n    {body}", scope)
    assert course.check("toy_softmax", scope["f"]).status == "not started"
    exec("def g(scores, axis=-1):\n    return scores", scope)
    assert course.check("toy_softmax", scope["g"]).status == "wrong"


# --- in the notebook ---


RIGHT = (
    "def toy_softmax(scores, axis=-1):\n"
    '    """Positive weights."""\n'
    "    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))\n"
    "    return powers / powers.sum(axis=axis, keepdims=True)\n"
)


def learn(source):
    return cell("@exercise\n" + source, exercise=course.exercise)["toy_softmax"]


def test_name_stands_for_the_reference_until_it_passes(capsys):
    assert learn("def toy_softmax(scores, axis=-1):\n    ...\n") is softmax
    assert "not started" in capsys.readouterr().out
    assert learn("def toy_softmax(scores, axis=-1):\n    return scores\n") is softmax
    assert "From here on `toy_softmax` is the reference" in capsys.readouterr().out
    mine = learn(RIGHT)
    assert mine is not softmax
    assert mine.__code__.co_filename.startswith("/tmp/ipykernel_1/")
    assert "From here on `toy_softmax` is your function" in capsys.readouterr().out
    assert learn("def toy_softmax(scores, axis=-1):\n    return scores\n") is softmax


def test_calling_the_name_reaches_the_learners_function_not_the_reference(capsys):
    scope = cell(
        "toy_softmax = reference\n@exercise\ndef toy_softmax(scores, axis=-1):\n"
        "    return toy_softmax(scores, axis)\n",
        exercise=course.exercise,
        reference=softmax,
    )
    assert "calls itself without end" in capsys.readouterr().out
    assert scope["toy_softmax"] is softmax


def test_recursion_is_a_right_answer_at_once():
    add(**toy(lambda_with_doc(lambda x: 2**x), [3, 5]))
    source = "@exercise\ndef toy(x):\n    return 1 if x == 0 else 2 * toy(x - 1)\n"
    assert cell(source, exercise=course.exercise)["toy"](4) == 16
    assert _store.read()[0]["exercises"]["toy"]["status"] == "passed"


def test_misspelled_name(capsys):
    scope = cell("@exercise\ndef toy_softmaks(x):\n    return 7\n", exercise=course.exercise)
    assert scope["toy_softmaks"](1) == 7
    assert "Did you mean `toy_softmax`?" in capsys.readouterr().out


def test_lambda_has_no_name(capsys):
    course.exercise(lambda scores: scores)
    assert "write it with `def`" in capsys.readouterr().out


def test_strict_raises(monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "1")
    for body in ("...", "return scores", "return 1 / 0"):
        with pytest.raises(ExerciseNotPassed, match="toy_softmax"):
            learn(f"def toy_softmax(scores, axis=-1):\n    {body}\n")
    with pytest.raises(ExerciseNotPassed, match="No exercise"):
        cell("@exercise\ndef toy_softmaks(x):\n    return 7\n", exercise=course.exercise)
    learn(RIGHT)


def test_faults_of_the_course_are_not_the_learners(capsys, monkeypatch):
    def reference(x):
        """A toy whose case is broken."""
        return x

    add(**(toy(reference, [1, 2]) | {"cases": [Case("broken", lambda rng: 3)] * 2}))
    scope = cell("@exercise\ndef toy(x):\n    return x\n", exercise=course.exercise)
    assert scope["toy"] is reference
    assert "no fault of yours" in capsys.readouterr().out
    monkeypatch.setenv("COURSE_STRICT", "1")
    with pytest.raises(TypeError, match="expected \\(args, kwargs\\)"):
        cell("@exercise\ndef toy(x):\n    return x\n", exercise=course.exercise)


def test_html_is_escaped_and_in_labs_classes():
    report = course.check("toy_softmax", _raise(ValueError("<script>alert(1)</script> `<b>`")))
    html = report._repr_mimebundle_()["text/html"]
    assert "alert alert-danger" in html
    assert "<script>" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    for answer, alert in [(softmax, "success"), (lambda scores, axis=-1: scores, "warning")]:
        html = course.check("toy_softmax", answer)._repr_mimebundle_()["text/html"]
        assert f"alert alert-{alert}" in html


def test_inline_code():
    assert inline("`a<b`").endswith(">a&lt;b</code>")
    assert inline("no code") == "no code"


def test_hints_grow(capsys):
    for expected in ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3", "Hint 3 of 3"]:
        course.hint("toy_softmax")
        assert expected in capsys.readouterr().out
    course.hint(softmax)
    assert "No exercise is called `softmax`" in capsys.readouterr().out


def test_solution_is_the_reference_without_decorators(capsys):
    course.solution("toy_softmax")
    assert capsys.readouterr().out.startswith("def softmax(scores, axis=-1):\n")


# --- what is kept ---


def test_answers_are_kept(learner, capsys):
    learn(RIGHT)
    wrong = "def toy_softmax(scores, axis=-1):\n    return scores\n"
    learn(wrong)
    learn("def toy_softmax(scores, axis=-1):\n    ...\n")
    answers = learner / "answers"
    assert (answers / "toy_softmax.passed.py").read_text() == "@exercise\n" + RIGHT
    assert (answers / "toy_softmax.last.py").read_text() == "@exercise\n" + wrong
    assert _store.answer("toy_softmax", "passed") == "@exercise\n" + RIGHT
    data, said = _store.read()
    assert data["exercises"]["toy_softmax"]["status"] == "wrong"
    assert data["exercises"]["toy_softmax"]["passed"]
    assert data["exercises"]["toy_softmax"]["tries"] == 2
    assert said == ""
    assert not list(learner.glob(".*"))


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"exercises": 3}', '{"exercises": {"x": 1}}', "\x00\xff"]
)
def test_damaged_progress_is_set_aside(learner, damage, capsys):
    learner.mkdir(parents=True)
    (learner / "progress.json").write_bytes(damage.encode("latin-1"))
    learn(RIGHT)
    assert "set aside as progress.damaged-" in capsys.readouterr().out
    kept = list(learner.glob("progress.damaged-*.json"))
    assert len(kept) == 1
    assert kept[0].read_bytes() == damage.encode("latin-1")
    assert _store.read()[0]["exercises"]["toy_softmax"]["passed"]


def test_folder_that_cannot_be_written(learner, capsys):
    learner.write_text("a file where the folder should be")
    assert learn(RIGHT) is not softmax
    assert "could not be saved" in capsys.readouterr().out


def test_lock_left_behind_is_taken_over(learner):
    import os

    learner.mkdir(parents=True)
    (learner / ".lock").touch()
    os.utime(learner / ".lock", (1, 1))
    assert _store.record("toy_softmax", "passed") == ""
    assert not (learner / ".lock").exists()


def test_two_at_a_time_lose_nothing():
    names = [f"e{i}" for i in range(12)]
    workers = [threading.Thread(target=_store.record, args=(name, "passed")) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(_store.read()[0]["exercises"]) == sorted(names)


def test_worked_copies_leave_no_trace(learner, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "solutions/01_attention_solution.ipynb")
    learn(RIGHT)
    assert not learner.exists()


# --- words and comparisons ---


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.0"), (np.float32(0.5), "0.5"), (True, "True"), (np.int64(3), "3"),
     (float("nan"), "NaN"), (float("inf"), "inf"), (1e-12, "1e-12"), (1234567.0, "1.23457e+06")],
)  # fmt: skip
def test_numbers_in_words(value, text):
    assert number(value) == text


def test_values_that_look_alike_get_more_digits():
    found = compare(np.array([0.123456781, 1.0]), np.array([0.123456782, 1.0]), rtol=1e-12, atol=0)
    assert found.difference.sentence == "At `[0]` yours is 0.123456781; expected 0.123456782."


@pytest.mark.parametrize(
    "value",
    [
        np.array([[1.5, -np.inf], [np.nan, 0]]), np.arange(3), np.array([True, False]), 1.5, "a",
        [1], np.zeros((0, 3)), np.float32([0.5]), {"a": np.ones(2)}, [np.ones(2)], (np.ones(1),),
        None, np.array(["a", "b"]), np.int64(3),
    ],
)  # fmt: skip
def test_inputs_are_shown_as_code(value):
    assert compare(eval(_compare.as_code(value)), value).difference is None


def test_large_inputs_are_described():
    assert _compare.as_code(np.ones((20, 20))) == "...  # array of shape (20, 20), float64"


def test_names_of_types():
    assert a(np.ones((2, 3))) == "an array of shape (2, 3)"
    assert a([1]) == "a list of 1 item"
    assert a({}) == "a dict of 0 keys"
    assert a(softmax) == "the function `softmax`"
    assert a(Answer) == "the class `Answer`"
    assert a(Answer("a", 1)) == "an Answer"
    assert brief(ReprRaises()) == "a ReprRaises"
    assert len(brief("x" * 1000)) <= 300


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (np.array([np.nan, 1]), np.array([np.nan, 1]), False),
        (np.array([1, 2]), np.array([1.0, 2.0]), True),
        ([1, [2]], [1, [3]], True),
        ({"a": np.ones(2)}, {"a": np.zeros(2)}, True),
        (np.array(["a", None], dtype=object), np.array(["a", None], dtype=object), False),
        (Answer("a", 1), Answer("a", 2), True),
        ({1}, {1, 2}, True),
        ((1, np.ones(1)), (1, np.ones(1)), False),
    ],
)
def test_changed(before, after, expected):
    assert changed(before, after) is expected
