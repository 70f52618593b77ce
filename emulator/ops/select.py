"""Comparison and selection: setp, set, selp, slct (PTX ISA 9.7.6)."""

from __future__ import annotations

import numpy as np

from emulator.machine.values import UNSIGNED, limits, merge, signed
from emulator.ops.elementwise import as_array, of_predicates, remembered, width_of
from emulator.ops.forms import INT, LOGIC, MOVED, WORD
from emulator.text.program import SINK, WIDTHS, Reg
from emulator.text.rows import Row

_COMPARE = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def compare(operator: str, x, y, kind: str):
    """A comparison of register values: bool, or an array of them."""
    if operator in _UNSIGNED_NAMES:
        operator, kind = _UNSIGNED_NAMES[operator], f"u{kind[1:]}"
    width, is_signed = width_of(kind), kind[0] == "s"
    if type(x) is int and type(y) is int:
        if is_signed:
            x, y = signed(x, width), signed(y, width)
        return _COMPARE[operator](x, y)
    (a_lo, a_hi), (b_lo, b_hi) = (_bounds(v, width, is_signed) for v in (x, y))
    if a_hi < b_lo:
        return operator in ("lt", "le", "ne")
    if a_lo > b_hi:
        return operator in ("gt", "ge", "ne")
    if (operator == "le" and a_hi <= b_lo) or (operator == "ge" and a_lo >= b_hi):
        return True
    if (operator == "lt" and a_lo >= b_hi) or (operator == "gt" and a_hi <= b_lo):
        return False
    return remembered(
        ("setp", operator, kind),
        (x, y),
        lambda: _COMPARE[operator](as_array(x, kind), as_array(y, kind)),
    )


def _bounds(value, width, is_signed):
    if type(value) is int:
        number = signed(value, width) if is_signed else value
        return number, number
    low, high = limits(width, is_signed)
    if value.lo < low or value.hi > high:
        return low, high
    return value.lo, value.hi


def setp(ins, bind, comparison=None):
    """setp.cmp[.bool][.ftz].type p[|q], a, b[, [!]c]; floats give their own `comparison`."""
    kind, operator = ins.parts[-1], ins.parts[1]
    first, second = bind.pair(ins.operands[0])
    put, put_other = bind.put(first), bind.put(second)
    if comparison is None:
        a, b = (bind.integer(op, kind) for op in ins.operands[1:3])

        def comparison(m):
            return compare(operator, a(m), b(m), kind)

    if len(ins.operands) < 4:

        def step(m, mask):
            holds = comparison(m)
            put(m, holds, mask)
            if second is not SINK:
                put_other(m, ~holds if type(holds) is np.ndarray else not holds, mask)

        return step
    combine = next(p for p in ins.parts[2:] if p in ("and", "or", "xor"))
    function = {"and": lambda p, q: p & q, "or": lambda p, q: p | q, "xor": lambda p, q: p ^ q}[
        combine
    ]
    third = bind.predicate(ins.operands[3])

    def combined(m, mask):
        holds, other = comparison(m), third(m)
        put(m, of_predicates(function, holds, other), mask)
        if second is not SINK:
            put_other(
                m,
                of_predicates(function, ~holds if type(holds) is np.ndarray else not holds, other),
                mask,
            )

    return combined


def set_(ins, bind, comparison=None):
    """set.cmp.dtype.stype: the comparison as all ones (or 1.0)."""
    result, kind = ins.parts[-2:]
    true = (
        0x3F800000 if result == "f32" else {"f16": 0x3C00, "bf16": 0x3F80}.get(result, 0xFFFFFFFF)
    )
    width = WIDTHS[result]
    put = bind.put(ins.operands[0])
    if comparison is None:
        a, b = (bind.integer(op, kind) for op in ins.operands[1:3])

        def comparison(m):
            return compare(ins.parts[1], a(m), b(m), kind)

    third, function = None, None
    if len(ins.operands) > 3:
        combine = next(p for p in ins.parts[2:] if p in ("and", "or", "xor"))
        function = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[combine]
        third = bind.predicate(ins.operands[3])

    def step(m, mask):
        holds = comparison(m)
        if third:
            holds = function(holds, third(m))
        put(m, np.where(np.atleast_2d(holds), UNSIGNED[width](true), UNSIGNED[width](0)), mask)

    return step


def _selected(holds, x, y, width):
    if type(holds) is not np.ndarray:
        return x if holds else y
    return merge(holds, x, y, width)


def selp(ins, bind):
    kind = ins.parts[-1]
    width = WIDTHS[kind]
    if kind[0] == "f":
        a, b = (bind.array(op, f"f{width}") for op in ins.operands[1:3])
    elif kind == "pred":
        a, b, width = bind.predicate(ins.operands[1]), bind.predicate(ins.operands[2]), 0
    else:
        a, b = (_held(bind, op, kind) for op in ins.operands[1:3])
    predicate = bind.predicate(ins.operands[3])
    return bind.pure(ins.operands[0], lambda x, y, p: _selected(p, x, y, width), a, b, predicate)


def _held(bind, operand, kind):
    """The register as it is where it has the type's width; else as an integer."""
    if isinstance(operand, Reg) and bind.width(operand) == WIDTHS[kind]:
        return bind.value(operand, WIDTHS[kind])
    return bind.integer(operand, f"u{kind[1:]}")


def slct(ins, bind):
    kind, test = ins.parts[-2:]
    width = WIDTHS[kind]
    if kind[0] == "f":
        a, b = (bind.array(op, f"f{width}") for op in ins.operands[1:3])
    else:
        a, b = (_held(bind, op, kind) for op in ins.operands[1:3])
    if test == "f32":
        c = bind.array(ins.operands[3], np.float32)
        # .ftz: a subnormal number counts as a zero of its sign, and -0 is not below 0
        float32 = np.finfo(np.float32)
        below = -(float32.tiny if "ftz" in ins.parts else float32.smallest_subnormal)
        return bind.pure(
            ins.operands[0], lambda x, y, z: _selected(z > below, x, y, width), a, b, c
        )
    c = bind.integer(ins.operands[3], "s32")
    return bind.pure(
        ins.operands[0], lambda x, y, z: _selected(compare("ge", z, 0, "s32"), x, y, width), a, b, c
    )


_COMPARISONS = "eq|ne|lt|le|gt|ge|lo|ls|hi|hs"

OPCODES = {
    "setp": {
        f"{_COMPARISONS}! {LOGIC} {WORD}|{INT}!": Row(
            setp, (3, 4), types="pred own own pred", spread="compares"
        )
    },
    "selp": {f"pred|{MOVED}!": Row(selp, (4,), types="own own own pred", spread="moves 1 2")},
    "slct": {f"ftz {MOVED}*!": Row(slct, (4,), types="first first first own", spread="moves 1 2")},
}
