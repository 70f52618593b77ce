"""Tensor maps in a launch: where a box of an array lies in both memories, and how its bytes move.

A kernel gets a map as 128 bytes by value. Here they hold a mark and the map's number in its launch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from emulator.counts.copies import LINE, Rows
from emulator.machine.tensor_map import CHUNK, TensorMap
from emulator.numbers.conversions import convert

BYTES = 128  # of an encoded map, a kernel parameter by value
# What elements outside of the array read as with fill="nan".
_NAN = {"float16": 0x7FFF, "bfloat16": 0x7FFF, "float32": 0x7FFFFFFF,
        "tf32": 0x7FFFFFFF, "float64": (1 << 63) - 1}  # fmt: skip


@dataclass(frozen=True)
class Mapped:
    """A tensor map in a launch. `elements`: the array as unsigned integers of the element's size.

    `start`: the array's address in the launch's address space, `name` what it is called there.
    """

    map: TensorMap
    elements: np.ndarray
    start: int
    name: str
    overlaps: dict = field(default_factory=dict, compare=False, repr=False)  # first -> Overlap
    insides: dict = field(default_factory=dict, compare=False, repr=False)  # see `inside`

    @cached_property
    def whole(self) -> np.ndarray:
        """Bytes from a box's first element to each, (n,) int64."""
        steps = (range(0, n * s, s) for n, s in zip(self.map.tile, self.steps, strict=True))
        return sum(np.ix_(*(np.array(step, np.int64) for step in steps))).reshape(-1)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Bytes from one element of a box to the next along each dimension."""
        pairs = zip(self.map.strides, self.map.element_strides, strict=True)
        return tuple(stride * step for stride, step in pairs)

    def overlap(self, first: tuple[int, ...]) -> Overlap:
        """first: the array index of the box's first element, slowest dimension first; may be outside."""
        if first not in self.overlaps:
            self.overlaps[first] = overlap(self.map, first)
        return self.overlaps[first]

    @property
    def rank(self) -> int:
        return self.elements.ndim

    def handle(self, number: int) -> bytes:
        """The 128 bytes that stand for this map in the kernel's parameters."""
        return _MARK + number.to_bytes(8, "little") + bytes(BYTES - 16)


_MARK = b"a tensor"


def number_of(data: bytes) -> int | None:
    """Which of a launch's maps these 128 bytes stand for; None if they are no handle."""
    return int.from_bytes(data[8:16], "little") if data[:8] == _MARK else None


def in_launch(one: TensorMap, start: int, name: str) -> Mapped:
    """A map over NumPy memory whose first element is at `start`. TypeError for memory elsewhere."""
    if not isinstance(one.array, np.ndarray):
        raise TypeError(
            f"a tensor map of {type(one.array).__name__}: the emulator takes NumPy arrays"
        )
    if not one.array.flags.writeable:
        raise ValueError("a tensor map of a read-only array; pass a copy")
    return Mapped(one, one.array.view(f"u{one.itemsize}"), start, name)


@dataclass(frozen=True)
class Overlap:
    """The part of a box that is inside the array: slices of the array and of the tile, or None."""

    inside: tuple[slice, ...] | None
    of_tile: tuple[slice, ...] | None
    whole: bool = False


