"""What the lanes of one warp load for an mma: which elements of A and B, which rows for ldmatrix."""

from __future__ import annotations

import numpy as np

from .answers import a_element
from .exercise import Case


def b_element(lane: int, half: int) -> tuple[int, int]:
    """(row, column) of B that half `half` (0-3) of a lane's two registers holds. PTX ISA 9.7.14.5.8, m16n8k16."""
    return 2 * (lane % 4) + half % 2 + half // 2 * 8, lane // 4


OPERANDS = {"A": (0, a_element, 8), "B": (1, b_element, 4)}


def fragments_by_hand(case: Case, trace) -> str | None:
    """The first lane that loads other elements of A or B than it must hold, of a kernel that loads halves by hand."""
    for name, (number, element, halves) in OPERANDS.items():
        columns = case.args[number].shape[1]
        loaded = _loaded(trace, number)
        if any(len(found) == 0 for found in loaded):
            continue  # nothing read, or not by each lane: through shared memory, say
        for lane, found in enumerate(loaded):
            must = {element(lane, half) for half in range(halves)}
            has = {divmod(int(i), columns) for i in found}
            if must == has:
                continue
            missing, more = sorted(must - has), sorted(has - must)
            said = f"Lane {lane} (group {lane // 4}, pair {lane % 4}) does not load {name}[{missing[0][0]}][{missing[0][1]}]"
            if missing and more:
                said += f", which it must hold, but {name}[{more[0][0]}][{more[0][1]}], which it must not"
            elif not missing:
                said = (
                    f"Lane {lane} loads {name}[{more[0][0]}][{more[0][1]}], which it must not hold"
                )
            else:
                said += ", which it must hold"
            return (
                f"{said}. {len(must & has)} of its {halves} elements of {name} are the right ones."
            )
    return None


def _loaded(trace, number: int) -> list[np.ndarray]:
    """For each lane, the halves of this argument that it loads."""
    found: list[list[np.ndarray]] = [[] for _ in range(32)]
    for row in trace.instructions:
        for access in trace.accesses(row):
            if access.buffer == f"argument {number}" and access.kind == "load":
                for lane in np.flatnonzero(access.active):
                    first = int(access.addresses[lane]) // 2
                    found[lane].append(np.arange(first, first + max(access.width // 2, 1)))
    return [np.unique(np.concatenate(one)) if one else np.zeros(0, np.int64) for one in found]


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
