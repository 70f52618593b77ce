"""Mend a pair of blocks."""

import numpy as np

from book.exercises.blackwell.launches import ARCH, tile_products
from book.exercises.exercise import Exercise, Need


def same_half(case):
    """The product if both blocks bring the first 64 of every 128 columns of B."""
    B = case.product.B
    columns = np.arange(B.shape[1])
    return case.product.A @ B[:, columns // 128 * 128 + columns % 64]


EXERCISE = Exercise.read(
    __file__,
    cases=tile_products(
        ((256, 128, 64), (200, 136, 136)),
        (256, 128),
        128,
        grid=lambda rows, columns: (2 * columns, rows),
    ),
    at="M=256, N=128, K=64",
    needs=(Need("products started by tcgen05.mma", 4, "tcgen05 multiplies"),),
    suspects={
        "Both blocks bring the same half of B: the second one's is 64 columns further": same_half
    },
    arch=ARCH,
    twin=lambda run: 2 * (128 + 64) * 64 * 2 // 1024,
)
