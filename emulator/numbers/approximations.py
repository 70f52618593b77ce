"""The functions that PTX calls approximate: here they are the true value, rounded."""

import numpy as np

from emulator.numbers.floats import div
from emulator.numbers.formats import finish, inputs, narrow, widen

FUNCTIONS = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


def approximate(name, a, format="f32", ftz=False):
    """The `.approx` functions: ex2, lg2, sin, cos, tanh, rcp, sqrt, rsqrt.

    A GPU's result is within the error that the PTX ISA states; this one is the true value, rounded.
    """
    (a,) = inputs(format, ftz, a)
    with np.errstate(all="ignore"):
        result = narrow(FUNCTIONS[name](widen(a, format)), format)
    return finish(result, format, ftz, False)


def div_approx(a, b, ftz=False, full=False):
    """`div.approx.f32`, `div.full.f32`: the rounded quotient; 0 where |b| > 2^126 unless `full`."""
    result = div(a, b, "f32", "rn", ftz)
    if full:
        return result
    with np.errstate(all="ignore"):
        huge = (np.abs(b) > np.float32(2.0**126)) & np.isfinite(b)
        return finish(np.where(huge, np.float32(0) * a * b, result), "f32", ftz, False)
