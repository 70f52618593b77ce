"""PTX floating-point arithmetic on arrays, bit for bit.

Formats and the arrays that hold them: `f16` is float16, `f32` float32, `f64` float64, and `bf16` is
uint16 (its bits). The packed forms `f16x2` and `bf16x2` are the same functions on a 16-bit view of
the 32-bit registers. Operands of one call have one shape. Rounding is `rn`, `rz`, `rm` or `rp`. NaN
results of f16, bf16 and f32 are the canonical ones that NVIDIA hardware returns (0x7fff, 0x7fff,
0x7fffffff); f64 keeps the processor's NaN payloads.

How it stays exact at array speed: an operation is done in float64, whose own rounding error is then
known exactly (Knuth's TwoSum, Dekker's TwoProduct, or the sign of a residual). Where that error
matters, the float64 is *rounded to odd* (Boldo and Melquiond, 2008), after which a second rounding,
in any direction, gives what one rounding would have.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

ROUNDINGS = ("rn", "rz", "rm", "rp")


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

_CHUNK = 32768  # elements whose float64 forms stay in a core's cache


# Arithmetic
# ----------


def add(a, b, format="f32", rounding="rn", ftz=False, sat=False):
    """a + b, rounded once."""
    a, b = _inputs(format, ftz, a, b)
    with np.errstate(all="ignore"):
        if rounding == "rn" and format in ("f32", "f64", "f16"):
            result = np.asarray(a) + b  # IEEE; NumPy's f16 sum is exact in f32, then rounded
        else:
            x, y = widen(a, format), widen(b, format)
            total, error = _two_sum(x, y)
            if format == "f64":
                result = _repaired(_directed(total, error, rounding), "add", rounding, x, y)
            else:
                result = narrow(_odd(total, error), format, rounding)
            result = _negative_zero(result, format, rounding, total, x, y)
    return _finish(result, format, ftz, sat)


def sub(a, b, format="f32", rounding="rn", ftz=False, sat=False):
    """a - b, rounded once."""
    return add(a, _flip(b, format), format, rounding, ftz, sat)


def mul(a, b, format="f32", rounding="rn", ftz=False, sat=False):
    """a * b, rounded once."""
    a, b = _inputs(format, ftz, a, b)
    with np.errstate(all="ignore"):
        if rounding == "rn" and format in ("f32", "f64", "f16"):
            result = np.asarray(a) * b
        elif format == "f64":
            product, error = _two_product(a, b)
            result = _repaired(_directed(product, error, rounding), "mul", rounding, a, b)
        else:  # at most 48 bits: exact in float64
            result = narrow(widen(a, format) * widen(b, format), format, rounding)
    return _finish(result, format, ftz, sat)


def fma(a, b, c, format="f32", rounding="rn", ftz=False, sat=False, relu=False):
    """a * b + c, rounded once. `relu`: negative results become +0."""
    a, b, c = _inputs(format, ftz, a, b, c)
    if format == "f32" and rounding == "rn":
        result = fma_f32(a, b, c)
        return _finish(result, format, ftz, sat, relu) if ftz or sat or relu else result
    with np.errstate(all="ignore"):
        if format == "f64":
            result = _fma_f64(a, b, c, rounding)
        else:
            product, addend = widen(a, format) * widen(b, format), widen(c, format)
            total, error = _two_sum(product, addend)
            result = narrow(_odd(total, error), format, rounding)
            result = _negative_zero(result, format, rounding, total, product, addend)
    return _finish(result, format, ftz, sat, relu)


def fma_f32(a, b, c, out=None):
    """a * b + c on float32 arrays, round to nearest even, one rounding: the emulator's hottest loop.

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
    out[where] = _odd(*_two_sum(a * b, c))


def div(a, b, format="f32", rounding="rn", ftz=False, sat=False):
    """a / b, rounded once (`div.rn` and the directed forms)."""
    a, b = _inputs(format, ftz, a, b)
    with np.errstate(all="ignore"):
        if rounding == "rn" and format in ("f32", "f64"):
            result = np.asarray(a) / b
        else:
            x, y = widen(a, format), widen(b, format)
            quotient = x / y
            if format == "f64":
                product, error = _two_product(quotient, y)
                residual = ((x - product) - error) * np.sign(y)
                result = _directed(quotient, _finite(residual), rounding)
                result = _repaired(result, "div", rounding, x, y)
            else:
                high = _truncated(quotient, 25)
                residual = ((x - high * y) - (quotient - high) * y) * np.sign(y)
                result = narrow(_odd(quotient, _finite(residual)), format, rounding)
    return _finish(result, format, ftz, sat)


def rcp(a, format="f32", rounding="rn", ftz=False):
    """1 / a, rounded once."""
    one = narrow(np.ones(np.shape(a)), format)
    return div(one, a, format, rounding, ftz)


