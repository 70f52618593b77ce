"""Tensor maps that a kernel changes: the fields of one, in the 128 bytes that stand for it (PTX ISA 9.7.9.28: tensormap.replace).

A map that was passed to the launch is a mark and a number there (`boxes`). A changed one has all of its fields, so that
copies of the bytes are copies of the map; what they describe is looked at when a copy by TMA uses them.
"""

from __future__ import annotations

import numpy as np

from emulator.machine import boxes
from emulator.machine.boxes import Mapped, in_launch
from emulator.machine.tensor_map import MAX_BOX, MAX_ELEMENT_STRIDE, MAX_STRIDE, TensorMap

_MARK = b"a change"
_FIELDS = np.dtype(
    [
        ("mark", "S8"),
        ("global_address", "<u8"),
        ("global_stride", "<u8", 4),
        ("global_dim", "<u4", 5),
        ("box_dim", "<u2", 5),
        ("element_stride", "u1", 5),
        ("rank", "u1"),  # less one, as the instruction has it
        ("elemtype", "u1"),
        ("interleave_layout", "u1"),
        ("swizzle_mode", "u1"),
        ("swizzle_atomicity", "u1"),
        ("fill_mode", "u1"),
        ("promotion", "u1"),
        ("rest", "V38"),
    ]
)
assert _FIELDS.itemsize == boxes.BYTES
_FORMATS = (
    *("uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", ".f32.ftz"),
    *("float64", "bfloat16", "tf32", ".tf32.ftz", ".b4x16", ".b4x16_p64", ".b6x16_p32"),
)
_ALIKE = {"int8": "uint8", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
_STORED = {"bfloat16": "uint16", "tf32": "float32"}
_INTERLEAVES = (0, 16, 32)
_SWIZZLES = (0, 32, 64, 128)
_FILLS = ("zero", "nan")

# Of each field how many there are, and which values it may be given.
COUNTS = {"global_stride": 4, "global_dim": 5, "box_dim": 5, "element_stride": 5}
_LIMITS = {
    "global_address": (0, 1 << 64, 16),
    "global_stride": (0, MAX_STRIDE, 16),
    "box_dim": (1, MAX_BOX + 1, 1),
    "element_stride": (1, MAX_ELEMENT_STRIDE + 1, 1),
    "rank": (0, 5, 1),
    "elemtype": (0, 16, 1),
    "interleave_layout": (0, 3, 1),
    "swizzle_mode": (0, 5, 1),
    "swizzle_atomicity": (0, 4, 1),
    "fill_mode": (0, 2, 1),
}


def limit(field: str, value: int) -> str:
    """What is wrong with a field's new value; "" for nothing."""
    low, end, unit = _LIMITS.get(field, (0, 1 << 32, 1))
    if low <= value < end and value % unit == 0:
        return ""
    of = f", in multiples of {unit}" if unit > 1 else ""
    return f"{field} {value}: from {low} to below {end}{of}"


def replaced(data: bytes, field: str, at: int, value: int, known: list[Mapped]) -> bytes | None:
    """The 128 bytes of a map with one field changed; None if they are none. known: the launch's maps. Zeros are a map
    of which no field has been set.
    """
    fields = _fields(data, known)
    if fields is None:
        return None
    if field in COUNTS:
        fields[field][at] = value
    else:
        fields[field] = value
    return fields.tobytes()


def _fields(data: bytes, known: list[Mapped]) -> np.void | None:
    if data[:8] == _MARK:
        return np.frombuffer(data, _FIELDS)[0].copy()
    number = boxes.number_of(data)
    fields = np.zeros((), _FIELDS)[()]
    fields["mark"] = _MARK
    if number is None:
        return None if any(data) else fields
    if number >= len(known):
        return None
    mapped = known[number]
    one, rank = mapped.map, mapped.rank
    fields["global_address"], fields["rank"] = mapped.start, rank - 1
    fields["global_dim"][:rank] = one.shape[::-1]
    fields["global_stride"][: rank - 1] = one.strides[-2::-1]
    fields["box_dim"][:rank] = one.box[::-1]
    fields["element_stride"][:rank] = one.element_strides[::-1]
    fields["elemtype"] = _FORMATS.index(_ALIKE.get(one.format, one.format))
    fields["interleave_layout"] = _INTERLEAVES.index(one.interleave)
    fields["swizzle_mode"] = _SWIZZLES.index(one.swizzle)
    fields["fill_mode"] = _FILLS.index(one.fill)
    fields["promotion"] = one.promotion // 32
    return fields


def changed(data: bytes, space) -> Mapped | None:
    """The map that a kernel has made of these 128 bytes; None if they are none. ValueError, in words, for one that cannot be
    used. space: the launch's AddressSpace.
    """
    if data[:8] != _MARK:
        return None
    fields = np.frombuffer(data, _FIELDS)[0]
    rank = int(fields["rank"]) + 1
    format = _FORMATS[fields["elemtype"]]
    if format[0] == ".":
        raise ValueError(f"elements of {format}: this machine does not model them")
    if fields["swizzle_mode"] >= len(_SWIZZLES) or fields["swizzle_atomicity"]:
        raise ValueError("swizzles of 96 bytes, and of other chunks than 16: not modelled here")
    dtype = np.dtype(_STORED.get(format, format))
    shape = [int(n) for n in fields["global_dim"][:rank]]
    box, steps = (fields[name][:rank].tolist() for name in ("box_dim", "element_stride"))
    for name, values in (("global_dim", shape), ("box_dim", box), ("element_stride", steps)):
        if 0 in values:
            raise ValueError(f"{name} {values.index(0)} is 0, or was never set")
    strides = [dtype.itemsize, *fields["global_stride"][: rank - 1].tolist()]
    # of one element, the distance to the next does not matter
    strides = [max(s, 16) if i and n == 1 else s for i, (s, n) in enumerate(zip(strides, shape))]  # noqa: B905
    start = int(fields["global_address"])
    buffer = space.find(start)
    last = start + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + dtype.itemsize
    if buffer is None or last > buffer.end:
        raise ValueError(f"its array, of {shape} from {start:#x}, ends {space.describe(last - 1)}")
    memory = np.frombuffer(memoryview(buffer.bytes), np.uint8)
    array = np.ndarray(shape[::-1], dtype, memory, start - buffer.start, strides[::-1])
    one = TensorMap(
        array,
        tuple(box[::-1]),
        format=format,
        element_strides=tuple(steps[::-1]),
        swizzle=_SWIZZLES[fields["swizzle_mode"]],
        interleave=_INTERLEAVES[fields["interleave_layout"]],
        fill=_FILLS[fields["fill_mode"]],
        promotion=int(fields["promotion"]) * 32,
    )
    return in_launch(one, start, buffer.name)
