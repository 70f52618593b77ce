"""Comparisons of floats: setp, testp, the smaller and the larger."""

import numpy as np

from emulator.numbers.formats import FORMATS, comparable, inputs, magnitude_mask, widen


def minimum(a, b, format="f32", ftz=False, nan=False, xorsign_abs=False):
    """The smaller; -0 is below +0. A NaN gives way to a number unless `nan` (PTX `.NaN`)."""
    return _extremum(np.fmin, np.bitwise_or, a, b, format, ftz, nan, xorsign_abs)


def maximum(a, b, format="f32", ftz=False, nan=False, xorsign_abs=False):
    """The larger; +0 is above -0. A NaN gives way to a number unless `nan` (PTX `.NaN`)."""
    return _extremum(np.fmax, np.bitwise_and, a, b, format, ftz, nan, xorsign_abs)


_ORDERED = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def compare(operator, a, b, format="f32", ftz=False):
    """PTX `setp` on floats, bool: `eq ne lt …` are false with a NaN, `equ neu ltu …` true."""
    a, b = inputs(format, ftz, a, b)
    a, b = comparable(a, format), comparable(b, format)
    with np.errstate(all="ignore"):
        if operator in ("num", "nan"):
            unordered = np.isnan(a) | np.isnan(b)
            return unordered if operator == "nan" else ~unordered
        if operator in _ORDERED:
            result = _ORDERED[operator](a, b)
            return result & (a == a) & (b == b) if operator == "ne" else result
        return _ORDERED[operator[:-1]](a, b) | np.isnan(a) | np.isnan(b)


def testp(kind, a, format="f32"):
    """PTX `testp`: finite, infinite, number, notanumber, normal, subnormal. (bool)"""
    x = widen(a, format)
    size = np.abs(x)
    tiny = FORMATS[format].tiny
    return {
        "finite": np.isfinite(x),
        "infinite": np.isinf(x),
        "number": ~np.isnan(x),
        "notanumber": np.isnan(x),
        "normal": np.isfinite(x) & (size >= tiny),
        "subnormal": (size < tiny) & (size > 0),
    }[kind]


def _extremum(pick, of_equal, a, b, format, ftz, nan, xorsign_abs):
    spec = FORMATS[format]
    a, b = inputs(format, ftz, a, b)
    mask = magnitude_mask(spec)
    if xorsign_abs:
        sign = (a.view(spec.bits) ^ b.view(spec.bits)) & ~mask
        a, b = ((x.view(spec.bits) & mask).view(spec.dtype) for x in (a, b))
    x, y = comparable(a, format), comparable(b, format)
    with np.errstate(all="ignore"):
        result = (
            np.where(pick(x, y) == x, a, b).view(spec.bits)
            if format == "bf16"
            else pick(a, b).view(spec.bits)
        )
        # equal numbers differ at most in the sign of zero
        result = np.where(x == y, of_equal(a.view(spec.bits), b.view(spec.bits)), result)
        if xorsign_abs:
            result = (result & mask) | sign
        lost = (np.isnan(x) | np.isnan(y)) if nan else (np.isnan(x) & np.isnan(y))
    return np.where(lost, spec.bits(spec.nan), result).astype(spec.bits).view(spec.dtype)
