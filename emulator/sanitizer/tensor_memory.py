"""Hazards of tensor memory (PTX ISA 9.7.16.6): who may touch which columns, and when.

Every half of a quarter (16 lanes) of every column remembers who wrote and read it last. A tensor core is an
agent of its own, as wgmma is (`asynchronous`): a product is known to whoever waited for the mbarrier that its commit
arrives at, and to whoever was told by those. What one thread's tcgen05 instruction did orders
another's only between `tcgen05.fence::before_thread_sync` and `::after_thread_sync`.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from emulator.numbers.tcgen05 import COLUMNS
from emulator.sanitizer import words
from emulator.sanitizer.report import Seen

HALVES = 8
_STORED, _LOADED = 0, 1


class TensorShadow:
    """What the sanitizer keeps of a chunk's tensor memories; m: the machine's chunk."""

    def __init__(self, m):
        self.m, self.order = m, m.sanitizer
        shape = (m.B, HALVES, COLUMNS)
        self.written, self.read = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        self.writer, self.reader = np.zeros(shape, np.int16), np.zeros(shape, np.int16)
        self.pending = np.zeros(shape, np.int32)  # ticket of the operation that will write it
        self.issuer = np.full(shape, -1, np.int16)  # the thread that issued that
        per = m.T // 32
        self.per = per
        # up to when loads (and stores) are over: waited for, by warp of the chunk
        self.waited = np.zeros((2, m.W), np.int64)
        # what each warp knew at its last fence::after_thread_sync
        self.fenced = np.zeros((m.W, self.order.warps), np.int32)
        self.issued: dict[int, np.ndarray] = {}  # ticket -> what the issuing warp knew
        self.published: list[list[int]] = [[] for _ in range(m.W)]  # fence::before_thread_sync

    # --- Who is who ---

    def _number(self, block: int, warp: int) -> tuple[int, int]:
        """(cluster, number in the order) of a block's warp."""
        together = self.m.cluster
        return block // together, block % together * self.per + warp

    def _agent(self, block: int) -> tuple[int, int]:
        return self.order.tensor_core(block)

    # --- Fences and waits ---

    def wait(self, warps: np.ndarray, loads: bool) -> None:
        """These warps, (W,) bool, executed tcgen05.wait::ld (or ::st)."""
        self.waited[_LOADED if loads else _STORED, warps] = self.order.tick(None, "wait")

    def fence(self, warps: np.ndarray, after: bool) -> None:
        for flat in np.flatnonzero(warps).tolist():
            block, warp = divmod(flat, self.per)
            cluster, number = self._number(block, warp)
            now = self.order.tick(None, "fence")
            if after:
                self.fenced[flat] = self.order.known[cluster, number]
            else:
                self.published[flat].append(now)

    # --- What threads do ---

    def access(self, ins, block: int, warp: int, halves, columns, write: bool) -> None:
        """A warp loads (stores) these halves of these columns (index arrays that broadcast)."""
        at = block, halves, columns
        flat = block * self.per + warp
        cluster, number = self._number(block, warp)
        now = self.order.tick(ins, "tensor store" if write else "tensor load")
        pending = self.pending[at]
        thread = 32 * warp
        if pending.any():
            other = self.order.log[int(pending.max())][0]
            self.tell("unfinished-product", ins, other, block, thread)
        # with 64 rows only every other half is written, and loads of 32 lanes bring the others along
        if not write and ((self.written[at] == 0) & (pending == 0)).all(axis=0).any():
            self.tell("uninitialised-column", ins, None, block, thread)
        self._ordered(
            ins, at, flat, cluster, number, self.written[at], self.writer[at], True, thread
        )
        if write:
            self._ordered(
                ins, at, flat, cluster, number, self.read[at], self.reader[at], False, thread
            )
            self.written[at], self.writer[at] = now, number
            self.order.known[cluster, number, number] = now
        else:
            self.read[at], self.reader[at] = now, number
            self.order.known[cluster, number, number] = now

    def _ordered(self, ins, at, flat, cluster, number, times, by, wrote: bool, thread) -> None:
        """Reports what others did to these cells that this warp is not ordered after."""
        if not times.any():
            return
        by = by.astype(np.int64)
        block = at[0]
        known = self.order.known[cluster, number][by]
        fenced = self.fenced[flat][by]
        other = (by != number) & (times > 0)
        agents = by >= self.order.real
        early = other & (times > known)
        if early.any():
            found = times[early].max()
            did = agents[early].any()
            kind = "unfinished-product" if did else "unordered-columns"
            self.tell(kind, ins, self.order.log[int(found)][0], block, thread)
            return
        late = other & ~early & (times > fenced)
        if late.any():
            found = int(times[late].max())
            self.tell(
                "missing-tcgen05-fence", ins, self.order.log[found][0], block, thread, "after"
            )
            return
        hidden = other & ~agents
        if hidden.any():
            self._check_published(
                ins, times[hidden], by[hidden], block, thread, fenced[hidden], wrote
            )
        own = (by == number) & (times > 0)
        if own.any():
            found = int(times[own].max())
            which = _STORED if wrote else _LOADED
            if self.waited[which, flat] < found:
                self._not_waited(ins, found, block, thread, which)

    def _check_published(self, ins, times, by, block, thread, fenced, wrote: bool) -> None:
        """The others' accesses must be over, and followed by fence::before_thread_sync, which is known here."""
        pairs = {(int(b), int(t)): int(f) for b, t, f in zip(by, times, fenced, strict=True)}
        together = self.m.cluster
        for (number, time), known in pairs.items():
            rank, warp = divmod(number, self.per)
            flat = (block // together * together + rank) * self.per + warp
            which = _STORED if wrote else _LOADED
            if self.waited[which, flat] < time:
                self._not_waited(ins, time, block, thread, which)
                return
            fences = self.published[flat]
            first = bisect_left(fences, time)
            if first == len(fences) or fences[first] > known:
                other = self.order.log[time][0]
                self.tell("missing-tcgen05-fence", ins, other, block, thread, "before")
                return

    def _not_waited(self, ins, time: int, block: int, thread: int, which: int) -> None:
        word = "st" if which == _STORED else "ld"
        self.tell("missing-tcgen05-wait", ins, self.order.log[time][0], block, thread, word)

    # --- What tensor cores do ---

    def issue(self, ins, block: int, thread: int, regions) -> int:
        """A product or a copy is issued by a thread. regions: (block, halves, columns, writes) each. Returns a ticket."""
        now = self.order.tick(ins, "tcgen05")
        flat = block * self.per + thread // 32
        cluster, number = self._number(block, thread // 32)
        who = block % self.m.cluster * self.m.T + thread
        for where, halves, columns, writes in regions:
            at = where, halves, columns
            pending = self.pending[at]
            foreign = (pending > 0) & (self.issuer[at] != who)
            if (
                ins.parts[1] == "shift" and not writes
            ):  # only products are done in order before it (PTX ISA 9.7.16.6.2)
                found = np.unique(pending[pending > 0])
                moves = [one for one in found if self.order.log[int(one)][0].parts[1] != "mma"]
                foreign = foreign | np.isin(pending, moves)
            if foreign.any():
                other = self.order.log[int(pending[foreign].max())][0]
                kind = "two-writers" if writes else "unfinished-product"
                self.tell(kind, ins, other, block, thread)
            elif not writes and ((self.written[at] == 0) & (pending == 0)).any():
                self.tell("uninitialised-column", ins, None, block, thread)
            mine = pending > 0  # done in order by the tensor core
            times = np.where(mine, 0, self.written[at])
            agent = self.writer[at] >= self.order.real
            times = np.where(agent, 0, times)  # its own earlier ones are in order too
            self._ordered(ins, at, flat, cluster, number, times, self.writer[at], True, thread)
            if writes:
                times = np.where(mine, 0, self.read[at])
                self._ordered(ins, at, flat, cluster, number, times, self.reader[at], False, thread)
                self.pending[at] = now
                self.issuer[at] = who
        self.issued[now] = self.order.known[cluster, number].copy()
        return now

    def done(self, ticket: int, block: int, regions) -> None:
        """That operation has written; the tensor core of `block` knows it."""
        cluster, agent = self._agent(block)
        now = self.order.tick(self.order.log[ticket][0], "tcgen05")
        for where, halves, columns, writes in regions:
            if writes:
                at = where, halves, columns
                self.written[at], self.writer[at] = now, agent
                self.pending[at] = np.where(self.pending[at] == ticket, 0, self.pending[at])
        known = self.order.known[cluster, agent]
        np.maximum(known, self.issued.pop(ticket), out=known)
        known[agent] = now

    def deallocate(self, ins, block: int, warp: int, first: int, count: int) -> None:
        """A warp frees columns that others must have done with.

        No fence is asked for: tcgen05.fence::after_thread_sync orders asynchronous instructions behind it, and a dealloc is
        none (PTX ISA 9.7.16.6.1, 9.7.16.11). Published kernels have only a barrier there.
        """
        at = block, slice(None), slice(first, first + count)
        pending, thread = self.pending[at], 32 * warp
        if pending.any():
            other = self.order.log[int(pending.max())][0]
            self.tell("early-dealloc", ins, other, block, thread)
        else:
            cluster, number = self._number(block, warp)
            # a barrier of the cluster is enough, relaxed as it may be: what was waited for is over
            known = np.maximum(self.order.known[cluster, number], self.order.ends[block])
            for times, by in (
                (self.read[at], self.reader[at]),
                (self.written[at], self.writer[at]),
            ):
                by = by.astype(np.int64)
                open_ = (times > known[by]) & (by != number)
                if open_.any():
                    other = self.order.log[int(times[open_].max())][0]
                    self.tell("early-dealloc", ins, other, block, thread)
                    break
        for table in (self.written, self.read, self.pending):
            table[at] = 0

    # --- Words ---

    def tell(self, kind: str, ins, earlier, block: int, thread: int, detail: str = "") -> None:
        if self.m.launch.report is None:
            return
        places = self.order.places
        who = block % self.m.cluster * self.m.T + thread
        seen = Seen(ins, earlier, block, who, 0, places)
        words.tell(self.m.launch.report, kind, seen, detail)
