"""The launches that several exercises of this part share, and those of Blackwell."""

from dataclasses import replace

import numpy as np

from book.exercises.exercise import Case
from book.exercises.launches import product
from emulator import TensorMap

ARCH = "90a"
SPAN, STEP = 128, 64  # bytes of the swizzle, and the halves in them


def mapped(array, box) -> TensorMap:
    return TensorMap(array, box, swizzle=SPAN)


def mapped_product(rng, size, tile, threads: int, rows: int, numbers: int, scalars=None) -> Case:
    """`(A, B, C, M, N, K)`, of the sizes so many, with tensor maps of A (M, K), in boxes of so many rows, and of B (K, N)."""
    case = product(rng, size, tile, (threads,), dtype=np.float16, scalars=scalars)
    A, B, C = case.args[:3]
    maps = mapped(A, (rows, STEP)), mapped(B, (STEP, STEP))
    sizes = [np.int32(n) for n in size[:numbers]]
    label = "M={}, N={}, K={}".format(*size)
    return replace(case, label=label, args=(*maps, C, *sizes))


def tile_products(sizes, tile, block, *, alpha=1.0, beta=0.0, with_k=False):
    """Launches `(A, B, C, M, N[, K])` of `mapped_product`, C = alpha * A @ B + beta * C.

    sizes: (M, N, K); a last size is drawn. K and N are multiples of 8, because the rows begin at multiples of 16 bytes.
    """

    def cases(rng) -> tuple[Case, ...]:
        longest = 4 if with_k else 1
        drawn = (
            int(rng.integers(1, 130)), 8 * int(rng.integers(1, 20)), 8 * int(rng.integers(1, 8 * longest)),
        )  # fmt: skip
        scalars = (alpha, beta) if beta else None
        made = []
        for size in (*sizes, drawn):
            case = mapped_product(rng, size, tile, block, 64, 2 + with_k, scalars)
            special = case.special
            if size[2] % STEP:
                special += " and " * bool(special) + f"K={size[2]} is no multiple of {STEP}"
            made.append(replace(case, special=special))
        return tuple(made)

    return cases
