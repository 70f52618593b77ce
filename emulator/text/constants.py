"""Constant expressions: PTX ISA 4.5.5, with the types that its table gives results.

A value is an int of 64 bits with a sign, a `U64` of 64 bits without, or a float. TypeError, in words, for operands of kinds
that an operator does not take, ZeroDivisionError where C has no value.
"""

from __future__ import annotations

import operator

_MASK = (1 << 64) - 1


class U64(int):
    """An integer without a sign."""


Value = int | float  # U64 among them


def signed(value: int) -> int:
    """As .s64."""
    return ((int(value) + (1 << 63)) & _MASK) - (1 << 63)


def unsigned(value: int) -> U64:
    """As .u64."""
    return U64(int(value) & _MASK)


def literal(value: int, marked: bool) -> Value:
    """An integer literal: signed unless it is marked with U, or does not fit."""
    return unsigned(value) if marked or value >> 63 else value


def _alike(value: int, *operands: int) -> Value:
    """A result of operands of one type: unsigned if one of them is."""
    return (unsigned if any(isinstance(x, U64) for x in operands) else signed)(value)


def _integers(*operands: Value) -> None:
    if any(isinstance(x, float) for x in operands):
        raise TypeError("an integer constant is expected here")


def _usual(a: Value, b: Value) -> tuple[Value, Value]:
    """Both floats, or both integers of one type."""
    if isinstance(a, float) != isinstance(b, float):
        raise TypeError("a constant expression of integers and floats")
    if isinstance(a, float):
        return a, b
    return (unsigned(a), unsigned(b)) if isinstance(a, U64) or isinstance(b, U64) else (a, b)


def _quotient(a: Value, b: Value) -> Value:
    if not b:
        raise ZeroDivisionError("a constant expression divides by zero")
    if isinstance(a, float):
        return a / b
    return abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)


def _sums(function):
    def operation(a, b):
        a, b = _usual(a, b)
        value = function(a, b)
        return value if isinstance(a, float) else _alike(value, a, b)

    return operation


def _compares(function):
    return lambda a, b: int(function(*_usual(a, b)))


def _whole(function):
    """The operation, of integers alone."""

    def operation(a, b):
        _integers(a, b)
        return function(a, b)

    return operation


def _bits(function):
    return _whole(lambda a, b: unsigned(function(unsigned(a), unsigned(b))))


def _shifts(function):
    return _whole(lambda a, b: _alike(function(int(a), int(b) & 63), a))


def _truths(function):
    return _whole(lambda a, b: int(function(bool(a), bool(b))))


@_whole
def _remainder(a, b):
    if not b:
        raise ZeroDivisionError("a constant expression divides by zero")
    return signed(int(unsigned(a)) % int(unsigned(b)))


BINARY = {
    "*": _sums(operator.mul), "/": _sums(_quotient), "%": _remainder,
    "+": _sums(operator.add), "-": _sums(operator.sub),
    "<<": _shifts(operator.lshift), ">>": _shifts(operator.rshift),
    "<": _compares(operator.lt), "<=": _compares(operator.le),
    ">": _compares(operator.gt), ">=": _compares(operator.ge),
    "==": _compares(operator.eq), "!=": _compares(operator.ne),
    "&": _bits(operator.and_), "^": _bits(operator.xor), "|": _bits(operator.or_),
    "&&": _truths(operator.and_), "||": _truths(operator.or_),
}  # fmt: skip
_TIGHTER = (
    ("*", "/", "%"),
    ("+", "-"),
    ("<<", ">>"),
    ("<", "<=", ">", ">="),
    ("==", "!="),
    ("&",),
    ("^",),
    ("|",),
    ("&&",),
    ("||",),
    ("?",),
)
BINDS = {name: 10 - level for level, names in enumerate(_TIGHTER) for name in names}
PRODUCT = BINDS["*"]  # what binds so tightly is an operand of a sum


def negative(a: Value) -> Value:
    return -a if isinstance(a, float) else _alike(-int(a), a)


def inverted(a: Value) -> Value:
    _integers(a)
    return unsigned(~int(a))


def denied(a: Value) -> Value:
    _integers(a)
    return int(not a)


def cast(a: Value, to: str) -> Value:
    """(.s64) or (.u64)."""
    _integers(a)
    return unsigned(a) if to == ".u64" else signed(a)


def chosen(which: Value, first: Value, second: Value) -> Value:
    """which ? first : second"""
    _integers(which, first, second)
    return first if which else second
