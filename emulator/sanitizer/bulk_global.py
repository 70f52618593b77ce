"""What bulk copies do to global memory: reads and writes of the async proxy, which nobody sees in between.

A copy out of shared memory may write from when it is issued until its thread has waited with
`cp.async.bulk.wait_group`, without `.read`; whoever touches the place before is reported. A copy into shared memory
reads what threads wrote only behind a fence.proxy.async, of a thread that wrote or of the one that copies; so does
a copy that writes over it.
"""

from __future__ import annotations

import numpy as np

# What a report of global memory says of the reason.
WHY = {
    "unfinished-store": (
        "that copy out of shared memory is under way: its thread must wait with cp.async.bulk.wait_group, without "
        ".read, before anybody touches it"
    ),
    "missing-proxy-fence": (
        "the one is of the generic proxy, the other of the async proxy, and no fence.proxy.async stands between: put "
        "one after the write, before the barrier"
    ),
    "incoherent-read": (
        "ld.global.nc may answer from a cache that never learns of writes: it is for what nobody writes while the kernel "
        "runs (__ldg, const __restrict__)"
    ),
    "unreleased-map": (
        "TMA may still see the old one: after the change, the block that made it must execute "
        "fence.proxy.tensormap::generic.release, of a scope that reaches the user, or copy it by tensormap.cp_fenceproxy"
    ),
    "unacquired-map": (
        "TMA may still see the old one: a thread of the block that uses it must execute "
        "fence.proxy.tensormap::generic.acquire on its address, after the change and before the copy"
    ),
}


class BulkGlobal:
    """The copies of one chunk. shadow: its DeviceShadow."""

    def __init__(self, shadow):
        self.shadow, self.memory = shadow, shadow.memory
        self.under_way: dict[
            int, tuple
        ] = {}  # ticket -> (granules, instruction, who, whether it adds)
        self.ticket = 0

    def granules(self, places: np.ndarray, size: int) -> np.ndarray:
        """Of the watched bytes of elements of `size` bytes at these addresses, (n,)."""
        memory = self.memory
        if not len(places):
            return places
        at = int(np.searchsorted(memory.starts, places.min(), "right")) - 1
        if at < 0 or places.max() + size > memory.ends[at]:
            return places[:0]  # a copy's bytes are all in one buffer: in one that nobody watches
        granule = ((places - memory.starts[at]) >> memory.shift) + memory.bases[at]
        several = size >> memory.shift
        if several > 1:
            return (granule[:, None] + np.arange(several)).reshape(-1)
        if several == 1:
            return granule
        return granule[np.concatenate([[True], granule[1:] != granule[:-1]])]

    def read(self, ins, block: int, thread: int, places: np.ndarray, size: int) -> int:
        """A copy of a thread reads elements of `size` bytes at these addresses. Returns the event, 0 where nobody watches."""
        granule = self.granules(places, size)
        if not len(granule):
            return 0
        who = np.broadcast_to(self.shadow.who[block, thread], granule.shape)
        self.shadow.note(ins, granule, who, "load", False, None)
        self._check_proxy(ins, granule, who, "reads")
        return self.memory.events - 1

    def landed(self, events) -> None:
        """What copies read in these events is in shared memory: who has waited for that may write where it was."""
        now = self.memory.base + self.shadow.chunk.sanitizer.now
        self.memory.landed.update((event, now) for event in events if event)

    def write(self, ins, block: int, thread: int, places: np.ndarray, size: int, adds: bool) -> int:
        """A copy of a thread writes there from now on. Returns a ticket, 0 where nobody watches."""
        granule = self.granules(places, size)
        if not len(granule):
            return 0
        who = np.broadcast_to(self.shadow.who[block, thread], granule.shape)
        self.shadow.note(ins, granule, who, "store", adds, None, beside=True, adds=adds)
        self._check_proxy(ins, granule, who, "writes", adds)
        self.ticket += 1
        self.under_way[self.ticket] = (granule, ins, who, adds)
        if self.memory.storing is None:
            self.memory.storing = np.zeros(int(self.memory.bases[-1]), np.int32)
        self.memory.storing[granule] = self.ticket
        return self.ticket

    def written(self, ticket: int) -> None:
        """Its thread has waited for that copy."""
        granule, ins, who, adds = self.under_way.pop(ticket)
        storing = self.memory.storing
        storing[granule] = np.where((there := storing[granule]) == ticket, 0, there)
        self.shadow.event(ins, granule, who, "store", adds)

    def touched(self, ins, granule, who, verb: str, adds: bool) -> None:
        """Lanes access granules; says which of these a copy may still be writing."""
        there = self.memory.storing[granule]
        if not there.any():
            return
        hit = np.flatnonzero(there)
        for ticket in np.unique(self.memory.storing[granule[hit]]).tolist():
            _, earlier, by, added = self.under_way[ticket]
            if not (adds and added):
                at = hit[self.memory.storing[granule[hit]] == ticket]
                self.shadow.tell(
                    "unfinished-store", ins, earlier, granule, who, at, int(by[0]), verb
                )

    def _check_proxy(self, ins, granule, who, verb: str, adds: bool = False) -> None:
        """Reports a copy of what threads wrote, or over it, without a fence between the proxies; adds: it adds to that."""
        memory, T = self.memory, self.shadow.chunk.T
        events = memory.written.event[granule]
        if not events.any():
            return
        for event in np.unique(events[events > 0]).tolist():
            earlier = memory.instructions[memory.whats[event] >> 1]
            if "bulk" in earlier.parts or (adds and earlier.parts[0] in ("atom", "red")):
                continue
            here = np.flatnonzero(events == event)
            by = memory.written.who[granule[here]]
            seen = memory.proxied[by // T, by % T >> 5] >= memory.times[event]
            seen |= memory.proxied[who[here] // T, who[here] % T >> 5] >= memory.times[event]
            if not seen.all():
                at = here[~seen]
                self.shadow.tell(
                    "missing-proxy-fence",
                    ins,
                    earlier,
                    granule,
                    who,
                    at,
                    int(by[~seen][0]),
                    verb,
                )

    def proxy_fence(self, mask) -> None:
        """These lanes executed fence.proxy.async, of global memory too."""
        order, chunk, first = self.shadow.order, self.shadow.chunk, self.shadow.first
        rows = self.memory.proxied[first : first + chunk.B]
        now = self.memory.base + order.now
        np.copyto(rows, now, where=order.warps_of(chunk.lanes_of(mask)))

    def ends(self) -> None:
        """The chunk has ended: what is under way is written, by whom it was issued."""
        for ticket in list(self.under_way):
            self.written(ticket)
