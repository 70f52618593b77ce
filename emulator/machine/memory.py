"""Memory: buffers in a 64-bit address space, and the windows through which shared and local memory are seen.

Every buffer (an argument, a module variable, the parameters) has its own range with a wide unmapped gap
after it, so that no stray pointer lands in a neighbour unnoticed. Shared memory is one flat array with a
row of bytes for each block of the chunk, local memory one with a row for each thread; addresses inside
them start at 0 in every row.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from emulator.errors import Accessed, Misaligned, OutOfBounds
from emulator.machine.values import Affine, Pattern, signed

FIRST_ADDRESS = 0x7_0000_0000
GAP = 1 << 32
FIRST_CONSTANT = 0x5000_0000  # constants have addresses that 32 bits hold, behind the parameters'
CONSTANT_GAP = 1 << 16
SHARED_WINDOW = 1 << 56
LOCAL_WINDOW = 1 << 57
WINDOW_BYTES = 1 << 32
SHARED_LIMIT = (
    227 * 1024
)  # bytes a block can have on sm_90 and later; sm_80 allows 163 KiB, sm_75 64 KiB

# What the system keeps of a block's shared memory since sm_80. It lies behind the user's, as ptxas has it
# for sm_80 to sm_89 (from the shared-memory size downwards; since sm_90 it lies before the user's instead).
RESERVED_BYTES = 1024
RESERVED_FIRST = 64  # its second part, that of cooperative groups' tiles of several warps


def reserved_start(shared_bytes: int) -> int:
    """Where the system's part begins, for so many bytes of the user's."""
    return (shared_bytes + 15) // 16 * 16


@dataclass(eq=False)
class Buffer:
    """Bytes at `start`, called `name` in messages and traces."""

    name: str
    start: int
    bytes: np.ndarray
    views: dict = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.start + len(self.bytes)

    def view(self, dtype: np.dtype) -> np.ndarray:
        known = self.views.get(dtype)
        if known is None:
            size = dtype.itemsize
            known = self.views[dtype] = self.bytes[: len(self.bytes) // size * size].view(dtype)
        return known


class AddressSpace:
    """The global side of the generic address space: a sorted list of buffers."""

    def __init__(self):
        self.buffers: list[Buffer] = []
        self.starts: list[int] = []
        self.free, self.free_constant = FIRST_ADDRESS, FIRST_CONSTANT

    def add(self, name: str, data: np.ndarray) -> Buffer:
        """Maps a flat uint8 array; its address is a multiple of 256."""
        buffer = Buffer(name, self.free, data)
        self.free += (len(data) + 255) // 256 * 256 + GAP
        self.buffers.append(buffer)
        self.starts.append(buffer.start)
        return buffer

    def add_constant(self, name: str, data: np.ndarray) -> Buffer:
        """Maps a constant variable."""
        buffer = Buffer(name, self.free_constant, data)
        self.free_constant += (len(data) + 255) // 256 * 256 + CONSTANT_GAP
        at = bisect_right(self.starts, buffer.start)
        self.buffers.insert(at, buffer)
        self.starts.insert(at, buffer.start)
        return buffer

    def find(self, address: int) -> Buffer | None:
        """The buffer whose range starts at or before `address`, if the address is inside it."""
        at = bisect_right(self.starts, address) - 1
        if at >= 0 and address < self.buffers[at].end:
            return self.buffers[at]
        return None

    def nearest(self, address: int) -> tuple[str, int, int]:
        """(name, offset of the address in it, bytes) of the buffer that is nearest to an address."""
        if not self.buffers or address < 4096:
            return "", address, 0
        found = min(self.buffers, key=lambda b: max(b.start - address, address - b.end + 1, 0))
        return found.name, address - found.start, len(found.bytes)

    def describe(self, address: int) -> str:
        """Where an address is, in relation to the nearest buffer."""
        if not self.buffers:
            return "there are no buffers"
        distance, nearest = min(
            ((max(b.start - address, address - b.end + 1, 0), b) for b in self.buffers),
            key=lambda pair: pair[0],
        )
        size = f"{len(nearest.bytes)} bytes"
        if address >= nearest.end:
            return f"{address - nearest.end} bytes past the end of {nearest.name} ({size})"
        if address < nearest.start:
            if address < 4096:
                return "a null pointer, or an offset from one"
            return f"{distance} bytes before the start of {nearest.name} ({size})"
        return f"{address - nearest.start} bytes into {nearest.name} ({size})"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction's lanes are in one flat array: element `start + index[lane]`, lanes of `mask`.

    Elements are those of the width that was asked for; `buffer` gives the array.
    """

    buffer: Buffer
    start: int
    index: np.ndarray  # broadcastable to (B, T)
    mask: np.ndarray | None


