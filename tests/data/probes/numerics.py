"""Tensor-core sums on a GPU against `emulator.numbers.tensor_sums`, bit for bit.

    python tests/data/probes/numerics.py compare PRODUCTS OUT.json     # millions, every instruction
    python tests/data/probes/numerics.py record OUT.npz                # the hard cases that tests replay

Both need an NVIDIA GPU of compute capability 9.0, CuPy and the CUDA compiler's `ptxas`. `cases`
makes the operands from raw generator bits with integer and exact float64 arithmetic only, so that
a test makes the very same ones anywhere.
"""

import json
import subprocess
import sys
import tempfile
import zlib
from functools import cache
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
for folder in (HERE, HERE.parents[2]):
    sys.path.insert(0, str(folder))

from products import BITS, entries, module  # noqa: E402

from emulator.numbers import fragments, tensor_sums  # noqa: E402
from emulator.numbers.tensor import to_matrices, to_registers  # noqa: E402

MANTISSA = {"f16": 10, "bf16": 7, "tf32": 10, "f32": 23, "e4m3": 3, "e5m2": 2, "f64": 52}
EXPONENT = {"f16": 5, "bf16": 8, "tf32": 8, "f32": 8, "e4m3": 4, "e5m2": 5, "f64": 11}
CLASSES = 12


# --- Operands ---------------------------------------------------------------------------------------


class Bits:
    """A stream of raw 64-bit words that is the same on every machine and NumPy."""

    def __init__(self, seed):
        self.source = np.random.PCG64(seed)

    def words(self, *shape):
        return self.source.random_raw(int(np.prod(shape))).reshape(shape)

    def below(self, limit, *shape):
        return ((self.words(*shape) >> np.uint64(33)) % np.uint64(limit)).astype(np.int64)


def float_bits(type, sign, field, fraction):
    """Bits of elements from their fields; tf32 has its fraction at the top of 23 bits."""
    low = 13 if type == "tf32" else 0
    bits = (fraction << low).astype(np.uint64)
    bits |= field.astype(np.uint64) << np.uint64(MANTISSA[type] + low)
    bits |= sign.astype(np.uint64) << np.uint64(MANTISSA[type] + low + EXPONENT[type])
    return bits.astype(f"u{BITS[type] // 8}")


