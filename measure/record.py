"""Writes `results/<gpu>.json`: what `bench` measures, with its provenance."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernels.errors import UnsupportedGPU
from kernels.machine import clocks, gpu
from kernels.nvrtc import compiler
from kernels.rungs import RUNGS, Rung, find

from .bench import bench
from .results import FOLDER
from .timing import METHOD
from .tune import best, tune

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
    recording = {
        "machine": {**describe(), "clocks_before": before, "clocks_after": clocks()},
        "recorded": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "method": METHOD,
        "rows": _merge(path, rows),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(recording, indent=1) + "\n")
    return path


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
        stored = {
            "machine": describe(),
            "recorded": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "commit": commit(),
            "method": f"{METHOD}; 10 samples and a pause of 0.05 s, the best few again in full",
            "size": TUNED_AT,
            "rows": tried + [row for row in kept if row["rung"] not in names],
        }
        path.write_text(json.dumps(stored) + "\n")


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


def describe() -> dict:
    """This machine, as a results file names it."""
    import cupy

    here, nvrtc = gpu(), compiler()
    return {
        "gpu": here.name,
        "arch": here.arch,
        "sms": here.sms,
        "clock_mhz": here.clock_mhz,
        "l2_bytes": here.l2_bytes,
        "driver": clocks().get("driver_version", here.driver),
        "cuda": here.runtime,
        "nvrtc": f"{nvrtc.major}.{nvrtc.minor}",
        "cublas": _cublas_version(),
        "cupy": cupy.__version__,
        "python": platform.python_version(),
    }


def commit() -> str:
    """`$GEMM_COMMIT`, else git's, with "+" when files differ from it; "unknown" outside a
    repository.
    """
    if given := os.environ.get("GEMM_COMMIT"):
        return given
    try:
        name = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "kernels", "measure")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + ("+" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=FOLDER.parent, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _cublas_version() -> int:
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    return cublas.getVersion(device.get_cublas_handle())


KEY = ("rung", "m", "n", "k", "inputs", "output")


def _merge(path: Path, rows: list[dict]) -> list[dict]:
    """New rows, and the stored ones of what was not measured again."""
    try:
        stored = json.loads(path.read_text())["rows"]
    except (OSError, ValueError, KeyError):
        return rows
    new = {tuple(row[k] for k in KEY) for row in rows}
    return rows + [row for row in stored if tuple(row[k] for k in KEY) not in new]
