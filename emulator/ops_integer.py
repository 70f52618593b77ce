"""Integer arithmetic, logic, comparison and selection: PTX ISA 9.7.1, 9.7.2, 9.7.6 to 9.7.8.

`values` does what loops do over and over (add, subtract, multiply by a constant) without touching
the lanes. Everything else works on NumPy arrays of the instruction's type, and remembers the result on
the operand's pattern, so that what a loop recomputes from unchanged operands costs nothing either.
"""

from __future__ import annotations

import numpy as np

from .ptx import SINK, WIDTHS, Pair, Reg
from .values import (
    SIGNED,
    UNSIGNED,
    Affine,
    Pattern,
    add,
    collapse,
    exact,
    limits,
    mapped,
    merge,
    multiply,
    negate,
    numbers,
    paired,
    scale,
    settle,
    signed,
    subtract,
    widen,
)

INTEGERS = {f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)}
CARRY = Reg("%cc")  # the condition code register, one bit


def _width(kind: str) -> int:
    return WIDTHS[kind]


def _dtype(kind: str) -> np.dtype:
    return np.dtype(SIGNED[_width(kind)] if kind[0] == "s" else UNSIGNED[_width(kind)])


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
    found = numbers(value, _width(kind), kind[0] == "s")
    return found if found.dtype == _dtype(kind) else found.astype(_dtype(kind))


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


# --- Sums and products ------------------------------------------------------------------------------


def _sum(combine, sign: int):
    def factory(ins, bind):
        kind, parts = ins.parts[-1], ins.parts
        if parts[0] in ("addc", "subc") or "cc" in parts:
            return _carrying(ins, bind, sign)
        if kind in ("u16x2", "s16x2"):
            return _halves(ins, bind, np.add if sign > 0 else np.subtract)
        width = _width(kind)
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
    width = _width(kind)
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
    width = _width(kind)
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
    width = _width(kind) * (2 if "wide" in parts else 1)
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
        width, is_signed = _width(kind), kind[0] == "s"

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


# --- Logic and shifts -------------------------------------------------------------------------------


def _bitwise(name: str, function):
    def combine(x, y, width):
        if type(x) is int:
            if type(y) is int:
                return function(x, y)
            x, y = y, x
        if type(y) is int:
            return mapped((name, y, width), x, lambda: _with_constant(x, y, width))
        return paired((name, width), x, y, lambda: _of_two(x, y, width))

    def _with_constant(x, constant, width):
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

    def _of_two(x, y, width):
        x, y = exact(x, width, True), exact(y, width, True)
        array = function(x.pattern.array + x.offset, y.pattern.array + y.offset)
        if x.lo >= 0 and y.lo >= 0:
            return Affine(Pattern(array, 0, (1 << max(x.hi, y.hi).bit_length()) - 1))
        return Affine(Pattern(array, *limits(width, True)))

    def factory(ins, bind):
        kind = ins.parts[-1]
        if kind == "pred":
            a, b = (bind.predicate(op) for op in ins.operands[1:3])
            return bind.pure(ins.operands[0], lambda p, q: _predicates(function, p, q), a, b)
        width = _width(kind)
        a, b = (bind.integer(op, kind) for op in ins.operands[1:3])
        return bind.pure(ins.operands[0], lambda x, y: combine(x, y, width), a, b)

    return factory


def _predicates(function, p, q):
    value = function(p, q)
    return value if type(value) is np.ndarray else bool(value)


def not_(ins, bind):
    kind = ins.parts[-1]
    if kind == "pred":
        get = bind.predicate(ins.operands[1])
        return bind.pure(ins.operands[0], lambda p: ~p if type(p) is np.ndarray else not p, get)
    width = _width(kind)
    ones = (1 << 8 * width) - 1
    return bind.pure(
        ins.operands[0],
        lambda x: add(negate(x, width), ones, width),
        bind.integer(ins.operands[1], kind),
    )


def shl(ins, bind):
    kind = ins.parts[-1]
    width, bits = _width(kind), 8 * _width(kind)

    def run(x, count):
        if type(count) is int:
            return scale(x, 1 << count, width) if count < bits else 0
        array, by = as_array(x, f"u{bits}"), as_array(count, "u32")
        return as_value(
            np.where(
                by < bits,
                array << np.minimum(by, bits - 1).astype(array.dtype),
                array.dtype.type(0),
            )
        )

    return bind.pure(
        ins.operands[0],
        run,
        bind.integer(ins.operands[1], kind),
        bind.integer(ins.operands[2], "u32"),
    )


