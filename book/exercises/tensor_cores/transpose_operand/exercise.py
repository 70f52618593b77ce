"""ldmatrix for a transposed operand."""

import numpy as np

from book.exercises.exercise import Case, Exercise, Need
from book.exercises.launches import products


def warp_meets(built, trace):
    meets = False
    for row in trace.instructions:
        if row.opcode.startswith("bar"):
            meets = True
        elif row.shared_wavefronts and row.opcode.startswith("st"):
            meets = False
        elif row.opcode.startswith("ldmatrix"):
            break
    if meets:
        return []
    return [
        "The lanes store the tiles, and ldmatrix reads what other lanes have stored, with no __syncwarp() between: only "
        "that makes the stores of one lane visible to the others."
    ]


MATRICES = (
    "rows 0-7 of B's left half",
    "rows 8-15 of B's left half",
    "rows 0-7 of B's right half",
    "rows 8-15 of B's right half",
)


def rows_of_ldmatrix(case: Case, trace) -> str | None:
    """The first lane that gives ldmatrix.trans the address of another row of B than its matrix has there."""
    start = _start_of_b(trace)
    rows = [row for row in trace.rows("ldmatrix") if ".trans" in row.opcode]
    if start is None or len(rows) != 1 or not trace.accesses(rows[0]):
        return None
    access = trace.accesses(rows[0])[0]
    for lane in range(32):
        row, column = divmod((int(access.addresses[lane]) - start) // 2, 16)
        matrix, line = divmod(lane, 8)
        if (row, column) == (matrix % 2 * 8 + line, matrix // 2 * 8):
            continue
        where = f"row {row}, column {column} of Bs" if 0 <= row < 16 else "a place outside of Bs"
        return f"Lane {lane} points at {where}. It has to point at row {line} of matrix {matrix}, which is {MATRICES[matrix]}."
    return None


def _start_of_b(trace) -> int | None:
    """Where lane 0 stores what it loads from B: the beginning of the tile in shared memory."""
    stores = [row for row in trace.rows("st.shared") if trace.accesses(row)]
    if len(stores) != 2:
        return None
    return int(trace.accesses(stores[1])[0].addresses[0])


EXERCISE = Exercise.read(
    __file__,
    cases=products(
        ((16, 16, 16),), (16, 16), (32,), drawn=None, dtype=np.float16, sizes_passed=False
    ),
    at="M=16, N=16, K=16",
    needs=(
        Need("matrix multiplications of a warp", 2, "two mma.m16n8k16 multiply"),
        Need("ldmatrix instructions", 2, "ldmatrix loads A and B from shared memory"),
    ),
    inspect=warp_meets,
    watch=rows_of_ldmatrix,
    outside="Bs has rows 0 to 15 of 16 halves, and a row of one of the four matrices begins in column 0 or in column 8.",
    twin=lambda run: run.lane("ldmatrix", 21, row=-1) // 32,
)
