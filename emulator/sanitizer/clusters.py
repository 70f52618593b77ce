"""The blocks of a cluster, which reach each other's shared memory, under one shadow.

To it they are one block with all their threads, their shared memories one after the other.
"""

from __future__ import annotations

import numpy as np

from emulator.sanitizer import words
from emulator.sanitizer.granules import Pattern, Shifted
from emulator.sanitizer.last_reads import LastReads
from emulator.sanitizer.made import Made, ends_some
from emulator.sanitizer.report import Places, Seen
from emulator.sanitizer.shadow import Shadow


class ClusterShadow(Shadow):
    """A Shadow whose blocks may be clusters of the chunk's.

    chunk: the machine's chunk; `together` blocks of it are one block here. agents: further warps, numbered after
    the real ones, for what works on shared memory beside the threads.
    """

    def __init__(self, chunk, report, symbols, warp_synchronous, agents):
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
            warp_synchronous, agents,
        )  # fmt: skip
        self.real = threads // 32
        self.warps = self.real + agents
        self.known = np.zeros((blocks, self.warps, self.warps), np.int32)
        self.met = np.zeros((blocks, self.warps), np.int32)
        self.reach = np.zeros((chunk.B, self.warps), np.int32)  # last access from afar, by warp
        # when a warp came to the cluster's barrier (of a tensor core: what of it those knew who came): now, in the last round,
        # as a block knows it
        self.came, self.gone = np.zeros((2, blocks, self.warps), np.int32)
        self.ends = np.zeros_like(self.reach)
        self.rank_base = None
        self.turned: dict = {}
        self.made = Made(self, chunk.B, chunk.T, chunk.cluster, ends_some(chunk.code))
        if chunk.cluster > 1:
            ranks = np.arange(threads, dtype=np.int64) // own * self.stride
            self.rank_base = Pattern(ranks[None])
            chunk.endings.append(lambda m: self._check_exits(m))

    def _last_reads(self, warps):
        if self.together == 1:
            return super()._last_reads(warps)
        granule = np.arange(self.granules.count) // (self.stride >> self.granules.shift)
        rank = np.minimum(granule, self.together - 1).astype(np.int8)
        return LastReads(self.blocks * len(rank), warps, np.tile(rank, self.blocks))

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

    def release(self, key, warps, weak=False, afar=False):
        if self._of_cluster(warps):
            return super().release(key, warps, weak, afar)
        for rank, whole in self._by_rank(warps):
            super().release((key, rank), whole, weak, afar)

    def acquire(self, key, warps, weak=False):
        if self._of_cluster(warps):
            return super().acquire(key, warps, weak)
        for rank, whole in self._by_rank(warps):
            super().acquire((key, rank), whole, weak)

    def transfer(self, key, other, blocks):
        for rank, of_rank in enumerate(blocks.reshape(self.blocks, self.together).T):
            super().transfer((key, rank), (other, rank), of_rank)

    def release_afar(self, key, lanes, owners, instruction):
        """Lanes, (B, T), arrive at mbarriers of the blocks `owners`, (B, T)."""
        ranks, weak = owners % self.together, "relaxed" in instruction
        for rank in np.unique(ranks[lanes]).tolist():
            here = lanes & (ranks == rank)
            self._reached(here, owners, instruction)
            super().release((key, rank), self.warps_of(here), weak, True)

    def _reached(self, lanes, owners, instruction):
        now = self.tick(instruction, "remote")
        block, thread = np.nonzero(lanes)
        owner = owners[block, thread]
        if self.together > 1:
            self.made.reached(owner, block, thread, instruction)
        warp = (block % self.together * self.own_threads + thread) >> 5
        self.reach[owner, warp] = now

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
        """Lanes, (B, T), arrived at barrier.cluster; what they wrote is ordered if that `releases`, or if a fence did."""
        warps = self.warps_of(lanes)
        if releases or self.performed is not None:
            super().release(("cluster", "now"), warps, not releases, True)
        if self._device is not None:
            self._device.device.cluster_arrive(lanes, releases)
        self.came[warps] = self.now
        # what a tensor core did, and one of them waited for, is over
        seen = np.where(warps[:, :, None], self.known, 0).max(axis=1)[:, self.real :]
        np.maximum(self.came[:, self.real :], seen, out=self.came[:, self.real :])
        self.made.cluster_arrive(lanes)

    def cluster_complete(self, clusters):
        """The barriers of these clusters, (clusters,) bool, have everyone."""
        Shadow.transfer(self, ("cluster", "now"), ("cluster", "past"), clusters)
        self.gone[clusters] = self.came[clusters]
        self.made.cluster_complete(clusters)

    def cluster_wait(self, lanes):
        warps = self.warps_of(lanes)
        super().acquire(("cluster", "past"), warps)
        self.made.cluster_wait(warps)
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

    def copy(self, address, mask, width, instruction):
        return super().copy(self._address(address), self._mask(mask), width, instruction)

    def land(self, address, mask, width, ticket):
        self._land(self._address(address), self._mask(mask), width, ticket)

    def _land(self, address, mask, width, ticket):
        super().land(address, mask, width, ticket)

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

    def _check_exits(self, m):
        """An access from afar must come before the end of the block that it reaches."""
        per = self.own_threads // 32
        for block in range(len(self.reach)):
            cluster, rank = divmod(block, self.together)
            ends = self.known[cluster, rank * per : (rank + 1) * per].max(axis=0)
            ends = np.maximum(ends, self.ends[block])
            late = np.flatnonzero(self.reach[block] > ends)
            for warp in late[
                late // per != rank
            ].tolist():  # a block's own memory lasts as long as it
                by = warp * 32
                from_block = cluster * self.together + by // self.own_threads
                instruction = self.log[int(self.reach[block, warp])][0]
                seen = Seen(instruction, None, from_block, by, 0, self.places)
                words.tell(self.report, "exited-block", seen, self.places.block_of(block))


class _OfBlocks:
    """A ClusterShadow's order without agents, and by block where it has clusters."""

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

    def known_by(self, block, warp):
        """A row of `known`."""
        cluster, rank = divmod(block, self.shadow.together)
        first = rank * self.per_block
        return self.shadow.known[cluster, first + warp, first : first + self.per_block]

    def known_of_copies(self, block, warp):
        """(n,): up to when copies into shared memory have landed, as warps (n,) of blocks (n,) know."""
        cluster, rank = np.divmod(block, self.shadow.together)
        return self.shadow.known[cluster, rank * self.per_block + warp, self.shadow.real]

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
