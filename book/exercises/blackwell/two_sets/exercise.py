"""Let two sets of sums take turns."""

import numpy as np

from book.exercises.blackwell.launches import ARCH, tile_products
from book.exercises.exercise import Exercise, Need


def last_of_its_set(case):
    """Each tile holds what the last tile in the same set should hold."""
    columns = np.arange(case.expected.shape[1])
    last = columns[-1] // 64
    there = 64 * (last - (last - columns // 64) % 2) + columns % 64
    return np.pad(case.expected, ((0, 0), (0, 63)))[:, there]


EXERCISE = Exercise.read(
    __file__,
    cases=tile_products(
        ((128, 64, 64), (128, 320, 64), (100, 136, 136)),
        (128, 64),
        129,
        grid=lambda rows, columns: (rows,),
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
