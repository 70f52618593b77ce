"""Rules that what the GPU did in `semantics` follows: each gives the words of a probe from its inputs."""

import numpy as np

_MASK = (1 << 32) - 1


def carry_rule(name, x):
    """One carry flag: the adder's. `sub` adds the complement, so that no borrow is a carry of 1."""
    flag, words = None, []
    sources = ((0, 1, 2), (2, 3, 0)) if name.count(" ") == 1 else ((0, 1, 0), (2, 3, 0), (1, 2, 0))
    for operation, (i, j, k) in zip(name.split(), sources, strict=True):
        base = operation.replace(".cc", "")
        a, b, c = (x[:, t].astype(object) for t in (i, j, k))
        if base.startswith("mad"):
            product = a * b
            total = (product >> 32 if "hi" in base else product & _MASK) + c
            total = total + (flag if base.startswith("madc") else 0)
        else:
            b = b ^ _MASK if base.startswith("sub") else b
            total = a + b + (flag if base.endswith("c") else int(base == "sub"))
        flag = total >> 32
        words.append((total & _MASK).astype(np.uint32))
    return words


def _flushed(bits):
    """float32 bits with subnormals as zeros of the same sign."""
    return np.where((bits & 0x7F800000) == 0, bits & np.uint32(0x80000000), bits).astype(np.uint32)


def _sum_f32(x, y, flush):
    """Bits of x + y, NaN canonical."""
    if flush:
        x, y = _flushed(x), _flushed(y)
    with np.errstate(all="ignore"):
        total = x.view(np.float32) + y.view(np.float32)
    bits = np.where(np.isnan(total), np.uint32(0x7FFFFFFF), total.view(np.uint32))
    return _flushed(bits) if flush else bits


def atomic_f32_rule(name, x):
    """Global additions flush subnormal operands and results; shared ones keep them."""
    x = np.ascontiguousarray(x.T)
    if ".v" in name:
        count = int(name[name.index(".v") + 2])
        return [_sum_f32(x[i], x[3 - i], True) if i < count else x[i] for i in range(4)]
    old = x[0] if name.startswith("atom") else np.zeros_like(x[0])
    return [old, _sum_f32(x[0], x[1], "global" in name)]


def packed_rule(name, x):
    """Vectors of packed halves in global memory: element by element, subnormals kept."""
    from emulator.numbers import comparisons, floats

    type, operation = ("bf16" if "bf16" in name else "f16"), name.split(".")[2]
    work = {"add": floats.add, "min": comparisons.minimum, "max": comparisons.maximum}[operation]
    storage = np.uint16 if type == "bf16" else np.float16
    words = []
    for i in range(4):
        old, new = (np.ascontiguousarray(x[:, j]).view(storage) for j in (i, 3 - i))
        words.append(np.ascontiguousarray(work(old, new, type)).view(np.uint32))
    return words


def _fp8(value, type, relu):
    """Codes of float64 values: nearest even, clamped to the largest, NaN 0x7f."""
    mantissa, least, largest = {"e4m3": (3, -6, 448.0), "e5m2": (2, -14, 57344.0)}[type]
    nan, negative = np.isnan(value), np.signbit(value)
    size = np.where(nan, 0.0, np.minimum(np.abs(value), largest))
    exponent = np.where(size == 0, least, np.maximum(np.frexp(size)[1] - 1, least))
    unit = np.ldexp(1.0, exponent - mantissa)
    steps = np.rint(size / unit)
    code = (steps + ((exponent - least) * (1 << mantissa))).astype(np.int64)
    code = np.where(negative, 0 if relu else code | 0x80, code)
    return np.where(nan, 0x7F, code).astype(np.uint32)


def fp8_rule(name, x):
    """The first source is the high byte; of f16x2 the high half."""
    type, relu = ("e4m3" if "e4m3" in name else "e5m2"), ".relu" in name
    if ".f16x2.e" in name:
        from emulator.numbers.tensor_sums import _FP8_VALUES

        halves = []
        for shift in (0, 8):
            value = _FP8_VALUES[type][(x[:, 0] >> shift) & 0xFF]
            half = value.astype(np.float16)
            half = np.where(relu & np.signbit(half), np.float16(0), half)
            halves.append(np.where(np.isnan(value), 0x7FFF, half.view(np.uint16)).astype(np.uint32))
        return [halves[0] | halves[1] << 16]
    with np.errstate(all="ignore"):
        if name.split(",")[0].endswith("f16x2"):
            low, high = ((x[:, i] & 0xFFFF).astype(np.uint16).view(np.float16) for i in (0, 1))
        else:
            columns = (1, 0) if "any" in name else (3, 2)
            low, high = (np.ascontiguousarray(x[:, i]).view(np.float32) for i in columns)
        low, high = (_fp8(v.astype(np.float64), type, relu) for v in (low, high))
    return [low | high << 8]


def tf32_rule(name, x):
    """rna adds half a unit and cuts, NaN is only cut; rn and rz make every NaN 0x7fffe000.

    `rna.satfinite` takes a unit off whatever then has the largest exponent: infinity becomes the
    largest finite number, and a NaN another NaN or, from 0x7f800001 on, that number too.
    """
    bits = x[:, 0].astype(np.uint64)
    size, sign = bits & 0x7FFFFFFF, bits & 0x80000000
    nan = size > 0x7F800000
    if ".rna" in name:
        size = np.where(nan, size, size + 0x1000) & 0x7FFFE000
        if "satfinite" in name:
            size = np.where(size >= 0x7F800000, size - 0x2000, size)
        return [(sign | size).astype(np.uint32)]
    half = 0 if ".rz" in name else 0xFFF + (size >> 13 & 1)
    result = np.where(nan, 0x7FFFE000, sign | (size + half) & 0x7FFFE000)
    if "relu" in name:
        result = np.where(~nan & (sign != 0), 0, result)
    return [result.astype(np.uint32)]


def shuffle_rule(name, x):
    """A lane that has exited or is elsewhere is read as 0; the predicate is about the range alone."""
    lanes = np.arange(32)
    source, within = {
        "shfl.idx": (x[:, 0].astype(int), np.full(32, True)),
        "shfl.up": (lanes - 5, lanes >= 5),
        "shfl.bfly": (lanes ^ 16, np.full(32, True)),
    }.get(name.split()[0], (None, None))
    if source is None:
        distance = int(name.split()[1].rstrip(","))
        source, within = lanes + distance, lanes + distance < 32
    source = np.where(within, source, lanes)
    there = source < (32 if "all" in name else 16)
    words = [np.where(there, x[source, 1], 0), np.where(within, 1, 2)]
    if "all" in name:
        return words
    rest = 0 if "elsewhere" in name else 0xEEEEEEEE
    return [np.where(lanes < 16, w, rest) for w in words]


def rule_of(family, name):
    """The rule that a probe is checked against, or None."""
    if family == "carry" and "u64" not in name:
        return carry_rule
    if family == "atomics" and name.endswith("f32"):
        return atomic_f32_rule
    if family == "atomics" and ".v4." in name:
        return packed_rule
    if family == "shuffles":
        return shuffle_rule
    if family == "conversions":
        return tf32_rule if "tf32" in name else fp8_rule
    return None
