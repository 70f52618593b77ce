"""The prediction: the bound's work with latencies, overlap, rounds of blocks, first copies, stores of C and the launch.

Warps go round a closed network: the pipe of their scheduler, and the path to shared memory that all share. What a warp
takes on its own, with its pauses and its waits for what it loads, is read from the machine code (`code.alone`). Warps
that meet at barriers make their block the customer: while it waits, all its warps do, and only other blocks of the SM go
on. Mean value analysis (Reiser and Lavenberg 1980; Schweitzer 1979) gives the throughput of both: with few customers,
times add up; with many, the fullest part sets the pace. Tiles that are asked for ahead of time set a pace of their own:
what a tile takes to come, over how many are on their way (`between`). Its inputs are counts, rates and latencies, all
measured by loops. Nothing is fitted to a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernels.rungs import find
from kernels.shapes import ceil_div
from measure.machine import COPY_TILE

from .bound import DATA_PATH, bound, busiest, depth_of, tiles_of
from .counts import WARP, WAVEFRONT, Counts
from .rates import SMS, copies, latencies, launch, rates
from .sharing import delivery

ROUNDS = 100  # after which mean values no longer change
SCHEDULERS, PANEL = 4, 128  # bytes of a row of C that a warp stores at a time
WAYS = {"TMA": "TMA", "cp.async": "copies"}  # by which kind of work a way to copy is known


@dataclass(frozen=True)
class Structure:
    """What a source overlaps. waits: latencies of a k-step that a block waits out, because it asks for the tile
    only when it needs it (as often as its loads come in rounds, `counts.load_rounds`); k: elements of k of such a
    step, a macro or a number. ahead: tiles that are on their way while one is multiplied; "stages": a macro's number
    less one. spread: a tile is asked for bit by bit, over a whole step. stays: a block computes tile after tile.
    ring: a producer fills stages, and wgmma reads them, so that stages and not warps go round.
    """

    waits: tuple[str, ...] = ()
    k: str | int = "BK"
    stays: bool = False
    ahead: int | str = 0
    spread: bool = False
    ring: bool = False


BARRIER, TILE = "barrier, 8 warps", "tile"
THEN = (TILE, BARRIER, BARRIER)  # a copy between two barriers
STAGES = "stages"
RING = Structure(k=64, stays=True, ahead=STAGES, ring=True)
STRUCTURE = {
    # ptxas unrolls four steps, whose loads are under way together
    **dict.fromkeys(("uncoalesced", "naive"), Structure(("L1",), 4)),
    "tiled": Structure(THEN, "BLOCK"),
    **dict.fromkeys(("coarsened_1d", "coarsened_2d", "vectorized", "async_copy"), Structure(THEN)),
    "warp_tiled": Structure((BARRIER,), ahead=1),
    **dict.fromkeys(("async_pipeline", "warp_specialized", "wmma_async"), Structure((BARRIER,), ahead=STAGES)),
    **dict.fromkeys(("wmma", "mma_atoms"), Structure(("L1",), 16)),
    "wmma_shared": Structure(THEN),
    "mma_sync": Structure(THEN, 32),
    **dict.fromkeys(("mma_tiled", "mma_padded", "mma_swizzled"), Structure((BARRIER,), 32, ahead=1)),
    "mma_tf32": Structure((BARRIER,), ahead=STAGES, spread=True),
    "mma_multistage": Structure((BARRIER,), stays=True, ahead=STAGES, spread=True),
    "tma_mma": Structure((), 64, stays=True, ahead=STAGES),
    "wgmma": Structure((TILE, BARRIER), 64),
    "wgmma_pipelined": replace(RING, stays=False),
    **dict.fromkeys(("wgmma_persistent", "wgmma_cluster", "wgmma_split", "wgmma_fp8"), RING),
}  # fmt: skip


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
        rate = delivery(counts, size, way_of(counts), together, gpu, ghz)
        loop += rounds * K * step(counts, gpu, together, rate)
        store += rounds * _store(counts, gpu, together)
        first += (1 if how.stays else rounds) * _first(counts, together, rate)
    shared = [need.ms for need in bound(counts, size, gpu, ghz).needs if need.rate.each == "second"]
    ms = max([(first + loop + store) / (ghz * 1e6), *shared]) + launch()
    return Prediction(ms, first, loop, store, max(shared, default=0.0))


def step(counts: Counts, gpu: str, together: int, rate: float) -> float:
    """Clocks for one element of k of so many blocks that share an SM, which gets `rate` bytes per clock from L2."""
    how, known = STRUCTURE[counts.rung], {**latencies(), TILE: latency_of(way_of(counts))}
    parts = demands(counts, gpu, 1, rate)
    macros = find(counts.rung).resolve(counts.macros)
    k = macros.get(how.k, how.k) if isinstance(how.k, str) else how.k
    rounds = max(1.0, counts.work.get("load rounds", (0, 0))[1] * k)
    wait = sum(known[name] * (rounds if name == TILE else 1) for name in how.waits) / k
    ahead = macros[STAGES.upper()] - 1 if how.ahead == STAGES else how.ahead
    warps, own = counts.threads / WARP, counts.work.get("alone", (0, 0))[1]
    if how.ring:
        return between(max(parts[:2]), parts[2], known[TILE] / k, ahead, together)
    arrives, parts = (parts[2], parts[:2]) if ahead else (0.0, parts)
    if BARRIER not in how.waits:
        busy = turns(parts, own + wait, warps, together)
    else:
        busy, one = turns(parts, own, warps, together), turns(parts, own, warps)
        # of a block that is ready one has the fullest part, while others wait
        busy = max(busy, together / throughput([max(parts)], one - max(parts) + wait, together))
    if how.spread:  # its last bit has a step less, and little to bring
        busy, arrives, ahead = max(busy, together * arrives), 0.0, ahead - 1
        busy += 0.0 if ahead else known[TILE] / k
    return between(busy / together, arrives, known[TILE] / k, ahead, together) if ahead else busy


def between(busy: float, arrives: float, wait: float, ahead: int, together: int) -> float:
    """Clocks in which `together` blocks do a step, if so many tiles of each are on their way. Were all times always the
    same, nobody would ever wait for another by chance; were they random, everybody would queue as mean values say. The
    waiting that there is lies between, as far from nothing as their variance (`spread`).
    """
    certain = max(together * busy, together * arrives, (wait + arrives) / ahead)
    random = together / throughput([busy, arrives], wait, ahead * together)
    return certain + spread() * max(0.0, random - certain)


def spread() -> float:
    """The squared coefficient of variation of L2's latency, from its quantiles 0.01 and 0.99 (2.33 deviations from the
    middle): as it is to 1, so is the waiting that chance makes to that of random times (Kingman 1961).
    """
    known = latencies()
    return ((known["L2, farthest"] - known["L2, nearest"]) / 2 / 2.33 / known["L2"]) ** 2


def way_of(counts: Counts) -> str:
    """How a kernel copies tiles: "TMA", "cp.async" or through "registers"."""
    return next(
        (way for way, what in WAYS.items() if counts.work.get(what, (0, 0))[1]), "registers"
    )


def latency_of(way: str) -> float:
    """Clocks until a tile begins to arrive: what it takes alone, less what its bytes take. It comes from device memory,
    for whoever asks first, and the blocks that need the same tile wait with it.
    """
    known = latencies()
    beyond = known["device memory"] - known["L2"]
    return known[f"{way}, a tile"] - COPY_TILE / copies()[f"{way}, one SM"] + beyond


def turns(parts: Sequence[float], own: float, warps: float, together: int = 1) -> float:
    """Clocks in which all warps of `together` blocks do a step. parts: clocks that a block needs of the pipes, of which
    each scheduler has a quarter, and of the parts that all warps share; own: of a warp on its own.

    Mean values after Schweitzer: a warp meets those of its own scheduler at the pipe, and all at the shared parts. The
    latencies in `own` are of loads of one wavefront, so what the shared parts take comes on top.
    """
    each = max(1.0, warps * together / SCHEDULERS)  # warps of one scheduler
    others, beside = (each - 1) / each, min(SCHEDULERS, warps * together) - 1
    pipe, *shared = SCHEDULERS * parts[0] / warps, *(part / warps for part in parts[1:])
    wait = max(0.0, own - pipe)
    queues = [0.0] * len(parts)
    for _ in range(ROUNDS):
        times = [
            pipe * (1 + others * queues[0]),
            *(
                part * (1 + (others + beside) * queue)
                for part, queue in zip(shared, queues[1:], strict=True)
            ),
        ]
        queues = [each / (wait + sum(times)) * time for time in times]
    return wait + sum(times)


def demands(counts: Counts, gpu: str, K: int, rate: float = 0.0) -> tuple[float, float, float]:
    """Clocks of the multiplying part, of the data path and of what arrives for K elements of k of a block; with K of 0,
    of what stands outside the loop. rate: bytes per clock from L2.
    """
    speed = rates(gpu, counts.kind, counts.inputs)

    def part(name: str) -> float:
        fixed, each = counts.work.get(name, (0, 0))
        return each * K if K else fixed

    multiply = [
        part("instructions") / speed["issue slots"].value,
        part("float instructions") / speed["FMA pipe"].value,
    ]
    if counts.kind != "fma":
        multiply.append(part("operations") / speed["tensor cores"].value)
    path = sum(part(name) for name in DATA_PATH) / speed["shared memory and L1"].value
    arrives = part("L2 bytes") / rate if K else 0.0
    return max(multiply), path, max(part("TMA") / speed["TMA's writes"].value, arrives)


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
    tiles = tiles_of(counts, size)
    parts = counts.macros.get("SPLIT", 1)
    if parts > 1:  # a block for every part
        held = min(counts.blocks_per_sm, ceil_div(tiles * parts, SMS))
        return [(held, ceil_div(tiles * parts, SMS * held) / parts)]
    if stays:
        return [(1, busiest(counts, size))]
    full, rest = divmod(tiles, SMS * held)
    return [(held, full), *([(ceil_div(rest, SMS), 1)] if rest else [])]


def _first(counts: Counts, together: int, rate: float) -> float:
    """Until the first products: the first tile arrives."""
    how = STRUCTURE[counts.rung]
    macros = find(counts.rung).resolve(counts.macros)
    k = macros.get(how.k, how.k) if isinstance(how.k, str) else how.k
    each = counts.work.get("L2 bytes", (0, 0))[1] * k / rate
    return latency_of(way_of(counts)) + together * each + latencies()["L2"]


def _store(counts: Counts, gpu: str, together: int) -> float:
    """What stands outside the loop, the stores of C above all: nothing else of the same block overlaps it."""
    macros = counts.macros
    out = np.dtype(find(counts.rung).types(macros).output_dtype).itemsize
    panels = (
        counts.tile[1] * out / PANEL
    )  # of which HELD are stored while the next tile is multiplied
    exposed = max(0.0, 1 - macros.get("HELD", 0) / panels)
    parts, exchange = macros.get("SPLIT", 1), 0.0
    if (
        parts > 1
    ):  # blocks that share a tile write their sums to shared memory and read each other's
        exchange = 2 * parts * counts.tile[0] * counts.tile[1] * 4 / WAVEFRONT
    return exposed * together * max(demands(counts, gpu, 0)) + exchange
