"""Counts behind *The whole machine*: what a tile asks of L2, and drawings of who waits for whom."""

from __future__ import annotations

import figures
import kernels
from book.cells import columns, tuned
from kernels.check import random_inputs
from kernels.gemm import gemm
from measure.provenance import label, load

OPERATIONS = 4096  # per clock and multiprocessor: wgmma of 16-bit numbers
K_STEP, BYTES = 64, 2


def clocks(bm: int, bn: int) -> float:
    """Clocks of the tensor cores for one k-step of a tile."""
    return 2 * bm * bn * K_STEP / OPERATIONS


def from_l2(bm: int, bn: int) -> float:
    """Bytes per clock that a tile asks of L2 while the tensor cores never wait."""
    return (bm + bn) * K_STEP * BYTES / clocks(bm, bn)


def ports(*tiles: tuple[int, int]) -> None:
    """Shows what some tiles ask of L2, beside the fastest setting with each that the search timed."""
    rows = [
        [
            f"{bm} x {bn}",
            f"{clocks(bm, bn):.0f}",
            f"{(bm + bn) * K_STEP * BYTES // 1024}",
            f"{from_l2(bm, bn):.0f}",
            f"{tuned.at('wgmma_persistent', BM=bm, BN=bn)['tflops']:.0f}",
        ]
        for bm, bn in tiles
    ]
    columns.show(
        {
            "tile": "rows and columns of C",
            "clocks per k-step": f"of the tensor cores, at {OPERATIONS:,} operations per clock",
            "KiB per k-step": "of A and B, 64 of k, 16-bit numbers",
            "L2: bytes per clock": "what L2 must deliver to one multiprocessor, if the tensor cores are to work in every clock",
            "TFLOP/s": "measured: the fastest setting of wgmma_persistent with this tile, 4096 x 4096 x 4096, float16 to float32",
        },
        rows,
        caption=f"The first columns are computed, the last is measured; {label(load('tune'))}.",
    )


def run(rung: str, M: int = 256, N: int = 512, K: int = 128, **macros: int):
    """The trace of a product on the emulator. The default size is four tiles of 128 x 256, two k-steps each."""
    A, B, _ = random_inputs(kernels.find(rung).types(macros), M, N, K)
    return gemm(rung, A, B, macros=macros, machine="emulator").trace


def loads(trace) -> int:
    """Bytes that TMA asked of L2 in a launch."""
    return sum(
        row.bytes for row in trace.rows("cp.async.bulk.tensor") if ".global.mbarrier" in row.opcode
    )


SCHEDULES = {
    "wgmma_pipelined": (
        ("copies", 0, 12, "load", 1), ("tensor cores", 2, 12, "compute", 1), ("stores", 12, 16, "store", 1),
        ("copies", 16, 28, "load", 2), ("tensor cores", 18, 28, "compute", 2), ("stores", 28, 32, "store", 2),
    ),
    "persistent, cooperative": (
        ("copies", 0, 10, "load", 1), ("tensor cores", 2, 12, "compute", 1), ("warps lay C", 12, 14, "store", 1),
        ("copies", 10, 22, "load", 2), ("tensor cores", 14, 24, "compute", 2), ("warps lay C", 24, 26, "store", 2),
        ("TMA stores", 13, 17, "store", 1), ("TMA stores", 25, 29, "store", 2),
    ),
    "persistent, ping-pong": (
        ("copies", 0, 22, "load"), ("tensor cores", 2, 7, "compute", 1), ("tensor cores", 7, 12, "compute", 2),
        ("tensor cores", 12, 17, "compute", 3), ("tensor cores", 17, 22, "compute", 4),
        ("warps lay C", 7, 8, "store", 1), ("warps lay C", 12, 13, "store", 2), ("warps lay C", 17, 18, "store", 3),
        ("warps lay C", 22, 23, "store", 4), ("TMA stores", 8, 10, "store", 1), ("TMA stores", 13, 15, "store", 2),
        ("TMA stores", 18, 20, "store", 3), ("TMA stores", 23, 25, "store", 4),
    ),
}  # fmt: skip
TITLES = {
    "wgmma_pipelined": "A block per tile: nothing overlaps the store, nor the first copies",
    "persistent, cooperative": "A block that stays: copies run on, and TMA stores beside the next tile",
    "persistent, ping-pong": "Two consumers in turn: one multiplies while the other stores",
}


def schedule(name: str):
    """A drawing of two large tiles (or four of half the size) on one multiprocessor."""
    keys = ("row", "start", "end", "kind", "stage")
    events = [dict(zip(keys, part, strict=False)) for part in SCHEDULES[name]]
    drawn = figures.timeline(
        events,
        unit="units of time",
        title=TITLES[name],
        caption="A drawing, not a measurement: the first copies take 2 units, a tile of 128 x 256 takes 10, its"
        " store 4. One stage is one tile.",
    )
    return drawn


def schedules():
    """The three, to flip through."""
    return figures.Choice(
        {name: schedule(name) for name in SCHEDULES},
        name="schedule",
        title="What do the tensor cores do at the end of a tile?",
        slider=False,
    )
