"""The launches that several exercises of this part share."""

from dataclasses import replace

import numpy as np

from book.exercises.exercise import Case
from book.exercises.launches import poisoned, product


def tile_of_halves(rng, rows: int, K: int) -> np.ndarray:
    return rng.standard_normal((rows, K)).astype(np.float16)


def tiles(shape, rearrange, dtype=np.float16):
    """Launches for the first 32 columns of a (16, K) matrix of halves; `rearrange` gives the output."""

    def cases(rng) -> tuple[Case, ...]:
        made = []
        for K in (32, 96, 32 * int(rng.integers(2, 9))):
            A = tile_of_halves(rng, 16, K)
            made.append(
                Case(
                    f"K={K}", (A, poisoned(shape, dtype), np.int32(K)), 1,
                    np.ascontiguousarray(rearrange(A[:, :32])), (1,), (32,),
                    special="the rows lie further apart than the tile is wide" if K > 32 else "",
                )
            )  # fmt: skip
        return tuple(made)

    return cases


def transposed_products(sizes, one_tile: bool):
    """Launches `(A, Bt, C[, M, N], K)` with B given column by column; of one tile, only the first 32 terms are wanted."""

    def cases(rng) -> tuple[Case, ...]:
        drawn = (16, 16, 32 * int(rng.integers(2, 6))) if one_tile else (
            *(16 * rng.integers(1, 4, 2)).tolist(), 32 * int(rng.integers(3, 8))
        )  # fmt: skip
        made = []
        for M, N, K in (*sizes, drawn):
            case = product(rng, (M, N, 32 if one_tile else K), (16, 16), (32,), dtype=np.float16)
            A, Bt = case.args[0], np.ascontiguousarray(case.args[1].T)
            if one_tile:  # what lies beyond the tile belongs to the tiles that follow
                A, Bt = (np.hstack([x, tile_of_halves(rng, 16, K - 32)]) for x in (A, Bt))
            wanted = [np.int32(n) for n in ((K,) if one_tile else (M, N, K))]
            special = "K is more than a tile" if K > 32 else ""
            label = f"K={K}" if one_tile else f"M={M}, N={N}, K={K}"
            made.append(
                replace(case, label=label, args=(A, Bt, case.args[2], *wanted), special=special)
            )
        return tuple(made)

    return cases
