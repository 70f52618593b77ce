"""Writes `results/<gpu>.json`: what `bench` measures, with its provenance."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernels.errors import UnsupportedGPU
from kernels.machine import clocks, gpu
from kernels.rungs import RUNGS, Rung, find

from .bench import bench
from .provenance import FOLDER, describe, store
from .timing import METHOD
from .tune import QUICK_LOOK, best, tune

SIZES = (1024, 2048, 4096, 8192)
TUNED_AT = 4096


def record(
    rungs: Iterable[str] | None = None, sizes: Sequence[int] = SIZES, file: str | Path | None = None
) -> Path:
    """Tune the ladder here where that has not been done, measure it and store it; rows of rungs or
    sizes not measured now are kept. Returns the file's path.

    The commit is `$GEMM_COMMIT`, else what git says. UnsupportedGPU without a GPU.
    """
    here = gpu()
    if here is None:
        raise UnsupportedGPU("recording needs an NVIDIA GPU and CuPy")
    path = Path(file) if file else FOLDER / f"{here.slug}.json"
    tune_missing(rungs)
    before = clocks()
    rows = bench(rungs, sizes, tuned=True)
    machine = {**describe(), "clocks_before": before, "clocks_after": clocks()}
    return store(path, METHOD, machine, rows=_merge(path, rows))


def tune_missing(rungs: Iterable[str] | None) -> None:
    """Tune every rung that declares a space and has no best setting yet on this GPU; all that was
    tried goes to `results/tune-<gpu>.json`.
    """
    tried = []
    for rung in map(find, rungs or RUNGS):
        if not rung.space or not rung.exists or rung.min_arch > gpu().arch or best(rung, TUNED_AT):
            continue
        tried += [_tried(rung, candidate) for candidate in tune(rung, TUNED_AT)]
    if tried:
        path = FOLDER / f"tune-{gpu().slug}.json"
        names = {row["rung"] for row in tried}
        kept = json.loads(path.read_text())["rows"] if path.exists() else []
        store(
            path,
            f"{METHOD}; {QUICK_LOOK['samples']} samples and a pause of {QUICK_LOOK['pause_s']} s, "
            "the best few again in full",
            indent=None,
            size=TUNED_AT,
            rows=tried + [row for row in kept if row["rung"] not in names],
        )


def _tried(rung: Rung, candidate) -> dict:
    report = candidate.build.reports[rung.entry] if candidate.build else None
    held = candidate.occupancy
    return {
        "rung": rung.name,
        "macros": {name: candidate.macros[name] for name in rung.space},
        "threads": candidate.threads,
        "registers": report.registers if report else None,
        "shared_bytes": candidate.shared_bytes,
        "blocks_per_sm": held.blocks if held else None,
        "occupancy": round(held.fraction, 4) if held else None,
        "ms": round(candidate.ms, 5) if candidate.ms else None,
        "tflops": round(candidate.tflops, 2) if candidate.tflops else None,
        "dropped": candidate.dropped,
    }


KEY = ("rung", "m", "n", "k", "inputs", "output")


def _merge(path: Path, rows: list[dict]) -> list[dict]:
    """New rows, and the stored ones of what was not measured again."""
    try:
        stored = json.loads(path.read_text())["rows"]
    except (OSError, ValueError, KeyError):
        return rows
    new = {tuple(row[k] for k in KEY) for row in rows}
    return rows + [row for row in stored if tuple(row[k] for k in KEY) not in new]
