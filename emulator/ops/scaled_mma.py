"""mma.sync with scale factors, of sm_120a (PTX ISA 9.7.14.5.14): a warp's products of narrow floats, scaled by blocks along k.

Each row of A, and each column of B, has one, two or four scales of a byte each in the register of one lane. Of the four lanes
that hold row r of A (row r + 8), number 2 * thread-id (and one more) gives its scales; of the four that hold a column of B,
number thread-id. byte-id says at which byte they begin. How they are summed: `numbers.block_scaled`.
"""

from __future__ import annotations

import numpy as np

from emulator.errors import ExecutionError
from emulator.numbers import block_scaled, fragments
from emulator.numbers.tensor import to_matrices, to_registers
from emulator.ops.matrices import all_lanes, together
from emulator.text.program import items

# kind, its scale_vec -> (k, scales in each row, types of A and B, types of the scales)
_KINDS = {
    ("mxf8f6f4", 1): (32, ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1"), ("ue8m0",)),
    ("mxf4", 2): (64, ("e2m1",), ("ue8m0",)),
    ("mxf4nvf4", 2): (64, ("e2m1",), ("ue8m0",)),
    ("mxf4nvf4", 4): (64, ("e2m1",), ("ue4m3", "ue8m0")),
}


def _mma(ins, bind):
    if not bind.names.program.target.startswith("sm_12"):
        raise bind.unsupported("block-scaled mma is sm_120's and sm_121's")
    kind = next(part for part in ins.parts if part.startswith("kind::")).removeprefix("kind::")
    vector = next((int(p[11]) for p in ins.parts if p.startswith("scale_vec::")), None)
    vector = vector or {"mxf8f6f4": 1, "mxf4": 2}.get(kind)
    types = [part for part in ins.parts if part in _TYPES]
    found = _KINDS.get((kind, vector))
    if found is None or len(types) != 5:
        raise bind.unsupported("its kind, the size of its blocks, or its types")
    k, operands, scales = found
    d_type, a_type, b_type, c_type, scale_type = types
    if f"m16n8k{k}" not in ins or (d_type, c_type) != ("f32", "f32"):
        raise bind.unsupported(f"kind::{kind} multiplies m16n8k{k} and adds to f32")
    if a_type not in operands or b_type not in operands or scale_type not in scales:
        raise bind.unsupported(
            f"kind::{kind} has no {a_type} times {b_type} with scales of {scale_type}"
        )
    stored = "s4" if k == 64 else "s8"
    a_part, b_part = fragments.mma_a(16, k, stored, "row"), fragments.mma_b(8, k, stored, "col")
    c_part = fragments.mma_c(16, 8, "f32", k, stored)
    for operand, part in zip(ins.operands, (c_part, a_part, b_part, c_part), strict=False):
        if len(items(operand)) != part.registers:
            raise bind.error(f"{part.registers} registers expected in {operand}")
    put = bind.put_lanes(items(ins.operands[0]))
    a_of, b_of, c_of = (bind.lanes(items(operand), np.uint32) for operand in ins.operands[1:4])
    scale_of = [bind.lanes([ins.operands[at]], np.uint32) for at in (4, 6)]
    chosen = [items(ins.operands[at]) for at in (5, 7)]
    if any(len(pair) != 2 for pair in chosen):
        raise bind.error("a byte-id and a thread-id follow each scale")
    chosen_of = [[bind.integer(one, "u16") for one in pair] for pair in chosen]

    def step(m, mask):
        all_lanes(m, mask, ins)
        a, b = to_matrices(a_part, a_of(m)), to_matrices(b_part, b_of(m)).swapaxes(1, 2)
        a, b = _codes(a, a_type, k), _codes(b, b_type, k)
        c = to_matrices(c_part, c_of(m))
        sides = []
        for at, of in enumerate(scale_of):
            byte, thread = (_one(m, get(m), mask, ins) for get in chosen_of[at])
            if byte % vector or byte + vector > 4 or not 0 <= thread < (4 if at else 2):
                text = f"byte-id {byte} and thread-id {thread} of the scales of {'AB'[at]} do not exist for {vector} scales"
                m.fail(ExecutionError, text, ins)
            quads = of(m)[0].reshape(m.W, 8, 4)
            words = quads[:, :, thread] if at else _rows(quads, thread)
            bytes_ = np.ascontiguousarray(words).view(np.uint8).reshape(m.W, -1, 4)
            sides.append(bytes_[:, :, byte : byte + vector])
        d = np.zeros(c.shape, np.uint32)
        lanes = m.lanes_of(mask).reshape(m.W, 32)[:, 0]
        for warp in np.flatnonzero(lanes).tolist():
            d[warp] = block_scaled.product(
                a[warp],
                b[warp],
                c[warp],
                sides[0][warp],
                sides[1][warp],
                a_type,
                b_type,
                scale_type,
            )
        put(m, to_registers(c_part, d), mask)

    return step


def _rows(quads: np.ndarray, thread: int) -> np.ndarray:
    """(W, 16): the words of A's rows, eight from each of two lanes of a quad."""
    return np.concatenate([quads[:, :, 2 * thread], quads[:, :, 2 * thread + 1]], axis=1)


def _codes(bits: np.ndarray, type: str, k: int) -> np.ndarray:
    """Element codes; e2m1 among wider ones stands in the middle of its byte (bits 2 to 5)."""
    if k == 64:
        return bits
    if type == "e2m1":
        return bits >> 2 & 15
    return bits & 63 if type in ("e2m3", "e3m2") else bits


def _one(m, value, mask, ins) -> int:
    if type(value) is int:
        return value
    found = np.unique(m.addresses(value)[m.lanes_of(mask)])
    if len(found) > 1:
        m.fail(ExecutionError, "byte-id and thread-id are the same in all lanes", ins)
    return int(found[0])


_TYPES = ("f32", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0", "ue4m3")

OPCODES = {
    "mma": {
        "sync! aligned! m16n8k32|m16n8k64! row! col! kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4! block_scale! "
        f"scale_vec::1X|scale_vec::2X|scale_vec::4X {'|'.join(_TYPES)}*!": together(
            _mma, 8, spread="any"
        ),
    }
}
