"""Number formats that NumPy and CuPy lack, as the bits they are stored in: bfloat16 and the 8-bit float e4m3.

`encode` rounds to the nearest number of a format, ties to even, and clips at the largest of e4m3 (OCP
8-bit Floating Point Specification, 2023: 448, and no infinity). `decode` gives float32 back. Both
take and give NumPy or CuPy arrays; what NumPy knows passes through as it is.
"""

from __future__ import annotations

import numpy as np

STORED = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "tf32": "float32"}


def stored(name: str) -> str:
    """The NumPy dtype that a format is stored in."""
    return STORED.get(name, name)


def encode(values, name: str):
    """Float32 values as the stored numbers of a format; integer formats take values in [-1, 1) times 127."""
    xp = _library(values)
    values = values.astype(np.float32)
    if name == "bfloat16":
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    if name == "float8_e4m3fn":
        table = xp.asarray(E4M3[:127])  # its finite numbers, from 0 to 448
        at = xp.clip(xp.searchsorted(table, xp.abs(values)), 1, 126)
        below, above = table[at - 1], table[at]
        up = xp.abs(values) - below > above - xp.abs(values)
        tie = xp.abs(values) - below == above - xp.abs(values)
        code = at - 1 + (up | (tie & ((at - 1) % 2 == 1)))
        return (code + 128 * (values < 0)).astype(np.uint8)
    if name == "int8":
        return xp.rint(127 * values).astype(np.int8)
    return values.astype(stored(name))


def decode(array, name: str):
    """The numbers that a stored array holds, in float32 or, where NumPy knows the format, as they are."""
    if name == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    if name == "float8_e4m3fn":
        return _library(array).asarray(E4M3)[array]
    return array


def _e4m3() -> np.ndarray:
    """The value of each of its 256 codes: a sign, 4 bits of exponent with bias 7, 3 of mantissa."""
    code = np.arange(256)
    exponent, mantissa = code >> 3 & 15, code & 7
    normal = np.ldexp(1 + mantissa / 8, exponent - 7)
    value = np.where(exponent == 0, np.ldexp(mantissa / 8, -6), normal)
    value = np.where(code & 127 == 127, np.nan, value)
    return np.where(code >= 128, -value, value).astype(np.float32)


E4M3 = _e4m3()


def _library(array):
    if hasattr(array, "__cuda_array_interface__"):
        import cupy

        return cupy
    return np
