"""What one mma of a tensor-core rung costs in memory, from the rung's own trace, and the ceiling that its loads set.

A multiprocessor passes one wavefront a clock. A rung whose `ldmatrix` take w wavefronts for each mma of
2 * 16 * 8 * 16 operations can therefore not do more than 4096 / w operations per clock and multiprocessor,
whatever else it does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import kernels
import measure
from book.cells import columns, limits, memory
from kernels.gemm import gemm

MMA_FLOP = 2 * 16 * 8 * 16


@dataclass(frozen=True)
class PerMma:
    """For each mma: wavefronts of `ldmatrix`, wavefronts of copies into shared memory, sectors that they read."""

    loads: float
    copies: float
    sectors: float

    def ceiling(self, sms: int, clock_mhz: float) -> float:
        """TFLOP/s that one wavefront of loads a clock and multiprocessor allows."""
        return MMA_FLOP / self.loads * sms * clock_mhz * 1e-6


def count(trace) -> PerMma:
    """Of one trace. The stores of C are left out: a long K makes them few."""
    mma = sum(row.warps for row in trace.rows("mma"))
    found = memory.traffic(trace)
    loads = sum(row.wavefronts for name, row in found.items() if "ldmatrix" in name)
    every = sum(row.wavefronts for row in found.values())
    sectors = sum(row.sectors for name, row in found.items() if "store C" not in name)
    return PerMma(loads / mma, (every - loads) / mma, sectors / mma)


def show_counts(**traces) -> None:
    """Shows, for each trace, what one mma needs."""
    rows = []
    for name, trace in traces.items():
        found = count(trace)
        rows.append([name, f"{found.loads:.2f}", f"{found.copies:.2f}", f"{found.sectors:.2f}"])
    columns.show(
        {
            "per mma": "counts of a whole launch, divided by the number of `mma` instructions",
            "ldmatrix": "wavefronts of `ldmatrix` per `mma`",
            "copies": "wavefronts of copies into shared memory per `mma`",
            "sectors read": "sectors of global memory that the copies read, per `mma`",
        },
        rows,
    )


def show(*rungs: str, size: int = 4096) -> None:
    """Shows, for the settings that were recorded at this size, the ceiling of the loads beside the speed.

    The ceiling is taken at the clock at which the kernel ran, which is below the highest: see `clock`.
    """
    recording = measure.recorded()
    sms = recording.machine["sms"]
    rows = []
    for name in rungs:
        row = recording.select(name, size)[0]
        found = count(_one_block(name, row["config"]))
        ghz = clock(name, row)
        limit, speed, m = found.ceiling(sms, 1000 * ghz), row["tflops"], row["config"]
        tiles = [f"{m['BM']}x{m['BN']}", f"{m['WM']}x{m['WN']}"]
        rates = [f"{found.loads:.2f}", f"{ghz:.2f}", f"{limit:.0f}", f"{speed:.0f}"]
        rates.append(f"{speed / limit:.0%}")
        rows.append([name, *tiles, *rates])
    columns.show(
        {
            "": "",
            "block tile": "",
            "warp tile": "",
            "ldmatrix": "wavefronts of `ldmatrix` per `mma`",
            "GHz": "",
            "ceiling": f"TFLOP/s if each of {sms} SMs passed one such wavefront in every clock, at the clock in this row",
            "measured": "TFLOP/s",
            "share": "measured speed as a share of the ceiling",
        },
        rows,
        caption=columns.sentence(recording.label),
    )


def clock(rung: str, row: Mapping | None = None, size: int = 4096) -> float:
    """GHz of the SMs while the kernel ran: as seen in its burst, else while Nsight Compute watched it."""
    row = row or measure.recorded().select(rung, size)[0]
    return row.get("clock_ghz") or limits.clock_ghz(rung)


def _one_block(rung: str, macros):
    """The trace of one block's product with 64 columns of A."""
    resolved = kernels.find(rung).resolve(macros)
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (resolved["BM"], 64)).astype(np.float16)
    B = rng.uniform(-1, 1, (64, resolved["BN"])).astype(np.float16)
    return gemm(rung, A, B, macros=macros, machine="emulator").trace
