"""Transpose without conflicts."""

import numpy as np

from book.exercises.exercise import Exercise, Goal
from book.exercises.launches import mapping
from kernels.shapes import ceil_div


def transposes(rng):
    return tuple(
        mapping(
            rng, (M, N), (N, M), lambda x: np.ascontiguousarray(x.T), (ceil_div(N, 32), ceil_div(M, 32)), (32, 8),
            extra=(np.int32(M), np.int32(N)), label=f"{M} x {N}",
            special="the tiles at the edges are not whole" if M % 32 or N % 32 else "",
        )
        for M, N in ((32, 32), (64, 96), (33, 70), (1, 65), tuple(map(int, rng.integers(1, 130, 2))))
    )  # fmt: skip


EXERCISE = Exercise.read(
    __file__,
    cases=transposes,
    goals=(Goal("shared_wavefronts", 64, "32 x 32"), Goal("global_sectors", 256, "32 x 32")),
    twin=lambda run: run.lane("st.shared", 7, warp=5) // 4 % 32,
)
