"""Logic, shifts and bit fields (PTX ISA 9.7.1.15 to 9.7.1.23, 9.7.8)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from emulator.ops.cluster import clears_peer_bit, leader_address
from emulator.ops.elementwise import (
    OWN,
    as_array,
    as_value,
    bitwise,
    each,
    logical,
    remembered,
    unary,
)
from emulator.ops.forms import CARRIED, INT, WORD
from emulator.text.program import Imm
from emulator.text.rows import Row

# --- Shifts ---


def _shifted_left(a, count):
    bits = 8 * a.dtype.itemsize
    moved = a << np.minimum(count, bits - 1).astype(a.dtype)
    return np.where(count < bits, moved, a.dtype.type(0))


def _shifted_right(a, count):
    """Signed numbers keep their sign: shifting further than their width leaves 0 or -1."""
    bits = 8 * a.dtype.itemsize
    moved = a >> np.minimum(count, bits - 1).astype(a.dtype)
    return moved if a.dtype.kind == "i" else np.where(count < bits, moved, a.dtype.type(0))


def _funnel_left(low, high, count):
    """The upper half of (high, low) shifted left by up to 32."""
    return ((_joined(low, high) << count.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)


def _funnel_right(low, high, count):
    """The lower half of (high, low) shifted right by up to 32."""
    return (_joined(low, high) >> count.astype(np.uint64)).astype(np.uint32)


def _joined(low, high):
    return (high.astype(np.uint64) << np.uint64(32)) | low


# --- Logic of three ---


def _lop3(ins, bind):
    operands = ins.operands
    if not isinstance(operands[4], Imm):
        raise bind.error("the table of lop3 is a number")
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


# --- Counting and finding bits ---


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


def _bfind(x):
    """The position of the highest bit that differs from the sign; all ones where there is none."""
    return _position(x).astype(np.uint32)


def _bfind_amount(x):
    """How far to shift left for that bit to be the highest; all ones where there is none."""
    found = _position(x)
    return np.where(found < 0, found, 8 * x.dtype.itemsize - 1 - found).astype(np.uint32)


def _position(x):
    x = np.where(x < 0, ~x, x) if x.dtype.kind == "i" else x
    return _highest(x.view(f"u{x.dtype.itemsize}"))


def _brev(x):
    width = x.dtype.itemsize
    octets = np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, width)[..., ::-1]
    table = np.array([int(f"{i:08b}"[::-1], 2) for i in range(256)], np.uint8)
    return np.ascontiguousarray(table[octets]).view(x.dtype)[..., 0]


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


# --- Fields ---


def _bfe(a, position, length):
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
    if a.dtype.kind == "i":
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


def _bfi(a, b, position, length):
    bits = 8 * a.dtype.itemsize
    pos, size = position.astype(np.int64) & 255, length.astype(np.int64) & 255
    field = np.where(
        pos < bits, _ones(size) << np.minimum(pos, bits - 1).astype(np.uint64), np.uint64(0)
    )
    value = a.astype(np.uint64) << np.minimum(pos, bits - 1).astype(np.uint64)
    return ((b.astype(np.uint64) & ~field) | (value & field)).astype(a.dtype)


def _bmsk(first, count):
    """Ones from bit `first` on, `count` of them."""
    field = _ones(count) << np.minimum(first, 63).astype(np.uint64)
    return np.where(first > 31, np.uint64(0), field).astype(np.uint32)


def _szext(a, count):
    """The low `count` bits, at most 32, extended by sign or by zeros."""
    field = a.view(np.uint32).astype(np.uint64) & _ones(count)
    if a.dtype.kind == "i":
        top = np.maximum(count, 1) - 1
        negative = (count > 0) & (field >> top.astype(np.uint64) & np.uint64(1) == 1)
        field = np.where(negative, field | ~_ones(count), field)
    return field.astype(np.uint32)


def _at_most_32(count):
    return np.minimum(count.astype(np.int64), 32)


def _modulo_32(count):
    return count.astype(np.int64) & 31


def _prmt(ins, bind):
    mode = next((part for part in ins.parts[1:] if part != "b32"), "b32")
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


def _funnel(function) -> Row:
    return each(function, "b32", "b32", "u32", result="b32", spread="moves 1 2")


_AND = bitwise(lambda a, b: a & b)


def _and(ins, bind):
    """`and`; with the mask of one bit of an address's rank it is `cluster.leader_address`."""
    plain = _AND.factory(ins, bind)
    masks = [x.value & 0xFFFFFFFF for x in ins.operands if isinstance(x, Imm)]
    if len(masks) == 1 and clears_peer_bit(masks[0]) and ins.parts[-1] == "b32":
        return leader_address(ins, bind, plain, masks[0])
    return plain


