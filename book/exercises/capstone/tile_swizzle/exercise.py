"""Step 2: swizzle the tile."""

import numpy as np

from book.exercises.capstone.launches import tiles
from book.exercises.exercise import Exercise, Goal, Need


def by_chunks(tile) -> np.ndarray:
    """(4, 16, 8): the tile's columns of chunks."""
    return tile.reshape(16, 4, 8).swapaxes(0, 1)


EXERCISE = Exercise.read(
    __file__,
    cases=tiles((4, 16, 8), by_chunks),
    at="K=32",
    needs=(Need("bytes copied by cp.async", 1_024, "the tile arrives by cp.async"),),
    goals=(Goal("shared_wavefronts", 20),),
    outside="place() must return 0 to 3 for every row, or chunks leave their row.",
    twin=lambda run: run.lane("ld.shared", 5 + 16, nth=1) % 64 // 16,  # row 5, chunk 3
)
