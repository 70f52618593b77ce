"""What holds a kernel back, as Nsight Compute sees it, and what the power limit does to a long run."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from kernels.errors import UnsupportedGPU
from kernels.gemm import plan
from kernels.machine import clocks, gpu
from kernels.rungs import Types, find

from . import ncu
from .provenance import label, load, store
from .timing import cublas_launches, matrices, measure, rung_launches
from .tune import best

RUNGS_WATCHED = (
    "naive", "tiled", "coarsened_2d", "vectorized", "warp_tiled", "async_pipeline", "wmma_async",
    "mma_sync", "mma_tiled", "mma_padded", "mma_swizzled", "mma_tf32", "mma_multistage",
)  # fmt: skip
SIZE = (4096, 4096, 4096)
SUSTAINED_S = 2.0
LOOK_EVERY_S = 0.2  # at clock and power
QUEUED = 50  # launches between two waits for the GPU

# What each number is called here, and Nsight Compute's name for it.
METRICS = {
    "milliseconds": "gpu__time_duration.sum",
    "cycles": "sm__cycles_elapsed.max",
    "instructions": "sm__inst_executed.sum",
    "issue slots used, %": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "FMA pipe, %": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "tensor pipe, %": "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
    "shared-memory pipe, %": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "bank conflicts": "l1tex__data_bank_conflicts_pipe_lsu.sum",
    "L2, %": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "L2 hit rate, %": "lts__t_sector_hit_rate.pct",
    "bytes from L2": "l1tex__m_xbar2l1tex_read_bytes.sum",
    "bytes of DRAM": "dram__bytes.sum",
    "warps resident, %": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
# What can be full, in words.
PARTS = {
    "issue slots used, %": "issue slots",
    "FMA pipe, %": "FMA pipe",
    "tensor pipe, %": "tensor pipe",
    "shared-memory pipe, %": "path to shared memory",
    "L2, %": "L2",
}
# Average warps waiting for this reason at each issue; "selected" is the one that issues.
STALLS = (
    "selected", "wait", "math_pipe_throttle", "short_scoreboard", "long_scoreboard", "barrier",
    "mio_throttle", "lg_throttle", "dispatch_stall", "not_selected", "no_instruction",
)  # fmt: skip
# Nsight Compute's names for what a warp waits for, in words (Profiling Guide, "Warp Stall Reasons").
WAITS = {
    "wait": "a fixed number of clocks",
    "math_pipe_throttle": "the tensor or math pipe",
    "short_scoreboard": "data from shared memory",
    "long_scoreboard": "data from L1, L2 or memory",
    "barrier": "the other warps at a barrier",
    "mio_throttle": "the queue to shared memory",
    "lg_throttle": "the queue to L1",
    "dispatch_stall": "the dispatcher",
    "not_selected": "its turn: another warp went",
    "no_instruction": "the next instruction",
}
STALL_METRIC = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def limits(rungs: Iterable[str] | None = None, size: tuple[int, int, int] = SIZE) -> list[dict]:
    """One row per rung: `METRICS` and stalls of one launch, at the best setting that `tune` knows.
    UnsupportedGPU without a GPU or `ncu`.
    """
    if gpu() is None:
        raise UnsupportedGPU("what limits a kernel is measured on a GPU, with ncu")
    rows = []
    for name in rungs or RUNGS_WATCHED:
        macros = best(name, size) or {}
        values = _count(name, size, macros)
        stalls = {reason: values.get(STALL_METRIC.format(reason)) for reason in STALLS}
        row = {words: values.get(metric) for words, metric in METRICS.items()}
        row["milliseconds"] = row["milliseconds"] / 1e6  # ncu's base unit is the nanosecond
        found = {"rung": name, "size": list(size), "config": macros, **row, "stalls": stalls}
        rows.append({**found, "analysis": analysis(found)})
    return rows


def analysis(row: dict) -> str:
    """What the counters of one row say limits the kernel: which part of the machine is fullest, and
    what a warp waits for between two instructions.
    """
    parts = {words: row[metric] for metric, words in PARTS.items() if row[metric] is not None}
    busy = sorted(parts.items(), key=lambda part: -part[1])
    waits = {WAITS[reason]: n for reason, n in row["stalls"].items() if reason in WAITS and n}
    issue = sum(clocks for clocks in row["stalls"].values() if clocks)
    longest = sorted(waits.items(), key=lambda wait: -wait[1])[:2]
    return (
        f"{row['rung']}: busy are "
        + ", ".join(f"{words} {percent:.0f}%" for words, percent in busy)
        + f". A warp issues every {issue:.1f} clocks; meanwhile it waits for "
        + " and for ".join(f"{words} ({clocks:.1f})" for words, clocks in longest)
        + f". Of the warps that a multiprocessor can hold, {row['warps resident, %']:.0f}% are there."
    )


def _count(name: str, size: tuple[int, int, int], macros: dict) -> dict[str, float]:
    metrics = [*METRICS.values(), *(STALL_METRIC.format(reason) for reason in STALLS)]
    program = ["measure.limits", json.dumps([name, size, macros])]
    return ncu.count(find(name).entry, metrics, program, launch=1)


def run_twice(name: str, size: tuple[int, int, int], macros: dict) -> None:
    """The launches that `ncu` watches, the first one not counted."""
    import cupy

    how = plan(name, *size, macros)
    for launch in rung_launches(how, matrices(how.types, how.shapes(), sets=1)) * 2:
        launch()
    cupy.cuda.get_current_stream().synchronize()


def sustained(rung: str | None, size: tuple[int, int, int] = SIZE) -> dict:
    """A rung (None: cuBLAS on the same types as mma_multistage) in bursts, and without a pause for
    `SUSTAINED_S` seconds: TFLOP/s of both, and the clock and power while it ran.
    """
    import cupy

    if rung is None:
        types = Types("float16")
        M, N, K = size
        launches = cublas_launches(matrices(types, ((M, K), (K, N), (M, N))), "float16")
    else:
        how = plan(rung, *size, best(rung, size))
        launches = rung_launches(how, matrices(how.types, how.shapes()))
    burst = measure({"it": launches})["it"]
    watched: list[dict] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(LOOK_EVERY_S):
            watched.append(clocks())

    watcher = threading.Thread(target=watch)
    stream = cupy.cuda.get_current_stream()
    count, start = 0, time.perf_counter()
    watcher.start()
    while time.perf_counter() - start < SUSTAINED_S:
        for _ in range(QUEUED):
            launches[count % len(launches)]()
            count += 1
        stream.synchronize()
    seconds = time.perf_counter() - start
    ended.set()
    watcher.join()
    M, N, K = size
    return {
        "rung": rung or "cublas",
        "size": list(size),
        "burst_tflops": round(burst.tflops(M, N, K), 1),
        "sustained_tflops": round(2e-12 * M * N * K * count / seconds, 1),
        "seconds": round(seconds, 2),
        "watched": watched,
    }


def record_limits(rungs: Iterable[str] | None = None) -> Path:
    """Measure and store `results/limits-<gpu>.json`."""
    return store(
        f"limits-{gpu().slug}",
        f"{ncu.METHOD}, second launch; bursts and {SUSTAINED_S:.0f} s runs as measure.limits.sustained",
        rows=limits(rungs),
        sustained=[sustained(rung) for rung in ("warp_tiled", "mma_multistage", None)],
    )


def recorded_limits() -> dict:
    """What `results/limits-*.json` holds: `rows`, `sustained`, and `label` to print beside them.
    FileNotFoundError where nothing was recorded.
    """
    stored = load("limits")
    return {**stored, "label": label(stored)}


if __name__ == "__main__":
    run_twice(*json.loads(sys.argv[1]))
