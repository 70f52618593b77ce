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
strong access but plain atomics). Lanes of one instruction that write one address are not reported.
"""

import re
from collections import deque
from dataclasses import dataclass, field

import numpy as np

_WARP = (
    1 << 16
)  # a granule's readers: a thread, `_WARP + warp` for lanes of one warp, or `_SEVERAL`
_SEVERAL = 1 << 20
_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}
_FLAGS = 8  # different addresses of one strong access that may carry order between warps
_REMEMBERED = 512  # reads whose lanes can still be named in a report


@dataclass
class Hazard:
    """One pair of places in the program that can go wrong together, as first seen.

    kind: "read-after-write", "write-after-read", "write-after-write", "uninitialised-read" or
    "unfinished-copy". source, ptx_line, thread: of the access that was noticed; other_...: of the
    earlier one, or None. source is (file, line) in the kernel's own file, or None without
    `-lineinfo`; frames adds what was inlined there, innermost first. block, thread are (x, y, z).
    address: byte offset in the block's shared memory, that is symbol + offset. count: how often, in
    granules.
    """

    kind: str
    message: str
    source: tuple[str, int] | None
    other_source: tuple[str, int] | None
    ptx_line: int
    other_ptx_line: int | None
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    other_thread: tuple[int, int, int] | None
    address: int
    symbol: str
    offset: int
    count: int = 0
    frames: tuple[tuple[str, int], ...] = ()
    other_frames: tuple[tuple[str, int], ...] = ()

    def __str__(self):
        return self.message + (f" ({self.count} times)" if self.count > 1 else "")


@dataclass
class Report:
    """The hazards of a launch, one for each kind and pair of source lines (PTX lines without)."""

    found: dict = field(default_factory=dict)

    @property
    def hazards(self) -> list[Hazard]:
        return list(self.found.values())


def source_name(symbol):
    """A shared variable as its author wrote it: `_ZZ10gemm_tiledE2As` is `As` in `gemm_tiled`."""
    if symbol.startswith("_ZZ"):
        for found in re.finditer(r"E(\d+)", symbol):
            name = symbol[found.end() :]
            if len(name) == int(found.group(1)):  # Itanium C++ ABI 5.1.6: local names
                return name
    return symbol


def watch(chunk, report):
    """The Shadow of a machine's chunk, or None for a kernel without shared memory."""
    size = chunk.shared.size
    if not size:
        return None
    names = sorted((start, source_name(name)) for name, start in chunk.code.shared_symbols.items())
    ends = [*(start for start, _ in names[1:]), size][: len(names)]  # dynamic memory may go unused
    symbols = [(name, start, end - start) for (start, name), end in zip(names, ends, strict=True)]
    by_warp = any(_orders_some(ins) for ins in chunk.code.instructions.values())
    x, y, _ = chunk.launch.block
    return Shadow(
        chunk.B,
        chunk.T,
        size,
        report,
        symbols,
        block_of=lambda b: tuple(int(i) for i in chunk.blocks[b]),
        thread_of=lambda t: (t % x, t // x % y, t // (x * y)),
        by_warp=by_warp,
        alive=lambda: chunk.lanes_of(chunk.alive),
    )


def _orders_some(ins):
    """Whether an instruction orders some warps of a block but not all."""
    if "mbarrier" in ins.parts or not _STRONG.isdisjoint(ins.parts):
        return True
    if ins.parts[0] not in ("bar", "barrier") or "warp" in ins.parts or "cluster" in ins.parts:
        return False
    return "arrive" in ins.parts or len(ins.operands) > (3 if "red" in ins.parts else 1)


@dataclass(frozen=True)
class _Lanes:
    """One access by granule: flat arrays over (active lane, granule of it)."""

    index: np.ndarray  # block * granules + granule
    block: np.ndarray
    thread: np.ndarray


@dataclass(frozen=True)
class _Readers:
    """The distinct granules of a read with who reads each; with `by_warp`, once for each warp."""

    index: np.ndarray
    block: np.ndarray
    code: np.ndarray
    warp: np.ndarray
    several: bool  # whether every code is `_SEVERAL`


class _Nowhere:
    """Stands in for the pattern of an address that is the same for all lanes."""

    def __init__(self):
        self.array = np.zeros((1, 1), np.int64)
        self.facts = {}

    def remember(self, key, value):
        if len(self.facts) > 64:
            self.facts.clear()
        self.facts[key] = value
        return value


class Shadow:
    """The shadow of one chunk of resident blocks.

    blocks: how many; threads: of a block, a multiple of 32; size: bytes of a block's shared memory.
    report: where hazards go. symbols: (name, start, bytes) of the shared variables. block_of,
    thread_of: from an index to (x, y, z). by_warp: for kernels with mbarriers, named or partial
    barriers. alive: returns the threads that have not exited, (blocks, threads) bool.

    Addresses are byte offsets in a block's shared memory: an int, an `Affine` of `emulator.values`,
    or an array, broadcast to (blocks, threads). Masks are (blocks, threads) bool, or None for all
    lanes.
    """

    def __init__(
        self,
        blocks,
        threads,
        size,
        report=None,
        symbols=(),
        block_of=lambda b: (b, 0, 0),
        thread_of=lambda t: (t, 0, 0),
        by_warp=False,
        alive=None,
    ):
        self.blocks, self.threads, self.size = blocks, threads, size
        self.warps = threads // 32
        self.report = report if report is not None else Report()
        self.symbols, self.block_of, self.thread_of = symbols, block_of, thread_of
        self.by_warp, self.alive = by_warp, alive
        self.shift = 2
        self.granules = (size >> 2) + 4
        self.now = 0
        self.log = [(None, "")]  # time -> (instruction, what it did)
        self.remembered = deque(maxlen=_REMEMBERED)  # (time, address, mask, width) of reads
        self.floor = np.zeros(blocks, np.int32)
        self.lowest = 0
        self.known = np.zeros((blocks, self.warps, self.warps), np.int32)
        self.released = {}
        self.nowhere = _Nowhere()
        count = blocks * self.granules
        self.write_time = np.zeros(count, np.int32)  # 0: never written
        self.writer = np.zeros(count, np.int16)
        self.read_time = np.zeros(count, np.int32)
        self.reader = np.zeros(count, np.int32)
        self.read_by = np.zeros((count, self.warps), np.int32) if by_warp else None
        self.copying = None  # when the copy under way was issued, 0 for none
        self.copier = None

    # --- Accesses ---

    def access(self, chunk, instruction, address, mask, width, kind):
        """A "load", "store" or "atomic" of the machine."""
        strong = kind == "atomic" or not _STRONG.isdisjoint(instruction.parts)
        call = self.read if kind == "load" else self.write
        call(address, mask, width, instruction, strong)

    def read(self, address, mask, width, instruction, strong=False):
        """Lanes read `width` bytes each. strong: atomic, volatile, relaxed or acquire."""
        self._refine(width)
        readers, base = self._cached("readers", address, mask, width, self._readers)
        index = readers.index + base
        if not len(index):
            return
        now = self._tick(instruction, "strong" if strong else "read")
        if strong and self.by_warp:
            self._flags(address, mask, width, self.acquire)
        self.remembered.append((now, address, mask, width))
        written = self.write_time[index]
        suspect = written.min() == 0 or (
            written.max() > self.lowest and not self._ordered_for_warps(readers, index, written)
        )
        if suspect or (self.copying is not None and self.copying[index].any()):
            self._check_read(address, mask, width, now, strong)
        code = readers.code
        if self.by_warp:
            self.read_by[index, readers.warp] = now
        elif not readers.several:
            before = self.reader[index]
            stale = self.read_time[index] <= self.floor[readers.block]
            if not stale.all():
                one_warp = (_warp_of(before) == _warp_of(code)) & (before < _SEVERAL)
                joint = np.where(one_warp & (code < _SEVERAL), _WARP + _warp_of(code), _SEVERAL)
                code = np.where(stale | (before == code), code, joint)
        self.reader[index] = code
        self.read_time[index] = now

    def write(self, address, mask, width, instruction, strong=False):
        """Lanes write `width` bytes each. strong: atomic, volatile, relaxed or release."""
        self._refine(width)
        lanes, base = self._cached("lanes", address, mask, width, self._lanes)
        index = lanes.index + base
        if not len(index):
            return
        now = self._tick(instruction, "strong" if strong else "write")
        if strong and self.by_warp:
            self._flags(address, mask, width, self.acquire)
            self._flags(address, mask, width, self.release)
        self._check_write(index, lanes, now, strong)
        self.write_time[index] = now
        self.writer[index] = lanes.thread

    def copy(self, address, mask, width, instruction):
        """Lanes issue a `cp.async` of `width` bytes to these addresses. Returns a ticket."""
        self._refine(width)
        if self.copying is None:
            self.copying = np.zeros(len(self.write_time), np.int32)
            self.copier = np.zeros(len(self.write_time), np.int16)
        lanes, base = self._cached("lanes", address, mask, width, self._lanes)
        index = lanes.index + base
        now = self._tick(instruction, "copy")
        if len(index):
            self._check_write(index, lanes, now, False)
            self.copying[index] = now
            self.copier[index] = lanes.thread
        return now

    def land(self, address, mask, width, ticket):
        """The copies of these lanes under this ticket have been waited for, by those lanes."""
        self._refine(width)
        lanes, base = self._cached("lanes", address, mask, width, self._lanes)
        index = lanes.index + base
        if not len(index):
            return
        now = self._tick(self.log[ticket][0], "copy")
        self.copying[index[self.copying[index] == ticket]] = 0
        self.write_time[index] = now
        self.writer[index] = lanes.thread

    # --- Order ---

    def barrier(self, number, lanes, done):
        """Lanes met at barrier `number` in the blocks `done`, (blocks,) bool."""
        here = self._warps_of(lanes)
        arrived = self.released.get(("bar", number))
        there = here if self.alive is None else here | ~self._warps_of(self.alive())
        full = done & there.all(axis=1)
        if full.all():
            self._tick(None, "barrier")
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

    def barrier_arrive(self, number, lanes):
        """Lanes arrived at barrier `number` without waiting."""
        self.release(("bar", number), self._warps_of(lanes))

    def warp_barrier(self, lanes=None):
        """These lanes, (blocks, threads) bool or None for all, executed a `.sync` together."""
        self._tick(None, "sync")
        own = np.einsum("bww->bw", self.known)  # a writable view of the diagonals
        if lanes is None:
            own[...] = self.now
        else:
            own[self._warps_of(lanes)] = self.now
        if self.warps == 1:
            self._settle()

    def release(self, key, warps):
        """These warps, (blocks, warps) bool, arrive at what is called `key` (any hashable)."""
        self._tick(None, "arrive")
        clock = self.released.get(key)
        if clock is None:
            clock = self.released[key] = np.zeros((self.blocks, self.warps), np.int32)
        np.maximum(clock, np.where(warps[:, :, None], self.known, 0).max(axis=1), out=clock)
        np.maximum(clock, np.where(warps, self.now, 0), out=clock)

    def acquire(self, key, warps):
        """These warps, (blocks, warps) bool, go on because of the arrivals at `key`."""
        clock = self.released.get(key)
        if clock is not None:
            joined = np.maximum(self.known, clock[:, None, :])
            np.copyto(self.known, joined, where=warps[:, :, None])
            self._settle()

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

    def _flags(self, address, mask, width, act):
        """Order through the few addresses that a strong access names."""
        lanes, base = self._cached("lanes", address, mask, width, self._lanes)
        granule = lanes.index + base - lanes.block.astype(np.int64) * self.granules
        flags = np.unique(granule)
        if len(flags) <= _FLAGS:
            for flag in flags.tolist():
                here = granule == flag
                warps = np.zeros((self.blocks, self.warps), bool)
                warps[lanes.block[here], lanes.thread[here] >> 5] = True
                act(("flag", flag << self.shift), warps)

    def _warps_of(self, lanes):
        return lanes.reshape(self.blocks, self.warps, 32).any(axis=2)

    def _settle(self):
        self.floor = self.known.min(axis=(1, 2))
        self.lowest = int(self.floor.min())

    def _tick(self, instruction, what):
        self.now += 1
        self.log.append((instruction, what))
        return self.now

    # --- Granules ---

    def _refine(self, width):
        """Halves the granule until `width` bytes are a whole number of them."""
        while width < 1 << self.shift:
            self.shift -= 1
            self.granules *= 2
            for name in (
                "write_time",
                "writer",
                "read_time",
                "reader",
                "read_by",
                "copying",
                "copier",
            ):
                old = getattr(self, name)
                if old is not None:
                    setattr(self, name, np.repeat(old, 2, axis=0))

    def _cached(self, name, address, mask, width, compute):
        """`compute`'s result for an address's pattern, remembered there, and the granule to add."""
        if isinstance(address, (int, np.integer)):
            pattern, offset = self.nowhere, int(address)
        elif hasattr(address, "pattern"):
            pattern, offset = address.pattern, address.offset
        else:
            return compute(np.asarray(address, np.int64), mask, width), 0
        rest = offset & 15
        key = ("shadow", name, self.shift, width, rest)
        known = pattern.facts.get(key)
        if known is None or known[0] is not mask or known[1] is not self:
            known = (mask, self, compute(pattern.array + rest, mask, width))
            pattern.remember(key, known)
        return known[2], (offset - rest) >> self.shift

    def _lanes(self, offsets, mask, width):
        shape = (self.blocks, self.threads)
        block = np.broadcast_to(np.arange(self.blocks, dtype=np.int32)[:, None], shape)
        thread = np.broadcast_to(np.arange(self.threads, dtype=np.int16), shape)
        offsets = np.broadcast_to(offsets, shape)
        if mask is None:
            mask = Ellipsis
        offsets, block, thread = (x[mask].reshape(-1) for x in (offsets, block, thread))
        index = (offsets >> self.shift) + block.astype(np.int64) * self.granules
        count = width >> self.shift
        if count > 1:
            index = (index[:, None] + np.arange(count)).reshape(-1)
            block, thread = np.repeat(block, count), np.repeat(thread, count)
        return _Lanes(index, block, thread)

    def _readers(self, offsets, mask, width):
        if mask is None and offsets.shape[0] == 1 and self.blocks > 1:
            one = self._distinct(self._lanes_of_one_block(offsets, width))
            at = np.arange(self.blocks)
            return _Readers(
                (at[:, None] * self.granules + one.index).reshape(-1),
                np.repeat(at, len(one.index)),
                np.tile(one.code, self.blocks),
                np.tile(one.warp, self.blocks),
                one.several,
            )
        return self._distinct(self._lanes(offsets, mask, width))

    def _lanes_of_one_block(self, offsets, width):
        offsets = np.broadcast_to(offsets, (1, self.threads)).reshape(-1)
        count = width >> self.shift
        index = ((offsets >> self.shift)[:, None] + np.arange(count)).reshape(-1)
        thread = np.repeat(np.arange(self.threads, dtype=np.int16), count)
        return _Lanes(index, np.zeros(len(index), np.int32), thread)

    def _distinct(self, lanes):
        if not len(lanes.index):
            return _Readers(lanes.index, lanes.block, lanes.block, lanes.block, False)
        thread = lanes.thread.astype(np.int32)
        order = np.lexsort((thread, lanes.index))
        index, thread, block = lanes.index[order], thread[order], lanes.block[order]
        new = np.concatenate([[True], index[1:] != index[:-1]])
        if self.by_warp:
            new[1:] |= thread[1:] >> 5 != thread[:-1] >> 5
        first = np.flatnonzero(new)
        low, high = thread[first], np.maximum.reduceat(thread, first)
        code = np.where(low >> 5 == high >> 5, _WARP + (low >> 5), _SEVERAL)
        code = np.where(low == high, low, code).astype(np.int32)
        return _Readers(index[first], block[first], code, low >> 5, bool((code == _SEVERAL).all()))

    # --- Checks ---

    def _ordered_for_warps(self, readers, index, written):
        """Whether each reading warp is ordered after the last writes; True only with `by_warp`."""
        if not self.by_warp:
            return False
        known = self.known[readers.block, readers.warp, self.writer[index] >> 5]
        return bool((written <= known).all())

    def _check_read(self, address, mask, width, now, strong):
        lanes, base = self._cached("lanes", address, mask, width, self._lanes)
        index = lanes.index + base
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
        inside = (_warp_of(code) == warp) & (code < _SEVERAL)
        if self.by_warp:
            late = self.read_by[at] > self.known[block, warp]
            own = np.arange(self.warps) == warp[:, None]
            # within the warp only the latest reader is remembered
            inside &= (late & own).any(axis=1) & (code != thread)
            late &= ~own
            elsewhere = late.any(axis=1)
            bad = elsewhere | inside
            code = np.where(elsewhere, _WARP + late.argmax(axis=1), code)
            times = np.where(elsewhere, np.where(late, self.read_by[at], 0).max(axis=1), times)
        else:
            bad = (code != thread) & ~(inside & (times <= self.known[block, warp, warp]))
        kind = "write-after-read"
        self._report_race(kind, index, lanes, recent[bad], now, strong, times[bad], code[bad])

    # --- Reports ---

    def _report_race(self, kind, index, lanes, hit, now, strong, times, others):
        if strong and len(hit):  # atomics do not race among each other
            weak = np.array([self.log[t][1] != "strong" for t in times.tolist()])
            hit, times, others = hit[weak], times[weak], others[weak]
        if len(hit):
            self._report(kind, index, lanes, hit, now, times, others)

    def _report(self, kind, index, lanes, hit, now, times=None, others=None):
        instruction = self.log[now][0]
        stamps, group = [0], np.zeros(len(hit), np.intp)
        if times is not None:
            stamps, group = np.unique(times, return_inverse=True)
        for i, time in enumerate(int(t) for t in stamps):
            members = np.flatnonzero(group == i)
            earlier = self.log[time][0]
            key = (kind, _place(instruction), _place(earlier))
            hazard = self.report.found.get(key)
            if hazard is None:
                at = int(hit[members[0]])
                other = None if others is None else int(others[members[0]])
                hazard = self._hazard(kind, now, time, index, lanes, at, other)
                self.report.found[key] = hazard
            hazard.count += len(members)

    def _hazard(self, kind, now, time, index, lanes, at, other):
        (instruction, _), (earlier, did) = self.log[now], self.log[time]
        block, thread = int(lanes.block[at]), int(lanes.thread[at])
        address = (int(index[at]) - block * self.granules) << self.shift
        symbol, offset = next(
            ((n, address - s) for n, s, size in self.symbols if s <= address < s + size),
            ("shared memory", address),
        )
        if other is not None and other >= _WARP:
            other = self._a_reader(int(index[at]), time, thread, other)
        one = self.thread_of(thread)
        two = None if other is None else self.thread_of(other)
        by = f"thread {two}" if two else "another thread"
        what, here, there = f"byte {offset} of {symbol}", _where(instruction), _where(earlier)
        same_warp = other is not None and other >> 5 == thread >> 5
        missing = "the warp does not synchronise" if same_warp else "no barrier stands"
        if kind == "read-after-write" and did == "copy":
            text = (
                f"thread {one} reads {what} {here}; {by} copied it {there} and waited for it, "
                f"but {missing} between that wait and this read"
            )
        elif kind == "read-after-write":
            text = f"thread {one} reads {what} {here} that {by} wrote {there}; {missing} between"
        elif kind == "write-after-read":
            text = (
                f"thread {one} overwrites {what} {here} while {by} may still be reading it "
                f"{there}; {missing} between"
            )
        elif kind == "write-after-write":
            text = f"thread {one} and {by} both write {what}, {here} and {there}; {missing} between"
        elif kind == "uninitialised-read":
            text = f"thread {one} reads {what} {here}, which no thread has written"
        else:
            text = (
                f"thread {one} touches {what} {here} while the cp.async that {by} issued {there} "
                "is under way: nobody has waited for it"
            )
        return Hazard(
            kind,
            f"{kind} in block {self.block_of(block)}: {text}",
            _source(instruction),
            _source(earlier),
            getattr(instruction, "line", None),
            getattr(earlier, "line", None),
            self.block_of(block),
            one,
            two,
            address,
            symbol,
            offset,
            frames=_frames(instruction),
            other_frames=_frames(earlier),
        )

    def _a_reader(self, granule, time, thread, code):
        """Some other thread that read this granule at this time, if that is still remembered."""
        for when, address, mask, width in self.remembered:
            if when == time:
                lanes, base = self._cached("lanes", address, mask, width, self._lanes)
                readers = lanes.thread[lanes.index + base == granule]
                readers = readers[readers != thread]
                if code < _SEVERAL:
                    readers = readers[readers >> 5 == code - _WARP]
                apart = readers[readers >> 5 != thread >> 5]
                readers = apart if len(apart) else readers
                return int(readers[0]) if len(readers) else None
        return None


def _warp_of(code):
    return np.where(code >= _WARP, code - _WARP, code >> 5)


def _frames(instruction):
    location = getattr(instruction, "location", None)
    return location.frames() if location is not None else ()


def _source(instruction):
    frames = _frames(instruction)
    return frames[-1] if frames else None


def _place(instruction):
    """What makes two instructions one place: the source line, else the PTX line."""
    return _source(instruction) or getattr(instruction, "line", None)


def _where(instruction):
    frames = [f"{file.rsplit('/', 1)[-1]}:{line}" for file, line in _frames(instruction)]
    if len(frames) > 1:
        return f"at {frames[-1]} ({frames[0]})"
    if frames:
        return f"at {frames[0]}"
    return f"at PTX line {instruction.line}" if instruction is not None else ""
