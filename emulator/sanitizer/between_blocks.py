"""What orders blocks: a *release* of one, and an *acquire* of another; blocks run in any order.

A release is a fence (`__threadfence`) and then an atomic, volatile or relaxed write of a flag, or a `.release`
write; an acquire an atomic, volatile or acquiring read of the same flag later on, or one that says `.relaxed` and
then a fence. What has the scope of the block orders no other. What a block's other threads did counts if a barrier
stands between it and the release, and they were fenced too. So do the barriers of a cluster.

Two numbers stand for that: `published[block, warp]` of the launch, up to when this warp's accesses have been released
by someone, and `acquired[block, warp]`, the time of the latest release that this warp knows of. They err on the quiet
side: releases of different flags are not told apart once both happened.
"""

from __future__ import annotations

import numpy as np

_FLAGS = 8  # different places of one strong access that may carry order between warps
_TO_OTHERS = {"release", "acq_rel"}


class BetweenBlocks:
    """What the warps of one chunk have released, and know of others. shadow: its DeviceShadow."""

    def __init__(self, shadow):
        self.memory, self.chunk = shadow.memory, shadow.chunk
        self.first, self.order = shadow.first, shadow.order
        shape = (self.chunk.B, self.chunk.T // 32)
        self.performed = np.zeros(shape, np.int32)  # in the chunk's time
        self.acquired = np.zeros(shape, np.int32)  # in the launch's time
        self.heard = np.zeros(shape, np.int32)  # of relaxed reads, which a fence makes acquire

    def known(self, times, block, warp, other_block, other_warp) -> np.ndarray:
        """Which of these accesses by warps of the launch were released before what warps of the chunk do."""
        released = self.memory.published[other_block, other_warp]
        return (times <= self.acquired[block, warp]) & (times <= released)

    def fence(self, mask) -> None:
        """These lanes executed a fence for the GPU or wider."""
        warps = self.order.warps_of(self.chunk.lanes_of(mask))
        np.maximum(self.performed, self._clock(warps), out=self.performed)
        np.maximum(self.acquired, self.heard, out=self.acquired, where=warps)

    def cluster_arrive(self, lanes, releases: bool) -> None:
        """Lanes arrived at barrier.cluster: with .release it is a fence, too."""
        clock = self._clock(self.order.warps_of(lanes))
        if releases:
            np.maximum(self.performed, clock, out=self.performed)
        self._publish(np.minimum(clock, self.performed))

    def cluster_wait(self, lanes) -> None:
        """Lanes went on behind barrier.cluster: all that its blocks released before is known to them."""
        now = np.where(self.order.warps_of(lanes), self.order.now + self.memory.base, 0)
        np.maximum(self.acquired, now, out=self.acquired)

    def synchronise(self, ins, granule, who, kind, now) -> None:
        """Threads of the launch, (n,), access granules, (n,), strongly: what they release and acquire by that."""
        memory, m = self.memory, self.chunk
        warp = who // 32 - self.first * (m.T // 32)  # of the chunk
        warps = np.zeros(m.W, bool)
        warps[warp] = True
        self._flags(granule, warp, kind)
        if "cta" in ins.parts:
            return  # in the scope of the block: other blocks learn nothing
        earlier = memory.flags[granule]
        if kind != "load":
            clock = self._clock(warps.reshape(m.B, -1))
            if not _TO_OTHERS.isdisjoint(ins.parts):
                np.maximum(self.performed, clock, out=self.performed)
            self._publish(np.minimum(clock, self.performed))
            memory.flags[granule] = memory.base + now
            if kind == "store":
                return
            pairs = np.unique(np.stack([granule, warp]), axis=1)[0]
            # by several warps at once, one after the other
            shared = pairs[1:][pairs[1:] == pairs[:-1]]
            earlier = np.where(np.isin(granule, shared), memory.base + now, earlier)
        known = self.heard if "relaxed" in ins.parts else self.acquired
        np.maximum.at(known.reshape(-1), warp, earlier)

    def joined(self, warps) -> None:
        """These warps, (blocks, warps) bool, met: each knows what any of them does."""
        most = np.where(warps, self.acquired, 0).max(axis=1, keepdims=True)
        np.maximum(self.acquired, most, out=self.acquired, where=warps)

    def _clock(self, warps) -> np.ndarray:
        """Up to when each warp's accesses happened before what any of these warps does now."""
        known = np.where(warps[:, :, None], self.order.known, 0).max(axis=1)
        return np.maximum(known, np.where(warps, self.order.now, 0))

    def _publish(self, clock) -> None:
        """Accesses of the chunk's warps up to `clock` are released."""
        published = self.memory.published[self.first : self.first + self.chunk.B]
        known = np.where(clock > 0, clock + self.memory.base, 0)
        np.maximum(published, known, out=published)

    def _flags(self, granule, warp, kind) -> None:
        """Order between the warps of a block, through the few places that a strong access names."""
        named = np.unique(granule)
        if len(named) <= _FLAGS:
            for flag in named.tolist():
                warps = np.zeros(self.chunk.W, bool)
                warps[warp[granule == flag]] = True
                warps = warps.reshape(self.chunk.B, -1)
                self.order.flag(("global", flag), warps, True, kind != "load")
