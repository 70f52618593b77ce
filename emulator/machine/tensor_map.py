"""Tensor maps: what TMA must know of an array, and where a box of it lies (PTX ISA 5.5).

A `TensorMap` says where the array is, its extents and pitches, the box that one copy moves, and how
the box lies in shared memory. It is the description for both machines: this one reads its fields; for
a GPU the driver encodes them (cuTensorMapEncodeTiled). The limits are the driver's (CUDA driver API,
Tensor Map Object Management); what breaks one is a ValueError when the map is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np

from emulator.counts.copies import LINE, Rows

BYTES = 128  # of an encoded map, a kernel parameter by value
MAX_RANK = 5
MAX_BOX = 256
MAX_EXTENT = 2**32
MAX_STRIDE = 2**40
MAX_ELEMENT_STRIDE = 8
SWIZZLES = (0, 32, 64, 128)
INTERLEAVES = (0, 16, 32)
FILLS = ("zero", "nan")
PROMOTIONS = (0, 64, 128, 256)
CHUNK = 16  # bytes that a swizzle moves together

# Bytes of an element, by format. An 8-bit float is copied as a byte.
FORMATS = {
    "uint8": 1,
    "int8": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}
FLOATS = ("float16", "bfloat16", "float32", "float64")
# What elements outside of the array read as with fill="nan".
_NAN = {"float16": 0x7FFF, "bfloat16": 0x7FFF, "float32": 0x7FFFFFFF, "float64": (1 << 63) - 1}


@dataclass(frozen=True)
class TensorMap:
    """Tiles of a matrix (or of an array of up to five dimensions) for TMA.

    `array` is a NumPy, CuPy or other array with an array interface, rows contiguous. `box` is the
    tile that one copy moves, in elements, in the order of the array's shape, slowest dimension
    first (a kernel's coordinates and the driver count the other way round). `format` names the
    elements where the array's dtype does not: bfloat16 is stored as uint16. `element_strides` takes
    only every so-manieth element of a dimension. `swizzle` is the span in bytes over which 16-byte
    chunks of a box's rows change places, 0 for none. `fill` is what elements outside of the array
    read as. `promotion` is how many bytes L2 fetches at a time. Raises ValueError for what the
    driver would refuse.
    """

    array: Any
    box: tuple[int, ...]
    format: str | None = None
    element_strides: tuple[int, ...] | None = None
    swizzle: int = 0
    interleave: int = 0
    fill: str = "zero"
    promotion: int = 0

    def __post_init__(self):
        box = (self.box,) if isinstance(self.box, Integral) else self.box
        object.__setattr__(self, "box", tuple(box))
        object.__setattr__(self, "format", self.format or self.dtype.name)
        steps = self.element_strides or (1,) * len(self.box)
        object.__setattr__(self, "element_strides", tuple(steps))
        for right, words in _limits(self):
            if not right:
                raise ValueError(f"tensor map: {words}")

    @property
    def interface(self) -> dict:
        """The array interface's dictionary, of a GPU's memory where the array is there."""
        found = getattr(self.array, "__cuda_array_interface__", None)
        found = found or getattr(self.array, "__array_interface__", None)
        if found is None:
            kind = type(self.array).__name__
            raise ValueError(f"tensor map: an array (NumPy, CuPy) is needed, not {kind}")
        return found

    @property
    def dtype(self) -> np.dtype:
        """What the array's elements are stored as."""
        return np.dtype(self.interface["typestr"])

    @property
    def address(self) -> int:
        """Where the array begins, in bytes."""
        return self.interface["data"][0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements, slowest dimension first."""
        return tuple(self.interface["shape"])

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return FORMATS[self.format]

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance in bytes from one element to the next, slowest dimension first."""
        if isinstance(self.array, np.ndarray):  # its interface leaves strides out where an extent is 1
            return self.array.strides
        given = self.interface.get("strides")
        if given is not None:
            return tuple(given)
        strides = [self.dtype.itemsize]
        for extent in self.shape[:0:-1]:
            strides.append(strides[-1] * extent)
        return tuple(reversed(strides))

    @property
    def tile(self) -> tuple[int, ...]:
        """Elements that a box holds along each dimension: fewer than `box` where strides skip some."""
        pairs = zip(self.box, self.element_strides, strict=True)
        return tuple(-(-extent // step) for extent, step in pairs)

    @property
    def box_bytes(self) -> int:
        """Bytes that one copy brings, those outside of the array included."""
        return int(np.prod(self.tile)) * self.itemsize


def _limits(one: TensorMap):
    """What must hold, and the words for what does not."""
    yield one.format in FORMATS, f"no format {one.format}; there are {', '.join(FORMATS)}"
    yield (
        one.dtype.itemsize == one.itemsize,
        f"{one.format} has {one.itemsize} bytes, the array's elements {one.dtype.itemsize}",
    )
    rank = len(one.shape)
    yield 1 <= rank <= MAX_RANK, f"an array of 1 to {MAX_RANK} dimensions, not {rank}"
    for name in ("box", "element_strides"):
        values = getattr(one, name)
        yield (
            len(values) == rank and all(isinstance(n, Integral) for n in values),
            f"{name} {values}: {rank} integers, one per dimension of {one.shape}",
        )
    for name, choices in (
        ("swizzle", SWIZZLES),
        ("interleave", INTERLEAVES),
        ("fill", FILLS),
        ("promotion", PROMOTIONS),
    ):
        value = getattr(one, name)
        yield value in choices, f"{name} {value!r}: one of {', '.join(map(str, choices))}"
    yield (
        all(1 <= n <= MAX_EXTENT for n in one.shape),
        f"extents {one.shape}: each 1 to {MAX_EXTENT}",
    )
    yield all(1 <= n <= MAX_BOX for n in one.box), f"box {one.box}: each 1 to {MAX_BOX}"
    yield (
        all(1 <= n <= MAX_ELEMENT_STRIDE for n in one.element_strides),
        f"element strides {one.element_strides}: each 1 to {MAX_ELEMENT_STRIDE}",
    )
    unit = 32 if one.interleave == 32 else 16
    yield one.address % unit == 0, f"the array begins at {one.address:#x}: a multiple of {unit} bytes"
    yield (
        one.strides[-1] == one.itemsize,
        f"neighbours in a row are {one.strides[-1]} bytes apart: {one.itemsize}, contiguous",
    )
    yield (
        all(n % unit == 0 and 0 < n < MAX_STRIDE for n in one.strides[:-1]),
        f"rows are {one.strides[:-1]} bytes apart: multiples of {unit}, below {MAX_STRIDE}",
    )
    inner = one.box[-1] * one.itemsize
    yield inner % CHUNK == 0, f"a box's row has {inner} bytes: a multiple of {CHUNK}"
    yield (
        not one.swizzle or one.interleave or inner <= one.swizzle,
        f"a box's row has {inner} bytes: at most the swizzle's span, {one.swizzle}",
    )
    yield (
        not one.interleave or rank >= 3,
        f"interleave {one.interleave} needs 3 dimensions or more, not {rank}",
    )
    yield (
        one.interleave != 32 or one.swizzle == 32,
        f"interleave 32 goes with swizzle 32, not {one.swizzle}",
    )
    yield (
        one.fill == "zero" or one.format in FLOATS,
        f"only floating-point elements can be filled with NaN, not {one.format}",
    )


# --- Where a box lies -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mapped:
    """A tensor map in a launch. `elements`: the array as unsigned integers of the element's size.

    `start`: the array's address in the launch's address space, `name` what it is called there.
    """

    map: TensorMap
    elements: np.ndarray
    start: int
    name: str

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


def overlap(one: TensorMap, first: tuple[int, ...]) -> Overlap:
    """first: the array index of the box's first element, slowest dimension first; may be outside."""
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
    return Overlap(tuple(inside), tuple(of_tile))


def gather(mapped: Mapped, first: tuple[int, ...]) -> np.ndarray:
    """A box's bytes in the order of shared memory before swizzling, (box_bytes,) uint8."""
    one = mapped.map
    dtype = mapped.elements.dtype
    if one.fill == "nan":
        tile = np.full(one.tile, _NAN[one.format], dtype)
    else:
        tile = np.zeros(one.tile, dtype)
    part = overlap(one, first)
    if part.inside is not None:
        tile[part.of_tile] = mapped.elements[part.inside]
    return tile.reshape(-1).view(np.uint8)


def scatter(mapped: Mapped, first: tuple[int, ...], data: np.ndarray, combine=None) -> None:
    """Writes a box's bytes where they are inside the array; `combine(old, new)` for a reduction."""
    part = overlap(mapped.map, first)
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
        tuple(stride * step for stride, step in zip(one.strides, steps, strict=True))[:-1],
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
