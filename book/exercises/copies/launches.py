"""The launches that several exercises of this part share."""

import numpy as np

from book.exercises.launches import row_sums


def sums_of_rows(rng):
    drawn = 64 * int(rng.integers(1, 4)), 16 * int(rng.integers(1, 20))
    return tuple(
        row_sums(
            rng.standard_normal((M, K)).astype(np.float32),
            (K,),
            64,
            (64,),
            "there are fewer tiles than stages" if K < 64 else "slots are used again",
        )
        for M, K in ((64, 16), (128, 48), (64, 176), (64, 512), drawn)
    )
