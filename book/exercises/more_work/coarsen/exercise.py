"""Four outputs per thread: beat a rung's wavefronts."""

import numpy as np

from book.exercises.exercise import Exercise, Goal
from book.exercises.launches import products


def four_rows_in_one(case):
    """The output of `coarsen` where a thread adds its four outputs up in the first of its sums."""
    p = case.product
    rows = np.pad(p.C, ((0, -len(p.C) % 32), (0, 0))).reshape(-1, 4, 8, p.C.shape[1])
    sums = np.zeros_like(rows)
    sums[:, 0] = rows.sum(1)
    return sums.reshape(-1, p.C.shape[1])[: len(p.C)]


EXERCISE = Exercise.read(
    __file__,
    cases=products(((64, 64, 64), (32, 64, 96), (33, 65, 17), (8, 40, 70)), (32, 32), (32, 8)),
    at="M=64, N=64, K=64",
    goals=(Goal("shared_wavefronts", 7_000), Goal("bytes read from global memory", 66_000)),
    suspects={
        "All four rows are added up in one sum: sum[i] is the output of row ty + 8 * i": four_rows_in_one,
        "Only the first of each thread's four outputs is summed: sum[1] to sum[3] stay 0": lambda case: (
            np.where(np.arange(len(case.expected))[:, None] % 32 < 8, case.expected, 0)
        ),
    },
    twin=lambda run: run.count("bytes read from global memory"),
)
