"""Searches a rung's space of tiles, warps and stages: compile all (`candidates`), time by successive halving,
check the best, remember.

A search is frugal with the GPU: tiles and stages are compiled before, in every core; each setting gets one
launch, the better ones a few samples, the best few a measurement like `bench`'s (K. Jamieson and A.
Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016).
Macros that only order the work (`Rung.late`) are tried on the best tiles. What a time budget leaves
out is said, not lost.
"""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernels import settings as known
from kernels.build import check_arch, normal_arch
from kernels.check import SCALARS, check_one, edge_sizes
from kernels.errors import UnsupportedGPU
from kernels.gemm import plan
from kernels.gpus import gpu
from kernels.rung import Rung
from kernels.rungs import RUNGS, find
from kernels.settings import Setting, representative, size_class
from kernels.table import table

from .candidates import Candidate, compiled, compiled_one, late_settings, settings
from .clock import elapsed
from .progress import aside, progress
from .provenance import commit
from .timing import matrices, measure, rung_launches

LOOK_SAMPLES, SECOND_SAMPLES = 2, 6
SECOND, FINALISTS = 12, 4  # settings that get a second look, and a full measurement
LEADERS = 2  # tiles that the macros of `late` are tried on
SHARED = 12  # of the best tiles of one search that another one, alike, begins with
SLOW = 3.0  # times the best so far: one launch says enough
GAIN = 0.01  # of its time: what a setting has to bring before it replaces the one that is stored
CLASSES = (
    "4096",
    "8192",
    "2048",
    "1024",
    "4096 skinny",
    "1024 skinny",
    "8192 skinny",
    "2048 skinny",
    *known.SHAPES,
)
SHAPED = ("wgmma_split",)  # rungs that are searched at those shapes


def tune(
    rung: str | Rung,
    size: int | tuple[int, int, int] = 4096,
    arch: int | str | None = None,
    fixed: Mapping[str, int] | None = None,
    jobs: int | None = None,
    show: bool = True,
    remember: bool = True,
    seconds: float = math.inf,
) -> list[Candidate]:
    """Every setting in `rung.space`, best first; prints the table of them.

    Compiles in `jobs` processes. Settings that do not compile, spill, or need more shared memory or
    registers than a block may have are dropped. With a GPU the others are timed at `size` for at most
    `seconds`, the best are checked at an awkward size, and the winner is remembered (unless
    `remember` is False) for this GPU's generation, the rung, its types and the size's class;
    `kernels.settings` gives it to everybody. Without a GPU they are ordered by occupancy. ValueError
    when the rung declares no space.
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
    if not seconds > 0:
        raise ValueError(f"seconds {seconds}: a search takes more than none")
    candidates = compiled([(rung, macros) for macros in settings(rung, fixed)], arch, jobs)[
        rung.name
    ]
    if gpu() is not None:
        candidates = timed(rung, candidates, size, seconds, arch)
        if remember:
            _remember(rung, candidates, size)
    candidates.sort(key=_order)
    if show:
        print(format_candidates(rung, candidates, arch, size))
    return candidates


@dataclass(frozen=True)
class Task:
    """One search: a rung in one choice of number formats (`formats`: the macros that choose them)."""

    rung: Rung
    formats: Mapping[str, int]

    @property
    def types(self) -> str:
        return str(self.rung.types(self.formats))


def tasks(rungs: Iterable[str] | None = None, arch: int | str | None = None) -> list[Task]:
    """What there is to search on an architecture: every rung with a space, in each of its types."""
    arch = int(normal_arch(arch).rstrip("af"))
    there = [find(name) for name in rungs or RUNGS]
    there = [rung for rung in there if rung.space and rung.runs_on(arch)]
    return [Task(rung, formats) for rung in there for formats, _ in known.types_of(rung)]


def spaces(found: Iterable[Task]) -> list[tuple[Rung, dict[str, int]]]:
    """Every setting that these searches compile before they time. Other number formats than the row's
    take the best of its tiles, so only few of theirs are compiled, as they are known.
    """
    return [
        (task.rung, macros)
        for task in found
        if task.rung.types(task.formats) == task.rung.types()
        for macros in settings(task.rung, task.formats)
    ]


def search(
    rungs: Iterable[str] | None = None,
    classes: Sequence[str] = CLASSES,
    seconds: float = 300.0,
    file: Path | None = None,
    again: bool = False,
    jobs: int | None = None,
    keep: Callable[[Rung, tuple[int, int, int], Sequence[Candidate]], None] | None = None,
) -> Path:
    """Search every rung, type and class on this GPU within `seconds`; what is found is stored after
    each. A class that was searched on a GPU of this name, by a commit that anybody can look up, is left
    as it is, unless `again`. What is stored is measured with the best, and stays unless one of them is
    faster by `GAIN`.

    The budget is shared out evenly among what is left. Classes come in the order given, so that what
    does not fit in the time is the last. `keep` is given the rung, the size and all candidates of
    each search. UnsupportedGPU without a GPU.
    """
    here = gpu()
    if here is None:
        raise UnsupportedGPU("a search times kernels on a GPU")
    file = file or known.local_file()
    done = set() if again else {
        (one.rung, one.types, one.size_class)
        for one in known.settings()
        if one.gpu == here.name and not one.commit.endswith("+")
    }  # fmt: skip
    work = [
        (task, name)
        for name in classes
        for task in tasks(rungs)
        if (task.rung.name, task.types, name) not in done
        and (name not in known.SHAPES or task.rung.name in SHAPED)
    ]
    end = time.monotonic() + seconds
    arch = normal_arch()
    rungs_there = {task.rung.name: Task(task.rung, {}) for task, _ in work}
    builds = compiled(spaces(rungs_there.values()), arch, jobs, seconds / 2)
    best: dict[tuple[str, str, str], list[Candidate]] = {}
    for number, (task, name) in enumerate(work):
        left = end - time.monotonic()
        progress(number, len(work), f"searching {task.rung.name} {name}")
        if left <= 0:
            first = f"{task.rung.name} {name}"
            print(
                f"the {seconds:.0f} s are over: {len(work) - number} searches not begun, from {first}"
            )
            break
        space = _space(task, name, builds, best, arch, jobs)
        share = left / (len(work) - number)
        size = representative(name)
        held = _held(task, size, arch)
        try:
            found = timed(task.rung, space, size, 2 * share, arch, held)
        except (UnsupportedGPU, ValueError) as error:
            aside(f"{task.rung.name} {name}: skipped, {error}")
            continue
        ranked = sorted(found, key=_order)
        best[task.rung.name, task.types, name] = [
            replace(c, ms=None, checked=False) for c in ranked if not c.dropped
        ][:SHARED]
        _remember(task.rung, found, size, file, held)
        if keep:
            keep(task.rung, size, ranked)
    progress(len(work), len(work))
    return file


def _space(task: Task, name: str, builds, best, arch: str, jobs: int | None) -> list[Candidate]:
    """The candidates of one search: the rung's space; at 8192, where the same tiles fill the machine,
    the best of 4096; for other number formats than the row's, those that were best in the row's.
    """
    rung = task.rung
    if name == "8192" and (found := best.get((rung.name, task.types, "4096"))):
        return found
    if rung.types(task.formats) == rung.types():
        return builds[rung.name]
    like = best.get((rung.name, str(rung.types()), name)) or builds.get(rung.name, [])[:SHARED]
    tiles = [{n: c.macros[n] for n in rung.space} | dict(task.formats) for c in like]
    return compiled([(rung, rung.resolve(macros)) for macros in tiles], arch, jobs).get(
        rung.name, []
    )


def _held(task: Task, size: tuple[int, int, int], arch: str) -> Candidate:
    """What is stored today for this search, or the row's defaults."""
    macros = known.configuration(task.rung, size, arch, task.formats).macros
    return compiled_one(task.rung, macros, arch)


