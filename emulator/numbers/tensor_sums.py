"""How a tensor core adds: D = A @ B + C bit for bit, per architecture and instruction.

A tensor core does not round after each addition. It multiplies exactly, shifts the products and the
accumulator to the largest exponent among them, cuts each off some bits below that, adds what is
left exactly, and cuts or rounds the sum once to the result's type. In full, for one chunk of at
most `terms` products:

- An operand x is s * 2**e with 1 <= |s| < 2. A subnormal keeps its format's smallest normal
  exponent and has |s| < 1. The exponent of a product is the sum of its operands'; the product is
  not normalised.
- E is the largest exponent among the products that are not zero and C (which counts -126 at least).
- Every term is truncated towards zero to a multiple of 2**(E - fraction_bits). The sum of the
  truncated terms is exact.
- An `f32` result is truncated to 24 significant bits (subnormals stay, overflow is infinite), an
  `e8m13` result to 14; an `f16` result is rounded to nearest even.
- Any NaN, an infinity times zero, and infinities of both signs give the canonical NaN.

A longer k is a chain of chunks, where the result of one is the C of the next. Fasi et al. 2021
(doi:10.7717/peerj-cs.330) found the truncation and the shared exponent. MMA-Sim (Xie et al. 2025,
arXiv:2511.10909) and Khattak and Mikaitis 2025 (arXiv:2512.07004) give bits and chunks for eight
architectures; the latter publish 40,000 sums that a B200 gave by `mma` and `wmma`, and these rules give them
all. What was compared with a GPU here, over a million products of each instruction, is marked
`measured`; tests/data/README.md says how. Which machine instructions a PTX product becomes was read
from the disassembly of ptxas 13.0's code for sm_75 to sm_120.
"""

import math
import threading
from dataclasses import dataclass
from functools import cache

import numpy as np

from emulator.numbers.floats import fma
from emulator.numbers.formats import narrow
from emulator.numbers.fp8 import FIELDS as _SMALL_FIELDS
from emulator.numbers.fp8 import TYPES as _FP8
from emulator.numbers.fp8 import VALUES as _FP8_VALUES


@dataclass(frozen=True)
class Rule:
    """How one instruction adds its products.

    fraction_bits: bits kept below the largest exponent. terms: products per chunk. result: what
    a chunk's sum becomes, `f32`, `e8m13` (f32 with 13 fraction bits) or `f16`. halves: fp8 registers
    are unpacked by halves, so that the chunks take k % 4 in (0, 1) first and k % 4 in (2, 3) next.
    c_apart: the products are summed from zero, and C is added last by an ordinary rounded addition.
    measured: compared with hardware, bit for bit.
    """

    fraction_bits: int
    terms: int
    result: str
    halves: bool = False
    c_apart: bool = False
    measured: bool = False


# Bits kept below the largest exponent, and bytes of one operand that a chunk takes (MMA-Sim 2025).
_FRACTION_BITS = {70: 23, 75: 24, 80: 24, 86: 24, 89: 24, 90: 25, 100: 25, 120: 25}
_CHUNK_BYTES = {70: 8, 75: 16, 80: 16, 86: 16, 89: 16, 90: 32, 100: 32, 120: 32}
_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, **dict.fromkeys(_FP8_VALUES, 1)}
ARCHITECTURES = tuple(_FRACTION_BITS)
MEASURED = (90,)


