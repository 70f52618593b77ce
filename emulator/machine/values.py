"""What a register holds, for all threads of a chunk at once.

A chunk is B blocks of T threads (T a multiple of 32), and a register's value is one of

- an `int`: the same bits in every thread, as a non-negative pattern of the register's width
  (`True`/`False` for a predicate). Loop counters and parameters stay this way and cost nothing;
- an `Affine`: an integer for each thread, `pattern.array + offset` modulo 2**width. Adding a
  constant to a million pointers changes one Python int, and what is known about the pattern (its
  range, its gather indices, its bank conflicts) is computed once and remembered on it;
- an `ndarray` of the register's width: raw bits, in whatever dtype the last instruction left them.

Arrays broadcast to (B, T): what depends on the thread alone is (1, T), on the block alone (B, 1).
Values are never changed in place, so they can be shared.
"""

from __future__ import annotations

import numpy as np

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_INT64 = (-(1 << 63), (1 << 63) - 1)
_ROOM = 1 << 40  # narrower integers are left unwrapped while they stay below this
_REMEMBERED = 64


class Pattern:
    """An int64 array with bounds `lo <= array <= hi`, and what has been derived from it."""

    __slots__ = ("_tight", "array", "facts", "hi", "lo")

    def __init__(self, array: np.ndarray, lo: int, hi: int):
        self.array, self.lo, self.hi = array, lo, hi
        self.facts: dict = {}
        self._tight = False

    def tighten(self) -> Pattern:
        """Makes `lo` and `hi` the true minimum and maximum."""
        if not self._tight:
            self.lo, self.hi = int(self.array.min()), int(self.array.max())
            self._tight = True
        return self

    def remember(self, key, value):
        """Notes a derived fact; forgets all of them when there are too many."""
        if len(self.facts) >= _REMEMBERED:
            self.facts.clear()
        self.facts[key] = value
        return value


class Affine:
    """`pattern.array + offset`, modulo the width of the register that holds it."""

    __slots__ = ("offset", "pattern")

    def __init__(self, pattern: Pattern, offset: int = 0):
        self.pattern, self.offset = pattern, offset

    @property
    def lo(self) -> int:
        return self.pattern.lo + self.offset

    @property
    def hi(self) -> int:
        return self.pattern.hi + self.offset


Value = int | Affine | np.ndarray


def signed(value: int, width: int) -> int:
    """A bit pattern of `width` bytes as a signed int."""
    half = 1 << (8 * width - 1)
    return ((value & (2 * half - 1)) ^ half) - half


def settle(array: np.ndarray, lo: int, hi: int, width: int) -> Affine:
    """An int64 array known modulo 2**(8 width), with bounds, as a register value."""
    if width == 8:
        if lo < _INT64[0] or hi > _INT64[1]:
            lo, hi = _INT64
    elif lo < -_ROOM or hi > _ROOM:
        half = 1 << (8 * width - 1)
        array = ((array + half) & (2 * half - 1)) - half
        lo, hi = -half, half - 1
    return Affine(Pattern(array, lo, hi))


def lift(value: Value, width: int) -> int | Affine:
    """Any register value as an integer one."""
    if type(value) is not np.ndarray:
        return int(value) if type(value) is bool else value
    width = value.dtype.itemsize
    half = 1 << (8 * width - 1)
    return Affine(Pattern(value.view(SIGNED[width]).astype(np.int64), -half, half - 1))


def limits(width: int, is_signed: bool) -> tuple[int, int]:
    bits = 8 * width
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)


def exact(value: Affine, width: int, is_signed: bool) -> Affine:
    """The same value with offset and bounds inside the type's range, so that it means itself.

    Unsigned 64-bit values past 2**63 cannot be: their int64 bits come back, with the bounds of int64.
    """
    low, high = limits(width, is_signed)
    pattern, offset = value.pattern, value.offset
    if pattern.lo + offset >= low and pattern.hi + offset <= high:
        return value
    key = ("exact", offset, width, is_signed)
    known = pattern.facts.get(key)
    if known is None:
        array = pattern.array + np.int64(signed(offset, 8))
        if width < 8:
            array &= (1 << 8 * width) - 1
            if is_signed:
                half = high + 1
                array ^= half
                array -= half
            known = Affine(Pattern(array, low, high))
        else:
            known = Affine(Pattern(array, *_INT64))
        pattern.remember(key, known)
    return known


def numbers(value: int | Affine, width: int, is_signed: bool) -> np.ndarray:
    """The values themselves as int64 (uint64 for an unsigned 64-bit type), broadcastable to (B, T)."""
    if isinstance(value, Affine):
        value = exact(value, width, is_signed)
        pattern = value.pattern
        array = pattern.array + value.offset if value.offset else pattern.array
    else:
        array = np.array([[signed(value, 8 if width == 8 or not is_signed else width)]], np.int64)
    return array.view(np.uint64) if width == 8 and not is_signed else array


def raw(value: Value, dtype: np.dtype) -> np.ndarray:
    """The bits of a value as an array of `dtype`, broadcastable to (B, T)."""
    if type(value) is np.ndarray:
        return value if value.dtype == dtype else value.view(dtype)
    width = dtype.itemsize
    if type(value) is Affine:
        pattern, offset = value.pattern, value.offset
        known = pattern.facts.get("raw")
        if known is None or known[0] != offset or known[1].dtype.itemsize != width:
            array = pattern.array + np.int64(signed(offset, 8)) if offset else pattern.array
            known = pattern.facts["raw"] = (offset, array.astype(UNSIGNED[width]))
        return known[1].view(dtype)
    return np.array([[int(value) & ((1 << 8 * width) - 1)]], UNSIGNED[width]).view(dtype)


