"""Bulk copies into shared memory that are under way, and how they land (PTX ISA 9.7.9.25.4).

Such a copy completes on an mbarrier. It reads its source when it is issued and writes shared memory
only when a thread of the destination's block waits for that mbarrier and could not go on without it: as
late as the program allows. A kernel that reads too early finds the old data, every time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.counts.patterns import tally
from emulator.machine.mbarriers import MBarrier

CHUNK = np.dtype(np.complex128)  # 16 bytes moved as one element, bits untouched


@dataclass
class Load:
    """One execution of a bulk copy; a row for each thread that issued it and block it writes to.

    block, barrier: (R,) the destination's block in the chunk, and its mbarrier's offset. data: (R, n)
    pieces, of 16 bytes each but for st.async; chunks: (R, n), where they go, in pieces from the start of
    all shared memory. size: bytes of a row. combine: None, or what a reduction does to (old, new) bytes. left: (R,) bool, the
    rows that have not landed. whose: (R,) the block whose mbarrier it is; None where it is the destination's.
    reads: of each row, the events in which the sanitizer saw it read global memory.
    """

    ins: object
    block: np.ndarray
    barrier: np.ndarray
    chunks: np.ndarray
    data: np.ndarray
    size: int
    left: np.ndarray
    ticket: int = 0
    combine: object = None
    whose: np.ndarray | None = None
    reads: list | None = None

    @property
    def counted(self) -> np.ndarray:
        """(R,): the blocks whose mbarriers count the bytes."""
        return self.block if self.whose is None else self.whose


def loads(m) -> list[Load]:
    """The loads of this chunk that have not landed everywhere, oldest first."""
    if "bulk loads" not in m.states:
        m.endings.append(_never_waited_for)
    return m.state("bulk loads", list)


def land(m, offset: int, blocks: np.ndarray) -> bool:
    """Lands what completes on the mbarriers at `offset` of these blocks, (B,) bool. Was there any?"""
    pending = m.states.get("bulk loads")
    if not pending:
        return False
    brought = np.zeros(m.B, np.int64)
    for load in pending:
        rows = load.left & (load.barrier == offset) & blocks[load.counted]
        if rows.any():
            _write(m, load, rows)
            brought += tally(load.counted[rows], m.B) * load.size
            load.left = load.left & ~rows
    if not brought.any():
        return False
    pending[:] = [load for load in pending if load.left.any()]
    barrier = MBarrier(m, offset)
    if m.sanitizer is not None:
        m.sanitizer.bytes_arrive(offset, brought > 0)
    barrier.bring(brought)
    barrier.complete(brought > 0)
    barrier.store(brought > 0)
    return True


def _write(m, load: Load, rows: np.ndarray) -> None:
    view = m.shared.buffer.view(load.data.dtype)
    chunks, data = load.chunks[rows], load.data[rows]
    if load.combine is None:
        view[chunks] = data
    else:  # one after the other: rows may name the same place
        for where, what in zip(chunks, data, strict=True):
            view[where] = load.combine(view[where], what)
    if m.sanitizer is not None:
        m.sanitizer.bulk_land(load.ticket, load.block[rows], chunks, data.itemsize)
        if m.device is not None and load.reads is not None:
            for row in np.flatnonzero(rows).tolist():
                m.device.bulk.landed(load.reads[row])


def _never_waited_for(m) -> None:
    """Blocks have ended while copies into their shared memory were under way."""
    if m.sanitizer is not None:
        for load in m.states["bulk loads"]:
            m.sanitizer.left_under_way(load.ins, load.block[load.left], "load")
