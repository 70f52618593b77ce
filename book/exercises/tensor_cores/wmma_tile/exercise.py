"""A tile on the tensor cores."""

import numpy as np

from book.exercises.exercise import Exercise, Need
from book.exercises.launches import products


def tile_stride(case):
    """The product if fragments of A are loaded with the tile's stride, 16, from the right corners."""
    A = case.product.A
    rows, cols = np.indices(A.shape)
    corner = rows // 16 * 16 * A.shape[1] + cols // 16 * 16
    return A.ravel()[corner + rows % 16 * 16 + cols % 16] @ case.product.B


EXERCISE = Exercise.read(
    __file__,
    cases=products(
        ((16, 16, 16), (32, 48, 64), (16, 64, 48)),
        (16, 16),
        (32,),
        drawn=((1, 4), (1, 4), (3, 8)),
        step=16,
        dtype=np.float16,
    ),
    at="M=32, N=48, K=64",
    needs=(
        Need("matrix multiplications of a warp", 24, "the tensor cores multiply (wmma::mma_sync)"),
    ),
    suspects={
        "A is loaded with a stride of 16, the tile's, where its rows are K apart": tile_stride,
    },
    twin=lambda run: run.count("matrix multiplications of a warp", case=1),
)
