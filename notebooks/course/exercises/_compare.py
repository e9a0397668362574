"""Where two answers first differ, in words a learner can act on.

`compare(got, expected)` walks through both at once: type first, then shape, then the kind of
number, then the values, so that the first difference named is the one to mend first. It trusts
nothing about `got`: an object that claims to equal everything differs by its type, NaN equals
NaN only where the right answer is NaN too, and arrays of objects are refused.
"""

from __future__ import annotations

import dataclasses
import inspect
import numbers
import types
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KINDS = {"b": "Boolean", "i": "integer", "u": "integer", "f": "float", "c": "complex", "U": "text"}
# Rounding of the narrower types, so that another order of summing still counts as equal.
WIDER = {2: (1e-2, 1e-3), 4: (2e-5, 2e-6)}


@dataclass
class Difference:
    """The first difference: one sentence, and rows of (label, text) beneath it."""

    sentence: str
    rows: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Comparison:
    """What `compare` found: `difference` is None where the two agree."""

    difference: Difference | None = None
    largest: float = 0.0
    notes: list[str] = field(default_factory=list)


def compare(
    got: Any,
    expected: Any,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    parts: Sequence[str] = (),
    any_width: bool = False,
) -> Comparison:
    """Compare an answer with the right one, all the way down.

    any_width: a float32 array may stand for a float64 one, as between two answers of a learner.
    """
    result = Comparison()
    where = _Where("", parts, rtol, atol, any_width)
    result.difference = _compare(got, expected, where, result)
    return result


@dataclass(frozen=True)
class _Where:
    """How to call the place that is being compared, and with which tolerance."""

    path: str
    parts: Sequence[str]
    rtol: float
    atol: float
    any_width: bool = False

    def inside(self, path: str) -> _Where:
        return dataclasses.replace(self, path=path, parts=())

    @property
    def name(self) -> str:
        return f"`{self.path}`" if self.path else "the result"

    @property
    def start(self) -> str:
        return f"`{self.path}`" if self.path else "The result"


def _compare(got, expected, where: _Where, result: Comparison) -> Difference | None:
    if got is None and expected is not None:
        return Difference(f"{where.start} is None; expected {a(expected)}.")
    if inspect.isgenerator(got) or inspect.iscoroutine(got):
        got.close()
        word = "yield" if inspect.isgenerator(got) else "async"
        return Difference(
            f"{where.start} is not computed yet, because the function uses `{word}`; "
            f"expected {a(expected)}, handed back with `return`."
        )
    if _is_function(got) and not _is_function(expected):
        return Difference(
            f"{where.start} is {a(got)}, not its result: parentheses `()` are missing after it. "
            f"Expected {a(expected)}."
        )
    if isinstance(expected, np.ndarray) and expected.ndim > 0:
        return _arrays(got, expected, where, result)
    if _is_number(expected):
        return _numbers(got, expected, where, result)
    if isinstance(expected, str):
        return _texts(got, expected, where)
    if dataclasses.is_dataclass(expected) and not isinstance(expected, type):
        return _records(got, expected, where, result)
    if isinstance(expected, Mapping):
        return _mappings(got, expected, where, result)
    if isinstance(expected, (tuple, list)):
        return _sequences(got, expected, where, result)
    if isinstance(expected, Set):
        return _sets(got, expected, where)
    if expected is None:
        if got is None:
            return None
        return Difference(f"{where.start} is {a(got)}; expected None.")
    return _others(got, expected, where, result)


def _arrays(got, expected, where, result) -> Difference | None:
    if not isinstance(got, np.ndarray):
        return _instead_of_array(got, expected, where, result)
    if isinstance(got, (np.matrix, np.ma.MaskedArray)):
        return Difference(
            f"{where.start} is {a(got)}; expected a plain array (`np.asarray` makes one)."
        )
    got = np.asarray(got)
    if got.dtype.kind not in KINDS:
        return Difference(
            f"{where.start} is an array of Python objects (dtype {got.dtype}); expected "
            f"{KINDS.get(expected.dtype.kind, expected.dtype)} values of shape {expected.shape}. "
            "Rows of unequal length, or a list inside the array, often cause this."
        )
    if got.shape != expected.shape:
        return Difference(
            f"{where.start} has shape {got.shape}; expected shape {expected.shape}.",
            _side_by_side(got, expected) + _shape_advice(got, expected, where),
        )
    kind = _kind_difference(got, expected, where)
    if kind:
        return kind
    return _values(got, expected, where, result)


