"""Step 3: registers by ldmatrix."""

import numpy as np

from book.exercises.capstone.launches import tiles
from book.exercises.exercise import Exercise, Goal, Need
from emulator.numbers.fragments import mma_a


def fragments(
    tile, order=(0, 1, 2, 3), chunk=lambda row, c: c, turned=False, rows=lambda row: row
) -> np.ndarray:
    """(2, 32, 4) int32: what each lane's registers hold of the two 16 x 16 halves, by PTX's lane map.

    order: which register's matrix stands in each; chunk: which chunk is read in place of another; turned: each
    matrix of 8 x 8 is transposed; rows: which row is read in place of another.
    """
    elements = [2 * order[half // 2] + half % 2 for half in range(8)]
    held = mma_a(16, 16, "f16")
    row, col = held.rows[elements].T, held.cols[elements].T
    if turned:
        row, col = row // 8 * 8 + col % 8, col // 8 * 8 + row % 8
    row = rows(row)
    halves = [tile[row, 8 * chunk(row, 2 * step + col // 8) + col % 8] for step in range(2)]
    return np.ascontiguousarray(halves).view(np.int32)


def pointed_at(case, out) -> str | None:
    """Which row of the tile a lane pointed at, where it should have been another one; None if that cannot be told."""
    rows = (
        np.ascontiguousarray(case.args[0][:, :32]).view(np.int32).reshape(64, 4)
    )  # row by row, 4 chunks each
    for step, matrix, row in np.ndindex(2, 4, 8):
        held = out[step, 4 * row : 4 * row + 4, matrix]
        found = np.flatnonzero((rows == held).all(1))
        right = 8 * (matrix % 2) + row, 2 * step + matrix // 2
        if len(found) == 1 and divmod(int(found[0]), 4) != right:
            there, chunk = divmod(int(found[0]), 4)
            return (
                f"In step {step} lane {8 * matrix + row} points at row {there}, chunk {chunk} of the tile. "
                f"It should point at row {right[0]}, chunk {right[1]}."
            )
    return None


def _of_tile(**how):
    return lambda case: fragments(case.args[0][:, :32], **how)


FRAGMENT_SUSPECTS = {
    "Registers 1 and 2 are the other way round: matrices 0 and 1 are rows 0-7 and 8-15 of one chunk": (
        _of_tile(order=(0, 2, 1, 3))
    ),
    "The chunk is read where it would lie without the swizzle": _of_tile(
        chunk=lambda row, c: c ^ row // 2 % 4
    ),
    "Each 8 x 8 matrix is transposed: these are the registers that ldmatrix loads with .trans": _of_tile(
        turned=True
    ),
    "Each register holds rows 0-7: lanes 8 to 15 have to point at rows 8 to 15": _of_tile(
        rows=lambda row: row % 8
    ),
    "The two steps are the other way round": _of_tile(chunk=lambda row, c: c ^ 2),
    "Both chunks of a step are its left one: lanes 16 and up have to point at the chunk to the right": _of_tile(
        chunk=lambda row, c: c // 2 * 2
    ),
    "Both steps read the first 16 columns": _of_tile(chunk=lambda row, c: c % 2),
    "The two chunks of a step are the other way round": _of_tile(chunk=lambda row, c: c ^ 1),
    "Step 1 begins one chunk after step 0, not two": _of_tile(chunk=lambda row, c: c - (c >= 2)),
    "Each register holds matrix 0: all lanes point at the rows of one matrix": _of_tile(
        order=(0, 0, 0, 0)
    ),
}


def twin(run) -> int:
    row, place = divmod(run.lane("ldmatrix", 20, nth=1) // 16, 4)
    return place ^ row // 2 % 4


EXERCISE = Exercise.read(
    __file__,
    cases=tiles((2, 32, 4), fragments, np.int32),
    at="K=32",
    needs=(Need("ldmatrix instructions", 2, "ldmatrix loads the registers"),),
    goals=(Goal("shared_wavefronts", 16),),
    suspects=FRAGMENT_SUSPECTS,
    decode=pointed_at,
    twin=twin,
)
