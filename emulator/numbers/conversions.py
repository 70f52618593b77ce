"""PTX `cvt`: every conversion between integers and floating-point formats, on arrays.

Types are named as in PTX. Integers are held in the NumPy type of their name (`u8` ... `s64`),
floats as in `emulator.floats` (`bf16` as its uint16 bits); `tf32` is a float32 whose low 13 bits
are zero. The rules are those of PTX ISA 9.7.9.21 (`cvt`):

- float to integer saturates always; NaN becomes 0, except from `f64` or to a 64-bit integer, where
  it becomes `1 << (bits - 1)`;
- float to a narrower float and integer to float round once (`rn rz rm rp`, and `rna` for tf32);
- to tf32, `rna` cuts a NaN as it cuts any bits, `rn` and `rz` make 0x7fffe000 of it; infinity and NaN
  under `rna.satfinite` lose a unit of the tf32 (measured on an H200: tests/data/README.md, `tf32_rule`);
- `sat` clamps an integer to the destination's range and a float to [0, 1], NaN to 0; `satfinite`
  clamps a float to the largest finite number; `relu` clamps negatives to 0.
"""

import numpy as np

from emulator.numbers.formats import FORMATS, drop_bits, finish, flush, narrow, widen

INTEGERS = {
    name: np.dtype(f"{'u' if name[0] == 'u' else ''}int{name[1:]}").type
    for name in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
}
_TO_INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def convert(x, to, source, rounding=None, *, ftz=False, sat=False, satfinite=False, relu=False):
    """x, of PTX type `source`, as PTX type `to`. Same shape; storage as the module says.

    rounding: `rn rz rm rp rna`, `rni rzi rmi rpi` (to an integral value), or None for the default
    of the pair: truncation to integers, nearest even otherwise.
    """
    if source in INTEGERS:
        x = np.asarray(x, INTEGERS[source])
        if to in INTEGERS:
            return _integer_to_integer(x, to, sat)
        return finish(_integer_to_float(x, to, rounding or "rn"), to, False, sat)
    x = np.asarray(x, FORMATS["f32" if source == "tf32" else source].dtype)
    if ftz:
        x = flush(x, source)
    if to in INTEGERS:
        return _float_to_integer(x, source, to, rounding or "rzi")
    if to == "tf32":
        return _to_tf32(x, rounding or "rna", satfinite, relu)
    return _float_to_float(x, source, to, rounding, ftz, sat, satfinite, relu)


def pack(high, low):
    """16-bit values as uint32 registers, as `cvt.f16x2.f32 d, high, low` leaves them."""
    high, low = (np.asarray(x).view(np.uint16).astype(np.uint32) for x in (high, low))
    return (high << 16) | low


def _integer_to_integer(x, to, sat):
    target = INTEGERS[to]
    if not sat:
        return x.astype(target)
    limits = np.iinfo(target)
    own = np.iinfo(x.dtype)
    return np.clip(x, max(limits.min, own.min), min(limits.max, own.max)).astype(target)


def _integer_to_float(x, to, rounding):
    exact_bits = 53 if to != "f64" else 64
    if x.dtype.itemsize < 8 or (exact_bits == 64 and rounding == "rn"):
        return narrow(x.astype(np.float64), to, rounding)
    negative = x < 0
    size = np.where(negative, ~x.astype(np.uint64) + np.uint64(1), x.astype(np.uint64))
    if to != "f64":  # 64 bits rounded to odd at 53, so that the rounding below is the only one
        wide = size >> np.uint64(53) != 0
        sticky = (size & np.uint64(0x7FF)) != 0
        odd = (size & ~np.uint64(0x7FF)) | (sticky.astype(np.uint64) << np.uint64(11))
        value = np.where(wide, odd, size).astype(np.float64)
        return narrow(np.where(negative, -value, value), to, rounding)
    value = size.astype(np.float64)  # nearest; now step back where the direction asks for it
    below_top = value < 2.0**64
    back = np.where(below_top, value, 0).astype(np.uint64)
    above = ~below_top | (back > size)
    below = below_top & (back < size)
    outward = {"rz": False, "rm": negative, "rp": ~negative}[rounding]
    value = np.where(above & ~np.asarray(outward), np.nextafter(value, 0), value)
    value = np.where(below & outward, np.nextafter(value, np.inf), value)
    return np.where(negative, -value, value)


def _float_to_integer(x, source, to, rounding):
    target = INTEGERS[to]
    limits = np.iinfo(target)
    value = _TO_INTEGRAL[rounding if rounding.endswith("i") else rounding + "i"](widen(x, source))
    nan = np.isnan(value)
    low, high = value <= float(limits.min), value >= float(limits.max)
    with np.errstate(all="ignore"):
        inside = np.where(nan | low | high, 0.0, value).astype(target)
    indefinite = source == "f64" or to in ("u64", "s64")
    missing = target(limits.min if to[0] == "s" else limits.max // 2 + 1) if indefinite else 0
    result = np.where(low, limits.min, np.where(high, limits.max, inside))
    return np.where(nan, missing, result).astype(target)


def _to_tf32(x, rounding, satfinite, relu):
    bits = x.view(np.uint32)
    nan, sign = np.isnan(x), bits & np.uint32(0x80000000)
    if rounding == "rna":
        cut = bits & np.uint32(0xFFFFE000)
        result = np.where(nan, cut, drop_bits(bits, 13, rounding))
        if satfinite:
            full = (result & np.uint32(0x7FFFFFFF)) >= np.uint32(0x7F800000)
            result = np.where(full, result - np.uint32(0x2000), result)
        return result.astype(np.uint32).view(np.float32)
    result = drop_bits(bits, 13, rounding)
    if satfinite:
        size = np.minimum(result & np.uint32(0x7FFFFFFF), np.uint32(0x7F7FE000))
        result = sign | size
    if relu:
        result = np.where(sign != 0, np.uint32(0), result)
    return np.where(nan, np.uint32(0x7FFFE000), result).astype(np.uint32).view(np.float32)


def _float_to_float(x, source, to, rounding, ftz, sat, satfinite, relu):
    value = widen(x, source)
    if rounding in _TO_INTEGRAL:
        value, rounding = _TO_INTEGRAL[rounding](value), "rn"
    result = narrow(value, to, rounding or "rn")
    if satfinite:
        largest = narrow(np.array(np.finfo(np.float64).max), to, "rz")
        size = widen(result, to)
        full = np.isinf(size)
        if full.any():
            top = np.where(size > 0, widen(largest, to), -widen(largest, to))
            result = narrow(np.where(full, top, size), to)
    return finish(result, to, ftz and to in ("f32",), sat, relu)
