"""Integer arithmetic: sums, products, quotients, extremes, carries, dot products (PTX ISA 9.7.1, 9.7.2).

`values` does what loops do over and over (add, subtract, multiply by a constant) without touching
the lanes; the rest works on arrays.
"""

from __future__ import annotations

import numpy as np

from emulator.machine.values import add, multiply, negate, settle, signed, subtract, widen
from emulator.ops.elementwise import as_array, as_value, elementwise, remembered, width_of
from emulator.text.program import Reg

CARRY = Reg("%cc")  # the condition code register, one bit


def _sum(combine, sign: int):
    def factory(ins, bind):
        kind, parts = ins.parts[-1], ins.parts
        if parts[0] in ("addc", "subc") or "cc" in parts:
            return _carrying(ins, bind, sign)
        if kind in ("u16x2", "s16x2"):
            return _halves(ins, bind, np.add if sign > 0 else np.subtract)
        width = width_of(kind)
        a, b = (bind.integer(op, kind) for op in ins.operands[1:3])
        if "sat" in parts:
            return _saturating(ins, bind, a, b, sign)
        return bind.pure(ins.operands[0], lambda x, y: combine(x, y, width), a, b)

    return factory


def _saturating(ins, bind, a, b, sign):
    def run(x, y):
        total = as_array(x, "s32").astype(np.int64) + sign * as_array(y, "s32").astype(np.int64)
        return as_value(np.clip(total, -(1 << 31), (1 << 31) - 1).astype(np.int32))

    return bind.pure(ins.operands[0], run, a, b)


def _carrying(ins, bind, sign):
    """add.cc, addc, sub.cc, subc: the carry (or borrow) goes through the condition code register."""
    kind = f"u{ins.parts[-1][1:]}"
    width = width_of(kind)
    a, b = (bind.integer(op, kind) for op in ins.operands[1:3])
    carry_in = bind.read(CARRY) if ins.parts[0] in ("addc", "subc") else None
    put, put_carry = bind.put(ins.operands[0]), bind.put(CARRY) if "cc" in ins.parts else None

    def step(m, mask):
        x, y = as_array(a(m), kind), as_array(b(m), kind)
        carry = np.asarray(carry_in(m), bool).astype(x.dtype) if carry_in else x.dtype.type(0)
        with np.errstate(all="ignore"):
            total, out = (
                add_with_carry(x, y, carry) if sign > 0 else subtract_with_borrow(x, y, carry)
            )
        put(m, as_value(total), mask)
        if put_carry:
            put_carry(m, out, mask)

    del width
    return step


def add_with_carry(x, y, carry):
    """(x + y + carry, carry out) of unsigned arrays."""
    partial = x + y
    total = partial + carry
    return total, (partial < x) | (total < partial)


def subtract_with_borrow(x, y, borrow):
    """(x - y - borrow, borrow out) of unsigned arrays."""
    partial = x - y
    return partial - borrow, (x < y) | (partial < borrow)


def _halves(ins, bind, function):
    """u16x2 and s16x2: two 16-bit numbers in one register."""
    kind = ins.parts[-1]
    half = np.dtype(np.int16 if kind[0] == "s" else np.uint16)
    gets = [bind.array(op, np.uint32) for op in ins.operands[1:]]

    def run(*arrays):
        arrays = np.broadcast_arrays(*arrays)
        split = [np.ascontiguousarray(x).view(half).reshape(*x.shape, 2) for x in arrays]
        return as_value(np.ascontiguousarray(function(*split)).view(np.uint32)[..., 0])

    return bind.pure(ins.operands[0], run, *gets)


def high_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
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


def _product(x, y, ins_parts, kind):
    """mul: .lo, .hi or .wide of two register values."""
    width = width_of(kind)
    if "wide" in ins_parts:
        is_signed = kind[0] == "s"
        return multiply(
            widen(x, width, is_signed, 2 * width), widen(y, width, is_signed, 2 * width), 2 * width
        )
    if "hi" in ins_parts:

        def compute():
            a, b = np.broadcast_arrays(as_array(x, kind), as_array(y, kind))
            return as_value(high_product(np.ascontiguousarray(a), np.ascontiguousarray(b)))

        return remembered(("mul.hi", kind), (x, y), compute)
    return multiply(x, y, width)


def mul(ins, bind):
    kind, parts = ins.parts[-1], ins.parts
    a, b = (bind.integer(op, kind) for op in ins.operands[1:3])
    return bind.pure(ins.operands[0], lambda x, y: _product(x, y, parts, kind), a, b)


def mad(ins, bind):
    kind, parts = ins.parts[-1], ins.parts
    width = width_of(kind) * (2 if "wide" in parts else 1)
    a, b = (bind.integer(op, kind) for op in ins.operands[1:3])
    c = bind.integer(ins.operands[3], f"{kind[0]}{8 * width}")
    if "cc" in parts or parts[0] == "madc":
        return _mad_carry(ins, bind, a, b, c, kind)
    if "sat" in parts:
        put = bind.put(ins.operands[0])

        def saturating(m, mask):
            total = as_array(_product(a(m), b(m), parts, kind), kind).astype(np.int64) + as_array(
                c(m), kind
            )
            put(m, as_value(np.clip(total, -(1 << 31), (1 << 31) - 1).astype(np.int32)), mask)

        return saturating
    return bind.pure(
        ins.operands[0], lambda x, y, z: add(_product(x, y, parts, kind), z, width), a, b, c
    )


