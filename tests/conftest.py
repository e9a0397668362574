"""Fixtures that several test modules use."""

import pytest


@pytest.fixture
def measured(record_property):
    """`measured("drawing: 12 ms")` prints a line at the end of the run, passed or not."""

    def say(line):
        record_property("measured", line)

    return say
