"""D = A @ B + C of one tensor-core instruction, on element bits: the one place that says how it adds.

Products of f16, bf16, tf32 and 8-bit floats are exact; their sum with C is formed in float64 and rounded
once to the result's type (to nearest even). Integer-valued inputs therefore give exact results while sums
stay below 2^24 (f32) or 2^11 (f16). Integer products are exact and wrap, or clamp with `satfinite`.
"""

from __future__ import annotations

import numpy as np

from emulator.numbers.formats import narrow

STORAGE = {
    "f16": np.uint16, "bf16": np.uint16, "tf32": np.uint32, "f32": np.uint32, "s32": np.uint32,
    "s8": np.uint8, "u8": np.uint8, "e4m3": np.uint8, "e5m2": np.uint8,
}  # fmt: skip


def _fp8(mantissa: int, has_infinities: bool) -> np.ndarray:
    """All 256 values of an 8-bit float, float64. e4m3 has one NaN of each sign and no infinities."""
    bits = np.arange(256)
    width = 7 - mantissa
    field, fraction = bits >> mantissa & ((1 << width) - 1), bits & ((1 << mantissa) - 1)
    size = (fraction + np.where(field > 0, 1 << mantissa, 0)) / (1 << mantissa)
    value = np.ldexp(size, np.maximum(field, 1) - ((1 << (width - 1)) - 1))
    if has_infinities:
        top = field == (1 << width) - 1
        value[top] = np.where(fraction[top] == 0, np.inf, np.nan)
    else:
        value[(bits & 0x7F) == 0x7F] = np.nan
    return np.where(bits & 0x80, -value, value)


_FP8 = {"e4m3": _fp8(3, False), "e5m2": _fp8(2, True)}


def values(bits: np.ndarray, type: str) -> np.ndarray:
    """Elements as float64, exactly."""
    if type in _FP8:
        return _FP8[type][bits]
    if type == "f16":
        return bits.view(np.float16).astype(np.float64)
    if type == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if type == "tf32":
        return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    native = {"f32": np.float32, "s32": np.int32, "s8": np.int8, "u8": np.uint8}
    return bits.view(native[type]).astype(np.float64)


def product(a, b, c, a_type, b_type, c_type, d_type, kind="wgmma", arch=90, satfinite=False):
    """Bits of D = A @ B + C as one instruction leaves them, (..., m, n) of d_type's storage.

    a: (..., m, k), b: (..., k, n), c: (..., m, n), unsigned bits of one element each. kind and arch say
    whose sum it is; this model has the same for all.
    """
    with np.errstate(all="ignore"):
        sums = values(a, a_type) @ values(b, b_type) + values(c, c_type)
        if d_type == "s32":
            if satfinite:
                sums = np.clip(sums, -(2.0**31), 2.0**31 - 1)
            return sums.astype(np.int64).astype(np.uint32)
        return narrow(sums, d_type).view(STORAGE[d_type])
