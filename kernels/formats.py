"""Number formats that NumPy and CuPy lack, as the bits they are stored in: bfloat16 and the 8-bit float e4m3.

`encode` rounds to the nearest number of a format, ties to even, and clips at the largest of e4m3 (OCP
8-bit Floating Point Specification, 2023: 448, and no infinity). `decode` gives float32 back. Both
take and give NumPy or CuPy arrays; what NumPy knows passes through as it is. A matrix of mxfp8 or nvfp4 is float32
until it is launched (`blocks.quantise`).
"""

import numpy as np

from emulator.numbers.fp8 import VALUES

E4M3 = VALUES["e4m3"]  # the value of each of its 256 codes, float32
STORED = {
    "bfloat16": "uint16",
    "float8_e4m3fn": "uint8",
    **dict.fromkeys(("tf32", "mxfp8", "nvfp4"), "float32"),
}


def stored(name: str) -> str:
    """The NumPy dtype that a format is stored in."""
    return STORED.get(name, name)


def encode(values, name: str):
    """Float32 values as the stored numbers of a format; integer formats take values in [-1, 1) times 127."""
    xp = library(values)
    values = values.astype(np.float32)
    if name == "bfloat16":
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    if name == "float8_e4m3fn":
        code = nearest(E4M3[:127], xp.abs(values))  # its finite numbers, from 0 to 448
        return (code + 128 * (values < 0)).astype(np.uint8)
    if name == "int8":
        return xp.rint(127 * values).astype(np.int8)
    return values.astype(stored(name))


def decode(array, name: str):
    """The numbers that a stored array holds, in float32 or, where NumPy knows the format, as they are."""
    if name == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    if name == "float8_e4m3fn":
        return library(array).asarray(E4M3)[array]
    return array


def nearest(table: np.ndarray, values):
    """The place in an ascending table of the number nearest to each value; even places win ties, the last takes what is above."""
    xp = library(values)
    table = xp.asarray(table)
    at = xp.clip(xp.searchsorted(table, values), 1, len(table) - 1)
    below, above = values - table[at - 1], table[at] - values
    return at - 1 + ((below > above) | ((below == above) & (at % 2 == 0)))


def library(array):
    """NumPy, or CuPy for its arrays."""
    if hasattr(array, "__cuda_array_interface__"):
        import cupy

        return cupy
    return np
