"""tcgen05's operands: instruction and matrix descriptors, where matrices lie in tensor memory (PTX ISA 9.7.16).

Tensor memory has 128 lanes and 512 columns of 32 bits. An address is lane << 16 | column. Field
positions and canonical layouts agree with CUTLASS's mma_sm100_desc.hpp, those of fragments with its
copy_traits_sm100.hpp, those of accumulators with mma_traits_sm100_frag.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from emulator.numbers.warpgroup import Descriptor

LANES, COLUMNS = 128, 512
ROW_BYTES = 32  # of a dense operand's row, in every kind: k elements of it
# kind -> (k, formats by their code in the instruction descriptor, types of D by theirs)
_FLOATS8 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
KINDS = {
    "f16": (16, {0: "f16", 1: "bf16"}, {0: "f16", 1: "f32"}),
    "tf32": (8, {2: "tf32"}, {1: "f32"}),
    "f8f6f4": (32, _FLOATS8, {0: "f16", 1: "f32"}),
    "i8": (32, {0: "u8", 1: "s8"}, {2: "s32"}),
    "mxf8f6f4": (32, _FLOATS8, {1: "f32"}),
    "mxf4": (64, {1: "e2m1"}, {1: "f32"}),
    "mxf4nvf4": (64, {1: "e2m1"}, {1: "f32"}),
}
SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4")
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "u8": 8, "s8": 8, "e4m3": 8, "e5m2": 8,
        "e2m3": 6, "e3m2": 6, "e2m1": 4}  # fmt: skip
_STORAGE = {16: np.uint16, 32: np.uint32}
SWIZZLES = {0: 0, 2: 128, 4: 64, 6: 32}  # by the three upper bits of a matrix descriptor


@dataclass(frozen=True)
class Shape:
    """What an instruction descriptor says: D (m, n) = A (m, k) @ B (k, n) + D, of a block or a pair of blocks.

    a_mn_major, b_mn_major: whether m (n) runs fastest in shared memory. scale_type: ue8m0 or ue4m3, ""
    without block scales; a_byte, b_byte: the byte of its column at which a row's first scale stands.
    """

    kind: str
    pair: bool
    m: int
    n: int
    k: int
    a_type: str
    b_type: str
    d_type: str
    a_mn_major: bool = False
    b_mn_major: bool = False
    negate_a: bool = False
    negate_b: bool = False
    satfinite: bool = False
    scale_type: str = ""
    a_byte: int = 0
    b_byte: int = 0

    @property
    def rows(self) -> int:
        """Rows of A, and of D, that each block holds."""
        return self.m // 2 if self.pair else self.m

    @property
    def columns(self) -> int:
        """Columns of tensor memory that D takes."""
        return self.n // 2 if self.pair and self.m == 128 else self.n

    @property
    def b_rows(self) -> int:
        """Rows (along n) of B that each block holds."""
        return self.n // 2 if self.pair else self.n

    @property
    def padded(self) -> bool:
        """Whether elements of 4 and 6 bits stand by sixteens in 16 bytes (f8f6f4), not packed (mxf4)."""
        return self.k == 32


@lru_cache(maxsize=512)
def shape_of(bits: int, kind: str, pair: bool) -> Shape:
    """From an instruction descriptor (PTX ISA 9.7.16.4.2). ValueError names the field that is wrong."""
    k, formats, results = KINDS[kind]
    scaled = kind in SCALED
    if bits >> 2 & 1:
        raise ValueError("bit 2, sparse, is set; this machine has dense products only")
    codes = [bits >> 7 & 7, bits >> 10 & 7]
    for name, code in zip("AB", codes, strict=True):
        if code not in formats:
            known = ", ".join(f"{c} ({t})" for c, t in formats.items())
            raise ValueError(f"the format of {name} is {code}; kind::{kind} has {known}")
    m, n = (bits >> 24 & 31) << 4, (bits >> 17 & 63) << 3
    result = "f32"
    if not scaled:
        if (bits >> 4 & 3) not in results:
            known = ", ".join(f"{c} ({t})" for c, t in results.items())
            raise ValueError(f"the format of D is {bits >> 4 & 3}; kind::{kind} has {known}")
        result = results[bits >> 4 & 3]
        if bits >> 30:
            raise ValueError("bits 30 and 31, the shift of .ws, are set")
    if result == "f16" and kind == "f16" and codes != [0, 0]:
        raise ValueError("bf16 operands are added up in f32, not in f16")
    if bits >> 3 & 1 and kind != "i8":
        raise ValueError("bit 3, saturation, is for integers")
    if bits >> 13 & 3 and kind in ("i8",):
        raise ValueError("bits 13 and 14, negation, are for floats")
    majors = bool(bits >> 15 & 1), bool(bits >> 16 & 1)
    for name, code, major in zip("AB", codes, majors, strict=True):
        if major and BITS[formats[code]] < 8:
            raise ValueError(f"{name} of {formats[code]} is K-major")
    _check_sizes(m, n, kind, pair)
    more = {}
    if scaled:
        if kind != "mxf8f6f4" and bits >> 31:
            raise ValueError("bit 31 asks for k = 96, which this machine does not have")
        scale = "ue8m0" if bits >> 23 & 1 else "ue4m3"
        if scale == "ue4m3" and kind != "mxf4nvf4":
            raise ValueError(f"scales of kind::{kind} are ue8m0: bit 23 is 1")
        more = {"scale_type": scale, "a_byte": bits >> 29 & 3, "b_byte": bits >> 4 & 3}
    return Shape(
        kind, pair, m, n, k, formats[codes[0]], formats[codes[1]], result, *majors,
        bool(bits >> 13 & 1), bool(bits >> 14 & 1), bool(bits >> 3 & 1), **more,
    )  # fmt: skip


def _check_sizes(m: int, n: int, kind: str, pair: bool) -> None:
    if kind in SCALED:
        if m != (256 if pair else 128):
            raise ValueError(
                f"m is {m}; with block scales this machine has {256 if pair else 128} rows in "
                f"{'a pair of blocks' if pair else 'a block'}"
            )
    elif m not in ((128, 256) if pair else (64, 128)):
        raise ValueError(f"m is {m}; it is {'128 or 256' if pair else '64 or 128'}")
    step = 8 if m == 64 or kind in SCALED else 16
    if pair:
        step = 16 if m == 256 else 32
    fits = 8 <= n <= 256 and n % step == 0
    if kind == "i8" and m == 64 and n > 32:
        fits = n % 16 == 0 and n <= 256
    if not fits:
        raise ValueError(f"n is {n}; for m = {m} it is a multiple of {step}, at most 256")


# --- Matrices in shared memory ------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def descriptor(bits: int) -> Descriptor:
    """From the 64 bits that a kernel passes (PTX ISA 9.7.16.4.1). ValueError names what is wrong or not modelled."""
    if bits >> 46 & 7 != 1:
        raise ValueError(f"bits 46 to 48 are {bits >> 46 & 7}; they are 1 for tcgen05")
    if bits >> 49 & 7:
        raise ValueError("it has a base offset, which this machine does not model")
    if bits >> 52 & 1:
        raise ValueError("bit 52, an absolute leading distance, is not modelled")
    layout = bits >> 61
    if layout not in SWIZZLES:
        raise ValueError(
            "a swizzle of 128 bytes by 32 is not modelled"
            if layout == 1
            else f"bits 61 to 63 are {layout}; swizzles are 0 (none), 2 (128), 4 (64), 6 (32)"
        )
    return Descriptor(
        (bits & 0x3FFF) << 4, (bits >> 16 & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4,
        0, SWIZZLES[layout],
    )  # fmt: skip


def matrix(data: np.ndarray, type: str, rows: int, mn_major: bool, padded: bool) -> np.ndarray:
    """An operand (rows, k) of element bits from its chunks, (...) of 16 bytes each."""
    bits = BITS[type]
    if mn_major:
        elements = np.ascontiguousarray(data).view(_STORAGE.get(bits, np.uint8))
        per = 128 // bits
        tiles = elements.reshape(rows // per, -1, per)
        return np.ascontiguousarray(tiles.transpose(0, 2, 1)).reshape(rows, -1)
    return row_elements(np.ascontiguousarray(data).view(np.uint8).reshape(rows, -1), type, padded)


def row_elements(data: np.ndarray, type: str, padded: bool) -> np.ndarray:
    """Element bits (rows, k) of rows of bytes (rows, 32)."""
    bits, rows = BITS[type], len(data)
    if bits >= 8:
        return data.view(_STORAGE.get(bits, np.uint8))
    if bits == 4:
        if padded:  # sixteen elements in the first 8 of 16 bytes
            data = data.reshape(rows, -1, 16)[:, :, :8]
        low, high = data & 15, data >> 4
        return np.stack([low, high], axis=-1).reshape(rows, -1)
    packed = data.reshape(rows, -1, 16)[:, :, :12].reshape(rows, -1, 3).astype(np.uint32)
    word = packed[..., 0] | packed[..., 1] << 8 | packed[..., 2] << 16
    parts = [word >> shift & 63 for shift in (0, 6, 12, 18)]
    return np.stack(parts, axis=-1).reshape(rows, -1).astype(np.uint8)


# --- Matrices in tensor memory ------------------------------------------------------------------------


@lru_cache(maxsize=64)
def lanes_of_rows(rows: int, pair: bool, base: int) -> np.ndarray:
    """The lanes of a block's rows of D or A. 64 rows of one block lie by sixteens in each 32 lanes."""
    r = np.arange(rows)
    if rows == 64 and not pair:
        return r // 16 * 32 + r % 16 + base
    return r + base


