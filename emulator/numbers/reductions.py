"""What a reducing bulk copy does to each element: cp.reduce.async.bulk (PTX ISA 9.7.9.25.4.2).

Integer sums wrap; f16 and bf16 sums are rounded to nearest even, subnormals kept (`.noftz`).
"""

from __future__ import annotations

import numpy as np

from emulator.numbers import comparisons, floats

_INTEGERS = {
    "u8": np.uint8, "s32": np.int32, "u32": np.uint32, "s64": np.int64, "u64": np.uint64,
    "b32": np.uint32, "b64": np.uint64,
}  # fmt: skip
_FLOATS = {"f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64}
_FORMATS = {
    "uint8": "u8", "int32": "s32", "uint32": "u32", "int64": "s64", "uint64": "u64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip
_OF_FLOATS = {"add": floats.add, "min": comparisons.minimum, "max": comparisons.maximum}
_OF_INTEGERS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": lambda old, new: np.where(old >= new, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, new: np.where((old == 0) | (old > new), new, old - old.dtype.type(1)),
}


def of_type(op: str, kind: str):
    """combine(old, new) on arrays of any dtype that hold elements of PTX type `kind`; None if there is none.

    Bits come back in `old`'s dtype.
    """
    if kind in _FLOATS and op in _OF_FLOATS:
        function, dtype = _OF_FLOATS[op], _FLOATS[kind]

        def of_floats(old, new):
            result = function(old.view(dtype), new.view(dtype), kind)
            return np.asarray(result).astype(dtype, copy=False).view(old.dtype)

        return of_floats
    if kind in _INTEGERS and op in _OF_INTEGERS:
        function, dtype = _OF_INTEGERS[op], _INTEGERS[kind]

        def of_integers(old, new):
            with np.errstate(over="ignore"):
                return function(old.view(dtype), new.view(dtype)).view(old.dtype)

        return of_integers
    return None


def of_format(op: str, format: str):
    """The same for the elements of a tensor map; None for a format that cannot be reduced so."""
    return of_type(op, _FORMATS.get(format, ""))


def reduction(ins, bind):
    """The combine of a cp.reduce.async.bulk; of a tensor's, whose map says the type, anything not None."""
    op = next(part for part in ins.parts if part in _OF_INTEGERS)
    if "tensor" in ins:
        return op
    found = of_type(op, ins.parts[-1])
    if found is None:
        raise bind.unsupported()
    return found
