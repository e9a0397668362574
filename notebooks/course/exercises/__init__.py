"""Exercises: registered by the lessonNN modules beside this file, checked the moment they run.

`_registry` holds what an exercise is, `_run` calls a learner's function with guards around it,
`_compare` finds the first place where two answers differ, `_core` puts them together as `check`,
`_report` says the result in words, `_store` keeps answers and progress, and `_notebook` has what
a lesson calls: `exercise`, `hint`, `solution`.
"""

from ._core import ExerciseNotPassed, check
from ._notebook import exercise, hint, solution
from ._registry import Case, Exercise, Mistake, exercises, get, register
from ._report import Report

__all__ = [
    "Case",
    "Exercise",
    "ExerciseNotPassed",
    "Mistake",
    "Report",
    "check",
    "exercise",
    "exercises",
    "get",
    "hint",
    "register",
    "solution",
]
