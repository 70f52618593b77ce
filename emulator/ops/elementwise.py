"""Integer instructions as functions of arrays: `"xor": {WORD: bitwise(lambda a, b: a ^ b)}`.

The function gets an array of the operand's type for each operand and returns an array of the result's.
Whatever makes that fast is not its business: a result is kept on its operands' patterns, so that what a
loop recomputes from unchanged operands costs nothing, and `fast` has shorter ways for what loops do
over and over.
"""

from __future__ import annotations

import numpy as np

from emulator.machine.values import (
    SIGNED,
    UNSIGNED,
    Affine,
    Pattern,
    collapse,
    mapped,
    numbers,
    paired,
)
from emulator.ops.fast import FAST
from emulator.text.program import WIDTHS
from emulator.text.rows import Row

INTEGERS = {f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)}

# What an operand's type may be, besides a type of its own.
OWN = "the instruction's type"
UNSIGNED_OWN = "the instruction's type, unsigned"
WIDE = "the instruction's type, twice as wide"
_WORDS = {OWN: "own", UNSIGNED_OWN: "own", WIDE: "wide"}  # as `text.typing` calls them
_RELATED = {
    OWN: lambda kind: kind,
    UNSIGNED_OWN: lambda kind: f"u{kind[1:]}",
    WIDE: lambda kind: f"{kind[0]}{2 * int(kind[1:])}",
}


def each(function, *operands: str, result: str = OWN, spread: str = "any") -> Row:
    """`d = function(a, b, ...)`, operands and result of these types: a PTX type, or one of OWN, UNSIGNED_OWN, WIDE.

    spread: as of a Row.
    """

    def factory(ins, bind):
        kind = ins.parts[-1]
        types = [_RELATED[t](kind) if t in _RELATED else t for t in operands]
        gets = [bind.integer(op, t) for op, t in zip(ins.operands[1:], types, strict=True)]
        name = (ins.opcode,)

        def run(*values):
            def compute():
                arrays = [as_array(value, t) for value, t in zip(values, types, strict=True)]
                with np.errstate(all="ignore"):
                    return as_value(np.ascontiguousarray(function(*arrays)))

            return remembered(name, values, compute)

        shorter = FAST.get(".".join(ins.parts[:-1]))
        return bind.pure(ins.operands[0], shorter(kind, run) if shorter else run, *gets)

    types = " ".join(_WORDS.get(kind, kind) for kind in (result, *operands))
    return Row(factory, (len(operands) + 1,), types=types, spread=spread)


def unary(function, result: str = OWN) -> Row:
    return each(function, OWN, result=result)


def binary(function, result: str = OWN) -> Row:
    return each(function, OWN, OWN, result=result)


def bitwise(function, operands: int = 2) -> Row:
    """As `each`: every bit of the result is made of the same bit of each operand."""
    return each(function, *[OWN] * operands, spread="bits")


def ternary(function) -> Row:
    return each(function, OWN, OWN, OWN)


def halves(function) -> Row:
    """`d = function(a, b)` on the two 16-bit numbers in each register (u16x2, s16x2)."""

    def factory(ins, bind):
        half = np.dtype(np.int16 if ins.parts[-1][0] == "s" else np.uint16)
        gets = [bind.array(op, np.uint32) for op in ins.operands[1:]]

        def run(*arrays):
            arrays = np.broadcast_arrays(*arrays)
            split = [np.ascontiguousarray(x).view(half).reshape(*x.shape, 2) for x in arrays]
            with np.errstate(all="ignore"):
                return as_value(np.ascontiguousarray(function(*split)).view(np.uint32)[..., 0])

        return bind.pure(ins.operands[0], run, *gets)

    return Row(factory, (3,), types="own own own", spread="any")


def logical(function, operands: int = 2) -> Row:
    """`d = function(p, q)` of predicates."""

    def factory(ins, bind):
        gets = [bind.predicate(op) for op in ins.operands[1:]]
        return bind.pure(ins.operands[0], lambda *held: of_predicates(function, *held), *gets)

    return Row(factory, (operands + 1,), types=" ".join(["pred"] * (operands + 1)), spread="bits")


def of_predicates(function, *held):
    """function(p, ...) of predicates, each a bool or an array of bool."""
    value = function(*held)
    return value if type(value) is np.ndarray else bool(value)


# --- Register values and arrays ---


def width_of(kind: str) -> int:
    return WIDTHS[kind]


def dtype_of(kind: str) -> np.dtype:
    return np.dtype(SIGNED[width_of(kind)] if kind[0] == "s" else UNSIGNED[width_of(kind)])


def as_value(array: np.ndarray):
    """An integer array of any type as a register value."""
    if array.size == 1:
        return collapse(array)
    low, high = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
    if array.dtype == np.uint64:
        return Affine(Pattern(array.view(np.int64), -(1 << 63), (1 << 63) - 1))
    return Affine(Pattern(array.astype(np.int64), int(low), int(high)))


def as_array(value, kind: str) -> np.ndarray:
    """An integer register value as an array of PTX type `kind`."""
    found = numbers(value, width_of(kind), kind[0] == "s")
    return found if found.dtype == dtype_of(kind) else found.astype(dtype_of(kind))


def remembered(name: tuple, values, compute):
    """`compute()`, a function of `name` and of the values alone, kept on a pattern where that is possible."""
    lanes = [value for value in values if type(value) is Affine]
    if len(lanes) == 1:
        rest = tuple(None if type(value) is Affine else value for value in values)
        return mapped((*name, rest), lanes[0], compute)
    if len(lanes) == 2:
        rest = tuple(None if type(value) is Affine else value for value in values)
        return paired((*name, rest), *lanes, compute)
    return compute()
