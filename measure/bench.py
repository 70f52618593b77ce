"""Times rungs against cuBLAS on this machine's GPU; without one, shows recorded rows and says so."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernels.errors import UnsupportedGPU
from kernels.machine import gpu, live
from kernels.rungs import RUNGS, Rung, Types, find
from kernels.table import table

from .progress import progress
from .results import recorded
from .timing import SAMPLES, time_rung

SIZES = (4096,)
CUBLAS_TYPES = (
    Types("float32"),
    Types("tf32"),
    Types("float16"),
    Types("float16", output="float16"),
)


def bench(
    rungs: Iterable[str] | None = None,
    sizes: Sequence[int | tuple[int, int, int]] = SIZES,
    samples: int = SAMPLES,
    tuned: bool = False,
    show: bool = True,
    file: str | Path | None = None,
) -> list[dict]:
    """One row per rung, setting and size, as in `results/`; printed as a table, and written to
    `file` as JSON.

    A size is n (for n x n x n) or (M, N, K). `tuned` uses the best settings that `measure.tune`
    found on this GPU. Without a GPU to measure on (`kernels.machine.live`) the rows are recorded
    ones, and the table says where and when.
    """
    names = [find(r).name for r in rungs or RUNGS]
    if wrong := [size for size in sizes if min(_triple(size)) < 1]:
        raise ValueError(f"size {wrong[0]}: at least 1")
    if samples < 1:
        raise ValueError(f"samples {samples}: a median is of at least 1")
    if file and (not Path(file).resolve().parent.is_dir() or Path(file).is_dir()):
        raise ValueError(f"no file can be written at {file}")  # now, not after the measurements
    if live() is None:
        rows, label = _recorded_rows(names, sizes)
    else:
        rows, label = _live_rows(names, sizes, samples, tuned), f"measured on {gpu().name}"
    if show:
        print(label)
        print(format_rows(rows))
    if file:
        Path(file).write_text(json.dumps({"label": label, "rows": rows}, indent=1) + "\n")
    return rows


def format_rows(rows: Iterable[dict]) -> str:
    """The table of `bench`."""
    header = [
        "rung",
        "size",
        "inputs",
        "output",
        "ms",
        "spread",
        "TFLOP/s",
        "cuBLAS ms",
        "of cuBLAS",
        "rel. error",
    ]
    return table(header, [_cells(row) for row in rows])


def _cells(row: dict) -> list[str]:
    size = (row["m"], row["n"], row["k"])
    square = len(set(size)) == 1
    spread = (row["ms_max"] - row["ms_min"]) / row["ms_median"]
    return [
        row["rung"],
        str(size[0]) if square else "x".join(map(str, size)),
        row["inputs"],
        row["output"],
        f"{row['ms_median']:.4g}",
        f"{spread:.1%}",
        f"{row['tflops']:.4g}",
        "" if row["cublas_ms"] is None else f"{row['cublas_ms']:.4g}",
        "" if row["ratio_to_cublas"] is None else f"{row['ratio_to_cublas']:.1%}",
        "" if row["relative_error"] is None else f"{row['relative_error']:.1e}",
    ]


def _recorded_rows(names: list[str], sizes) -> tuple[list[dict], str]:
    why = "no GPU here" if gpu() is None else "not measured now"
    try:
        recording = recorded()
    except FileNotFoundError as error:
        return [], f"{why}, and {error}"
    rows = []
    for size in sizes:
        m, n, k = _triple(size)
        rows += [dict(r) for name in names for r in recording.select(name, m=m, n=n, k=k)]
    if not rows:
        there = sorted({r["m"] for r in recording.rows if r["rung"] in names})
        raise ValueError(
            f"{why}, and no times of {', '.join(names)} were recorded at this size; there are those at "
            f"{', '.join(map(str, there)) or 'none'}"
        )
    return rows, f"{why}: {recording.label}"


def _live_rows(names: list[str], sizes, samples: int, tuned: bool) -> list[dict]:
    work = [
        (find(name), _triple(size), setting)
        for size in sizes
        for name in names
        for setting in (CUBLAS_TYPES if name == "cublas" else _formats(find(name)))
    ]
    rows = []
    for done, (rung, size, setting) in enumerate(work):
        progress(done, len(work), f"{rung.name} {size[0]}")
        if not rung.exists:
            print(f"{rung.name}: skipped, kernels/{rung.file} is not there", file=sys.stderr)
            continue
        try:
            if isinstance(setting, Types):
                rows.append(time_rung(rung, *size, samples=samples, types=setting))
            else:
                macros = {**_tuned(rung, setting, size), **setting} if tuned else setting
                rows.append(time_rung(rung, *size, macros, samples))
        except (UnsupportedGPU, TimeoutError) as error:
            print(f"{rung.name} {size}: skipped, {error}", file=sys.stderr)
        _release()
    progress(len(work), len(work))
    return rows


def _formats(rung: Rung) -> list[dict]:
    """The rung's default and the variants that change its types; other variants are for `check`."""
    return [s for s in rung.configurations() if not s or rung.types(s) != rung.types()]


def _tuned(rung, setting, size) -> dict:
    from .tune import best

    return best(rung, size, rung.types(setting)) or {}


def _triple(size) -> tuple[int, int, int]:
    return (size, size, size) if isinstance(size, int) else tuple(size)


def _release() -> None:
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
