"""Records what the pages show of a GPU, in parts that can be run one by one and again.

    python -m measure record --compile-only --arch 90     # on any machine: fills the cache of builds
    python -m measure record --part search --seconds 200  # on the GPU, in this order
    python -m measure record --part bench --seconds 250

Every part writes its file in `results/` as soon as it has a row, skips what the file holds already at
today's configuration and commit of measuring (unless `again`), and stops when its seconds are over,
naming what it left out. `$GEMM_BUILDS` names a folder of builds that travels.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from kernels.errors import UnsupportedGPU
from kernels.gpus import clocks, needed
from kernels.rung import Rung, Types
from kernels.rungs import RUNGS, find
from kernels.settings import FILE, configuration, representative, types_of

from .candidates import Candidate, compiled
from .progress import aside, progress
from .provenance import FOLDER, describe, rows_in, store
from .row import choices, extents, release, time_rung
from .timing import METHOD, SAMPLES
from .tune import search, spaces, tasks

SIZES = (1024, 2048, 4096, 8192)
ORDER = (4096, 8192, 1024, 2048)  # what the pages show most comes first
TUNED_AT = 4096
SUSTAINED_AT = 4096
SUSTAINED_S = 2.0
SLOW_LIMIT_S = 1.5  # a rung whose samples take longer is not timed at that size
KEY = ("rung", "m", "n", "k", "inputs", "output")


def record(
    rungs: Iterable[str] | None = None,
    sizes: Sequence[int | tuple[int, int, int]] = ORDER,
    file: str | Path | None = None,
    seconds: float = float("inf"),
    again: bool = False,
    sustained_s: float = SUSTAINED_S,
) -> Path:
    """Time the ladder here and store `results/<gpu>.json` after every row; rows that the file holds
    at today's configuration are kept, and so are those of rungs and sizes not asked for. Returns the
    file's path. UnsupportedGPU without a GPU.
    """
    here = needed("recording")
    path = Path(file) if file else FOLDER / f"{here.slug}.json"
    limit = clocks().get("power.limit")
    before = {"clocks_before": clocks(), "power_limit_w": float(limit) if limit else None}
    work = [
        (rung, extents(size), choice)
        for size in sizes
        for rung in map(find, rungs or RUNGS)
        if rung.runs_on(here.arch)
        for choice in choices(rung)
    ]
    library: dict = {}
    start = time.monotonic()
    for number, (rung, size, choice) in enumerate(work):
        progress(number, len(work), f"{rung.name} {size[0]}")
        if time.monotonic() - start > seconds:
            print(
                f"the {seconds:.0f} s are over: {len(work) - number} rows not timed, from {rung.name} {size}"
            )
            break
        rows = rows_in(path)
        if not again and (is_there := _held(rows, rung, size, choice)):
            progress(number, len(work), f"{is_there['rung']} is there")
            continue
        try:
            long_run = sustained_s if size == (SUSTAINED_AT,) * 3 else 0.0
            row = time_rung(rung, *size, choice, SAMPLES, SLOW_LIMIT_S * 5, long_run, library)
        except (UnsupportedGPU, TimeoutError, ValueError) as error:
            aside(f"{rung.name} {size}: skipped, {error}")
            continue
        finally:
            release()
        machine = {**describe(), **before, "clocks_after": clocks()}
        store(path, METHOD, machine, rows=_merge(path, [row]))
    progress(len(work), len(work))
    return path


def record_search(
    rungs: Iterable[str] | None = None,
    seconds: float = 300.0,
    again: bool = False,
    jobs: int | None = None,
) -> Path:
    """Search every rung's space here into `results/settings.json`; all that was tried at 4096 goes to
    `results/tune-<gpu>.json`. UnsupportedGPU without a GPU.
    """
    path = FOLDER / f"tune-{needed('a search').slug}.json"

    def keep(rung: Rung, size: tuple[int, int, int], candidates: Sequence[Candidate]) -> None:
        if size != (TUNED_AT,) * 3 or rung.types(candidates[0].macros) != rung.types():
            return
        kept = [row for row in rows_in(path) if row["rung"] != rung.name]
        method = f"{METHOD}; of most settings a quick look only: see measure.tune"
        rows = kept + [_tried(rung, candidate) for candidate in candidates]
        store(path, method, indent=None, size=TUNED_AT, rows=rows)

    return search(rungs, seconds=seconds, file=FILE, again=again, jobs=jobs, keep=keep)


def compile_all(
    rungs: Iterable[str] | None = None,
    arch: int | str | None = None,
    jobs: int | None = None,
    space: bool = True,
    seconds: float = float("inf"),
) -> int:
    """Compile what the parts need on this architecture into the cache: every row's configurations and
    the loops of `measure/cuda`, then (with `space`) all that a search tries. Returns how many builds
    there were; needs no GPU.
    """
    from kernels.build import build, normal_arch

    from .machine import programs

    arch = normal_arch(arch)
    for path, macros, target in programs(int(arch.rstrip("af"))):
        build(path, macros, arch=target)
    there = [r for r in map(find, rungs or RUNGS) if r.path and r.runs_on(arch)]
    wanted = [
        (rung, dict(configuration(rung, size, arch, macros).macros))
        for rung in there
        for macros, _ in types_of(rung)
        for size in (*SIZES, *(representative(f"{n} skinny") for n in SIZES))
    ]
    if space:
        wanted += spaces(tasks(rungs, arch))
    unique = {(rung.name, *sorted(macros.items())): (rung, macros) for rung, macros in wanted}
    compiled(list(unique.values()), arch, jobs, seconds)
    return len(unique)


def _tried(rung: Rung, candidate: Candidate) -> dict:
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


def _held(rows: Iterable[Mapping], rung: Rung, size, choice) -> Mapping | None:
    """The stored row of this rung, size and type, if it was timed at today's configuration."""
    types = choice if isinstance(choice, Types) else rung.types(choice)
    for row in rows:
        if tuple(row[k] for k in KEY) == (rung.name, *size, types.inputs, types.output):
            if rung.machine != "any":
                return row if "clock_ghz" in row or rung.machine == "cpu" else None
            config = configuration(rung, size, macros=choice).macros
            return row if row["config"] == dict(config) and "clock_ghz" in row else None
    return None