def _order(candidate: Candidate):
    return (
        bool(candidate.dropped),
        not candidate.checked,
        candidate.ms if candidate.ms is not None else math.inf if gpu() else 0.0,
        -(candidate.occupancy.fraction if candidate.occupancy else 0),
    )


def timed(
    rung: Rung,
    candidates: Sequence[Candidate],
    size: tuple[int, int, int],
    seconds: float,
    arch: str,
    held: Candidate | None = None,
) -> list[Candidate]:
    """The candidates with their times at this size, within about `seconds`: one launch of each, a few
    of the better ones, then, of the best with all their `late` settings, a full measurement and a
    check. `held` is measured in full with them, however it looked.
    """
    bench = Bench(rung, size, time.monotonic() + seconds)
    if held:
        candidates = [held, *(c for c in candidates if _name(c) != _name(held))]
    first = _looked(bench, candidates, LOOK_SAMPLES)
    second = _looked(bench, _best(first, SECOND), SECOND_SAMPLES)
    variants = [
        (rung, macros)
        for leader in _best(second, LEADERS)
        for macros in late_settings(rung, leader.macros)
        if macros != leader.macros
    ]
    late = compiled(variants, arch)[rung.name] if variants else []
    late = _looked(bench, [c for c in late if not _waits(rung, c)], SECOND_SAMPLES)
    pool = {_name(c): c for c in (*first, *second, *late)}
    if held:
        pool[_name(held)] = first[0]  # as it was before a second look that the time may have ended
    while finalists := _best((c for c in pool.values() if not c.checked), FINALISTS):
        if held and not any(_name(c) == _name(held) for c in finalists):
            finalists += _best([pool[_name(held)]], 1)
        judged = {_name(c): c for c in _finals(bench, finalists)}
        pool |= judged
        if any(c.checked for c in judged.values()):
            break
    return list(pool.values())


def _name(candidate: Candidate) -> tuple:
    return tuple(sorted(candidate.macros.items()))


