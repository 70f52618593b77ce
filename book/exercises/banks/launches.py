"""The launches that several exercises of this part share."""

import numpy as np

from book.exercises.launches import mapping


def chunks(columns):
    """Launches for a kernel that reads a 32-row tile of halves back chunk by chunk."""

    def cases(rng):
        chunks = columns // 8
        return tuple(
            mapping(
                rng, (32, columns), (chunks, 32, 8),
                lambda x: np.ascontiguousarray(x.reshape(32, chunks, 8).swapaxes(0, 1)),
                (1,), (32,), dtype=np.float16, label=f"one 32 x {columns} tile",
            )
        for _ in range(1))  # fmt: skip

    return cases