def _instead_of_array(got, expected, where, result) -> Difference:
    wanted = f"expected an array of shape {expected.shape}"
    if isinstance(got, (list, tuple)):
        try:
            array = np.asarray(got)
        except ValueError:
            return Difference(
                f"{where.start} is a {type(got).__name__} with rows of unequal length; {wanted}."
            )
        inner = _arrays(array, expected, where, Comparison())
        if inner is None:
            return Difference(
                f"{where.start} has the right numbers, but in a {type(got).__name__}; {wanted}. "
                "Put `np.array(...)` around it, because later code uses `.shape`."
            )
        if isinstance(got, tuple) and any(isinstance(part, np.ndarray) for part in got):
            return Difference(f"{where.start} is a tuple of {len(got)} parts; {wanted} alone.")
        return Difference(
            f"{where.start} is a {type(got).__name__}; {wanted}. "
            f"Even as an array it differs: {small_first(inner.sentence)}",
            inner.rows,
        )
    return Difference(f"{where.start} is {a(got)}; {wanted}.")


def _shape_advice(got, expected, where) -> list[tuple[str, str]]:
    if got.ndim > 1 and got.T.shape == expected.shape:
        return [("look at", "the shape is the right one transposed")]
    if got.size == expected.size and np.squeeze(got).shape == np.squeeze(expected).shape:
        if got.ndim == expected.ndim:
            return [("look at", "the right number of axes, but the long ones in other places")]
        return [("look at", "an axis of length 1 is missing or too many (`keepdims`, `None`)")]
    if got.size == expected.size and got.size > 1:
        return [("look at", "as many numbers as expected, arranged in another way")]
    return []


def _kind_difference(got, expected, where) -> Difference | None:
    have, want = KINDS.get(got.dtype.kind), KINDS.get(expected.dtype.kind)
    if have == want:
        return None
    values = {"Boolean": "True or False", "integer": "whole numbers", "float": "floats"}
    more = ""
    if {have, want} <= {"Boolean", "integer", "float"}:
        with np.errstate(all="ignore"):
            if np.array_equal(got.astype(float), expected.astype(float)):
                more = " The values are right."
    return Difference(
        f"{where.start} holds {have} values (dtype {got.dtype}); expected {want} values "
        f"({values.get(want, want)}, dtype {expected.dtype}).{more}"
    )


def _tolerance(got, expected, where) -> tuple[float, float]:
    rtol, atol = where.rtol, where.atol
    for array in (got, expected):
        if array.dtype.kind == "f" and array.dtype.itemsize in WIDER:
            wide = WIDER[array.dtype.itemsize]
            rtol, atol = max(rtol, wide[0]), max(atol, wide[1])
    return rtol, atol


