"""Asynchronous copies and their barriers: cp.async and mbarrier (PTX ISA 9.7.9.25 and 9.7.13.15).

Copies read their source when issued and write shared memory when they are waited for, as late as the
program allows: at `cp.async.wait_group` or `wait_all` of the copying thread, or, after a
`cp.async.mbarrier.arrive`, when a thread of the block first looks at that mbarrier. A kernel that
reads too early therefore finds the old data, every time.

An mbarrier is a 64-bit word in shared memory: bits 0-19 the arrivals still pending, 20-39 the
expected count, 40-60 the transaction bytes outstanding, 63 the parity of the current phase. The
token of an arrival is the word as it stood before. Programs must not look inside either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.errors import ExecutionError
from emulator.machine.values import Affine, Pattern
from emulator.ops.memory import deliver, fetch, resolve, space_of
from emulator.text.program import SINK, Reg

_ELEMENT = {4: np.dtype(np.uint32), 8: np.dtype(np.uint64), 16: np.dtype(np.complex128)}
_COUNT = (1 << 20) - 1
_TX = (1 << 21) - 1


# --- Copies -----------------------------------------------------------------------------------------


@dataclass
class Copy:
    """One execution of a cp.async whose data have not landed in some lanes.

    lanes: those lanes, (B, T) bool, or None for all. group: how many groups the thread had committed
    at the time, an int or (B, T). order: when it was issued, in copies.
    """

    ins: object
    memory: object
    address: object
    lanes: np.ndarray | None
    data: np.ndarray
    width: int
    group: int | np.ndarray
    order: int
    ticket: int


class Copies:
    """The copies under way of one chunk, oldest first."""

    def __init__(self):
        self.pending: list[Copy] = []
        self.commits: int | np.ndarray = 0  # groups that each thread has committed
        self.issued = 0

    def commit(self, m, mask) -> None:
        if mask is None:
            self.commits = self.commits + 1
        else:
            self.commits = np.broadcast_to(self.commits, (m.B, m.T)) + mask

    def wait(self, m, mask, left: int) -> None:
        """Lands the groups of these threads but for the newest `left`; with -1, everything."""
        limit = self.commits - left
        for copy in self.pending:
            done = copy.group < limit
            if done is True or done is np.True_ or (isinstance(done, np.ndarray) and done.all()):
                self.land(m, copy, mask)
            elif isinstance(done, np.ndarray) and done.any():
                self.land(m, copy, done if mask is None else done & mask)
        self.sweep()

    def land_before(self, m, lanes: np.ndarray, order: int) -> None:
        """Lands what these threads issued before copy number `order`."""
        for copy in self.pending:
            if copy.order < order:
                self.land(m, copy, lanes)
        self.sweep()

    def land(self, m, copy: Copy, mask) -> None:
        lanes = copy.lanes
        if mask is None or lanes is mask:
            copy.lanes = False
        elif lanes is None:
            lanes, copy.lanes = mask, ~mask
        else:
            lanes, copy.lanes = lanes & mask, lanes & ~mask
            if not lanes.any():
                return
        dtype = _ELEMENT[copy.width]
        deliver(m, copy.memory, copy.address, lanes, dtype, [copy.data], copy.ins)
        if m.sanitizer is not None:
            m.sanitizer.land(copy.address, lanes, copy.width, copy.ticket)

    def sweep(self) -> None:
        self.pending = [c for c in self.pending if c.lanes is None or np.any(c.lanes)]


def _copies(m) -> Copies:
    return m.state("copies", Copies)


def cp(ins, bind):
    """cp.async and what belongs to it; bulk and tensor copies are refused."""
    if ins.parts[1] != "async":
        raise bind.unsupported()
    table = {"commit_group": _commit_group, "wait_group": _wait_group, "wait_all": _wait_all}
    kind = ins.parts[2]
    if kind in table:
        return table[kind](ins, bind)
    if kind == "mbarrier":
        return _copy_arrive(ins, bind)
    if kind not in ("ca", "cg"):
        raise bind.unsupported("bulk and tensor copies (TMA) are outside; compile for sm_80")
    return _copy(ins, bind)


def _copy(ins, bind):
    kind = f"cp.async.{ins.parts[2]}"
    target, source = (bind.address(operand, space) for operand, space in
                      zip(ins.operands, ("shared", "global"), strict=False))  # fmt: skip
    width = bind.constant(ins.operands[2], 4)
    if width not in _ELEMENT or (width != 16 and kind == "cp.async.cg"):
        raise bind.unsupported(f"{width} bytes")
    dtype = _ELEMENT[width]
    size_of = ignore = None
    for operand in ins.operands[3:]:
        held = bind.width(operand) if isinstance(operand, Reg) else 4
        if held == 0:
            ignore = bind.predicate(operand)
        elif held == 4 and size_of is None:
            size_of = bind.integer(operand, "u32")

    def step(m, mask):
        copies = _copies(m)
        ((memory, where, lanes, _name),) = resolve(m, "shared", target(m), mask)
        memory.places(m, where, lanes, width, width, ins)  # checked now, though written later
        address = source(m)
        size = size_of(m) if size_of else width
        if ignore is not None:
            size = np.where(np.broadcast_to(ignore(m), (m.B, m.T)), 0, width)
        elif type(size) is not int:
            size = m.addresses(size)
        data, reading = _read(m, address, mask, dtype, size, ins)
        ticket = 0
        if m.sanitizer is not None:
            ticket = m.sanitizer.copy(where, lanes, width, ins)
        _count_copy(m, ins, kind, where, lanes, address, reading, width)
        copies.issued += 1
        group = copies.commits
        copies.pending.append(
            Copy(ins, memory, where, lanes, data, width, group, copies.issued, ticket)
        )

    return step


def _read(m, address, mask, dtype: np.dtype, size, ins):
    """The source, zeros past `size` bytes; and the lanes that read memory at all (False for none)."""
    width = dtype.itemsize
    if type(size) is int and size == width:
        return _fetch(m, address, mask, dtype, ins), mask
    size = np.broadcast_to(size, (m.B, m.T))
    lanes = m.lanes_of(mask)
    if (size[lanes] > width).any():
        lane = int((lanes & (size > width)).reshape(-1).argmax())
        text = f"cp.async asks for more than the {width} bytes that it copies"
        m.fail(ExecutionError, text, ins, *divmod(lane, m.T))
    whole, part = lanes & (size == width), lanes & (size > 0) & (size < width)
    if not part.any() and (whole == lanes).all():
        return _fetch(m, address, mask, dtype, ins), mask
    data = np.zeros((m.B, m.T), dtype)
    if whole.any():
        data[whole] = np.broadcast_to(_fetch(m, address, whole, dtype, ins), (m.B, m.T))[whole]
    if part.any():
        octets = data.view(np.uint8).reshape(m.B, m.T, width)
        for i in range(width - 1):
            here = part & (size > i)
            if here.any():
                at = _shifted(m, address, i)
                octet = _fetch(m, at, here, np.dtype(np.uint8), ins)
                octets[..., i][here] = np.broadcast_to(octet, (m.B, m.T))[here]
    reading = whole | part
    return data, reading if reading.any() else False


def _shifted(m, address, by: int):
    if type(address) is int:
        return address + by
    return Affine(address.pattern, address.offset + by)


def _fetch(m, address, mask, dtype, ins):
    found = None
    for memory, where, lanes, _ in resolve(m, "generic", address, mask):
        (values,) = fetch(m, memory, where, lanes, dtype, 1, ins)
        found = values if found is None else np.where(lanes, values, found)
    return found


_COUNTED = (
    "shared_wavefronts",
    "shared_wavefronts_ideal",
    "global_requests",
    "global_sectors",
    "bytes",
)


def _count_copy(m, ins, kind, where, lanes, address, reading, width) -> None:
    """Both sides of a copy; its bytes are counted once.

    For `cp.async.cg` they depend on each other; what a pair of patterns costs, at offsets of whole
    lines, is remembered.
    """
    row = m.rows[ins.index]
    facts = getattr(where, "pattern", m.nowhere).facts
    other = getattr(address, "pattern", m.nowhere)
    by_line = kind == "cp.async.cg" and m.counting
    key = ("copy", _offset(where) & 127, _offset(address) & 127)
    known = facts.get(key) if by_line else None
    same = known is not None and known[0] is other and known[1] is lanes and known[2] is reading
    if same and not (m.is_first and row.room > 0):
        for name, value in zip(_COUNTED, known[3], strict=True):
            setattr(row, name, getattr(row, name) + value)
        return
    before = [getattr(row, name) for name in _COUNTED]
    sources = m.addresses(address).reshape(m.W, 32) if by_line else None
    m.count_shared(ins, where, lanes, width, kind, sources=sources)
    row.bytes = before[-1]
    if reading is not False:
        there = m.addresses(where).reshape(m.W, 32) if by_line else None
        m.count_global(ins, address, reading, width, kind, destinations=there)
    if by_line:
        added = [getattr(row, name) - old for name, old in zip(_COUNTED, before, strict=True)]
        facts[key] = (other, lanes, reading, added)


def _offset(address) -> int:
    return address if type(address) is int else address.offset


def _commit_group(ins, bind):
    return lambda m, mask: _copies(m).commit(m, mask)


def _wait_group(ins, bind):
    left = bind.constant(ins.operands[0], 4)
    return lambda m, mask: _copies(m).wait(m, mask, left)


def _wait_all(ins, bind):
    return lambda m, mask: _copies(m).wait(m, mask, -1)


# --- Barriers ---------------------------------------------------------------------------------------


@dataclass
class Arrival:
    """A cp.async.mbarrier.arrive that waits for the copies its threads issued before copy `order`."""

    ins: object
    offset: int
    lanes: np.ndarray
    order: int


class Barrier:
    """The mbarriers at one offset in each block's shared memory. Fields are (B,) int64."""

    def __init__(self, m, offset: int):
        self.m, self.offset = m, offset
        self.word = m.shared.buffer.view(np.dtype(np.uint64))
        self.index = (np.arange(m.B) * m.shared.stride + offset) >> 3
        word = self.word[self.index].astype(np.uint64)
        self.pending = (word & np.uint64(_COUNT)).astype(np.int64)
        self.expected = (word >> np.uint64(20) & np.uint64(_COUNT)).astype(np.int64)
        tx = (word >> np.uint64(40) & np.uint64(_TX)).astype(np.int64)
        self.tx = np.where(tx > _TX >> 1, tx - _TX - 1, tx)
        self.phase = (word >> np.uint64(63)).astype(np.int64)

    @staticmethod
    def pack(pending, expected, tx, phase) -> np.ndarray:
        """The word (uint64) of these fields."""
        fields = ((pending & _COUNT, 0), (expected & _COUNT, 20), (tx & _TX, 40), (phase & 1, 63))
        return sum(np.asarray(f).astype(np.uint64) << np.uint64(at) for f, at in fields)

    def store(self, blocks: np.ndarray) -> None:
        word = self.pack(self.pending, self.expected, self.tx, self.phase)
        self.word[self.index[blocks]] = word[blocks]
        self.m.progress()

    def complete(self, blocks: np.ndarray) -> None:
        """Ends the phase where nothing is pending any more."""
        done = blocks & (self.pending == 0) & (self.tx == 0)
        self._turn(done, np.ones_like(self.phase))

    def _turn(self, done: np.ndarray, phases: np.ndarray) -> None:
        if done.any():
            self.phase = np.where(done, self.phase ^ (phases & 1), self.phase)
            self.pending = np.where(done & (self.pending == 0), self.expected, self.pending)
            if self.m.sanitizer is not None:
                now, past = _keys(self.offset)
                self.m.sanitizer.transfer(now, past, done)

    def arrive(self, lanes: np.ndarray, count) -> np.ndarray:
        """Lanes, (B, T) bool, arrive with `count` each. Returns each lane's token, (B, T) uint64."""
        m = self.m
        blocks = lanes.any(axis=1)
        if m.sanitizer is not None:
            m.sanitizer.release(_keys(self.offset)[0], _warps(m, lanes))
        each = np.where(lanes, count, 0)
        before = np.cumsum(each, axis=1) - each  # arrivals of the lanes ahead, in lane order
        total = each.sum(axis=1)
        expected = np.maximum(self.expected, 1)
        beyond = before - self.pending[:, None]  # arrivals into later phases
        waiting = self.tx != 0  # the phase cannot end before its bytes are there
        later = (beyond >= 0) & ~waiting[:, None]
        passed = np.where(later, beyond // expected[:, None] + 1, 0)
        left = np.where(later, expected[:, None] - beyond % expected[:, None], -beyond)
        token = self.pack(
            left, self.expected[:, None], self.tx[:, None], self.phase[:, None] + passed
        )
        left = self.pending - total
        phases = np.where(waiting | (left > 0), 0, -left // expected + 1)
        self.pending = np.where(blocks, left + phases * self.expected, self.pending)
        self._turn(blocks & (phases > 0), phases)
        self.store(blocks)
        return token

    def check(self, lanes: np.ndarray, ins) -> None:
        bad = lanes.any(axis=1) & (self.expected == 0) & (self.pending == 0)
        if bad.any():
            block = int(bad.argmax())
            thread = int(lanes[block].argmax())
            text = f"the mbarrier at byte {self.offset} of shared memory is not initialised"
            self.m.fail(ExecutionError, text, ins, block, thread, address=self.offset)


def _keys(offset: int) -> tuple:
    """What the sanitizer calls the arrivals of an mbarrier's current and of its finished phases."""
    return ("mbarrier", offset, "now"), ("mbarrier", offset, "past")


def _warps(m, lanes: np.ndarray) -> np.ndarray:
    return lanes.reshape(m.B, m.T // 32, 32).any(axis=2)


def _barriers(m, ins, space: str, address, mask) -> list[tuple[int, np.ndarray]]:
    """[(offset, lanes)]: the mbarriers that an instruction names, and who names each."""
    found = []
    for memory, where, lanes, name in resolve(m, space, address, mask):
        if name != "shared":
            m.fail(ExecutionError, "an mbarrier must be in shared memory", ins)
        memory.places(m, where, lanes, 8, 8, ins)
        lanes = m.lanes_of(lanes)
        if type(where) is int:
            found.append((where, lanes))
            continue
        offsets = m.addresses(where)
        distinct = np.unique(offsets[lanes]).tolist()
        if len(distinct) == 1:
            found.append((distinct[0], lanes))
        else:
            found += [(offset, lanes & (offsets == offset)) for offset in distinct]
    return found


def _arrivals(m) -> list[Arrival]:
    return m.state("arrivals", list)


def _copy_arrive(ins, bind):
    """cp.async.mbarrier.arrive: the mbarrier is arrived at when this thread's copies have landed."""
    space, get = space_of(ins), bind.address(ins.operands[0], space_of(ins))
    counted = "noinc" in ins.parts

    def step(m, mask):
        copies = _copies(m)
        for offset, lanes in _barriers(m, ins, space, get(m), mask):
            if not counted:  # one more is pending, until the copies land
                barrier = Barrier(m, offset)
                barrier.check(lanes, ins)
                barrier.pending = barrier.pending + lanes.sum(axis=1)
                barrier.store(lanes.any(axis=1))
            _arrivals(m).append(Arrival(ins, offset, lanes, copies.issued + 1))

    return step


def _settle(m, offset: int, lanes: np.ndarray) -> None:
    """Completes the copies that arrive at this mbarrier, in the blocks that look at it."""
    arrivals = _arrivals(m)
    blocks = lanes.any(axis=1)[:, None]
    for arrival in arrivals:
        if arrival.offset == offset:
            done = arrival.lanes & blocks
            if done.any():
                _copies(m).land_before(m, done, arrival.order)
                Barrier(m, offset).arrive(done, 1)
                arrival.lanes = arrival.lanes & ~blocks
    arrivals[:] = [arrival for arrival in arrivals if arrival.lanes.any()]


def mbarrier(ins, bind):
    """mbarrier.init, inval, arrive, arrive_drop, expect_tx, complete_tx, test_wait, try_wait, pending_count."""
    kind = ins.parts[1]
    if kind not in _MBARRIER or "multimem" in ins.parts:
        raise bind.unsupported()
    return _MBARRIER[kind](ins, bind)


def _init(ins, bind):
    space = space_of(ins)
    get, count_of = bind.address(ins.operands[0], space), bind.integer(ins.operands[1], "u32")

    def step(m, mask):
        counts = m.addresses(count_of(m))
        for offset, lanes in _barriers(m, ins, space, get(m), mask):
            barrier, blocks = Barrier(m, offset), lanes.any(axis=1)
            count = np.where(lanes, counts, 0).max(axis=1)
            if ((count < 1) | (count > _COUNT))[blocks].any():
                m.fail(ExecutionError, f"an mbarrier counts 1 to {_COUNT} arrivals", ins)
            barrier.pending = barrier.expected = count
            barrier.tx, barrier.phase = np.zeros_like(count), np.zeros_like(count)
            barrier.store(blocks)

    return step


def _inval(ins, bind):
    space, get = space_of(ins), bind.address(ins.operands[0], space_of(ins))

    def step(m, mask):
        for offset, lanes in _barriers(m, ins, space, get(m), mask):
            barrier = Barrier(m, offset)
            barrier.word[barrier.index[lanes.any(axis=1)]] = 0

    return step


def _arrive(ins, bind):
    """arrive and arrive_drop, with .expect_tx and .noComplete."""
    space, operands = space_of(ins), list(ins.operands)
    put = None
    if len(operands) > 1 and not hasattr(operands[0], "base"):
        destination = operands.pop(0)
        put = bind.put(destination) if destination != SINK else None
    get = bind.address(operands[0], space)
    last = bind.integer(operands[1], "u32") if len(operands) > 1 else lambda m: 1
    expects, drops = "expect_tx" in ins.parts, ins.parts[1] == "arrive_drop"

    def step(m, mask):
        value = last(m)
        value = value if type(value) is int else m.addresses(value)
        tokens = np.zeros((m.B, m.T), np.uint64)
        for offset, lanes in _barriers(m, ins, space, get(m), mask):
            barrier = Barrier(m, offset)
            barrier.check(lanes, ins)
            count = 1 if expects else value
            if expects:
                barrier.tx = barrier.tx + np.where(lanes, value, 0).sum(axis=1)
            if drops:
                barrier.expected = barrier.expected - np.where(lanes, count, 0).sum(axis=1)
            tokens = np.where(lanes, barrier.arrive(lanes, count), tokens)
        if put is not None:
            put(m, tokens, mask)

    return step


def _expect_tx(ins, bind):
    space, sign = space_of(ins), 1 if ins.parts[1] == "expect_tx" else -1
    get, bytes_of = bind.address(ins.operands[0], space), bind.integer(ins.operands[1], "u32")

    def step(m, mask):
        value = m.addresses(bytes_of(m))
        for offset, lanes in _barriers(m, ins, space, get(m), mask):
            barrier = Barrier(m, offset)
            barrier.check(lanes, ins)
            barrier.tx = barrier.tx + sign * np.where(lanes, value, 0).sum(axis=1)
            if sign < 0:
                barrier.complete(lanes.any(axis=1))
            barrier.store(lanes.any(axis=1))

    return step


def _wait(ins, bind):
    """test_wait and try_wait: has the phase of a token, or of a parity, been completed?"""
    space = space_of(ins)
    put, get = bind.put(ins.operands[0]), bind.address(ins.operands[1], space)
    by_parity = "parity" in ins.parts
    if by_parity:
        parity_of = bind.integer(ins.operands[2], "u32")
    else:
        token_of = bind.array(ins.operands[2], np.uint64)

    def step(m, mask):
        if by_parity:
            wanted = m.addresses(parity_of(m)) & 1
        else:
            wanted = np.broadcast_to(token_of(m), (m.B, m.T)) >> np.uint64(63)
            wanted = wanted.astype(np.int64)
        holds, everyone = np.zeros((m.B, m.T), bool), True
        for offset, lanes in _barriers(m, ins, space, get(m), mask):
            _settle(m, offset, lanes)
            barrier = Barrier(m, offset)
            barrier.check(lanes, ins)
            passed = lanes & (barrier.phase[:, None] != wanted)
            holds |= passed
            everyone &= bool((passed == lanes).all())
            if m.sanitizer is not None and passed.any():
                m.sanitizer.acquire(_keys(offset)[1], _warps(m, passed))
        put(m, holds, mask)
        if not everyone:
            m.spin(mask)

    return step


def _pending_count(ins, bind):
    put, token = bind.put(ins.operands[0]), bind.array(ins.operands[1], np.uint64)

    def step(m, mask):
        count = np.broadcast_to(token(m) & np.uint64(_COUNT), (m.B, m.T)).astype(np.int64)
        put(m, Affine(Pattern(count, 0, _COUNT)), mask)

    return step


_MBARRIER = {
    "init": _init,
    "inval": _inval,
    "arrive": _arrive,
    "arrive_drop": _arrive,
    "expect_tx": _expect_tx,
    "complete_tx": _expect_tx,
    "test_wait": _wait,
    "try_wait": _wait,
    "pending_count": _pending_count,
}

OPCODES = {"cp": cp, "mbarrier": mbarrier}
