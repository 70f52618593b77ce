"""8x8 matrices of 16-bit elements, moved by a whole warp: ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5.15 to 17).

`ldmatrix` and `stmatrix` are counted as reads or writes of 16 bytes for each row.
"""

from __future__ import annotations

import numpy as np

from emulator.errors import BarrierDivergence
from emulator.machine.access import deliver, fetch, resolve, space_of
from emulator.numbers.tensor import transpose_8x8
from emulator.ops.forms import SHARED
from emulator.text.rows import Row

_ROW = np.dtype(np.complex128)  # 16 bytes moved as one element, bits untouched
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}


def all_lanes(m, mask, ins) -> None:
    """`.aligned`: all 32 lanes of a warp execute the instruction together, or it is undefined."""
    if mask is not None:
        known = m.masks.get("whole warps")
        if known is None or known[0] is not mask:
            lanes = m.lanes_of(mask).reshape(m.W, 32)
            there = lanes.sum(1)
            partial = (there > 0) & (there < 32)
            if partial.any():
                warp = int(partial.argmax())
                at = 32 * warp + int(lanes[warp].argmax())
                text = f"{ins.parts[0]} is for all 32 lanes of a warp together, and only {there[warp]} came to it"
                m.fail(BarrierDivergence, text, ins, at // m.T, at % m.T, reason="whole warp")
            m.masks["whole warps"] = (mask,)


def meet(m, mask, ins) -> None:
    """The warp's lanes come together before the instruction does its work."""
    all_lanes(m, mask, ins)
    if m.sanitizer is not None:
        m.sanitizer.warp_barrier(mask)


def _first_lanes(m, mask, lanes: int):
    """The lanes of `mask` whose addresses count: the first `lanes` of each warp."""
    if lanes == 32:
        return mask
    key = ("first lanes", lanes)
    known = m.masks.get(key)
    if known is None or known[0] is not mask:
        picked = m.lanes_of(mask) & (np.arange(m.T) % 32 < lanes)
        known = m.masks[key] = (mask, picked)
    return known[1]


def load_matrices(m, ins, space, address, mask, count: int, turned: bool) -> np.ndarray:
    """`ldmatrix` of 1, 2 or 4 matrices: registers (count, W, 32)."""
    lanes = _first_lanes(m, mask, 8 * count)
    ((memory, where, lanes, name),) = resolve(m, space, address, lanes)
    if name != "shared":
        m.fail(ValueError, f"{ins.parts[0]} works on shared memory", ins)
    (rows,) = fetch(m, memory, where, lanes, _ROW, 1, ins)
    m.count_shared(ins, where, lanes, 16, "ldmatrix", count)
    if m.sanitizer is not None:
        m.sanitizer.read(where, lanes, 16, ins)
    rows = np.broadcast_to(rows, (m.B, m.T)).reshape(m.W, 32)[:, : 8 * count]
    words = np.ascontiguousarray(rows).view(np.uint32).reshape(m.W, count, 32)
    registers = np.ascontiguousarray(words.transpose(1, 0, 2))
    return transpose_8x8(registers) if turned else registers


def _matrices(ins, bind) -> int:
    if "m8n8" not in ins or "b16" not in ins:
        raise bind.unsupported("8x8 matrices of 16-bit elements only")
    return next((n for name, n in _COUNTS.items() if name in ins), 1)


def ldmatrix(ins, bind):
    """PTX ISA 9.7.14.5.15: lanes 8i to 8i + 7 give the row addresses of matrix i."""
    count, turned, space = _matrices(ins, bind), "trans" in ins, space_of(ins)
    destinations = bind.vector(ins.operands[0], count, "destinations")
    put, get = bind.put_lanes(destinations), bind.address(ins.operands[1], space)

    def step(m, mask):
        meet(m, mask, ins)
        put(m, load_matrices(m, ins, space, get(m), mask, count, turned), mask)

    return step


def stmatrix(ins, bind):
    """PTX ISA 9.7.14.5.16: the reverse of ldmatrix."""
    count, turned, space = _matrices(ins, bind), "trans" in ins, space_of(ins)
    sources = bind.vector(ins.operands[1], count, "sources")
    get, registers = bind.address(ins.operands[0], space), bind.lanes(sources, np.uint32)

    def step(m, mask):
        meet(m, mask, ins)
        words = registers(m)
        if turned:
            words = transpose_8x8(words)
        rows = np.zeros((m.W, 32, 4), np.uint32)
        rows[:, : 8 * count] = words.transpose(1, 0, 2).reshape(m.W, 8 * count, 4)
        rows = rows.view(_ROW).reshape(m.B, m.T)
        lanes = _first_lanes(m, mask, 8 * count)
        ((memory, where, lanes, name),) = resolve(m, space, get(m), lanes)
        if name != "shared":
            m.fail(ValueError, "stmatrix works on shared memory", ins)
        deliver(m, memory, where, lanes, _ROW, [rows], ins)
        m.count_shared(ins, where, lanes, 16, "stmatrix", count)
        if m.sanitizer is not None:
            m.sanitizer.write(where, lanes, 16, ins)
        m.progress()

    return step


def movmatrix(ins, bind):
    """PTX ISA 9.7.14.5.17: an 8x8 matrix transposed across the lanes that hold it."""
    put, get = bind.put_lanes([ins.operands[0]]), bind.lanes([ins.operands[1]], np.uint32)

    def step(m, mask):
        put(m, transpose_8x8(get(m)), mask)

    return step


_MATRICES = f"sync! aligned! m8n8|m16n8|m16n16|m8n16! x1|x2|x4 trans {SHARED} b16|b8!"


def together(factory, *operands: int, types: str = "-", spread: str) -> Row:
    """A row of what the lanes of a warp do together."""
    return Row(factory, operands, meets="warp", types=types, spread=spread)


OPCODES = {
    "ldmatrix": {_MATRICES: together(ldmatrix, 2, spread="loads")},
    "stmatrix": {_MATRICES: together(stmatrix, 2, spread="none")},
    "movmatrix": {
        "sync! aligned! m8n8! trans! b16!": together(movmatrix, 2, types="b32 b32", spread="warp")
    },
}
