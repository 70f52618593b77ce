"""Rungs that multiply on tensor cores, in the setting that was timed: what was built, and what one product costs.

A product is one `wmma.mma` (16 x 16 x 16) or one `mma.sync` (16 x 8 x 16). Its cost is counted by the emulator, on one
block and a short K: loads per product do not depend on how many there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import kernels
import measure
from book.cells import columns, memory, setting
from kernels.gemm import gemm

PRODUCTS = ("wmma.mma", "mma.sync")
CONSTANT = {  # tiles that a rung's file fixes
    "mma_atoms": {"BM": 16, "BN": 8, "BK": 16, "WM": 16, "WN": 8},
    "mma_sync": {"BK": 32, "WM": 16, "WN": 32},
    "mma_tiled": {"BK": 32},
}
DEEP = 128  # K of the runs that count, a multiple of every BK


@dataclass(frozen=True)
class Cost:
    """Per product: loads of fragments, and sectors asked of global memory."""

    loads: float
    sectors: float


def cost(rung: str, macros: Mapping[str, int]) -> Cost:
    """What one product of a rung costs with these macros."""
    rng = np.random.default_rng(11)
    resolved = kernels.find(rung).resolve(macros)
    A = rng.uniform(-1, 1, (resolved.get("BM", 16), DEEP)).astype(np.float16)
    B = rng.uniform(-1, 1, (DEEP, resolved.get("BN", 8))).astype(np.float16)
    trace = gemm(rung, A, B, macros=macros, machine="emulator").trace
    kind = next(name for name in PRODUCTS if trace.rows(name))
    products = sum(row.warps for row in trace.rows(kind))
    found = {name: row for name, row in memory.traffic(trace).items() if name != "store C"}
    fetched = sum(row.warps for op in ("wmma.load", "ldmatrix") for row in trace.rows(op))
    return Cost(fetched / products, sum(row.sectors for row in found.values()) / products)


def show_built(*rungs: str) -> None:
    """Shows what the compiler made of these rungs, each in the setting that was timed."""
    rows = []
    for name in rungs:
        macros = setting.used(name, show=False)
        one = setting.held(name, macros)
        rows.append(
            [
                name,
                _tile(name, macros, "BM", "BN", "BK"),
                _tile(name, macros, "WM", "WN"),
                one.threads,
                one.report.registers,
                f"{one.shared / 1024:.1f}",
                one.warps,
                one.resident.limited_by,
            ]
        )
    columns.show(
        {
            "sm_90": "compiled for GPUs of compute capability 9",
            "block": "",
            "warp tile": "",
            "threads": "threads per block",
            **dict.fromkeys(("registers", "shared KiB", "warps per SM", "limited by"), ""),
        },
        rows,
        caption=f"The settings that were timed at {setting.SIZE}; {measure.recorded().label}.",
    )


def _tile(rung: str, macros: Mapping[str, int], *names: str) -> str:
    """ "128x64" of BM and BN; what the file holds as constants is not in the macros."""
    known = {**CONSTANT.get(rung, {}), **kernels.find(rung).resolve(macros)}
    return "x".join(str(known[name]) for name in names if name in known)
