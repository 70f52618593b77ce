"""Times rungs against cuBLAS on this machine's GPU; without one, shows recorded rows and says so."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernels.errors import UnsupportedGPU
from kernels.gpus import gpu, live
from kernels.rung import Rung
from kernels.rungs import RUNGS, find
from kernels.table import table

from .progress import aside, progress
from .results import recorded
from .row import choices, extents, release, time_rung
from .timing import SAMPLES

SIZES = (4096,)
# Columns of a row that give its time with the copies that its launcher makes.
COPIES = {
    "ms_with_padding": "with zero-padding to whole tiles",
    "ms_with_transpose": "with the transposed copy that it reads",
}


def bench(
    rungs: Iterable[str] | None = None,
    sizes: Sequence[int | tuple[int, int, int]] = SIZES,
    samples: int = SAMPLES,
    defaults: bool = False,
    show: bool = True,
    file: str | Path | None = None,
    patience_s: float = math.inf,
    left_out: dict[str, str] | None = None,
) -> list[dict]:
    """One row per rung, setting and size, as in `results/`; printed as a table, and written to
    `file` as JSON.

    A size is n (for n x n x n) or (M, N, K). Every rung runs at the configuration of
    `kernels.settings` for its size, or at its row's with `defaults`; the notes below the table say
    which. Without a GPU to measure on (`kernels.gpus.live`) the rows are recorded ones, and the
    table says where and when. A rung that takes longer than `patience_s` is timed by fewer samples.
    What cannot be timed here is named on stderr or, where `left_out` is given, put into it: {rung: why}.
    """
    names = [find(r).name for r in rungs or RUNGS]
    if wrong := [size for size in sizes if min(extents(size)) < 1]:
        raise ValueError(f"size {wrong[0]}: at least 1")
    if samples < 1:
        raise ValueError(f"samples {samples}: a median is of at least 1")
    if file and (not Path(file).resolve().parent.is_dir() or Path(file).is_dir()):
        raise ValueError(f"no file can be written at {file}")  # now, not after the measurements
    if live() is None:
        rows, label = _recorded_rows(names, sizes)
    else:
        rows = _live_rows(names, sizes, samples, defaults, patience_s, left_out)
        label = f"measured on {gpu().name}"
    if show:
        print(label)
        print(format_rows(rows))
        print(notes(rows))
    if file:
        Path(file).write_text(
            json.dumps({"label": label, "rows": rows}, indent=1) + "\n", encoding="utf-8"
        )
    return rows


def format_rows(rows: Iterable[dict]) -> str:
    header = [
        "rung",
        "size",
        "inputs",
        "output",
        "ms",
        "spread",
        "TFLOP/s",
        "GHz",
        "2 s TFLOP/s",
        "cuBLAS ms",
        "of cuBLAS",
        "best layout",
        "rel. error",
    ]
    return table(header, [_cells(row) for row in rows])


def notes(rows: Iterable[dict]) -> str:
    """The configuration of each row, and what is not in its ms."""
    lines = []
    for row in rows:
        size = "x".join(str(row[name]) for name in "mnk")
        config = " ".join(f"{name}={value}" for name, value in row["config"].items())
        more = [config] if config else []
        more += [f"from {row['config_source']}"] if row.get("config_source") else []
        for column, words in COPIES.items():
            if row.get(column):
                more.append(f"{row[column]:.4g} ms {words}")
        if row.get("cublas_best_layout"):
            more.append(
                f"cuBLAS takes {row['cublas_best_ms']:.4g} ms with {row['cublas_best_layout']}"
            )
        lines.append(f"{row['rung']} {row['inputs']}->{row['output']} {size}: {'; '.join(more)}")
    return "\n".join(lines)


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
        _said(row.get("clock_ghz"), ".2f"),
        _said(row.get("sustained_tflops"), ".4g"),
        _said(row["cublas_ms"], ".4g"),
        _said(row["ratio_to_cublas"], ".1%"),
        _said(row.get("cublas_best_ms"), ".4g"),
        "" if row["relative_error"] is None else f"{row['relative_error']:.1e}",
    ]


def _said(value: float | None, how: str) -> str:
    """A number as a cell; an empty one where nobody measured it."""
    return "" if value is None else format(value, how)


def _recorded_rows(names: list[str], sizes) -> tuple[list[dict], str]:
    why = "no GPU here" if gpu() is None else "not measured now"
    try:
        recording = recorded()
    except FileNotFoundError as error:
        return [], f"{why}, and {error}"
    rows = []
    for size in sizes:
        m, n, k = extents(size)
        rows += [dict(r) for name in names for r in recording.select(name, m=m, n=n, k=k)]
    if not rows:
        there = sorted({r["m"] for r in recording.rows if r["rung"] in names})
        raise ValueError(
            f"{why}, and no times of {', '.join(names)} were recorded at this size; there are those at "
            f"{', '.join(map(str, there)) or 'none'}"
        )
    return rows, f"{why}: {recording.label}"


def _live_rows(
    names: list[str],
    sizes,
    samples: int,
    defaults: bool,
    patience_s: float,
    left_out: dict[str, str] | None,
) -> list[dict]:
    def skipped(rung: Rung, size: tuple, why: str) -> None:
        if left_out is None:
            aside(f"{rung.name} {size}: skipped, {why}")
        else:
            left_out[rung.name] = why

    work = [
        (find(name), extents(size), setting)
        for size in sizes
        for name in names
        for setting in choices(name)
    ]
    rows, library = [], {}
    for done, (rung, size, setting) in enumerate(work):
        progress(done, len(work), f"{rung.name} {size[0]}")
        try:
            how = {"library": library, "defaults": defaults, "patience_s": patience_s}
            rows.append(time_rung(rung, *size, setting, samples, **how))
        except (UnsupportedGPU, TimeoutError) as error:
            skipped(rung, size, str(error))
        release()
    progress(len(work), len(work))
    return rows
