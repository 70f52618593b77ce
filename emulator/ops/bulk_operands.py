"""The operands of bulk copies: which threads issue one, from where to where, and what is refused of it."""

from __future__ import annotations

import numpy as np

from emulator.errors import Accessed, ExecutionError, Misaligned, OutOfBounds
from emulator.machine import boxes, map_fields
from emulator.machine.boxes import Mapped
from emulator.machine.cluster import RANK_BITS, REMOTE
from emulator.machine.memory import SHARED_WINDOW
from emulator.sanitizer.tensor_maps import changes


class Issuers:
    """The threads that execute a copy: a row for each, `block` and `thread` (R,)."""

    def __init__(self, m, mask):
        self.m = m
        self.block, self.thread = np.nonzero(m.lanes_of(mask))

    def __len__(self) -> int:
        return len(self.block)

    def __iter__(self):
        """(number of the row, block, thread) of each."""
        return zip(range(len(self)), self.block.tolist(), self.thread.tolist(), strict=True)

    def of(self, value) -> np.ndarray:
        """(R,) int64 of an integer operand."""
        if type(value) is int:
            return np.full(len(self), value - (1 << 64) if value >> 63 else value, np.int64)
        return self.m.addresses(value)[self.block, self.thread]


def _signed(values: np.ndarray) -> np.ndarray:
    return ((values + (1 << 31)) & ((1 << 32) - 1)) - (1 << 31)


def coordinates_of(operand, bind):
    """get(m, rows) -> (R, rank), slowest dimension first; and the rank."""
    if len(operand.further) != 1 or not hasattr(operand.further[0], "items"):
        raise bind.error("a tensor copy names its box as [map, {coordinates}]")
    gets = [bind.integer(item, "s32") for item in operand.further[0].items]
    return lambda m, rows: np.stack([_signed(rows.of(get(m))) for get in reversed(gets)], axis=1)


def check_dimensions(ins, bind, operand) -> None:
    if by_rows(ins):
        if "2d" not in ins or not operand.further or len(operand.further[0].items) != 5:
            raise bind.error("a column and four rows, of a tensor of two dimensions")
        return
    said = next((int(p[0]) for p in ins.parts if len(p) == 2 and p[1] == "d" and p[0].isdigit()), 0)
    given = len(operand.further[0].items) if operand.further else 0
    if not 1 <= said <= 5 or said != given:
        raise bind.error(f"a copy of {said} dimensions with {given} coordinates")


def by_rows(ins) -> bool:
    """Whether a tensor copy moves four rows that it names one by one."""
    return "tile::gather4" in ins or "tile::scatter4" in ins


def corners(
    m, ins, mapped: Mapped, first: tuple[int, ...], block: int, thread: int
) -> list[tuple[int, ...]]:
    """Where the boxes of a copy begin: one, or four rows whose numbers stand in `first` backwards, before the column."""
    if not by_rows(ins):
        return [first]
    if mapped.map.tile[0] != 1:
        text = f"{ins.opcode} by a tensor map whose boxes have {mapped.map.tile[0]} rows; it takes boxes of one"
        m.fail(ExecutionError, text, ins, block, thread)
    return [(row, first[-1]) for row in first[-2::-1]]


def plain_address(operand, bind):
    """An address operand without its coordinates."""
    return bind.address(type(operand)(operand.base, operand.offset), "generic")


def map_at(m, address: int, ins, block: int, thread: int) -> Mapped:
    """The tensor map whose 128 bytes are at a generic address."""
    buffer = m.launch.space.find(address)
    if address % 64:
        text = f"a tensor map at {address:#x}: it must stand at a multiple of 64 bytes"
        m.fail(Misaligned, text, ins, block, thread, address=address)
    found, known = None, m.launch.tensor_maps
    if buffer is not None and address + boxes.BYTES <= buffer.end:
        start = address - buffer.start
        data = buffer.bytes[start : start + boxes.BYTES].tobytes()
        number = boxes.number_of(data)
        if number is None:
            found = _changed(m, data, address, ins, block, thread)
        elif number < len(known):
            found = known[number]
        if m.device is not None and buffer.name != "the parameters":
            changes(m.device).used(ins, block, thread, address)
    if found is None:
        text = (
            f"there is no tensor map at {address:#x}; pass an emulator.TensorMap for a parameter "
            "of 128 bytes (const __grid_constant__ CUtensorMap) and take that parameter's address"
        )
        if address >= SHARED_WINDOW:
            text = "a tensor map in shared memory: TMA takes maps from global memory and parameters"
        m.fail(ExecutionError, text, ins, block, thread, address=address)
    if found.map.interleave:
        text = (
            f"a tensor map with interleave {found.map.interleave}: this machine does not model it"
        )
        m.fail(ExecutionError, text, ins, block, thread)
    return found


