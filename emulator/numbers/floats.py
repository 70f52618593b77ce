"""PTX floating-point arithmetic on arrays, bit for bit, rounded once.

Operands of one call have one shape; `formats` says which arrays hold which format. `exact` says how
this stays exact at array speed.
"""

import numpy as np

from emulator.numbers.exact import (
    directed,
    finite,
    fma_f64,
    negative_zero,
    odd,
    repaired,
    truncated,
    two_product,
    two_sum,
)
from emulator.numbers.fma import fma_f32
from emulator.numbers.formats import FORMATS, finish, flip, inputs, magnitude_mask, narrow, widen


def add(a, b, format="f32", rounding="rn", ftz=False, sat=False):
    """a + b, rounded once."""
    a, b = inputs(format, ftz, a, b)
    with np.errstate(all="ignore"):
        if rounding == "rn" and format in ("f32", "f64", "f16"):
            result = np.asarray(a) + b  # IEEE; NumPy's f16 sum is exact in f32, then rounded
        else:
            x, y = widen(a, format), widen(b, format)
            total, error = two_sum(x, y)
            if format == "f64":
                result = repaired(directed(total, error, rounding), "add", rounding, x, y)
            else:
                result = narrow(odd(total, error), format, rounding)
            result = negative_zero(result, format, rounding, total, x, y)
    return finish(result, format, ftz, sat)


def sub(a, b, format="f32", rounding="rn", ftz=False, sat=False):
    """a - b, rounded once."""
    return add(a, flip(b, format), format, rounding, ftz, sat)


def mul(a, b, format="f32", rounding="rn", ftz=False, sat=False):
    """a * b, rounded once."""
    a, b = inputs(format, ftz, a, b)
    with np.errstate(all="ignore"):
        if rounding == "rn" and format in ("f32", "f64", "f16"):
            result = np.asarray(a) * b
        elif format == "f64":
            product, error = two_product(a, b)
            result = repaired(directed(product, error, rounding), "mul", rounding, a, b)
        else:  # at most 48 bits: exact in float64
            result = narrow(widen(a, format) * widen(b, format), format, rounding)
    return finish(result, format, ftz, sat)


def fma(a, b, c, format="f32", rounding="rn", ftz=False, sat=False, relu=False):
    """a * b + c, rounded once. `relu`: negative results become +0."""
    a, b, c = inputs(format, ftz, a, b, c)
    if format == "f32" and rounding == "rn":
        result = fma_f32(a, b, c)
        return finish(result, format, ftz, sat, relu) if ftz or sat or relu else result
    with np.errstate(all="ignore"):
        if format == "f64":
            result = fma_f64(a, b, c, rounding)
        else:
            product, addend = widen(a, format) * widen(b, format), widen(c, format)
            total, error = two_sum(product, addend)
            result = narrow(odd(total, error), format, rounding)
            result = negative_zero(result, format, rounding, total, product, addend)
    return finish(result, format, ftz, sat, relu)


def div(a, b, format="f32", rounding="rn", ftz=False, sat=False):
    """a / b, rounded once (`div.rn` and the directed forms)."""
    a, b = inputs(format, ftz, a, b)
    with np.errstate(all="ignore"):
        if rounding == "rn" and format in ("f32", "f64"):
            result = np.asarray(a) / b
        else:
            x, y = widen(a, format), widen(b, format)
            quotient = x / y
            if format == "f64":
                product, error = two_product(quotient, y)
                residual = ((x - product) - error) * np.sign(y)
                result = directed(quotient, finite(residual), rounding)
                result = repaired(result, "div", rounding, x, y)
            else:
                high = truncated(quotient, 25)
                residual = ((x - high * y) - (quotient - high) * y) * np.sign(y)
                result = narrow(odd(quotient, finite(residual)), format, rounding)
    return finish(result, format, ftz, sat)


def rcp(a, format="f32", rounding="rn", ftz=False):
    """1 / a, rounded once."""
    one = narrow(np.ones(np.shape(a)), format)
    return div(one, a, format, rounding, ftz)


def sqrt(a, format="f32", rounding="rn", ftz=False):
    """The square root, rounded once."""
    (a,) = inputs(format, ftz, a)
    with np.errstate(all="ignore"):
        if rounding == "rn" and format in ("f32", "f64"):
            result = np.sqrt(a)
        else:
            x = widen(a, format)
            root = np.sqrt(x)
            product, error = two_product(root, root)
            residual = finite((x - product) - error)
            if format == "f64":
                result = repaired(directed(root, residual, rounding), "sqrt", rounding, x)
            else:
                result = narrow(odd(root, residual), format, rounding)
    return finish(result, format, ftz, False)


def neg(a, format="f32", ftz=False):
    """-a: the sign bit flipped, NaN included."""
    (a,) = inputs(format, ftz, a)
    return flip(a, format)


def absolute(a, format="f32", ftz=False):
    """|a|: the sign bit cleared."""
    (a,) = inputs(format, ftz, a)
    spec = FORMATS[format]
    return (a.view(spec.bits) & magnitude_mask(spec)).view(spec.dtype)


def copysign(a, b, format="f32"):
    """b with the sign of a (the operand order of PTX `copysign`)."""
    spec = FORMATS[format]
    a, b = np.asarray(a).view(spec.bits), np.asarray(b).view(spec.bits)
    mask = magnitude_mask(spec)
    return ((a & ~mask) | (b & mask)).view(spec.dtype)
