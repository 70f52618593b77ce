"""Finds hazards on shared memory: races, reads of what was never written, and of unfinished copies.

Two accesses to a byte of one block, by different threads, at least one a write, race unless one
*happens before* the other. What orders them: a barrier between (`bar`, `barrier`; a named one
orders its participants), an `mbarrier` arrival and the wait that sees its phase complete, and for
lanes of one warp `bar.warp.sync` and the matrix instructions (`ldmatrix`, `wmma` ...), though not
`shfl`. A `cp.async` is a write by the copying thread at the moment of its wait; until then nobody
may touch the destination.

A `Shadow` stands beside the shared memory of the resident blocks. For each granule (4 bytes; 2 or 1
once an access is that narrow) it keeps when, and by which thread, the last write and the last reads
took place, time being a count of accesses. `known[b, w, v]` says up to when warp v is ordered
before warp w of block b: vector clocks in that one time. A block's smallest entry, `floor[b]`,
settles almost every access at the cost of one gather: what is older is ordered for everybody. Only
the rest is looked at lane by lane. Kernels that synchronise with block-wide barriers alone keep one
reader for each granule; with `by_warp` there is one for each warp.

Atomics and volatile, relaxed, acquire and release accesses are *strong*: they do not race with each
other, and a strong read is ordered after the strong writes of its address (in kernels that hold any
strong access but plain atomics, or atomics and fences), by `.relaxed` only where fences stand around
it. Only lanes of one warp that read and write volatile memory without `__syncwarp` are reported, as if
they went in step; but not those that poll.
Threads that write one address in one instruction are reported where their values differ.
"""

from collections import deque

import numpy as np

from emulator.sanitizer.granules import SEVERAL, WARP, Granules, warp_of
from emulator.sanitizer.last_reads import LastReads
from emulator.sanitizer.order import Order
from emulator.sanitizer.report import Places, Report, Seen, describe, place_of

STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}
_FLAGS = 8  # different addresses of one strong access that may carry order between warps
_REMEMBERED = 512  # reads whose lanes can still be named in a report


