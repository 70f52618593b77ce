"""Integer register values as NumPy arrays of an instruction's type, and back, remembering what was computed.

A result is kept on its operand's pattern, so that what a loop recomputes from unchanged operands costs
nothing.
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
from emulator.text.program import WIDTHS

INTEGERS = {f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)}


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


def elementwise(function, result: str | None = None, kinds=None):
    """A factory for `d = function(a, b, ...)` on arrays of the instruction's type.

    kinds: the operands' types where they differ from the last word of the opcode.
    """

    def factory(ins, bind):
        kind = ins.parts[-1]
        types = kinds(ins, kind) if kinds else [kind] * (len(ins.operands) - 1)
        gets = [bind.integer(op, t) for op, t in zip(ins.operands[1:], types, strict=True)]
        name = (ins.opcode,)

        def run(*values):
            def compute():
                arrays = [as_array(value, t) for value, t in zip(values, types, strict=True)]
                with np.errstate(all="ignore"):
                    return as_value(np.ascontiguousarray(function(*arrays, **options)))

            return remembered(name, values, compute)

        options = (
            {"kind": kind}
            if "kind" in function.__code__.co_varnames[: function.__code__.co_argcount]
            else {}
        )
        return bind.pure(ins.operands[0], run, *gets)

    return factory


def of_predicates(function, p, q):
    """function(p, q) of two predicates, each a bool or an array of bool."""
    value = function(p, q)
    return value if type(value) is np.ndarray else bool(value)