def _values(got, expected, where, result) -> Difference | None:
    """Equal shapes and kinds: the first entry that differs, how many do, and by how much."""
    if expected.dtype.kind not in "fc":
        wrong = np.asarray(got != expected)
    else:
        rtol, atol = _tolerance(got, expected, where)
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(got, expected, rtol=rtol, atol=atol, equal_nan=True)
            apart = np.abs(np.where(np.isfinite(expected), got - expected, 0.0))
        if not wrong.any():
            if not where.any_width and _lost_digits(got, expected):
                return Difference(
                    f"{where.start} is {got.dtype}; expected {expected.dtype}. The values are "
                    "right, with half of their digits lost: look for an `astype` or a dtype that "
                    "asks for it."
                )
            finite = apart[np.isfinite(apart)]
            result.largest = max(result.largest, float(finite.max(initial=0.0)))
            if got.dtype.itemsize > expected.dtype.itemsize:
                result.notes.append(wider(got, expected, where.start))
    if not wrong.any():
        return None
    place = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0]) if wrong.ndim else ()
    mine, right = (got[place], expected[place]) if place or wrong.ndim else (got[()], expected[()])
    short_mine, short_right = pair(mine, right)
    at = where.path + (f"[{', '.join(map(str, place))}]" if place else "")
    spot = f"At `{at}`" if place else (f"`{at}`" if at else "The result")
    verb = "yours is" if place else "is"
    sentence = f"{spot} {verb} {short_mine}; expected {short_right}."
    rows = []
    if wrong.size > 1:
        rows.append(("how many differ", f"{int(wrong.sum())} of {wrong.size} entries"))
    if expected.dtype.kind in "fc":
        bad = int((np.isnan(got) & ~np.isnan(expected)).sum())
        if bad and wrong.size > 1:
            rows.append(("NaN", f"{bad} of {wrong.size} entries, where a number is expected"))
        finite = apart[np.isfinite(apart)]
        if finite.size and finite.max() > 0 and wrong.size > 1:
            rows.append(("largest difference", f"{finite.max():.3g}"))
    elif expected.dtype.kind in "iu" and wrong.size > 1:
        gap = np.abs(got.astype(float) - expected.astype(float)).max()
        rows.append(("largest difference", f"{gap:.0f}"))
    rows += _side_by_side(got, expected, place) + _pattern(got, expected)
    return Difference(sentence, rows)


def wider(got, expected, start: str = "The result") -> str:
    """A note for an array of a wider type than the right one."""
    return (
        f"{start} is {got.dtype}, the reference's is {expected.dtype}. np.zeros without a dtype, "
        "an integer mask or np.sqrt(8) makes it wider; a Python float does not."
    )


def _lost_digits(got, expected) -> bool:
    """Whether an array is of a narrower type than the right one, and does not hold its values."""
    narrower = got.ndim > 0 and got.dtype.itemsize < expected.dtype.itemsize
    return narrower and bool((got != expected)[~np.isnan(expected)].any())


def _pattern(got, expected) -> list[tuple[str, str]]:
    """A relation between the two that names the fault: transposed, negated, scaled, shifted."""
    if expected.dtype.kind not in "fiu" or expected.size < 2:
        return []
    with np.errstate(all="ignore"):
        got, expected = got.astype(float), expected.astype(float)
        if not (np.isfinite(got).all() and np.isfinite(expected).all()):
            return []

        def close(one, other):
            return np.allclose(one, other, rtol=1e-5, atol=1e-7)

        square = got.ndim >= 2 and got.shape[-1] == got.shape[-2]
        if square and close(np.swapaxes(got, -1, -2), expected):
            return [("look at", "yours is the expected one with its last two axes swapped")]
        if close(-got, expected):
            return [("look at", "every entry has the opposite sign")]
        if got.shape[-1] > 3 and close(got[..., ::-1], expected):
            return [("look at", "yours is the expected one in reverse order")]
        some = np.abs(expected) > 1e-6
        if some.sum() > 1 and close(got[~some], 0):
            ratio = got[some] / expected[some]
            if close(ratio, ratio.flat[0]) and abs(ratio.flat[0]) > 1e-9:
                return [("look at", f"every entry is {ratio.flat[0]:.6g} times the expected one")]
        gap = got - expected
        if close(gap, gap.flat[0]):
            return [("look at", f"every entry is {gap.flat[0]:+.6g} away from the expected one")]
    return []


def _side_by_side(got, expected, place=()) -> list[tuple[str, str]]:
    """Both arrays, or of larger ones the row with the first difference, to take in at a glance."""
    if got.ndim == 0 or expected.ndim == 0:
        return []
    if max(got.size, expected.size) <= 24 and max(got.ndim, expected.ndim) <= 3:
        return [("yours", show(got)), ("expected", show(expected))]
    row = place[:-1]
    if row and expected.shape[-1] <= 12:
        where = f"[{', '.join(map(str, row))}]"
        return [("your row " + where, show(got[row])), ("expected", show(expected[row]))]
    return []


