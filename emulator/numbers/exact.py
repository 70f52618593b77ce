"""Rounding errors, known exactly, and what rounds with them in any direction.

An operation is done in float64, whose own rounding error is then known exactly (Knuth's TwoSum,
Dekker's TwoProduct, or the sign of a residual). Where that error matters, the float64 is *rounded to
odd* (Boldo and Melquiond, 2008), after which a second rounding, in any direction, gives what one
rounding would have.
"""

from fractions import Fraction

import numpy as np

from emulator.numbers.formats import FORMATS


def two_sum(a, b):
    """The rounded sum and its exact error (TwoSum)."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    return total, finite(error)


def truncated(x, bits):
    """x with the low `bits` of its float64 significand cleared."""
    return (x.view(np.int64) & ~((1 << bits) - 1)).view(np.float64)


def two_product(a, b):
    """The rounded product of float64 and its exact error, barring over- and underflow (Dekker)."""
    product = a * b
    ah, bh = (x * 134217729.0 - (x * 134217729.0 - x) for x in (a, b))  # 26 bits of each
    al, bl = a - ah, b - bh
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    return product, finite(error)


def finite(error):
    return np.where(np.isfinite(error), error, 0.0)


def odd(x, error):
    """x, whose exact value is x + error, rounded to odd instead of to nearest."""
    bits = x.view(np.int64)
    move = (error != 0) & ((bits & 1) == 0) & np.isfinite(x)
    outward = np.where((error < 0) == (x < 0), 1, -1)
    return (bits + np.where(move, outward, 0)).view(np.float64)


def directed(x, error, rounding):
    """Nearest x with exact value x + error, rounded to float64 in the given direction."""
    if rounding == "rn":
        return x
    if rounding == "rz":
        return np.where(error * np.sign(x) < 0, np.nextafter(x, 0.0), x)
    if rounding == "rm":
        return np.where(error < 0, np.nextafter(x, -np.inf), x)
    return np.where(error > 0, np.nextafter(x, np.inf), x)


def fma_f64(a, b, c, rounding):
    """f64 fma by error-free transformations; operands of extreme size in exact rationals."""
    a, b, c = (np.asarray(x, np.float64) for x in (a, b, c))
    high, low = two_product(a, b)
    mid, rest = two_sum(c, low)
    top, bottom = two_sum(high, mid)
    tail, left = two_sum(bottom, rest)
    tail = odd(tail, left)
    total, error = two_sum(top, tail)
    plain = a * b + c
    # Where nothing is to be rounded: a product of zero keeps the sign of -0 + -0, and one that only
    # leaves float64's range is finite beside an infinite c.
    special = ~np.isfinite(total) | (a == 0) | (b == 0)
    plain = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, plain)
    total, error = np.where(special, plain, total), np.where(special, 0.0, error)
    result = directed(total, error, rounding)
    result = negative_zero(result, "f64", rounding, total, a * b, c)
    return repaired(result, "fma", rounding, a, b, c)


def repaired(result, operation, rounding, *operands):
    """f64 `result` with elements of extreme size recomputed in exact rationals."""
    finite = np.isfinite(result) | np.all([np.isfinite(x) for x in operands], axis=0)
    extreme = np.zeros(result.shape, bool)
    for x in (*operands, result):
        size = np.abs(x)
        extreme |= (size != 0) & ~((size > 2.0**-450) & (size < 2.0**450))
    if operation in ("fma", "add"):
        extreme |= result == 0
    extreme &= finite & np.all([np.isfinite(x) for x in operands], axis=0)
    if extreme.any():
        result = np.array(result)
        for at in zip(*np.nonzero(extreme), strict=True):
            value = _rational(operation, rounding, *(float(x[at]) for x in operands))
            if value is not None:
                result[at] = value
    return result


def _rational(operation, rounding, *operands):
    """One f64 operation on exact rationals, rounded once; None where `result` is right already."""
    values = [Fraction(x) for x in operands]
    if (operation == "div" and operands[1] == 0) or (operation == "sqrt" and operands[0] <= 0):
        return None
    if operation == "sqrt":
        nearest = float(np.sqrt(operands[0]))
        gap = values[0] - Fraction(nearest) ** 2
    else:
        exact = {
            "add": lambda a, b: a + b,
            "mul": lambda a, b: a * b,
            "div": lambda a, b: a / b,
            "fma": lambda a, b, c: a * b + c,
        }[operation](*values)
        if exact == 0:
            return None
        try:
            nearest = float(exact)
        except OverflowError:
            nearest = float("inf") if exact > 0 else float("-inf")
        if nearest == 0:
            nearest = float(np.copysign(0.0, float(np.sign(exact.numerator))))
        gap = -nearest if np.isinf(nearest) else exact - Fraction(nearest)
    down, up = np.nextafter(nearest, -np.inf), np.nextafter(nearest, np.inf)
    if rounding == "rz":
        rounding = "rm" if (nearest > 0 or (nearest == 0 and gap > 0)) else "rp"
    if rounding == "rm" and gap < 0:
        return down
    if rounding == "rp" and gap > 0:
        return up if up != 0 else -0.0
    return nearest


def negative_zero(result, format, rounding, total, x, y):
    """Rounding down, an exact zero sum is -0 unless both terms are +0."""
    if rounding != "rm":
        return result
    negative = (total == 0) & (np.signbit(x) | np.signbit(y))
    spec = FORMATS[format]
    zero = np.array(-0.0, spec.dtype) if format != "bf16" else np.uint16(0x8000)
    return np.where(negative, zero, result)
