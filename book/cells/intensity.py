"""Operations a byte of each rung, at three places: asked by the SMs, brought from L2, brought from memory.

What L2 and memory gave was counted by Nsight Compute, together with the time (`measure.limits`). What is
asked comes from a trace of a small product with the same setting: the sectors of loads grow with M N K,
those of stores with M N.
"""

from functools import cache
from math import ceil

import figures
import kernels
from book.cells import limits
from kernels.check import random_inputs
from kernels.gemm import gemm

SIZE = 4096
SECTOR = 32
PLACES = {
    "asked by the SMs": None,
    "brought from L2": "bytes from L2",
    "brought from memory": "bytes of DRAM",
}


def setting(rung: str) -> dict[str, int]:
    """All macros of the counted run."""
    return kernels.find(rung).resolve(limits.row(rung)["config"], 90)


def tflops(rung: str) -> float:
    return 2e-9 * SIZE**3 / limits.row(rung)["milliseconds"]


@cache
def asked(rung: str) -> float:
    """Operations a byte that the SMs ask of global memory in a product of 4096 x 4096 x 4096, padded to whole tiles."""
    found, macros = kernels.find(rung), setting(rung)
    m, n = (max(128, macros.get(side, 1)) for side in ("BM", "BN"))
    k = max(64, macros.get("BK", 1))
    A, B, _ = random_inputs(found.types(macros), m, n, k)
    loads = stores = 0
    for one in gemm(found, A, B, macros=macros, machine="emulator").trace.instructions:
        if one.opcode.startswith(("st.", "wmma.store")):
            stores += one.global_sectors
        else:
            loads += one.global_sectors
    tiles, steps = ceil(SIZE / m) * ceil(SIZE / n), ceil(SIZE / k)
    return 2 * SIZE**3 / (SECTOR * tiles * (loads * steps + stores))


def moved(rung: str, place: str) -> float:
    """Operations a byte at one of `PLACES`."""
    counter = PLACES[place]
    return 2 * SIZE**3 / limits.row(rung)[counter] if counter else asked(rung)


def roofline(place: str, rungs: tuple[str, ...]):
    """The rungs' recorded speed over their operations per byte at one of `PLACES`."""
    stored = limits.stored()
    peak = kernels.peak(stored["machine"]["gpu"])
    points = {rung: (moved(rung, place), tflops(rung)) for rung in rungs}
    above = [r for r, (x, y) in points.items() if y > x * peak.bandwidth / 1e3]
    title = (
        f"Bytes {place}: {len(above)} of {len(points)} rungs would be above the roof of memory"
        if above
        else f"Bytes {place}: every rung is under its roof"
    )
    return figures.roofline(
        points,
        bandwidth=peak.bandwidth / 1e3,
        peaks={"FP32": peak.fp32, "TF32": peak.tf32, "FP16": peak.fp16},
        kinds={rung: kernels.find(rung).inputs for rung in rungs},
        machine=stored["machine"],
        recorded=stored["recorded"][:10],
        title=title,
    )
