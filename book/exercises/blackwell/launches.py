"""The launches that several exercises of this part share."""

from dataclasses import replace

import numpy as np

from book.exercises.exercise import Case
from book.exercises.launches import product
from emulator import TensorMap

ARCH = "100a"
SPAN, STEP = 128, 64  # bytes of the swizzle, and the halves in them


def tile_products(sizes, tile: tuple[int, int], threads: int, grid):
    """Launches `(A, B, C, M, N, K)` with tensor maps of A (M, K) and B (K, N); C = A @ B.

    sizes: (M, N, K); a last size is drawn. grid: (rows of tiles, columns of tiles) -> the grid.
    """

    def cases(rng) -> tuple[Case, ...]:
        drawn = (
            int(rng.integers(1, 280)), 8 * int(rng.integers(1, 24)), 8 * int(rng.integers(1, 20)),
        )  # fmt: skip
        made = []
        for M, N, K in (*sizes, drawn):
            case = product(rng, (M, N, K), tile, (threads,), dtype=np.float16)
            A, B, C = case.args[:3]
            maps = (
                TensorMap(A, (128, STEP), swizzle=SPAN),
                TensorMap(B, (STEP, STEP), swizzle=SPAN),
            )
            columns, rows = case.grid
            made.append(
                replace(
                    case,
                    label=f"M={M}, N={N}, K={K}",
                    args=(*maps, C, *(np.int32(n) for n in (M, N, K))),
                    grid=grid(rows, columns),
                )
            )
        return tuple(made)

    return cases