def _changed(m, data: bytes, address: int, ins, block: int, thread: int) -> Mapped | None:
    """The map that the kernel has made of these bytes; of equal bytes the same."""
    made = m.launch.changed_maps
    if data not in made:
        try:
            made[data] = map_fields.changed(data, m.launch.space)
        except ValueError as problem:
            text = f"the tensor map at {address:#x}, which the kernel has changed: {problem}"
            m.fail(ExecutionError, text, ins, block, thread, address=address)
    return made[data]


def maps_of(m, rows: Issuers, address: np.ndarray, rank: int, ins) -> list[Mapped]:
    known, found = {}, []
    for at, block, thread in zip(
        address.tolist(), rows.block.tolist(), rows.thread.tolist(), strict=True
    ):
        if at not in known:
            known[at] = one = map_at(m, at, ins, block, thread)
            if one.rank != rank:
                text = f"a copy of {rank} dimensions by a tensor map of {one.rank}"
                m.fail(ExecutionError, text, ins, block, thread)
        found.append(known[at])
    return found


def in_shared(m, rows: Issuers, get, ins, what: str, unit: int) -> tuple[np.ndarray, np.ndarray]:
    """(offset, owner) of each row's address in shared memory, (R,) each."""
    where = rows.of(get(m))
    where = np.where(where >= SHARED_WINDOW, where - SHARED_WINDOW, where)
    rank, offset = where >> RANK_BITS, where & (REMOTE - 1)
    own = rows.block
    owner = np.where(rank > 0, own // m.cluster * m.cluster + rank - 1, own)
    bad = np.flatnonzero((rank < 0) | (rank > m.cluster) | (offset % unit != 0))
    if len(bad):
        at = int(bad[0])
        place = {"block": int(rows.block[at]), "thread": int(rows.thread[at])}
        value = int(offset[at])
        if offset[at] % unit:
            text = f"{what} at byte {value} of shared memory, which is not a multiple of {unit}"
            m.fail(Misaligned, text, ins, **place, address=value)
        m.fail(OutOfBounds, f"{what} is not in the cluster's shared memory", ins, **place)
    return offset, owner


def check_inside(m, rows: Issuers, offset: np.ndarray, size: int, ins, what: str) -> None:
    bad = np.flatnonzero(offset + size > m.shared.size)
    if len(bad):
        at = int(bad[0])
        text = f"{what}: {size} bytes at byte {int(offset[at])}; shared memory has {m.shared.size} bytes here"
        block, thread = int(rows.block[at]), int(rows.thread[at])
        found = Accessed(
            "reads",
            int(size if np.ndim(size) == 0 else size[at]),
            "shared memory",
            int(offset[at]),
            m.shared.size,
        )
        m.fail(OutOfBounds, text, ins, block, thread, address=int(offset[at]), accessed=found)


def sizes_of(m, rows: Issuers, get, ins) -> np.ndarray:
    size = rows.of(get(m))
    bad = np.flatnonzero((size % 16 != 0) | (size < 0))
    if len(bad):
        at = int(bad[0])
        text = f"a bulk copy of {int(size[at])} bytes: a multiple of 16"
        m.fail(ExecutionError, text, ins, int(rows.block[at]), int(rows.thread[at]))
    return size


def global_bytes(m, rows: Issuers, row: int, address: int, size: int, ins, what: str) -> np.ndarray:
    """A view of `size` bytes of global memory."""
    block, thread = int(rows.block[row]), int(rows.thread[row])
    if address % 16:
        text = f"{what} at address {address:#x}, which is not a multiple of 16"
        m.fail(Misaligned, text, ins, block, thread, address=address)
    buffer = m.launch.space.find(address)
    if buffer is None or address + size > buffer.end:
        text = f"{what} {size} bytes at address {address:#x}: {m.launch.space.describe(address + size - 1)}"
        m.fail(OutOfBounds, text, ins, block, thread, address=address)
    return buffer.bytes[address - buffer.start : address - buffer.start + size]


def check_first(
    m, mapped: Mapped, first: tuple[int, ...], ins, block: int, thread: int, load: bool
):
    """What an H200 faults on (tests/data/README.md): a start within 16 bytes, a store that starts below 0."""
    if first[-1] * mapped.map.itemsize % boxes.CHUNK:
        text = (
            f"a tensor copy starts at element {first[-1]} of {mapped.map.itemsize} bytes: the first "
            f"coordinate must be at a multiple of {boxes.CHUNK} bytes"
        )
        m.fail(Misaligned, text, ins, block, thread)
    if not load and min(first) < 0:
        text = f"a tensor copy into global memory starts at {tuple(reversed(first))}, below 0"
        m.fail(OutOfBounds, text, ins, block, thread)