def _numbers(got, expected, where, result) -> Difference | None:
    want = np.asarray(expected)
    if not _is_number(got):
        if isinstance(got, np.ndarray):
            return Difference(
                f"{where.start} is an array of shape {got.shape}; expected one number, "
                f"{number(expected)}."
            )
        return Difference(f"{where.start} is {a(got)}; expected {a(expected)}.")
    have = np.asarray(got)
    whole = have.dtype.kind in "iu" and want.dtype.kind == "f" and _fits(have)
    if whole:  # a Python 0 where 0.0 is right is no fault
        have = have.astype(want.dtype)
    if have.dtype.kind not in KINDS:
        return Difference(f"{where.start} is {a(got)}; expected {a(expected)}.")
    if KINDS[have.dtype.kind] != KINDS.get(want.dtype.kind):
        return Difference(
            f"{where.start} is {number(got)}, {a(got)}; expected {number(expected)}, {a(expected)}."
        )
    return _values(have, want, where, result)


def _fits(have: np.ndarray) -> bool:
    return abs(int(have)) < 2**53


def _texts(got, expected, where) -> Difference | None:
    if not isinstance(got, str):
        return Difference(f"{where.start} is {a(got)}; expected the text {quote(expected)}.")
    got = str.__str__(got)
    if got == expected:
        return None
    same = 0
    while same < min(len(got), len(expected)) and got[same] == expected[same]:
        same += 1
    rows = []
    if max(len(got), len(expected)) > 12:
        rows.append(("first difference", f"at character {same}"))
    return Difference(f"{where.start} is {quote(got)}; expected {quote(expected)}.", rows)


def _records(got, expected, where, result) -> Difference | None:
    names = [one.name for one in dataclasses.fields(expected)]
    if type(got).__name__ != type(expected).__name__ or not all(hasattr(got, n) for n in names):
        return Difference(
            f"{where.start} is {a(got)}; expected {a(expected)} with {', '.join(names)}."
        )
    for name in names:
        inner = where.inside(f"{where.path}.{name}" if where.path else name)
        found = _compare(getattr(got, name), getattr(expected, name), inner, result)
        if found:
            return found
    return None


def _mappings(got, expected, where, result) -> Difference | None:
    if not isinstance(got, Mapping):
        return Difference(f"{where.start} is {a(got)}; expected {a(expected)}.")
    missing = [key for key in expected if key not in got]
    extra = [key for key in got if key not in expected]
    if missing or extra:
        said = []
        if missing:
            said.append(f"lacks the key {_some(missing)}")
        if extra:
            said.append(f"has a key too many: {_some(extra)}")
        return Difference(
            f"{where.start} {' and '.join(said)}.",
            [("your keys", _some(list(got), 12)), ("expected keys", _some(list(expected), 12))],
        )
    for key, value in expected.items():
        found = _compare(got[key], value, where.inside(f"{where.path}[{key!r}]"), result)
        if found:
            return found
    return None


