"""Rungs that multiply on tensor cores, in the setting that was timed: what was built, and what one product costs.

A product is one `wmma.mma` (16 x 16 x 16) or one `mma.sync` (16 x 8 x 16). Its cost in shared memory is counted by the
emulator, on one block and a short K: copies and loads per product do not depend on how many there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import kernels
import measure
from book.cells import columns, limits, memory, setting
from kernels.gemm import gemm
from kernels.occupancy import occupancy

OPERATIONS = {"wmma.mma": 2 * 16 * 16 * 16, "mma.sync": 2 * 16 * 8 * 16}
CONSTANT = {  # tiles that a rung's file fixes
    "mma_atoms": {"BM": 16, "BN": 8, "BK": 16, "WM": 16, "WN": 8},
    "mma_sync": {"BK": 32, "WM": 16, "WN": 32},
    "mma_tiled": {"BK": 32},
}
DEEP = 128  # K of the runs that count, a multiple of every BK


@dataclass(frozen=True)
class Cost:
    """Per product: loads of fragments, sectors asked of global memory, wavefronts of shared memory.

    least: the wavefronts if no load of a fragment had a bank conflict; those of copies stay as they are.
    operations: of one product.
    """

    loads: float
    sectors: float
    wavefronts: float
    least: float
    operations: int

    def limit(self, clocks: float, wavefronts: float | None = None) -> float:
        """TFLOP/s if every wavefront takes one of `clocks` (all SMs' clocks per second)."""
        return self.operations / (wavefronts or self.wavefronts) * clocks / 1e12


def cost(rung: str, macros: Mapping[str, int]) -> Cost:
    """What one product of a rung costs with these macros."""
    rng = np.random.default_rng(11)
    resolved = kernels.find(rung).resolve(macros)
    A = rng.uniform(-1, 1, (resolved.get("BM", 16), DEEP)).astype(np.float16)
    B = rng.uniform(-1, 1, (DEEP, resolved.get("BN", 8))).astype(np.float16)
    trace = gemm(rung, A, B, macros=macros, machine="emulator").trace
    kind = next(name for name in OPERATIONS if trace.rows(name))
    products = sum(row.warps for row in trace.rows(kind))
    found = {name: row for name, row in memory.traffic(trace).items() if name != "store C"}
    fetched = sum(row.warps for op in ("wmma.load", "ldmatrix") for row in trace.rows(op))
    wavefronts = sum(row.wavefronts for row in found.values())
    spared = sum(row.wavefronts - row.ideal for name, row in found.items() if "ldmatrix" in name)
    return Cost(
        fetched / products,
        sum(row.sectors for row in found.values()) / products,
        wavefronts / products,
        (wavefronts - spared) / products,
        OPERATIONS[kind],
    )


def show_costs(settings: Mapping[str, tuple[str, Mapping[str, int]]], title: str = "") -> None:
    """Shows what one product costs: {name: (rung, macros)}."""
    rows = []
    for name, (rung, macros) in settings.items():
        found = cost(rung, macros)
        each = (f"{found.loads:.2f}", f"{found.sectors:.1f}", f"{found.wavefronts:.2f}")
        rows.append([name, _tile(rung, macros, "BM", "BN"), _tile(rung, macros, "WM", "WN"), *each])
    columns.show(
        {
            "per product": "counts of the emulator, divided by the number of products of two fragments",
            "block tile": "",
            "warp tile": "",
            "loads": "instructions that load fragments (`wmma.load` or `ldmatrix`), per product",
            "sectors": "32-byte pieces of global memory asked for, per product",
            "wavefronts": "passes through shared memory per product, of copies and loads together",
        },
        rows,
        title=title,
    )


def show_built(*rungs: str, arch: int = 90, size: int = 4096) -> None:
    """Shows what the compiler made of these rungs, each in the setting that was timed."""
    rows = []
    for name in rungs:
        found, macros = kernels.find(name), setting.used(name, size, show=False)
        built = kernels.build(name, macros, arch=arch)
        _, block, dynamic = found.geometry(macros, size, size, size)
        report = built.reports[found.entry]
        threads, shared = int(np.prod(block)), report.shared_bytes + dynamic
        held = occupancy(arch, threads, report.registers, shared)
        rows.append(
            [
                name,
                _tile(name, macros, "BM", "BN", "BK"),
                _tile(name, macros, "WM", "WN"),
                threads,
                report.registers,
                f"{shared / 1024:.1f}",
                f"{held.warps} of {held.max_warps}",
                held.limited_by,
            ]
        )
    columns.show(
        {
            f"sm_{arch}": f"compiled for GPUs of compute capability {arch / 10:g}",
            "block": "",
            "warp tile": "",
            "threads": "threads per block",
            **dict.fromkeys(("registers", "shared KiB", "warps per SM", "limited by"), ""),
        },
        rows,
        caption=f"The settings that were timed at {size}; {measure.recorded().label}.",
    )


def show_limits(*rungs: str, size: int = 4096, conflicts: bool = False) -> None:
    """Shows the limit that shared memory sets to each rung as it was timed, beside its speed.

    conflicts: also the limit if no load of a fragment had a bank conflict.
    """
    recording = measure.recorded()
    rows = []
    for name in rungs:
        row = recording.select(name, size)[0]
        found = cost(name, setting.used(name, size, show=False))
        ghz = _clock(name, row, recording)
        clocks = recording.machine["sms"] * ghz * 1e9
        limit = found.limit(clocks)
        without = [f"{found.limit(clocks, found.least):.0f}"] if conflicts else []
        rows.append(
            [
                name,
                f"{found.wavefronts:.2f}",
                f"{ghz:.2f}",
                f"{limit:.0f}",
                f"{row['tflops']:.0f}",
                f"{row['tflops'] / limit:.0%}",
                *without,
            ]
        )
    sms = recording.machine["sms"]
    no_conflict = (
        "the limit if no load of a fragment had a bank conflict, and copies cost what they cost now"
    )
    columns.show(
        {
            "": "",
            "wavefronts": "passes through shared memory per product of two fragments, of copies and loads together",
            "GHz": "clock of the SMs while the rung ran",
            "limit": f"TFLOP/s if each of the {sms} SMs passes one wavefront per clock, and nothing else takes time",
            "measured": "TFLOP/s",
            "share": "measured speed as a share of the limit",
            **({"without conflicts": no_conflict} if conflicts else {}),
        },
        rows,
        caption=f"At {size} x {size} x {size}, in the settings that were timed; {recording.label}.",
    )


def _clock(rung: str, row: Mapping, recording) -> float:
    """GHz while the rung was timed, or watched by Nsight Compute, or else the highest that the GPU has."""
    if row.get("clock_ghz"):
        return row["clock_ghz"]
    try:
        return limits.clock_ghz(rung)
    except (KeyError, FileNotFoundError):
        return recording.machine["clock_mhz"] / 1e3


def _tile(rung: str, macros: Mapping[str, int], *names: str) -> str:
    """ "128x64" of BM and BN; what the file holds as constants is not in the macros."""
    known = {**CONSTANT.get(rung, {}), **kernels.find(rung).resolve(macros)}
    return "x".join(str(known[name]) for name in names if name in known)
