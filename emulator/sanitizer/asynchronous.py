"""Hazards of what works on shared memory beside the threads: TMA and wgmma.

Bulk copies and wgmma are *agents* of their own: to the order of events (`order`) they are further warps,
numbered after the real ones. A copy's bytes are written by the agent of TMA when they land; the mbarrier
that counts them carries that on to whoever waits for its phase. wgmma reads its operands, by the agent of
its warpgroup, from the moment it is issued until `wgmma.wait_group`; a copy out of shared memory until
`cp.async.bulk.wait_group`. Whoever writes there in between is reported.

Agents see memory through the *async proxy* (PTX ISA 8.8). What a thread has written is theirs to read only
after a `fence.proxy.async`, by the writer or by the issuing thread after a barrier.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from emulator.sanitizer import words
from emulator.sanitizer.clusters import ClusterShadow
from emulator.sanitizer.granules import Lanes
from emulator.sanitizer.report import Seen

_GENERIC = -1  # the swizzle of what threads have written
_FRESH = 64  # lists of unfenced writes before they are put together


class AsyncShadow(ClusterShadow):
    """A Shadow of kernels with mbarriers, bulk copies, wgmma or clusters; chunk: the machine's chunk."""

    def __init__(self, chunk, report, symbols, warp_synchronous=()):
        groups = -(-chunk.T // 128)
        super().__init__(chunk, report, symbols, warp_synchronous, 2 + groups * chunk.cluster)
        self.tma, self.out = self.real, self.real + 1
        self.first_group, self.groups = self.real + 2, groups
        count = self.blocks * self.granules.count
        self.copying = np.zeros(count, np.int32)
        self.copier = np.zeros(count, np.int16)
        self.reading = self._last_reads(self.warps - self.real)  # by agent: the ticket under way
        self.reads_under_way = 0
        self.swizzle = np.full(count, _GENERIC, np.int16)
        self.generic = np.zeros(count, bool)  # whether a thread wrote it last, not an agent
        # when its writer executed fence.proxy.async, 0 for not yet
        self.fenced = np.zeros(count, np.int32)
        self.fresh: list = []  # writes of threads that were not followed by a fence
        self.published = np.zeros_like(self.known)
        self.crossed = np.zeros((self.blocks, self.warps), np.int32)  # last fence.proxy.async
        self.proxies = any(_reads_beside(ins) for ins in chunk.code.instructions.values())
        self.unfenced_inits: dict = {}  # (block, offset) -> (thread, instruction, whether it is known to others)
        self.flights: dict = {}  # ticket -> offset of the mbarrier
        self.reductions: set = set()  # tickets of copies that add to what is there
        self.waiters: dict = {}  # when a copy's read was over -> the thread that waited for it
        self.early: dict = {}  # offset -> (instruction, lanes) of waits that passed at once

    # --- What threads do ---

    def _write(self, address, mask, width, instruction, strong, values=None):
        super()._write(address, mask, width, instruction, strong, values)
        self._by_threads(address, mask, width)

    def _land(self, address, mask, width, ticket):
        super()._land(address, mask, width, ticket)
        self._by_threads(address, mask, width)

    def _by_threads(self, address, mask, width):
        """Threads have written there, by the generic proxy (cp.async too), and no fence has followed."""
        lanes, index = self.granules.lanes(address, mask, width)
        self.generic[index] = True
        self.fenced[index] = 0
        self.swizzle[index] = _GENERIC
        if self.proxies and len(index):
            self.fresh.append((index, lanes.block, lanes.thread))
            if len(self.fresh) > _FRESH:
                index = np.unique(np.concatenate([entry[0] for entry in self.fresh]))
                index = index[self.generic[index] & (self.fenced[index] == 0)]
                self.fresh = [(index, index // self.granules.count, self.writer[index])]

    def proxy_fence(self, lanes):
        """Lanes, (B, T), executed fence.proxy.async."""
        self.init_fence(lanes)
        now = self.tick(None, "fence")
        warps = self.warps_of(lanes)
        np.copyto(self.crossed, now, where=warps)
        np.copyto(self.published, np.maximum(self.published, self.known), where=warps[:, :, None])
        turned = lanes.reshape(self.blocks, self.threads)
        rest = []
        for index, block, thread in self.fresh:
            hit = turned[block, thread]
            mine = index[hit]
            current = (self.writer[mine] == thread[hit]) & self.generic[mine]
            self.fenced[mine[current]] = now
            if not hit.all():
                rest.append((index[~hit], block[~hit], thread[~hit]))
        self.fresh = rest

    # --- mbarriers ---

    def mbarrier_init(self, offset, lanes, instruction):
        super().mbarrier_init(offset, lanes, instruction)
        for block in np.flatnonzero(lanes.any(axis=1)).tolist():
            thread = int(lanes[block].argmax())
            self.unfenced_inits[block, offset] = (thread, instruction, self.together == 1)

    def init_fence(self, lanes):
        """Lanes executed fence.mbarrier_init, or a fence that includes it."""
        for key, (thread, *_) in list(self.unfenced_inits.items()):
            if lanes[key[0], thread]:
                del self.unfenced_inits[key]
        self.made.fence(lanes)

    def cluster_arrive(self, lanes, releases):
        super().cluster_arrive(lanes, releases)
        for key, (thread, instruction, _) in list(self.unfenced_inits.items()):
            if releases and lanes[key[0], thread]:
                self.unfenced_inits[key] = (thread, instruction, True)

    def passed_at_once(self, offset, lanes, instruction):
        """These lanes' wait was for a phase that was over when they came."""
        if offset in self.flights.values():
            self.early[offset] = (instruction, lanes.copy())

    def bytes_arrive(self, offset, blocks):
        """Copies have brought bytes to the mbarriers at `offset` of the blocks, (B,) bool."""
        for rank, of_rank in enumerate(blocks.reshape(self.blocks, self.together).T):
            if of_rank.any():
                warps = np.zeros((self.blocks, self.warps), bool)
                warps[:, self.tma] = of_rank
                super().release((("mbarrier", offset, "now"), rank), warps)

    # --- Agents ---

    def _index(self, chunks, unit=16):
        """Granules of pieces of `unit` bytes, numbered from the start of all shared memory: (..., n * per)."""
        size = self.together * self.stride
        place = np.asarray(chunks) * unit
        pad = self.granules.count - (size >> self.granules.shift)
        index = (place >> self.granules.shift) + place // size * pad
        per = unit >> self.granules.shift
        return (index[..., None] + np.arange(per)).reshape(*index.shape[:-1], -1)

    def _thread(self, block, thread):
        return block % self.together * self.own_threads + thread

    def bulk_issue(
        self,
        instruction,
        block,
        chunks,
        by_block,
        by_thread,
        barrier,
        swizzle,
        unit=16,
        reduces=False,
        whose=None,
    ):
        """Copies into shared memory are issued. Returns a ticket.

        block: (R,) of the destination; chunks: (R, n) pieces of `unit` bytes; by_block, by_thread: (R,) who
        issued them; barrier: (R,) offsets of mbarriers; swizzle: bytes, or None for a plain copy;
        reduces: it adds to what is there, which other such copies may do at the same time; whose: (R,) blocks
        of the mbarriers, None where they are the destinations'.
        """
        self._refine(unit)
        index = self._index(chunks, unit)
        thread = np.repeat(self._thread(by_block, by_thread), index.shape[1])
        lanes = Lanes(index.reshape(-1), np.repeat(block // self.together, index.shape[1]), thread)
        now = self.tick(instruction, "bulk")
        self.flights[now] = int(barrier[0])
        if self.together > 1:
            self.made.reached(block, by_block, by_thread, instruction)
        self.made.counts(
            barrier, block if whose is None else whose, by_block, by_thread, instruction
        )
        self.made.overwritten(lanes.index, lanes, instruction)
        for one, offset, t in zip(
            block.tolist(), barrier.tolist(), by_thread.tolist(), strict=True
        ):
            init = self.unfenced_inits.pop((one, offset), None)
            # cuda::memcpy_async makes plain bulk copies without this fence; tensor copies have it
            # everywhere (CUDA programming guide, CUTLASS), so its lack is told for them alone
            if init is not None and "tensor" in instruction:
                detail = "released" if init[2] else "relaxed"
                self._tell("missing-init-fence", instruction, init[1], one, t, offset, detail)
        if reduces:
            alone = ~np.isin(self.copying[lanes.index], list(self.reductions))
            self.reductions.add(now)
            some = Lanes(lanes.index[alone], lanes.block[alone], lanes.thread[alone])
            if len(some.index):
                self._check_write(some.index, some, now, False)
        else:
            self._check_write(lanes.index, lanes, now, False)
        if instruction.parts[0] == "cp" or "bulk" in instruction:
            self._check_overwritten(lanes, now)
        if instruction.parts[0] == "clusterlaunchcontrol":
            self._check_read_before(lanes, now)
        self.copying[lanes.index] = now
        self.copier[lanes.index] = lanes.thread
        self.swizzle[lanes.index] = _GENERIC if swizzle is None else swizzle
        return now

    def _check_overwritten(self, lanes, now):
        """Reports copies over what threads have written, without a fence between the proxies."""
        hit = np.flatnonzero(self.generic[lanes.index] & (self.copying[lanes.index] == 0))
        if not len(hit):
            return
        index, block, warp = lanes.index[hit], lanes.block[hit], lanes.thread[hit] >> 5
        writer, written = self.writer[index] >> 5, self.write_time[index]
        sees = self.known[block, warp, writer]
        hidden = self._hidden(
            index, written, sees, self.published[block, warp, writer], writer == warp
        )
        hit = hit[hidden & ((written <= sees) | (writer == warp))]
        if len(hit):
            at = lanes.index[hit]
            others = self.writer[at].astype(np.int64)
            times = self.write_time[at]
            self._report("missing-proxy-fence", lanes.index, lanes, hit, now, times, others, "into")

    def _check_read_before(self, lanes, now):
        """Reports an answer that is written over one that threads read, without a fence between the proxies."""
        index, block = lanes.index, lanes.block
        read = self.read_by.of(index)[:, : self.real]
        fence = np.maximum(
            self.crossed[block][:, : self.real], self.crossed[block, lanes.thread >> 5][:, None]
        )
        bad = (read > self.write_time[index][:, None]) & (fence < read)
        hit = np.flatnonzero(bad.any(axis=1))
        if len(hit):
            warp = bad[hit].argmax(axis=1)
            times = read[hit, warp]
            self._report("missing-proxy-fence", index, lanes, hit, now, times, 32 * warp, "over")

    def _hidden(self, index, written, sees, public, own):
        """Which writes of threads no fence.proxy.async shows to who `sees` up to then: neither the writer's own,
        which must be ordered before this, nor the issuing thread's.
        """
        fence = self.fenced[index]
        return ~((fence > 0) & ((fence <= sees) | own)) & (written > public)

    def bulk_land(self, ticket, block, chunks, unit=16):
        index = self._index(chunks, unit).reshape(-1)
        now = self.tick(self.log[ticket][0], "bulk")
        self.copying[index[self.copying[index] == ticket]] = 0
        self.write_time[index] = now
        self.writer[index] = self.tma * 32
        self.generic[index] = False
        self.known[np.unique(block // self.together), self.tma, self.tma] = now

    def bulk_read(self, instruction, owner, block, thread, chunks, swizzle=None):
        """A copy out of shared memory is issued by one thread. Returns a ticket."""
        index = self._index(chunks)[None]
        by = self._thread(block, thread)
        return self._agent_reads(
            instruction, "bulk read", index, np.array([block // self.together]),
            np.array([[by >> 5]]), np.array([self.out]), np.array([by]), swizzle,
        )  # fmt: skip

    def bulk_read_done(self, ticket, block, thread, chunks):
        index = self._index(chunks)[None]
        warps = np.array([[self._thread(block, thread) >> 5]])
        one = np.array([block // self.together])
        self._agent_done(ticket, index, one, warps, np.array([self.out]))
        self.waiters[self.now] = (block // self.together, self._thread(block, thread))

    def bulk_wait(self, lanes):
        """Lanes waited for their groups of copies out of shared memory."""

    def wgmma_read(self, instruction, block, group, chunks, swizzle):
        """wgmma of warpgroups `group` of `block`, (G,) each, starts to read pieces (G, n). Returns a ticket."""
        rank = block % self.together
        warps = (rank * self.own_threads // 32 + 4 * group)[:, None] + np.arange(4)
        agent = self.first_group + rank * self.groups + group
        swizzle = np.repeat(swizzle, 16 >> self.granules.shift, axis=1)
        return self._agent_reads(
            instruction, "wgmma", self._index(chunks), block // self.together, warps, agent,
            warps[:, 0] * 32, swizzle,
        )  # fmt: skip

    def wgmma_done(self, ticket, block, group, chunks):
        rank = block % self.together
        warps = (rank * self.own_threads // 32 + 4 * group)[:, None] + np.arange(4)
        agent = self.first_group + rank * self.groups + group
        self._agent_done(ticket, self._index(chunks), block // self.together, warps, agent)

    # --- Tensor cores of tcgen05: one agent for each block, that of its first warpgroup ---

    def tensor_core(self, block):
        """(cluster, number in the order) of a block's tensor core."""
        return block // self.together, self.first_group + block % self.together * self.groups

    def tensor_read(self, instruction, block, thread, chunks, swizzle):
        """A thread's tcgen05 starts to read pieces (n,), swizzled by (n,) bytes. Returns a ticket."""
        cluster, agent = self.tensor_core(block)
        by = self._thread(block, thread)
        swizzle = np.repeat(swizzle, 16 >> self.granules.shift)[None]
        return self._agent_reads(
            instruction, "tcgen05", self._index(chunks)[None], np.array([cluster]),
            np.array([[by >> 5]]), np.array([agent]), np.array([by]), swizzle,
        )  # fmt: skip

    def tensor_done(self, ticket, block, chunks):
        """Those reads are over; the tensor core knows it."""
        cluster, agent = self.tensor_core(block)
        one = np.array([cluster])
        index = self._index(chunks)[None]
        self._agent_done(ticket, index, one, np.array([[agent]]), np.array([agent]))

    def commit_arrives(self, offset, block, by):
        """The commit of a thread of block `by` arrives at the mbarrier at `offset` of `block`."""
        cluster, agent = self.tensor_core(by)
        warps = np.zeros((self.blocks, self.warps), bool)
        warps[cluster, agent] = True
        super().release((("mbarrier", offset, "now"), block % self.together), warps)

    def _agent_reads(self, instruction, what, index, block, warps, agent, thread, swizzle):
        """(R, k) granules are read from now on. block, agent, thread: (R,); warps: (R, j) that issued it."""
        now = self.tick(instruction, what)
        written, writer = self.write_time[index], self.writer[index]
        known = self.known[block[:, None], warps].min(axis=1)
        sees = np.take_along_axis(known, (writer >> 5).astype(np.int64), axis=1)
        copying = self.copying[index] > 0
        wrong = (written > sees) & (writer != thread[:, None])
        missing = (written == 0) & ~copying
        generic = self.generic[index] & ~copying & ~missing & ~wrong
        if copying.any() or wrong.any() or missing.any() or generic.any():
            self._report_agent(now, index, block, thread, copying, missing, wrong)
            if generic.any():
                published = self.published[block[:, None], warps].max(axis=1)
                public = np.take_along_axis(published, (writer >> 5).astype(np.int64), axis=1)
                own = writer >> 5 == thread[:, None] >> 5
                hidden = generic & self._hidden(index, written, sees, public, own)
                self._report_some("missing-proxy-fence", now, index, block, thread, hidden)
        if swizzle is not None:
            found = self.swizzle[index]
            other = (found != swizzle) & (found != _GENERIC) & ~missing
            if other.any():
                self._report_some("wrong-swizzle", now, index, block, thread, other)
        self.reading.put(index, agent[:, None] - self.real, now)
        self.reads_under_way += 1
        return now

    def _agent_done(self, ticket, index, block, warps, agent):
        """Those reads are over, and the warps (R, j) know it."""
        now = self.tick(self.log[ticket][0], self.log[ticket][1])
        column = np.broadcast_to(agent[:, None] - self.real, index.shape)
        over = self.reading.by(index, column) == ticket
        self.reading.put(index[over], column[over], 0)
        self.reads_under_way -= 1
        self.read_by.put(index, agent[:, None], now)
        self.reader[index] = agent[:, None] * 32
        self.read_time[index] = now
        self.known[block[:, None], warps, agent[:, None]] = now
        self.known[block, agent, agent] = now

    def _check_write(self, index, lanes, now, strong):
        super()._check_write(index, lanes, now, strong)
        if self.reads_under_way:
            reading = self.reading.last(index)
            hit = np.flatnonzero(reading)
            if len(hit):
                self._report("unfinished-read", index, lanes, hit, now, reading[hit])

    def _check_waits(self, index, lanes, recent, read, late, now):
        if not self.waiters:
            return
        # a wait for a copy's read is its thread's own: the other lanes of the warp have to meet it
        read, late = read[:, self.out], late[:, self.out]
        some = np.flatnonzero((read > 0) & ~late)
        thread, block = lanes.thread[recent], lanes.block[recent]
        warp = thread >> 5
        late = some[read[some] > self.known[block[some], warp[some], warp[some]]]
        for time in np.unique(read[late]).tolist():
            cluster, waiter = self.waiters.get(time, (-1, 0))
            at = late[read[late] == time]
            at = at[(block[at] == cluster) & (warp[at] == waiter >> 5) & (thread[at] != waiter)]
            if len(at):
                stamps = np.full(len(at), time)
                self._report(
                    "write-after-read", index, lanes, recent[at], now, stamps, None, "lanes"
                )

    def _refine(self, width):
        before = self.granules.shift
        super()._refine(width)
        times = 1 << (before - self.granules.shift)
        if times > 1:
            self.reading.refine(times)
            for name in ("swizzle", "generic", "fenced"):
                setattr(self, name, np.repeat(getattr(self, name), times, axis=0))
            self.fresh = [
                (
                    (index[:, None] * times + np.arange(times)).reshape(-1),
                    np.repeat(block, times),
                    np.repeat(thread, times),
                )
                for index, block, thread in self.fresh
            ]

    # --- Reports ---

    def _report_agent(self, now, index, block, thread, copying, missing, wrong):
        flat, lanes = self._flat(index, block, thread)
        hit = np.flatnonzero(copying)
        if len(hit):
            times = self.copying[flat[hit]]
            others = self.copier[flat[hit]].astype(np.int64)
            self._report("unfinished-copy", flat, lanes, hit, now, times, others)
        hit = np.flatnonzero(missing)
        if len(hit):
            self._report("uninitialised-read", flat, lanes, hit, now)
        hit = np.flatnonzero(wrong & ~copying & ~missing)
        if len(hit):
            others = self.writer[flat[hit]].astype(np.int64)
            self._report(
                "read-after-write", flat, lanes, hit, now, self.write_time[flat[hit]], others
            )

    def _report_some(self, kind, now, index, block, thread, which):
        flat, lanes = self._flat(index, block, thread)
        hit = np.flatnonzero(which)
        if len(hit):
            others = self.writer[flat[hit]].astype(np.int64)
            self._report(kind, flat, lanes, hit, now, self.write_time[flat[hit]], others)

    @staticmethod
    def _flat(index, block, thread):
        flat, per = index.reshape(-1), index.shape[1]
        return flat, Lanes(flat, np.repeat(block, per), np.repeat(thread, per))

    def _described(self, kind, seen, granule, time):
        thread = seen.thread
        block = seen.block * self.together + min(thread, self.threads - 1) // self.own_threads
        other = None if seen.other is not None and seen.other >= self.threads else seen.other
        extra = self._early_wait(time, block, thread) if kind == "unfinished-copy" else None
        swizzles = (int(self.swizzle[granule]),) if kind == "wrong-swizzle" else ()
        seen = replace(seen, block=block, address=seen.address % self.stride, other=other)
        return words.describe(kind, seen, extra, swizzles)

    def _early_wait(self, ticket, block, thread):
        """The instruction by which this thread waited for a copy's mbarrier, and passed at once."""
        offset = self.flights.get(ticket)
        instruction, lanes = self.early.get(offset, (None, None))
        own = thread % self.own_threads
        return instruction if lanes is not None and lanes[block, own] else None

    def _tell(self, kind, instruction, earlier, block, thread, address, detail):
        seen = Seen(instruction, earlier, block, thread, address, self.places)
        words.tell(self.report, kind, seen, detail)

    def left_under_way(self, instruction, blocks, what, thread=0):
        """Blocks have ended before a copy into (`load`) or out of (`store`) their shared memory."""
        seen = Seen(instruction, None, int(blocks[0]), thread, 0, self.places)
        words.tell(self.report, "exit-before-copy", seen, what)


def _reads_beside(ins) -> bool:
    """Whether an agent reads or writes shared memory by this instruction."""
    return "mma_async" in ins or ins.parts[0] == "tcgen05" or "bulk" in ins