class Rows:
    """Shared or local memory: `count` rows of `size` bytes, seen by lane through `row` (broadcastable to (B, T))."""

    def __init__(self, name: str, row: np.ndarray, count: int, size: int):
        self.name, self.size = name, size
        self.stride = (size + 15) // 16 * 16
        self.buffer = Buffer(name, 0, np.zeros(max(count * self.stride, 16), np.uint8))
        self.row = row.astype(np.int64) * self.stride

    def places(self, m, address, mask, element: int, total: int, instruction) -> list[Place]:
        if type(address) is int:
            lo = hi = address if address < 1 << 63 else signed(address, 8)
            pattern = m.nowhere
        else:
            pattern = address.pattern.tighten()
            lo, hi = address.lo, address.hi
        if lo < 0 or hi + total > self.size:
            if mask is not None:
                narrowed = _among(address, mask)
                if narrowed is not address:
                    return self.places(m, narrowed, mask, element, total, instruction)
            out_of_bounds(m, address, mask, total, instruction, self)
        key = (self.name, element)
        index = pattern.facts.get(key)
        if index is None:
            shift = element.bit_length() - 1
            index = pattern.remember(
                key, as_index(((pattern.array - pattern.lo) >> shift) + (self.row >> shift))
            )
        if lo % total or not aligned(pattern, total):
            misaligned(m, address, mask, total, instruction)
        return [Place(self.buffer, lo // element, index, mask)]


class Globals:
    """Global, constant and parameter memory: the address space's buffers."""

    name = "global"

    def __init__(self, space: AddressSpace):
        self.space = space
        self.last = None

    def places(self, m, address, mask, element: int, total: int, instruction) -> list[Place]:
        if type(address) is int:
            lo = hi = address
            pattern = m.nowhere
        else:
            pattern = address.pattern.tighten()
            lo, hi = address.lo, address.hi
        buffer = self.last
        if buffer is None or lo < buffer.start or lo >= buffer.end:
            buffer = self.last = self.space.find(lo)
        if buffer is None or hi + total > buffer.end:
            if mask is not None:
                narrowed = _among(address, mask)
                if narrowed is not address:
                    return self.places(m, narrowed, mask, element, total, instruction)
            return self.split(m, address, mask, element, total, instruction)
        key = ("global", element)
        index = pattern.facts.get(key)
        if index is None:
            index = pattern.remember(
                key, as_index((pattern.array - pattern.lo) >> (element.bit_length() - 1))
            )
        if lo % total or not aligned(pattern, total):
            misaligned(m, address, mask, total, instruction)
        return [Place(buffer, (lo - buffer.start) // element, index, mask)]

    def split(self, m, address, mask, element, total, instruction) -> list[Place]:
        """Lanes that point into different buffers, one Place for each."""
        lanes = m.addresses(address)
        left = m.lanes_of(mask).copy()
        found = []
        while left.any():
            first = int(lanes.reshape(-1)[left.reshape(-1).argmax()])
            buffer = self.space.find(first)
            if buffer is None:
                out_of_bounds(m, address, left, total, instruction, self)
            inside = left & (lanes >= buffer.start) & (lanes < buffer.end)
            if (lanes[inside] + total > buffer.end).any():
                out_of_bounds(
                    m, address, inside & (lanes + total > buffer.end), total, instruction, self
                )
            if (lanes[inside] % total).any():
                misaligned(m, address, inside, total, instruction)
            index = as_index(np.where(inside, lanes - buffer.start, 0) // element)
            found.append(Place(buffer, 0, index, inside))
            left &= ~inside
        return found


def as_index(elements: np.ndarray) -> np.ndarray:
    """Element numbers as `take` wants them: in 32 bits where NumPy's indices have 32 (WebAssembly)."""
    return elements.astype(np.intp, copy=False)


def aligned(pattern: Pattern, width: int) -> bool:
    """Whether all addresses of a tight pattern differ by multiples of `width` (a power of two)."""
    bits = pattern.facts.get("bits")
    if bits is None:
        bits = pattern.remember(
            "bits", int(np.bitwise_or.reduce(pattern.array - pattern.lo, axis=None))
        )
    return not bits & (width - 1)


def _among(address, mask: np.ndarray):
    """The same addresses with every inactive lane moved to where the first active lane points."""
    if type(address) is int:
        return address
    pattern = address.pattern
    known = pattern.facts.get("among")
    if known is not None and known[1].pattern is pattern:
        return address
    if known is None or known[0] is not mask:
        lanes = np.broadcast_to(pattern.array, mask.shape)
        first = lanes.reshape(-1)[mask.reshape(-1).argmax()]
        active = lanes[mask]
        narrowed = Pattern(np.where(mask, lanes, first), int(active.min()), int(active.max()))
        narrowed._tight = True
        known = pattern.remember("among", (mask, Affine(narrowed)))
        narrowed.facts["among"] = (mask, Affine(narrowed))  # nothing more to gain
    return Affine(known[1].pattern, address.offset)


def out_of_bounds(m, address, mask, total, instruction, space) -> None:
    lanes, active = m.addresses(address), m.lanes_of(mask)
    if isinstance(space, Rows):
        bad = active & ((lanes < 0) | (lanes + total > space.size))
    else:
        starts = space.space.buffers
        inside = np.zeros(active.shape, bool)
        for buffer in starts:
            inside |= (lanes >= buffer.start) & (lanes + total <= buffer.end)
        bad = active & ~inside
    block, thread, where = _first(bad, lanes)
    if isinstance(space, Rows):
        text = f"{space.name} memory has {space.size} bytes here"
        shown = where
    else:
        text, shown = space.space.describe(where), where
    verb = _verb(instruction)
    if isinstance(space, Rows):
        accessed = Accessed(verb, total, f"{space.name} memory", where, space.size)
    else:
        accessed = Accessed(verb, total, *space.space.nearest(where))
    raise OutOfBounds(
        f"{_verb(instruction)} {total} bytes at address {shown:#x}: {text}",
        **m.place_of(instruction, block, thread), address=where, accessed=accessed,
    )  # fmt: skip


def misaligned(m, address, mask, total, instruction) -> None:
    lanes, active = m.addresses(address), m.lanes_of(mask)
    bad = active & (lanes % total != 0)
    if not bad.any():
        return
    block, thread, where = _first(bad, lanes)
    raise Misaligned(
        f"{_verb(instruction)} {total} bytes at address {where:#x}, which is not a multiple of {total}",
        **m.place_of(instruction, block, thread), address=where, accessed=Accessed(_verb(instruction), total),
    )  # fmt: skip


def _verb(instruction) -> str:
    root = instruction.parts[0]
    return {"st": "writes", "ld": "reads", "ldu": "reads"}.get(root, f"{root} accesses")


def _first(bad: np.ndarray, lanes: np.ndarray) -> tuple[int, int, int]:
    block, thread = np.unravel_index(int(bad.reshape(-1).argmax()), bad.shape)
    return int(block), int(thread), int(lanes[block, thread])
