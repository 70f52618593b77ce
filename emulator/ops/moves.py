"""mov, with packing and unpacking, and addresses: cvta, isspacep, createpolicy (PTX ISA 9.7.9)."""

from __future__ import annotations

import numpy as np

from emulator.machine.access import space_of
from emulator.machine.binder import PARAM_ADDRESS
from emulator.machine.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from emulator.machine.values import UNSIGNED, add, lift, raw
from emulator.ops.forms import HELD, SPACE
from emulator.text.program import WIDTHS, Imm, Reg, Symbol, Vector
from emulator.text.rows import Row


def mov(ins, bind):
    kind = ins.parts[-1]
    destination, source = ins.operands
    if kind == "b128":
        raise bind.unsupported()
    if isinstance(destination, Vector):
        return _unpack(bind, destination.items, source, WIDTHS[kind])
    if isinstance(source, Vector):
        return _pack(bind, destination, source.items, WIDTHS[kind])
    if kind == "pred":
        return bind.pure(destination, lambda value: value, bind.predicate(source))
    width = WIDTHS[kind]
    if kind[0] == "f" and isinstance(source, Imm):
        constant = bind.constant(source, width, True)
        return bind.pure(destination, lambda: constant)
    if isinstance(source, Reg) and bind.width(source) == bind.width(destination):
        return bind.pure(destination, lambda value: value, bind.value(source, width))
    return bind.pure(destination, lambda value: value, bind.integer(source, f"u{8 * width}"))


def _mov_vector(ins, bind):
    """mov.v2, mov.v4: vector registers, or as many in braces, element by element."""
    lanes, kind = int(ins.parts[1][1]), ins.parts[-1]
    both = [op.items if isinstance(op, Vector) else () for op in ins.operands]
    if any(len(items) != lanes for items in both):
        raise bind.error(f"{lanes} registers expected on both sides")
    width = WIDTHS[kind]
    gets = [bind.integer(item, f"u{8 * width}") if isinstance(item, Imm) else bind.value(item, width)
            for item in both[1]]  # fmt: skip
    puts = [bind.put(item) for item in both[0]]

    def step(m, mask):
        for put, value in zip(puts, [get(m) for get in gets], strict=True):
            put(m, value, mask)

    return step


def _pack(bind, destination, items, width: int):
    part = width // len(items)
    if part not in UNSIGNED:
        raise bind.unsupported()
    dtype = np.dtype(UNSIGNED[part])
    gets = [bind.value(item, part) for item in items]

    def pack(*values):
        if all(type(value) is int for value in values):
            return sum(
                (value & ((1 << 8 * part) - 1)) << (8 * part * i) for i, value in enumerate(values)
            )
        arrays = [
            raw(v if type(v) is not np.ndarray or v.itemsize == part else lift(v, 8), dtype)
            for v in values
        ]
        out = np.empty((*np.broadcast_shapes(*(a.shape for a in arrays)), len(arrays)), dtype)
        for i, array in enumerate(arrays):
            out[..., i] = array
        return out.view(UNSIGNED[width])[..., 0]

    return bind.pure(destination, pack, *gets)


def _unpack(bind, items, source, width: int):
    part = width // len(items)
    if part not in UNSIGNED:
        raise bind.unsupported()
    get, puts = bind.value(source, width), [bind.put(item) for item in items]
    whole = np.dtype(UNSIGNED[width])

    def step(m, mask):
        value = get(m)
        if type(value) is int:
            for i, put in enumerate(puts):
                put(m, value >> (8 * part * i) & ((1 << 8 * part) - 1), mask)
            return
        array = np.ascontiguousarray(raw(value, whole))
        parts = array.view(UNSIGNED[part]).reshape(*array.shape, len(puts))
        for i, put in enumerate(puts):
            put(m, np.ascontiguousarray(parts[..., i]), mask)

    return step


def cvta(ins, bind):
    space = space_of(ins)
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space, 0)
    if isinstance(ins.operands[1], Symbol):
        home, at = bind.symbol(ins.operands[1])
        at += PARAM_ADDRESS if home == "param" else window
        return bind.pure(ins.operands[0], lambda: at)
    if "to" in ins.parts:
        window = -window
    bits = window & (1 << 64) - 1
    return bind.pure(
        ins.operands[0], lambda value: add(value, bits, 8), bind.integer(ins.operands[1], "u64")
    )


def isspacep(ins, bind):
    space = space_of(ins)
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space)

    def inside(value):
        if type(value) is int:
            return (
                value < SHARED_WINDOW if window is None else window <= value < window + WINDOW_BYTES
            )
        lanes = value.pattern.array + value.offset
        return (
            lanes < SHARED_WINDOW
            if window is None
            else (lanes >= window) & (lanes < window + WINDOW_BYTES)
        )

    return bind.pure(ins.operands[0], inside, bind.integer(ins.operands[1], "u64"))


def createpolicy(ins, bind):
    return bind.pure(ins.operands[0], lambda: 0)


OPCODES = {
    "mov": {
        f"pred|{HELD}|f16x2|bf16x2!": Row(mov, (2,), types="own own", spread="moves 1"),
        f"v2|v4! {HELD}!": Row(_mov_vector, (2,), types="-", spread="moves 1"),
    },
    "cvta": {f"to {SPACE} u32|u64!": Row(cvta, (2,), types="own own", spread="any")},
    "isspacep": {f"{SPACE}!": Row(isspacep, (2,), types="pred ~u32", spread="any")},
    "createpolicy": {
        "fractional|range|cvt! global L2 b64! "
        "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged*": Row(
            createpolicy, types="b64", spread="any"
        )
    },
}