class Shadow(Order):
    """The shadow of one chunk of resident blocks.

    blocks: how many; threads: of a block, a multiple of 32; size: bytes of a block's shared memory.
    report: where hazards go; places: how it names things. by_warp: for kernels with mbarriers, named
    or partial barriers. alive: returns the threads that have not exited, (blocks, threads) bool.
    warp_synchronous: indices of the volatile instructions by which lanes of a warp may count on going in step.
    agents: further readers, numbered after the warps.

    Addresses are byte offsets in a block's shared memory: an int, an `Affine` of `machine.values`,
    or an array, broadcast to (blocks, threads). Masks are (blocks, threads) bool, or None for all
    lanes.
    """

    def __init__(self, blocks, threads, size, report=None, places=None, by_warp=False, alive=None,
                 warp_synchronous=(), agents=0):  # fmt: skip
        super().__init__(blocks, threads, alive)
        self.report = report if report is not None else Report()
        self.places = places if places is not None else Places()
        self.by_warp, self.warp_synchronous = by_warp, warp_synchronous
        self.granules = Granules(blocks, threads, size, by_warp)
        self.remembered = deque(maxlen=_REMEMBERED)  # (time, address, mask, width) of reads
        count = blocks * self.granules.count
        self.write_time = np.zeros(count, np.int32)  # 0: never written
        self.writer = np.zeros(count, np.int16)
        self.read_time = np.zeros(count, np.int32)
        self.reader = np.zeros(count, np.int32)
        self.read_by = self._last_reads(self.warps + agents) if by_warp else None
        self.made = None  # `made.Made`, in kernels with mbarriers or clusters
        self.meetings = None  # `meetings.Meetings`, in kernels with barriers that count
        self.copying = None  # when the copy under way was issued, 0 for none
        self.copier = None

    def _last_reads(self, warps):
        return LastReads(self.blocks * self.granules.count, warps)

    # --- Accesses ---

    def read(self, address, mask, width, instruction, strong=False):
        """Lanes read `width` bytes each. strong: atomic, volatile, relaxed or acquire."""
        self._refine(width)
        readers, index = self.granules.readers(address, mask, width)
        if not len(index):
            return
        now = self.tick(instruction, self._manner(instruction, strong, "read"))
        if strong and self.by_warp:
            self._flags(address, mask, width, True, False, instruction)
        self.remembered.append((now, address, mask, width))
        written = self.write_time[index]
        suspect = written.min() == 0 or (
            written.max() > self.lowest and not self._ordered_for_warps(readers, index, written)
        )
        if suspect or (self.copying is not None and self.copying[index].any()):
            self._check_read(address, mask, width, now, strong)
        code = readers.code
        if self.by_warp:
            self.read_by.put(index, readers.warp, now)
        elif not readers.several:
            before = self.reader[index]
            stale = self.read_time[index] <= self.floor[readers.block]
            if not stale.all():
                one_warp = (warp_of(before) == warp_of(code)) & (before < SEVERAL)
                joint = np.where(one_warp & (code < SEVERAL), WARP + warp_of(code), SEVERAL)
                code = np.where(stale | (before == code), code, joint)
        self.reader[index] = code
        self.read_time[index] = now

    def write(self, address, mask, width, instruction, strong=False, values=None):
        """Lanes write `width` bytes each.

        strong: atomic, volatile, relaxed or release. values: of a store, a list of arrays, one for each
        element of a vector, broadcastable to (blocks, threads).
        """
        self._refine(width)
        lanes, index = self.granules.lanes(address, mask, width)
        if not len(index):
            return
        now = self.tick(instruction, self._manner(instruction, strong, "write"))
        if strong and self.by_warp:
            self._flags(address, mask, width, True, True, instruction)
        self._check_write(index, lanes, now, strong)
        if values is not None and not lanes.distinct:
            self._check_together(index, lanes, mask, values, now)
        if self.made is not None:
            self.made.overwritten(index, lanes, instruction)
        self.write_time[index] = now
        self.writer[index] = lanes.thread

    def copy(self, address, mask, width, instruction):
        """Lanes issue a `cp.async` of `width` bytes to these addresses. Returns a ticket."""
        self._refine(width)
        if self.copying is None:
            self.copying = np.zeros(len(self.write_time), np.int32)
            self.copier = np.zeros(len(self.write_time), np.int16)
        lanes, index = self.granules.lanes(address, mask, width)
        now = self.tick(instruction, "copy")
        if len(index):
            self._check_write(index, lanes, now, False)
            if self.made is not None:
                self.made.overwritten(index, lanes, instruction)
            self.copying[index] = now
            self.copier[index] = lanes.thread
        return now

    def land(self, address, mask, width, ticket):
        """The copies of these lanes under this ticket have been waited for, by those lanes."""
        self._refine(width)
        lanes, index = self.granules.lanes(address, mask, width)
        if not len(index):
            return
        now = self.tick(self.log[ticket][0], "copy")
        self.copying[index[self.copying[index] == ticket]] = 0
        self.write_time[index] = now
        self.writer[index] = lanes.thread

    def filled(self, start, size):
        """Bytes that are there from the beginning, written by nobody in the kernel."""
        self.known[...] = self.floor[...] = self.lowest = self.start = self.tick(None, "filled")
        whole = self.write_time.reshape(self.blocks, -1)
        whole[:, start >> self.granules.shift : (start + size) >> self.granules.shift] = self.now

    def _manner(self, instruction, strong, plain):
        """How an access is logged: "strong", "volatile", or as what it plainly is."""
        if not strong:
            return plain
        index = getattr(instruction, "index", None)
        return "volatile" if index in self.warp_synchronous else "strong"

    def _flags(self, address, mask, width, reads, writes, instruction):
        """Order through the few addresses that a strong access names."""
        weak = "relaxed" in getattr(instruction, "parts", ())
        lanes, index = self.granules.lanes(address, mask, width)
        granule = index - lanes.block.astype(np.int64) * self.granules.count
        flags = np.unique(granule)
        if len(flags) <= _FLAGS:
            for flag in flags.tolist():
                here = granule == flag
                warps = np.zeros((self.blocks, self.warps), bool)
                warps[lanes.block[here], lanes.thread[here] >> 5] = True
                self.flag(("flag", flag << self.granules.shift), warps, reads, writes, weak)

    def _refine(self, width):
        for _ in range(self.granules.refine(width)):
            for name in (
                "write_time",
                "writer",
                "read_time",
                "reader",
                "copying",
                "copier",
            ):
                old = getattr(self, name)
                if old is not None:
                    setattr(self, name, np.repeat(old, 2, axis=0))
            if self.read_by is not None:
                self.read_by.refine(2)
            if self.made is not None:
                self.made.refine()

    # --- Named barriers ---

    def arrives(self, number, lanes, instruction):
        if self.meetings is not None:
            self.meetings.arrive(number, lanes, instruction)

    def counted_otherwise(self, number, blocks, lanes, instruction):
        if self.meetings is not None:
            self.meetings.counted(number, blocks, lanes, instruction)

    def meets(self, number, lanes, done, more, instruction):
        if self.meetings is not None:
            self.meetings.met(number, lanes, done, more, instruction)

    # --- mbarriers ---

    def mbarrier_init(self, offset, lanes, instruction):
        """Lanes, (chunk's blocks, threads) as in all of these, initialised the mbarriers at `offset`."""
        self.made.init(offset, lanes, instruction)

    def mbarrier_inval(self, offset, lanes, instruction):
        self.made.inval(offset, lanes, instruction)

    def mbarrier_used(self, offset, lanes, owners, instruction):
        """Lanes name mbarriers of their own blocks, or of the blocks `owners`."""
        self.made.used(offset, lanes, owners, instruction)

    def surplus(self, offset, lanes, count, instruction):
        """Lanes arrive at the next phase, since others of this instruction have ended this one."""
        self.made.surplus(offset, lanes, count, instruction)

    def unchecked_wait(self, offset, lanes, instruction):
        """Lanes tried to wait, and the kernel does not look whether they did."""
        self.made.unchecked(offset, lanes, instruction)

    def fence(self, lanes, wide):
        """Lanes executed a fence, for their cluster or wider if `wide`."""
        super().fence(lanes, wide)
        if wide and self.made is not None:
            self.made.fence(lanes)

    def passed_at_once(self, offset, lanes, instruction):
        """Lanes waited at an mbarrier for a phase that was over when they came."""

    # --- Checks ---

    def _ordered_for_warps(self, readers, index, written):
        """Whether each reading warp is ordered after the last writes; True only with `by_warp`."""
        if not self.by_warp:
            return False
        known = self.known[readers.block, readers.warp, self.writer[index] >> 5]
        return bool((written <= known).all())

    def _check_read(self, address, mask, width, now, strong):
        lanes, index = self.granules.lanes(address, mask, width)
        written = self.write_time[index]
        missing = written == 0
        if self.copying is not None:
            missing &= ~self._check_copies(index, lanes, now)
        if missing.any():
            self._report("uninitialised-read", index, lanes, np.flatnonzero(missing), now)
        self._check_writes(index, lanes, now, strong, written, "read-after-write")

    def _check_write(self, index, lanes, now, strong):
        if self.copying is not None:
            self._check_copies(index, lanes, now)
        written = self.write_time[index]
        if written.max() > self.lowest:
            self._check_writes(index, lanes, now, strong, written, "write-after-write")
        seen = self.read_time[index]
        if seen.max() > self.lowest:
            recent = np.flatnonzero(seen > self.floor[lanes.block])
            if len(recent):
                self._check_reads(index, lanes, recent, seen[recent], now, strong)

    def _check_copies(self, index, lanes, now):
        """Reports lanes that touch a copy's destination; which they are."""
        copying = self.copying[index]
        hit = np.flatnonzero(copying)
        if len(hit):
            others = self.copier[index[hit]].astype(np.int64)
            self._report("unfinished-copy", index, lanes, hit, now, copying[hit], others)
        return copying > 0

    def _check_writes(self, index, lanes, now, strong, written, kind):
        """Reports lanes that are not ordered after an earlier write."""
        recent = np.flatnonzero(written > self.floor[lanes.block])
        writer = self.writer[index[recent]].astype(np.int64)
        thread, times = lanes.thread[recent], written[recent]
        ordered = times <= self.known[lanes.block[recent], thread >> 5, writer >> 5]
        bad = ~ordered & (writer != thread)
        self._report_race(kind, index, lanes, recent[bad], now, strong, times[bad], writer[bad])

    def _check_reads(self, index, lanes, recent, times, now, strong):
        """Reports writing lanes that are not ordered after earlier reads."""
        at, thread, block = index[recent], lanes.thread[recent], lanes.block[recent]
        warp, code = thread >> 5, self.reader[at]
        inside = (warp_of(code) == warp) & (code < SEVERAL)
        if self.by_warp:
            read = self.read_by.of(at)
            late = read > self.known[block, warp]
            self._check_waits(index, lanes, recent, read, late, now)
            own = np.arange(self.warps) == warp[:, None]
            # within the warp only the latest reader is remembered
            inside &= (late & own).any(axis=1) & (code != thread) & (times > self.met[block, warp])
            late &= ~own
            elsewhere = late.any(axis=1)
            bad = elsewhere | inside
            code = np.where(elsewhere, WARP + late.argmax(axis=1), code)
            times = np.where(elsewhere, np.where(late, read, 0).max(axis=1), times)
        else:
            own = np.maximum(self.known[block, warp, warp], self.met[block, warp])
            bad = (code != thread) & ~(inside & (times <= own))
        kind = "write-after-read"
        self._report_race(kind, index, lanes, recent[bad], now, strong, times[bad], code[bad])

    def _check_waits(self, index, lanes, recent, read, late, now):
        """An AsyncShadow looks at reads of copies. read, late: (n, warps), when each did, and whether not ordered."""

    def _check_together(self, index, lanes, mask, values, now):
        """Reports threads that write different values to one place in one instruction."""
        shape = (self.blocks, self.granules.threads)
        picked = Ellipsis if mask is None else mask
        columns = [np.broadcast_to(value, shape)[picked].reshape(-1) for value in values]
        octets = np.ascontiguousarray(np.stack(columns, axis=1)).view(np.uint8)
        new = octets.reshape(-1).view(f"u{1 << self.granules.shift}")
        order = np.argsort(index, kind="stable")
        at = np.flatnonzero(index[order[1:]] == index[order[:-1]])
        first, second = order[at], order[at + 1]
        differ = (new[first] != new[second]) & (lanes.thread[first] != lanes.thread[second])
        hit, others = second[differ], lanes.thread[first[differ]].astype(np.int64)
        if len(hit):
            times = np.full(len(hit), now)
            self._report("write-after-write", index, lanes, hit, now, times, others, "together")

    # --- Reports ---

    def _report_race(self, kind, index, lanes, hit, now, strong, times, others):
        if strong and len(hit):  # strong accesses do not race among each other
            manners = np.array([self.log[t][1] for t in times.tolist()])
            weak = (manners != "strong") & (manners != "volatile")
            if self.log[now][1] == "volatile":  # lanes of one warp that do not wait for each other
                warp = lanes.thread[hit] >> 5
                weak |= (manners == "volatile") & (warp_of(others) == warp) & (others < SEVERAL)
            hit, times, others = hit[weak], times[weak], others[weak]
        if len(hit):
            self._report(kind, index, lanes, hit, now, times, others)

    def _report(self, kind, index, lanes, hit, now, times=None, others=None, did=None):
        instruction = self.log[now][0]
        stamps, group = [0], np.zeros(len(hit), np.intp)
        if times is not None:
            stamps, group = np.unique(times, return_inverse=True)
        for i, time in enumerate(int(t) for t in stamps):
            members = np.flatnonzero(group == i)
            earlier = self.log[time][0]
            key = (kind, place_of(instruction), place_of(earlier), did)
            hazard = self.report.found.get(key)
            if hazard is None:
                at = int(hit[members[0]])
                other = None if others is None else int(others[members[0]])
                hazard = self._hazard(kind, now, time, index, lanes, at, other, did)
                self.report.found[key] = hazard
            hazard.count += len(members)

    def _hazard(self, kind, now, time, index, lanes, at, other, did=None):
        (instruction, _), (earlier, manner) = self.log[now], self.log[time]
        block, thread = int(lanes.block[at]), int(lanes.thread[at])
        granule = int(index[at])
        if other is not None and other >= WARP:
            other = self._a_reader(granule, time, thread, other)
        address = (granule - block * self.granules.count) << self.granules.shift
        did = did or manner
        seen = Seen(instruction, earlier, block, thread, address, self.places, other, did)
        return self._described(kind, seen, granule, time)

    def _described(self, kind, seen, granule, time):
        return describe(kind, seen)

    def _a_reader(self, granule, time, thread, code):
        """Some other thread that read this granule at this time, if that is still remembered."""
        for when, address, mask, width in self.remembered:
            if when == time:
                lanes, index = self.granules.lanes(address, mask, width)
                readers = lanes.thread[index == granule]
                readers = readers[readers != thread]
                if code < SEVERAL:
                    readers = readers[readers >> 5 == code - WARP]
                apart = readers[readers >> 5 != thread >> 5]
                readers = apart if len(apart) else readers
                return int(readers[0]) if len(readers) else None
        return None
