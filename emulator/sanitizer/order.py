"""What happened before what: vector clocks of the warps, in one time, which is a count of events."""

import numpy as np


class Order:
    """Up to when each warp is ordered after each other warp of its block.

    `known[b, w, v]`: what warp v of block b did up to then happens before what warp w does next.
    `floor[b]` is a block's smallest entry: what is older is ordered for everybody; `lowest` is the
    smallest floor. `met[b, w]`: when the lanes of a warp last took part in a shuffle or vote together:
    what one of them read before, another may overwrite since. `log[time]` is (instruction, what it
    did). alive: returns the threads that have not exited, (blocks, threads) bool.
    """

    def __init__(self, blocks, threads, alive=None):
        self.blocks, self.warps, self.alive = blocks, threads // 32, alive
        self.now = self.start = 0  # start: when the first instruction ran
        self.log = [(None, "")]
        self.floor = np.zeros(blocks, np.int32)
        self.lowest = 0
        self.known = np.zeros((blocks, self.warps, self.warps), np.int32)
        self.met = np.zeros((blocks, self.warps), np.int32)
        self.released = {}
        self.device = None  # what watches global memory, and is told who met
        # in kernels with relaxed accesses: `known` at each warp's last fence, for its block and for its cluster, and
        # what relaxed reads have told it, which its next fence makes known
        self.performed = self.heard = None

    def heed_fences(self):
        """Relaxed accesses order what fences stand around, from now on."""
        self.performed = np.zeros((2, *self.known.shape), np.int32)
        self.heard = np.zeros_like(self.known)

    def fence(self, lanes, wide):
        """Lanes executed a fence, of a scope beyond their block if `wide`."""
        if self.performed is None:
            return
        self.tick(None, "fence")
        rows = self.warps_of(lanes)[:, :, None]
        np.maximum(self.known, self.heard, out=self.known, where=rows)
        own = np.eye(self.known.shape[1], dtype=bool) & rows
        clock = np.where(own, self.now, self.known)
        np.copyto(self.performed[: 1 + wide], clock, where=rows)
        self._settle()

    def barrier(self, number, lanes, done):
        """Lanes met at barrier `number` in the blocks `done`, (blocks,) bool."""
        here = self.warps_of(lanes)
        arrived = self.released.get(("bar", number))
        there = here if self.alive is None else here | ~self.warps_of(self.alive())
        full = done & there.all(axis=1)
        if full.all():
            self.tick(None, "barrier")
            self.known[...] = self.now
            self.floor[...] = self.now
            self.lowest = self.now
        else:
            self.release(("bar", number), here & done[:, None])
            self.acquire(("bar", number), here & done[:, None])
            self.known[full] = self.now
            self._settle()
        if arrived is not None or not full.all():
            self.forget(("bar", number), done)
        if self.device is not None:
            self.device.joined(here & done[:, None])

    def barrier_arrive(self, number, lanes):
        """Lanes arrived at barrier `number` without waiting."""
        self.release(("bar", number), self.warps_of(lanes))

    def warp_barrier(self, lanes=None):
        """These lanes, (blocks, threads) bool or None for all, executed a `.sync` together."""
        self.tick(None, "sync")
        own = np.einsum("bww->bw", self.known)  # a writable view of the diagonals
        if lanes is None:
            own[...] = self.now
        else:
            own[self.warps_of(lanes)] = self.now
        if self.warps == 1:
            self._settle()

    def collective(self, lanes=None):
        """These lanes executed a shuffle, a vote or the like together."""
        self.tick(None, "collective")
        if lanes is None:
            self.met[...] = self.now
        else:
            self.met[self.warps_of(lanes)] = self.now

    def flag(self, key, warps, reads, writes, weak=False):
        """These warps, (blocks, warps) bool, read or write what is called `key`, or both, one after the other.

        weak: without order but for that of the fences around.
        """
        if reads and writes and (warps.sum(axis=1) > 1).any():
            for warp in range(warps.shape[1]):
                alone = np.zeros_like(warps)
                alone[:, warp] = warps[:, warp]
                if alone.any():
                    self.acquire(key, alone, weak)
                    self.release(key, alone, weak)
            return
        if reads:
            self.acquire(key, warps, weak)
        if writes:
            self.release(key, warps, weak)

    def release(self, key, warps, weak=False, afar=False):
        """These warps, (blocks, warps) bool, arrive at what is called `key` (any hashable); weak: see `flag`.

        afar: for another block, which a fence of the block's scope says nothing.
        """
        self.tick(None, "arrive")
        clock = self.released.get(key)
        if clock is None:
            clock = self.released[key] = np.zeros((self.blocks, self.warps), np.int32)
        if weak and self.performed is not None:
            fenced = np.where(warps[:, :, None], self.performed[int(afar)], 0).max(axis=1)
            np.maximum(clock, fenced, out=clock)
            return
        np.maximum(clock, np.where(warps[:, :, None], self.known, 0).max(axis=1), out=clock)
        np.maximum(clock, np.where(warps, self.now, 0), out=clock)

    def acquire(self, key, warps, weak=False):
        """These warps, (blocks, warps) bool, go on because of the arrivals at `key`; weak: see `flag`."""
        clock = self.released.get(key)
        if clock is not None and weak and self.heard is not None:
            np.maximum(self.heard, clock[:, None, :], out=self.heard, where=warps[:, :, None])
        elif clock is not None:
            joined = np.maximum(self.known, clock[:, None, :])
            np.copyto(self.known, joined, where=warps[:, :, None])
            self._settle()
            if self.device is not None:
                self.device.joined(warps | (clock > 0))

    def forget(self, key, blocks):
        """The arrivals at `key` in these blocks, (blocks,) bool, belong to the past."""
        clock = self.released.get(key)
        if clock is not None:
            clock[blocks] = 0

    def transfer(self, key, other, blocks):
        """The arrivals at `key` in these blocks, (blocks,) bool, become arrivals at `other`."""
        source = self.released.get(key)
        if source is not None:
            target = self.released.setdefault(other, np.zeros_like(source))
            target[blocks] = np.maximum(target[blocks], source[blocks])
            source[blocks] = 0

    def of_blocks(self):
        """The same order as it is for the warps of a block alone."""
        return self

    def known_by(self, block, warp):
        """(warps,): a row of `known`."""
        return self.known[block, warp]

    def warps_of(self, lanes):
        return lanes.reshape(self.blocks, self.warps, 32).any(axis=2)

    def _settle(self):
        self.floor = self.known.min(axis=(1, 2))
        self.lowest = int(self.floor.min())

    def tick(self, instruction, what):
        self.now += 1
        self.log.append((instruction, what))
        return self.now
