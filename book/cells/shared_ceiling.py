"""What one mma of a tensor-core rung costs in memory, from the rung's own trace, and the ceiling that its loads set.

A multiprocessor passes one wavefront a clock. A rung whose `ldmatrix` take w wavefronts for each mma of
2 * 16 * 8 * 16 operations can therefore not do more than 4096 / w operations a clock and multiprocessor,
whatever else it does.
"""

from dataclasses import dataclass

import numpy as np

import kernels
import measure
from book.cells import memory
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
    """Prints, for each trace, what one mma needs."""
    print(f"{'for each mma':16}{'ldmatrix':>10}{'copies':>9}{'sectors read':>15}")
    for name, trace in traces.items():
        found = count(trace)
        print(f"{name:16}{found.loads:10.2f}{found.copies:9.2f}{found.sectors:15.2f}")


def show(*rungs: str, size: int = 4096) -> None:
    """Prints, for the settings that were recorded at this size, the ceiling of the loads beside the speed."""
    recording = measure.recorded()
    sms, clock = recording.machine["sms"], recording.machine["clock_mhz"]
    print(f"{recording.label}, {sms} SMs at {clock} MHz")
    print(f"{'':13}{'block':>8}{'warp':>7}{'ldmatrix':>10}{'ceiling':>9}{'measured':>10}{'':>6}")
    for name in rungs:
        row = recording.select(name, size)[0]
        found = count(_one_block(name, row["config"]))
        limit, speed, m = found.ceiling(sms, clock), row["tflops"], row["config"]
        tiles = f"{m['BM']}x{m['BN']}".rjust(8) + f"{m['WM']}x{m['WN']}".rjust(7)
        print(f"{name:13}{tiles}{found.loads:10.2f}{limit:9.0f}{speed:10.0f}{speed / limit:6.0%}")


def _one_block(rung: str, macros):
    """The trace of one block's product with 64 columns of A."""
    resolved = kernels.find(rung).resolve(macros)
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (resolved["BM"], 64)).astype(np.float16)
    B = rng.uniform(-1, 1, (64, resolved["BN"])).astype(np.float16)
    return gemm(rung, A, B, macros=macros, machine="emulator").trace
