"""What a layout says of addresses, beside what a kernel's trace holds.

Addresses are bytes from the start of a matrix or of the block's shared memory.
"""

from collections.abc import Callable

import numpy as np


def seen(trace, opcode: str, which: int = 0, space: str = "shared", turn: int = 0) -> np.ndarray:
    """Byte addresses that the threads of the first block gave to one PTX instruction, (threads,) int64.

    opcode: how it begins. which: which of the instructions that begin so and touch this `space`, in PTX
    order. turn: which of its executions by each warp. IndexError when there is no such instruction or turn.
    """
    rows = [
        accesses
        for row in trace.rows(opcode)
        if (accesses := [a for a in trace.accesses(row) if a.space == space])
    ]
    warps: dict[int, list] = {}
    for access in rows[which]:
        warps.setdefault(access.warp, []).append(access)
    return np.concatenate([warps[warp][turn].addresses for warp in sorted(warps)])


def predicted(layout: Callable[..., int], threads: int, *value: int, bytes: int = 2):
    """Byte addresses that a layout gives threads 0, 1, 2 ...: `layout(thread, *value)` times `bytes`."""
    return np.array([layout(thread, *value) for thread in range(threads)]) * bytes


def compare(name: str, says: np.ndarray, trace: np.ndarray, what: str = "threads") -> None:
    """Prints whether a layout's addresses are those of the trace, or the first thread for which not.

    what: one address belongs to, where several instructions are compared at once.
    """
    if says.shape != trace.shape:
        print(f"{name}: {len(says)} threads predicted, {len(trace)} seen")
        return
    wrong = np.flatnonzero(says != trace)
    if len(wrong):
        thread = wrong[0]
        print(
            f"{name}: {len(wrong)} of {len(says)} threads elsewhere, the first of them thread {thread}: "
            f"predicted byte {says[thread]:,}, seen {trace[thread]:,}"
        )
    else:
        print(f"{name}: {len(says)} {what}, every address as predicted")
