"""Hazards of what works on shared memory beside the threads: TMA and wgmma, and of clusters.

Bulk copies and wgmma are *agents* of their own: to the order of events (`order`) they are further warps,
numbered after the real ones. A copy's bytes are written by the agent of TMA when they land; the mbarrier
that counts them carries that on to whoever waits for its phase. wgmma reads its operands, by the agent of
its warpgroup, from the moment it is issued until `wgmma.wait_group`; a copy out of shared memory until
`cp.async.bulk.wait_group`. Whoever writes there in between is reported.

Agents see memory through the *async proxy* (PTX ISA 8.8). What a thread has written is theirs to read only
after a `fence.proxy.async`, by the writer or by the issuing thread after a barrier.

The blocks of a cluster share one shadow: to it they are one block with all their threads, their shared
memories one after the other.
"""

from __future__ import annotations

import numpy as np

from emulator.sanitizer import words
from emulator.sanitizer.granules import Lanes, Pattern, Shifted
from emulator.sanitizer.report import Places
from emulator.sanitizer.shadow import Shadow

_GENERIC = -1  # the swizzle of what threads have written
_FRESH = 64  # lists of unfenced writes before they are put together


class AsyncShadow(Shadow):
    """A Shadow of kernels with mbarriers, bulk copies, wgmma or clusters.

    chunk: the machine's chunk. `together` blocks of it are one block here.
    """

    def __init__(self, chunk, report, symbols, warp_synchronous=()):
        self.together, self.stride = chunk.cluster, chunk.shared.stride
        self.own_threads = chunk.T
        blocks, threads = chunk.B // chunk.cluster, chunk.T * chunk.cluster
        x, y, _ = chunk.launch.block
        own = chunk.T
        places = Places(
            symbols,
            block_of=lambda b: tuple(int(i) for i in chunk.blocks[b]),
            thread_of=lambda t: (t % own % x, t % own // x % y, t % own // (x * y)),
        )
        alive = lambda: chunk.lanes_of(chunk.alive).reshape(blocks, threads)  # noqa: E731
        super().__init__(
            blocks, threads, chunk.cluster * chunk.shared.stride, report, places, True, alive,
            warp_synchronous,
        )  # fmt: skip
        self.real = threads // 32
        groups = -(-own // 128)
        self.tma, self.out = self.real, self.real + 1
        self.first_group, self.groups = self.real + 2, groups
        self.warps = self.real + 2 + groups * chunk.cluster
        self.known = np.zeros((blocks, self.warps, self.warps), np.int32)
        self.met = np.zeros((blocks, self.warps), np.int32)
        count = blocks * self.granules.count
        self.read_by = np.zeros((count, self.warps), np.int32)
        self.copying = np.zeros(count, np.int32)
        self.copier = np.zeros(count, np.int16)
        self.reading = np.zeros((count, self.warps - self.real), np.int32)  # by agent: its ticket
        self.reads_under_way = 0
        self.swizzle = np.full(count, _GENERIC, np.int16)
        self.generic = np.zeros(count, bool)  # whether a thread wrote it last, not an agent
        self.fenced = np.zeros(
            count, np.int32
        )  # when its writer executed fence.proxy.async, 0 for not yet
        self.fresh: list = []  # writes of threads that were not followed by a fence
        self.published = np.zeros_like(self.known)
        self.proxies = any(_reads_beside(ins) for ins in chunk.code.instructions.values())
        self.unfenced_inits: dict = {}  # (block, offset) -> (thread, instruction)
        self.flights: dict = {}  # ticket -> offset of the mbarrier
        self.reductions: set = set()  # tickets of copies that add to what is there
        self.early: dict = {}  # offset -> (instruction, lanes) of waits that passed at once
        self.reach = np.zeros((chunk.B, self.warps), np.int32)  # last access from afar, by warp
        # when a warp came to the cluster's barrier: now, in the last round, as a block knows it
        self.came, self.gone = np.zeros((2, blocks, self.warps), np.int32)
        self.ends = np.zeros_like(self.reach)
        self.rank_base = None
        self.turned: dict = {}
        if chunk.cluster > 1:
            ranks = np.arange(threads, dtype=np.int64) // own * self.stride
            self.rank_base = Pattern(ranks[None])
            chunk.endings.append(lambda m: self._check_exits(m))

    # --- Blocks of a cluster as one ---

    def _address(self, address):
        """An address in a block's own shared memory as one in the cluster's."""
        if self.together == 1:
            return address
        if isinstance(address, (int, np.integer)):
            return Shifted(self.rank_base, int(address))
        pattern = address.pattern
        known = pattern.facts.get("in cluster")
        if known is None or known[0] is not self:
            shape = (self.blocks * self.together, self.own_threads)
            array = np.broadcast_to(pattern.array, shape).reshape(self.blocks, -1)
            array = array + self.rank_base.array
            known = (self, Pattern(array))
            pattern.remember("in cluster", known)
        return Shifted(known[1], address.offset)

    def _mask(self, mask):
        if self.together == 1 or mask is None:
            return mask
        known = self.turned.get(id(mask))
        if known is None or known[0] is not mask:
            if len(self.turned) > 16:
                self.turned.clear()
            known = self.turned[id(mask)] = (mask, mask.reshape(self.blocks, self.threads))
        return known[1]

    def of_blocks(self):
        return _OfBlocks(self)

    @property
    def device(self):
        """What watches global memory, told of real warps only; see `Order`."""
        return self._device

    @device.setter
    def device(self, found):
        self._device = None if found is None else _Joined(found, self)

    @property
    def threads(self):
        return self.real * 32

    def warps_of(self, lanes):
        warps = np.zeros((self.blocks, self.warps), bool)
        warps[:, : self.real] = lanes.reshape(self.blocks, self.real, 32).any(axis=2)
        return warps

    def _of_cluster(self, warps) -> bool:
        return warps.shape == (self.blocks, self.warps)

    def _by_rank(self, warps):
        """(rank, warps of the cluster) for warps, (chunk's blocks, warps of a block)."""
        per = self.own_threads // 32
        each = warps.reshape(self.blocks, self.together, per)
        for rank in range(self.together):
            if each[:, rank].any():
                whole = np.zeros((self.blocks, self.warps), bool)
                whole[:, rank * per : (rank + 1) * per] = each[:, rank]
                yield rank, whole

    def release(self, key, warps):
        if self._of_cluster(warps):
            return super().release(key, warps)
        for rank, whole in self._by_rank(warps):
            super().release((key, rank), whole)

    def acquire(self, key, warps):
        if self._of_cluster(warps):
            return super().acquire(key, warps)
        for rank, whole in self._by_rank(warps):
            super().acquire((key, rank), whole)

    def transfer(self, key, other, blocks):
        for rank, of_rank in enumerate(blocks.reshape(self.blocks, self.together).T):
            super().transfer((key, rank), (other, rank), of_rank)

    def release_afar(self, key, lanes, owners, instruction):
        """Lanes, (B, T), arrive at mbarriers of the blocks `owners`, (B, T)."""
        ranks = owners % self.together
        for rank in np.unique(ranks[lanes]).tolist():
            here = lanes & (ranks == rank)
            self._reached(here, owners, instruction)
            super().release((key, rank), self.warps_of(here))

    def _reached(self, lanes, owners, instruction):
        now = self.tick(instruction, "remote")
        block, thread = np.nonzero(lanes)
        warp = (block % self.together * self.own_threads + thread) >> 5
        self.reach[owners[block, thread], warp] = now

    def barrier(self, number, lanes, done):
        if self.together == 1:
            return super().barrier(number, lanes, done)
        for rank, whole in self._by_rank(lanes.reshape(*lanes.shape[:1], -1, 32).any(axis=2)):
            of_rank = done.reshape(self.blocks, self.together)[:, rank]
            key = (("bar", number), rank)
            super().release(key, whole & of_rank[:, None])
            super().acquire(key, whole & of_rank[:, None])
            self.forget(key, of_rank)

    def barrier_arrive(self, number, lanes):
        if self.together == 1:
            return super().barrier_arrive(number, lanes)
        self.release(("bar", number), lanes.reshape(len(lanes), -1, 32).any(axis=2))

    def cluster_arrive(self, lanes, releases):
        """Lanes, (B, T), arrived at barrier.cluster; what they wrote is ordered if that `releases`."""
        warps = self.warps_of(lanes)
        if releases:
            super().release(("cluster", "now"), warps)
            if self._device is not None:
                self._device.device.cluster_arrive(lanes)
        self.came[warps] = self.now

    def cluster_complete(self, clusters):
        """The barriers of these clusters, (clusters,) bool, have everyone."""
        Shadow.transfer(self, ("cluster", "now"), ("cluster", "past"), clusters)
        self.gone[clusters] = self.came[clusters]

    def cluster_wait(self, lanes):
        super().acquire(("cluster", "past"), self.warps_of(lanes))
        if self._device is not None:
            self._device.device.cluster_wait(lanes)
        for block in np.flatnonzero(lanes.any(axis=1)).tolist():
            np.maximum(self.ends[block], self.gone[block // self.together], out=self.ends[block])

    # --- What threads do ---

    def read(self, address, mask, width, instruction, strong=False):
        super().read(self._address(address), self._mask(mask), width, instruction, strong)

    def write(self, address, mask, width, instruction, strong=False, values=None):
        if values is not None and self.together > 1:
            shape = (self.blocks * self.together, self.own_threads)
            turned = (self.blocks, self.threads)
            values = [np.broadcast_to(value, shape).reshape(turned) for value in values]
        self._write(self._address(address), self._mask(mask), width, instruction, strong, values)

    def _write(self, address, mask, width, instruction, strong, values=None):
        super().write(address, mask, width, instruction, strong, values)
        lanes, base = self.granules.lanes(address, mask, width)
        index = lanes.index + base
        self.generic[index] = True
        self.fenced[index] = 0
        self.swizzle[index] = _GENERIC
        if self.proxies and len(index):
            self.fresh.append((index, lanes.block, lanes.thread))
            if len(self.fresh) > _FRESH:
                index = np.unique(np.concatenate([entry[0] for entry in self.fresh]))
                index = index[self.generic[index] & (self.fenced[index] == 0)]
                self.fresh = [(index, index // self.granules.count, self.writer[index])]

    def copy(self, address, mask, width, instruction):
        return super().copy(self._address(address), self._mask(mask), width, instruction)

    def land(self, address, mask, width, ticket):
        address, mask = self._address(address), self._mask(mask)
        super().land(address, mask, width, ticket)
        lanes, base = self.granules.lanes(address, mask, width)
        self.generic[lanes.index + base] = True
        self.fenced[lanes.index + base] = 0
        self.swizzle[lanes.index + base] = _GENERIC

    def remote(self, lanes, whose, offsets, width, instruction, kind, strong):
        """Lanes access other blocks' shared memory. whose, offsets: (B, T), the block and the byte in it."""
        where = offsets + whose % self.together * self.stride
        where = where.reshape(self.blocks, self.threads)
        turned = lanes.reshape(self.blocks, self.threads)
        if kind != "store":
            super().read(where, turned, width, instruction, strong)
        if kind != "load":
            self._write(where, turned, width, instruction, strong)
        self._reached(lanes, whose, instruction)

    def proxy_fence(self, lanes):
        """Lanes, (B, T), executed fence.proxy.async."""
        self.init_fence(lanes)
        now = self.tick(None, "fence")
        warps = self.warps_of(lanes)
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
        for block in np.flatnonzero(lanes.any(axis=1)).tolist():
            self.unfenced_inits[block, offset] = (int(lanes[block].argmax()), instruction)

    def init_fence(self, lanes):
        """Lanes executed fence.mbarrier_init, or a fence that includes it."""
        for key, (thread, _) in list(self.unfenced_inits.items()):
            if lanes[key[0], thread]:
                del self.unfenced_inits[key]

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
    ):
        """Copies into shared memory are issued. Returns a ticket.

        block: (R,) of the destination; chunks: (R, n) pieces of `unit` bytes; by_block, by_thread: (R,) who
        issued them; barrier: (R,) offsets of mbarriers; swizzle: bytes, or None for a plain copy;
        reduces: it adds to what is there, which other such copies may do at the same time.
        """
        self._refine(unit)
        index = self._index(chunks, unit)
        thread = np.repeat(self._thread(by_block, by_thread), index.shape[1])
        lanes = Lanes(index.reshape(-1), np.repeat(block // self.together, index.shape[1]), thread)
        now = self.tick(instruction, "bulk")
        self.flights[now] = int(barrier[0])
        for one, offset, t in zip(
            block.tolist(), barrier.tolist(), by_thread.tolist(), strict=True
        ):
            init = self.unfenced_inits.pop((one, offset), None)
            # cuda::memcpy_async makes plain bulk copies without this fence; tensor copies have it
            # everywhere (CUDA programming guide, CUTLASS), so its lack is told for them alone
            if init is not None and "tensor" in instruction:
                self._tell("missing-init-fence", instruction, init[1], one, t, offset)
        if reduces:
            alone = ~np.isin(self.copying[lanes.index], list(self.reductions))
            self.reductions.add(now)
            some = Lanes(lanes.index[alone], lanes.block[alone], lanes.thread[alone])
            if len(some.index):
                self._check_write(some.index, some, now, False)
        else:
            self._check_write(lanes.index, lanes, now, False)
        self.copying[lanes.index] = now
        self.copier[lanes.index] = lanes.thread
        self.swizzle[lanes.index] = _GENERIC if swizzle is None else swizzle
        return now

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
                fence = self.fenced[
                    index
                ]  # the writer's own, which must be ordered before this ...
                published = self.published[block[:, None], warps].max(axis=1)
                public = np.take_along_axis(published, (writer >> 5).astype(np.int64), axis=1)
                own = writer >> 5 == thread[:, None] >> 5
                seen = (fence > 0) & ((fence <= sees) | own)
                hidden = generic & ~seen & (written > public)  # ... or the issuing thread's
                self._report_some("missing-proxy-fence", now, index, block, thread, hidden)
        if swizzle is not None:
            found = self.swizzle[index]
            other = (found != swizzle) & (found != _GENERIC) & ~missing
            if other.any():
                self._report_some("wrong-swizzle", now, index, block, thread, other)
        self.reading[index, agent[:, None] - self.real] = now
        self.reads_under_way += 1
        return now

    def _agent_done(self, ticket, index, block, warps, agent):
        """Those reads are over, and the warps (R, j) know it."""
        now = self.tick(self.log[ticket][0], self.log[ticket][1])
        column = np.broadcast_to(agent[:, None] - self.real, index.shape)
        over = self.reading[index, column] == ticket
        self.reading[index[over], column[over]] = 0
        self.reads_under_way -= 1
        self.read_by[index, agent[:, None]] = now
        self.reader[index] = agent[:, None] * 32
        self.read_time[index] = now
        self.known[block[:, None], warps, agent[:, None]] = now
        self.known[block, agent, agent] = now

    def _check_write(self, index, lanes, now, strong):
        super()._check_write(index, lanes, now, strong)
        if self.reads_under_way:
            reading = self.reading[index].max(axis=1)
            hit = np.flatnonzero(reading)
            if len(hit):
                self._report("unfinished-read", index, lanes, hit, now, reading[hit])

    def _refine(self, width):
        before = self.granules.shift
        super()._refine(width)
        times = 1 << (before - self.granules.shift)
        if times > 1:
            for name in ("reading", "swizzle", "generic", "fenced"):
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

    def _hazard(self, kind, now, time, index, lanes, at, other, did=None):
        (instruction, _), (earlier, manner) = self.log[now], self.log[time]
        did = did or manner
        cluster, thread = int(lanes.block[at]), int(lanes.thread[at])
        granule = int(index[at])
        if other is not None and other >= 1 << 16:
            other = self._a_reader(granule, time, thread, other)
        if other is not None and other >= self.threads:
            other = None
        address = (granule - cluster * self.granules.count) << self.granules.shift
        block = cluster * self.together + min(thread, self.threads - 1) // self.own_threads
        extra = self._early_wait(time, block, thread) if kind == "unfinished-copy" else None
        swizzles = (int(self.swizzle[granule]),) if kind == "wrong-swizzle" else ()
        return words.describe(
            kind, instruction, earlier, did, block, thread, other, address % self.stride,
            self.places, extra, swizzles,
        )  # fmt: skip

    def _early_wait(self, ticket, block, thread):
        """The instruction by which this thread waited for a copy's mbarrier, and passed at once."""
        offset = self.flights.get(ticket)
        instruction, lanes = self.early.get(offset, (None, None))
        own = thread % self.own_threads
        return instruction if lanes is not None and lanes[block, own] else None

    def _tell(self, kind, instruction, earlier, block, thread, address):
        words.tell(self.report, kind, instruction, earlier, block, thread, address, self.places)

    def left_under_way(self, instruction, blocks, what, thread=0):
        """Blocks have ended before a copy into (`load`) or out of (`store`) their shared memory."""
        kind = "exit-before-copy"
        words.tell(
            self.report, kind, instruction, None, int(blocks[0]), thread, 0, self.places, what
        )

    def _check_exits(self, m):
        """An access from afar must come before the end of the block that it reaches."""
        per = self.own_threads // 32
        for block in range(len(self.reach)):
            cluster, rank = divmod(block, self.together)
            ends = self.known[cluster, rank * per : (rank + 1) * per].max(axis=0)
            ends = np.maximum(ends, self.ends[block])
            late = np.flatnonzero(self.reach[block] > ends)
            for warp in late.tolist():
                by = warp * 32
                from_block = cluster * self.together + by // self.own_threads
                instruction = self.log[int(self.reach[block, warp])][0]
                words.tell(
                    self.report, "exited-block", instruction, None, from_block, by, 0,
                    self.places, self.places.block_of(block),
                )  # fmt: skip


class _OfBlocks:
    """An AsyncShadow's order without agents, and by block where it has clusters."""

    def __init__(self, shadow):
        self.shadow = shadow
        self.tick, self.flag = shadow.tick, shadow.flag
        self.per_block = shadow.own_threads // 32

    @property
    def now(self):
        return self.shadow.now

    @property
    def known(self):
        """(blocks, warps, warps): see `Order`."""
        per, ranks = self.per_block, range(self.shadow.together)
        spans = [slice(rank * per, (rank + 1) * per) for rank in ranks]
        parts = [self.shadow.known[:, span, span] for span in spans]
        return np.stack(parts, axis=1).reshape(-1, per, per)

    def warps_of(self, lanes):
        return lanes.reshape(len(lanes), self.per_block, 32).any(axis=2)


class _Joined:
    """Passes on to what watches global memory which warps met: those of a cluster know of each other."""

    def __init__(self, device, shadow):
        self.device, self.shadow = device, shadow

    def joined(self, warps):
        real = warps[:, : self.shadow.real]
        acquired = self.device.acquired.reshape(real.shape)
        most = np.where(real, acquired, 0).max(axis=1, keepdims=True)
        np.maximum(acquired, most, out=acquired, where=real)


def _reads_beside(ins) -> bool:
    """Whether an agent reads shared memory by this instruction."""
    if "mma_async" in ins:
        return True
    return "bulk" in ins and ("bulk_group" in ins or ins.parts.count("shared::cta") > 0)
