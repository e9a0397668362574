"""Every exercise of the course: right answers pass, wrong ones are told what is wrong with them."""

import inspect

import course
import numpy as np
import pytest
from course.exercises import _registry, get
from course.exercises._compare import changed, compare

FAILED = _registry.load_lessons()
NAMES = course.exercises() if not FAILED else sorted(_registry._exercises)
ALSO_RIGHT = [(name, i) for name in NAMES for i in range(len(get(name).also_right))]
MISTAKES = [(name, mistake.name) for name in NAMES for mistake in get(name).mistakes]


class EqualsEverything:
    """Answers True to every comparison, whatever it is compared with."""

    shape, dtype, ndim, size = (), np.dtype(float), 0, 1

    def __eq__(self, other):
        return True

    __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = object.__hash__

    def __ne__(self, other):
        return False

    def __bool__(self):
        return True

    def __array__(self, dtype=None, copy=None):
        return np.array([self], dtype=object)


def test_every_lesson_loads():
    assert FAILED == {}


@pytest.mark.parametrize("name", NAMES)
def test_reference_passes(name):
    report = course.check(name, get(name).reference)
    assert report.status == "passed", str(report)
    assert report.mistake is None


@pytest.mark.parametrize(("name", "index"), ALSO_RIGHT)
def test_other_right_answers_pass(name, index):
    report = course.check(name, get(name).also_right[index])
    assert report.status == "passed", str(report)


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_named_mistakes_are_named(name, mistake):
    known = next(one for one in get(name).mistakes if one.name == mistake)
    report = course.check(name, known.function)
    assert report.status in ("wrong", "error"), "accepted"
    assert report.mistake == mistake, str(report)
    assert known.message in report.message


def _zeros(value):
    """Something of the same form with nothing in it."""
    if isinstance(value, np.ndarray):
        return np.zeros_like(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_zeros(one) for one in value)
    if isinstance(value, dict):
        return {key: _zeros(one) for key, one in value.items()}
    if isinstance(value, str):
        return ""
    if isinstance(value, (bool, int, float, np.number)):
        return type(value)(0)
    return None


def _fill_nan(value):
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.full_like(value, np.nan)
    if isinstance(value, (tuple, list)):
        return type(value)(_fill_nan(one) for one in value)
    if isinstance(value, dict):
        return {key: _fill_nan(one) for key, one in value.items()}
    return float("nan")


def _scribble(value):
    """Write into whatever can be written into; True if something could."""
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "biuf":
        value.flat[0] = not value.flat[0] if value.dtype.kind == "b" else value.flat[0] + 1
        return True
    if isinstance(value, list):
        value.append(None)
        return True
    if isinstance(value, dict):
        return any([_scribble(one) for one in value.values()])
    if isinstance(value, tuple):
        return any([_scribble(one) for one in value])
    return False


def _scribbler(reference):
    def writes(*args, **kwargs):
        result = reference(*args, **kwargs)
        result = result.copy() if isinstance(result, np.ndarray) else result
        for value in [*args, *kwargs.values()]:
            _scribble(value)
        return result

    return writes


def _raiser(error):
    def raises(*args, **kwargs):
        raise error

    return raises


NONSENSE = {
    "returns None": lambda reference: lambda *args, **kwargs: None,
    "returns zeros": lambda reference: lambda *a, **k: _zeros(reference(*a, **k)),
    "returns NaN": lambda reference: lambda *a, **k: _fill_nan(reference(*a, **k)),
    "returns its input": lambda reference: lambda *a, **k: [*a, *k.values()][0],
    "returns itself equal to everything": lambda reference: lambda *a, **k: EqualsEverything(),
    "returns objects": lambda reference: lambda *a, **k: np.array([EqualsEverything()]),
    "returns a generator": lambda reference: lambda *a, **k: (one for one in [1]),
    "returns a text": lambda reference: lambda *a, **k: "the answer",
    "raises ValueError": lambda reference: _raiser(ValueError("no")),
    "raises NotImplementedError": lambda reference: _raiser(NotImplementedError()),
    "exits": lambda reference: _raiser(SystemExit(0)),
    "is interrupted": lambda reference: _raiser(KeyboardInterrupt()),
    "is no function": lambda reference: 3,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_is_rejected(name, kind):
    report = course.check(name, NONSENSE[kind](get(name).reference))
    assert report.status in ("wrong", "error")
    assert report.message.strip()


def _takes_what_can_be_written_into(name):
    exercise = get(name)
    return any(
        [
            _scribble(one)
            for args, kwargs in map(exercise.inputs, range(len(exercise.cases)))
            for one in [*args, *kwargs.values()]
        ]
    )


# The others take texts and numbers, or are there to change their arguments.
@pytest.mark.parametrize(
    "name",
    [n for n in NAMES if not get(n).may_write and _takes_what_can_be_written_into(n)],
)
def test_writing_into_inputs_is_rejected(name):
    report = course.check(name, _scribbler(get(name).reference))
    assert report.status == "wrong", str(report)
    assert "writes into its input" in report.message


@pytest.mark.parametrize("name", NAMES)
def test_blank_is_not_started(name):
    def blank(*args, **kwargs):
        """A docstring."""
        ...

    assert course.check(name, blank).status == "not started"


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_equal_each_time_and_never_shared(name):
    exercise = get(name)
    for index in range(len(exercise.all_cases)):
        first, second = exercise.inputs(index), exercise.inputs(index)
        assert not changed(first, second)
        _scribble(first[0])
        assert not changed(second, exercise.inputs(index))


@pytest.mark.parametrize("name", NAMES)
def test_cases_have_distinct_titles(name):
    titles = [case.title for case in get(name).all_cases]
    assert len(set(titles)) == len(titles)
    assert all(title.strip() for title in titles)


@pytest.mark.parametrize("name", NAMES)
def test_reference_is_fit_to_show(name):
    exercise = get(name)
    source = exercise.source()
    assert source.startswith(("def ", "class "))
    assert exercise.summary
    signature = inspect.signature(exercise.reference)
    assert signature == inspect.signature(inspect.unwrap(exercise.reference))


@pytest.mark.parametrize("name", NAMES)
def test_cases_differ_from_each_other(name):
    """A reference that gives the same on every case would be passed by a constant."""
    exercise = get(name)
    results = []
    for index in range(len(exercise.cases)):
        args, kwargs = exercise.inputs(index)
        result = exercise.reference(*args, **kwargs)
        results.append((result, args, kwargs) if exercise.may_write else result)
    assert len(results) > 1
    assert any(compare(one, results[0]).difference for one in results[1:])
