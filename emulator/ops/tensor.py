"""Warp-level products of matrices in registers: mma and mma.sp (PTX ISA 9.7.14.5.14, 9.7.14.6.3)."""

from __future__ import annotations

import re

import numpy as np

from emulator.errors import ExecutionError
from emulator.numbers.sparse import SparseProduct
from emulator.numbers.tensor import Product
from emulator.numbers.tensor_sums import ARCHITECTURES
from emulator.ops.matrices import all_lanes, together
from emulator.text.program import Imm, items

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
TYPES = {
    "f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "s32", "e4m3", "e5m2", "s4", "u4", "b1",
}  # fmt: skip
_MATRICES_AT_ONCE = 128  # of A, B and C: so many stay in the cache


def shape_of(ins, bind) -> tuple[int, int, int]:
    found = next((_SHAPE.match(part) for part in ins.parts if _SHAPE.match(part)), None)
    if found is None:
        raise bind.unsupported("its shape")
    return tuple(int(x) for x in found.groups())


class Products:
    """The step D = A @ B + C on the registers of four vector operands, of one instruction or of several.

    Products that stand in a row and do not need each other's results are done as one, over more
    matrices: NumPy then works on longer arrays.
    """

    def __init__(self, ins, bind, product: Product):
        parts = (product.d, product.a, product.b, product.c)
        for operand, fragment in zip(ins.operands, parts, strict=True):
            if len(items(operand)) != fragment.registers:
                raise bind.error(f"{fragment.registers} registers expected in {operand}")
        self.word = np.uint64 if product.a_type == "f64" else np.uint32
        put = bind.put_lanes(items(ins.operands[0]))
        gets = [[bind.array(r, self.word) for r in items(part)] for part in ins.operands[1:]]
        self.ins, self.product, self.parts = ins, product, [(put, gets)]
        self.reads, self.writes = bind.uses, bind.defs

    def join(self, other) -> bool:
        """Takes the next step in, where it is such a product and reads nothing that is written here."""
        fits = type(other) is Products and other.product == self.product
        if not fits or self.writes & other.reads:
            return False
        self.parts += other.parts
        self.reads, self.writes = self.reads | other.reads, self.writes | other.writes
        return True

    def __call__(self, m, mask):
        all_lanes(m, mask, self.ins)
        at_once = max(1, _MATRICES_AT_ONCE // m.W)
        for first in range(0, len(self.parts), at_once):
            parts = self.parts[first : first + at_once]
            a, b, c = (self._registers(m, [gets[i] for _, gets in parts]) for i in range(3))
            d = self.product(a, b, c).reshape(-1, len(parts), m.W, 32)
            for at, (put, _) in enumerate(parts):
                put(m, d[:, at], mask)

    def _registers(self, m, gets) -> np.ndarray:
        """(registers, instructions * W, 32) of one operand of these instructions."""
        found = np.empty((len(gets[0]), len(gets), m.B, m.T), self.word)
        for at, registers in enumerate(gets):
            for number, get in enumerate(registers):
                found[number, at] = get(m)
        return found.reshape(len(gets[0]), -1, 32)


def architecture(bind) -> int:
    """The newest architecture of `tensor_sums` that is not newer than the module's `.target`."""
    target = bind.names.program.target
    number = int(re.search(r"\d+", target).group())
    older = [arch for arch in ARCHITECTURES if arch <= number]
    if not older:
        raise bind.unsupported(f".target {target} has no tensor cores; sm_70 is the first that has")
    return older[-1]


def named_product(ins, bind, types: list[str], kind=Product, **how):
    """The product, of this kind, that an instruction's modifiers name; types: of D, A, B and C."""
    layouts = [part for part in ins.parts if part in ("row", "col")]
    try:
        d, a, b, c = types
        return kind(
            *shape_of(ins, bind), a, b, c, d, *layouts,
            satfinite="satfinite" in ins, arch=architecture(bind), **how,
        )  # fmt: skip
    except ValueError as problem:
        raise bind.unsupported(str(problem)) from problem


def types_in(ins) -> list[str]:
    return [part for part in ins.parts if part in TYPES]


def mma_product(ins, bind) -> Product:
    """PTX ISA 9.7.14.5.14: mma.sync.aligned.shape.alayout.blayout{.satfinite}.dtype.atype.btype.ctype."""
    return named_product(ins, bind, types_in(ins), bits=of_bits(ins))


def of_bits(ins) -> str:
    return next((part for part in ins.parts if part in ("and", "or", "xor")), "")


def mma(ins, bind):
    return Products(ins, bind, mma_product(ins, bind))


def is_sparse(ins) -> bool:
    return ins.parts[1].startswith("sp")


def sparse_product(ins, bind) -> SparseProduct:
    """PTX ISA 9.7.14.6.3: mma.sp{::ordered_metadata}.sync.aligned..., with metadata e and a selector f."""
    if not isinstance(ins.operands[5], Imm):
        raise bind.error("the sparsity selector is a constant")
    selector, ordered = bind.constant(ins.operands[5], 4), ins.parts[1] != "sp"
    return named_product(
        ins, bind, types_in(ins), SparseProduct, selector=selector, ordered=ordered
    )


def _sparse_mma(ins, bind):
    product = sparse_product(ins, bind)
    parts = (product.d, product.a, product.b, product.c)
    for operand, fragment in zip(ins.operands, parts, strict=False):
        if len(items(operand)) != fragment.registers:
            raise bind.error(f"{fragment.registers} registers expected in {operand}")
    put = bind.put_lanes(items(ins.operands[0]))
    a, b, c, e = (bind.lanes(items(operand), np.uint32) for operand in ins.operands[1:5])

    def step(m, mask):
        all_lanes(m, mask, ins)
        metadata = e(m)
        wrong = product.invalid(product.chunks(metadata[0]))
        wrong &= m.lanes_of(mask).reshape(m.W, 32)[:, :1, None]
        if wrong.any():
            warp, row, chunk = np.argwhere(wrong)[0].tolist()
            bits = int(product.chunks(metadata[0])[warp, row, chunk])
            block, thread = divmod(32 * warp, m.T)
            form = ".".join(ins.parts[:2])
            text = f"the metadata of row {row}, chunk {chunk} are 0b{bits:04b}, to which {form} gives no meaning"
            m.fail(ExecutionError, text, ins, block, thread)
        put(m, product(a(m), b(m), c(m), metadata), mask)

    return step


SHAPES = (
    "m8n8k4|m8n8k16|m8n8k32|m8n8k128|m16n8k4|m16n8k8|m16n8k16|m16n8k32|m16n8k64|m16n8k128|m16n8k256|"
    "m16n16k16|m32n8k16|m8n32k16|m16n16k8"
)
_SPARSE_SHAPES = "m16n8k8|m16n8k16|m16n8k32|m16n8k64|m16n8k128"
OF_TYPES = "|".join(sorted(TYPES))

OPCODES = {
    "mma": {
        f"sync! aligned! {SHAPES}! row|col* satfinite {OF_TYPES}*!": together(
            mma, 4, spread="product"
        ),
        f"sync! aligned! {SHAPES}! row|col* b1|s32*! xor|and! popc!": together(
            mma, 4, spread="product"
        ),
        f"sp|sp::ordered_metadata! sync! aligned! {_SPARSE_SHAPES}! row|col* satfinite {OF_TYPES}*!": together(
            _sparse_mma, 6, spread="product"
        ),
    },
}