def collapse(array: np.ndarray) -> Value:
    """An array of shape (1, 1) as the int (or bool) it is; any other array unchanged."""
    if array.size == 1 and array.ndim == 2:
        if array.dtype == bool:
            return bool(array[0, 0])
        return int(array.view(UNSIGNED[array.dtype.itemsize])[0, 0])
    return array


def merge(mask: np.ndarray, new: Value, old: Value, width: int) -> Value:
    """`new` where the (B, T) mask holds, `old` elsewhere. width: bytes of the register, 0 for a predicate."""
    if new is old:
        return new
    if width == 0:
        return np.where(mask, new, old)
    new_raw, old_raw = type(new) is np.ndarray, type(old) is np.ndarray
    if new_raw or old_raw:
        dtype = new.dtype if new_raw else old.dtype
        return np.where(mask, raw(new, dtype), raw(old, dtype))
    if type(new) is int and type(old) is int and new == old:
        return new
    parts = []
    for value in (new, old):
        if type(value) is int:
            number = signed(value, width)
            parts.append((np.int64(number), number, number))
        else:
            fixed = (
                value
                if value.lo >= _INT64[0] and value.hi <= _INT64[1]
                else exact(value, width, True)
            )
            array = fixed.pattern.array + fixed.offset if fixed.offset else fixed.pattern.array
            parts.append((array, fixed.lo, fixed.hi))
    (a, a_lo, a_hi), (b, b_lo, b_hi) = parts
    return settle(np.where(mask, a, b), min(a_lo, b_lo), max(a_hi, b_hi), width)


# --- Integer arithmetic modulo 2**(8 width) ---------------------------------------------------------


def add(x: int | Affine, y: int | Affine, width: int) -> int | Affine:
    if type(x) is int:
        if type(y) is int:
            return (x + y) & ((1 << 8 * width) - 1)
        x, y = y, x
    p = x.pattern
    if type(y) is int:
        offset = signed(x.offset + y, width)
        if width == 8 and (p.lo + offset < _INT64[0] or p.hi + offset > _INT64[1]):
            return Affine(Pattern(p.array + np.int64(offset), *_INT64))
        return Affine(p, offset)
    q = y.pattern
    key = ("+", id(q), width)
    known = p.facts.get(key)
    if known is None or known[0] is not q:
        known = (q, settle(p.array + q.array, p.lo + q.lo, p.hi + q.hi, width))
        _remember_pair(p, key, known)
    total = known[1]
    return add(total, (x.offset + y.offset) & ((1 << 8 * width) - 1), width)


def _remember_pair(p: Pattern, key, known) -> None:
    """Facts about two patterns keep the second one alive, so few are kept."""
    pairs = [k for k in p.facts if type(k) is tuple and k[0] in _PAIRED]
    if len(pairs) >= 4:
        del p.facts[pairs[0]]
    p.remember(key, known)


_PAIRED = {"+", "pair"}


def scale(x: int | Affine, factor: int, width: int) -> int | Affine:
    """x times a signed Python int."""
    if type(x) is int:
        return (x * factor) & ((1 << 8 * width) - 1)
    if factor == 1:
        return add(x, 0, width)  # x itself, unless its bounds leave 64 bits
    if factor == 0:
        return 0
    p = x.pattern
    key = ("*", factor, width)
    known = p.facts.get(key)
    if known is None:
        bounds = sorted((p.lo * factor, p.hi * factor))
        product = (
            p.array << np.int64(factor.bit_length() - 1)
            if _power(factor)
            else p.array * np.int64(factor)
        )
        known = p.remember(key, settle(product, *bounds, width))
    return add(known, (x.offset * factor) & ((1 << 8 * width) - 1), width)


def _power(factor: int) -> bool:
    return factor > 0 and not factor & (factor - 1)


def negate(x: int | Affine, width: int) -> int | Affine:
    return scale(x, -1, width)


def subtract(x: int | Affine, y: int | Affine, width: int) -> int | Affine:
    if type(y) is int:
        return add(x, -y & ((1 << 8 * width) - 1), width)
    return add(x, negate(y, width), width)


def multiply(x: int | Affine, y: int | Affine, width: int) -> int | Affine:
    """The low half of the product."""
    if type(x) is int:
        x, y = y, x
    if type(y) is int:
        return scale(x, signed(y, width), width)
    return paired(("*", width), x, y, lambda: _product(x, y, width))


def _product(x: Affine, y: Affine, width: int) -> Affine:
    x, y = exact(x, width, True), exact(y, width, True)
    bounds = [i * j for i in (x.lo, x.hi) for j in (y.lo, y.hi)]
    product = (x.pattern.array + x.offset) * (y.pattern.array + y.offset)
    return settle(product, min(bounds), max(bounds), width)


def widen(x: int | Affine, width: int, is_signed: bool, to: int) -> int | Affine:
    """A `width`-byte integer as a `to`-byte one, sign- or zero-extended."""
    if type(x) is int:
        value = signed(x, width) if is_signed else x & ((1 << 8 * width) - 1)
        return value & ((1 << 8 * to) - 1)
    return x if to <= width else exact(x, width, is_signed)


def paired(name, x: Affine, y: Affine, compute):
    """`compute()`, remembered on x's pattern for this very pair of values."""
    key = ("pair", name, id(y.pattern), x.offset, y.offset)
    known = x.pattern.facts.get(key)
    if known is None or known[0] is not y.pattern:
        known = (y.pattern, compute())
        _remember_pair(x.pattern, key, known)
    return known[1]


def mapped(name, x: Affine, compute):
    """`compute()`, a function of x and of what is in `name` alone, remembered on x's pattern."""
    key = (name, x.offset)
    known = x.pattern.facts.get(key)
    if known is None:
        known = x.pattern.remember(key, compute())
    return known