def _sequences(got, expected, where, result) -> Difference | None:
    top = not where.path
    several = isinstance(expected, tuple) and top
    names = _part_names(where, expected)
    wanted = f"expected {len(expected)} parts" if several else f"expected {a(expected)}"
    if several and where.parts:
        wanted += f" ({', '.join(where.parts)})"
    if isinstance(got, np.ndarray) and not several:
        return Difference(
            f"{where.start} is {a(got)}; {wanted}. `.tolist()` turns an array into a list."
        )
    if not isinstance(got, (tuple, list)):
        return Difference(f"{where.start} is {a(got)}; {wanted}.")
    if not several and isinstance(got, tuple) != isinstance(expected, tuple):
        return Difference(
            f"{where.start} is a {type(got).__name__}; expected a {type(expected).__name__}.",
            [("yours", brief(got)), ("expected", brief(expected))],
        )
    if len(got) != len(expected) and several:
        count = "1 part" if len(got) == 1 else f"{len(got)} parts"
        return Difference(f"{where.start} has {count}; {wanted}.")
    for index, (one, other) in enumerate(zip(got, expected, strict=False)):
        found = _compare(one, other, where.inside(names[index]), result)
        if found:
            if len(got) != len(expected):
                found.rows.append(("length", f"yours {len(got)}, expected {len(expected)}"))
            if not several:  # the whole list says more than the item in it
                found.rows = [row for row in found.rows if row[0] not in ("yours", "expected")]
                found.rows += [("yours", brief(got)), ("expected", brief(expected))]
            return found
    if len(got) != len(expected):
        return Difference(
            f"{where.start} has {_items(got)}; expected {len(expected)}.",
            [("yours", brief(got)), ("expected", brief(expected))],
        )
    return None


def _part_names(where, expected) -> list[str]:
    if not where.path and len(where.parts) == len(expected):
        return list(where.parts)
    fields = getattr(type(expected), "_fields", None)
    if fields:
        return [f"{where.path}.{name}" if where.path else name for name in fields]
    return [f"{where.path or 'result'}[{index}]" for index in range(len(expected))]


def _sets(got, expected, where) -> Difference | None:
    if not isinstance(got, (set, frozenset)):
        return Difference(f"{where.start} is {a(got)}; expected {a(expected)}.")
    missing = sorted(set(expected) - set(got), key=repr)
    extra = sorted(set(got) - set(expected), key=repr)
    if not missing and not extra:
        return None
    said = []
    if missing:
        said.append(f"lacks {_some(missing)}")
    if extra:
        said.append(f"has {_some(extra)} too many")
    return Difference(f"{where.start} {' and '.join(said)}.")


def _others(got, expected, where, result) -> Difference | None:
    if type(got) is not type(expected):
        return Difference(f"{where.start} is {a(got)}; expected {a(expected)}.")
    if type(expected).__eq__ is not object.__eq__:
        if expected == got:
            return None
        return Difference(f"{where.start} is {brief(got)}; expected {brief(expected)}.")
    for name, value in vars(expected).items():
        if name not in vars(got):
            return Difference(f"{where.start} lacks the attribute {name}.")
        inner = where.inside(f"{where.path}.{name}" if where.path else name)
        found = _compare(vars(got)[name], value, inner, result)
        if found:
            return found
    return None


def changed(before: Any, after: Any) -> bool:
    """Whether an argument was written into: exact, NaN equal to NaN, containers looked through."""
    if type(before) is not type(after):
        return True
    if isinstance(before, np.ndarray):
        if before.shape != after.shape or before.dtype != after.dtype:
            return True
        if before.dtype.kind == "O":
            return any(changed(x, y) for x, y in zip(before.flat, after.flat, strict=True))
        return not np.array_equal(before, after, equal_nan=before.dtype.kind in "fc")
    if isinstance(before, (list, tuple)):
        return len(before) != len(after) or any(map(changed, before, after))
    if isinstance(before, dict):
        return list(before) != list(after) or any(changed(before[k], after[k]) for k in before)
    if isinstance(before, (set, bytearray)):
        return before != after
    if dataclasses.is_dataclass(before) and not isinstance(before, type):
        return hasattr(before, "__dict__") and changed(vars(before), vars(after))
    if isinstance(before, float):
        return before != after and before == before
    if isinstance(before, (bool, int, complex, str, bytes)):
        return before != after
    return False


def small_first(text: str) -> str:
    """A sentence after a colon begins with a small letter."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


# Short words for values


def a(value: Any) -> str:
    """A value's type with its article, as a reader would say it."""
    if value is None:
        return "None"
    if isinstance(value, np.ndarray) and type(value) in (np.ndarray,):
        return f"an array of shape {value.shape}" if value.ndim else f"the number {number(value)}"
    if isinstance(value, (bool, np.bool_)):
        return "a Boolean"
    if isinstance(value, numbers.Integral):
        return "an integer"
    if isinstance(value, numbers.Real):
        return "a float"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {_items(value)}"
    if isinstance(value, dict):
        return f"a dict of {len(value)} key{'s' * (len(value) != 1)}"
    if _is_function(value):
        return f"the function `{getattr(value, '__name__', type(value).__name__)}`"
    if isinstance(value, type):
        return f"the class `{value.__name__}`"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


