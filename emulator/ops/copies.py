"""cp.async and what waits for it (PTX ISA 9.7.9.25).

Copies read their source when issued and write shared memory when they are waited for, as late as the
program allows: at `cp.async.wait_group` or `wait_all` of the copying thread, or, after a
`cp.async.mbarrier.arrive`, when a thread of the block first looks at that mbarrier. A kernel that
reads too early therefore finds the old data, every time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.errors import ExecutionError
from emulator.machine.access import deliver, fetch, resolve, space_of, watch_global
from emulator.machine.mbarriers import MBarrier, named
from emulator.machine.values import Affine
from emulator.ops.forms import PREFETCHED
from emulator.text.program import Reg
from emulator.text.rows import Row

_ELEMENT = {4: np.dtype(np.uint32), 8: np.dtype(np.uint64), 16: np.dtype(np.complex128)}


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

    def under_way(self) -> int:
        """The most groups with copies that have not landed, over the threads; one that is not committed counts too."""
        if all(isinstance(copy.group, int) for copy in self.pending):
            return len({copy.group for copy in self.pending})
        found, last = 0, -1
        for copy in self.pending:  # the numbers of a thread's groups never fall
            lanes = True if copy.lanes is None else copy.lanes
            new = lanes & (copy.group != np.asarray(last))
            found, last = found + new, np.where(lanes, copy.group, last)
        return int(np.max(found))

    def sweep(self) -> None:
        self.pending = [c for c in self.pending if c.lanes is None or np.any(c.lanes)]


def _copies(m) -> Copies:
    return m.state("copies", Copies)


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
        if reading is not False:
            watch_global(m, ins, address, reading, width, "load")
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
                at = _shifted(address, i)
                octet = _fetch(m, at, here, np.dtype(np.uint8), ins)
                octets[..., i][here] = np.broadcast_to(octet, (m.B, m.T))[here]
    reading = whole | part
    return data, reading if reading.any() else False


def _shifted(address, by: int):
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
    if known is not None and known[0] is other and known[1] is lanes and known[2] is reading:
        for name, value in zip(_COUNTED, known[3], strict=True):
            setattr(row, name, getattr(row, name) + value)
        m.sample(row, "shared", where, lanes, width, kind)
        if reading is not False:
            m.sample(row, "global", address, reading, width, kind)
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


# --- Copies that arrive at an mbarrier ---


@dataclass
class Arrival:
    """A cp.async.mbarrier.arrive that waits for the copies its threads issued before copy `order`."""

    ins: object
    offset: int
    lanes: np.ndarray
    order: int


def _arrivals(m) -> list[Arrival]:
    return m.state("arrivals", list)


def _copy_arrive(ins, bind):
    """cp.async.mbarrier.arrive: the mbarrier is arrived at when this thread's copies have landed."""
    space, get = space_of(ins), bind.address(ins.operands[0], space_of(ins))
    counted = "noinc" in ins.parts

    def step(m, mask):
        copies = _copies(m)
        for name in named(m, ins, space, get(m), mask):
            offset, lanes = name.offset, name.lanes
            if not counted:  # one more is pending, until the copies land
                barrier = MBarrier(m, offset)
                barrier.check(lanes, ins)
                barrier.pending = barrier.pending + lanes.sum(axis=1)
                barrier.store(lanes.any(axis=1))
            _arrivals(m).append(Arrival(ins, offset, lanes, copies.issued + 1))

    return step


def settle(m, offset: int, lanes: np.ndarray) -> bool:
    """Completes the copies that arrive at this mbarrier, in the blocks that look at it. Were there any?"""
    arrivals = _arrivals(m)
    blocks = lanes.any(axis=1)[:, None]
    found = False
    for arrival in arrivals:
        if arrival.offset == offset:
            done = arrival.lanes & blocks
            if done.any():
                found = True
                _copies(m).land_before(m, done, arrival.order)
                MBarrier(m, offset).arrive(done, 1)
                arrival.lanes = arrival.lanes & ~blocks
    arrivals[:] = [arrival for arrival in arrivals if arrival.lanes.any()]
    return found


OPCODES = {
    "cp": {
        f"async! ca|cg! shared|shared::cta global L2::cache_hint {PREFETCHED}": Row(
            _copy, (3, 4, 5), types="-", spread="none"
        ),
        "async! commit_group!": Row(_commit_group, (0,), types="", spread="none"),
        "async! wait_group!": Row(_wait_group, (1,), types="-", spread="none"),
        "async! wait_all!": Row(_wait_all, (0,), types="", spread="none"),
        "async! mbarrier! arrive! noinc shared|shared::cta b64!": Row(
            _copy_arrive, (1,), types="-", spread="none"
        ),
    }
}