def sqrt(a, format="f32", rounding="rn", ftz=False):
    """The square root, rounded once."""
    (a,) = _inputs(format, ftz, a)
    with np.errstate(all="ignore"):
        if rounding == "rn" and format in ("f32", "f64"):
            result = np.sqrt(a)
        else:
            x = widen(a, format)
            root = np.sqrt(x)
            product, error = _two_product(root, root)
            residual = _finite((x - product) - error)
            if format == "f64":
                result = _repaired(_directed(root, residual, rounding), "sqrt", rounding, x)
            else:
                result = narrow(_odd(root, residual), format, rounding)
    return _finish(result, format, ftz, False)


def minimum(a, b, format="f32", ftz=False, nan=False, xorsign_abs=False):
    """The smaller; -0 is below +0. A NaN gives way to a number unless `nan` (PTX `.NaN`)."""
    return _extremum(np.fmin, np.bitwise_or, a, b, format, ftz, nan, xorsign_abs)


def maximum(a, b, format="f32", ftz=False, nan=False, xorsign_abs=False):
    """The larger; +0 is above -0. A NaN gives way to a number unless `nan` (PTX `.NaN`)."""
    return _extremum(np.fmax, np.bitwise_and, a, b, format, ftz, nan, xorsign_abs)


def neg(a, format="f32", ftz=False):
    """-a: the sign bit flipped, NaN included."""
    (a,) = _inputs(format, ftz, a)
    return _flip(a, format)


def absolute(a, format="f32", ftz=False):
    """|a|: the sign bit cleared."""
    (a,) = _inputs(format, ftz, a)
    spec = FORMATS[format]
    return (a.view(spec.bits) & _magnitude_mask(spec)).view(spec.dtype)


def copysign(a, b, format="f32"):
    """b with the sign of a (the operand order of PTX `copysign`)."""
    spec = FORMATS[format]
    a, b = np.asarray(a).view(spec.bits), np.asarray(b).view(spec.bits)
    mask = _magnitude_mask(spec)
    return ((a & ~mask) | (b & mask)).view(spec.dtype)


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
    a, b = _inputs(format, ftz, a, b)
    a, b = _comparable(a, format), _comparable(b, format)
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


_APPROXIMATIONS = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


def approximate(name, a, format="f32", ftz=False):
    """The `.approx` functions: ex2, lg2, sin, cos, tanh, rcp, sqrt, rsqrt.

    A GPU's result is within the error that the PTX ISA states; this one is the true value, rounded.
    """
    (a,) = _inputs(format, ftz, a)
    with np.errstate(all="ignore"):
        result = narrow(_APPROXIMATIONS[name](widen(a, format)), format)
    return _finish(result, format, ftz, False)


def div_approx(a, b, ftz=False, full=False):
    """`div.approx.f32`, `div.full.f32`: the rounded quotient; 0 where |b| > 2^126 unless `full`."""
    result = div(a, b, "f32", "rn", ftz)
    if full:
        return result
    with np.errstate(all="ignore"):
        huge = (np.abs(b) > np.float32(2.0**126)) & np.isfinite(b)
        return _finish(np.where(huge, np.float32(0) * a * b, result), "f32", ftz, False)


# Formats
# -------


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


# Exact errors
# ------------


