"""Rounding of exact rationals to a floating-point format, and operands that try it."""

import struct
from fractions import Fraction

import numpy as np

from emulator.numbers import formats

SIGNIFICAND = {"f16": (11, -24, 15), "bf16": (8, -133, 127), "f32": (24, -149, 127)}
SIGNIFICAND["f64"] = (53, -1074, 1023)


def to_bits(value, format):
    """The bits of a Python float that the format holds exactly (-0.0 and inf included)."""
    if format == "bf16":
        return struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    code = {"f16": "<e", "f32": "<f", "f64": "<d"}[format]
    return int.from_bytes(struct.pack(code, value), "little")


def round_exactly(value, format, rounding):
    """A Fraction, other than zero, rounded to the format; the result as bits."""
    digits, lowest, highest = SIGNIFICAND[format]
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - digits + 1, lowest)
    steps, rest = divmod(size, unit)
    up = {
        "rn": rest * 2 > unit or (rest * 2 == unit and steps % 2),
        "rz": False,
        "rm": rest != 0 and value < 0,
        "rp": rest != 0 and value > 0,
    }[rounding]
    size = (steps + bool(up)) * unit
    largest = (2 - Fraction(1, 2 ** (digits - 1))) * Fraction(2) ** highest
    sign = -1.0 if value < 0 else 1.0
    if size > largest:
        outward = rounding == "rn" or ((rounding == "rp") == (value > 0) and rounding != "rz")
        return to_bits(sign * (float("inf") if outward else float(largest)), format)
    return to_bits(sign * float(size), format)


def operands(format, count, seed, spread):
    """Random numbers with an exponent within `spread` of the middle, some with few bits."""
    rng = np.random.default_rng(seed)
    spec = formats.FORMATS[format]
    width = 8 * np.dtype(spec.bits).itemsize
    digits = SIGNIFICAND[format][0]
    exponent_bits = width - digits
    bias = (1 << (exponent_bits - 1)) - 1
    mantissa = rng.integers(0, 1 << (digits - 1), count, dtype=np.uint64)
    short = rng.random(count) < 0.3  # few bits: ties and exact results happen
    mantissa[short] &= np.uint64(((1 << (digits - 1)) - 1) ^ ((1 << (digits - 4)) - 1))
    exponent = rng.integers(max(bias - spread, 0), min(bias + spread, 2 * bias) + 1, count)
    sign = rng.integers(0, 2, count).astype(np.uint64)
    bits = (
        (sign << np.uint64(width - 1))
        | (exponent.astype(np.uint64) << np.uint64(digits - 1))
        | mantissa
    )
    return bits.astype(spec.bits).view(spec.dtype)


def bits_of(x, format):
    return np.asarray(x).view(formats.FORMATS[format].bits).astype(np.uint64)