def operand(raw, type, shape, kind):
    """Elements of one class: see `cases`."""
    width, mantissa = EXPONENT[type], MANTISSA[type]
    top, bias = (1 << width) - 1, (1 << (width - 1)) - 1
    sign, fraction = (
        raw.below(2, *shape),
        (raw.words(*shape) >> np.uint64(64 - mantissa)).astype(np.int64),
    )
    wild = raw.below(top, *shape)
    near = bias - 2 + raw.below(5, *shape)
    small = np.maximum(raw.below(5, *shape) - 2, 0)
    if kind == "wild":
        field = wild
    elif kind == "small":
        field = small
    elif kind == "large":
        field = top - 1 - raw.below(max(2, top // 4), *shape)
    elif kind == "round":
        fraction = np.where(
            raw.below(2, *shape) == 0, 0, fraction >> (mantissa - 1) << (mantissa - 1)
        )
        fraction = np.where(raw.below(8, *shape) == 0, (1 << mantissa) - 1, fraction)
        field = np.where(raw.below(4, *shape) == 0, 0, near)
    elif kind == "zeros":
        fraction = np.where(raw.below(2, *shape) == 0, 0, fraction)
        field = np.where(fraction == 0, 0, wild)
        field = np.where(raw.below(3, *shape) == 0, near, field)
    elif kind == "ladder":
        fraction = np.where(raw.below(3, *shape) == 0, fraction & 1, 0)
        field = bias - raw.below(min(14, bias), *shape)
    elif kind == "special":
        field = np.where(raw.below(48, *shape) == 0, top, near)
        fraction = np.where(raw.below(3, *shape) > 0, 0, fraction)
    else:
        field = near
    return float_bits(type, sign, field, fraction)


# class -> kinds of A and B, and how C lies to the products
_RECIPES = [
    ("wild", "wild", "wild"),
    ("near", "near", "near"),
    ("wild", "near", "above"),
    ("small", "large", "near"),
    ("cancel", "near", "below"),
    ("round", "round", "zeros"),
    ("special", "special", "special"),
    ("near", "near", "opposite"),
    ("near", "round", "above"),
    ("wild", "round", "below"),
    ("large", "large", "large"),
    ("ladder", "ladder", "ladder"),
]


def values(bits, type):
    """Elements as float64, exactly."""
    if type == "f64":
        return bits.view(np.float64)
    return tensor_sums._values(bits, type).astype(np.float64)


def accumulator(raw, type, shape, kind, products):
    """C: beside the largest product (`near`), far above or below it, or minus their sum."""
    if kind in ("wild", "special", "zeros", "large", "ladder"):
        return operand(raw, type, shape, kind)
    width, mantissa = EXPONENT[type], MANTISSA[type]
    top, bias = (1 << width) - 1, (1 << (width - 1)) - 1
    largest = np.zeros(shape)
    total = np.zeros(shape)
    for product in products:
        largest = np.maximum(largest, np.where(np.isfinite(product), np.abs(product), 0))
        total = total + np.where(np.isfinite(product), product, 0)
    exponent = np.frexp(largest)[1].astype(np.int64)
    sign = raw.below(2, *shape)
    fraction = (raw.words(*shape) >> np.uint64(64 - mantissa)).astype(np.int64)
    if kind == "opposite":
        size, exponent = np.frexp(np.abs(total))
        exponent = exponent.astype(np.int64)
        fraction = (size * 2.0 ** (mantissa + 1)).astype(np.int64) & ((1 << mantissa) - 1)
        fraction ^= np.where(raw.below(2, *shape) == 0, raw.below(4, *shape), 0)
        sign = (total > 0).astype(np.int64)
        shift = 0
    elif kind == "above":
        shift = raw.below(30, *shape)
    elif kind == "below":
        shift = -raw.below(40, *shape)
    else:
        shift = raw.below(7, *shape) - 3
    field = np.clip(exponent - 1 + bias + shift, 0, top - 1)
    return float_bits(type, sign, field, fraction)


def cases(entry, tiles, seed):
    """Bits of A (tiles, m, k), B (tiles, k, n) and C (tiles, m, n): tile t is of class t % 12.

    The classes: all bits; ordinary numbers; mixed exponents with C up to 2**30 larger; subnormals
    against large numbers; cancelling pairs; powers of two, halves and zeros; infinities and NaN;
    C cancelling the sum; C larger; C up to 2**40 smaller; overflow; ladders of powers of two.
    """
    raw = Bits(seed)
    m, n, k = entry.m, entry.n, entry.k
    if entry.d == "s32":
        a, b = (raw.words(tiles, *s).astype(np.uint8) for s in ((m, k), (k, n)))
        c = raw.words(tiles, m, n).astype(np.uint32)
        edge = np.uint32(0x7FFFFFFF) + raw.below(2, tiles, m, n).astype(np.uint32)
        close = edge + (raw.below(400000, tiles, m, n) - 200000).astype(np.uint32)
        return a, b, np.where(np.arange(tiles)[:, None, None] % 2 == 0, c, close)
    a = np.empty((tiles, m, k), f"u{BITS[entry.a] // 8}")
    b = np.empty((tiles, k, n), f"u{BITS[entry.b] // 8}")
    c = np.empty((tiles, m, n), f"u{BITS[entry.c] // 8}")
    with np.errstate(all="ignore"):
        for i, (kind_a, kind_b, kind_c) in enumerate(_RECIPES):
            count = len(range(i, tiles, CLASSES))
            if not count:
                continue
            left = operand(raw, entry.a, (count, m, k), kind_a)
            right = operand(raw, entry.b, (count, k, n), kind_b)
            if kind_a == "cancel":
                left[..., 1::2] = left[..., 0::2]
                flipped = right[:, 0::2] ^ right.dtype.type(1 << (BITS[entry.b] - 1))
                nudge = raw.below(2, *flipped.shape) << (13 if entry.b == "tf32" else 0)
                right[:, 1::2] = flipped ^ nudge.astype(right.dtype)
            if kind_a == "round":  # rows of nothing but zeros of either sign
                left[:, ::2] &= left.dtype.type(1 << (BITS[entry.a] - 1))
            if entry.a == "tf32":
                left |= (raw.words(*left.shape) & np.uint64(0x1FFF)).astype(np.uint32)
            p, q = values(left, entry.a), values(right, entry.b)
            products = [p[:, :, t, None] * q[:, None, t, :] for t in range(k)]
            a[i::CLASSES], b[i::CLASSES] = left, right
            c[i::CLASSES] = accumulator(raw, entry.c, (count, m, n), kind_c, products)
    return a, b, c


def model(entry, a, b, c):
    """D's bits as `tensor_sums` has them."""
    kind = entry.kind.split("_")[0]
    types = (entry.a, entry.b, entry.c, entry.d)
    return tensor_sums.product(a, b, c, *types, kind, 90, entry.satfinite)


# --- The GPU ------------------------------------------------------------------------------------------


@cache
def fragment(entry, role):
    """Which register of which lane holds what, for one warp."""
    m, n, k = entry.m, entry.n, entry.k
    type = {"e4m3": "s8", "e5m2": "s8"}.get(getattr(entry, role), getattr(entry, role))
    if entry.kind.startswith("wgmma"):
        parts = [(fragments.mma_c(16, 8, type), 0, j) for j in range(0, n, 8)]
        return (
            fragments.mma_a(16, k, type)
            if role == "a"
            else fragments._composed((16, n), type, parts)
        )
    if entry.kind == "wmma" and entry.a != "f64":
        makers = {"a": fragments.wmma_a, "b": fragments.wmma_b}
        return makers.get(role, fragments.wmma_c)(m, n, k, type)
    if role == "a":
        return fragments.mma_a(m, k, type)
    if role == "b":
        return fragments.mma_b(n, k, type)
    operand = "f16" if entry.a == "f16" else ""
    return fragments.mma_c(m, n, type, k, operand)


def image(rows):
    """Core matrices without swizzle, as `products.py` wants them: (tiles, rows, k) elements."""
    tiles, count = rows.shape[:2]
    data = np.ascontiguousarray(rows).view(np.uint8).reshape(tiles, count // 8, 8, 2, 16)
    return np.ascontiguousarray(data.transpose(0, 1, 3, 2, 4))


def packed(entry, role, matrices):
    """An operand as the entry point reads it."""
    if entry.kind.startswith("wgmma"):
        if role == "b":
            return image(matrices.transpose(0, 2, 1))
        if role == "a" and "ss" in entry.kind:
            return image(matrices)
        matrices = matrices.reshape(-1, 16, matrices.shape[-1])  # a warp has 16 of the 64 rows
    shape = fragment(entry, role)
    if shape.matrices > 1:
        matrices = matrices.reshape(-1, shape.matrices, *matrices.shape[1:])
    return to_registers(shape, matrices)


@cache
def loaded():
    """Every entry point, assembled for this GPU."""
    import cupy

    with tempfile.TemporaryDirectory() as folder:
        text, machine_code = Path(folder, "products.ptx"), Path(folder, "products.cubin")
        text.write_text(module(entries()), encoding="utf-8")
        subprocess.run(["ptxas", "-arch=sm_90a", text, "-o", machine_code], check=True)
        loaded = cupy.RawModule(path=str(machine_code))
        assert loaded.module  # CuPy reads the file only when it is asked for this
        return loaded


def on_gpu(entry, a, b, c):
    """D's bits as the GPU has them."""
    import cupy

    tiles = len(c)
    warps = tiles // fragment(entry, "d").matrices
    threads = 128 if entry.kind.startswith("wgmma") else 32
    inputs = [
        cupy.asarray(packed(entry, role, x)) for role, x in zip("abc", (a, b, c), strict=True)
    ]
    word = np.uint64 if entry.d == "f64" else np.uint32
    total = (entry.registers("d"), warps * threads // 32, 32)
    d = cupy.full(total, 0xAAAAAAAA, word)
    loaded().get_function(entry.name)((warps,), (threads,), (*inputs, d))
    matrices = to_matrices(fragment(entry, "d"), cupy.asnumpy(d))
    return matrices.reshape(tiles, entry.m, entry.n)


def differing(entry, d, expected):
    """Where bits differ; NaN of f64 may carry any payload."""
    wrong = d != expected
    if entry.d == "f64":
        wrong &= ~(np.isnan(d.view(np.float64)) & np.isnan(expected.view(np.float64)))
    return wrong


def compared(task):
    """One batch on both: (name, products, mismatches per class, some mismatching operands)."""
    index, tiles, seed = task
    entry = list(entries())[index]
    a, b, c = cases(entry, tiles, seed)
    d, expected = on_gpu(entry, a, b, c), model(entry, a, b, c)
    wrong = differing(entry, d, expected)
    per_class = [int(wrong[i::CLASSES].sum()) for i in range(CLASSES)]
    samples = []
    where = np.argwhere(wrong)
    for t, i, j in np.concatenate([where[where[:, 0] % CLASSES == i][:3] for i in range(CLASSES)]):
        x = (a[t, i], b[t, :, j], c[t, i, j], d[t, i, j], expected[t, i, j])
        samples.append([int(t % CLASSES), *(np.atleast_1d(v).tolist() for v in x)])
    return entry.name, int(d.size), per_class, samples


def compare(count, out, workers=15):
    """`count` products or more of every instruction, in several processes."""
    from multiprocessing import get_context

    tasks = []
    for index, entry in enumerate(entries()):
        per = max(48, 200_000 // (entry.m * entry.n) // 48 * 48)
        batches = -(-count // (per * entry.m * entry.n))
        tasks += [(index, per, 1000 * index + batch) for batch in range(batches)]
    table = {}
    with get_context("spawn").Pool(workers) as pool:
        for name, size, per_class, samples in pool.imap_unordered(compared, tasks):
            row = table.setdefault(
                name, {"products": 0, "mismatches": [0] * CLASSES, "samples": []}
            )
            row["products"] += size
            row["mismatches"] = [x + y for x, y in zip(row["mismatches"], per_class, strict=True)]
            row["samples"] = (row["samples"] + samples)[:60]
    for name in sorted(table):
        row = table[name]
        print(f"{name:48} {row['products']:>9} {sum(row['mismatches']):>8}", row["mismatches"])
    Path(out).write_text(json.dumps(table), encoding="utf-8")


# What tests replay: 128 results of each tile. Instructions that only bring their operands in another
# way, or only are wider, are compared but not recorded.
PICKED = 128


def recorded():
    """The entries whose results are kept."""
    return [e for e in entries() if e.kind != "wgmma_rs" and (e.kind != "wgmma_ss" or e.n == 8)]


def tiles_of(entry):
    """Tiles recorded of an instruction: each class once, or twice where tiles are small."""
    return 12 * max(1, PICKED // (entry.m * entry.n))


def picked(d):
    """The results kept of D (tiles, m, n): spread over rows and columns."""
    flat = d.reshape(len(d), -1)
    return flat[:, np.arange(min(PICKED, flat.shape[1])) * 37 % flat.shape[1]]


def checksum(operands):
    """Tells whether a test makes the operands that the GPU had."""
    return np.uint32(zlib.crc32(b"".join(np.ascontiguousarray(x).tobytes() for x in operands)))


def record(out):
    """Bits of D that the GPU returns for the cases of seed 7, and a checksum of their operands."""
    kept = {}
    for entry in recorded():
        operands = cases(entry, tiles_of(entry), 7)
        kept[entry.name] = picked(on_gpu(entry, *operands))
        kept[entry.name + ".crc"] = checksum(operands)
    np.savez_compressed(out, **kept)


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        compare(int(sys.argv[2]), sys.argv[3])
    else:
        record(sys.argv[2])
