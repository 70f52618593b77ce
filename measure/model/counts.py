"""The work of one tile of C: what a rung's machine code and the emulator count, as a fixed part and a part per step
of k.

The emulator runs one tile (one cluster's tiles) twice, with different K; every count grows linearly in between.
Instructions are the machine code's: those of the main loop per product (`code.main_loop`), and PTX's outside it.
Nothing here is a rate or a time.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernels.check import random_inputs
from kernels.gemm import gemm, plan
from kernels.occupancy import occupancy
from kernels.rung import Rung
from kernels.rungs import find
from measure.compare import ASYNC, GLOBAL_LOAD, GLOBAL_STORE, SHARED_LOAD, SHARED_STORE
from measure.merged_loads import merged_loads

from .code import main_loop

LINE, WAVEFRONT, WARP = 128, 128, 32  # bytes, bytes, lanes
ROW = 64  # columns of C that a count has at least
K_STEPS = (
    128,
    256,
)  # the two K of a count, in elements of two bytes; narrower elements have twice as many
# How many warps execute one product, and its operations per warp where the opcode does not say.
KINDS = {
    "fma": (r"fma\.rn\.f32", 64),
    "mma": (r"(?:wmma\.)?mma\..*m(\d+)n(\d+)k(\d+)", 2),
    "wgmma": (r"wgmma\.mma.*m(\d+)n(\d+)k(\d+)", 0.5),
}


@dataclass(frozen=True)
class Counts:
    """The work of one tile of C (rows x columns) of one configuration. work: {what: (fixed, per step of k of one
    element)}.

    All are of the block that computes the tile: "instructions" and "products" executed by a warp, "operations" of the
    tensor cores or FMA pipe, wavefronts ("shared loads", "shared stores", "wgmma reads", "copies" of cp.async, "TMA"
    in both directions, "global lines" of loads and stores), "look-ups" of L2 (TMA's are left out: Nsight Compute
    finds 0.7 to 1.1 for each line; for loads through L1 the fewest there can be), "L2 bytes" asked for and "received",
    "C bytes" written, "barriers" and "load rounds" per warp; "alone": clocks of a warp that nobody keeps waiting.
    """

    rung: str
    macros: Mapping[str, int]
    kind: str
    inputs: str
    tile: tuple[int, int]
    threads: int
    registers: int
    shared_bytes: int
    blocks_per_sm: int
    work: Mapping[str, tuple[float, float]]

    def of(self, name: str, K: int) -> float:
        """The work of this kind for a tile with `K` steps of k."""
        fixed, each = self.work.get(name, (0.0, 0.0))
        return fixed + each * K


def count(rung: str | Rung, macros: Mapping[str, int], arch: int = 90) -> Counts:
    """Counts one configuration, by compiling it for `arch` and running two small launches on the emulator."""
    rung = find(rung)
    rows, columns = block_tile(rung, macros)
    run = (
        {**macros, "SPLIT": 1} if "SPLIT" in macros else macros
    )  # what blocks that share a tile exchange is not counted
    wide, high = cluster(macros)
    wide *= -(-ROW // (columns * wide))  # rows of B and C fill whole lines of 128 bytes
    M, N = rows * high, columns * wide
    types = rung.types(macros)
    width = np.dtype(types.input_dtype).itemsize
    sizes = [k * max(1, 2 // width) for k in K_STEPS]
    how = plan(rung, M, N, sizes[0], run, arch)
    merged = merged_loads(how.build, rung.entry)
    found = []
    for K in sizes:
        A, B, _ = random_inputs(types, M, N, K)
        trace = gemm(
            rung, A, B, macros=run, machine="emulator", arch=arch, built=how.build, merged=merged
        ).trace
        totals = _totals(trace, rung, types, (rows, columns), K, width, wide * high)
        found.append({**totals, "load rounds": load_rounds(trace, how.build.ptx)})
    loop, span = main_loop(how.build, rung.entry), sizes[1] - sizes[0]
    work = {}
    for name in found[0]:
        each = (found[1][name] - found[0][name]) / span
        work[name] = (round(found[0][name] - each * sizes[0], 4), each)
    products = work["products"][1]
    warps = how.block[0] * how.block[1] / WARP
    each_barrier = products / warps / work["barriers"][1] if work["barriers"][1] else 0
    machine = products * loop.per_step(each_barrier)
    work["instructions"] = (max(0.0, work["instructions"][0]), machine)
    work["float instructions"] = (0.0, products * loop.floats / loop.products)
    if loop.kind != "wgmma":  # whose warps wait for products that others compute
        work["alone"] = (0.0, products / warps * loop.alone / loop.products)
    report = how.build.reports[rung.entry]
    threads = how.block[0] * how.block[1]
    fit = occupancy(arch, threads, report.registers, report.shared_bytes + how.shared_bytes)
    return Counts(
        rung.name, dict(macros), loop.kind, types.inputs, (rows, columns), threads,
        report.registers, report.shared_bytes + how.shared_bytes, fit.blocks, work,
    )  # fmt: skip


def block_tile(rung: Rung, macros: Mapping[str, int]) -> tuple[int, int]:
    """Rows and columns of C that a block computes at a time."""
    if rung.name == "mma_atoms":
        return 16, 8
    side = macros.get("BLOCK", 128)
    return macros.get("BM", side), macros.get("BN", side)


def cluster(macros: Mapping[str, int]) -> tuple[int, int]:
    """Blocks of a cluster side by side in columns and in rows of C."""
    return macros.get("CLUSTER_N", 1), macros.get("CLUSTER_M", macros.get("CLUSTER", 1))


def _totals(trace, rung, types, tile, K, width, tiles) -> dict[str, float]:
    """Totals of a trace, per tile."""
    sums = dict.fromkeys(
        ("instructions", "products", "operations", "shared loads", "shared stores", "wgmma reads",
         "copies", "TMA", "global lines", "look-ups", "L2 bytes", "C bytes", "barriers"), 0.0,
    )  # fmt: skip
    for row in trace.instructions:
        name = row.opcode
        sums["instructions"] += row.warps
        for pattern, each in KINDS.values():
            if made := re.match(pattern, name):
                sums["products"] += row.warps * (2 if name.startswith("wmma") else 1)  # two HMMA
                sums["operations"] += row.warps * each * np.prod([int(n) for n in made.groups()])
        if name.startswith("wgmma.mma"):
            sums["wgmma reads"] += row.shared_wavefronts
        elif re.match(ASYNC, name):
            sums["copies"] += row.bytes / WAVEFRONT
            sums["look-ups"] += row.shared_wavefronts
            sums["L2 bytes"] += row.global_sectors * 32
        elif name.startswith("cp.async.bulk") and ".mbarrier" in name:
            sums["L2 bytes"] += row.bytes
        elif name.startswith("cp.async.bulk") and row.global_sectors:
            sums["TMA"] += row.bytes / WAVEFRONT
        elif re.match(SHARED_LOAD, name):
            sums["shared loads"] += row.machine_wavefronts
        elif re.match(SHARED_STORE, name):
            sums["shared stores"] += row.shared_wavefronts
        elif re.match(f"{GLOBAL_LOAD}|{GLOBAL_STORE}", name):
            sums["global lines"] += _lines(trace, row)
            if re.match(GLOBAL_STORE, name):
                sums["look-ups"] += _lines(trace, row)
        elif name.startswith("bar"):
            sums["barriers"] += row.warps / (trace.block[0] * trace.block[1] / WARP)
    sums = {name: total / tiles for name, total in sums.items()}
    rows, columns = tile
    inputs = (rows + columns) * K * width
    if rung.boxes:
        sums["TMA"] += inputs / WAVEFRONT
    elif not sums["copies"]:  # through L1: a block reads each of its inputs once
        sums["L2 bytes"] += inputs
        sums["look-ups"] += inputs / LINE
    sums["received"] = (
        inputs if rung.boxes else sums["L2 bytes"]
    )  # of a cluster, what others have asked for, too
    sums["C bytes"] = rows * columns * np.dtype(types.output_dtype).itemsize
    return sums


def load_rounds(trace, ptx: str) -> float:
    """How often a warp waits for what it loads from global memory to store it in shared memory. Loads that stand
    together between two labels or branches are under way together, since ptxas moves them before the stores; a loop
    that is not unrolled, or a branch for the last loads, begins the next round only when this one has arrived.
    """
    labels = [n for n, line in enumerate(ptx.splitlines(), 1) if re.match(r"\$\w+:", line)]
    rounds, piece, loads = 0.0, None, 0
    for row in trace.instructions:
        here = bisect_right(labels, row.ptx_line)
        if here != piece or row.opcode.startswith("bra"):
            piece, loads = here, 0
        if loads is not None and row.opcode.startswith("ld.global"):
            loads = loads or row.warps
        elif loads and row.opcode.startswith("st.shared"):
            rounds, loads = rounds + loads, None  # the rest of this piece is the same round
    threads = trace.block[0] * trace.block[1]
    return rounds / (threads / WARP) / (trace.grid[0] * trace.grid[1])


def _lines(trace, row) -> float:
    """Lines of 128 bytes that this row's requests touch."""

    def touched(access) -> int:
        first = access.addresses[access.active]
        return len({int(at) // LINE for a in first for at in (a, a + access.width - 1)})

    return of_requests(trace, row, touched)


def of_requests(trace, row, number) -> float:
    """Of all of a row's requests: the mean `number` of those whose addresses were kept, times all of them."""
    kept = [number(access) for access in trace.accesses(row) if access.active.any()]
    return float(np.mean(kept or [0])) * row.global_requests