def rule(kind, k, a_type, d_type, arch=90):
    """The `Rule` of a floating-point product of depth k.

    kind: `mma`, `wmma`, `wgmma` or `tcgen05`, which is sm_100's. arch: compute capability times
    ten, one of `ARCHITECTURES`.
    Raises ValueError for another architecture or operand type.
    """
    if arch not in _FRACTION_BITS:
        raise ValueError(f"sums of sm_{arch} are not described; known: {ARCHITECTURES}")
    if a_type not in _BYTES:
        raise ValueError(f"no tensor-core sum of {a_type} operands; known: {tuple(_BYTES)}")
    bits, terms = _FRACTION_BITS[arch], min(k, _CHUNK_BYTES[arch] // _BYTES[a_type])
    result = "f16" if d_type == "f16" else "f32"
    if kind == "tcgen05":  # MMA-Sim 2025: all of one instruction's k in one sum
        return Rule(25, k, result)
    measured = arch in MEASURED
    if a_type in _FP8 and (arch == 89 or (arch == 90 and kind == "wgmma")):
        return Rule(13, terms, "f16" if d_type == "f16" else "e8m13", measured=measured)
    if a_type in _FP8 and arch in (90, 100):
        # These have no fp8 `mma`: ptxas 13.0 unpacks to f16 and writes two f16 products and an add.
        return Rule(bits, k // 2, result, halves=True, c_apart=True, measured=measured)
    if a_type == "tf32" and kind == "wmma":
        terms = min(terms, 4)  # ptxas makes HMMA.1684 of it
    return Rule(bits, terms, result, measured=measured)


def product(a, b, c, a_type, b_type, c_type, d_type, kind="mma", arch=90, satfinite=False, bits=""):
    """Bits of D = A @ B + C as one instruction leaves them, (..., m, n) of d_type's storage.

    a: (..., m, k), b: (..., k, n), c: (..., m, n), unsigned bits of one element each; tf32 operands
    are float32 bits whose low 13 are ignored; elements of 4 bits or one have a byte each. `satfinite`
    clamps s32 sums. bits: `and` or `xor`, of b1 operands.
    """
    lead = c.shape[:-2]
    a, b, c = (x.reshape(-1, *x.shape[-2:]) for x in (a, b, c))
    with np.errstate(all="ignore"):
        if d_type == "s32":
            d = _integer(a, b, c, a_type, b_type, satfinite, bits)
        elif a_type == "f64":
            d = _double(a, b, c)
        elif (kind, a_type, a.shape[-2:]) == ("mma", "f16", (8, 4)) and arch >= 80:
            d = _quad_pair(a, b, c, c_type, d_type)
        else:
            how = rule(kind, a.shape[-1], a_type, "f32" if c_type == "f32" else d_type, arch)
            if how.halves:
                a, a_type = _FP8_AS_F16[a_type][a], "f16"
                b, b_type = _FP8_AS_F16[b_type][b], "f16"
            d = _floating(a, b, c, a_type, b_type, c_type, d_type, how)
    return d.reshape(*lead, *d.shape[1:])


# --- Exact and ordinary arithmetic ----------------------------------------------------------------


def _integer(a, b, c, a_type, b_type, satfinite, bits):
    a, b = _whole(a, a_type), _whole(b, b_type)
    products = a @ b  # below 2**24, so exact
    if bits == "xor":
        products = a.sum(axis=-1, keepdims=True) + b.sum(axis=-2, keepdims=True) - 2 * products
    sums = products.astype(np.int64) + c.view(np.int32)
    if satfinite:
        sums = np.clip(sums, -(2**31), 2**31 - 1)
    return sums.astype(np.uint32)


def _whole(x, type):
    """Elements of an integer type as float32."""
    if type == "s4":
        x = (x ^ np.uint8(8)).view(np.int8) - np.int8(8)
    return x.view(np.int8 if type[0] == "s" else np.uint8).astype(np.float32)


def _double(a, b, c):
    """f64: a chain of fused multiply-adds in order of k."""
    a, b, sums = (x.view(np.float64) for x in (a, b, c))
    for t in range(a.shape[-1]):
        left = np.broadcast_to(a[:, :, t, None], sums.shape)
        right = np.broadcast_to(b[:, None, t, :], sums.shape)
        sums = fma(left, right, sums, "f64")
    return np.ascontiguousarray(sums).view(np.uint64)


def _quad_pair(a, b, c, c_type, d_type):
    """mma.m8n8k4 from sm_80 on: ordinary float32 arithmetic, as ptxas 13.0 writes it out.

    f32: c + (((a0 b0 + a1 b1) + a2 b2) + a3 b3) by fused multiply-adds, c added last. f16 results:
    (c + (a0 b0 + a1 b1)) + (a2 b2 + a3 b3), rounded to f16 at the end.
    """
    a, b = (x.view(np.float16).astype(np.float32) for x in (a, b))
    sums = c.view(np.float16 if c_type == "f16" else np.float32).astype(np.float32)
    pairs = [
        [np.broadcast_to(x, sums.shape) for x in (a[:, :, t, None], b[:, None, t, :])]
        for t in range(4)
    ]
    first = pairs[0][0] * pairs[0][1]  # exact
    if d_type == "f32":
        first += np.float32(0)  # it is added to +0
    first = fma(*pairs[1], first)
    if d_type == "f32":
        return _canonical(sums + fma(*pairs[3], fma(*pairs[2], first)))
    return _canonical((sums + first) + fma(*pairs[3], pairs[2][0] * pairs[2][1]), "f16")


def _canonical(x, type="f32"):
    """Bits of float32 x as f32 or f16, NaN canonical."""
    if type == "f16":
        return narrow(x, "f16").view(np.uint16)
    return np.where(np.isnan(x), np.uint32(0x7FFFFFFF), x.view(np.uint32))


# --- Truncated sums -------------------------------------------------------------------------------

_SMALL = {type: fields[0] for type, fields in _SMALL_FIELDS.items()}
_MANTISSA = {"f16": 10, "bf16": 7, "tf32": 10, "f32": 23, **_SMALL}
_SMALL = {type: fields[1] for type, fields in _SMALL_FIELDS.items()}
_EXPONENT = {"f16": 5, "bf16": 8, "tf32": 8, "f32": 8, **_SMALL}
_NO_EXPONENT = -8192  # of a zero operand: its products set no scale

# Elements of D that are worked on together, so that intermediate arrays stay in the cache.
_BLOCK = 1 << 14

# Products that are held at once, where that saves calls.
_PRODUCTS = 1 << 16

# Where no exponent of a chunk is beyond these, every step of its sum is a normal float32.
_LEAST, _MOST = -90, 100


def _values(bits, type):
    """Elements as float32, exactly."""
    if type == "f16":
        return bits.view(np.float16).astype(np.float32)
    if type == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if type == "tf32":
        return (bits & np.uint32(0xFFFFE000)).view(np.float32)
    if type == "f32":
        return bits.view(np.float32)
    return _FP8_VALUES[type][bits]


def _exponents(bits, type):
    """Exponents (int16) of elements; subnormals have the smallest normal one."""
    width = _EXPONENT[type]
    shift = 13 + 10 if type == "tf32" else _MANTISSA[type]
    field = ((bits >> bits.dtype.type(shift)) & bits.dtype.type((1 << width) - 1)).astype(np.int16)
    np.maximum(field, 1, out=field)
    field -= (1 << (width - 1)) - 1
    return field


def _operand(bits, type):
    """(values, exponents) of the elements of A or B, zeros without an exponent."""
    if type == "tf32":
        values, exponents = _values(bits, type), _exponents(bits, type)
        exponents[values == 0] = _NO_EXPONENT
        return values, exponents
    return tuple(table.take(bits) for table in _table(type))


@cache
def _table(type):
    """`_operand` of every element of at most 16 bits, in order."""
    bits = np.arange(1 << 8 * _BYTES[type]).astype(f"u{_BYTES[type]}")
    values, exponents = _values(bits, type), _exponents(bits, type)
    exponents[values == 0] = _NO_EXPONENT
    return values, exponents


_FP8_AS_F16 = {type: _FP8_VALUES[type].astype(np.float16).view(np.uint16) for type in _FP8}


def _floating(a, b, c, a_type, b_type, c_type, d_type, how):
    """Chunks of truncated sums over all matrices, a block of them at a time."""
    tiles, m, _ = a.shape
    n = b.shape[-1]
    limit = 2.0**11 if "f16" in (d_type, how.result) else 2.0**23
    if how.result != "e8m13":
        integers = _small_integers((a, a_type), (b, b_type), (c, c_type), limit)
        if integers:
            left, right, sums = integers
            sums = left @ right + sums + np.float32(0)  # no negative zero
            return (
                sums.astype(np.float16).view(np.uint16) if d_type == "f16" else sums.view(np.uint32)
            )
    step = max(1, _BLOCK // (m * n))
    if tiles <= step:
        return _block(a, b, c, a_type, b_type, c_type, d_type, how)
    out = np.empty((m, n, tiles), np.uint16 if d_type == "f16" else np.uint32).transpose(2, 0, 1)
    for start in range(0, tiles, step):
        part = slice(start, start + step)
        out[part] = _block(a[part], b[part], c[part], a_type, b_type, c_type, d_type, how)
    return out


def _small_integers(a, b, c, limit):
    """The operands' values where every sum is an integer below `limit`, so that nothing is lost; or None.

    Then the largest exponent is below 24, the last bit kept stands for at most 1, and any order of
    exact additions gives the result: a plain float32 product does.
    """
    parts = a, b, c
    for x, type in parts:
        first = _values(x[0].reshape(-1)[:32], type)
        if (first != np.rint(first)).any():
            return None  # most data ends here, before it costs anything
    found = [_values(*part) for part in parts]
    sizes = [float(max(x.max(), -x.min())) for x in found]
    if not sizes[0] * sizes[1] * a[0].shape[-1] + sizes[2] < limit:
        return None
    return found if all((x == np.rint(x)).all() for x in found) else None


def _block(a, b, c, a_type, b_type, c_type, d_type, how):
    # Arrays are laid out so that their last axis, the inner loop, is the longer of tiles and n:
    # A (k, m, 1, tiles), B (k, 1, n, tiles), C (m, n, tiles), or A (k, tiles, m, 1) and so on.
    tiles, n = len(a), b.shape[-1]
    if tiles >= n:
        a = a.transpose(2, 1, 0)[:, :, None, :]
        b = b.transpose(1, 2, 0)[:, None, :, :]
        c = c.transpose(1, 2, 0)
    else:
        a = a.transpose(2, 0, 1)[:, :, :, None]
        b = b.transpose(1, 0, 2)[:, :, None, :]
    left, left_e = _operand(a, a_type)
    right, right_e = _operand(b, b_type)
    sums = _values(np.ascontiguousarray(c), c_type)
    special = not (np.isfinite(left).all() and np.isfinite(right).all())
    if special or not (_EXPONENT[a_type] < 8 or _fits_float32(left_e, right_e)):
        left, right = left.astype(np.float64), right.astype(np.float64)
    addend, sums = sums, np.zeros_like(sums) if how.c_apart else sums
    for order in _chunks(len(a), how):
        operands = [x[order] for x in (left, left_e, right, right_e)]
        sums = _chunk(*operands, sums, how, special)
    if how.c_apart:
        sums = addend + sums  # of two f16, exact in float32 but for the rounding to f16 below
    d = _canonical(sums, d_type)
    return d.transpose(2, 0, 1) if tiles >= n else d


def _fits_float32(left_e, right_e):
    """Whether no product of bf16 or tf32 that is not zero leaves float32's range, scaled or not."""
    low = sum(int(e.min(initial=0, where=e > _NO_EXPONENT)) for e in (left_e, right_e))
    return low > -60 and int(left_e.max()) + int(right_e.max()) < 60


def _chunks(k, how):
    """Which k are summed together, in order: slices or index arrays."""
    if not how.halves:
        return [slice(t, t + how.terms) for t in range(0, k, how.terms)]
    place = np.arange(k) % 4
    return [np.flatnonzero(place < 2), np.flatnonzero(place >= 2)]


def _chunk(left, left_e, right, right_e, sums, how, special):
    """One truncated sum: float32 values of the result's type, from terms along the first axis."""
    top = _exponents(sums.view(np.uint32), "f32")
    np.maximum(top, _largest_exponent(left_e, right_e, top.shape), out=top)
    special = special or int(top.max()) > 127
    narrow = left.dtype == np.float32 and _narrowed(top, sums)
    width = np.float32 if narrow else np.float64
    scale = _power_of_two(how.fraction_bits - top, width)
    left, right = left.astype(width, copy=False), right.astype(width, copy=False)
    total = _truncated_products(left, right, scale).astype(np.float64)
    total += np.trunc(sums * scale)
    total /= scale
    result = _result(total, how.result, not narrow)
    if special:
        plain = sums.astype(np.float64)
        for t in range(len(left)):
            plain = plain + left[t].astype(np.float64) * right[t]
        odd = ~np.isfinite(plain)
        result[odd] = plain[odd]
    return result


def _largest_exponent(left_e, right_e, shape):
    """The largest exponent of the products of each element of D, int16."""
    if _at_once(left_e, shape):
        products = _spare("exponents", (len(left_e), *shape), np.int16)
        return np.add(left_e, right_e, out=products).max(axis=0)
    top, products = left_e[0] + right_e[0], _spare("exponents", shape, np.int16)
    for t in range(1, len(left_e)):
        np.maximum(top, np.add(left_e[t], right_e[t], out=products), out=top)
    return top


def _truncated_products(left, right, scale):
    """The sum of products * scale, each cut off towards zero, as integers.

    A term is below 2**27, (2 - ulp)**2 * 2**25, so that 32 bits hold the sum of sixteen.
    """
    shape = scale.shape
    if _at_once(left, shape):
        terms = np.multiply(left, right, out=_spare("terms", (len(left), *shape), left.dtype))
        terms *= scale
        whole = _spare("whole", terms.shape, np.int32)
        np.copyto(whole, terms, casting="unsafe")  # towards zero
        return whole.sum(axis=0, dtype=np.int32)
    term, whole = _spare("terms", shape, left.dtype), _spare("whole", shape, np.int32)
    part, total = np.zeros(shape, np.int32), 0
    for t in range(len(left)):
        np.multiply(left[t], right[t], out=term)
        np.multiply(term, scale, out=term)
        np.copyto(whole, term, casting="unsafe")
        np.add(part, whole, out=part)
        if t % 16 == 15:
            total = total + part.astype(np.int64)
            part[...] = 0
    return total + part


def _at_once(left, shape):
    """Whether the products of all terms are held together: few calls, or small arrays."""
    return len(left) <= 16 and len(left) * math.prod(shape) <= _PRODUCTS


_SPARE = threading.local()


def _spare(name, shape, dtype):
    """Memory for an intermediate array. It is used again: to ask the system for it anew would cost more
    than the arithmetic.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if len(getattr(_SPARE, name, b"")) < size:
        setattr(_SPARE, name, np.empty(size, np.uint8))
    return getattr(_SPARE, name)[:size].view(dtype).reshape(shape)


def _narrowed(top, sums):
    """Whether float32 can hold every step of a chunk; then `top`, its largest exponents, is at least _LEAST.

    An exponent below that is one of zeros, which may have any, unless the accumulator is that small.
    """
    if int(top.max()) > _MOST:
        return False
    if int(top.min()) < _LEAST:
        if ((np.abs(sums) < 2.0**_LEAST) & (sums != 0)).any():
            return False
        np.maximum(top, _LEAST, out=top)
    return True


def _power_of_two(exponents, width):
    """2**exponents as float32 or float64, for exponents of normal numbers."""
    if width == np.float32:
        return ((exponents.astype(np.int32) + 127) << 23).view(width)
    return ((exponents.astype(np.int64) + 1023) << 52).view(width)


def _result(total, type, may_be_subnormal):
    """Exact float64 sums as a result type's values, float32."""
    if type == "f16":
        return total.astype(np.float16).astype(np.float32) + np.float32(0)  # no negative zero
    dropped = 29 if type == "f32" else 39
    cut = (total.view(np.int64) & np.int64(-1 << dropped)).view(np.float64)
    if may_be_subnormal and (small := np.abs(cut) < 2.0**-126).any():
        unit = 2.0 ** (-149 if type == "f32" else -139)
        cut[small] = np.trunc(total[small] / unit) * unit
    return cut.astype(np.float32)
