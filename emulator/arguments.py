"""How a command line writes a kernel's arguments: `s32=5`, `f32[256,64]=random:1`, `u8[4096]=below:26:7`,
`map:64x64:128:f16[256,64]=random` (a tensor map of such an array: its box, its swizzle).
"""

from __future__ import annotations

import argparse
import math
import re

import numpy as np

from emulator.machine.tensor_map import TensorMap

DTYPES = {
    **{f"{kind}{bits}": f"{'iu'[kind == 'u']}{bits // 8}" for kind in "us" for bits in (8, 16, 32, 64)},
    "f16": "f2", "f32": "f4", "f64": "f8",
}  # fmt: skip
WAYS = "zeros, ones, arange, random[:SEED], uniform[:SEED], below:N[:SEED]"


def extents(text: str) -> tuple[int, ...]:
    """ "16x16" or "16,16"."""
    if not re.fullmatch(r"\d+([x,]\d+){0,2}", text):
        raise argparse.ArgumentTypeError(f"{text}: one to three numbers, as in 4 or 16x16")
    return tuple(int(part) for part in re.split("[x,]", text))


def argument(text: str):
    """`TYPE=VALUE` or `TYPE[SHAPE]=WHAT` as a NumPy scalar or array, a TensorMap of one. Raises ValueError."""
    if re.match(r"map\b", text):
        return tensor_map(text)
    match = re.fullmatch(r"(\w+)(?:\[(\d+(?:[,x]\d+)*)\])?(?:=(.+))?", text)
    if not match or match[1] not in DTYPES:
        raise ValueError(
            f"--arg {text}: expected TYPE=VALUE or TYPE[SHAPE]=WHAT, TYPE one of {', '.join(DTYPES)}; or "
            "map:BOX:TYPE[SHAPE]=WHAT"
        )
    dtype, shape, what = np.dtype(DTYPES[match[1]]), match[2], match[3]
    if shape is None:
        if what is None:
            raise ValueError(f"--arg {text}: a scalar needs a value")
        return scalar(text, dtype, what)
    try:
        return array(text, dtype, tuple(int(part) for part in re.split("[x,]", shape)), what)
    except MemoryError as problem:
        raise ValueError(f"--arg {text}: {problem}") from None


def tensor_map(text: str) -> TensorMap:
    """`map:BOX:TYPE[SHAPE]=WHAT` or `map:BOX:SWIZZLE:TYPE[SHAPE]=WHAT`, BOX as in 64x32, slowest dimension first."""
    match = re.fullmatch(r"map:(\d+(?:x\d+)*):(?:(\d+):)?(\w+\[.*)", text)
    if not match:
        raise ValueError(
            f"--arg {text}: a tensor map is map:BOX:TYPE[SHAPE]=WHAT or map:BOX:SWIZZLE:TYPE[SHAPE]=WHAT, as in "
            "map:64x64:128:f16[256,64]=random"
        )
    box = tuple(int(extent) for extent in match[1].split("x"))
    try:
        return TensorMap(argument(match[3]), box, swizzle=int(match[2] or 0))
    except ValueError as problem:
        raise ValueError(f"--arg {text}: {problem}") from None


def scalar(text: str, dtype: np.dtype, what: str):
    """A NumPy scalar. ValueError for what is no number, or does not fit."""
    try:
        number = float(what) if dtype.kind == "f" else int(what, 0)
    except ValueError:
        kind = "a number" if dtype.kind == "f" else "an integer"
        raise ValueError(f"--arg {text}: {what} is not {kind}") from None
    try:
        with np.errstate(over="raise"):
            return dtype.type(number)
    except (OverflowError, FloatingPointError):
        raise ValueError(f"--arg {text}: {what} does not fit {dtype}") from None


def array(text: str, dtype: np.dtype, shape: tuple[int, ...], what: str | None) -> np.ndarray:
    """An array filled with `what`, or loaded. ValueError where it cannot be."""
    if what is None or what == "zeros":
        return np.zeros(shape, dtype)
    if what == "ones":
        return np.ones(shape, dtype)
    if what == "arange":
        held = np.arange(math.prod(shape)).reshape(shape)
        largest = float((np.finfo if dtype.kind == "f" else np.iinfo)(dtype).max)
        if held.size - 1 > largest:
            raise ValueError(f"--arg {text}: {held.size - 1} does not fit {dtype}")
        return held.astype(dtype)
    if random := re.fullmatch(r"random(?::(\d+))?", what):
        rng = np.random.default_rng(int(random[1] or 0))
        if dtype.kind == "f":
            return rng.standard_normal(shape).astype(dtype)
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    if uniform := re.fullmatch(r"uniform(?::(\d+))?", what):
        if dtype.kind != "f":
            raise ValueError(f"--arg {text}: uniform is for floats; integers are below:N[:SEED]")
        return np.random.default_rng(int(uniform[1] or 0)).uniform(-1, 1, shape).astype(dtype)
    if below := re.fullmatch(r"below:(\d+)(?::(\d+))?", what):
        if not 0 < int(below[1]) <= 2**31:
            raise ValueError(f"--arg {text}: below:N takes a number from 1 to 2147483648")
        held = np.random.default_rng(int(below[2] or 0)).integers(0, int(below[1]), shape)
        if dtype.kind != "f" and int(below[1]) - 1 > np.iinfo(dtype).max:
            raise ValueError(f"--arg {text}: {int(below[1]) - 1} does not fit {dtype}")
        return held.astype(dtype)
    try:
        loaded = np.load(what)
    except FileNotFoundError:
        raise ValueError(f"--arg {text}: {what} is none of {WAYS}, nor a file") from None
    except (OSError, ValueError, EOFError):
        raise ValueError(f"--arg {text}: {what} is not a .npy file") from None
    if not isinstance(loaded, np.ndarray):
        raise ValueError(f"--arg {text}: {what} holds several arrays; save one with np.save")
    if loaded.dtype != dtype or loaded.size != math.prod(shape):
        raise ValueError(f"--arg {text}: {what} holds {loaded.dtype} {loaded.shape}")
    return np.ascontiguousarray(loaded)
