"""a * b + c on float32, rounded once: the emulator's hottest loop."""

import numpy as np

from emulator.numbers.exact import odd, two_sum

_CHUNK = 32768  # elements whose float64 forms stay in a core's cache


def fma_f32(a, b, c, out=None):
    """a * b + c on float32 arrays, round to nearest even, one rounding.

    The product of two float32 is exact in float64, so float64's `a * b + c` has one rounding, and
    rounding that to float32 is a second. The second goes wrong only where the first landed on the
    midpoint of two float32 (the low 29 bits say so) or where the result is subnormal; those
    elements alone are repaired.
    """
    a, b, c = (np.asarray(x, np.float32) for x in (a, b, c))
    if out is None:
        same = a.shape == b.shape == c.shape
        shape = a.shape if same else np.broadcast_shapes(a.shape, b.shape, c.shape)
        out = np.empty(shape, np.float32)
    if out.size <= _CHUNK:
        return _fma_f32(a, b, c, out)
    rows = max(1, _CHUNK * len(out) // out.size)
    operands = [np.broadcast_to(x, out.shape) for x in (a, b, c)]
    for start in range(0, len(out), rows):
        part = slice(start, start + rows)
        _fma_f32(*(x[part] for x in operands), out[part])
    return out


def _fma_f32(a, b, c, out):
    with np.errstate(all="ignore"):
        exact = a.astype(np.float64)
        other = b.astype(np.float64)
        if exact.shape == other.shape == c.shape:
            np.multiply(exact, other, exact)
            other[...] = c
            np.add(exact, other, exact)
        else:
            exact = np.multiply(exact, other) + c.astype(np.float64)
        out[...] = exact
        if np.count_nonzero((exact.view(np.int64) & _BELOW) == _MIDPOINT):
            _repair_fma(out, a, b, c, (exact.view(np.int64) & _BELOW) == _MIDPOINT)
        if not np.minimum.reduce(np.absolute(out), axis=None, initial=1.0) >= _TINY:
            small = np.abs(exact)  # there is a zero, a subnormal or a NaN
            small = (small <= 2.0**-126) & (small > 0)
            if small.any():
                _repair_fma(out, a, b, c, small)
            out[np.isnan(out)] = _NAN
    return out


_BELOW, _MIDPOINT = np.int64(0x1FFFFFFF), np.int64(0x10000000)
_TINY, _NAN = np.float32(2.0**-126), np.uint32(0x7FFFFFFF).view(np.float32)


def _repair_fma(out, a, b, c, where):
    where = np.broadcast_to(where, out.shape)
    a, b, c = (np.broadcast_to(x, out.shape)[where].astype(np.float64) for x in (a, b, c))
    out[where] = odd(*two_sum(a * b, c))
