"""Lesson 00's slider: the finished thing."""

from course import weights
from course.explore import Text, slider
from course.sliders import lesson06


@slider(text=Text("I expected a dull show but got a lovely one.", label="a sentence",
                  max_length=200),
        lesson="00", given=lambda: {"model": weights.sentiment()})
def read_a_sentence(text, model):
    """A sentence of the reader's through the trained classifier."""
    return lesson06.read_a_sentence(text, model)