def _items(value) -> str:
    return f"{len(value)} item{'s' * (len(value) != 1)}"


def _is_function(value: Any) -> bool:
    kinds = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)
    return isinstance(value, kinds)


def _is_number(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "biufc"
    return isinstance(value, (bool, int, float, complex, np.bool_, np.number))


def number(value: Any, digits: int = 6) -> str:
    """One number, short; whole numbers and Booleans as they are."""
    plain = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
    if isinstance(plain, bool) or not isinstance(plain, (float, complex)):
        return repr(plain) if isinstance(plain, str) else str(plain)
    if isinstance(plain, float):
        if plain != plain:
            return "NaN"
        text = f"{plain:.{digits}g}"
        return text if any(mark in text for mark in ".einf") else f"{text}.0"
    return f"{plain:.{digits}g}"


def pair(mine: Any, right: Any) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to tell them apart."""
    for digits in (6, 9, 12, 17):
        one, other = number(mine, digits), number(right, digits)
        if one != other:
            break
    return one, other


def quote(text: str, limit: int = 120) -> str:
    """A text between quotes, shortened in the middle of nowhere but its end."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def show(array: np.ndarray) -> str:
    """A small array as NumPy prints it, with few digits."""
    with np.printoptions(precision=4, suppress=True, threshold=64, edgeitems=3, linewidth=88):
        return str(array)


def as_code(value: Any) -> str:
    """A value as code that makes it again; what is too large is described after a `#`."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        if value.size > 64:
            return f"...  # array of shape {value.shape}, {value.dtype}"
        if not value.size:
            return f"np.zeros({value.shape}, dtype='{value.dtype}')"
        options = {"precision": 6, "suppress": True, "infstr": "np.inf", "nanstr": "np.nan"}
        with np.printoptions(threshold=65, linewidth=88, **options):
            text = np.array2string(value, separator=", ", prefix="np.array(")
        plain = value.dtype in (float, int, bool) or value.dtype.kind == "U"
        kind = "" if plain else f", dtype='{value.dtype}'"
        return f"np.array({text}{kind})"
    if isinstance(value, (tuple, list)) and any(isinstance(one, np.ndarray) for one in value):
        inner = ", ".join(as_code(one) for one in value[:6])
        left, right = ("(", ",)") if isinstance(value, tuple) else ("[", "]")
        return f"{left}{inner}{right}"
    if isinstance(value, dict) and any(isinstance(one, np.ndarray) for one in value.values()):
        inner = ", ".join(f"{key!r}: {as_code(one)}" for key, one in list(value.items())[:6])
        return f"{{{inner}}}"
    if isinstance(value, np.generic):
        return repr(value.item())
    return brief(value)


def brief(value: Any, limit: int = 300) -> str:
    """Any value, shortened; an object whose own repr fails is named by its type."""
    try:
        if isinstance(value, np.ndarray):
            head = f"array of shape {value.shape}, {value.dtype}"
            if 0 < value.size <= 64:
                return f"{head}:\n{show(value)}" if value.ndim > 1 else show(value)
            return head
        if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
            inner = ", ".join(brief(v, limit) for v in value[:6])
            return f"{type(value).__name__} of {inner}"
        with np.printoptions(precision=4, suppress=True, threshold=16):
            text = repr(value)
    except Exception:  # a learner's object may raise anything from its repr
        return a(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _some(items: list, limit: int = 4) -> str:
    shown = ", ".join(brief(item, 60) for item in items[:limit])
    return shown + (f" and {len(items) - limit} more" if len(items) > limit else "")