def shr(ins, bind):
    kind = ins.parts[-1] if ins.parts[-1][0] != "b" else f"u{ins.parts[-1][1:]}"
    width, bits, is_signed = _width(kind), 8 * _width(kind), kind[0] == "s"

    def fixed(x, count):
        if count >= bits:
            if not is_signed:
                return 0
            count = bits - 1
        if width == 8 and not is_signed and x.lo < 0:
            return as_value(as_array(x, kind) >> np.uint64(count))
        x = exact(x, width, is_signed)
        return Affine(Pattern((x.pattern.array + x.offset) >> count, x.lo >> count, x.hi >> count))

    def run(x, count):
        if type(count) is int:
            if type(x) is int:
                number = signed(x, width) if is_signed else x
                return (number >> min(count, 64)) & ((1 << bits) - 1)
            return mapped(("shr", kind, count), x, lambda: fixed(x, count))
        array, by = as_array(x, kind), as_array(count, "u32")
        shifted = array >> np.minimum(by, bits - 1).astype(array.dtype)
        return as_value(shifted if is_signed else np.where(by < bits, shifted, array.dtype.type(0)))

    return bind.pure(
        ins.operands[0],
        run,
        bind.integer(ins.operands[1], kind),
        bind.integer(ins.operands[2], "u32"),
    )


def shf(ins, bind):
    """Funnel shift: shf.{l,r}.{clamp,wrap}.b32 d, low, high, count."""
    left, wrap = ins.parts[1] == "l", "wrap" in ins.parts

    def run(low, high, count):
        by = (count & 31 if wrap else np.minimum(count, 32)).astype(np.uint64)
        both = (high.astype(np.uint64) << np.uint64(32)) | low
        shifted = (both << by) >> np.uint64(32) if left else both >> by
        return shifted.astype(np.uint32)

    def factory_kinds(ins, kind):
        return ["u32", "u32", "u32"]

    return elementwise(run, kinds=factory_kinds)(ins, bind)


def lop3(ins, bind):
    operands = ins.operands
    if "BoolOp" in ins.parts or len(operands) > 5 or isinstance(operands[0], Pair):
        raise bind.unsupported()
    table = operands[4].value
    a, b, c = (bind.integer(op, "u32") for op in operands[1:4])

    def compute(x, y, z):
        x, y, z = (as_array(v, "u32") for v in (x, y, z))
        out = np.uint32(0)
        for term in range(8):
            if table >> term & 1:
                out = out | (
                    (x if term & 4 else ~x) & (y if term & 2 else ~y) & (z if term & 1 else ~z)
                )
        return as_value(
            np.broadcast_to(out, np.broadcast_shapes(x.shape, y.shape, z.shape)).astype(np.uint32)
        )

    def run(x, y, z):
        return remembered(("lop3", table), (x, y, z), lambda: compute(x, y, z))

    return bind.pure(operands[0], run, a, b, c)


# --- Bits -------------------------------------------------------------------------------------------


def _popc(x):
    return np.bitwise_count(x).astype(np.uint32)


def _highest(x: np.ndarray) -> np.ndarray:
    """Position of the highest set bit of unsigned x, -1 for 0 (int64)."""
    position = np.full(x.shape, -1, np.int64)
    rest = x.astype(np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        more = rest >> np.uint64(step) != 0
        position = np.where(more, position + step, position)
        rest = np.where(more, rest >> np.uint64(step), rest)
    return np.where(x != 0, position + 1, -1)


def _clz(x):
    return (8 * x.dtype.itemsize - 1 - _highest(x)).astype(np.uint32)


def _brev(x):
    width = x.dtype.itemsize
    octets = np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, width)[..., ::-1]
    table = np.array([int(f"{i:08b}"[::-1], 2) for i in range(256)], np.uint8)
    return np.ascontiguousarray(table[octets]).view(x.dtype)[..., 0]


