"""The launches that several exercises of this part share."""

from dataclasses import replace

import numpy as np

from book.exercises.exercise import Case
from book.exercises.launches import product
from emulator import TensorMap

ARCH = "90a"


SPAN = 128  # bytes of the swizzle


STEP = 64  # halves in it


def mapped(array, box) -> TensorMap:
    return TensorMap(array, box, swizzle=SPAN)


def tile_products(sizes, tile, block, *, alpha=1.0, beta=0.0, with_k=False):
    """Launches `(A, B, C, M, N[, K])` with tensor maps of A (M, K) and B (K, N); C = alpha * A @ B + beta * C.

    sizes: (M, N, K); a last size is drawn. K and N are multiples of 8, because the rows begin at multiples of 16 bytes.
    """

    def cases(rng) -> tuple[Case, ...]:
        longest = 4 if with_k else 1
        drawn = (
            int(rng.integers(1, 130)), 8 * int(rng.integers(1, 20)), 8 * int(rng.integers(1, 8 * longest)),
        )  # fmt: skip
        made = []
        for size in (*sizes, drawn):
            case = product(
                rng, size, tile, (block,), dtype=np.float16, scalars=(alpha, beta) if beta else None
            )
            A, B, C = case.args[:3]
            maps = mapped(A, (64, STEP)), mapped(B, (STEP, STEP))
            numbers = [np.int32(n) for n in (size if with_k else size[:2])]
            special = case.special
            if size[2] % STEP:
                special += " and " * bool(special) + f"K={size[2]} is no multiple of {STEP}"
            made.append(
                replace(
                    case,
                    label=f"M={size[0]}, N={size[1]}, K={size[2]}",
                    args=(*maps, C, *numbers),
                    special=special,
                )
            )
        return tuple(made)

    return cases
