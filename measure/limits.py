"""What holds a kernel back, as Nsight Compute sees it."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kernels.errors import UnsupportedGPU
from kernels.gemm import plan
from kernels.gpus import gpu, slug
from kernels.rungs import RUNGS, find
from kernels.settings import configuration

from . import ncu
from .provenance import FOLDER, load, rows_in, store
from .results import recordings
from .stall_places import sampled
from .timing import matrices, rung_launches

SIZE = (4096, 4096, 4096)

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
    "L2 requests": "lts__t_requests.sum",
    "L2 sectors": "lts__t_sectors.sum",
    "L2 tag look-ups": "lts__t_tag_requests.sum",
    "L2 tags, %": "lts__t_tag_requests.avg.pct_of_peak_sustained_elapsed",
    "L2 sectors, %": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "L2 requests from SMs, %": "lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "bytes from L2": "l1tex__m_xbar2l1tex_read_bytes.sum",
    "bytes of DRAM": "dram__bytes.sum",
    "warps resident, %": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
# What this book's tables and prose call some of them; first the shares of a peak that stand side by side.
BUSY = {
    "issue slots": "issue slots used, %",
    "FMA pipe": "FMA pipe, %",
    "tensor pipe": "tensor pipe, %",
    "shared memory": "shared-memory pipe, %",
    "L2": "L2, %",
}
SHORT = {**BUSY, "L2 hit rate": "L2 hit rate, %", "warps resident": "warps resident, %"}
# What can be full, in words.
PARTS = {
    "issue slots used, %": "issue slots",
    "FMA pipe, %": "FMA pipe",
    "tensor pipe, %": "tensor pipe",
    "shared-memory pipe, %": "path to shared memory",
    "L2, %": "L2",
    "L2 tags, %": "L2's look-ups of tags",
    "L2 sectors, %": "L2's sectors",
}


@dataclass(frozen=True)
class Reason:
    """Why a warp stalls. `name` as the profiler's pages call it; `means` as a heading says it; `waits` what the warp waits
    for, `here` the same in a few words (None for the warp that issues); `advice` where it is normal, or what helps.
    """

    name: str
    means: str
    waits: str
    here: str | None
    advice: str


# By Nsight Compute's names (Profiling Guide, "Warp Stall Reasons"): average warps waiting so at each issue.
STALLS = {
    "selected": Reason(
        "issuing",
        "the scheduler starts an instruction of the warp",
        "nothing: it starts an instruction",
        None,
        "always 1, by definition",
    ),
    "wait": Reason(
        "wait",
        "waits the fixed number of clocks that some instructions need",
        "a fixed number of clocks that the instruction before needs",
        "a fixed number of clocks",
        "part of computing; more independent instructions or warps hide it",
    ),
    "math_pipe_throttle": Reason(
        "math pipe throttle",
        "the pipe that would compute it is busy",
        "the pipe that would compute the instruction is occupied",
        "the tensor or math pipe",
        "where arithmetic is the limit",
    ),
    "short_scoreboard": Reason(
        "short scoreboard",
        "waits for data from shared memory",
        "data from shared memory, as a rule",
        "data from shared memory",
        "load fragments earlier; remove bank conflicts",
    ),
    "long_scoreboard": Reason(
        "long scoreboard",
        "waits for a load or copy through L1: its data, or registers that it has yet to read",
        "a load or copy through L1: its data, or registers that it has yet to read; in Hopper's kernels an mbarrier, too",
        "loads and copies through L1",
        "more bytes under way: pipelines, more warps",
    ),
    "barrier": Reason(
        "barrier",
        "waits at `__syncthreads()` for other warps",
        "other warps at `__syncthreads()`; in Hopper's kernels the end of a `wgmma`, too",
        "the other warps at a barrier",
        "fewer barriers; blocks that do not wait together",
    ),
    "mio_throttle": Reason(
        "MIO throttle",
        "the queue of instructions for shared memory is full (MIO: memory input/output)",
        "room in the queue of instructions for shared memory",
        "the queue to shared memory",
        "fewer or wider accesses; spread them out",
    ),
    "lg_throttle": Reason(
        "LG throttle",
        "the queue of instructions for global memory is full (LG: local and global)",
        "room in the queue of instructions for global memory",
        "the queue to L1",
        "fewer or wider accesses; coalescing",
    ),
    "dispatch_stall": Reason(
        "dispatch stall",
        "the instruction is ready, but the dispatch unit holds it back, for example because of a conflict",
        "the dispatch unit, which holds the instruction back",
        "the dispatcher",
        "conflicts of registers, among others",
    ),
    "not_selected": Reason(
        "not selected",
        "the warp is ready, but the scheduler starts an instruction of another one",
        "its turn: it is ready, but the scheduler starts another warp's instruction",
        "its turn: another warp went",
        "several warps are ready in the same clock: a good sign if few issue slots are empty",
    ),
    "no_instruction": Reason(
        "no instruction",
        "the next instruction is not there yet",
        "the instruction itself, which has to be fetched",
        "the next instruction",
        "very long unrolled loops; the beginning of a kernel",
    ),
}
WAITS = {name: reason.here for name, reason in STALLS.items() if reason.here}
# Of a kernel that copies by TMA, as samples of where its warps stand show (`stall_places`).
ON_TMA = {
    "long_scoreboard": "loads through L1, or an mbarrier",
    "barrier": "a barrier, or the end of a wgmma",
}
OTHERS = ("branch_resolving", "drain", "gmma", "imc_miss", "membar", "misc", "sleeping", "tex_throttle")  # fmt: skip
STALL_METRIC = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def watched() -> list[str]:
    """The rungs that are kernels and that this GPU runs."""
    return [r.name for r in RUNGS.values() if r.path and r.runs_on(gpu().arch)]


def limit(name: str) -> dict:
    """A rung's row: `METRICS`, stalls and where they are (`stall_places.places`), of one launch at `SIZE` and the configuration
    of `kernels.settings`.

    Bytes do not explain how busy L2 is: its slices take requests, look up a tag for each line that a request touches,
    and then move sectors. All three are counted.
    """
    macros = dict(configuration(name, SIZE).macros)
    plan(name, *SIZE, macros)  # here, too, so that the file names the compiler of the build
    reasons = (*STALLS, *OTHERS)
    metrics = [*METRICS.values(), *(STALL_METRIC.format(reason) for reason in reasons)]
    program = ["measure.limits", json.dumps([name, SIZE, macros])]
    values = ncu.count(find(name).entry, metrics, program, launch=1)
    stalls = {reason: values.get(STALL_METRIC.format(reason)) for reason in reasons}
    row = {words: values.get(metric) for words, metric in METRICS.items()}
    row["milliseconds"] = row["milliseconds"] / 1e6  # ncu's base unit is the nanosecond
    places = sampled(find(name).entry, program, launch=1)
    found = {"rung": name, "size": list(SIZE), "config": macros, **row, "stalls": stalls, "places": places}  # fmt: skip
    return {**found, "analysis": analysis(found)}


def analysis(row: dict) -> str:
    """What the counters of one row say limits the kernel: which part of the machine is fullest, and
    what a warp waits for between two instructions.
    """
    parts = {words: row[metric] for metric, words in PARTS.items() if row.get(metric) is not None}
    busy = sorted(parts.items(), key=lambda part: -part[1])
    names = WAITS | (ON_TMA if find(row["rung"]).boxes else {})
    waits = {names[reason]: n for reason, n in row["stalls"].items() if reason in names and n}
    # fsum: from 3.12 on, Python's sum rounds otherwise than before
    issue = math.fsum(clocks for clocks in row["stalls"].values() if clocks)
    longest = sorted(waits.items(), key=lambda wait: -wait[1])[:2]
    return (
        f"{row['rung']}: busy are "
        + ", ".join(f"{words} {percent:.0f}%" for words, percent in busy)
        + f". A warp issues every {issue:.1f} clocks; meanwhile it waits for "
        + " and for ".join(f"{words} ({clocks:.1f})" for words, clocks in longest)
        + f". Of the warps that a multiprocessor can hold, {row['warps resident, %']:.0f}% are there."
    )


def run_twice(name: str, size: tuple[int, int, int], macros: dict) -> None:
    """The launches that `ncu` watches, the first one not counted."""
    how = plan(name, *size, macros)
    ncu.run_twice(rung_launches(how, matrices(how.types, how.shapes(), sets=1))[0])


def record_limits(
    rungs: Iterable[str] | None = None, again: bool = False, seconds: float = math.inf
) -> Path:
    """Measure and store `results/limits-<gpu>.json`, after every rung; rungs that it holds at the
    configuration of today are left as they are, unless `again`. Stops after about `seconds`.
    """
    end = time.monotonic() + seconds
    name = f"limits-{gpu().slug}"
    path = FOLDER / f"{name}.json"
    rows = {row["rung"]: row for row in rows_in(path)}
    for rung in rungs or watched():
        config = dict(configuration(rung, SIZE).macros)
        if not again and rows.get(rung, {}).get("config") == config:
            continue
        if time.monotonic() > end:
            print(f"the time is over: {rung} and what follows it were not watched")
            break
        try:
            rows[rung] = limit(rung)
        except UnsupportedGPU as error:
            print(f"{rung}: {error}", file=sys.stderr)
            continue
        ordered = sorted(rows.values(), key=lambda row: list(RUNGS).index(row["rung"]))
        store(name, f"{ncu.METHOD}, second launch", rows=ordered)
    return path


def recorded_limits() -> dict:
    """What the recording of the book's GPU holds: `rows`, and `sustained`, the long runs of `bench`.
    FileNotFoundError where nothing was recorded.
    """
    stored = load("limits")
    long_runs = stored.get("sustained") or _long_runs(slug(stored["machine"]["gpu"]))
    return {**stored, "sustained": long_runs}


LONG_RUNS = ("warp_tiled", "mma_multistage", "wgmma_cluster", "cublas")


def _long_runs(name: str) -> list[dict]:
    """Bursts and long runs of some rungs at `SIZE`, from the sustained columns of `bench`'s rows."""
    recording = recordings().get(name)
    if recording is None:
        return []
    found = []
    for row in recording.select(size=SIZE[0]):
        fp16 = row["inputs"] == "float16" and row["output"] == "float32"
        if (
            row["rung"] in LONG_RUNS
            and row.get("sustained_tflops")
            and (fp16 or row["rung"] == "warp_tiled")
        ):
            look = {
                "clocks.sm": 1000 * row["sustained_ghz"],
                "clocks.max.sm": recording.machine["clock_mhz"],
                "power.draw": row["sustained_watts"] or math.nan,
                "power.limit": recording.machine.get("power_limit_w") or math.nan,
            }
            found.append({
                "rung": row["rung"], "size": list(SIZE), "burst_tflops": row["tflops"],
                "sustained_tflops": row["sustained_tflops"], "seconds": 2.0, "watched": [look],
                "recorded": row.get("recorded", recording.recorded),
            })  # fmt: skip
    return found


if __name__ == "__main__":
    run_twice(*json.loads(sys.argv[1]))