def load_accumulators(cells: np.ndarray, shape: Shape, lane: int, column: int) -> np.ndarray:
    """D's rows (rows, n) of 32-bit words from a block's tensor memory (128, 512)."""
    lanes = lanes_of_rows(shape.rows, shape.pair, lane)
    found = cells[lanes, column : column + shape.columns]
    if shape.pair and shape.m == 128:  # the second half of n stands in lanes 64 to 127
        other = cells[lanes + 64, column : column + shape.columns]
        return np.concatenate([found, other], axis=1)
    return found


def store_accumulators(cells, shape: Shape, lane: int, column: int, d, keep) -> None:
    """The reverse. keep: (128,) bool, lanes that stay as they are, or None."""
    lanes = lanes_of_rows(shape.rows, shape.pair, lane)
    halves = [(lanes, d[:, : shape.columns])]
    if shape.pair and shape.m == 128:
        halves.append((lanes + 64, d[:, shape.columns :]))
    for where, what in halves:
        if keep is not None:
            free = ~keep[where]
            where, what = where[free], what[free]
        cells[where, column : column + shape.columns] = what


def lane_halves(shape: Shape, lane: int) -> np.ndarray:
    """Which of the eight halves (16 lanes each) D covers."""
    lanes = lanes_of_rows(shape.rows, shape.pair, lane)
    if shape.pair and shape.m == 128:
        lanes = np.arange(LANES)
    return np.unique(lanes // 16)


# shape of a load or store -> (registers of .x1, columns of .x1, lanes)
MOVES = {
    "32x32b": (1, 1, 32),
    "16x64b": (1, 2, 16),
    "16x128b": (2, 4, 16),
    "16x256b": (4, 8, 16),
    "16x32bx2": (1, 1, 16),
}


@lru_cache(maxsize=64)
def fragment(shape: str, times: int, split: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(lanes, columns) that each register of each thread holds, (registers, 32) (PTX ISA 9.7.16.2.3.1).

    split: of 16x32bx2, how many columns on the second half of the warp reads.
    """
    thread = np.arange(32)[None, :]
    register = np.arange(MOVES[shape][0] * times)[:, None]
    if shape == "32x32b":
        lane, column = thread + 0 * register, register + 0 * thread
    elif shape == "16x64b":
        lane, column = thread // 4 + thread % 2 * 8, 2 * register + thread // 2 % 2
    elif shape == "16x128b":
        lane, column = thread // 4 + register % 2 * 8, register // 2 * 4 + thread % 4
    elif shape == "16x256b":
        lane = thread // 4 + register // 2 % 2 * 8
        column = register // 4 * 8 + thread % 4 * 2 + register % 2
    else:
        lane, column = thread % 16, register + thread // 16 * split
    wide = np.zeros((len(register), 32), np.int64)
    return wide + lane, wide + column


# shape of a tcgen05.cp -> (rows, chunks of 16 bytes in each, the lanes that each row goes to)
def copy_lanes(shape: str, how: str) -> tuple[int, int, np.ndarray]:
    """(rows, chunks per row, lanes (copies, rows)) of tcgen05.cp (PTX ISA 9.7.16.2.3, 9.7.16.8).

    The four rows of 4x256b go to one lane of each quarter: Apache TVM's documentation of TIRx's tcgen05.cp says lanes
    0, 32, 64 and 96 from its origin, and CUTLASS's copy_traits_sm100.hpp has them as rows 0, 32, 64 and 96 of A.
    """
    rows, bits = (int(x) for x in shape[:-1].split("x"))
    r = np.arange(rows)
    if how == "warpx4":
        lanes = r + 32 * np.arange(4)[:, None]
    elif how == "warpx2::02_13":
        lanes = r + 64 * np.arange(2)[:, None]
    elif how == "warpx2::01_23":
        lanes = r // 32 * 64 + r % 32 + 32 * np.arange(2)[:, None]
    else:
        lanes = r[None] * (LANES // 4 if rows == 4 else 1)
    return rows, bits // 128, lanes
