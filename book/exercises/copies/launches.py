"""The launches that several exercises of this part share."""

import numpy as np

from book.exercises.exercise import Case
from book.exercises.launches import poisoned


def row_sums(rng):
    cases = []
    tall, wide_ = (int(rng.integers(1, n)) for n in (4, 20))
    for M, K in ((64, 16), (128, 48), (64, 176), (64, 512), (64 * tall, 16 * wide_)):
        x = rng.standard_normal((M, K)).astype(np.float32)
        wide = x.astype(float)
        cases.append(
            Case(
                f"M={M}, K={K}", (x, poisoned((M,)), np.int32(K)), 1, wide.sum(1), (M // 64,), (64,),
                tolerance=(K + 4) * 2.0**-23, scale=np.abs(wide).sum(1),
                special="there are fewer tiles than stages" if K < 64 else "slots are used again",
            )
        )  # fmt: skip
    return tuple(cases)
