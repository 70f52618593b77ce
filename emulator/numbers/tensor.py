"""Tensor-core products on arrays: every warp's `mma.sync` at once.

Registers come as arrays (registers, W, 32) of uint32 (uint64 for f64), one column of 32 lanes for
each of W warps.

`tensor_sums` says how they are added: bit for bit as a tensor core of the given architecture does.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emulator.numbers import fragments, tensor_sums

# Operands that may be multiplied with each other though their types differ.
MIXED = ({"s8", "u8"}, {"s4", "u4"}, {"e4m3", "e5m2"})


@dataclass(frozen=True)
class Product:
    """One shape of `mma.sync` or `wmma.mma`: D (m, n) = A (m, k) @ B (k, n) + C.

    arch: compute capability times ten, one of `tensor_sums.ARCHITECTURES`; how sums are rounded
    depends on it. bits: for b1 operands, how two bits make what is counted, `and` or `xor`.
    Raises ValueError for a combination that PTX does not have.
    """

    m: int
    n: int
    k: int
    a_type: str
    b_type: str
    c_type: str
    d_type: str
    a_layout: str = "row"
    b_layout: str = "col"
    wmma: bool = False
    satfinite: bool = False
    arch: int = 90
    bits: str = ""

    def __post_init__(self):
        shapes = fragments.WMMA_SHAPES if self.wmma else fragments.SHAPES
        accumulators = shapes.get(fragments.shape_key(self.m, self.n, self.k, self.a_type), ())
        operands = {self.a_type, self.b_type}
        mixed = len(operands) == 2 and operands not in MIXED
        if mixed or self.c_type not in accumulators or self.d_type not in accumulators:
            raise ValueError(f"no such product: {self.name}")
        if (self.a_type == "b1") != bool(self.bits):
            raise ValueError(
                f"{self.name}: products of single bits, and no others, are .and.popc or .xor.popc"
            )
        if self.bits and self.satfinite:
            raise ValueError(f"{self.name}: counts of bits are not saturated")
        narrow = fragments.BITS[self.a_type] < 8
        any_layout = (self.wmma and not narrow) or (self.m, self.k, self.a_type) == (8, 4, "f16")
        if not any_layout and (self.a_layout, self.b_layout) != ("row", "col"):
            raise ValueError(f"{self.name}: A is row-major and B column-major here")

    @property
    def name(self):
        """As PTX writes it: m16n8k16.row.col.f32.f16.f16.f32."""
        layouts = f"{self.a_layout}.{self.b_layout}"
        types = f"{self.d_type}.{self.a_type}.{self.b_type}.{self.c_type}"
        return f"m{self.m}n{self.n}k{self.k}.{layouts}.{types}"

    @cached_property
    def a(self):
        """Fragment of A."""
        if self.wmma:
            return fragments.wmma_a(self.m, self.n, self.k, self.a_type)
        return fragments.mma_a(self.m, self.k, self.a_type, self.a_layout)

    @cached_property
    def b(self):
        """Fragment of B."""
        if self.wmma:
            return fragments.wmma_b(self.m, self.n, self.k, self.b_type)
        return fragments.mma_b(self.n, self.k, self.b_type, self.b_layout)

    @cached_property
    def c(self):
        """Fragment of C."""
        return self._accumulator(self.c_type)

    @cached_property
    def d(self):
        """Fragment of D."""
        return self._accumulator(self.d_type)

    def _accumulator(self, type):
        if self.wmma:
            return fragments.wmma_c(self.m, self.n, self.k, type)
        return fragments.mma_c(self.m, self.n, type, self.k, self.a_type)

    def __call__(self, a, b, c):
        """D's registers (registers, W, 32) from those of A, B and C."""
        parts = ((self.a, a), (self.b, b), (self.c, c))
        matrices = [to_matrices(fragment, registers) for fragment, registers in parts]
        types = self.a_type, self.b_type, self.c_type, self.d_type
        kind = "wmma" if self.wmma else "mma"
        d = tensor_sums.product(*matrices, *types, kind, self.arch, self.satfinite, self.bits)
        return to_registers(self.d, d)


def to_matrices(fragment, registers):
    """Matrices (W, [matrices,] rows, cols) of element bits from registers (registers, W, 32).

    In memory the warps of one element lie side by side, as `tensor_sums` adds them.
    """
    gather = _tables(fragment)[0]
    count, warps, _ = registers.shape
    if fragment.bits < 8:
        elements = _separated(registers, fragment.bits).reshape(count, warps, -1)
    else:
        per = fragment.elements // count
        elements = registers.view(f"u{registers.itemsize // per}").reshape(count, warps, 32 * per)
    elements = np.ascontiguousarray(elements.transpose(0, 2, 1)).reshape(-1, warps)
    matrices = elements.take(gather, axis=0).reshape(*_shape(fragment), warps)
    return np.moveaxis(matrices, -1, 0)


def _separated(words, bits):
    """The 4-bit or 1-bit elements of each 32-bit word, low bits first, a byte each."""
    places = np.arange(0, 32, bits, dtype=np.uint32)
    return ((words[..., None] >> places) & np.uint32((1 << bits) - 1)).astype(np.uint8)


def to_registers(fragment, matrices):
    """Registers (registers, W, 32) from matrices (W, [matrices,] rows, cols) of element bits."""
    scatter = _tables(fragment)[1]
    warps = len(matrices)
    elements = np.moveaxis(matrices, 0, -1).reshape(-1, warps).take(scatter, axis=0)
    register = np.uint64 if fragment.bits == 64 else np.uint32
    elements = elements.reshape(fragment.registers, -1, warps).transpose(0, 2, 1)
    return np.ascontiguousarray(elements).view(register)


def _shape(fragment):
    return fragment.shape if fragment.matrices == 1 else (fragment.matrices, *fragment.shape)


def _tables(fragment):
    """Where each matrix element lies among a warp's elements, and back: (gather, scatter)."""
    known = _TABLES.get(id(fragment))
    if known is None:
        per = max(1, 32 // fragment.bits)
        # a warp's elements in memory: register, lane, element within the register
        scatter = fragment.flat().reshape(-1, per, 32).transpose(0, 2, 1).reshape(-1)
        gather = np.zeros(fragment.matrices * fragment.shape[0] * fragment.shape[1], np.intp)
        gather[scatter[::-1]] = np.arange(len(scatter))[::-1]  # the first of repeated elements
        known = _TABLES[id(fragment)] = (gather, scatter, fragment)
    return known[:2]


_TABLES: dict = {}


def transpose_8x8(registers):
    """8x8 matrices of 16-bit elements transposed across lanes, (..., 32) uint32: `movmatrix`."""
    registers = np.ascontiguousarray(registers, np.uint32)
    halves = registers.view(np.uint16).reshape(*registers.shape[:-1], 8, 8)
    turned = np.ascontiguousarray(halves.swapaxes(-1, -2))
    return turned.reshape(*registers.shape[:-1], 64).view(np.uint32)
