"""Tensor maps that a kernel changes in global memory, and the fences that TMA needs between a change and a use.

A change counts for TMA once its block has executed fence.proxy.tensormap::generic.release after it (or copied it there
by tensormap.cp_fenceproxy), and the block that uses it has executed the .acquire on its address after the change.
A release of another change by the same block counts as well: it errs on the quiet side.
"""

from __future__ import annotations

import numpy as np

BYTES = 128  # of a map


def changes(device) -> Changes:
    """Of a chunk's DeviceShadow. What it keeps is the launch's."""
    memory = device.memory
    if memory.maps is None:
        memory.maps = ({}, {}, {})
    return Changes(device, *memory.maps)


class Changes:
    """by_block: block -> when it last released; by_place: address -> when a release to it came with a copy;
    acquires: (address, block) -> when. Each twice: for all, and in the scope of the block. Blocks and times are the launch's.
    """

    def __init__(self, shadow, by_block: dict, by_place: dict, acquires: dict):
        self.shadow, self.by_block, self.by_place = shadow, by_block, by_place
        self.acquires = acquires

    @property
    def now(self) -> int:
        return self.shadow.memory.base + self.shadow.order.now

    def released(self, blocks, narrow: bool) -> None:
        """A thread of each of these blocks of the chunk released what was changed before."""
        self.by_block |= {(self.shadow.first + int(b), narrow): self.now for b in blocks}

    def copied(self, addresses, narrow: bool) -> None:
        """Maps were copied to these addresses, and released."""
        self.by_place |= {(int(at), narrow): self.now for at in addresses}

    def acquired(self, addresses, blocks, narrow: bool) -> None:
        """Threads of these blocks of the chunk acquired the maps there."""
        for at, block in zip(addresses.tolist(), blocks.tolist(), strict=True):
            self.acquires[at, self.shadow.first + block, narrow] = self.now

    def used(self, ins, block: int, thread: int, address: int) -> None:
        """TMA reads the map there for a thread of a block of the chunk."""
        memory, T = self.shadow.memory, self.shadow.chunk.T
        granule = self.shadow.bulk.granules(np.arange(address, address + BYTES, 4), 4)
        if not len(granule):
            return
        who = np.broadcast_to(self.shadow.who[block, thread], granule.shape)
        events = memory.written.event[granule]
        last = int(events.argmax())
        event, by = int(events[last]), int(memory.written.who[granule[last]])
        if not event or by // 32 != int(who[0]) // 32:  # in one warp the fences below say enough
            self.shadow.note(ins, granule, who, "load", False, None)
        if not event:
            return
        time, mine = int(memory.times[event]), int(who[0]) // T
        near = by // T == mine  # where the scope of the block is enough
        kind = ""
        if not self._since(time, near, self.by_block, by // T) and not self._since(
            time, near, self.by_place, address
        ):
            kind = "unreleased-map"
        elif not self._since(time, near, self.acquires, address, mine):
            kind = "unacquired-map"
        if kind:
            earlier = memory.instructions[memory.whats[event] >> 1]
            verb = "copies by the tensor map at"
            self.shadow.tell(kind, ins, earlier, granule, who, np.array([last]), by, verb)

    def _since(self, time: int, near: bool, table: dict, *key) -> bool:
        wide, narrow = (table.get((*key, scope), -1) for scope in (False, True))
        return max(wide, narrow if near else -1) >= time
