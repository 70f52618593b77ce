"""Finds races on global memory: between the threads of a block, and between blocks.

Two threads race that access the same bytes, at least one with a plain write, unless one access
happens before the other. Within a block barriers order them, as on shared memory (`order`); between
blocks releases and acquires do (`between_blocks`). The end of the kernel orders everything.

The shadow keeps, for each granule of each buffer that the kernel may write (`machine.pointers`), who
wrote it last and who read it last, in which instruction and when; and the last reader from another block.
Time is a count of accesses over the whole launch.

What is not reported: a plain write of the value that is there already, by whomever (`changed = true`);
and a plain read of what the same code then updates with an atomic (the first guess of a loop around
`atomicCAS`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.sanitizer.between_blocks import BetweenBlocks
from emulator.sanitizer.bulk_global import WHY, BulkGlobal
from emulator.sanitizer.report import Hazard, frames_of, place_of, source_of, where

KIND = "global-race"
_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}


class _Last:
    """Of each granule, the last access of one sort: which event it was (0 for none), by which thread of the launch."""

    def __init__(self, granules: int, who: type):
        self.event = np.zeros(granules, np.int32)
        self.who = np.zeros(granules, who)
        self.any = False

    def note(self, granule, event, who) -> None:
        self.event[granule], self.who[granule], self.any = event, who, True


@dataclass(frozen=True)
class _Lanes:
    """One access by granule: flat arrays over (active lane, granule of it). picked: which active lane."""

    granule: np.ndarray
    who: np.ndarray
    picked: np.ndarray | None  # None for all of them
    active: np.ndarray | None  # None for every lane


class DeviceMemory:
    """The shadow of what a launch may write in global memory.

    report: where hazards go. buffers: those to watch. watched: the indices of the instructions that may
    access them. code: the entry's. width: bytes of the narrowest access. blocks: of the launch,
    (n, 3). threads: lanes of a block, a multiple of 32. block: its extents.
    """

    def __init__(self, report, buffers, watched, code, width, blocks, threads, block):
        self.report, self.watched, self.instructions = report, watched, code.instructions
        self.guesses, ordered = code.pointers.guesses, code.pointers.fences
        self.buffers = sorted(buffers, key=lambda buffer: buffer.start)
        self.shift = min(width, 4).bit_length() - 1
        self.dtype = np.dtype(f"u{1 << self.shift}")
        self.starts = np.array([buffer.start for buffer in self.buffers])
        self.ends = np.array([buffer.end for buffer in self.buffers])
        sizes = [(len(buffer.bytes) >> self.shift) + 16 for buffer in self.buffers]
        self.bases = np.cumsum([0, *sizes])
        who = np.int32 if len(blocks) * threads < 1 << 31 else np.int64
        total = int(self.bases[-1])
        self.written, self.read, self.elsewhere = (_Last(total, who) for _ in range(3))
        self.blocks, self.threads, self.block, self.who = blocks, threads, block, who
        # of each event: when, and twice the instruction plus 1 if strong
        self.times, self.whats, self.events = *np.zeros((2, 1024), np.int32), 1
        self.base = 0  # the launch's time when the present chunk began
        self.flags = (
            np.zeros(total, np.int32) if ordered else None
        )  # when each was last released to
        self.landed: dict[int, int] = {}  # event in which a copy read -> when it had brought that
        self.storing = None  # by granule: the ticket of a copy out of shared memory under way
        self.maps = None  # see `tensor_maps`
        self.incoherent = {n for n, ins in self.instructions.items() if "nc" in ins.parts}
        self.proxied = np.zeros(
            (len(blocks), threads // 32), np.int32
        )  # a warp's last fence.proxy.async
        meets = any(ins.parts[:2] == ("barrier", "cluster") for ins in self.instructions.values())
        self.published = None
        if ordered or meets:
            self.published = np.zeros((len(blocks), threads // 32), np.int32)

    def beside(self, chunk, first: int) -> DeviceShadow:
        """What watches a chunk whose blocks are number `first` of the launch and those after it."""
        return DeviceShadow(self, chunk, first)


class DeviceShadow:
    """The part of a DeviceMemory that one chunk's accesses go through."""

    def __init__(self, memory: DeviceMemory, chunk, first: int):
        self.memory, self.chunk, self.first = memory, chunk, first
        self.watched = memory.watched
        shape = (chunk.B, chunk.T)
        self.who = np.arange(chunk.B * chunk.T, dtype=memory.who).reshape(shape) + first * chunk.T
        self.order = chunk.sanitizer.of_blocks()
        self.between = chunk.sanitizer.device = BetweenBlocks(self)
        self.bulk = BulkGlobal(self)
        chunk.endings.append(lambda m: self.bulk.ends())

    def close(self) -> None:
        """The chunk is done: the launch's time goes on from the chunk's."""
        self.memory.base += self.order.now + 1

    # --- Accesses ---

    def access(self, ins, address, mask, width, kind, values=None) -> None:
        """Lanes load, store or update `width` bytes each.

        kind: "load", "store" or "atomic". values: what a store is about to write, a list of arrays, one for each
        element of a vector; without them every write counts as a change.
        """
        lanes, shift = self._lanes(address, mask, width)
        granule, who = lanes.granule + shift if shift else lanes.granule, lanes.who
        if not len(granule):
            return
        strong = kind == "atomic" or not _STRONG.isdisjoint(ins.parts)
        strong = strong or ins.index in self.memory.guesses
        new = None
        if kind != "load" and values is not None and not strong:

            def new():
                return self._new(values, lanes, width)

        now = self.note(ins, granule, who, kind, strong, new)
        if strong and self.memory.flags is not None:
            self.between.synchronise(ins, granule, who, kind, now)

    def note(self, ins, granule, who, kind, strong, new, beside=False, adds=False) -> int:
        """Looks at an access of granules, (n,), by threads of the launch, (n,), and remembers it. When it was.

        new: what a store is about to write, from a function, or None. beside: of a copy, which goes on.
        """
        memory = self.memory
        verb = {"load": "reads", "atomic": "updates", "store": "writes"}[kind]
        if memory.storing is not None:
            self.bulk.touched(ins, granule, who, verb, adds)
        if kind == "load":
            self._check(memory.written, granule, who, strong, ins, verb, "wrote")
            if ins.index in memory.incoherent and memory.written.any:
                self._check_incoherent(ins, granule, who)
            last = memory.read
            before = last.event[granule] if last.any else None
            if before is not None and before.any():
                there = last.who[granule]
                apart = np.flatnonzero(
                    (before > 0) & (there // self.chunk.T != who // self.chunk.T)
                )
                if len(apart):
                    memory.elsewhere.note(granule[apart], before[apart], there[apart])
            return self.event(ins, granule, who, kind, strong)
        self._check(memory.written, granule, who, strong, ins, verb, "wrote", new)
        self._check(memory.read, granule, who, strong, ins, verb, "read")
        self._check(memory.elsewhere, granule, who, strong, ins, verb, "read")
        if beside:
            return 0
        now = self.event(ins, granule, who, kind, strong)
        if new is not None and (memory.written.who[granule] != who).any():
            self._check_together(granule, who, new(), ins)
        return now

    def event(self, ins, granule, who, kind, strong) -> int:
        """Remembers an access. When it was, in the chunk's time."""
        memory = self.memory
        now = self.order.tick(ins, "strong" if strong else kind)
        event = memory.events
        if event == len(memory.times):
            memory.times, memory.whats = (
                np.resize(x, 2 * event) for x in (memory.times, memory.whats)
            )
        memory.times[event], memory.whats[event] = memory.base + now, 2 * ins.index + strong
        memory.events = event + 1
        last = memory.read if kind == "load" else memory.written
        last.note(granule, event, who)
        return now

    def _lanes(self, address, mask, width) -> tuple[_Lanes, int]:
        """The access's lanes, and what is to be added to their granules."""
        memory, m = self.memory, self.chunk
        constant = type(address) is int
        pattern, offset = (m.nowhere, address) if constant else (address.pattern, address.offset)
        pattern.tighten()
        low = pattern.lo + offset
        at = int(np.searchsorted(memory.starts, low, "right")) - 1
        if at < 0 or pattern.hi + offset + width > memory.ends[at]:
            return self._scattered(address, mask, width), 0
        start, base = int(memory.starts[at]), int(memory.bases[at])
        rest = offset & 15
        key = ("device", width, rest)
        known = pattern.facts.get(key)
        if known is None or known[0] is not mask or known[1] is not self:
            active = None if mask is None and m.threads == m.T else m.lanes_of(mask)
            offsets, who = np.broadcast_to(pattern.array, self.who.shape), self.who
            offsets, who = (x.reshape(-1) if active is None else x[active] for x in (offsets, who))
            lanes = self._granules((offsets + rest) >> memory.shift, who, None, active, width)
            known = pattern.remember(key, (mask, self, lanes))
        return known[2], ((offset - rest - start) >> memory.shift) + base

    def _scattered(self, address, mask, width) -> _Lanes:
        """Lanes that point into several buffers, or outside those that are watched."""
        memory, m = self.memory, self.chunk
        active = m.lanes_of(mask)
        places, who = m.addresses(address)[active], self.who[active]
        at = np.searchsorted(memory.starts, places, "right") - 1
        picked = np.flatnonzero((at >= 0) & (places < memory.ends[at]))
        places, who, at = places[picked], who[picked], at[picked]
        granule = ((places - memory.starts[at]) >> memory.shift) + memory.bases[at]
        return self._granules(granule, who, picked, active, width)

    def _granules(self, granule, who, picked, active, width) -> _Lanes:
        count = width >> self.memory.shift
        if count > 1:
            granule = (granule[:, None] + np.arange(count)).reshape(-1)
            who = np.repeat(who, count)
        return _Lanes(granule, who, picked, active)

    def _new(self, values, lanes: _Lanes, width) -> np.ndarray:
        """What is written to each granule."""
        columns = [np.broadcast_to(value, self.who.shape) for value in values]
        if lanes.active is None:
            columns = [column.reshape(-1) for column in columns]
        else:
            columns = [column[lanes.active] for column in columns]
        if lanes.picked is not None:
            columns = [column[lanes.picked] for column in columns]
        octets = np.ascontiguousarray(np.stack(columns, axis=1)).view(np.uint8)
        return octets.reshape(-1).view(self.memory.dtype)

    def _old(self, granule) -> np.ndarray:
        memory = self.memory
        dtype = memory.dtype
        found = np.zeros(len(granule), dtype)
        which = np.searchsorted(memory.bases, granule, "right") - 1
        for at in np.unique(which).tolist():
            here = which == at
            found[here] = memory.buffers[at].view(dtype)[granule[here] - memory.bases[at]]
        return found

    # --- Checks ---

    def _check(self, last: _Last, granule, who, strong, ins, verb, did, new=None) -> None:
        """Reports lanes that are not ordered after the `last` access of their granules.

        new: what a store is about to write, by granule, from a function; None to look at every lane.
        """
        if not last.any:
            return
        events = last.event[granule]
        if not events.any():
            return
        others = last.who[granule]
        at = np.flatnonzero((events > 0) & (others != who))
        if not len(at):
            return
        events, others_there = events[at], others[at]
        times = self.memory.times[events]
        one = not who.strides[0]  # a copy: the same for all
        ordered = (self._ordered_for if one else self._ordered)(times, others_there, who[at])
        if ordered is None:
            return
        bad, what = ~ordered, self.memory.whats[events]
        if strong:
            bad &= what & 1 == 0
        if self.memory.landed and bad.any():
            bad &= ~self._waited_for(events, others_there, who[at])
        if new is not None and bad.any():
            bad &= (self._old(granule) != new())[at]
        if bad.any():
            self._report(ins, granule, who, at[bad], others, what[bad], verb, did)

    def _check_incoherent(self, ins, granule, who) -> None:
        """Reports lanes that read by ld.global.nc what the kernel has written, be it in order."""
        events = self.memory.written.event[granule]
        for event in np.unique(events[events > 0]).tolist():
            earlier = self.memory.instructions[self.memory.whats[event] >> 1]
            at = np.flatnonzero(events == event)
            by = int(self.memory.written.who[granule[at[0]]])
            self.tell("incoherent-read", ins, earlier, granule, who, at, by, "reads")

    def _waited_for(self, events, others, who) -> np.ndarray:
        """Which of these are reads of copies that one's warp knows to have landed."""
        memory, T, together = self.memory, self.chunk.T, self.chunk.cluster
        (block, thread), found = np.divmod(who, T), np.zeros(len(events), bool)
        near = others // T // together == block // together
        for event in np.unique(events[near]).tolist():
            when = memory.landed.get(event, 0)
            here = np.flatnonzero(near & (events == event)) if when else ()
            if len(here):
                knows = self.order.known_of_copies(block[here] - self.first, thread[here] >> 5)
                found[here] = when - memory.base <= knows
        return found

    def _ordered_for(self, times, others, who) -> np.ndarray | None:
        """Which of these accesses by others are ordered before what one thread does; None for all."""
        memory, T = self.memory, self.chunk.T
        block, thread = divmod(int(who[0]), T)
        here, warp = block - self.first, thread >> 5
        known = self.order.known_by(here, warp)
        if (
            int(times.max()) - memory.base <= int(known.min())
            and others.min() >= block * T
            and others.max() < (block + 1) * T
        ):
            return None
        other_block, other = np.divmod(others, T)
        warps = other >> 5
        ordered = (other_block == block) & (times - memory.base <= known[warps])
        if memory.published is not None:
            ordered |= self.between.known(times, here, warp, other_block, warps)
        return ordered

    def _ordered(self, times, others, who) -> np.ndarray:
        memory, T = self.memory, self.chunk.T
        (block, thread), (other_block, other) = np.divmod(who, T), np.divmod(others, T)
        here, warp = block - self.first, thread >> 5
        ordered = np.zeros(len(times), bool)
        same = np.flatnonzero(other_block == block)
        if len(same):
            known = self.order.known[here[same], warp[same], other[same] >> 5]
            ordered[same] = times[same] - memory.base <= known
        if memory.published is not None:
            ordered |= self.between.known(times, here, warp, other_block, other >> 5)
        return ordered

    def _check_together(self, granule, who, new, ins) -> None:
        """Lanes of this one store that write different values to one place."""
        order = np.argsort(granule, kind="stable")
        sorted_ = granule[order]
        same = np.flatnonzero(sorted_[1:] == sorted_[:-1])
        if len(same):
            first, second = order[same], order[same + 1]
            differ = (new[first] != new[second]) & (who[first] != who[second])
            if differ.any():
                others = np.zeros(len(granule), self.memory.who)
                others[second[differ]] = who[first[differ]]
                what = np.full(int(differ.sum()), 2 * ins.index)
                self._report(ins, granule, who, second[differ], others, what, "writes", "wrote")

    # --- Reports ---

    def _report(self, ins, granule, who, at, others, what, verb, did) -> None:
        memory = self.memory
        for number in np.unique(what >> 1).tolist():
            earlier = memory.instructions[number]
            members = at[what >> 1 == number]
            key = (KIND, place_of(ins), place_of(earlier))
            hazard = memory.report.found.get(key)
            if hazard is None:
                one = int(members[0])
                hazard = self._hazard(
                    ins, earlier, int(granule[one]), int(who[one]), int(others[one]), verb, did
                )
                memory.report.found[key] = hazard
            hazard.count += len(members)

    def tell(self, kind, ins, earlier, granule, who, at, other, verb) -> None:
        """Reports lanes `at` that meet a copy under way, or write what a copy reads."""
        found, key = self.memory.report.found, (kind, place_of(ins), place_of(earlier))
        if key not in found:
            one = int(at[0])
            found[key] = self._hazard(
                ins, earlier, int(granule[one]), int(who[one]), other, verb, "wrote", kind
            )
        found[key].count += len(at)

    def _hazard(self, ins, earlier, granule, who, other, verb, did, kind=KIND) -> Hazard:
        memory, T = self.memory, self.chunk.T
        which = int(np.searchsorted(memory.bases, granule, "right")) - 1
        buffer, offset = memory.buffers[which], int(granule - memory.bases[which]) << memory.shift
        (block, thread), (other_block, other_thread) = divmod(who, T), divmod(other, T)
        by = f"thread {self._thread(other_thread)}"
        if block == other_block:
            apart = (
                "the warp does not synchronise"
                if thread >> 5 == other_thread >> 5
                else "no barrier stands"
            )
            why = f"{apart} between"
        else:
            by = f"{by} of block {self._block(other_block)}"
            why = "nothing orders one block before the other (a fence and an atomic flag would)"
        if ins is earlier and did == "wrote":
            why = why.replace("no barrier stands between", "which value stays is a matter of luck")
        if kind in WHY:
            why = WHY[kind]
        text = (
            f"thread {self._thread(thread)} {verb} byte {offset} of {buffer.name} {where(ins)}, which {by} "
            f"{did} {where(earlier)}; {why}"
        )
        return Hazard(
            kind,
            f"{kind} in block {self._block(block)}: {text}",
            source_of(ins),
            source_of(earlier),
            ins.line,
            earlier.line,
            self._block(block),
            self._thread(thread),
            self._thread(other_thread),
            offset,
            buffer.name,
            offset,
            frames=frames_of(ins),
            other_frames=frames_of(earlier),
            verb=verb,
            did=did,
            other_block=None if block == other_block else self._block(other_block),
        )

    def _block(self, number: int) -> tuple[int, int, int]:
        return tuple(int(x) for x in self.memory.blocks[number])

    def _thread(self, number: int) -> tuple[int, int, int]:
        x, y, _ = self.memory.block
        return (number % x, number // x % y, number // (x * y))
