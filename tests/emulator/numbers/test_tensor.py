"""Tensor-core products against plain matrix products, element by element."""

import numpy as np
import pytest

from emulator.numbers import fragments, tensor_sums
from emulator.numbers.tensor import Product, to_matrices, to_registers, transpose_8x8

STORAGE = {"f16": np.float16, "f32": np.float32, "tf32": np.float32, "f64": np.float64}
STORAGE |= {"s8": np.int8, "u8": np.uint8, "s32": np.int32}


MIXED = {
    "s8": [("s8", "s8"), ("u8", "s8"), ("u8", "u8")],
    "e4m3": [("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2")],
}


def encode(x, type):
    """Numbers that the type holds exactly, as the unsigned bits of one element."""
    if type == "bf16":
        return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if type in tensor_sums._FP8_VALUES:
        table = tensor_sums._FP8_VALUES[type]
        return np.argmax(table == np.asarray(x)[..., None], axis=-1).astype(np.uint8)
    x = np.asarray(x).astype(STORAGE[type])
    return x.view(f"u{x.itemsize}")


def decode(bits, type):
    if type == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.view(STORAGE[type]).astype(np.float64)


def scatter(fragment, matrices, register=np.uint32):
    """Registers by the slow road: one element at a time. matrices: (W, copies, rows, cols) bits."""
    per = np.dtype(register).itemsize * 8 // fragment.bits
    registers = np.zeros((fragment.elements // per, len(matrices), 32), register)
    for i in range(fragment.elements):
        for lane in range(32):
            bits = matrices[
                :, fragment.copies[i, lane], fragment.rows[i, lane], fragment.cols[i, lane]
            ]
            registers[i // per, :, lane] |= bits.astype(register) << register(
                fragment.bits * (i % per)
            )
    return registers


def gather(fragment, registers):
    per = registers.itemsize * 8 // fragment.bits
    out = np.zeros((registers.shape[1], fragment.matrices, *fragment.shape), np.uint64)
    for i in range(fragment.elements):
        for lane in range(32):
            bits = registers[i // per, :, lane].astype(np.uint64) >> np.uint64(
                fragment.bits * (i % per)
            )
            bits &= np.uint64((1 << fragment.bits) - 1)
            out[:, fragment.copies[i, lane], fragment.rows[i, lane], fragment.cols[i, lane]] = bits
    return out.astype(f"u{fragment.bits // 8}")


def every_product():
    """All but those of elements of less than a byte (ops/test_narrow_and_sparse_products.py)."""
    for (m, n, k, operand), accumulators in fragments.SHAPES.items():
        if fragments.BITS[operand] < 8:
            continue
        layouts = [("row", "col")]
        if (m, k, operand) == (8, 4, "f16"):
            layouts += [("row", "row"), ("col", "row"), ("col", "col")]
        kinds = MIXED.get(operand, [(operand,) * 2])
        for a_layout, b_layout in layouts:
            for a, b in kinds:
                for accumulator in accumulators:
                    yield Product(m, n, k, a, b, accumulator, accumulator, a_layout, b_layout)
    for (m, n, k, operand), accumulators in fragments.WMMA_SHAPES.items():
        if fragments.BITS[operand] < 8:
            continue
        for accumulator in accumulators:
            yield Product(m, n, k, operand, operand, accumulator, accumulator, wmma=True)


@pytest.mark.parametrize("product", list(every_product()), ids=lambda p: p.name + ".wmma" * p.wmma)
def test_products_of_integers_are_exact(product):
    rng = np.random.default_rng(5)
    copies = product.a.matrices
    low_a, low_b = (0 if t == "u8" else -9 for t in (product.a_type, product.b_type))
    a = rng.integers(low_a, 10, (3, copies, product.m, product.k))
    b = rng.integers(low_b, 10, (3, copies, product.k, product.n))
    c = rng.integers(-200, 200, (3, copies, product.m, product.n))
    if product.c_type == "f16":  # sums stay below 2048
        a //= 3
    if product.a_type in ("e4m3", "e5m2"):
        a, b = np.clip(a, -4, 4), np.clip(b, -4, 4)
    word = np.uint64 if product.a_type == "f64" else np.uint32
    registers = [
        scatter(f, encode(x, t), word)
        for f, x, t in (
            (product.a, a, product.a_type),
            (product.b, b, product.b_type),
            (product.c, c, product.c_type),
        )
    ]
    d = product(*registers)
    assert d.dtype == word and d.shape == (product.d.registers, 3, 32)
    result = decode(gather(product.d, d), product.d_type)
    assert (result == a @ b + c).all()


def test_mixed_accumulator_and_result():
    product = Product(16, 8, 16, "f16", "f16", "f16", "f32")
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(s).astype(np.float16) for s in ((16, 16), (16, 8), (16, 8)))
    registers = [
        scatter(f, encode(x, "f16")[None, None])
        for f, x in ((product.a, a), (product.b, b), (product.c, c))
    ]
    d = decode(gather(product.d, product(*registers)), "f32")[0, 0]
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    assert (np.abs(d - exact) < 2.0**-19).all()  # cut off where rounding would be nearer
    assert (d != exact.astype(np.float32)).any() and d.dtype == np.float64
    bits = [x.view(np.uint16)[None] for x in (a, b, c)]
    sums = tensor_sums.product(*bits, "f16", "f16", "f16", "f32")
    assert (d == sums[0].view(np.float32)).all()


def test_tf32_ignores_the_low_bits():
    product = Product(16, 8, 8, "tf32", "tf32", "f32", "f32")
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 4, 2, 32)).astype(np.float32).view(np.uint32)
    c = np.zeros((4, 2, 32), np.uint32)
    masked = np.uint32(0xFFFFE000)
    assert (product(a, b[:2], c) == product(a & masked, b[:2] & masked, c)).all()
    assert (product(a, b[:2], c) != product(a ^ np.uint32(0x4000), b[:2], c)).any()


