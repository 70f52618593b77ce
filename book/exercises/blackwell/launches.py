"""The launches that several exercises of this part share."""

from dataclasses import replace

from book.exercises.exercise import Case
from book.exercises.hopper.launches import mapped_product

ARCH = "100a"


def tile_products(sizes, tile: tuple[int, int], threads: int, grid):
    """Launches `(A, B, C, M, N, K)` with tensor maps of A (M, K) and B (K, N); C = A @ B.

    sizes: (M, N, K); a last size is drawn. grid: (rows of tiles, columns of tiles) -> the grid.
    """

    def cases(rng) -> tuple[Case, ...]:
        drawn = (
            int(rng.integers(1, 280)), 8 * int(rng.integers(1, 24)), 8 * int(rng.integers(1, 20)),
        )  # fmt: skip
        made = [mapped_product(rng, size, tile, threads, 128, 3) for size in (*sizes, drawn)]
        return tuple(replace(case, grid=grid(*reversed(case.grid))) for case in made)

    return cases
