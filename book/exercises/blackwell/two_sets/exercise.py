"""Let two sets of sums take turns."""

import numpy as np

from book.exercises.blackwell.launches import ARCH, tile_products
from book.exercises.exercise import Exercise, Need


def last_of_its_set(case):
    """Each tile holds what the last tile in the same set should hold."""
    right = case.expected
    count = -(-right.shape[1] // 64)
    wide = np.zeros((len(right), 64 * count))
    wide[:, : right.shape[1]] = right
    tiles = [wide[:, 64 * i :][:, :64] for i in range(count)]
    last = [tiles[count - 1 - (count - 1 - i) % 2] for i in range(count)]
    return np.concatenate(last, axis=1)[:, : right.shape[1]]


EXERCISE = Exercise.read(
    __file__,
    cases=tile_products(
        ((128, 64, 64), (128, 320, 64), (100, 136, 136)),
        (128, 64),
        129,
        lambda rows, columns: (rows,),
    ),
    at="M=128, N=320, K=64",
    needs=(Need("products started by tcgen05.mma", 20, "tcgen05 multiplies"),),
    suspects={
        "A tile holds the sums of a later tile, which has the same set: the multiplier has to wait for stored "
        "before it begins": last_of_its_set,
    },
    arch=ARCH,
    twin=lambda run: 6 // 2 % 2 ^ 1,
)
