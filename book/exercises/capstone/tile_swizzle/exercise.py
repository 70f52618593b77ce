"""Step 2: swizzle the tile."""

import numpy as np

from book.exercises.capstone.launches import tiles
from book.exercises.exercise import Exercise, Goal, Need


def by_chunks(tile) -> np.ndarray:
    """(4, 16, 8): the tile's columns of chunks."""
    return tile.reshape(16, 4, 8).swapaxes(0, 1)


def twin(run) -> int:
    """Where the copies put chunk 3 of row 5: the rows of A have 64 bytes at K = 32."""
    trace = run().trace
    for row in trace.rows("cp.async.c"):
        copies = trace.accesses(row)
        to, of = ([a for a in copies if a.space == space] for space in ("shared", "global"))
        for there, here in zip(to, of, strict=True):
            found = there.addresses[np.asarray(here.addresses) == 5 * 64 + 3 * 16]
            if len(found):
                return int(found[0]) % 64 // 16
    raise ValueError("no copy of row 5, chunk 3")


EXERCISE = Exercise.read(
    __file__,
    cases=tiles((4, 16, 8), by_chunks),
    at="K=32",
    needs=(Need("bytes copied by cp.async", 1_024, "the tile arrives by cp.async"),),
    goals=(Goal("shared_wavefronts", 20),),
    outside="place() must return 0 to 3 for every row, or chunks leave their row.",
    twin=twin,
)
