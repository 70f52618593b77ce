"""The prediction: the bound's work with latencies, overlap, rounds of blocks, first copies and stores of C.

The warps of an SM go round in a closed network: each asks the multiplying part (issue slots, FMA pipe or tensor
cores, whichever it needs longest), the data path of shared memory and L1, and TMA, one after the other, and waits out
the latencies that its program does not hide. Mean value analysis (Reiser and Lavenberg 1980) gives the throughput for
so many warps: with few, times add up; with many, the fullest part sets the pace. Its inputs are counts, rates,
latencies and `STRUCTURE`, which says what each source overlaps. Nothing is fitted to a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels.rungs import find
from kernels.shapes import ceil_div

from .bound import DATA_PATH, bound, busiest, depth_of, tiles_of
from .counts import WARP, Counts
from .rates import SMS, latencies, rates

SCHEDULERS = 4


@dataclass(frozen=True)
class Structure:
    """What a source overlaps. in_flight: pieces of work that a warp has under way at a time (2: next fragments are
    loaded while it multiplies). waits: latencies of a k-step that a block waits out, because it asks for the tile
    only when it needs it; k: elements of k of such a step, a macro or a number. stays: a block computes tile after
    tile.
    """

    in_flight: int = 1
    waits: tuple[str, ...] = ()
    k: str | int = "BK"
    stays: bool = False


BARRIER = "barrier, 8 warps"
THEN = ("L2", BARRIER, BARRIER)  # a copy through registers between two barriers
STRUCTURE = {
    "uncoalesced": Structure(
        1, ("L1",), 4
    ),  # ptxas unrolls four steps, whose loads are under way together
    "naive": Structure(1, ("L1",), 4),
    "tiled": Structure(1, THEN, "BLOCK"),
    "coarsened_1d": Structure(1, THEN),
    "coarsened_2d": Structure(1, THEN),
    "vectorized": Structure(1, THEN),
    "warp_tiled": Structure(2, (BARRIER,)),
    "async_copy": Structure(2, THEN),
    "async_pipeline": Structure(2, (BARRIER,)),
    "warp_specialized": Structure(2, (BARRIER,)),
    "wmma": Structure(1, ("L1",), 16),
    "wmma_shared": Structure(1, THEN),
    "wmma_async": Structure(1, (BARRIER,)),
    "mma_atoms": Structure(1, ("L1", "mma.sync"), 16),
    "mma_sync": Structure(1, THEN, 32),
    "mma_tiled": Structure(1, (BARRIER,), 32),
    "mma_padded": Structure(1, (BARRIER,), 32),
    "mma_swizzled": Structure(1, (BARRIER,), 32),
    "mma_tf32": Structure(2, (BARRIER,)),
    "mma_multistage": Structure(2, (BARRIER,), stays=True),
    "tma_mma": Structure(2, (), 64, stays=True),
    "wgmma": Structure(1, ("L2", BARRIER), 64),
    "wgmma_pipelined": Structure(2, (), 64),
    "wgmma_persistent": Structure(2, (), 64, stays=True),
    "wgmma_cluster": Structure(2, (), 64, stays=True),
    "wgmma_split": Structure(2, (), 64, stays=True),
    "wgmma_fp8": Structure(2, (), 64, stays=True),
}


@dataclass(frozen=True)
class Prediction:
    """A predicted time and its parts, in clocks of the busiest SM. memory_ms: what the parts that all SMs share need
    at least.
    """

    ms: float
    first: float
    loop: float
    store: float
    memory_ms: float


def predict(counts: Counts, size: tuple[int, int, int], gpu: str, ghz: float) -> Prediction:
    """The time of a launch at this clock."""
    how, K = STRUCTURE[counts.rung], depth_of(counts, size[2])
    held = 1 if how.stays else max(1, counts.blocks_per_sm)
    first = loop = store = 0.0
    for together, rounds in _rounds(counts, size, held, how.stays):
        loop += rounds * K * step(counts, gpu, together)
        store += rounds * _store(counts, gpu, together)
        first += (1 if how.stays else rounds) * _first(counts, together)
    shared = [need.ms for need in bound(counts, size, gpu, ghz).needs if need.rate.each == "second"]
    ms = max([(first + loop + store) / (ghz * 1e6), *shared])
    return Prediction(ms, first, loop, store, max(shared, default=0.0))


def step(counts: Counts, gpu: str, together: int) -> float:
    """Clocks for one element of k of so many blocks that share an SM."""
    how = STRUCTURE[counts.rung]
    parts = demands(counts, gpu, 1)
    k = (
        find(counts.rung).resolve(counts.macros).get(how.k, how.k)
        if isinstance(how.k, str)
        else how.k
    )
    wait = sum(latencies()[name] for name in how.waits) / k
    warps = counts.threads / WARP
    customers = max(1.0, together * warps * how.in_flight / SCHEDULERS)
    # the work of one scheduler's customer: it has a quarter of the warps, and its share of the path
    each = [part * together / customers for part in parts]
    return customers / throughput(each, wait, customers)


def demands(counts: Counts, gpu: str, K: int, fixed: bool = False) -> tuple[float, float, float]:
    """Clocks of the multiplying part, of the data path and of TMA's writes for K elements of k of a block (fixed: for
    what stands outside the loop).
    """
    speed = rates(gpu, counts.kind, counts.inputs)
    part = (
        (lambda name: counts.work.get(name, (0, 0))[0])
        if fixed
        else (lambda name: counts.work.get(name, (0, 0))[1] * K)
    )
    multiply = [
        part("instructions") / speed["issue slots"].value,
        part("float instructions") / speed["FMA pipe"].value,
    ]
    if counts.kind != "fma":
        multiply.append(part("operations") / speed["tensor cores"].value)
    path = sum(part(name) for name in DATA_PATH) / speed["shared memory and L1"].value
    return max(multiply), path, part("TMA") / speed["TMA's writes"].value


def throughput(demand: Sequence[float], wait: float, customers: float) -> float:
    """Turns per clock of a closed network of queues and one delay, by mean value analysis; between whole numbers of
    customers, the line.
    """
    queues, last, now = [0.0] * len(demand), 0.0, 0.0
    for n in range(1, int(np.ceil(customers)) + 1):
        times = [d * (1 + queue) for d, queue in zip(demand, queues, strict=True)]
        last, now = now, n / (wait + sum(times))
        queues = [now * time for time in times]
    part = customers - int(customers)
    return last + (now - last) * part if part else now


def _rounds(counts: Counts, size, held: int, stays: bool) -> list[tuple[int, float]]:
    """(blocks on an SM at a time, rounds of so many) of the busiest SM."""
    if stays:
        return [(1, busiest(counts, size))]
    tiles = tiles_of(counts, size)
    full, rest = divmod(tiles, SMS * held)
    return [(held, full), *([(ceil_div(rest, SMS), 1)] if rest else [])]


def _first(counts: Counts, together: int) -> float:
    """Until the first products: the first tiles come from device memory."""
    return latencies()["device memory"]


def _store(counts: Counts, gpu: str, together: int) -> float:
    """What stands outside the loop, the stores of C above all: nothing else of the same block overlaps it."""
    return together * max(demands(counts, gpu, 0, fixed=True))
