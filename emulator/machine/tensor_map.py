"""What TMA must know of an array: where it is, its extents and pitches, the box that one copy moves,
how the box lies in shared memory (PTX ISA 5.5).

One description for both machines: the emulator reads its fields (`boxes`), a GPU's driver encodes them
(cuTensorMapEncodeTiled). The limits are the driver's (CUDA driver API, Tensor Map Object Management);
what breaks one is a ValueError when the map is made. This file needs NumPy and no other of this package.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

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
    "tf32": 4,  # a float32, which the copy into shared memory rounds to tf32
    "float64": 8,
}
FLOATS = ("float16", "bfloat16", "float32", "tf32", "float64")


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
                error = ValueError(f"tensor map: {words}")
                error.refused = self  # box, swizzle and array as they were asked for
                raise error

    @property
    def interface(self) -> dict:
        """The array interface's dictionary, of a GPU's memory where the array is there."""
        found = getattr(self.array, "__cuda_array_interface__", None)
        found = found or getattr(self.array, "__array_interface__", None)
        if found is None:
            kind = type(self.array).__name__
            raise ValueError(f"tensor map: an array (NumPy, CuPy) is needed, not {kind}")
        return found

    @cached_property
    def dtype(self) -> np.dtype:
        """What the array's elements are stored as."""
        return np.dtype(self.interface["typestr"])

    @property
    def address(self) -> int:
        """Where the array begins, in bytes."""
        return self.interface["data"][0]

    @property
    def start(self) -> int:
        """Where the machine has the array's first byte: its address; of a NumPy array, which the emulator
        puts where it wants, at a multiple of 256, the bytes from the start of the memory that it is a part of.
        """
        if not isinstance(self.array, np.ndarray):
            return self.address
        whole = self.array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        return self.address - whole.__array_interface__["data"][0]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements, slowest dimension first."""
        return tuple(self.interface["shape"])

    @cached_property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return FORMATS[self.format]

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Distance in bytes from one element to the next, slowest dimension first."""
        if isinstance(
            self.array, np.ndarray
        ):  # its interface leaves strides out where an extent is 1
            return self.array.strides
        given = self.interface.get("strides")
        if given is not None:
            return tuple(given)
        strides = [self.dtype.itemsize]
        for extent in self.shape[:0:-1]:
            strides.append(strides[-1] * extent)
        return tuple(reversed(strides))

    @cached_property
    def tile(self) -> tuple[int, ...]:
        """Elements that a box holds along each dimension: fewer than `box` where strides skip some."""
        pairs = zip(self.box, self.element_strides, strict=True)
        return tuple(-(-extent // step) for extent, step in pairs)

    @cached_property
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
    yield (
        one.start % unit == 0,
        f"the array begins at {one.start:#x}: a multiple of {unit} bytes",
    )
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