def overlap(one: TensorMap, first: tuple[int, ...]) -> Overlap:
    """See `Mapped.overlap`."""
    inside, of_tile = [], []
    for at, extent, count, step in zip(
        first, one.shape, one.tile, one.element_strides, strict=True
    ):
        skip = max(0, -(at // step)) if at < 0 else 0  # elements of the tile before the array
        last = min(count, -(-(extent - at) // step))
        if last <= skip:
            return Overlap(None, None)
        inside.append(slice(at + skip * step, at + (last - 1) * step + 1, step))
        of_tile.append(slice(skip, last))
    return Overlap(
        tuple(inside), tuple(of_tile), tuple(of_tile) == tuple(slice(0, n) for n in one.tile)
    )


def gather(mapped: Mapped, first: tuple[int, ...]) -> np.ndarray:
    """A box's bytes in the order of shared memory before swizzling, (box_bytes,) uint8."""
    one = mapped.map
    dtype = mapped.elements.dtype
    tile = np.full(one.tile, _NAN[one.format] if one.fill == "nan" else 0, dtype)
    part = mapped.overlap(first)
    if part.inside is not None:
        tile[part.of_tile] = mapped.elements[part.inside]
        if one.format == "tf32":  # to nearest; that ties go away from zero is assumed, not measured
            tile = convert(tile.view(np.float32), "tf32", "f32", "rna").view(dtype)
    return tile.reshape(-1).view(np.uint8)


def inside(mapped: Mapped, first: tuple[int, ...]) -> np.ndarray | slice:
    """Which 16-byte chunks of a box, in its own order, hold elements that are inside the array."""
    one, part = mapped.map, mapped.overlap(first)
    if part.whole:
        return slice(None)
    key = part.of_tile and tuple((span.start, span.stop) for span in part.of_tile)
    if key not in mapped.insides:
        tile = np.zeros(one.tile, bool)
        if part.of_tile is not None:
            tile[part.of_tile] = True
        octets = np.repeat(tile.reshape(-1), one.itemsize)
        mapped.insides[key] = octets.reshape(-1, CHUNK).any(axis=1)
    return mapped.insides[key]


def places(mapped: Mapped, first: tuple[int, ...]) -> np.ndarray:
    """Addresses, (n,) int64, of the elements of a box that are inside the array."""
    part = mapped.overlap(first)
    if part.inside is None:
        return np.zeros(0, np.int64)
    start = mapped.start + sum(i * n for i, n in zip(first, mapped.map.strides, strict=True))
    if part.whole:
        return mapped.whole + start
    return mapped.whole.reshape(mapped.map.tile)[part.of_tile].reshape(-1) + start


def scatter(mapped: Mapped, first: tuple[int, ...], data: np.ndarray, combine=None) -> None:
    """Writes a box's bytes where they are inside the array; `combine(old, new)` for a reduction."""
    part = mapped.overlap(first)
    if part.inside is None:
        return
    tile = data.view(mapped.elements.dtype).reshape(mapped.map.tile)[part.of_tile]
    if combine is not None:
        tile = combine(mapped.elements[part.inside], tile)
    mapped.elements[part.inside] = tile


def rows_of(mapped: Mapped, first: tuple[int, ...], shared: int) -> Rows:
    """A box's rows as `counts.copies` wants them; shared: the byte of shared memory where they begin."""
    one = mapped.map
    size, steps = one.itemsize, one.element_strides
    start = mapped.start + sum(at * stride for at, stride in zip(first, one.strides, strict=True))
    width = one.tile[-1] * size
    outer = list(zip(first, one.shape, one.tile, steps, strict=True))[:-1]
    return Rows(
        shared % LINE,
        start % LINE,
        width,
        min(max(0, -first[-1]) * size, width),
        max(0, min(width, (one.shape[-1] - first[-1]) * size)),
        one.tile[:-1],
        mapped.steps[:-1],
        tuple(
            (max(0, -(at // step)) if at < 0 else 0, max(0, min(count, -(-(extent - at) // step))))
            for at, extent, count, step in outer
        ),
    )


_MASKS = {0: 0, 32: 1, 64: 3, 128: 7}


def swizzled(address: np.ndarray, swizzle: int) -> np.ndarray:
    """Where a byte of a swizzled layout really is: address bits 4-6 are XORed with bits 7-9.

    swizzle: 0, 32, 64 or 128 bytes (none, one, two or three of those bits). PTX ISA 5.5.6.
    """
    mask = _MASKS[swizzle]
    return address ^ ((address >> 3) & (mask << 4)) if mask else address


@lru_cache(maxsize=256)
def chunks(start: int, count: int, swizzle: int) -> np.ndarray:
    """Chunk numbers (16 bytes each) of a box of `count` bytes written to byte `start`, swizzled."""
    place = np.arange(start, start + count, CHUNK, dtype=np.int64)
    return swizzled(place, swizzle) >> 4
