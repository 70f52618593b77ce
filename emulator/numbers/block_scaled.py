"""Products whose rows and columns have scale factors, one for each 16 or 32 elements along k.

How they are summed is MMA-Sim's model of a B200 (Xie et al. 2025, arXiv:2511.10909; bit for bit on its
random inputs, for `tcgen05.mma` and, on sm_120, `mma.sync`). Here it was compared with no GPU:

- k = 32 (mxf8f6f4): the scales' exponents are added to those of the products, and the sum is a truncated
  one like any other (`tensor_sums`), with 25 bits below the largest exponent.
- k = 64 (mxf4, mxf4nvf4): products of e2m1 are added exactly by sixteens. Each such sum times the
  fractions of its two scales is a term, the sum of the scales' exponents is its exponent; the terms and C are
  truncated to 35 bits below the largest exponent, added, and cut to float32.
"""

from __future__ import annotations

import numpy as np

from emulator.numbers.fp8 import VALUES
from emulator.numbers.tensor_sums import (
    _NO_EXPONENT,
    Rule,
    _canonical,
    _chunk,
    _exponents,
    _operand,
    _power_of_two,
    _result,
)

GROUP = 16  # elements of e2m1 that are added exactly
_BLOCK = 1 << 15  # elements of D that are worked on together


def scale_values(codes: np.ndarray, type: str) -> tuple[np.ndarray, np.ndarray]:
    """(fractions float64, exponents int32) of scales: their product is the scale; NaN fractions for NaN."""
    codes = codes.astype(np.int64)
    if type == "ue8m0":
        fraction = np.where(codes == 255, np.nan, 1.0)
        return fraction, (codes - 127).astype(np.int32)
    codes = codes & 127  # the sign does not count
    exponent = np.maximum(codes >> 3, 1) - 7
    value = VALUES["e4m3"][codes].astype(np.float64)
    return np.ldexp(value, -exponent), np.where(value == 0, -126, exponent).astype(np.int32)


def product(a, b, c, a_scale, b_scale, a_type: str, b_type: str, scale_type: str) -> np.ndarray:
    """Bits of D (m, n) float32 = (A * its scales) @ (B * its scales) + C.

    a: (m, k), b: (n, k) codes; c: (m, n) float32 bits as uint32; a_scale: (m, s), b_scale: (n, s) codes.
    k = 32 has one scale per row; k = 64 has two or four.
    """
    m, k = a.shape
    step = max(1, _BLOCK // len(b))
    sums = np.ascontiguousarray(c).view(np.float32)
    out = np.empty(c.shape, np.uint32)
    kind = _wide if k == 32 else _grouped
    with np.errstate(all="ignore"):
        for start in range(0, m, step):
            part = slice(start, start + step)
            found = kind(a[part], b, sums[part], a_scale[part], b_scale, a_type, b_type, scale_type)
            out[part] = _canonical(found.astype(np.float32))
    return out


def _wide(a, b, sums, a_scale, b_scale, a_type, b_type, scale_type):
    sides = []
    for codes, scales, type in ((a, a_scale, a_type), (b, b_scale, b_type)):
        values, exponents = _operand(codes, type)
        fraction, shift = scale_values(scales[:, 0], scale_type)
        values = np.ldexp(values.astype(np.float64) * fraction[:, None], shift[:, None])
        exponents = np.where(
            exponents == _NO_EXPONENT, _NO_EXPONENT, exponents + shift[:, None]
        ).astype(np.int16)
        sides.append((values.T, exponents.T))
    (left, left_e), (right, right_e) = sides
    special = not (np.isfinite(left).all() and np.isfinite(right).all())
    return _chunk(
        left[:, :, None], left_e[:, :, None], right[:, None, :], right_e[:, None, :],
        sums, Rule(25, 32, "f32"), special,
    )  # fmt: skip


def _grouped(a, b, sums, a_scale, b_scale, a_type, b_type, scale_type):
    groups = a.shape[1] // GROUP
    left, right = (
        VALUES[type][codes].reshape(len(codes), groups, GROUP).transpose(1, 0, 2)
        for codes, type in ((a, a_type), (b, b_type))
    )
    exact = np.matmul(left, right.transpose(0, 2, 1)).astype(np.float64)  # small integers / 4
    per = groups // a_scale.shape[1]  # groups that share a scale
    (a_f, a_e), (b_f, b_e) = (scale_values(x, scale_type) for x in (a_scale, b_scale))
    fractions, exponents = [], [_exponents(sums.view(np.uint32), "f32").astype(np.int64)]
    for group in range(groups):
        at = group // per
        fractions.append(exact[group] * a_f[:, at, None] * b_f[None, :, at])
        exponents.append((a_e[:, at, None] + b_e[None, :, at]).astype(np.int64))
    top = np.maximum.reduce(exponents)
    wide = sums.astype(np.float64)
    total = np.trunc(wide * _power_of_two(35 - top, np.float64))
    for fraction, exponent in zip(fractions, exponents[1:], strict=True):
        total += np.trunc(fraction * _power_of_two(35 + exponent - top, np.float64))
    plain = wide + sum(fractions)
    total *= _power_of_two(top - 35, np.float64)
    odd = ~np.isfinite(plain)
    total[odd] = 0
    found = _result(total, "f32", True)
    found[odd] = plain[odd]
    return found
