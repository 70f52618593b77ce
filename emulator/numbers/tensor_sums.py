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
architectures. What was compared with a GPU, over a million products of each instruction, is marked
`measured`; tests/data/README.md says how. Which machine instructions a PTX product becomes was read
from the disassembly of ptxas 13.0's code for sm_75 to sm_120.
"""

from dataclasses import dataclass

import numpy as np

from emulator.numbers.floats import fma
from emulator.numbers.formats import narrow
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
_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1}
ARCHITECTURES = tuple(_FRACTION_BITS)
MEASURED = (90,)


def rule(kind, k, a_type, d_type, arch=90):
    """The `Rule` of a floating-point product of depth k.

    kind: `mma`, `wmma` or `wgmma`. arch: compute capability times ten, one of `ARCHITECTURES`.
    Raises ValueError for another architecture or operand type.
    """
    if arch not in _FRACTION_BITS:
        raise ValueError(f"sums of sm_{arch} are not described; known: {ARCHITECTURES}")
    if a_type not in _BYTES:
        raise ValueError(f"no tensor-core sum of {a_type} operands; known: {tuple(_BYTES)}")
    bits, terms = _FRACTION_BITS[arch], min(k, _CHUNK_BYTES[arch] // _BYTES[a_type])
    result = "f16" if d_type == "f16" else "f32"
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

_MANTISSA = {"f16": 10, "bf16": 7, "tf32": 10, "f32": 23, "e4m3": 3, "e5m2": 2}
_EXPONENT = {"f16": 5, "bf16": 8, "tf32": 8, "f32": 8, "e4m3": 4, "e5m2": 5}
_NO_EXPONENT = -8192  # of a zero operand: its products set no scale

# Elements of D that are worked on together, so that intermediate arrays stay in the cache.
_BLOCK = 1 << 14

# Products that are held at once, where that saves calls.
_PRODUCTS = 1 << 16


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


_FP8_AS_F16 = {type: x.astype(np.float16).view(np.uint16) for type, x in _FP8_VALUES.items()}


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
    out = np.empty((tiles, m, n), np.uint16 if d_type == "f16" else np.uint32)
    step = max(1, _BLOCK // (m * n))
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
        first = _values(x.reshape(-1)[:32], type)
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
    a, b, c = (np.ascontiguousarray(x) for x in (a, b, c))
    left, right, sums = _values(a, a_type), _values(b, b_type), _values(c, c_type)
    left_e, right_e = _exponents(a, a_type), _exponents(b, b_type)
    width = np.float32 if _fits_float32(left_e, right_e) else np.float64
    left_e[left == 0] = _NO_EXPONENT
    right_e[right == 0] = _NO_EXPONENT
    special = None
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        special = True
    if tiles >= n and left.size * n <= _PRODUCTS:
        # One copy of each, and the inner loops below are n times as long.
        left, left_e = (np.repeat(x, n, axis=2).reshape(*x.shape[:2], -1) for x in (left, left_e))
        right, right_e = (x.reshape(len(x), 1, -1) for x in (right, right_e))
        sums = sums.reshape(len(sums), -1)
    addend, sums = sums, np.zeros_like(sums) if how.c_apart else sums
    left, right = left.astype(width, copy=False), right.astype(width, copy=False)
    for order in _chunks(len(a), how):
        operands = [x[order] for x in (left, left_e, right, right_e)]
        sums = _chunk(*operands, sums, how, special)
    if how.c_apart:
        sums = addend + sums  # of two f16, exact in float32 but for the rounding to f16 below
    d = _canonical(sums, d_type).reshape(c.shape)
    return d.transpose(2, 0, 1) if tiles >= n else d


def _fits_float32(left_e, right_e):
    """Whether no product of these exponents leaves float32's range, scaled or not."""
    low = int(left_e.min()) + int(right_e.min())
    high = int(left_e.max()) + int(right_e.max())
    return low > -60 and high < 60


def _chunks(k, how):
    """Which k are summed together, in order: slices or index arrays."""
    if not how.halves:
        return [slice(t, t + how.terms) for t in range(0, k, how.terms)]
    place = np.arange(k) % 4
    return [np.flatnonzero(place < 2), np.flatnonzero(place >= 2)]


def _chunk(left, left_e, right, right_e, sums, how, special):
    """One truncated sum: float32 values of the result's type, from terms along the first axis."""
    together = sums.size * len(left) <= _PRODUCTS and len(left) <= 16  # few calls, or small arrays
    top = _exponents(sums.view(np.uint32), "f32")
    if together:
        np.maximum(top, (left_e + right_e).max(axis=0), out=top)
    else:
        spare = np.empty(sums.shape, np.int16)
        for t in range(len(left)):
            np.maximum(top, np.add(left_e[t], right_e[t], out=spare), out=top)
    scale64 = _power_of_two(how.fraction_bits - top.astype(np.int64))
    scale = scale64
    if left.dtype == np.float32:  # products are 0 or 2**-60 at least: this changes none that counts
        scale = np.minimum(scale64, 2.0**100).astype(np.float32)
    total = np.trunc(sums * scale64)
    # A term is below 2**27, (2 - ulp)**2 * 2**25, so that 32 bits hold the sum of sixteen.
    if together:
        terms = left * right
        terms *= scale
        total += terms.astype(np.int32).sum(axis=0, dtype=np.int32)  # towards zero
    else:
        term, whole = np.empty(sums.shape, left.dtype), np.empty(sums.shape, np.int32)
        part = np.zeros(sums.shape, np.int32)
        for t in range(len(left)):
            np.multiply(left[t], right[t], out=term)
            np.multiply(term, scale, out=term)
            np.copyto(whole, term, casting="unsafe")
            np.add(part, whole, out=part)
            if t % 16 == 15:
                total += part
                part[...] = 0
        total += part
    total /= scale64
    result = _result(total, how.result)
    if special or not np.isfinite(sums).all():
        plain = sums.astype(np.float64)
        for t in range(len(left)):
            plain = plain + left[t].astype(np.float64) * right[t]
        odd = ~np.isfinite(plain)
        result[odd] = plain[odd]
    return result


def _power_of_two(exponents):
    """2**exponents as float64, for int64 exponents of normal numbers."""
    return ((exponents + 1023) << 52).view(np.float64)


def _result(total, type):
    """Exact float64 sums as a result type's values, float32."""
    if type == "f16":
        return total.astype(np.float16).astype(np.float32) + np.float32(0)  # no negative zero
    dropped = 29 if type == "f32" else 39
    cut = (total.view(np.int64) & np.int64(-1 << dropped)).view(np.float64)
    small = np.abs(cut) < 2.0**-126
    if small.any():
        unit = 2.0 ** (-149 if type == "f32" else -139)
        cut[small] = np.trunc(total[small] / unit) * unit
    return cut.astype(np.float32)
