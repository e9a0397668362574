"""The slope of a function, by differences: what every way back is held against."""

import numpy as np


def numeric_gradient(function, array, upstream=1.0, step=1e-6):
    """Gradient of sum(upstream * function()) with respect to `array`, number by number.

    `function` takes no arguments and reads `array`, which is float64 and changed for the moment. A
    random upstream matters: with ones, the gradient of a LayerNorm's input is 0 whatever the code.
    """
    assert array.dtype == np.float64
    gradient = np.zeros_like(array)
    for place in np.ndindex(array.shape):
        before = array[place]
        array[place] = before + step
        above = np.sum(upstream * function())
        array[place] = before - step
        below = np.sum(upstream * function())
        array[place] = before
        gradient[place] = (above - below) / (2 * step)
    return gradient


def assert_gradient(found, function, array, upstream=1.0, name=""):
    """Hold a gradient against the differences; sizes of all are of order 1 here."""
    expected = numeric_gradient(function, array, upstream)
    assert found.shape == array.shape, name
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7, err_msg=name)