def _two_sum(a, b):
    """The rounded sum and its exact error (TwoSum)."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    return total, _finite(error)


def _truncated(x, bits):
    """x with the low `bits` of its float64 significand cleared."""
    return (x.view(np.int64) & ~((1 << bits) - 1)).view(np.float64)


def _two_product(a, b):
    """The rounded product of float64 and its exact error, barring over- and underflow (Dekker)."""
    product = a * b
    ah, bh = (x * 134217729.0 - (x * 134217729.0 - x) for x in (a, b))  # 26 bits of each
    al, bl = a - ah, b - bh
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    return product, _finite(error)


def _finite(error):
    return np.where(np.isfinite(error), error, 0.0)


def _odd(x, error):
    """x, whose exact value is x + error, rounded to odd instead of to nearest."""
    bits = x.view(np.int64)
    move = (error != 0) & ((bits & 1) == 0) & np.isfinite(x)
    outward = np.where((error < 0) == (x < 0), 1, -1)
    return (bits + np.where(move, outward, 0)).view(np.float64)


def _directed(x, error, rounding):
    """Nearest x with exact value x + error, rounded to float64 in the given direction."""
    if rounding == "rn":
        return x
    if rounding == "rz":
        return np.where(error * np.sign(x) < 0, np.nextafter(x, 0.0), x)
    if rounding == "rm":
        return np.where(error < 0, np.nextafter(x, -np.inf), x)
    return np.where(error > 0, np.nextafter(x, np.inf), x)


def _fma_f64(a, b, c, rounding):
    """f64 fma by error-free transformations; operands of extreme size in exact rationals."""
    a, b, c = (np.asarray(x, np.float64) for x in (a, b, c))
    high, low = _two_product(a, b)
    mid, rest = _two_sum(c, low)
    top, bottom = _two_sum(high, mid)
    tail, left = _two_sum(bottom, rest)
    tail = _odd(tail, left)
    total, error = _two_sum(top, tail)
    special = ~np.isfinite(total)
    plain = a * b + c
    total, error = np.where(special, plain, total), np.where(special, 0.0, error)
    result = _directed(total, error, rounding)
    result = _negative_zero(result, "f64", rounding, total, a * b, c)
    return _repaired(result, "fma", rounding, a, b, c)


def _repaired(result, operation, rounding, *operands):
    """f64 `result` with elements of extreme size recomputed in exact rationals."""
    finite = np.isfinite(result) | np.all([np.isfinite(x) for x in operands], axis=0)
    extreme = np.zeros(result.shape, bool)
    for x in (*operands, result):
        size = np.abs(x)
        extreme |= (size != 0) & ~((size > 2.0**-450) & (size < 2.0**450))
    if operation in ("fma", "add"):
        extreme |= result == 0
    extreme &= finite & np.all([np.isfinite(x) for x in operands], axis=0)
    if extreme.any():
        result = np.array(result)
        for at in zip(*np.nonzero(extreme), strict=True):
            value = _rational(operation, rounding, *(float(x[at]) for x in operands))
            if value is not None:
                result[at] = value
    return result


def _rational(operation, rounding, *operands):
    """One f64 operation on exact rationals, rounded once; None where `result` is right already."""
    values = [Fraction(x) for x in operands]
    if (operation == "div" and operands[1] == 0) or (operation == "sqrt" and operands[0] <= 0):
        return None
    if operation == "sqrt":
        nearest = float(np.sqrt(operands[0]))
        gap = values[0] - Fraction(nearest) ** 2
    else:
        exact = {
            "add": lambda a, b: a + b,
            "mul": lambda a, b: a * b,
            "div": lambda a, b: a / b,
            "fma": lambda a, b, c: a * b + c,
        }[operation](*values)
        if exact == 0:
            return None
        try:
            nearest = float(exact)
        except OverflowError:
            nearest = float("inf") if exact > 0 else float("-inf")
        if nearest == 0:
            nearest = float(np.copysign(0.0, float(np.sign(exact.numerator))))
        gap = -nearest if np.isinf(nearest) else exact - Fraction(nearest)
    down, up = np.nextafter(nearest, -np.inf), np.nextafter(nearest, np.inf)
    if rounding == "rz":
        rounding = "rm" if (nearest > 0 or (nearest == 0 and gap > 0)) else "rp"
    if rounding == "rm" and gap < 0:
        return down
    if rounding == "rp" and gap > 0:
        return up if up != 0 else -0.0
    return nearest


# Modifiers
# ---------


def flush(x, format="f32"):
    """Subnormals to zero of the same sign (`.ftz`)."""
    spec = FORMATS[format]
    x = np.asarray(x)
    if format == "bf16":
        return np.where((x & 0x7F80) == 0, x & np.uint16(0x8000), x)
    return np.where(np.abs(x) < spec.dtype(spec.tiny), np.copysign(spec.dtype(0), x), x)


def _inputs(format, ftz, *operands):
    dtype = FORMATS[format].dtype
    operands = [np.asarray(x, dtype) for x in operands]
    return [flush(x, format) for x in operands] if ftz else operands


def _finish(result, format, ftz, sat, relu=False):
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


def _negative_zero(result, format, rounding, total, x, y):
    """Rounding down, an exact zero sum is -0 unless both terms are +0."""
    if rounding != "rm":
        return result
    negative = (total == 0) & (np.signbit(x) | np.signbit(y))
    spec = FORMATS[format]
    zero = np.array(-0.0, spec.dtype) if format != "bf16" else np.uint16(0x8000)
    return np.where(negative, zero, result)


def _magnitude_mask(spec):
    return spec.bits((1 << (8 * np.dtype(spec.bits).itemsize - 1)) - 1)


def _flip(a, format):
    spec = FORMATS[format]
    return (np.asarray(a, spec.dtype).view(spec.bits) ^ ~_magnitude_mask(spec)).view(spec.dtype)


def _comparable(x, format):
    return widen(x, format) if format == "bf16" else x


def _extremum(pick, of_equal, a, b, format, ftz, nan, xorsign_abs):
    spec = FORMATS[format]
    a, b = _inputs(format, ftz, a, b)
    mask = _magnitude_mask(spec)
    if xorsign_abs:
        sign = (a.view(spec.bits) ^ b.view(spec.bits)) & ~mask
        a, b = ((x.view(spec.bits) & mask).view(spec.dtype) for x in (a, b))
    x, y = _comparable(a, format), _comparable(b, format)
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