def _mad_carry(ins, bind, a, b, c, kind):
    unsigned = f"u{kind[1:]}"
    carry_in = bind.read(CARRY) if ins.parts[0] == "madc" else None
    put, put_carry = bind.put(ins.operands[0]), bind.put(CARRY) if "cc" in ins.parts else None

    def step(m, mask):
        product = as_array(_product(a(m), b(m), ins.parts, kind), unsigned)
        addend = as_array(c(m), unsigned)
        carry = (
            np.asarray(carry_in(m), bool).astype(product.dtype)
            if carry_in
            else product.dtype.type(0)
        )
        with np.errstate(all="ignore"):
            total, out = add_with_carry(product, addend, carry)
        put(m, as_value(total), mask)
        if put_carry:
            put_carry(m, out, mask)

    return step


def _low24(x, kind):
    """The low 24 bits, sign-extended for s32, as int64."""
    low = x.astype(np.int64) & 0xFFFFFF
    return (low ^ 0x800000) - 0x800000 if kind[0] == "s" else low


def mul24(ins, bind):
    kind, high = ins.parts[-1], "hi" in ins.parts
    gets = [bind.integer(op, kind) for op in ins.operands[1:]]

    def run(x, y, z=0):
        product = _low24(as_array(x, kind), kind) * _low24(as_array(y, kind), kind)
        product = product >> 16 if high else product
        return add(settle(product, -(1 << 48), 1 << 48, 4), z, 4)

    return bind.pure(ins.operands[0], run, *gets)


def _divide(x, y):
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


def _division(function):
    general = elementwise(function)

    def factory(ins, bind):
        kind = ins.parts[-1]
        a, b = (bind.integer(op, kind) for op in ins.operands[1:3])
        step = general(ins, bind)
        slow_put = bind.put(ins.operands[0])
        width, is_signed = width_of(kind), kind[0] == "s"

        def run(m, mask):
            x, y = a(m), b(m)
            if type(x) is int and type(y) is int and y:
                x, y = (signed(v, width) if is_signed else v for v in (x, y))
                quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
                value = quotient if function is _divide else x - quotient * y
                return slow_put(m, value & ((1 << 8 * width) - 1), mask)
            return step(m, mask)

        return run

    return factory


def _dot(ins, bind):
    """dp4a.{a}.{b} d, a, b, c: four 8-bit products; dp2a: two 16-bit a with the low or high 8-bit b."""
    four = ins.parts[0] == "dp4a"
    a_kind, b_kind = ins.parts[-2:]
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


def _extreme(name: str, scalar, ufunc):
    def factory(ins, bind):
        kind = ins.parts[-1]
        if kind in ("u16x2", "s16x2"):
            return _halves(ins, bind, ufunc)
        width, is_signed, relu = width_of(kind), kind[0] == "s", "relu" in ins.parts
        a, b = (bind.integer(op, kind) for op in ins.operands[1:3])

        def compute(x, y):
            found = ufunc(as_array(x, kind), as_array(y, kind))
            return as_value(np.maximum(found, 0) if relu else found)

        def run(x, y):
            if type(x) is int and type(y) is int and not relu:
                if is_signed:
                    return scalar(signed(x, width), signed(y, width)) & ((1 << 8 * width) - 1)
                return scalar(x, y)
            return remembered((name, kind, relu), (x, y), lambda: compute(x, y))

        return bind.pure(ins.operands[0], run, a, b)

    return factory


def neg(ins, bind):
    kind = ins.parts[-1]
    return bind.pure(
        ins.operands[0], lambda x: negate(x, width_of(kind)), bind.integer(ins.operands[1], kind)
    )


def _absolute(x):
    return np.where(x < 0, x.dtype.type(0) - x, x)


def _sad_kinds(ins, kind):
    return [kind, kind, f"u{kind[1:]}"]


def _sad(a, b, c):
    """|a - b| + c, the difference taken without overflow."""
    larger = np.where(a < b, b, a).view(f"u{a.dtype.itemsize}")
    smaller = np.where(a < b, a, b).view(f"u{a.dtype.itemsize}")
    return (larger - smaller) + c


OPCODES = {
    "add": _sum(add, 1),
    "addc": _sum(add, 1),
    "sub": _sum(subtract, -1),
    "subc": _sum(subtract, -1),
    "mul": mul,
    "mad": mad,
    "madc": mad,
    "mul24": mul24,
    "mad24": mul24,
    "div": _division(_divide),
    "rem": _division(_remainder),
    "dp4a": _dot,
    "dp2a": _dot,
    "min": _extreme("min", min, np.minimum),
    "max": _extreme("max", max, np.maximum),
    "neg": neg,
    "abs": elementwise(_absolute),
    "sad": elementwise(_sad, kinds=_sad_kinds),
}
