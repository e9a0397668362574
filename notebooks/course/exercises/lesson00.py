"""Lesson 00's exercise: small enough to show how exercises work."""

import math
import statistics

import numpy as np

from course.exercises import Case, Mistake, register


def average(numbers):
    """The mean of some numbers: their sum, divided by how many there are.

    numbers is a list with at least one number. Returns a float.
    """
    return sum(numbers) / len(numbers)


register(
    name="average",
    lesson="00",
    reference=average,
    cases=[
        Case("three numbers", lambda rng: (([1.0, 2.0, 6.0],), {}), why="mean and median differ"),
        Case("two numbers", lambda rng: (([3.0, 4.0],), {}), why="// would drop the half"),
        Case("one number", lambda rng: (([5.0],), {}), why="len - 1 would divide by 0"),
        Case("numbers below zero", lambda rng: (([-1.0, -2.0, 0.5, 0.5],), {})),
    ],
    mistakes=[
        Mistake("sum", lambda numbers: sum(numbers),
                "That is the sum. Divide it by how many numbers there are."),
        Mistake("median", lambda numbers: float(statistics.median(numbers)),
                "That is the median, the number in the middle. The mean adds all of them up."),
        Mistake("one_less", lambda numbers: sum(numbers) / (len(numbers) - 1),
                "You divide by one less than how many there are."),
        Mistake("rounded_down", lambda numbers: sum(numbers) // len(numbers),
                "// drops what stands behind the point. Divide with /."),
        Mistake("length", lambda numbers: float(len(numbers)),
                "That is how many numbers there are. Their sum is missing."),
    ],
    also_right=[
        lambda numbers: float(np.mean(numbers)),
        lambda numbers: math.fsum(numbers) / len(numbers),
        lambda numbers: statistics.fmean(numbers),
    ],
    hints=[
        "You need two things: all numbers together, and how many there are.",
        "Python has sum() for the one and len() for the other.",
        "sum(numbers) / len(numbers)",
    ],
)
