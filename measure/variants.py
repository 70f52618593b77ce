"""Settings that a page argues about, beside the one that is recorded: each pair in one run, in turn.

`python -m measure variants`, on a GPU, stores `results/variants-<gpu>.json`. With PyTorch there, the products of 8-bit
numbers stand beside cuBLASLt's, which gemmEx, and so the ladder's own rows, cannot give.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernels.errors import UnsupportedGPU
from kernels.gemm import plan
from kernels.machine import gpu
from kernels.rung import Types
from kernels.settings import configuration

from . import clock
from .provenance import store
from .timing import METHOD, Launch, Timing, matrices, measure, rung_launches

BF16, HALF = {"BF16_INPUT": 1, "BF16_OUTPUT": 1}, {"HALF_OUTPUT": 1}


@dataclass(frozen=True)
class Comparison:
    """A rung at one size, and the values of its macros that are compared."""

    rung: str
    sizes: tuple[int, ...]
    changes: tuple[Mapping[str, int], ...]
    formats: Mapping[str, int]


COMPARED = (
    Comparison("async_copy", (4096,), ({"PAD": 4}, {"PAD": 0}), {}),
    *(
        Comparison("wgmma_persistent", (4096, 8192), ({"HELD": 0}, {"HELD": 4}), formats)
        for formats in ({}, HALF, BF16)
    ),
    Comparison("wgmma_persistent", (8192,), tuple({"GROUP": n} for n in (1, 4, 8, 16, 32)), BF16),
    Comparison("wgmma_cluster", (4096, 8192), ({"CLUSTER_M": 1}, {"CLUSTER_M": 2}), BF16),
    Comparison("wgmma_fp8", (4096, 8192), ({"CLUSTER": 1}, {"CLUSTER": 2}), {}),
)
LIBRARY = {True: "cuBLASLt, fast accumulation", False: "cuBLASLt, precise"}


def record() -> Path:
    """Measure and store, after every comparison. UnsupportedGPU without a GPU."""
    if gpu() is None:
        raise UnsupportedGPU("times are measured on a GPU")
    rows: list[dict] = []
    path = None
    for comparison in COMPARED:
        for n in comparison.sizes:
            rows += _rows(comparison, n)
            path = store(f"variants-{gpu().slug}", METHOD, rows=rows)
    return path


def _rows(comparison: Comparison, n: int) -> list[dict]:
    """The compared settings, each over the macros that are recorded at this size; the library for 8-bit numbers."""
    chosen = configuration(comparison.rung, n, macros=comparison.formats).macros
    plans = {
        " ".join(f"{k}={v}" for k, v in change.items()): plan(
            comparison.rung, n, n, n, {**chosen, **change}
        )
        for change in comparison.changes
    }
    first = next(iter(plans.values()))
    sets = matrices(first.types, first.shapes())
    competitors = {name: rung_launches(how, sets) for name, how in plans.items()}
    if first.types.inputs == "float8_e4m3fn" and importlib.util.find_spec("torch"):
        competitors |= {name: _library(sets, first.types, fast) for fast, name in LIBRARY.items()}
    timings = measure(competitors)
    fastest = min(timing.median for timing in timings.values())
    return [
        {
            "rung": comparison.rung,
            "m": n,
            "n": n,
            "k": n,
            "inputs": first.types.inputs,
            "output": first.types.output,
            "name": name,
            "config": dict(plans[name].macros) if name in plans else {},
            **_speed(timing, n, fastest),
            "clock_ghz": clock.seen(competitors[name], timing.median),
        }
        for name, timing in timings.items()
    ]


def _speed(timing: Timing, n: int, fastest: float) -> dict:
    return {
        "ms": round(timing.median, 6),
        "fastest_ms": round(min(timing.samples), 6),
        "slowest_ms": round(max(timing.samples), 6),
        "tflops": round(timing.tflops(n, n, n), 4),
        "of_fastest": round(fastest / timing.median, 4),
    }


def _library(sets: list[tuple], types: Types, fast: bool) -> list[Launch]:
    """cuBLASLt's product of these matrices through `torch._scaled_mm`: A K-major, B K-major."""
    import torch

    one = torch.ones((), device="cuda")
    output = getattr(torch, types.output)

    def launch(A, B, C) -> Launch:
        a, b = (torch.from_dlpack(x).view(torch.float8_e4m3fn) for x in (A, B))
        c = torch.from_dlpack(C).view(output)
        return lambda: torch._scaled_mm(
            a, b.t(), scale_a=one, scale_b=one, out_dtype=output, use_fast_accum=fast, out=c
        )

    return [launch(*one_set) for one_set in sets]
