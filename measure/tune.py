"""Searches a rung's space of tiles, warps and stages: compile all, drop what cannot run well,
check, time, remember.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import multiprocessing
import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernels.build import Build, build, cache_folder, check_arch, normal_arch
from kernels.check import SCALARS, check_one, edge_sizes
from kernels.errors import BuildError, UnsupportedGPU
from kernels.gemm import plan
from kernels.machine import gpu
from kernels.occupancy import LIMITS, Occupancy, occupancy
from kernels.rungs import RUNGS, Rung, Types, find
from kernels.table import table

from .progress import progress
from .provenance import FOLDER as RESULTS
from .timing import matrices, measure, rung_launches

AWKWARD = 3  # of `edge_sizes`: a row above the block tile, a column and a k below
QUICK_LOOK = {"samples": 10, "pause_s": 0.05}  # at every candidate; the finalists are timed in full
FINALISTS = 6


@dataclass(frozen=True)
class Candidate:
    """One setting of a rung. `dropped` says why it was not timed; `ms` is None without a GPU."""

    macros: Mapping[str, int]
    build: Build | None = field(default=None, repr=False)
    threads: int = 0
    shared_bytes: int = 0
    occupancy: Occupancy | None = None
    dropped: str = ""
    ms: float | None = None
    tflops: float | None = None


def settings(rung: str | Rung, fixed: Mapping[str, int] | None = None) -> list[dict[str, int]]:
    """The rung's space as complete macro settings, those that `valid` refuses left out."""
    rung = find(rung)
    names = [name for name in rung.space if name not in (fixed or {})]
    found = []
    for values in itertools.product(*(rung.space[name] for name in names)):
        macros = rung.resolve({**dict(zip(names, values, strict=True)), **(fixed or {})})
        if rung.valid(**macros):
            found.append(macros)
    return found


def tune(
    rung: str | Rung,
    size: int | tuple[int, int, int] = 4096,
    arch: int | str | None = None,
    fixed: Mapping[str, int] | None = None,
    jobs: int | None = None,
    limit: int | None = None,
    show: bool = True,
    remember: bool = True,
) -> list[Candidate]:
    """Every setting in `rung.space`, best first; prints the table of them.

    Compiles in `jobs` processes. Settings that do not compile, spill, or need more shared memory or
    registers than a block may have are dropped. With a GPU the others are checked at an awkward
    size and timed at `size`, and the best is remembered for this GPU, rung, types and size class
    (`best` gives it back), unless `remember` is False. Without one they are ordered by occupancy. `limit` stops after that many
    settings. ValueError when the rung declares no space.
    """
    rung = find(rung)
    if not rung.space:
        there = ", ".join(name for name, other in RUNGS.items() if other.space)
        raise ValueError(f"{rung.name} declares no space to tune; these do: {there}")
    arch = normal_arch(arch)
    check_arch(arch)
    size = (size, size, size) if isinstance(size, int) else tuple(size)
    if len(size) != 3 or min(size) < 1:
        raise ValueError(f"size {size}: M, N and K are at least 1")
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs {jobs}: compiling takes at least 1 process")
    candidates = _compiled(rung, settings(rung, fixed)[:limit], arch, jobs)
    if gpu() is not None:
        candidates = _finals(rung, _timed(rung, candidates, size), size)
        if remember:
            _remember(rung, candidates, size)
    candidates.sort(key=_order)
    if show:
        print(format_candidates(rung, candidates, arch, size))
    return candidates


def _order(candidate: Candidate):
    return (
        bool(candidate.dropped),
        candidate.ms if candidate.ms is not None else 0.0,
        -(candidate.occupancy.fraction if candidate.occupancy else 0),
    )


def _compiled(rung: Rung, space: list[dict], arch: str, jobs: int | None) -> list[Candidate]:
    workers = os.cpu_count() or 1 if jobs is None else jobs
    # A child of a process with a CUDA context must not inherit it: spawn, and name the
    # architecture.
    context = multiprocessing.get_context("spawn")
    done = []
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = {pool.submit(_compile, rung.name, macros, arch): macros for macros in space}
        for future in as_completed(waiting):
            outcome = future.result()
            done.append(_judge(rung, waiting[future], outcome, arch))
            progress(len(done), len(space), f"compiling {rung.name} for sm_{arch}")
    return sorted(done, key=lambda candidate: space.index(candidate.macros))


def _compile(name: str, macros: dict, arch: str) -> Build | str:
    try:
        return build(name, macros, arch)
    except BuildError as error:
        return str(error.diagnostics[0].message if error.diagnostics else error)


def _judge(rung: Rung, macros: dict, outcome: Build | str, arch: str) -> Candidate:
    """Keep or drop one compiled setting."""
    if isinstance(outcome, str):
        return Candidate(macros, dropped=f"does not compile: {outcome.splitlines()[0]}")
    _, block, dynamic = rung.geometry(macros, 1, 1, 1)
    threads = block[0] * block[1]
    report = outcome.reports[rung.entry]
    shared = dynamic + report.shared_bytes
    if threads > 1024:
        return Candidate(macros, outcome, threads, shared, dropped=f"{threads} threads a block")
    limits = LIMITS.get(int(arch.rstrip("af")), LIMITS[90])
    held = occupancy(arch, threads, report.registers, shared)
    dropped = ""
    if shared > limits.shared_per_block:
        dropped = f"{shared} bytes of shared memory, a block has {limits.shared_per_block}"
    elif outcome.spills:
        dropped = f"spills {outcome.spills} bytes"
    elif held.blocks == 0:
        dropped = f"no block fits: {held.limited_by}"
    return Candidate(macros, outcome, threads, shared, held, dropped)


