"""Integer arithmetic: sums, products, quotients, extremes, carries, dot products (PTX ISA 9.7.1, 9.7.2)."""

from __future__ import annotations

import numpy as np

from emulator.machine.values import add, settle
from emulator.ops.elementwise import (
    OWN,
    UNSIGNED_OWN,
    WIDE,
    as_array,
    as_value,
    binary,
    each,
    halves,
    ternary,
    unary,
)
from emulator.ops.forms import CARRIED, INT, PAIRS
from emulator.text.program import Reg
from emulator.text.rows import Row

CARRY = Reg("%cc")  # the condition code register, one bit
_HALF_OR_WORD = "u16|s16|u32|s32"


# --- Products, quotients, differences ---


def _wide(x: np.ndarray) -> np.ndarray:
    """The same numbers in a type twice as wide."""
    return x.astype(f"{x.dtype.kind}{2 * x.dtype.itemsize}")


def _clipped(x: np.ndarray) -> np.ndarray:
    """64-bit numbers, saturated to s32."""
    return np.clip(x, -(1 << 31), (1 << 31) - 1).astype(np.int32)


def _high_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The upper half of the product of two arrays of one integer type."""
    bits = 8 * x.dtype.itemsize
    if bits < 32:
        return ((x.astype(np.int64) * y.astype(np.int64)) >> bits).astype(x.dtype)
    if bits == 32:
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        return ((x.astype(wide) * y.astype(wide)) >> wide(32)).astype(x.dtype)
    a, b, low = x.view(np.uint64), y.view(np.uint64), np.uint64(0xFFFFFFFF)
    a0, a1, b0, b1, shift = a & low, a >> np.uint64(32), b & low, b >> np.uint64(32), np.uint64(32)
    middle = a1 * b0 + (a0 * b0 >> shift)
    cross = a0 * b1 + (middle & low)
    high = a1 * b1 + (middle >> shift) + (cross >> shift)
    if x.dtype.kind == "i":
        high = high - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return high.view(x.dtype)


def _product24(x, y):
    """The product of the low 24 bits, sign-extended for s32, as int64."""
    return _low24(x) * _low24(y)


def _low24(x):
    low = x.astype(np.int64) & 0xFFFFFF
    return (low ^ 0x800000) - 0x800000 if x.dtype.kind == "i" else low


def _quotient(x, y):
    """The quotient cut towards zero; all ones where the divisor is 0, as the hardware leaves it."""
    if x.dtype.kind == "u":
        return np.where(
            y == 0, x.dtype.type(np.iinfo(x.dtype).max), x // np.where(y == 0, x.dtype.type(1), y)
        )
    safe = np.where(y == 0, x.dtype.type(1), y)
    quotient = x // safe
    quotient = quotient + ((x % safe != 0) & ((x < 0) != (safe < 0))).astype(x.dtype)
    quotient = np.where(safe == -1, x.dtype.type(0) - x, quotient)
    return np.where(y == 0, x.dtype.type(-1), quotient)


def _remainder(x, y):
    """The remainder with the dividend's sign; the dividend where the divisor is 0."""
    safe = np.where(y == 0, x.dtype.type(1), y)
    if x.dtype.kind == "u":
        return np.where(y == 0, x, x % safe)
    return np.where(y == 0, x, np.where(safe == -1, x.dtype.type(0), np.fmod(x, safe)))


def _sad(a, b, c):
    """|a - b| + c, the difference taken without overflow."""
    larger = np.where(a < b, b, a).view(f"u{a.dtype.itemsize}")
    smaller = np.where(a < b, a, b).view(f"u{a.dtype.itemsize}")
    return (larger - smaller) + c


# --- Carries ---


def _carrying(function) -> Row:
    """add.cc, addc, sub.cc, subc: the carry goes through the condition code register.

    There is one flag, the adder's carry: `sub.cc` sets it where there is no borrow, and an `addc` after it
    adds that same flag (measured on an H200: tests/data/README.md, `carry_rule`).
    """

    def factory(ins, bind):
        kind = f"u{ins.parts[-1][1:]}"
        a, b = (bind.integer(op, kind) for op in ins.operands[1:])
        carry_in, put = _carry_in(ins, bind), _put_with_carry(ins, bind)

        def step(m, mask):
            x, y = as_array(a(m), kind), as_array(b(m), kind)
            with np.errstate(all="ignore"):
                put(m, *function(x, y, carry_in(m, x.dtype)), mask)

        return step

    return Row(factory, (3,), types="own own own", spread="any")


def add_with_carry(x, y, carry):
    """(x + y + carry, carry out) of unsigned arrays."""
    partial = x + y
    total = partial + carry
    return total, (partial < x) | (total < partial)


def subtract_with_carry(x, y, carry):
    """(x - y - 1 + carry, carry out) of unsigned arrays: the complement of y is added."""
    return add_with_carry(x, ~y, carry)


def _mad_carry(ins, bind):
    """mad.cc and madc, of the low or the high half of the product."""
    kind, high = ins.parts[-1], "hi" in ins
    unsigned = f"u{kind[1:]}"
    a, b, c = (bind.integer(op, kind) for op in ins.operands[1:])
    carry_in, put = _carry_in(ins, bind), _put_with_carry(ins, bind)

    def step(m, mask):
        x, y, addend = as_array(a(m), kind), as_array(b(m), kind), as_array(c(m), unsigned)
        with np.errstate(all="ignore"):
            product = (_high_product(x, y) if high else x * y).view(addend.dtype)
            put(m, *add_with_carry(product, addend, carry_in(m, addend.dtype)), mask)

    return step


