"""Products of a sparse A, `mma.sp`: half of each row's elements are stored, and metadata says which.

PTX ISA 9.7.14.6. A row of A is divided into chunks of four elements, two of which are stored (tf32: of two,
one; 4-bit integers: of four pairs, two). Two 2-bit indices for each chunk say which they are, the
index of the first stored element in the low bits. So an element of D is the sum of k / 2 products: a
stored element of A times that row of B which its index names. What is not stored contributes nothing,
not even an infinity or NaN of B.

How the k / 2 products are added is not documented. Here they are added as `mma` adds a dense product of depth
k / 2 on the same architecture (`tensor_sums`), in the order in which they are stored.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emulator.numbers import fragments, tensor_sums
from emulator.numbers.tensor import MIXED, Product, to_matrices, to_registers

# Pairs of indices that name two different places, the higher in the high bits: the only ones that
# `.sp::ordered_metadata` gives a meaning, and the only ones of tf32.
ORDERED = (0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110)
OF_PAIRS = (0b0100, 0b1110)
_EQUAL = (0b0000, 0b0101, 0b1010, 0b1111)
_HALVES = {"f16", "bf16", "tf32"}  # whose metadata come in halves of a register


@dataclass(frozen=True)
class SparseProduct(Product):
    """One shape of `mma.sp.sync`: D (m, n) = A (m, k), half of it stored, @ B (k, n) + C.

    selector: which lanes of four give the metadata. ordered: the form that allows ascending indices alone.
    """

    selector: int = 0
    ordered: bool = False

    def __post_init__(self):
        key = fragments.shape_key(self.m, self.n, self.k, self.a_type)
        accumulators = fragments.SPARSE_SHAPES.get(key, ())
        operands = {self.a_type, self.b_type}
        if len(operands) == 2 and operands not in MIXED:
            accumulators = ()
        if self.c_type != self.d_type or self.d_type not in accumulators:
            raise ValueError(f"no such sparse product: {self.name}")
        if (self.a_layout, self.b_layout) != ("row", "col"):
            raise ValueError(f"{self.name}: A is row-major and B column-major here")
        if self.arch < 80:
            raise ValueError("sparse products need sm_80 or later")
        if not 0 <= self.selector < 4 // self.givers:
            raise ValueError(
                f"{self.name}: the sparsity selector is below {4 // self.givers}, not {self.selector}"
            )

    @property
    def givers(self):
        """How many lanes of each four give metadata: one for each 32 bits of two rows, g and g + 8."""
        return 2 * self._row_bits // 32

    @property
    def _row_bits(self):
        """Bits of metadata for one row of A."""
        return self.k // 4 * {"tf32": 8, "s4": 2, "u4": 2}.get(self.a_type, 4)

    @cached_property
    def a(self):
        """Fragment of what is stored of A, (m, k / 2)."""
        return fragments.mma_a(self.m, self.k // 2, self.a_type)

    def chunks(self, metadata):
        """(W, 16, chunks): the four bits of each chunk of a row of A, from registers (W, 32) uint32."""
        lanes = metadata.reshape(-1, 8, 4)
        first = self.selector * self.givers
        words = lanes[:, :, first : first + self.givers]  # (W, 8, givers)
        if self.a_type in _HALVES:  # a lane: 16 bits of row g, 16 of row g + 8
            parts = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], axis=1)
            bits = 16
        else:  # lanes in turn: 32 bits of row g, 32 of row g + 8
            parts = np.stack([words[:, :, 0::2], words[:, :, 1::2]], axis=1)
            bits = 32
        places = np.arange(0, bits, 4, dtype=np.uint32)
        found = (parts[..., None] >> places) & np.uint32(15)  # (W, 2, 8, words, chunks of a word)
        return found.reshape(len(lanes), 16, -1)

    def invalid(self, chunks):
        """Where the four bits of a chunk have no meaning; bool, as `chunks`."""
        if self.a_type == "tf32":
            return ~np.isin(chunks, OF_PAIRS)
        return ~np.isin(chunks, ORDERED) if self.ordered else np.isin(chunks, _EQUAL)

    def rows_of_b(self, chunks):
        """(W, 16, k / 2): which row of B each stored element of A is multiplied with."""
        if self.a_type == "tf32":
            return np.arange(0, self.k, 2) + (chunks == OF_PAIRS[1])
        indices = np.stack([chunks & 3, chunks >> 2], axis=-1).astype(np.intp)  # (W, 16, chunks, 2)
        wide = 2 if self.a_type in ("s4", "u4") else 1
        first = 4 * wide * np.arange(chunks.shape[-1])[:, None] + wide * indices
        rows = first[..., None] + np.arange(wide)
        return rows.reshape(*chunks.shape[:2], -1)

    def matrices(self, a, b, c, metadata):
        """A (W, 16, 1, k / 2), for each of its rows B (W, 16, k / 2, n), C (W, 16, 1, n): bits of elements."""
        a, b, c = (to_matrices(f, x) for f, x in ((self.a, a), (self.b, b), (self.c, c)))
        rows = self.rows_of_b(self.chunks(metadata))
        chosen = b[np.arange(len(b))[:, None, None], rows]
        return a[:, :, None, :], chosen, c[:, :, None, :]

    def __call__(self, a, b, c, metadata):
        """D's registers (registers, W, 32) from those of A, B, C and the metadata (1, W, 32)."""
        matrices = self.matrices(a, b, c, metadata[0])
        types = self.a_type, self.b_type, self.c_type, self.d_type
        d = tensor_sums.product(*matrices, *types, "mma", self.arch, self.satfinite)
        return to_registers(self.d, d[:, :, 0])
