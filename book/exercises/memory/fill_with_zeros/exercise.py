"""Fill a tile together, and its edges with zeros."""

import numpy as np

from book.exercises.exercise import Case, Exercise, Goal, Need
from book.exercises.launches import FLOAT_EPSILON, ROW_SUSPECTS, poisoned
from kernels.shapes import ceil_div


def row_sums_of_tiles(rng) -> tuple[Case, ...]:
    """Sums of the rows of X, 16 rows per block, for any M and K."""
    sizes = (32, 48), (20, 48), (32, 41), (1, 1), tuple(map(int, rng.integers((1, 1), (60, 130))))
    return tuple(
        _sums(
            rng.standard_normal((M, K)).astype(np.float32), (ceil_div(M, 16),), (16, 16), (np.int32(M), np.int32(K)),
            f"M={M}, K={K}",
            " and ".join(f"{name}={n} is no multiple of 16" for name, n in (("M", M), ("K", K)) if n % 16),
        )
        for M, K in sizes
    )  # fmt: skip


def _sums(x, grid, block, sizes, label, special="") -> Case:
    """y = the sum of each row of x."""
    wide = x.astype(float)
    return Case(
        label, (x, poisoned((len(x),)), *sizes), 1, wide.sum(1), grid, block,
        tolerance=(x.shape[1] + 4) * FLOAT_EPSILON, scale=np.abs(wide).sum(1), special=special,
    )  # fmt: skip


def twin(run) -> int:
    """Places of the tiles that no load fills, at M=32, K=41."""
    done = run(case=2)
    turns = ceil_div(done.case.args[0].shape[1], 16)
    return done.trace.blocks * 256 * turns - sum(
        row.threads for row in done.trace.rows("ld.global")
    )


EXERCISE = Exercise.read(
    __file__,
    cases=row_sums_of_tiles,
    needs=(
        Need(
            "bytes read from shared memory",
            6_144,
            "M=32, K=48",
            "the rows are summed from the tile in shared memory",
        ),
    ),
    goals=(Goal("global_sectors", 256, "M=32, K=48"),),
    suspects=ROW_SUSPECTS,
    twin=twin,
)