def _best(candidates: Iterable[Candidate], count: int) -> list[Candidate]:
    there = [c for c in candidates if not c.dropped and c.ms is not None]
    return sorted(there, key=lambda c: c.ms)[:count]


def _waits(rung: Rung, candidate: Candidate) -> bool:
    """Whether some of a persistent kernel's blocks would wait for others to end."""
    sms = gpu().sms
    return (
        candidate.occupancy is not None
        and candidate.macros.get("BLOCKS", 0) > sms * candidate.occupancy.blocks
    )


class Bench:
    """Matrices of one problem, kept while the candidates need the same shapes, and a deadline."""

    def __init__(self, rung: Rung, size: tuple[int, int, int], end: float):
        self.rung, self.size, self.end = rung, size, end
        self.shapes, self.sets = None, []

    @property
    def over(self) -> bool:
        return time.monotonic() > self.end

    def launches(self, candidate: Candidate):
        how = plan(self.rung, *self.size, candidate.macros, built=candidate.build)
        if (how.shapes(), how.types) != self.shapes:
            self.shapes, self.sets = (how.shapes(), how.types), []
            self.sets = matrices(how.types, how.shapes())
        return rung_launches(how, self.sets)


def _looked(bench: Bench, candidates: Sequence[Candidate], samples: int) -> list[Candidate]:
    """A quick look at each: `samples` short groups of launches without a pause."""
    done: list[Candidate] = []
    best = math.inf
    for number, candidate in enumerate(candidates):
        progress(number, len(candidates), f"timing {bench.rung.name}")
        if candidate.dropped:
            done.append(candidate)
            continue
        if bench.over and (candidate.ms or best < math.inf):
            late = candidate.dropped if candidate.ms else "the time was over"
            done.append(replace(candidate, dropped=late))
            continue
        try:
            launches = bench.launches(candidate)
            ms = _one_launch(launches[0])
            if ms < SLOW * best:
                timing = measure(
                    {"it": launches}, samples, pause_s=0.0, warm_up_ms=0.5, group_ms=0.1
                )
                ms = timing["it"].median
        except (UnsupportedGPU, ValueError) as error:
            done.append(replace(candidate, dropped=str(error)))
            continue
        best = min(best, ms)
        done.append(_with_time(bench, candidate, ms))
    progress(len(candidates), len(candidates), f"timing {bench.rung.name}")
    return done


def _one_launch(launch) -> float:
    """ms of the second of two launches: the first one loads the kernel."""
    launch()
    return max(1e-4, elapsed(launch))


def _finals(bench: Bench, finalists: Sequence[Candidate]) -> list[Candidate]:
    """The best few checked at an awkward size, and timed again in turn by the method of `bench`: what
    a quick look tells apart by a percent may be the clock's doing.
    """
    right = []
    done = []
    for candidate in finalists:
        awkward = edge_sizes(bench.rung, candidate.macros)[3]
        found, _ = check_one(
            bench.rung, awkward, candidate.macros, *SCALARS[1], "gpu", built=candidate.build
        )
        if found.ok:
            right.append(candidate)
        else:
            done.append(replace(candidate, dropped=f"WRONG: {found}"))
    samples = SECOND_SAMPLES if bench.over else 2 * SECOND_SAMPLES
    launches = {number: bench.launches(candidate) for number, candidate in enumerate(right)}
    timings = measure(launches, samples, pause_s=0.05) if launches else {}
    return done + [
        replace(_with_time(bench, right[n], timing.median), checked=True)
        for n, timing in timings.items()
    ]


def _with_time(bench: Bench, candidate: Candidate, ms: float) -> Candidate:
    M, N, K = bench.size
    return replace(candidate, ms=ms, tflops=2e-9 * M * N * K / ms)


def format_candidates(rung: Rung, candidates: list[Candidate], arch: str, size) -> str:
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


def _remember(
    rung: Rung,
    candidates: Sequence[Candidate],
    size: tuple[int, int, int],
    file: Path | None = None,
    held: Candidate | None = None,
) -> None:
    """Keep the fastest of the candidates that were timed and are right; `held`, if none is faster by `GAIN`."""
    there = _best((c for c in candidates if c.checked), 1)
    if not there:
        return
    winner, here = there[0], gpu()
    if held:
        again = [c for c in candidates if c.checked and _name(c) == _name(held)]
        winner = next((c for c in again if winner.ms > (1 - GAIN) * c.ms), winner)
    found = Setting(
        rung=rung.name,
        types=str(rung.types(winner.macros)),
        generation=known.generation(here.arch),
        size_class=size_class(size),
        macros=dict(winner.macros),
        gpu=here.name,
        sms=here.sms,
        recorded=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        commit=commit(),
        size=tuple(size),
        tried=sum(c.ms is not None for c in candidates),
        ms=round(winner.ms, 6),
        tflops=round(winner.tflops, 3),
    )
    known.remember([found], file)
