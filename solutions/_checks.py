"""Checks of what comes in, kept apart so that the functions themselves stay clean.

A public function names its check in a decorator:

    @checked(_softmax_input)
    def softmax(scores, axis=-1): ...

`_softmax_input` takes the same arguments and raises ValueError, in the words "expected ..., got
...". `inspect.unwrap(softmax)` is the bare function.
"""

import functools
import inspect

import numpy as np


def checked(check, numbers=()):
    """Decorate a function so that `check`, called with the same arguments, runs before it.

    numbers: names of parameters that are single numbers. One of NumPy's is handed on as Python's:
    a np.float64 makes float64 of every float32 array that it meets, a float does not.
    """

    def decorate(function):
        names = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def call(*args, **kwargs):
            try:
                check(*args, **kwargs)
            except TypeError:
                # A call with too few or too many arguments is reported in the function's own
                # terms, not in those of its check.
                inspect.signature(function).bind(*args, **kwargs)
                raise
            if numbers:
                args = [_plain(a) if name in numbers else a for name, a in zip(names, args)]
                kwargs = {n: _plain(a) if n in numbers else a for n, a in kwargs.items()}
            return function(*args, **kwargs)

        return call

    return decorate


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def describe(value):
    """What came, in words: "int64 of shape (3,)" for an array, "a list" for a list."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, str, np.generic)):
        return repr(value)
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def _shape_words(shape):
    """(None, 8) as "(any, 8)"; a name in place of a size is kept."""
    inside = ", ".join("any" if size is None else str(size) for size in shape)
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def _fits(actual, shape):
    return len(actual) == len(shape) and all(
        want is None or isinstance(want, str) or want == got
        for got, want in zip(actual, shape, strict=True)
    )


def floats(name, array, ndim=None, shape=None):
    """Raise unless `array` is a float array; with `ndim` axes; of `shape`.

    float16 is for files: sums overflow beyond 65504, and an eps of 1e-12 is 0 in it. A size in
    `shape` may be None or a word such as "length": any size fits, and the word is shown.
    """
    numbers = isinstance(array, (np.ndarray, np.floating))
    if not numbers or array.dtype.kind != "f":
        raise ValueError(f"{name}: expected a NumPy array of floats, got {describe(array)}")
    if array.dtype.itemsize < 4:
        raise ValueError(f"{name}: expected float32 or float64, got {describe(array)}")
    if ndim is not None and array.ndim != ndim:
        axes = "1 axis" if ndim == 1 else f"{ndim} axes"
        raise ValueError(f"{name}: expected floats with {axes}, got {describe(array)}")
    if shape is not None and not _fits(array.shape, shape):
        raise ValueError(
            f"{name}: expected floats of shape {_shape_words(shape)}, got {describe(array)}"
        )


def ids(name, array, upper, shape=None):
    """Raise unless `array` holds integers from 0 to `upper` - 1; of `shape`."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected a NumPy array of integers, got {describe(array)}")
    if shape is not None and not _fits(array.shape, shape):
        raise ValueError(
            f"{name}: expected integers of shape {_shape_words(shape)}, got {describe(array)}"
        )
    if array.size and (array.min() < 0 or array.max() >= upper):
        wrong = array[(array < 0) | (array >= upper)].flat[0]
        raise ValueError(f"{name}: expected ids from 0 to {upper - 1}, got {wrong}")


def mask(name, array, shape):
    """Raise unless `array` is Boolean and broadcasts to `shape`; 0 and 1 are not Boolean."""
    if not isinstance(array, np.ndarray) or array.dtype != np.bool_:
        raise ValueError(
            f"{name}: expected a Boolean array (True = may be attended), got {describe(array)}"
        )
    try:
        fits = np.broadcast_shapes(array.shape, shape) == tuple(shape)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name}: expected a shape that broadcasts to {tuple(shape)}, got {describe(array)}"
        )


def real_tokens(name, array, shape=("batch", "length")):
    """Raise unless `array` marks real tokens: Boolean, or integers 0 and 1; of `shape`."""
    numbers = isinstance(array, np.ndarray) and (array.dtype.kind in "biu")
    if not numbers:
        raise ValueError(
            f"{name}: expected Booleans or the integers 0 and 1 (1 = a real token), "
            f"got {describe(array)}"
        )
    if not _fits(array.shape, shape):
        raise ValueError(f"{name}: expected shape {_shape_words(shape)}, got {describe(array)}")
    if array.dtype != np.bool_ and array.size and (array.min() < 0 or array.max() > 1):
        wrong = array[(array < 0) | (array > 1)].flat[0]
        raise ValueError(f"{name}: expected only 0 and 1 (1 = a real token), got {wrong}")


def whole(name, value, low, high=None):
    """Raise unless `value` is an integer from `low` to `high` (no upper end if None)."""
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not integer or value < low or (high is not None and value > high):
        span = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name}: expected a whole number {span}, got {describe(value)}")


def _number(value):
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def positive(name, value):
    """Raise unless `value` is a finite number above 0."""
    if not _number(value) or not 0 < value < float("inf"):
        raise ValueError(f"{name}: expected a number above 0, got {describe(value)}")


def at_least_zero(name, value):
    """Raise unless `value` is a finite number, 0 or above."""
    if not _number(value) or not 0 <= value < float("inf"):
        raise ValueError(f"{name}: expected a number of at least 0, got {describe(value)}")


def fraction(name, value):
    """Raise unless `value` is a number from 0 up to, not including, 1."""
    if not _number(value) or not 0 <= value < 1:
        raise ValueError(f"{name}: expected a number from 0 to below 1, got {describe(value)}")


def flag(name, value):
    """Raise unless `value` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}: expected True or False, got {describe(value)}")