def _timed(rung: Rung, candidates: list[Candidate], size: tuple[int, int, int]) -> list[Candidate]:
    """Check each kept candidate at an awkward size, then time it; matrices are shared where shapes agree."""
    done: list[Candidate] = []
    shapes, sets = None, []
    for candidate in candidates:
        progress(len(done), len(candidates), f"timing {rung.name}")
        if candidate.dropped:
            done.append(candidate)
            continue
        try:
            awkward = edge_sizes(rung, candidate.macros)[AWKWARD]
            found, _ = check_one(rung, awkward, candidate.macros, *SCALARS[1], "gpu")
            how = plan(rung, *size, candidate.macros)
            if how.shapes() != shapes:
                shapes, sets = how.shapes(), []
                sets = matrices(how.types, shapes)
            timing = measure({"rung": rung_launches(how, sets)}, **QUICK_LOOK)["rung"]
        except (UnsupportedGPU, ValueError) as error:
            done.append(replace(candidate, dropped=str(error)))
            continue
        if found.ok:
            done.append(replace(candidate, ms=timing.median, tflops=timing.tflops(*size)))
        else:
            done.append(replace(candidate, dropped=f"WRONG: {found}"))
    progress(len(done), len(candidates), f"timing {rung.name}")
    return done


def _finals(rung: Rung, candidates: list[Candidate], size: tuple[int, int, int]) -> list[Candidate]:
    """The best few timed again, in turn, by the method of `bench`: what one quick look tells apart by
    a percent may be the clock's doing.
    """
    timed = sorted((c for c in candidates if c.ms is not None), key=lambda c: c.ms)
    launches = {}
    for number, candidate in enumerate(timed[:FINALISTS]):
        how = plan(rung, *size, candidate.macros)
        launches[number] = rung_launches(how, matrices(how.types, how.shapes(), sets=2))
    timings = measure(launches) if launches else {}
    for number, timing in timings.items():
        again = replace(timed[number], ms=timing.median, tflops=timing.tflops(*size))
        candidates = [again if c is timed[number] else c for c in candidates]
    return candidates


def format_candidates(rung: Rung, candidates: list[Candidate], arch: str, size) -> str:
    """The table of `tune`."""
    names = list(rung.space)
    header = [
        *names,
        "threads",
        "registers",
        "shared",
        "blocks/SM",
        "occupancy",
        "ms",
        "TFLOP/s",
        "",
    ]
    rows = []
    for c in candidates:
        report = c.build.reports[rung.entry] if c.build else None
        rows.append(
            [
                *(c.macros[name] for name in names),
                c.threads or "",
                report.registers if report else "",
                c.shared_bytes or "",
                c.occupancy.blocks if c.occupancy else "",
                f"{c.occupancy.fraction:.0%}" if c.occupancy else "",
                f"{c.ms:.4f}" if c.ms else "",
                f"{c.tflops:.1f}" if c.tflops else "",
                f" {c.dropped}" if c.dropped else "",
            ]
        )
    where = (
        f"timed on {gpu().name} at {'x'.join(map(str, size))}"
        if gpu()
        else "no GPU here: not timed"
    )
    return f"{rung.name} for sm_{arch}, {where}\n" + table(header, rows, left=0)


def size_class(size: tuple[int, int, int]) -> str:
    """The power of two nearest to the geometric mean of M, N and K: sizes of one class share their
    best setting.
    """
    M, N, K = size
    return str(2 ** round(math.log2(M * N * K) / 3))


def _store(slug: str) -> Path:
    return cache_folder() / "tuned" / f"{slug}.json"


def _key(rung: Rung, size, types: Types) -> str:
    return f"{rung.name} {types} {size_class(size)}"


def _load(path: Path) -> dict:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def _remember(rung: Rung, candidates: list[Candidate], size) -> None:
    timed = [c for c in candidates if c.ms is not None]
    if not timed:
        return
    winner = min(timed, key=lambda c: c.ms)
    path = _store(gpu().slug)
    stored = _load(path)
    stored[_key(rung, size, rung.types(winner.macros))] = {
        "macros": dict(winner.macros),
        "ms": winner.ms,
        "tflops": winner.tflops,
        "size": list(size),
        "date": datetime.date.today().isoformat(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.part")
    partial.write_text(json.dumps(stored, indent=1))
    os.replace(partial, path)


def _recorded(rung: Rung, slug: str) -> dict:
    """What `tune` found for this rung where `results/` was recorded, as `_remember` writes it."""
    recording = _load(RESULTS / f"tune-{slug}.json")
    rows = [r for r in recording.get("rows", ()) if r["rung"] == rung.name and r["ms"] is not None]
    bests: dict[str, dict] = {}
    for row in sorted(rows, key=lambda row: row["ms"]):
        if set(row["macros"]) == set(rung.space):
            macros = rung.resolve(row["macros"])
            key = _key(rung, (recording["size"],) * 3, rung.types(macros))
            bests.setdefault(key, {"macros": macros})
    return bests


def best(
    rung: str | Rung, size: int | tuple[int, int, int], types: Types | None = None
) -> dict | None:
    """The macros that `tune` found best on this GPU for this size class, or for the nearest one that
    was tuned; else those that `results/` holds for this kind of GPU; None where neither has any.
    """
    rung = find(rung)
    if gpu() is None:
        return None
    size = (size, size, size) if isinstance(size, int) else tuple(size)
    stored = _recorded(rung, gpu().slug) | _load(_store(gpu().slug))
    wanted = int(size_class(size))
    prefix = f"{rung.name} {types or rung.types()} "
    classes = [int(key.removeprefix(prefix)) for key in stored if key.startswith(prefix)]
    if not classes:
        return None
    nearest = min(classes, key=lambda known: abs(math.log2(known / wanted)))
    return stored[f"{prefix}{nearest}"]["macros"]
