"""The 8-bit floating-point formats e4m3 and e5m2 (Micikevicius et al. 2022, arXiv:2209.05433), and narrower ones.

Elements are uint8 codes: sign, exponent, fraction. e5m2 has infinities and NaN as IEEE formats do;
e4m3 has no infinity, and one NaN of either sign, all other bits set. e2m3, e3m2 and e2m1 (OCP
Microscaling Formats 1.0) have neither. What is a scale has no sign: ue8m0 is a power of two.
"""

import numpy as np

# type -> (bits of the fraction, bits of the exponent)
FIELDS = {"e4m3": (3, 4), "e5m2": (2, 5), "e2m3": (3, 2), "e3m2": (2, 3), "e2m1": (1, 2)}
TYPES = ("e4m3", "e5m2")
_NAN = 0x7F


def _values(type):
    mantissa, width = FIELDS[type]
    bits = np.arange(256)  # narrower codes have their sign just above the exponent
    field, fraction = bits >> mantissa & ((1 << width) - 1), bits & ((1 << mantissa) - 1)
    size = np.where(field > 0, 1 + fraction / (1 << mantissa), 2 * fraction / (1 << mantissa))
    value = np.ldexp(size, field - ((1 << (width - 1)) - 1))
    if type == "e4m3":
        value[bits & 0x7F == 0x7F] = np.nan
    elif type == "e5m2":
        value[field == 31] = np.where(fraction[field == 31] == 0, np.inf, np.nan)
    return np.where(bits >> mantissa + width & 1, -value, value).astype(np.float32)


# type -> the number that each of the 256 codes stands for, float32
VALUES = {type: _values(type) for type in FIELDS}


def encode(x, type, relu=False):
    """Codes of floats, any shape: to nearest even, too large a number to the largest, NaN to 0x7f.

    relu: negative numbers become +0, NaN stays. As `cvt.rn.satfinite` on an H200 (tests/data/README.md).
    """
    x = np.asarray(x).astype(np.float64)
    sizes = VALUES[type][:128].astype(np.float64)
    sizes = sizes[np.isfinite(sizes)]  # ascending, as their codes are
    between = (sizes[:-1] + sizes[1:]) / 2
    below = np.searchsorted(between, np.abs(x), "left")
    above = np.searchsorted(between, np.abs(x), "right")  # one more where x is in the middle
    code = np.where(below % 2 == 0, below, above)
    code = np.where(np.signbit(x), 0 if relu else code | 0x80, code)
    return np.where(np.isnan(x), _NAN, code).astype(np.uint8)


def as_f16(codes, type, relu=False):
    """Codes as float16, exactly; NaN is 0x7fff. relu: negative numbers become +0."""
    values = VALUES[type][codes]
    half = values.astype(np.float16)
    if relu:
        half = np.where(np.signbit(half), np.float16(0), half)
    return np.where(np.isnan(values), np.uint16(0x7FFF), half.view(np.uint16)).view(np.float16)