def _carry_in(ins, bind):
    """get(m, dtype) -> the carry that addc, subc and madc take in; 1 for sub.cc, 0 for others."""
    if ins.parts[0] not in ("addc", "subc", "madc"):
        constant = int(ins.parts[0] == "sub")
        return lambda m, dtype: dtype.type(constant)
    read = bind.read(CARRY)
    return lambda m, dtype: np.asarray(read(m), bool).astype(dtype)


def _put_with_carry(ins, bind):
    """put(m, result, carry, mask); the carry is kept by `.cc` alone."""
    put = bind.put(ins.operands[0])
    put_carry = bind.put(CARRY) if "cc" in ins else None

    def both(m, result, carry, mask):
        put(m, as_value(result), mask)
        if put_carry:
            put_carry(m, carry, mask)

    return both


# --- Dot products ---


def _dot(ins, bind):
    """dp4a.{a}.{b} d, a, b, c: four 8-bit products; dp2a: two 16-bit a with the low or high 8-bit b."""
    four = ins.parts[0] == "dp4a"
    a_kind, b_kind = ins.parts[-2:]
    if a_kind not in ("u32", "s32"):
        raise bind.unsupported("it takes two types")
    high = "hi" in ins.parts
    c_kind = "s32" if "s32" in (a_kind, b_kind) else "u32"
    gets = [
        bind.integer(op, kind)
        for op, kind in zip(ins.operands[1:], ("u32", "u32", c_kind), strict=True)
    ]

    def parts(x, size, kind):
        dtype = f"{'i' if kind[0] == 's' else 'u'}{size}"
        array = np.ascontiguousarray(as_array(x, "u32"))
        return array.view(dtype).reshape(*array.shape, 4 // size).astype(np.int64)

    def run(x, y, z):
        left, right = parts(x, 1 if four else 2, a_kind), parts(y, 1, b_kind)
        if not four:
            right = right[..., 2:] if high else right[..., :2]
        total = (left * right).sum(axis=-1)
        return add(
            settle(total, -(1 << 27), 1 << 27, 4)
            if total.size > 1
            else int(total.item()) & 0xFFFFFFFF,
            z,
            4,
        )

    return bind.pure(ins.operands[0], run, *gets)


OPCODES = {
    "add": {
        f"{INT}!": binary(lambda a, b: a + b),
        "sat! s32!": binary(lambda a, b: _clipped(_wide(a) + _wide(b))),
        f"{PAIRS}!": halves(lambda a, b: a + b),
        f"cc! {CARRIED}!": _carrying(add_with_carry),
    },
    "addc": {f"cc {CARRIED}!": _carrying(add_with_carry)},
    "sub": {
        f"{INT}!": binary(lambda a, b: a - b),
        "sat! s32!": binary(lambda a, b: _clipped(_wide(a) - _wide(b))),
        f"{PAIRS}!": halves(lambda a, b: a - b),
        f"cc! {CARRIED}!": _carrying(subtract_with_carry),
    },
    "subc": {f"cc {CARRIED}!": _carrying(subtract_with_carry)},
    "mul": {
        f"lo! {INT}!": binary(lambda a, b: a * b),
        f"hi! {INT}!": binary(_high_product),
        f"wide! {_HALF_OR_WORD}!": binary(lambda a, b: _wide(a) * _wide(b), WIDE),
    },
    "mad": {
        f"lo! {INT}!": ternary(lambda a, b, c: a * b + c),
        f"hi! {INT}!": ternary(lambda a, b, c: _high_product(a, b) + c),
        f"wide! {_HALF_OR_WORD}!": each(
            lambda a, b, c: _wide(a) * _wide(b) + c, OWN, OWN, WIDE, result=WIDE
        ),
        "hi! sat! s32!": ternary(lambda a, b, c: _clipped(_wide(_high_product(a, b)) + c)),
        f"lo|hi! cc! {CARRIED}!": Row(_mad_carry, (4,), types="own own own own", spread="any"),
    },
    "madc": {f"lo|hi! cc {CARRIED}!": Row(_mad_carry, (4,), types="own own own own", spread="any")},
    "mul24": {
        "lo! u32|s32!": binary(lambda a, b: _product24(a, b).astype(a.dtype)),
        "hi! u32|s32!": binary(lambda a, b: (_product24(a, b) >> 16).astype(a.dtype)),
    },
    "mad24": {
        "lo! u32|s32!": ternary(lambda a, b, c: _product24(a, b).astype(a.dtype) + c),
        "hi! u32|s32!": ternary(lambda a, b, c: (_product24(a, b) >> 16).astype(a.dtype) + c),
        "hi! sat! s32!": ternary(lambda a, b, c: _clipped((_product24(a, b) >> 16) + c)),
    },
    "div": {f"{INT}!": binary(_quotient)},
    "rem": {f"{INT}!": binary(_remainder)},
    "sad": {f"{INT}!": each(_sad, OWN, OWN, UNSIGNED_OWN)},
    "dp4a": {"u32|s32*!": Row(_dot, (4,), types="u32 u32 u32 u32", spread="any")},
    "dp2a": {"lo|hi! u32|s32*!": Row(_dot, (4,), types="u32 u32 u32 u32", spread="any")},
    "min": {
        f"{INT}!": binary(np.minimum),
        "relu! s32!": binary(lambda a, b: np.maximum(np.minimum(a, b), 0)),
        f"{PAIRS}!": halves(np.minimum),
    },
    "max": {
        f"{INT}!": binary(np.maximum),
        "relu! s32!": binary(lambda a, b: np.maximum(np.maximum(a, b), 0)),
        f"{PAIRS}!": halves(np.maximum),
    },
    "neg": {f"{INT}!": unary(lambda a: -a)},
    "abs": {f"{INT}!": unary(np.abs)},
}
