"""Bulk copies out of shared memory, and their groups (PTX ISA 9.7.9.25.5 and 6).

Such a copy belongs to a bulk group of its thread. It reads shared memory when the thread waits for the
group (`cp.async.bulk.wait_group`, `.read` or not), and writes global memory when the thread waits without
`.read`, or at the end: as late as the program allows. Shared memory that is overwritten without a wait
is therefore seen in the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass
class Store:
    """One bulk copy of one thread, which has committed `group` groups before.

    block: in the chunk. chunks: where its 16-byte pieces are, in 16 bytes from the start of all shared
    memory; seen: those of which something is inside the array. write: puts the bytes, (n,) uint8, where they
    belong. going: what watches global memory calls it. data: None until it was read.
    """

    ins: object
    block: int
    thread: int
    group: int
    chunks: np.ndarray
    seen: np.ndarray
    write: Callable[[np.ndarray], None]
    ticket: int = 0
    going: int = 0
    data: np.ndarray | None = None


class Stores:
    """The copies under way of one chunk, oldest first."""

    def __init__(self, m):
        self.pending: list[Store] = []
        self.commits = np.zeros((m.B, m.T), np.int64)

    def wait(self, m, mask, left: int, reading: bool) -> None:
        """These threads go on when at most `left` of their groups are under way (or being read)."""
        if m.sanitizer is not None:
            m.sanitizer.bulk_wait(m.lanes_of(mask))
        if not self.pending:
            return
        lanes = m.lanes_of(mask)
        rest = []
        for store in self.pending:
            at = store.block, store.thread
            if not lanes[at] or store.group >= self.commits[at] - left:
                rest.append(store)
                continue
            self.read(m, store, waited=True)
            if reading:
                rest.append(store)
            else:
                store.write(store.data)
                if store.going:
                    m.device.bulk.written(store.going)
        self.pending = rest

    def read(self, m, store: Store, waited: bool) -> None:
        if store.data is None:
            view = m.shared.buffer.view(np.dtype(np.complex128))
            store.data = view[store.chunks].view(np.uint8)
            if m.sanitizer is not None and waited and store.ticket:
                m.sanitizer.bulk_read_done(store.ticket, store.block, store.thread, store.seen)


def stores(m) -> Stores:
    if "bulk stores" not in m.states:
        m.states["bulk stores"] = Stores(m)
        m.endings.append(_finish)
    return m.states["bulk stores"]


def _finish(m) -> None:
    """What nobody has waited for is written when the kernel ends; its source should have been read before."""
    for store in stores(m).pending:
        if store.data is None and m.sanitizer is not None:
            m.sanitizer.left_under_way(store.ins, np.array([store.block]), "store", store.thread)
        stores(m).read(m, store, waited=False)
        store.write(store.data)
    m.states["bulk stores"].pending.clear()
