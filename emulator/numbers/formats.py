"""The floating-point formats of PTX, and the way into and out of them.

Formats and the arrays that hold them: `f16` is float16, `f32` float32, `f64` float64, and `bf16` is
uint16 (its bits). The packed forms `f16x2` and `bf16x2` are the same on a 16-bit view of the 32-bit
registers. Rounding is `rn`, `rz`, `rm` or `rp`. NaN results of f16, bf16 and f32 are the canonical
ones that NVIDIA hardware returns (0x7fff, 0x7fff, 0x7fffffff); f64 keeps the processor's NaN payloads.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Format:
    """One floating-point format: storage dtype, canonical NaN bits, smallest normal number."""

    name: str
    dtype: type
    bits: type
    nan: int
    tiny: float


FORMATS = {
    f.name: f
    for f in (
        Format("f16", np.float16, np.uint16, 0x7FFF, 2.0**-14),
        Format("bf16", np.uint16, np.uint16, 0x7FFF, 2.0**-126),
        Format("f32", np.float32, np.uint32, 0x7FFFFFFF, 2.0**-126),
        Format("f64", np.float64, np.uint64, 0x7FF8000000000000, 2.0**-1022),
    )
}


def widen(x, format):
    """Values of a format as float64, exactly."""
    if format == "bf16":
        return (
            (np.asarray(x, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        )
    return np.asarray(x).astype(np.float64)


def narrow(x, format, rounding="rn"):
    """float64 to a format, one rounding. Inputs that are inexact must be rounded to odd."""
    x = np.asarray(x, np.float64)
    spec = FORMATS[format]
    with np.errstate(all="ignore"):
        if format == "f64":
            return x
        if format == "bf16":
            bits = drop_bits(_odd_float32(x).view(np.uint32), 16, rounding) >> 16
            return np.where(np.isnan(x), spec.nan, bits).astype(np.uint16)
        result = x.astype(spec.dtype)
        if rounding != "rn":
            back = result.astype(np.float64)
            if rounding == "rz":
                off, toward = np.abs(back) > np.abs(x), 0.0
            elif rounding == "rm":
                off, toward = back > x, -np.inf
            else:
                off, toward = back < x, np.inf
            if off.any():
                result = np.where(off, np.nextafter(result, spec.dtype(toward)), result)
                result = np.where(off & (result == 0), np.copysign(result, x), result)
                result = result.astype(spec.dtype)
    wrong = np.isnan(result)
    if wrong.any():
        result.view(spec.bits)[wrong] = spec.nan
    return result


def drop_bits(bits, count, rounding):
    """float32 bits (uint32, no NaN) to a multiple of `1 << count`; `rna`: halves away from zero."""
    sign, size = bits & np.uint32(0x80000000), bits & np.uint32(0x7FFFFFFF)
    unit = np.uint32(1 << count)
    if rounding == "rn":
        size = size + (unit // 2 - 1) + ((size >> np.uint32(count)) & np.uint32(1))
    elif rounding == "rna":
        size = size + unit // 2
    elif rounding in ("rm", "rp"):
        up = (sign != 0) if rounding == "rm" else (sign == 0)
        size = size + np.where(up, unit - 1, np.uint32(0)).astype(np.uint32)
    return sign | (size & ~(unit - np.uint32(1)))


def _odd_float32(x):
    """float64 to float32, rounded to odd, so that a further rounding is as good as one."""
    result = x.astype(np.float32)
    back = result.astype(np.float64)
    outward = np.abs(back) > np.abs(x)
    bits = result.view(np.uint32) - outward.astype(np.uint32)
    bits |= ((back != x) & ~np.isnan(x)).astype(np.uint32)
    return bits.view(np.float32)


def flush(x, format="f32"):
    """Subnormals to zero of the same sign (`.ftz`)."""
    spec = FORMATS[format]
    x = np.asarray(x)
    if format == "bf16":
        return np.where((x & 0x7F80) == 0, x & np.uint16(0x8000), x)
    return np.where(np.abs(x) < spec.dtype(spec.tiny), np.copysign(spec.dtype(0), x), x)


def inputs(format, ftz, *operands):
    dtype = FORMATS[format].dtype
    operands = [np.asarray(x, dtype) for x in operands]
    return [flush(x, format) for x in operands] if ftz else operands


def finish(result, format, ftz, sat, relu=False):
    """Flush, saturate, clamp, and give NaNs their canonical bits."""
    spec = FORMATS[format]
    if ftz:
        result = flush(result, format)
    if format == "bf16":
        if relu:
            negative = ((result & 0x8000) != 0) & ((result & 0x7FFF) <= 0x7F80)
            result = np.where(negative, 0, result).astype(np.uint16)
        if sat:
            value = np.fmin(np.fmax(widen(result, format), 0.0), 1.0) + 0.0
            result = narrow(value, format)
        return result
    if relu:
        result = np.where(result <= 0, spec.dtype(0), result)
    if sat:
        result = np.fmin(np.fmax(result, spec.dtype(0)), spec.dtype(1)) + spec.dtype(0)
    if format != "f64" and result.size:
        lowest = result.min()
        if lowest != lowest:
            result = np.array(result)
            result.view(spec.bits)[np.isnan(result)] = spec.nan
    return result


def magnitude_mask(spec):
    return spec.bits((1 << (8 * np.dtype(spec.bits).itemsize - 1)) - 1)


def flip(a, format):
    spec = FORMATS[format]
    return (np.asarray(a, spec.dtype).view(spec.bits) ^ ~magnitude_mask(spec)).view(spec.dtype)


def comparable(x, format):
    return widen(x, format) if format == "bf16" else x
