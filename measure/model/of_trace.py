"""The bound of any kernel that the emulator has run, from its trace alone.

What is counted is what the machine executes too: multiply-adds, products of the tensor cores, wavefronts of shared memory
(ptxas's merged loads as it makes them) and bytes that requests for global memory bring past L1. How many passes these take
hangs on L1's banks: with rows of 4097 floats, lanes of a column fall on many, and a pass for each line would be too much, so
each request counts as what its different bytes fill. Issue slots are left out, since PTX's instructions are not the
machine's, and so is device memory, since nobody knows what L2 holds beforehand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from kernels.shapes import ceil_div
from measure.compare import ASYNC, GLOBAL_LOAD, GLOBAL_STORE, SHARED_LOAD, SHARED_STORE

from .counts import KINDS, WAVEFRONT, of_requests
from .rates import BOOK, SMS, rates

# The input format of a product, as its opcode says it: that of `rates`.
INPUTS = {
    "f16": "float16", "bf16": "bfloat16", "tf32": "tf32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e4m3fn",
    "s8": "int8", "u8": "int8",
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """The least time of one resource, in ms, and the work of all SMs."""

    resource: str
    work: float
    ms: float


def bound(trace, ghz: float, merged: bool = True) -> list[Part]:
    """The least times on an H200 (or an H100, whose SMs are the same) at this clock, the largest first. merged: whether
    the trace knows which loads ptxas merges; where it does not, loads from shared memory are left out.
    """
    floats, path = 0.0, 0.0
    products: dict[tuple[str, str], float] = {}
    for row in trace.instructions:
        name = row.opcode
        if re.match(r"fma(\.\w+)*\.f32$", name):
            floats += row.warps
        elif of := _product(name):
            kind, inputs, each = of
            products[kind, inputs] = products.get((kind, inputs), 0.0) + each * row.warps
        if name.startswith("wgmma.mma") or re.match(SHARED_STORE, name):
            path += row.shared_wavefronts
        elif re.match(SHARED_LOAD, name):
            path += row.machine_wavefronts if merged else 0
        elif re.match(ASYNC, name):
            path += row.bytes / WAVEFRONT
        elif re.match(f"{GLOBAL_LOAD}|{GLOBAL_STORE}", name):
            path += _passes(trace, row)
    blocks, speed = min(SMS, int(np.prod(trace.grid))), rates(BOOK, "fma", "float32")
    found = [
        _part(name, work, speed[name], blocks, ghz)
        for name, work in (("FMA pipe", floats), ("shared memory and L1", path))
    ]
    tensor = [
        _part("tensor cores", work, rates(BOOK, kind, inputs)["tensor cores"], blocks, ghz)
        for (kind, inputs), work in products.items()
    ]
    if tensor:
        found.append(Part("tensor cores", sum(p.work for p in tensor), sum(p.ms for p in tensor)))
    return sorted((part for part in found if part.work), key=lambda part: -part.ms)


def _passes(trace, row) -> float:
    """The fewest passes of L1's data path for this row's requests."""

    def fewest(access) -> int:
        return ceil_div(len(np.unique(access.addresses[access.active])) * access.width, WAVEFRONT)

    return of_requests(trace, row, fewest)


def _part(resource: str, work: float, rate, blocks: int, ghz: float) -> Part:
    """The SM with the most has at least its share of the work."""
    return Part(resource, work, rate.seconds(work / blocks, work, ghz) * 1e3)


def _product(name: str) -> tuple[str, str, float] | None:
    """(kind, input format, operations of a warp) of an instruction of the tensor cores; None for others, and for formats
    that no loop has measured.
    """
    given = "float16" if name.startswith("wmma") else ""  # whose opcode names the sums alone
    inputs = next((INPUTS[word] for word in name.split(".") if word in INPUTS), given)
    for kind in ("mma", "wgmma"):
        pattern, each = KINDS[kind]
        if inputs and (made := re.match(pattern, name)):
            return kind, inputs, float(each * np.prod([int(n) for n in made.groups()]))
    return None