OPCODES = {
    "and": {f"{WORD}!": replace(_AND, factory=_and), "pred!": logical(lambda p, q: p & q)},
    "or": {f"{WORD}!": bitwise(lambda a, b: a | b), "pred!": logical(lambda p, q: p | q)},
    "xor": {f"{WORD}!": bitwise(lambda a, b: a ^ b), "pred!": logical(lambda p, q: p ^ q)},
    "not": {f"{WORD}!": bitwise(lambda a: ~a, 1), "pred!": logical(lambda p: p ^ True, 1)},
    "cnot": {f"{WORD}!": unary(lambda a: (a == 0).astype(a.dtype))},
    "lop3": {"b32!": Row(_lop3, (5,), types="b32 b32 b32 b32", spread="bits")},
    "shl": {f"{WORD}!": each(_shifted_left, OWN, "u32", spread="moves 1")},
    "shr": {f"{WORD}|{INT}!": each(_shifted_right, OWN, "u32", spread="moves 1")},
    "shf": {
        "l! clamp! b32!": _funnel(lambda a, b, n: _funnel_left(a, b, _at_most_32(n))),
        "l! wrap! b32!": _funnel(lambda a, b, n: _funnel_left(a, b, _modulo_32(n))),
        "r! clamp! b32!": _funnel(lambda a, b, n: _funnel_right(a, b, _at_most_32(n))),
        "r! wrap! b32!": _funnel(lambda a, b, n: _funnel_right(a, b, _modulo_32(n))),
    },
    "popc": {"b32|b64!": unary(lambda a: np.bitwise_count(a).astype(np.uint32), "u32")},
    "clz": {"b32|b64!": unary(_clz, "u32")},
    "brev": {"b32|b64!": each(_brev, OWN, spread="moves 1")},
    "bfind": {
        f"{CARRIED}!": unary(_bfind, "u32"),
        f"shiftamt! {CARRIED}!": unary(_bfind_amount, "u32"),
    },
    "fns": {"b32!": each(_fns, "b32", "b32", "b32", result="b32")},
    "bfe": {f"{CARRIED}!": each(_bfe, OWN, "u32", "u32", spread="moves 1")},
    "bfi": {"b32|b64!": each(_bfi, OWN, OWN, "u32", "u32", spread="moves 1 2")},
    "bmsk": {
        "clamp! b32!": each(
            lambda a, b: _bmsk(a.astype(np.int64), _at_most_32(b)), "u32", "u32", result="u32"
        ),
        "wrap! b32!": each(
            lambda a, b: _bmsk(_modulo_32(a), _modulo_32(b)), "u32", "u32", result="u32"
        ),
    },
    "szext": {
        "clamp! u32|s32!": each(lambda a, b: _szext(a, _at_most_32(b)), OWN, "u32"),
        "wrap! u32|s32!": each(lambda a, b: _szext(a, _modulo_32(b)), OWN, "u32"),
    },
    "prmt": {
        "b32! f4e|b4e|rc8|ecl|ecr|rc16": Row(
            _prmt, (4,), types="b32 b32 b32 b32", spread="moves 1 2"
        )
    },
}
