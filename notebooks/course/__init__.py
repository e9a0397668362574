"""The classroom: exercises and their checks, sliders, quizzes and the progress board.

A lesson starts with `from course import exercise, hint, solution, quiz, explore`. Importing the
package is cheap: widgets, plots and the lessons' own exercises are loaded when first used.

Several functions here share the name of the module that holds them (`course.explore`,
`course.progress`, ...). As an attribute of `course` the name is the function; `from
course.explore import slider` reaches into the module.
"""

from .exercises import (
    ExerciseNotPassed,
    Report,
    check,
    exercise,
    exercises,
    hint,
    solution,
)
from .explore import explore, sliders
from .glossary import define, glossary
from .live import live
from .progress import progress
from .quiz import quiz

__all__ = [
    "ExerciseNotPassed",
    "Report",
    "check",
    "define",
    "exercise",
    "exercises",
    "explore",
    "glossary",
    "hint",
    "live",
    "progress",
    "quiz",
    "sliders",
    "solution",
]
