"""wgmma's operands: matrices in shared memory by descriptor, fragments in registers (PTX ISA 9.7.15.5).

A descriptor says where an operand's *core matrices* stand, 8 rows of 16 bytes each, and how they are
swizzled. Everything here is counted in chunks of 16 bytes: a K-major operand has two of them in each of
its rows; an MN-major one (of 16-bit elements) has one for every eight rows at each of its 16 places along
k. Where a chunk lies (section 9.7.15.5.1, and the canonical layouts of CUTLASS's mma_sm90_desc.hpp), for
row r, chunk c along k, or for eight rows q, place k:

    swizzle   K-major                              MN-major
    none      r%8*16 + r//8*stride + c*leading     q*stride + k%8*16 + k//8*leading
    S bytes   r%8*S + r//8*stride + c*16           q%(S/16)*16 + q//(S/16)*leading + k%8*S + k//8*stride

from the start address, and then XORed as TMA does (`machine.boxes.swizzled`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

SWIZZLES = (0, 128, 64, 32)  # by the two upper bits of a descriptor
REPEAT = 1024  # bytes after which every swizzle repeats itself
STORAGE = {
    "f16": np.uint16, "bf16": np.uint16, "tf32": np.uint32, "s8": np.uint8, "u8": np.uint8,
    "e4m3": np.uint8, "e5m2": np.uint8,
}  # fmt: skip
_MASKS = {0: 0, 32: 1, 64: 3, 128: 7}


@dataclass(frozen=True)
class Descriptor:
    """A matrix descriptor (PTX ISA 9.7.15.5.1.2.2; of tcgen05, too). start, leading, stride: bytes; swizzle: bytes or 0."""

    start: int
    leading: int
    stride: int
    base_offset: int
    swizzle: int


@lru_cache(maxsize=4096)
def descriptor(bits: int) -> Descriptor:
    """From the 64 bits that a kernel passes."""
    return Descriptor(
        (bits & 0x3FFF) << 4,
        (bits >> 16 & 0x3FFF) << 4,
        (bits >> 32 & 0x3FFF) << 4,
        bits >> 49 & 7,
        SWIZZLES[bits >> 62 & 3],
    )


def chunks(found, rows: int, mn_major: int, k: int = 16, along_k: int = 2) -> np.ndarray:
    """Byte addresses of an operand's chunks of 16 bytes: (rows, along_k) if K-major. found: its descriptor, also one of
    tcgen05.

    mn_major: 0, or how many elements a chunk holds along m or n: then (rows // mn_major, k).
    """
    low = found.start % REPEAT
    place = _pattern(low, found.leading, found.stride, found.swizzle, rows, mn_major, k, along_k)
    return place + (found.start - low)


@lru_cache(maxsize=1024)
def _pattern(low, leading, stride, swizzle, rows, mn_major, k, along_k):
    if mn_major:
        q, at = np.arange(rows // mn_major, dtype=np.int64)[:, None], np.arange(k, dtype=np.int64)
        if swizzle:
            wide = swizzle // 16
            place = q % wide * 16 + q // wide * leading + at % 8 * swizzle + at // 8 * stride
        else:
            place = q * stride + at % 8 * 16 + at // 8 * leading
    else:
        r = np.arange(rows, dtype=np.int64)[:, None]
        c = np.arange(along_k, dtype=np.int64)
        place = r % 8 * (swizzle or 16) + r // 8 * stride + c * (16 if swizzle else leading)
    place = place + low
    return place ^ (place >> 3 & (_MASKS[swizzle] << 4))


def matrix(data: np.ndarray, rows: int, mn_major: bool, dtype: np.dtype) -> np.ndarray:
    """Operands (G, rows, k) of element bits from their chunks, (G, ...) of 16 bytes each."""
    count = len(data)
    elements = np.ascontiguousarray(data).view(dtype)
    if mn_major:
        tiles = elements.reshape(count, rows // 8, 16, 8)
        return tiles.transpose(0, 1, 3, 2).reshape(count, rows, 16)
    return elements.reshape(count, rows, -1)


# --- Fragments --------------------------------------------------------------------------------------
# A warpgroup's 64 rows are 16 for each of its warps, which holds them as mma.sync's m16 fragments.


def fragment_of_a(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A (G, 64, k) of element bits from four registers, (4, G, 4 warps, 32 lanes) uint32.

    Register 2i + h: row 8h + lane // 4 of the warp's 16, the lane % 4-th word of 16-byte chunk i.
    """
    groups = words.shape[1]
    parts = words.reshape(2, 2, groups, 4, 8, 4)  # chunk, half, group, warp, row, word
    turned = np.ascontiguousarray(parts.transpose(2, 3, 1, 4, 0, 5))
    return turned.view(dtype).reshape(groups, 64, -1)


def accumulators(words: np.ndarray, half: bool) -> np.ndarray:
    """D (G, 64, n) of element bits from registers (R, G, 4, 32) uint32; half: two f16 in each."""
    count, groups = words.shape[:2]
    if half:
        parts = words.reshape(
            count // 2, 2, groups, 4, 8, 4
        )  # columns, half, group, warp, row, pair
        turned = np.ascontiguousarray(parts.transpose(2, 3, 1, 4, 0, 5))
        return turned.view(np.uint16).reshape(groups, 64, -1)
    parts = words.reshape(count // 4, 2, 2, groups, 4, 8, 4)  # and which of the pair
    return np.ascontiguousarray(parts.transpose(3, 4, 1, 5, 0, 6, 2)).reshape(groups, 64, -1)


def registers(d: np.ndarray, half: bool) -> np.ndarray:
    """The reverse of `accumulators`: (R, G, 4, 32) uint32."""
    groups, _, n = d.shape
    if half:
        pairs = np.ascontiguousarray(d).view(np.uint32).reshape(groups, 4, 2, 8, n // 8, 4)
        turned = pairs.transpose(4, 2, 0, 1, 3, 5)
        return np.ascontiguousarray(turned).reshape(n // 4, groups, 4, 32)
    parts = d.reshape(groups, 4, 2, 8, n // 8, 4, 2)
    turned = parts.transpose(4, 2, 6, 0, 1, 3, 5)
    return np.ascontiguousarray(turned).reshape(n // 2, groups, 4, 32)
