"""Logic, shifts and bit fields (PTX ISA 9.7.1.15 to 9.7.1.23, 9.7.8)."""

from __future__ import annotations

import numpy as np

from emulator.machine.values import (
    Affine,
    Pattern,
    add,
    exact,
    limits,
    mapped,
    negate,
    paired,
    scale,
    signed,
)
from emulator.ops.elementwise import (
    as_array,
    as_value,
    elementwise,
    of_predicates,
    remembered,
    width_of,
)
from emulator.text.program import Pair


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
            return bind.pure(ins.operands[0], lambda p, q: of_predicates(function, p, q), a, b)
        width = width_of(kind)
        a, b = (bind.integer(op, kind) for op in ins.operands[1:3])
        return bind.pure(ins.operands[0], lambda x, y: combine(x, y, width), a, b)

    return factory


def not_(ins, bind):
    kind = ins.parts[-1]
    if kind == "pred":
        get = bind.predicate(ins.operands[1])
        return bind.pure(ins.operands[0], lambda p: ~p if type(p) is np.ndarray else not p, get)
    width = width_of(kind)
    ones = (1 << 8 * width) - 1
    return bind.pure(
        ins.operands[0],
        lambda x: add(negate(x, width), ones, width),
        bind.integer(ins.operands[1], kind),
    )


def shl(ins, bind):
    kind = ins.parts[-1]
    width, bits = width_of(kind), 8 * width_of(kind)

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
    width, bits, is_signed = width_of(kind), 8 * width_of(kind), kind[0] == "s"

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


def _cnot(x):
    return (x == 0).astype(x.dtype)


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
    bits = 8 * width_of(kind)

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


OPCODES = {
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
}