def bfind(ins, bind):
    kind, amount = ins.parts[-1], "shiftamt" in ins.parts
    bits = 8 * _width(kind)

    def run(x):
        if kind[0] == "s":
            x = np.where(x < 0, ~x, x)
        found = _highest(x.view(f"u{x.dtype.itemsize}"))
        return np.where(found < 0, 0xFFFFFFFF, bits - 1 - found if amount else found).astype(
            np.uint32
        )

    return elementwise(run)(ins, bind)


def _bfe(a, position, length, kind):
    bits = 8 * a.dtype.itemsize
    pos, size = position.astype(np.int64) & 255, length.astype(np.int64) & 255
    unsigned = a.view(f"u{a.dtype.itemsize}").astype(np.uint64)
    inside = pos < bits
    field = np.where(inside, unsigned >> np.minimum(pos, bits - 1).astype(np.uint64), np.uint64(0))
    kept = np.minimum(size, bits)
    ones = np.where(
        kept >= 64,
        ~np.uint64(0),
        (np.uint64(1) << np.minimum(kept, 63).astype(np.uint64)) - np.uint64(1),
    )
    field = field & ones
    if kind[0] == "s":
        top = np.minimum(pos + size - 1, bits - 1)
        sign = (unsigned >> np.maximum(top, 0).astype(np.uint64)) & np.uint64(1)
        sign = np.where(size == 0, np.uint64(0), sign)
        field = np.where(
            sign == 1, field | ~np.where(pos + size > bits, _ones(bits - pos), ones), field
        )
        field = np.where((sign == 1) & ~inside, ~np.uint64(0), field)
    return field.astype(f"u{a.dtype.itemsize}").view(a.dtype)


def _ones(count):
    """uint64 with the low `count` bits set; count is clipped to [0, 64]."""
    count = np.clip(count, 0, 64)
    return np.where(
        count >= 64,
        ~np.uint64(0),
        (np.uint64(1) << np.minimum(count, 63).astype(np.uint64)) - np.uint64(1),
    )


def _bfi(a, b, position, length, kind):
    bits = 8 * a.dtype.itemsize
    pos, size = position.astype(np.int64) & 255, length.astype(np.int64) & 255
    field = np.where(
        pos < bits, _ones(size) << np.minimum(pos, bits - 1).astype(np.uint64), np.uint64(0)
    )
    value = a.astype(np.uint64) << np.minimum(pos, bits - 1).astype(np.uint64)
    return ((b.astype(np.uint64) & ~field) | (value & field)).astype(a.dtype)


def prmt(ins, bind):
    mode = ins.parts[2] if len(ins.parts) > 2 else "b32"
    a, b, c = (bind.integer(op, "u32") for op in ins.operands[1:4])

    def pick(x, y, z):
        both = (as_array(y, "u32").astype(np.uint64) << np.uint64(32)) | as_array(x, "u32")
        control = as_array(z, "u32").astype(np.int64)
        out = np.uint64(0)
        for at in range(4):
            if mode == "b32":
                selector = (control >> (4 * at)) & 15
            else:
                low = control & 3
                selector = {
                    "f4e": low + at,
                    "b4e": (low - at) & 7,
                    "rc8": low,
                    "ecl": np.maximum(low, at),
                    "ecr": np.minimum(low, at),
                    "rc16": (low & 1) * 2 + (at & 1),
                }[mode]
            octet = (both >> (8 * (selector & 7)).astype(np.uint64)) & np.uint64(255)
            if mode == "b32":
                octet = np.where(
                    selector & 8,
                    np.where(octet & np.uint64(128), np.uint64(255), np.uint64(0)),
                    octet,
                )
            out = out | (octet << np.uint64(8 * at))
        return as_value(out.astype(np.uint32))

    def run(x, y, z):
        return remembered(("prmt", mode), (x, y, z), lambda: pick(x, y, z))

    return bind.pure(ins.operands[0], run, a, b, c)


def _fns(mask, base, offset):
    """Find the n-th set bit from `base`, up for positive offsets, down for negative."""
    out = np.full(np.broadcast_shapes(mask.shape, base.shape, offset.shape), 0xFFFFFFFF, np.uint32)
    mask, base, offset = np.broadcast_arrays(mask, base, offset.view(np.int32))
    for at in np.ndindex(out.shape):
        value, start, wanted = int(mask[at]), int(base[at]), int(offset[at])
        if wanted == 0:
            if start < 32 and value >> start & 1:
                out[at] = start
            continue
        bits = range(start, 32) if wanted > 0 else range(min(start, 31), -1, -1)
        found = [bit for bit in bits if value >> bit & 1]
        if len(found) >= abs(wanted):
            out[at] = found[abs(wanted) - 1]
    return out


