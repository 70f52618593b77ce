"""Judges what students handed in: the same verdict each time, in parallel, and nothing that an answer says of itself."""

import os
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import current_process, get_context
from pathlib import Path

import numpy as np

from kernels.nvrtc import compiler

from ..catalogue import EXERCISES, find
from ..judge import judge
from . import fence
from .sandbox import Sandbox, Stopped
from .submission import Submission, submissions

SECONDS = 20.0  # of the processor, for one answer
MEMORY = 4 << 30  # bytes beside what the grader has, for one kernel
NOT_HANDED_IN = "not handed in"


@dataclass(frozen=True)
class Grade:
    """The verdict on one answer. seconds: of the processor. lines: what the page's checker says."""

    student: str
    exercise: str
    passed: bool
    headline: str
    lines: tuple[str, ...] = ()
    seconds: float = 0.0


def seed(course: int, student: str, exercise: str) -> np.random.Generator:
    """The random numbers of one answer's inputs and hidden sizes: the student's own, the same each time."""
    return np.random.default_rng(
        [course, zlib.crc32(student.encode()), zlib.crc32(exercise.encode())]
    )


def grade(
    folder: str | Path,
    exercises: Sequence[str] | None = None,
    course: int = 0,
    seconds: float = SECONDS,
    jobs: int | None = None,
    single: str | None = None,
    mapped: Callable[[Callable, list], Iterable] | None = None,
) -> list[Grade]:
    """Judge every submission of this folder at these exercises (all of them unless named), students in order.

    course: a number that seeds all inputs and hidden sizes. seconds: of the processor, for one answer. jobs: processes,
    by default one for each core. single: the folder is one student's. mapped: a parallel map of an engine that is there
    already, such as that of Dask. ValueError for an exercise that does not exist, or a folder without submissions.
    """
    names = [find(name).name for name in exercises or [e.name for e in EXERCISES]]
    try:
        compiler()
    except ImportError as error:
        raise ValueError(f"kernels cannot be graded without a compiler: {error}") from None
    if seconds <= 0:
        raise ValueError(f"{seconds:g} seconds for an answer: a time limit is above 0")
    work = [(one, names, course, seconds) for one in submissions(Path(folder), single)]
    if mapped is not None:
        found = list(mapped(_graded, work))
    else:
        jobs = min(jobs or os.cpu_count() or 1, len(work))
        if jobs < 2:
            found = [_graded(one) for one in work]
        else:
            with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
                found = list(pool.map(_graded, work))
    return [one for rows in found for one in rows]


def _graded(work: tuple[Submission, list[str], int, float]) -> list[Grade]:
    """All answers of one student."""
    one, names, course, seconds = work
    kinds = {name: find(name).is_kernel for name in names}
    found = {}
    for name in names:
        if kinds[name]:
            found[name] = _of_kernel(one, name, course, seconds)
    if not all(kinds.values()):
        found |= _of_python(one, [name for name in names if not kinds[name]], course, seconds)
    return [found[name] for name in names]


def _missing(one: Submission, name: str) -> Grade:
    return Grade(one.student, name, False, NOT_HANDED_IN, tuple(one.refused))


def _of_kernel(one: Submission, name: str, course: int, seconds: float) -> Grade:
    if name not in one.kernels:
        return _missing(one, name)
    source = "\n" + one.kernels[name]  # lines count as the cell shows them
    if why := fence.refused(source):
        return Grade(one.student, name, False, "refused", (why,))
    return _in_its_own_process(one.student, name, source, course, seconds)


def _in_its_own_process(student, name, source, course, seconds) -> Grade:
    """A kernel is judged by a process that can be ended: a compiler that never returns takes nobody with it."""
    began = time.monotonic()
    # Beside threads, as in a worker of Dask, a fork may stand for ever.
    alone = os.name == "posix" and threading.active_count() == 1
    context = get_context("fork" if alone else "spawn")
    # Such a worker is a daemon of multiprocessing, which may have no children; ours ends before it does.
    current_process().daemon = False
    here, there = context.Pipe(duplex=False)
    child = context.Process(
        target=_judged, args=(there, student, name, source, course, seconds), daemon=False
    )
    child.start()
    there.close()
    try:
        said = here.recv() if here.poll(None if os.name == "posix" else 10 * seconds) else None
    except EOFError:
        said = None
    child.kill()
    child.join()
    if said is not None:
        return said
    return Grade(
        student, name, False, "stopped",
        (f"Compiling and judging it did not end within {seconds:g} s of the processor.",),
        time.monotonic() - began,
    )  # fmt: skip


def _judged(pipe, student: str, name: str, source: str, course: int, seconds: float) -> None:
    _limit(seconds)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):  # a kernel's printf goes nowhere
        os.dup2(nowhere, stream)
    began = time.process_time()
    try:
        verdict = judge(find(name), source, rng=seed(course, student, name))
        said = verdict.passed, verdict.headline, verdict.lines
    except MemoryError:
        said = False, "stopped", (f"It asked for more than {MEMORY >> 30} GB of memory.",)
    except Exception as error:  # the checker's fault, and told as such
        said = False, "the checker failed", (f"{type(error).__name__}: {error}",)
    pipe.send(Grade(student, name, *said, seconds=round(time.process_time() - began, 2)))
    pipe.close()


def _limit(seconds: float) -> None:
    if os.name != "posix":
        return
    import resource

    import psutil

    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    here = psutil.Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (here, here))


def _of_python(one: Submission, names: list[str], course: int, seconds: float) -> dict[str, Grade]:
    """Answers that are values or functions, from the student's cells."""
    if not one.cells:
        return {name: _missing(one, name) for name in names}
    with Sandbox(seconds) as sandbox:
        try:
            answers = sandbox.answers(one.cells)
        except Stopped as error:
            answers, why = {}, str(error)
            return {name: Grade(one.student, name, False, "stopped", (why,)) for name in names}
        found = {}
        for name in names:
            if name not in answers:
                found[name] = _missing(one, name)
                continue
            began = time.process_time()
            try:
                mistakes = find(name).mistakes(answers[name], seed(course, one.student, name))
                headline = "not yet" if mistakes else "right"
            except Stopped as error:
                mistakes, headline = [str(error)], "stopped"
            except Exception as error:
                mistakes, headline = [f"{type(error).__name__}: {error}"], "not yet"
            spent = round(time.process_time() - began, 2)
            found[name] = Grade(one.student, name, not mistakes, headline, tuple(mistakes), spent)
        return found
