"""Shorter ways to results that `elementwise` would also find: for numbers that all lanes share, and for
patterns that differ by an offset.

`FAST` maps an opcode without its type ("add", "mad.lo") to a function of (type, plain way) that returns
the way to be taken; the plain way is there for what the shorter one does not cover. Nothing but time may
depend on this table; tests take both ways and compare.
"""

from __future__ import annotations

from operator import and_, or_, xor

import numpy as np

from emulator.machine.values import (
    Affine,
    Pattern,
    add,
    exact,
    limits,
    mapped,
    multiply,
    negate,
    paired,
    scale,
    signed,
    subtract,
    widen,
)
from emulator.numbers.fma import fma_f32
from emulator.text.program import WIDTHS

# --- Sums and products ---


def _add(kind, plain):
    width = WIDTHS[kind]
    return lambda x, y: add(x, y, width)


def _subtract(kind, plain):
    width = WIDTHS[kind]
    return lambda x, y: subtract(x, y, width)


def _negate(kind, plain):
    width = WIDTHS[kind]
    return lambda x: negate(x, width)


def _multiply(kind, plain):
    width = WIDTHS[kind]
    return lambda x, y: multiply(x, y, width)


def _multiply_wide(kind, plain):
    width, is_signed = WIDTHS[kind], kind[0] == "s"
    double = 2 * width

    def run(x, y):
        return multiply(
            widen(x, width, is_signed, double), widen(y, width, is_signed, double), double
        )

    return run


def _multiply_add(kind, plain):
    width = WIDTHS[kind]
    return lambda x, y, z: add(multiply(x, y, width), z, width)


def _multiply_wide_add(kind, plain):
    product, double = _multiply_wide(kind, plain), 2 * WIDTHS[kind]
    return lambda x, y, z: add(product(x, y), z, double)


# --- Numbers that all lanes share ---


def _of_numbers(function):
    """function(a, b) of Python integers, where both operands are such; None: not for these."""

    def factory(kind, plain):
        width, is_signed = WIDTHS[kind], kind[0] == "s"
        ones = (1 << 8 * width) - 1

        def run(x, y):
            if type(x) is int and type(y) is int:
                found = function(*((signed(v, width) for v in (x, y)) if is_signed else (x, y)))
                if found is not None:
                    return found & ones
            return plain(x, y)

        return run

    return factory


def _quotient(x: int, y: int) -> int | None:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else None


def _remainder(x: int, y: int) -> int | None:
    return x - _quotient(x, y) * y if y else None


# --- Bits ---


def _bitwise(name: str, function):
    def with_constant(x, constant, width):
        x = exact(x, width, True)
        number = signed(constant, width)
        if x.lo >= 0 and number >= 0 and name != "and":
            bits = int(np.bitwise_or.reduce(x.pattern.array + x.offset, axis=None))
            if not bits & number:  # nothing to carry: it is a sum
                return add(x, number, width)
        array = function(x.pattern.array + x.offset, np.int64(number))
        if name == "and" and number >= 0:
            return Affine(Pattern(array, 0, number))
        if x.lo >= 0 and (name == "and" or number >= 0):
            top = x.hi if name == "and" else (1 << max(x.hi, number).bit_length()) - 1
            return Affine(Pattern(array, 0, top))
        return Affine(Pattern(array, *limits(width, True)))

    def of_two(x, y, width):
        x, y = exact(x, width, True), exact(y, width, True)
        array = function(x.pattern.array + x.offset, y.pattern.array + y.offset)
        if x.lo >= 0 and y.lo >= 0:
            return Affine(Pattern(array, 0, (1 << max(x.hi, y.hi).bit_length()) - 1))
        return Affine(Pattern(array, *limits(width, True)))

    def factory(kind, plain):
        width = WIDTHS[kind]

        def run(x, y):
            if type(x) is int:
                if type(y) is int:
                    return function(x, y)
                x, y = y, x
            if type(y) is int:
                return mapped((name, y, width), x, lambda: with_constant(x, y, width))
            return paired((name, width), x, y, lambda: of_two(x, y, width))

        return run

    return factory


def _invert(kind, plain):
    width = WIDTHS[kind]
    ones = (1 << 8 * width) - 1
    return lambda x: add(negate(x, width), ones, width)


def _shift_left(kind, plain):
    width, bits = WIDTHS[kind], 8 * WIDTHS[kind]

    def run(x, count):
        if type(count) is int:
            return scale(x, 1 << count, width) if count < bits else 0
        return plain(x, count)

    return run


def _shift_right(kind, plain):
    width, bits, is_signed = WIDTHS[kind], 8 * WIDTHS[kind], kind[0] == "s"

    def fixed(x, count):
        if count >= bits:
            if not is_signed:
                return 0
            count = bits - 1
        if width == 8 and not is_signed and x.lo < 0:
            return plain(x, count)
        x = exact(x, width, is_signed)
        return Affine(Pattern((x.pattern.array + x.offset) >> count, x.lo >> count, x.hi >> count))

    def run(x, count):
        if type(count) is not int:
            return plain(x, count)
        if type(x) is int:
            number = signed(x, width) if is_signed else x
            return (number >> min(count, 64)) & ((1 << bits) - 1)
        return mapped(("shr", kind, count), x, lambda: fixed(x, count))

    return run


FAST = {
    "add": _add,
    "sub": _subtract,
    "neg": _negate,
    "mul.lo": _multiply,
    "mul.wide": _multiply_wide,
    "mad.lo": _multiply_add,
    "mad.wide": _multiply_wide_add,
    "div": _of_numbers(_quotient),
    "rem": _of_numbers(_remainder),
    "min": _of_numbers(min),
    "max": _of_numbers(max),
    "and": _bitwise("and", and_),
    "or": _bitwise("or", or_),
    "xor": _bitwise("xor", xor),
    "not": _invert,
    "shl": _shift_left,
    "shr": _shift_right,
}

FAST_FLOATS = {
    "fma.rn.f32": fma_f32
}  # whole opcodes of `floating.arithmetic`: functions of their operands
