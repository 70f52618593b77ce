"""Numbers that share a scale with their neighbours along k: MXFP8 and NVFP4, as Blackwell's tensor cores take them.

mxfp8: 32 numbers of e4m3 share a power of two (OCP Microscaling Formats Specification 1.0, 2023), rounded up, so that no
number is clipped (Mishra et al., "Recipes for pre-training LLMs with MXFP8", 2025). nvfp4: 16 numbers of e2m1 share a
scale of e4m3, and a whole matrix a float32 factor, by which the largest number becomes 6 * 448 (NVIDIA, "Pretraining
large language models with NVFP4", 2025).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.numbers.fp8 import VALUES

from .formats import E4M3, decode, library, nearest

E2M1 = VALUES["e2m1"][:8]  # and their negatives, from code 8 on
TILE_ROWS, TILE_SCALES = 128, 4  # of scales that stand together


@dataclass(frozen=True)
class Format:
    """block: numbers that share a scale; bits: of a number; largest: that a number can be."""

    block: int
    bits: int
    largest: float


FORMATS = {"mxfp8": Format(32, 8, 448.0), "nvfp4": Format(16, 4, 6.0)}


@dataclass(frozen=True)
class Quantised:
    """A matrix (rows, k): codes (rows, ceil(k * bits / 8)) uint8, the first of two in a byte's low half; scales
    (rows, ceil(k / block)) uint8, codes of ue8m0 or e4m3; factor: what everything is to be multiplied by.
    """

    format: str
    k: int
    codes: Any
    scales: Any
    factor: float


def quantise(values, name: str) -> Quantised:
    """Rounds a matrix (rows, k), blocks along k; NumPy or CuPy. ValueError for numbers that are not finite."""
    if name not in FORMATS:
        raise ValueError(f"no block format {name!r}: choose {' or '.join(FORMATS)}")
    xp, form = library(values), FORMATS[name]
    values = values.astype(np.float64)
    rows, k = values.shape
    if not bool(xp.isfinite(values).all()):
        raise ValueError(f"{name} holds finite numbers; there are infinities or NaNs among these")
    blocks = -(-k // form.block)
    wide = xp.zeros((rows, blocks * form.block), np.float64)
    wide[:, :k] = values
    wide = wide.reshape(rows, blocks, form.block)
    most = xp.abs(wide).max(axis=2)
    factor = 1.0
    if name == "mxfp8":
        fraction, exponent = xp.frexp(most / form.largest)
        exponent = xp.where(fraction == 0.5, exponent - 1, exponent)
        scales = xp.where(most == 0, 0, xp.clip(exponent + 127, 0, 254)).astype(np.uint8)
    else:
        largest = float(most.max())
        factor = float(np.float32(largest / (form.largest * 448))) or 1.0
        scales = nearest(E4M3[:127], most / (form.largest * factor)).astype(np.uint8)
    table = xp.asarray(_scale_values(name))
    scale = (table[scales] * factor)[:, :, None]
    scaled = xp.where(scale == 0, 0, wide / xp.where(scale == 0, 1, scale))
    magnitudes = E4M3[:127] if form.bits == 8 else E2M1
    codes = nearest(magnitudes, xp.abs(scaled)) + (1 << form.bits - 1) * (scaled < 0)
    codes = codes.reshape(rows, -1)[:, : k + (k % 2 if form.bits == 4 else 0)].astype(np.uint8)
    if form.bits == 4:
        codes = codes[:, ::2] | codes[:, 1::2] << 4
    return Quantised(name, k, xp.ascontiguousarray(codes), scales, factor)


def values_of(matrix: Quantised):
    """The numbers that a quantised matrix stands for, (rows, k) float64."""
    xp, form = library(matrix.codes), FORMATS[matrix.format]
    if form.bits == 8:
        numbers = xp.asarray(E4M3)[matrix.codes]
    else:
        both = xp.stack([matrix.codes & 15, matrix.codes >> 4], axis=-1)
        numbers = xp.asarray(np.concatenate([E2M1, -E2M1]))[both.reshape(len(both), -1)]
    scales = xp.asarray(_scale_values(matrix.format))[matrix.scales] * matrix.factor
    return numbers[:, : matrix.k] * xp.repeat(scales, form.block, axis=1)[:, : matrix.k]


def numbers_of(array, name: str):
    """What a kernel multiplies where a matrix in a format's stored numbers (blocks: of float32, along the last axis) is given."""
    return values_of(quantise(array, name)) if name in FORMATS else decode(array, name)


def tiled(scales, rows: int, count: int):
    """Scales (m, blocks) in the order in which a tcgen05.cp takes them, padded with zeros to multiples of `rows` and `count`.

    Tiles of 128 rows and 4 scales are 512 bytes in one piece: scale s of row r at r % 32 * 16 + r // 32 * 4 + s. Tiles
    follow one another along k, then along the rows (cuBLAS, "1D block scaling factors layout").
    """
    xp = library(scales)
    m, blocks = -(-scales.shape[0] // rows) * rows, -(-scales.shape[1] // count) * count
    whole = xp.zeros((m, blocks), np.uint8)
    whole[: scales.shape[0], : scales.shape[1]] = scales
    parts = whole.reshape(m // TILE_ROWS, 4, 32, blocks // TILE_SCALES, TILE_SCALES)
    return xp.ascontiguousarray(parts.transpose(0, 3, 2, 1, 4)).reshape(-1)


def _scale_values(name: str) -> np.ndarray:
    """The value of each of a scale's 256 codes, float64."""
    if name == "nvfp4":
        return E4M3.astype(np.float64)
    return np.ldexp(np.ones(256), np.arange(256) - 127)