def _bmsk(ins, bind):
    wrap = "wrap" in ins.parts

    def run(a, b):
        first, count = a.astype(np.int64), b.astype(np.int64)
        if wrap:
            first, count = first & 31, count & 31
        field = _ones(np.minimum(count, 64)) << np.minimum(first, 63).astype(np.uint64)
        return np.where(first > 31, np.uint64(0), field).astype(np.uint32)

    return elementwise(run, kinds=lambda ins, kind: ["u32", "u32"])(ins, bind)


def _szext(ins, bind):
    kind, wrap = ins.parts[-1], "wrap" in ins.parts

    def run(a, b):
        count = b.astype(np.int64)
        count = count & 31 if wrap else np.minimum(count, 32)
        field = a.view(np.uint32).astype(np.uint64) & _ones(count)
        if kind[0] == "s":
            negative = (count > 0) & (
                field >> np.maximum(count - 1, 0).astype(np.uint64) & np.uint64(1) == 1
            )
            field = np.where(negative, field | ~_ones(count), field)
        return field.astype(np.uint32)

    return elementwise(run, kinds=lambda ins, kind: [kind, "u32"])(ins, bind)


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


# --- Extremes, absolute values ----------------------------------------------------------------------


def _extreme(name: str, scalar, ufunc):
    def factory(ins, bind):
        kind = ins.parts[-1]
        if kind in ("u16x2", "s16x2"):
            return _halves(ins, bind, ufunc)
        width, is_signed, relu = _width(kind), kind[0] == "s", "relu" in ins.parts
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
        ins.operands[0], lambda x: negate(x, _width(kind)), bind.integer(ins.operands[1], kind)
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


def _cnot(x):
    return (x == 0).astype(x.dtype)


# --- Comparison and selection -----------------------------------------------------------------------

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
    width, is_signed = _width(kind), kind[0] == "s"
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
    destination = ins.operands[0]
    first, second = (
        (destination.first, destination.second)
        if isinstance(destination, Pair)
        else (destination, SINK)
    )
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
        put(m, _predicates(function, holds, other), mask)
        if second is not SINK:
            put_other(
                m,
                _predicates(function, ~holds if type(holds) is np.ndarray else not holds, other),
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
        return bind.pure(ins.operands[0], lambda x, y, z: _selected(z >= 0, x, y, width), a, b, c)
    c = bind.integer(ins.operands[3], "s32")
    return bind.pure(
        ins.operands[0], lambda x, y, z: _selected(compare("ge", z, 0, "s32"), x, y, width), a, b, c
    )


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
    "and": _bitwise("and", lambda x, y: x & y),
    "or": _bitwise("or", lambda x, y: x | y),
    "xor": _bitwise("xor", lambda x, y: x ^ y),
    "not": not_,
    "cnot": elementwise(_cnot),
    "shl": shl,
    "shr": shr,
    "shf": shf,
    "lop3": lop3,
    "popc": elementwise(_popc),
    "clz": elementwise(_clz),
    "brev": elementwise(_brev),
    "bfind": bfind,
    "bfe": elementwise(_bfe, kinds=lambda ins, kind: [kind, "u32", "u32"]),
    "bfi": elementwise(_bfi, kinds=lambda ins, kind: [kind, kind, "u32", "u32"]),
    "prmt": prmt,
    "fns": elementwise(_fns, kinds=lambda ins, kind: ["u32", "u32", "u32"]),
    "bmsk": _bmsk,
    "szext": _szext,
    "dp4a": _dot,
    "dp2a": _dot,
    "min": _extreme("min", min, np.minimum),
    "max": _extreme("max", max, np.maximum),
    "neg": neg,
    "abs": elementwise(_absolute),
    "sad": elementwise(_sad, kinds=_sad_kinds),
    "setp": setp,
    "set": set_,
    "selp": selp,
    "slct": slct,
}
