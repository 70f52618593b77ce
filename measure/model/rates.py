"""What a machine does per clock or per second, each with its source. What no loop and no recording of a GPU says is
not here.

All rates are ceilings, so that a bound made of them lies below every measured time: where Nsight Compute's peak lies
above what a loop reached, the peak is taken, and the loop is named. An SM of sm_90 is the same on H100 and H200, so
H100 has H200's rates per clock; its memory, which nobody measured by a loop, is left out of its bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from kernels.shapes import H100_SMS
from measure import machine
from measure.provenance import load

SMS = H100_SMS  # an H200 has as many
BOOK, OTHER = "nvidia-h200", "nvidia-h100-80gb-hbm3"
HIGHEST = 1.98  # GHz: what a bound is computed at where no clock was read
LOOPS = {
    "float16": "f16",
    "bfloat16": "bf16",
    "tf32": "tf32",
    "float8_e4m3fn": "e4m3",
    "int8": "s8",
}


@dataclass(frozen=True)
class Rate:
    """value: units of work per clock and SM, or per second and GPU where `each` says so."""

    value: float
    each: str
    source: str

    def seconds(self, of_one_sm: float, of_all: float, ghz: float) -> float:
        """The least time for this work: of the busiest SM, or of the GPU."""
        return (
            of_all / self.value if self.each == "second" else of_one_sm / self.value / (ghz * 1e9)
        )


@cache
def rates(gpu: str, kind: str, inputs: str) -> Mapping[str, Rate]:
    """The rates that a kernel of this kind ("fma", "mma", "wgmma") and input format meets on a GPU."""
    loops = machine.rows_of(BOOK)
    per_clock = {name: row for (what, name), row in loops.items() if what == "per clock"}
    own = "" if gpu == BOOK else ", recorded on H200: the same SM of sm_90"
    ffma = per_clock["ffma"].value / 64
    found = {
        "issue slots": Rate(4, "clock", "four schedulers per SM, an instruction per clock each (CUDA Programming Guide, 16.8.1)"),
        "FMA pipe": Rate(ffma, "clock", f"loop ffma: {per_clock['ffma'].value} operations per clock and SM{own}"),
        "shared memory and L1": Rate(1, "clock", "128 bytes per clock: Nsight Compute's peak; the loop of loads reached "
                                     f"{loops['bytes per clock', 'shared memory'].value} bytes{own}"),
        "L2 to one SM": Rate(64, "clock", "64 bytes per clock: Nsight Compute's peak; the fastest loop of copies reached "
                             f"{max(copies().values())} bytes{own}"),
        # Added to wgmma's reads they would put wgmma_persistent at 256 x 256 x 65536 11% above its measured
        # time, so they are not.
        "TMA's writes": Rate(1, "clock", "128 bytes per clock, shared memory's width; no loop of TMA was recorded"),
    }  # fmt: skip
    if kind != "fma":
        loop = per_clock[f"{kind} {LOOPS[inputs]}"]
        found["tensor cores"] = Rate(loop.value, "clock", f"loop {loop.name}: operations per clock and SM{own}")  # fmt: skip
    if gpu == BOOK:
        source = "Nsight Compute's peak: look-ups over share and time, the same in 27 rungs"
        found["L2 look-ups"] = Rate(look_ups(), "second", source)
        read = loops["bandwidth", "device memory, read"]
        found["device memory"] = Rate(read.value * 1e9, "second", f"loop device memory, read: {read.value} GB/s")  # fmt: skip
    return found


@cache
def latencies() -> Mapping[str, float]:
    """Latencies in clocks, by the names of `results/machine-nvidia-h200.json`."""
    return {name: row.value for (kind, name), row in machine.rows_of(BOOK).items() if kind == "latency"}  # fmt: skip


@cache
def copies() -> Mapping[str, float]:
    """Bytes per clock that copies bring from L2 to an SM, by the names of `results/machine-nvidia-h200.json`."""
    return {name: row.value for (kind, name), row in machine.rows_of(BOOK).items() if kind == "copies"}  # fmt: skip


@cache
def launch() -> float:
    """Milliseconds from a launch to the next, where a block on each SM does nothing."""
    return machine.rows_of(BOOK)["launch", "a block of 256 threads per SM"].value / 1e3


@cache
def look_ups() -> float:
    """Look-ups of L2 per second at its peak: the largest that a rung's counters give."""
    return max(
        row["L2 tag look-ups"] / (row["L2 tags, %"] / 100) / (row["milliseconds"] / 1e3)
        for row in load("limits")["rows"]
    )
