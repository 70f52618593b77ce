"""Tensor-core products on arrays: every warp's `mma.sync` at once.

Registers come as arrays (registers, W, 32) of uint32 (uint64 for f64), one column of 32 lanes for
each of W warps.

Accumulation model: products of f16, bf16 and tf32 operands are exact, their sum with C is formed in
float64 and rounded once to the result's type (to nearest even). Integer-valued inputs therefore
give exact results while sums stay below 2^24 (f32) or 2^11 (f16). Hardware adds the products in
fixed-point with truncation, in groups of 4 to 16, so it may differ in the last bits: by less than k
+ 1 units in the last place of the largest term. tf32 operands lose their low 13 bits, as the
hardware ignores them. s8 and u8 sums are exact in 32 bits and wrap, or clamp with `satfinite`. f64
products are summed in float64. NaN results of f16 and f32 are canonical.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emulator.numbers import fragments
from emulator.numbers.formats import narrow

_STORAGE = {
    "f16": np.uint16,
    "bf16": np.uint16,
    "tf32": np.uint32,
    "f32": np.uint32,
    "s32": np.uint32,
    "f64": np.uint64,
    "s8": np.uint8,
    "u8": np.uint8,
}


@dataclass(frozen=True)
class Product:
    """One shape of `mma.sync` or `wmma.mma`: D (m, n) = A (m, k) @ B (k, n) + C."""

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

    def __post_init__(self):
        shapes = fragments.WMMA_SHAPES if self.wmma else fragments.SHAPES
        accumulators = shapes.get(fragments.shape_key(self.m, self.n, self.k, self.a_type), ())
        integer = {"s8", "u8"}
        mixed = self.a_type != self.b_type and not {self.a_type, self.b_type} <= integer
        if mixed or self.c_type not in accumulators or self.d_type not in accumulators:
            raise ValueError(f"no such product: {self.name}")
        any_layout = self.wmma or (self.m, self.k, self.a_type) == (8, 4, "f16")
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
        a = values(to_matrices(self.a, a), self.a_type)
        b = values(to_matrices(self.b, b), self.b_type)
        c = values(to_matrices(self.c, c), self.c_type)
        with np.errstate(all="ignore"):
            return to_registers(self.d, self._rounded(a @ b + c))

    def _rounded(self, sums):
        if self.d_type == "s32":
            if self.satfinite:
                sums = np.clip(sums, -(2.0**31), 2.0**31 - 1)
            return sums.astype(np.int64).astype(np.uint32)
        return narrow(sums, self.d_type).view(_STORAGE[self.d_type])


def values(bits, type):
    """Elements as float64, exactly (int8 and int32 values too: they fit)."""
    if type == "f16":
        return bits.view(np.float16).astype(np.float64)
    if type == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if type == "tf32":
        return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    native = {"f32": np.float32, "f64": np.float64, "s32": np.int32, "s8": np.int8, "u8": np.uint8}
    return bits.view(native[type]).astype(np.float64)


def to_matrices(fragment, registers):
    """Matrices (W, [matrices,] rows, cols) of element bits from registers (registers, W, 32)."""
    gather = _tables(fragment)[0]
    registers = np.ascontiguousarray(registers)
    warps = registers.shape[1]
    count = registers.shape[0] * 32
    per = fragment.elements * 32 // count
    storage = np.dtype(f"u{registers.itemsize // per}")
    lanes = np.ascontiguousarray(registers.transpose(1, 0, 2)).view(storage)
    matrices = lanes.reshape(warps, -1).take(gather, axis=1)
    return matrices.reshape(warps, *_shape(fragment))


def to_registers(fragment, matrices):
    """Registers (registers, W, 32) from matrices (W, [matrices,] rows, cols) of element bits."""
    scatter = _tables(fragment)[1]
    warps = len(matrices)
    lanes = matrices.reshape(warps, -1).take(scatter, axis=1)
    register = np.uint64 if fragment.bits == 64 else np.uint32
    lanes = np.ascontiguousarray(lanes).view(register).reshape(warps, -1, 32)
    return np.ascontiguousarray(lanes.transpose(1, 0, 2))


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
