"""The launches that several exercises of this part share, and those of Blackwell."""

from dataclasses import replace

import numpy as np

from book.exercises.exercise import Case, Goal, Need
from book.exercises.launches import product
from emulator import TensorMap

ARCH = "90a"
WGMMA = "wgmma (four warps issue each, so each counts four)"
SPAN, STEP = 128, 64  # bytes of the swizzle, and the halves in them


def by_wgmma(products: int, landed: int) -> dict:
    """What an exercise asks for whose tiles come by TMA, in so many bytes, and which wgmma multiplies."""
    needs = (
        Need(WGMMA, products, "wgmma multiplies"),
        Need("bytes copied by TMA", landed, "the tiles arrive by TMA"),
    )
    return {"arch": ARCH, "needs": needs, "goals": (Goal(WGMMA, products),)}


def mapped(array, box) -> TensorMap:
    return TensorMap(array, box, swizzle=SPAN)


def tile_products(
    sizes, tile, threads, *, rows=64, numbers=2, most=(130, 20, 8), grid=None, alpha=1.0, beta=0.0
):
    """Launches `(A, B, C, M, N[, K])`, so many of the three numbers, with C = alpha * A @ B + beta * C.

    A (M, K) and B (K, N) are tensor maps, A in boxes of so many rows. sizes: (M, N, K); a last size is drawn, below `most`:
    K and N in eights, because the rows begin at multiples of 16 bytes. grid: (rows of tiles, columns of tiles) -> the grid.
    """

    def cases(rng) -> tuple[Case, ...]:
        m, n, k = (int(rng.integers(1, end)) for end in most)
        made = []
        for size in (*sizes, (m, 8 * n, 8 * k)):
            scalars = (alpha, beta) if beta else None
            case = product(rng, size, tile, (threads,), dtype=np.float16, scalars=scalars)
            A, B, C = case.args[:3]
            args = mapped(A, (rows, STEP)), mapped(B, (STEP, STEP)), C
            special = case.special
            if size[2] % STEP:
                special += " and " * bool(special) + f"K={size[2]} is no multiple of {STEP}"
            case = replace(
                case,
                label="M={}, N={}, K={}".format(*size),
                args=(*args, *map(np.int32, size[:numbers])),
                special=special,
                grid=grid(*reversed(case.grid)) if grid else case.grid,
            )
            made.append(case)
        return tuple(made)

    return cases
