"""The launches that several exercises of this part share."""

import numpy as np

from book.exercises.launches import mapping


def chunks(columns):
    """Launches for a kernel that reads a 32-row tile of halves back chunk by chunk."""
    count = columns // 8

    def by_chunks(x):
        return np.ascontiguousarray(x.reshape(32, count, 8).swapaxes(0, 1))

    def cases(rng):
        size, label = (32, columns), f"one 32 x {columns} tile"
        return (
            mapping(
                rng, size, (count, 32, 8), by_chunks, (1,), (32,), dtype=np.float16, label=label
            ),
        )

    return cases
