"""The bound: for each resource the least time that a launch's work needs of it; the largest is the bound. Counts and
rates, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernels.rung import Types
from kernels.rungs import find
from kernels.shapes import ceil_div

from .counts import WARP, Counts
from .rates import SMS, Rate, rates

DATA_PATH = ("shared loads", "shared stores", "wgmma reads", "copies", "global lines")
UNITS = {
    "issue slots": "instructions of a warp",
    "FMA pipe": "FFMA, FMUL and FADD of a warp",
    "tensor cores": "operations",
    "shared memory and L1": "wavefronts",
    "TMA's writes": "wavefronts",
    "L2 to one SM": "bytes",
    "L2 look-ups": "look-ups",
    "device memory": "bytes",
}


@dataclass(frozen=True)
class Need:
    """What a launch asks of one resource. work: of the busiest SM, or of the GPU for what all SMs share."""

    resource: str
    work: float
    per_product: float
    rate: Rate
    ms: float


@dataclass(frozen=True)
class Bound:
    """All needs of a launch, the largest first. ghz: the clock at which clocks became milliseconds."""

    rung: str
    size: tuple[int, int, int]
    gpu: str
    ghz: float
    needs: tuple[Need, ...]

    @property
    def ms(self) -> float:
        return self.needs[0].ms

    @property
    def binding(self) -> str:
        return self.needs[0].resource

    def __getitem__(self, resource: str) -> Need:
        return next(need for need in self.needs if need.resource == resource)


def tiles_of(counts: Counts, size: tuple[int, int, int]) -> int:
    return ceil_div(size[0], counts.tile[0]) * ceil_div(size[1], counts.tile[1])


def depth_of(counts: Counts, K: int) -> int:
    """K, padded as the launcher does."""
    step = find(counts.rung).padding(counts.macros)[2]
    return ceil_div(K, step) * step


def busiest(counts: Counts, size: tuple[int, int, int]) -> float:
    """How many tiles the SM with the most tiles has at least. Blocks that share tiles (wgmma_split) may spread them
    evenly.
    """
    tiles = tiles_of(counts, size)
    if counts.rung == "wgmma_split":
        return tiles / SMS
    grid, _, _ = find(counts.rung).geometry(counts.macros, *size)
    return ceil_div(tiles, min(SMS, int(np.prod(grid))))


def work_of(counts: Counts, K: int) -> Mapping[str, float]:
    """The work of one tile, by resource (device memory's is the launch's, see `bound`)."""
    found = {
        "issue slots": counts.work["instructions"][1]
        * K,  # the main loop alone: the rest is PTX's count
        "FMA pipe": counts.of("float instructions", K),
        "shared memory and L1": sum(counts.of(name, K) for name in DATA_PATH),
        "L2 to one SM": counts.of("received", K),
        "TMA's writes": counts.of("TMA", K),
        "L2 look-ups": counts.of("look-ups", K) if counts.of("copies", K) else 0.0,
    }
    if counts.kind != "fma":
        found["tensor cores"] = counts.of("operations", K)
    return found


def bound(counts: Counts, size: tuple[int, int, int], gpu: str, ghz: float) -> Bound:
    """The least time of each resource for this launch. ghz: the clock that was read; for a bound without one, the
    highest there is.
    """
    M, N, K = size
    K = depth_of(counts, K)
    tiles, most = tiles_of(counts, size), busiest(counts, size)
    products = counts.of("products", K)
    types = find(counts.rung).types(counts.macros)
    width, out = (np.dtype(t).itemsize for t in (types.input_dtype, types.output_dtype))
    needs = []
    for name, rate in rates(gpu, counts.kind, counts.inputs).items():
        if name == "device memory":
            total = each = float((M + N) * size[2] * width + M * N * out)
            work, per_product = total, total / (tiles * products)
        else:
            of_tile = work_of(counts, K)[name]
            each, total = of_tile * most, of_tile * tiles
            work = total if rate.each == "second" else each
            per_product = of_tile / products
        needs.append(Need(name, work, per_product, rate, rate.seconds(each, total, ghz) * 1e3))
    return Bound(counts.rung, size, gpu, ghz, tuple(sorted(needs, key=lambda n: -n.ms)))


def of_product(
    size: tuple[int, int, int], inputs: str, output: str, gpu: str, ghz: float
) -> tuple[float, str]:
    """The least time, in ms, of any kernel of these types, and what binds: operations over all SMs, at the rate of the
    fastest instruction for them, and matrices that move once.
    """
    M, N, K = size
    types = Types(inputs, output=output)
    width, out = (np.dtype(t).itemsize for t in (types.input_dtype, types.output_dtype))
    speed = rates(gpu, "fma" if inputs == "float32" else "wgmma", inputs)
    work = {
        "FMA pipe": M * N * K / WARP,
        "tensor cores": 2.0 * M * N * K,
        "device memory": float((M + N) * K * width + M * N * out),
    }
    if inputs != "float32":
        del work["FMA pipe"]
    return max(
        (speed[name].seconds(amount / SMS, amount, ghz) * 1e3, name)
        for name, amount in work.items()
        if name in speed
    )
