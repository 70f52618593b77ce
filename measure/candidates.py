"""What a search may try of a rung: its settings, compiled in every core, and why some are dropped untimed.

No GPU is needed. `tune` times what is left.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

from kernels.build import Build, build
from kernels.errors import BuildError
from kernels.gpus import gpu
from kernels.occupancy import LIMITS, Occupancy, occupancy
from kernels.rung import Rung
from kernels.rungs import find
from kernels.shapes import H100_SMS

from .progress import progress


@dataclass(frozen=True)
class Candidate:
    """One setting of a rung. `dropped` says why it was not timed to the end; `ms` is None where no
    launch was timed.
    """

    macros: Mapping[str, int]
    build: Build | None = field(default=None, repr=False)
    threads: int = 0
    shared_bytes: int = 0
    occupancy: Occupancy | None = None
    dropped: str = ""
    ms: float | None = None
    tflops: float | None = None
    checked: bool = False  # right at an awkward size, and timed in full


def settings(rung: str | Rung, fixed: Mapping[str, int] | None = None) -> list[dict[str, int]]:
    """The rung's space as complete macro settings, those that `valid` refuses left out; macros of
    `late` have one value each, the row's.
    """
    rung = find(rung)
    return _product(rung, [name for name in rung.space if name not in rung.late], fixed or {})


def late_settings(rung: str | Rung, macros: Mapping[str, int]) -> list[dict[str, int]]:
    """The settings that share these tiles and differ in the macros of `late`."""
    rung = find(rung)
    tiles = {name: value for name, value in macros.items() if name not in rung.late}
    return _product(rung, rung.late, tiles) if rung.late else []


def _product(rung: Rung, names: Sequence[str], fixed: Mapping[str, int]) -> list[dict[str, int]]:
    names = [name for name in names if name not in fixed]
    found = []
    for values in itertools.product(*(_values(rung, name) for name in names)):
        macros = rung.resolve({**dict(zip(names, values, strict=True)), **fixed})
        try:
            rung.check_needs(macros)
            if rung.valid(**macros):
                found.append(macros)
        except (
            ValueError,
            ZeroDivisionError,
        ):  # warp tiles wider than the block's leave no threads
            continue
    return found


def _values(rung: Rung, name: str) -> tuple[int, ...]:
    """What may be tried of a macro; BLOCKS counts per multiprocessor in the row."""
    sms = (gpu().sms if gpu() else H100_SMS) if name == "BLOCKS" else 1
    return tuple(sms * value for value in rung.space[name])


class _Here:
    """In place of a pool of processes: this one, in a browser, which starts no others."""

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *_) -> None:
        pass

    def submit(self, function, *arguments) -> Future:
        done = Future()
        done.set_result(function(*arguments))
        return done


def compiled(
    space: Sequence[tuple[Rung, dict]],
    arch: str,
    jobs: int | None = None,
    seconds: float = math.inf,
) -> dict[str, list[Candidate]]:
    """{rung: its candidates}, compiled for `arch` in `jobs` processes, in the order of `space`; what
    is not compiled after `seconds` is dropped, with the reason. NoCompiler where there is none.
    """
    if space:  # a missing compiler is said here, before other processes start
        _compile(space[0][0].name, space[0][1], arch)
    end = time.monotonic() + seconds
    workers = os.cpu_count() or 1 if jobs is None else jobs
    found: dict[int, Candidate] = {}
    # A child of a process with a CUDA context must not inherit it: spawn, and name the
    # architecture.
    context = multiprocessing.get_context("spawn")
    most = min(workers, max(1, len(space)))
    browser = sys.platform == "emscripten"
    with _Here() if browser else ProcessPoolExecutor(most, mp_context=context) as pool:
        waiting = {
            pool.submit(_compile, rung.name, macros, arch): number
            for number, (rung, macros) in enumerate(space)
        }
        for future in as_completed(waiting):
            rung, macros = space[waiting[future]]
            if future.cancelled():
                found[waiting[future]] = Candidate(
                    macros, dropped="not compiled: the time was over"
                )
                continue
            if time.monotonic() > end:
                for other in waiting:
                    other.cancel()
            found[waiting[future]] = _judge(rung, macros, future.result(), arch)
            progress(len(found), len(space), f"compiling {rung.name} for sm_{arch}")
    by_rung: dict[str, list[Candidate]] = {rung.name: [] for rung, _ in space}
    for number in range(len(space)):
        by_rung[space[number][0].name].append(found[number])
    return by_rung


def compiled_one(rung: Rung, macros: Mapping[str, int], arch: str) -> Candidate:
    """One setting, compiled in this process."""
    return _judge(rung, dict(macros), _compile(rung.name, dict(macros), arch), arch)


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
