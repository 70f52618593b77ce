"""What TMA must know of a matrix: where it is, its extents and pitches, the box that one copy moves,
how the box lies in shared memory. One description for both machines: `encode` has the driver make
the 128 bytes that a GPU reads; the emulator reads the fields.

Limits are those of cuTensorMapEncodeTiled (CUDA driver API, Tensor Map Object Management); whatever
breaks one is a ValueError here, before the driver answers "invalid value".
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
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

# Format: bytes of an element, and the driver's name for it. An 8-bit float is copied as a byte.
FORMATS = {
    "uint8": (1, "UINT8"),
    "int8": (1, "UINT8"),
    "float8_e4m3fn": (1, "UINT8"),
    "float8_e5m2": (1, "UINT8"),
    "uint16": (2, "UINT16"),
    "int32": (4, "INT32"),
    "uint32": (4, "UINT32"),
    "float16": (2, "FLOAT16"),
    "bfloat16": (2, "BFLOAT16"),
    "float32": (4, "FLOAT32"),
    "float64": (8, "FLOAT64"),
}
FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class TensorMap:
    """Tiles of a matrix (or of an array of up to five dimensions) for TMA.

    `array` is a NumPy, CuPy or other array with an array interface, rows contiguous. `box` is the
    tile that one copy moves, in elements, in the order of the array's shape, slowest dimension
    first (the kernel's coordinates and the driver count the other way round). `format` names the
    elements where the array's dtype does not: bfloat16 is stored as uint16. `swizzle` is the span
    in bytes over which 16-byte chunks of a box's rows change places, 0 for none. `fill` is what
    elements outside of the array read as. `promotion` is how many bytes L2 fetches at a time.
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
        object.__setattr__(self, "box", tuple(self.box))
        format = self.format or np.dtype(self._interface["typestr"]).name
        object.__setattr__(self, "format", format)
        steps = self.element_strides or (1,) * len(self.box)
        object.__setattr__(self, "element_strides", tuple(steps))
        for right, words in self._limits():
            if not right:
                raise ValueError(f"tensor map: {words}")

    @property
    def address(self) -> int:
        """Where the array begins, in bytes."""
        return self._interface["data"][0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements, slowest dimension first."""
        return tuple(self._interface["shape"])

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return FORMATS[self.format][0]

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance in bytes from one element to the next, slowest dimension first."""
        given = self._interface.get("strides")
        if given is not None:
            return tuple(given)
        strides = [np.dtype(self._interface["typestr"]).itemsize]
        for extent in self.shape[:0:-1]:
            strides.append(strides[-1] * extent)
        return tuple(reversed(strides))

    @property
    def box_bytes(self) -> int:
        """Bytes that one copy brings, those outside of the array included."""
        elements = 1
        for extent, step in zip(self.box, self.element_strides, strict=True):
            elements *= -(-extent // step)
        return elements * self.itemsize

    def encode(self) -> np.ndarray:
        """The 128 bytes of a CUtensorMap, a kernel argument by value. RuntimeError with the
        driver's word where it refuses.
        """
        from cuda.bindings import driver

        def named(enum: str, name: str):
            return getattr(getattr(driver, f"CUtensorMap{enum}"), name)

        swizzle = f"{self.swizzle}B" if self.swizzle else "NONE"
        interleave = f"{self.interleave}B" if self.interleave else "NONE"
        promotion = f"L2_{self.promotion}B" if self.promotion else "NONE"
        fill = "NAN_REQUEST_ZERO_FMA" if self.fill == "nan" else "NONE"
        # The driver has the fastest dimension first, and no pitch for it.
        status, encoded = driver.cuTensorMapEncodeTiled(
            named("DataType", f"CU_TENSOR_MAP_DATA_TYPE_{FORMATS[self.format][1]}"),
            len(self.shape),
            self.address,
            [driver.cuuint64_t(n) for n in reversed(self.shape)],
            [driver.cuuint64_t(n) for n in reversed(self.strides[:-1])],
            [driver.cuuint32_t(n) for n in reversed(self.box)],
            [driver.cuuint32_t(n) for n in reversed(self.element_strides)],
            named("Interleave", f"CU_TENSOR_MAP_INTERLEAVE_{interleave}"),
            named("Swizzle", f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
            named("L2promotion", f"CU_TENSOR_MAP_L2_PROMOTION_{promotion}"),
            named("FloatOOBfill", f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill}"),
        )
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"the driver refuses this tensor map ({status.name}): {self}")
        return np.frombuffer(ctypes.string_at(int(encoded.getPtr()), 128), np.dtype("V128"))[0]

    @property
    def _interface(self) -> dict:
        found = getattr(self.array, "__cuda_array_interface__", None)
        return found or self.array.__array_interface__

    def _limits(self):
        """What must hold, and the words for what does not."""
        yield self.format in FORMATS, f"no format {self.format}; there are {', '.join(FORMATS)}"
        stored = np.dtype(self._interface["typestr"]).itemsize
        yield (
            stored == self.itemsize,
            f"{self.format} has {self.itemsize} bytes, the array's elements {stored}",
        )
        rank = len(self.shape)
        yield 1 <= rank <= MAX_RANK, f"an array of 1 to {MAX_RANK} dimensions, not {rank}"
        for name in ("box", "element_strides"):
            values = getattr(self, name)
            yield (
                len(values) == rank and all(isinstance(n, Integral) for n in values),
                f"{name} {values}: {rank} integers, one per dimension of {self.shape}",
            )
        for name, choices in (
            ("swizzle", SWIZZLES),
            ("interleave", INTERLEAVES),
            ("fill", FILLS),
            ("promotion", PROMOTIONS),
        ):
            value = getattr(self, name)
            yield value in choices, f"{name} {value!r}: one of {', '.join(map(str, choices))}"
        yield (
            all(1 <= n <= MAX_EXTENT for n in self.shape),
            f"extents {self.shape}: each 1 to {MAX_EXTENT}",
        )
        yield all(1 <= n <= MAX_BOX for n in self.box), f"box {self.box}: each 1 to {MAX_BOX}"
        yield (
            all(1 <= n <= MAX_ELEMENT_STRIDE for n in self.element_strides),
            f"element strides {self.element_strides}: each 1 to {MAX_ELEMENT_STRIDE}",
        )
        unit = 32 if self.interleave == 32 else 16
        yield (
            self.address % unit == 0,
            f"the array begins at {self.address:#x}: a multiple of {unit} bytes",
        )
        yield (
            self.strides[-1] == self.itemsize,
            f"neighbours in a row are {self.strides[-1]} bytes apart: {self.itemsize}, contiguous",
        )
        yield (
            all(n % unit == 0 and 0 < n < MAX_STRIDE for n in self.strides[:-1]),
            f"rows are {self.strides[:-1]} bytes apart: multiples of {unit}, below {MAX_STRIDE}",
        )
        inner = self.box[-1] * self.itemsize
        yield inner % 16 == 0, f"a box's row has {inner} bytes: a multiple of 16"
        yield (
            not self.swizzle or self.interleave or inner <= self.swizzle,
            f"a box's row has {inner} bytes: at most the swizzle's span, {self.swizzle}",
        )
        yield (
            not self.interleave or rank >= 3,
            f"interleave {self.interleave} needs 3 dimensions or more, not {rank}",
        )
        yield (
            self.interleave != 32 or self.swizzle == 32,
            f"interleave 32 goes with swizzle 32, not {self.swizzle}",
        )
        yield (
            self.fill == "zero" or self.format in FLOATS,
            f"only floating-point elements can be filled with NaN, not {self.format}",
        )
