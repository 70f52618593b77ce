"""Sets what the emulator counts beside what Nsight Compute counts on the GPU, for the same kernel
and sizes.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernels.check import random_inputs
from kernels.errors import UnsupportedGPU
from kernels.gemm import gemm, plan
from kernels.gpus import gpu, live
from kernels.rung import Rung
from kernels.rungs import RUNGS, find
from kernels.settings import BOOK_ARCH, configuration
from kernels.table import table

from . import ncu
from .merged_loads import merged_loads, stores_are_as_written
from .provenance import FOLDER, label, load, rows_in, store

SIZE = (256, 256, 256)
TIMED_AT = 4096  # at whose configuration a rung is counted
WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared"
GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"


@dataclass(frozen=True)
class Counter:
    """One quantity: the Nsight Compute metrics that add up to it, and the PTX opcodes and trace
    column that do.

    The metrics are those counted per instruction; `l1tex__data_pipe_lsu_wavefronts_mem_shared` adds
    arbitration.
    """

    name: str
    metrics: tuple[str, ...]
    column: str
    opcodes: str


SHARED_LOAD = r"ld\.(volatile\.)?shared|ldmatrix|wmma\.load\..*\.shared"
SHARED_STORE = r"st\.(volatile\.)?shared|stmatrix|wmma\.store\..*\.shared"
GLOBAL_LOAD = r"ld\.global|wmma\.load\.(?!.*\.shared)"
GLOBAL_STORE = r"st\.global|wmma\.store\.(?!.*\.shared)"
ASYNC = r"cp\.async\.c[ag]"

COUNTERS = (
    Counter("shared wavefronts, loads", (f"{WAVEFRONTS}_op_ld.sum", f"{WAVEFRONTS}_op_ldsm.sum"),
             "shared_wavefronts", SHARED_LOAD),
    Counter("shared wavefronts, stores", (f"{WAVEFRONTS}_op_st.sum",), "shared_wavefronts", SHARED_STORE),
    Counter("shared wavefronts, cp.async", (f"{WAVEFRONTS}_op_ldgsts.sum",), "shared_wavefronts", ASYNC),
    Counter("shared wavefronts, all", tuple(f"{WAVEFRONTS}_op_{op}.sum" for op in ("ld", "ldsm", "st", "ldgsts")),
             "shared_wavefronts", r"."),
    Counter("global requests, loads", (GLOBAL.format("requests", "ld"),), "global_requests", f"{GLOBAL_LOAD}|{ASYNC}"),
    Counter("global sectors, loads", (GLOBAL.format("sectors", "ld"),), "global_sectors", GLOBAL_LOAD),
    Counter("global requests, stores", (GLOBAL.format("requests", "st"),), "global_requests", GLOBAL_STORE),
    Counter("global sectors, stores", (GLOBAL.format("sectors", "st"),), "global_sectors", GLOBAL_STORE),
    Counter("global requests, cp.async", ("smsp__inst_executed_op_ldgsts.sum",), "warps", ASYNC),
    Counter(
        "global sectors, cp.async",
        ("sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
         "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum"),
        "global_sectors", ASYNC,
    ),
)  # fmt: skip


def compare(
    rungs: Iterable[str],
    size: tuple[int, int, int] = SIZE,
    macros: Mapping[str, int] | None = None,
    store: bool = False,
    show: bool = True,
) -> list[dict]:
    """One row per rung and counter: what the emulator and Nsight Compute count for one launch.

    Without a GPU or `ncu`, the emulator's counts stand beside recorded ones, labelled. `store`
    writes `results/compare-<gpu>.json`.
    """  # fmt: skip
    counting = live() is not None and ncu.available()
    said, stored = ("", {}) if counting else _stored()
    rows = []
    found = [find(name) for name in rungs]
    if strangers := [rung.name for rung in found if rung.path is None]:
        raise ValueError(
            f"{', '.join(strangers)}: not a CUDA kernel of the ladder, nothing to count"
        )
    for rung in found:
        values, measured = _setting(rung, size, macros, counting, stored)
        emulated = count_on_emulator(rung, size, values)
        if counting:
            measured = count_with_ncu(rung, size, values)
        rows += [
            {
                "rung": rung.name,
                "size": list(size),
                "config": values,
                "counter": counter.name,
                "emulator": emulated[counter.name],
                "machine": emulated.machine.get(counter.name),
                "gpu": measured.get(counter.name),
            }
            for counter in COUNTERS
            if _said(counter, emulated, measured)
        ]
    if counting:
        said = f"measured on {gpu().name} with ncu"
    if show:
        print(said)
        print(format_rows(rows))
    if store:
        _write(rows)
    return rows


def _setting(rung: Rung, size, macros, counting: bool, stored: Mapping) -> tuple[dict, dict]:
    """The macros to count at, and the GPU's stored counts at them: what is asked for; else what was
    counted at on the GPU; else what is timed at `TIMED_AT`.
    """
    arch = gpu().arch if gpu() else BOOK_ARCH
    there = stored.get((rung.name, *size))
    if macros or counting or there is None:
        chosen = configuration(rung, TIMED_AT, max(arch, rung.min_arch), macros).macros
        return dict(chosen), there[1] if there and there[0] == chosen else {}
    return dict(there[0]), there[1]


def record_comparison(
    rungs: Iterable[str] | None = None, seconds: float = math.inf, again: bool = False
) -> Path:
    """Count every rung here and store `results/compare-<gpu>.json` after each; what it holds at
    today's configuration is left as it is, unless `again`. UnsupportedGPU without a GPU and `ncu`.
    """
    here = gpu()
    if here is None or not ncu.available():
        raise UnsupportedGPU("comparing needs an NVIDIA GPU and ncu")
    end = time.monotonic() + seconds
    path = FOLDER / f"compare-{here.slug}.json"
    held = {(r["rung"], *r["size"]): r.get("config") for r in rows_in(path)}
    there = [r.name for r in RUNGS.values() if r.path and r.runs_on(here.arch)]
    for name in rungs or there:
        if not again and held.get((name, *SIZE)) == dict(configuration(name, TIMED_AT).macros):
            continue
        if time.monotonic() > end:
            print(f"the time is over: {name} and what follows it were not counted")
            break
        try:
            compare([name], store=True, show=False)
        except Exception as error:  # what the emulator or ncu cannot run: the next rung is counted
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    return path


def _said(counter: Counter, emulated: Mapping[str, int], measured: Mapping[str, int]) -> bool:
    """Whether a counter has a row. `op_ld` counts cp.async among the loads, but of its sectors only
    the tags looked up, so beside cp.async the sectors of loads say nothing.
    """
    if counter.name == "global sectors, loads" and emulated["global sectors, cp.async"]:
        return False
    return bool(emulated[counter.name] or measured.get(counter.name))


def format_rows(rows: list[dict]) -> str:
    """The table of `compare`. "machine code" is empty where ptxas's loads could not be told from PTX's."""
    cells = []
    for row in rows:
        machine = row.get("machine")
        ours = row["emulator"] if machine is None else machine
        ratio = "" if not row["gpu"] else f"{ours / row['gpu']:.4f}"
        measured = "" if row["gpu"] is None else row["gpu"]
        size = "x".join(map(str, row["size"]))
        said = "" if machine is None else machine
        cells.append([row["rung"], size, row["counter"], row["emulator"], said, measured, ratio])
    heads = ["rung", "size", "counter", "emulator, PTX", "emulator, machine code", "GPU", "ratio"]
    return table(heads, cells, left=3)


class Counts(dict):
    """{counter: total} by PTX. machine: the same by machine code, without what could not be mapped."""

    machine: dict[str, int]


def count_on_emulator(
    rung: str | Rung, size: tuple[int, int, int], macros=None, arch: int | str | None = None
) -> Counts:
    """Totals of one launch on the emulator, by counter name. The PTX is the one that the GPU's
    cubin comes from; arch: the GPU's, else the book's, where it is left out.
    """
    rung = find(rung)
    A, B, _ = random_inputs(rung.types(macros), *size)
    arch = arch or (gpu().arch if gpu() else BOOK_ARCH)
    how = plan(rung, *size, macros, arch)
    merged = merged_loads(how.build, rung.entry)
    trace = gemm(
        rung, A, B, macros=how.macros, machine="emulator", arch=arch, built=how.build, merged=merged
    ).trace

    def total(counter: Counter, column: str) -> int:
        rows = (row for row in trace.instructions if re.match(counter.opcodes, row.opcode))
        return sum(getattr(row, column) for row in rows)

    counts = Counts({c.name: total(c, c.column) for c in COUNTERS})
    # ptxas merges loads from shared memory; stores are compared by number, and other accesses have one instruction each
    loads, stores = merged is not None, stores_are_as_written(how.build, rung.entry)
    mapped = {"loads": loads, "stores": stores, "all": loads and stores}
    counts.machine = {
        c.name: total(c, "machine_wavefronts")
        for c in COUNTERS
        if c.column == "shared_wavefronts" and mapped.get(c.name.split(", ")[1])
    }
    return counts


def count_with_ncu(rung: str | Rung, size: tuple[int, int, int], macros=None) -> dict[str, int]:
    """Totals of one launch on the GPU, by counter name; a counter that this GPU lacks is left out.

    UnsupportedGPU with ncu's message when it may not count (it needs permission to read performance
    counters).
    """
    rung = find(rung)
    metrics = sorted({metric for counter in COUNTERS for metric in counter.metrics})
    once = json.dumps({"rung": rung.name, "size": size, "macros": dict(macros or {})})
    values = ncu.count(rung.entry, metrics, ["measure", "compare", "--once", once])
    totals = {}
    for counter in COUNTERS:
        found = [values[metric] for metric in counter.metrics if metric in values]
        if found:
            totals[counter.name] = int(sum(found))
    return totals


def run_once(request: str) -> None:
    """The launch that `ncu` watches."""
    wanted = json.loads(request)
    rung = find(wanted["rung"])
    A, B, _ = random_inputs(rung.types(wanted["macros"]), *wanted["size"])
    gemm(rung, A, B, macros=wanted["macros"], machine="gpu")


def recorded_comparison() -> tuple[str, list[dict]]:
    """`(label, rows)` of `results/compare-*.json`, the emulator's counts of that day among them.
    FileNotFoundError where there is none.
    """
    stored = load("compare")
    return f"GPU counts {label(stored)}", stored["rows"]


def _stored() -> tuple[str, dict]:
    try:
        said, rows = recorded_comparison()
    except FileNotFoundError:
        return "no GPU with ncu here, and no recorded comparison", {}
    counts: dict = {}
    for row in rows:
        config = row.get("config") or find(row["rung"]).resolve()  # older files: the row's default
        counts.setdefault((row["rung"], *row["size"]), (config, {}))[1][row["counter"]] = row["gpu"]
    return said, counts


def _write(rows: list[dict]) -> Path:
    if gpu() is None:
        raise UnsupportedGPU("only counts from a GPU are stored")
    path = FOLDER / f"compare-{gpu().slug}.json"
    old = rows_in(path)
    new = {(row["rung"], *row["size"]) for row in rows}
    return store(
        path,
        f"{ncu.METHOD}, one launch, per-instruction metrics; emulator: the same PTX and inputs",
        rows=rows + [row for row in old if (row["rung"], *row["size"]) not in new],
    )
