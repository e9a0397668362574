"""Softmax in forms that are equal on paper and fail on large scores, for several exercises."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._registry import Mistake

FAR = np.array([[2000.0, 1999.0, -2000.0], [-2000.0, -2001.0, -2002.0], [0.0, 1.0, 2.0]])
WHY = "exp(2000) is inf and exp(-2000) is 0: only scores less their row's maximum are safe"


def far_vectors() -> tuple[np.ndarray, np.ndarray]:
    """Queries (3, 4) and keys (3, 4) whose dot products, divided by the root of 4, are FAR."""
    key = np.zeros((3, 4))
    key[:, :3] = FAR.T
    return 2 * np.eye(3, 4), key


def _highest(scores, axis):
    return scores.max(axis=axis, keepdims=True)


def _mean(scores, axis):
    seen = np.isfinite(scores)
    total = np.where(seen, scores, 0).sum(axis=axis, keepdims=True)
    return total / np.maximum(seen.sum(axis=axis, keepdims=True), 1)


SHIFTED = {
    "no_shift": lambda scores, axis: scores,
    "clipped": lambda scores, axis: np.clip(scores, -700, 700),
    "clipped_above": lambda scores, axis: np.minimum(scores, 700),
    "mean_shift": lambda scores, axis: scores - _mean(scores, axis),
    "zero_shift": lambda scores, axis: scores - np.maximum(_highest(scores, axis), 0),
}
NO_SHIFT = (
    "The formula is right and overflows: exp(2000) is inf, and inf / inf is NaN. Call your "
    "softmax, or subtract each row's maximum before exp."
)
CLIPPED = (
    "You cut the scores off before exp, so 2000 and 1999 get the same weight. Nothing has to be "
    "cut: less the maximum of its row, no score is above 0."
)
MEAN = (
    "You subtract the mean of the row. A score far above the mean still overflows. Less the "
    "maximum, no score is above 0."
)
ZERO = (
    "Right unless all scores of a row are far below 0: then each exp is 0. Subtract the row's "
    "maximum there too, as it is: below 0 it is neither 0 nor the largest size."
)
FORMS = {
    "no_shift": ("no_shift", False, NO_SHIFT),
    "no_shift_guarded": ("no_shift", True, NO_SHIFT),
    "clipped": ("clipped", False, CLIPPED),
    "clipped_above": ("clipped_above", False, CLIPPED),
    "clipped_guarded": ("clipped_above", True, CLIPPED),
    "mean_shift": ("mean_shift", True, MEAN),
    "zero_shift": ("zero_shift", False, ZERO),
    "zero_shift_guarded": ("zero_shift", True, ZERO),
}
# Where a row may attend to nothing, a form that does not divide by 1 there fails on that already.
GUARDED = ("no_shift", "no_shift_guarded", "clipped_guarded", "mean_shift", "zero_shift_guarded")


def unstable(how: str, guarded: bool) -> Callable:
    """A softmax that fails on FAR; `guarded` divides by 1 where a row sums to 0."""

    def softmax(scores, axis=-1):
        powers = np.exp(SHIFTED[how](scores, axis))
        total = powers.sum(axis=axis, keepdims=True)
        return powers / (np.where(total == 0, 1, total) if guarded else total)

    return softmax


def mistakes(
    answer: Callable[[Callable], Callable], forms: tuple[str, ...] = tuple(FORMS)
) -> list[Mistake]:
    """An exercise's named mistakes: answer(softmax) is its answer with that softmax inside."""
    return [
        Mistake(name, answer(unstable(how, guarded)), message)
        for name in forms
        for how, guarded, message in [FORMS[name]]
    ]