def test_integer_sums_wrap_or_clamp():
    for satfinite, expected in ((False, -(2**31)), (True, 2**31 - 1)):
        product = Product(8, 8, 16, "s8", "s8", "s32", "s32", satfinite=satfinite)
        one_each = np.full((1, 1, 32), 0x01, np.uint32)  # four products of one a row
        c = np.full((2, 1, 32), 2**31 - 4, np.uint32)
        assert (product(one_each, one_each, c).view(np.int32) == expected).all()


def test_nan_and_overflow():
    product = Product(16, 8, 8, "f16", "f16", "f16", "f16")
    a = np.full((2, 1, 32), 0x7BFF7BFF, np.uint32)
    b = np.full((1, 1, 32), 0x40004000, np.uint32)
    assert (product(a, b, np.zeros((2, 1, 32), np.uint32)) == 0x7C007C00).all()
    b[...] = 0x7E017E01
    assert (product(a, b, np.zeros((2, 1, 32), np.uint32)) == 0x7FFF7FFF).all()


def test_registers_and_matrices_are_inverse():
    for fragment in (fragments.mma_a(16, 16, "f16"), fragments.wmma_b(16, 16, 16, "f16")):
        x = np.random.default_rng(2).integers(0, 1 << 16, (5, *fragment.shape)).astype(np.uint16)
        assert (to_matrices(fragment, to_registers(fragment, x)) == x).all()


def test_transpose_moves_elements_between_lanes():
    x = np.arange(64, dtype=np.uint16).reshape(8, 8)
    matrix = fragments.mma_c(8, 8, "f16")
    registers = to_registers(matrix, x[None])
    turned = transpose_8x8(registers)
    assert (to_matrices(matrix, turned)[0] == x.T).all()


@pytest.mark.parametrize(
    "arguments",
    [
        (16, 8, 16, "bf16", "bf16", "f16", "f16"),
        (16, 8, 12, "f16", "f16", "f32", "f32"),
        (16, 8, 16, "f16", "bf16", "f32", "f32"),
        (16, 8, 16, "f16", "f16", "f32", "f32", "col", "col"),
    ],
)
def test_products_that_do_not_exist_are_refused(arguments):
    with pytest.raises(ValueError, match=r"no such product|row-major"):
        Product(*arguments)