def _merge(path: Path, rows: list[dict]) -> list[dict]:
    """New rows, and the stored ones of what was not measured again, in the ladder's order."""
    new = {tuple(row[k] for k in KEY): row for row in rows}
    old = {tuple(row[k] for k in KEY): row for row in rows_in(path)}
    names = list(RUNGS)

    def place(row: Mapping) -> tuple:
        rung = names.index(row["rung"]) if row["rung"] in names else len(names)
        return row["m"] * row["n"] * row["k"], row["m"], rung

    return sorted((old | new).values(), key=place)


def part(module: str, does: str = "record", *named: str) -> Callable:
    """What a module does, imported when it is asked for, with the options that are named."""

    def run(options) -> object:
        given = [getattr(options, name) for name in named]
        return getattr(importlib.import_module(f".{module}", __package__), does)(*given)

    return run


# In order of what the pages need most; each is one call of `python -m measure record --part NAME`.
PARTS: Mapping[str, Callable] = {
    "search": part("record", "record_search", "rungs", "seconds", "again", "jobs"),
    "bench": lambda o: record(o.rungs, o.size or ORDER, o.json, o.seconds, o.again),
    "machine": part("machine"),
    "limits": part("limits", "record_limits", "rungs", "again", "seconds"),
    "compare": part("compare", "record_comparison", "rungs", "seconds", "again"),
    "sanitize": part("sanitize", "record_findings", "rungs"),
    "first-call": part("first_call"),
    "torch": part("with_torch"),
    "shared-clocks": part("shared_clocks"),
    "small-tiles": part("small_tiles"),
    "variants": part("variants"),
}


def run_parts(options) -> list[str]:
    """The parts that the command line names, or all, one after another; a part that cannot run here
    says why, and the next one runs. Returns the names of those that could not.
    """
    failed = []
    names = options.part or list(PARTS)
    end = time.monotonic() + options.seconds
    for name in names:
        options.seconds = end - time.monotonic()
        if options.seconds <= 0:
            print(f"{name}: not begun, the time is over")
            failed.append(name)
            continue
        start = time.monotonic()
        try:
            print(f"{name}: {PARTS[name](options)}, {time.monotonic() - start:.0f} s", flush=True)
        except (UnsupportedGPU, ValueError, OSError, ImportError, RuntimeError) as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            failed.append(name)
    return failed
