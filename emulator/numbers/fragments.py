"""Which lane's register holds which matrix element, for `mma.sync`, `wmma` and `ldmatrix`.

A `Fragment` lists, for each element index i of a lane's fragment (low half of register 0 first, in
PTX's order a0, a1, ...), the row and column that it is: arrays of shape (elements, 32). The maps of
`mma` and `ldmatrix` are those of PTX ISA 9.7.14.5 ("Matrix fragments for mma"); with g = lane // 4
and t = lane % 4, every shape but m8n8k4 f16 is made of 8-row tiles in which row g, chunk t is lane
4g + t's.

`wmma` leaves its layout open. The one used here is what sm_75 and later do for 16x16x16, known from
experiment: the fragments of the mma.m16n8 instructions that it is made of, and for f16 operands the
registers beyond those repeat them. For m8n32k16 the same with A and B exchanged, so that it is
consistent; what hardware does there is not documented. For f64 (8x8x4), and for operands of 4 bits or
one, they are those of the mma.m8n8 of the same depth.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

LANE = np.arange(32)
GROUP, THREAD = LANE // 4, LANE % 4

# Bits of one element, by PTX type.
BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s32": 32,
    "e4m3": 8, "e5m2": 8, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Fragment:
    """Where a warp keeps a matrix: rows and cols, (elements, 32) int, matrix shape, bits of an
    element.

    `copies`: (elements, 32) int, which of several independent matrices (mma.m8n8k4 works on four);
    else zeros.
    """

    shape: tuple[int, int]
    bits: int
    rows: np.ndarray
    cols: np.ndarray
    copies: np.ndarray
    matrices: int = 1

    @property
    def turned(self):
        """The same of the transposed matrix."""
        return Fragment(self.shape[::-1], self.bits, self.cols, self.rows, self.copies)

    @property
    def elements(self):
        """Elements a lane holds, repeated ones included."""
        return len(self.rows)

    @property
    def registers(self):
        """Registers a lane needs: of 32 bits, or of 64 for f64."""
        return self.elements * self.bits // max(self.bits, 32)

    def owner(self, row, col):
        """(lane, register, place in the register) of an element; the first, if it is repeated."""
        index, lane = np.argwhere((self.rows == row) & (self.cols == col))[0]
        per = max(self.bits, 32) // self.bits
        return int(lane), int(index) // per, int(index) % per

    def flat(self):
        """Position of each (element, lane) in the matrices laid out row-major, (elements, 32)."""
        height, width = self.shape
        return (self.copies * height + self.rows) * width + self.cols


def _fragment(shape, bits, rows, cols, copies=None, matrices=1):
    rows, cols = (np.stack([np.broadcast_to(r, 32) for r in x]) for x in (rows, cols))
    copies = np.zeros_like(rows) if copies is None else np.broadcast_to(copies, rows.shape)
    return Fragment(shape, bits, rows, cols, copies, matrices)


# (m, n, k) and operand type of every mma.sync here -> accumulator types. PTX ISA 9.7.14.5, table of
# shapes.
SHAPES = {
    (8, 8, 4, "f16"): ("f16", "f32"),
    (16, 8, 8, "f16"): ("f16", "f32"),
    (16, 8, 16, "f16"): ("f16", "f32"),
    (16, 8, 8, "bf16"): ("f32",),
    (16, 8, 16, "bf16"): ("f32",),
    (16, 8, 4, "tf32"): ("f32",),
    (16, 8, 8, "tf32"): ("f32",),
    (8, 8, 16, "s8"): ("s32",),
    (16, 8, 16, "s8"): ("s32",),
    (16, 8, 32, "s8"): ("s32",),
    (8, 8, 32, "s4"): ("s32",),
    (16, 8, 32, "s4"): ("s32",),
    (16, 8, 64, "s4"): ("s32",),
    (8, 8, 128, "b1"): ("s32",),
    (16, 8, 128, "b1"): ("s32",),
    (16, 8, 256, "b1"): ("s32",),
    (16, 8, 16, "e4m3"): ("f16", "f32"),
    (16, 8, 32, "e4m3"): ("f16", "f32"),
    (8, 8, 4, "f64"): ("f64",),
    (16, 8, 4, "f64"): ("f64",),
    (16, 8, 8, "f64"): ("f64",),
    (16, 8, 16, "f64"): ("f64",),
}

# (m, n, k) and operand type of every wmma here -> accumulator types. PTX ISA 9.7.14.1, 9.7.14.2.
WMMA_SHAPES = {
    (m, n, 16, operand): accumulators
    for (m, n) in ((16, 16), (32, 8), (8, 32))
    for operand, accumulators in (("f16", ("f16", "f32")), ("bf16", ("f32",)), ("s8", ("s32",)))
} | {
    (16, 16, 8, "tf32"): ("f32",),
    (8, 8, 4, "f64"): ("f64",),
    (8, 8, 32, "s4"): ("s32",),
    (8, 8, 128, "b1"): ("s32",),
}

# (m, n, k) and operand type of every mma.sp.sync here -> accumulator types. PTX ISA 9.7.14.6.
SPARSE_SHAPES = {
    (16, 8, k, operand): accumulators
    for operand, depths, accumulators in (
        ("f16", (16, 32), ("f16", "f32")),
        ("bf16", (16, 32), ("f32",)),
        ("tf32", (8, 16), ("f32",)),
        ("s8", (32, 64), ("s32",)),
        ("s4", (64, 128), ("s32",)),
        ("e4m3", (64,), ("f32",)),
    )
    for k in depths
}


def shape_key(m, n, k, a_type):
    """The key of `SHAPES`: u8 and s8 have the same shapes, and u4 and s4, and e4m3 and e5m2."""
    return (m, n, k, {"u8": "s8", "u4": "s4", "e5m2": "e4m3"}.get(a_type, a_type))


@cache
def mma_a(m, k, type, layout="row"):
    """Multiplicand A of `mma.sync`, (m, k)."""
    if (m, k, type) == (8, 4, "f16"):
        return _quad_pair("a", layout)
    bits = BITS[type]
    per = max(1, 32 // bits)
    tiles = [(i, j) for j in range(0, k, 4 * per) for i in range(0, m, 8)]  # rows first
    rows = [GROUP + i for i, _ in tiles for _ in range(per)]
    cols = [THREAD * per + e + j for _, j in tiles for e in range(per)]
    return _fragment((m, k), bits, rows, cols)


@cache
def mma_b(n, k, type, layout="col"):
    """Multiplicand B of `mma.sync`, (k, n)."""
    if (n, k, type) == (8, 4, "f16"):
        return _quad_pair("b", layout)
    return mma_a(n, k, type).turned  # B is held as A is, transposed


@cache
def mma_c(m, n, type, k=16, operand=""):
    """Accumulator C or D of `mma.sync`, (m, n)."""
    if (m, n, k, operand) == (8, 8, 4, "f16"):
        return _quad_pair(type, "")
    rows = [GROUP + i for i in range(0, m, 8) for _ in range(2)]
    cols = [THREAD * 2 + e for _ in range(0, m, 8) for e in range(2)]
    return _fragment((m, n), BITS[type], rows, cols)


def _quad_pair(role, layout):
    """mma.m8n8k4 f16 (PTX ISA 9.7.14.5.1): lanes 4q to 4q+3 and 16 higher hold matrix q."""
    high, near = 4 * (LANE >= 16), LANE % 4
    if role == "f16":
        rows, cols = [near + high] * 8, list(range(8))
    elif role == "f32":
        rows = [(LANE & 1) + (i & 2) + high for i in range(8)]
        cols = [(i & 4) + (LANE & 2) + (i & 1) for i in range(8)]
    elif (role, layout) in (("a", "row"), ("b", "col")):  # a lane holds a whole line of k
        rows, cols = [near + high] * 4, list(range(4))
    else:  # a lane holds four lines at one k
        rows, cols = [i + high for i in range(4)], [near] * 4
    if role == "b":
        rows, cols = cols, rows
    shape = {"a": (8, 4), "b": (4, 8)}.get(role, (8, 8))
    bits = 32 if role == "f32" else 16
    return _fragment(shape, bits, rows, cols, LANE % 16 // 4, matrices=4)


_AS_MMA = {"f64", "s4", "u4", "b1"}  # wmma of these is mma.m8n8


def _operand_elements(type):
    return 16 if type == "f16" else 0  # PTX ISA 9.7.14.4.1: always eight f16x2 registers


@cache
def wmma_a(m, n, k, type):
    """Operand A of `wmma`, (m, k), the same for both layouts in memory."""
    if type in _AS_MMA:
        return mma_a(m, k, type)
    if m == 8:
        return wmma_b(n, m, k, type).turned
    parts = [(mma_a(16, k, type), i, 0) for i in range(0, m, 16)]
    return _composed((m, k), type, parts, least=_operand_elements(type))


@cache
def wmma_b(m, n, k, type):
    """Operand B of `wmma`, (k, n), the same for both layouts in memory."""
    if type in _AS_MMA:
        return mma_b(n, k, type)
    if m == 8:
        return wmma_a(n, m, k, type).turned
    parts = [(mma_b(8, k, type), 0, j) for j in range(0, n, 8)]
    return _composed((k, n), type, parts, least=_operand_elements(type))


@cache
def wmma_c(m, n, k, type):
    """Accumulator of `wmma`, (m, n)."""
    if m == n == 8:
        return mma_c(m, n, type)
    if m == 8:
        return wmma_c(n, m, k, type).turned
    tiles = [(mma_c(16, 8, type), i, j) for i in range(0, m, 16) for j in range(0, n, 8)]
    return _composed((m, n), type, tiles)


def _composed(shape, type, parts, least=0):
    """Tiles at (row, column) offsets, one after the other, repeated to `least` elements."""
    rows = np.concatenate([part.rows + i for part, i, _ in parts])
    cols = np.concatenate([part.cols + j for part, _, j in parts])
    times = max(1, least // len(rows))
    rows, cols = np.tile(rows, (times, 1)), np.tile(cols, (times, 1))
    return Fragment(shape, BITS[type], rows, cols, np.zeros_like(rows))
