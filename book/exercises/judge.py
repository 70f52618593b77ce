"""Tries a kernel on the emulator, and on the GPU when there is one, and says what is wrong in the kernel's own terms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten, wrap

import numpy as np

import emulator
import kernels
from emulator import errors
from emulator.trace import COLUMNS
from kernels.build import DEFAULT_ARCH
from kernels.launch import launch, parameters, prepare_on_gpu

from .diagnose import explained, findings
from .exercise import Case, Exercise, Goal
from .patience import DoesNotEnd, time_limit

RIGHT, WRONG = "✓", "✗"
WRONG_AT = "wrong at "  # and the label of the launch
QUOTED = 76  # columns of a page
EMULATOR_SECONDS = 20  # the slowest right answer takes two
STOPPED = (errors.ExecutionError, DoesNotEnd)


@dataclass(frozen=True)
class Verdict:
    """What the checker found. `lines` are deterministic: positions and counts, no random values."""

    name: str
    passed: bool
    headline: str
    lines: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        mark = RIGHT if self.passed else WRONG
        told = [line for text in self.lines for line in _folded(text)]
        return "\n".join([f"{mark} {self.name}: {self.headline}", *told])


def _folded(text: str) -> list[str]:
    """A line that fits a page; what a compiler quotes stays as it is."""
    if len(text) <= QUOTED or " | " in text:
        return [f"  {text}"]
    start = " " * (len(text) - len(text.lstrip()) + 2)
    return wrap(text, QUOTED, initial_indent=start, subsequent_indent=f"{start}  ")


def judge(exercise: Exercise, source: str, rng: np.random.Generator | None = None) -> Verdict:
    """Build and try this CUDA source: right at every case, then within the goals, then on the GPU."""
    rng = rng or np.random.default_rng()

    def failed(headline, *lines):
        return Verdict(exercise.name, False, headline, lines)

    try:
        built = compile_cell(exercise.name, source)
    except kernels.BuildError as error:
        return failed(
            "does not compile",
            *(x for d in error.diagnostics for x in str(d).splitlines()),
        )
    if exercise.name not in built.entries:
        return failed(
            f"there is no kernel called {exercise.name}",
            f'It must begin with: extern "C" __global__ void {exercise.name}(',
        )

    def mistake(case: Case, machine: str):
        """(headline, *lines) of what is wrong with this launch, or its trace."""
        args = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in case.args)
        needed = len(parameters(built, exercise.name))
        if needed != len(args):
            return (
                "its parameters have changed",
                f"It is launched with {len(args)}, and takes {needed}.",
            )
        try:
            trace = try_launch(built, exercise.name, case.grid, case.block, args, machine=machine)
        except errors.Unsupported as error:
            return ("the emulator cannot run it", str(error))
        except STOPPED as error:
            return explain_error(error, source, f"{exercise.name}.cu")
        if trace is not None and trace.hazards:
            return explain_hazards(trace, source, f"{exercise.name}.cu")
        said = findings(case, args[case.output], exercise.suspects)
        if said:
            return (f"{WRONG_AT}{case.label}", *said)
        return trace

    cases = exercise.cases(rng)
    traces = {}
    for number, case in enumerate(cases):
        outcome = mistake(case, "emulator")
        if isinstance(outcome, tuple):
            # At a small size several mistakes give the same output: a larger one may name the cause.
            later = (mistake(other, "emulator") for other in cases[number + 1 :])
            named = (o for o in (outcome, *later) if _names_a_cause(o))
            return failed(*next(named, outcome))
        traces[case.label] = outcome
    right = f"right at {_count(len(cases), 'launch', 'es')} on the emulator, all elements"

    reached, missed = [], []
    for goal in exercise.goals:
        value = goal.value(traces[goal.case])
        told = f"{value:,} {goal.words} at {goal.case}; the goal is {goal.limit:,}"
        if value <= goal.limit:
            reached.append(told)
        else:
            missed += [
                told,
                *_worst_lines(traces[goal.case], goal, source, exercise.name),
            ]
    if exercise.inspect is not None:
        missed += exercise.inspect(traces[cases[-1].label])
    if missed:
        return failed("right, but not at its goal", right, *missed)

    gpu = kernels.gpu()
    if gpu is not None:
        built = compile_cell(exercise.name, source, gpu.arch)
        for case in cases:
            outcome = mistake(case, "gpu")
            if isinstance(outcome, tuple):
                headline, *lines = outcome
                return failed(f"right on the emulator, but {headline} on this {gpu.name}", *lines)
        reached.append(f"right on this {gpu.name} too")
    if exercise.race is not None:
        faster, told = _race(exercise, built, gpu)
        if not faster:
            return failed("right, but not fast enough", right, *reached, told)
        reached.append(told)
    return Verdict(exercise.name, True, right, tuple(reached))


def _names_a_cause(outcome) -> bool:
    """Whether a launch's outcome says what was done wrong, not only where the output is."""
    if not isinstance(outcome, tuple):
        return False
    headline, *said = outcome
    return not headline.startswith(WRONG_AT) or explained(said)


def compile_cell(name: str, source: str, arch: int | None = None) -> kernels.Build:
    """Build the CUDA of one exercise, for sm_80 unless told otherwise."""
    return kernels.build(source, name=f"{name}.cu", arch=arch or DEFAULT_ARCH)


def try_launch(
    built: kernels.Build,
    entry: str,
    grid,
    block,
    args,
    shared_bytes: int = 0,
    machine: str = "emulator",
):
    """Launch on this machine. The emulator watches shared memory for hazards, and its Trace is returned."""
    if machine == "gpu":
        return launch(built, entry, grid, block, args, shared_bytes, machine)
    module = emulator.Module(built.ptx)
    try:
        with time_limit(EMULATOR_SECONDS):
            return module.launch(
                entry, grid, block, args, shared_bytes, sanitize=True, progress=False
            )
    except STOPPED as error:
        code = module.entry(entry)
        # A header's line may be at fault: what counts is the line of the kernel that called it.
        error.frames = {
            i.line: i.location.frames() for i in code.instructions.values() if i.location
        }
        raise


def explain_error(error: Exception, source: str, file: str) -> tuple[str, ...]:
    """Headline and lines for what the emulator stopped at, in the lines of `file`."""
    headline, why = next(
        (words for kind, words in _STOPPED.items() if isinstance(error, kind)),
        ("the emulator stopped it", ""),
    )
    frames = getattr(error, "frames", {})

    def at(ptx_line) -> str:
        line = next((n for name, n in frames.get(ptx_line, ()) if name == file), None)
        return quote(line, source, file) if line else f"PTX line {ptx_line}"

    said = [at(error.ptx_line)] if error.ptx_line else []
    if getattr(error, "block", None) is not None:
        thread = f", thread {error.thread}" if error.thread is not None else ""
        message = _in_words(str(error).splitlines()[0], source, file)
        said.append(f"block {error.block}{thread}: {message}")
    for text in getattr(error, "waiting", [])[:4]:
        said.append(re.sub(r"PTX line (\d+)", lambda m: at(int(m[1])), text))
    return (headline, *said, *([why] if why else []))


def _in_words(message: str, source: str, file: str) -> str:
    """The emulator's message without addresses, and with "C" for "argument 2"."""
    for old, new in (
        (r" at address 0x[0-9a-f]+, which is", " at an address that is"),
        (r" at address 0x[0-9a-f]+:", ","),
        (r", 0 bytes past", ", just past"),
    ):
        message = re.sub(old, new, message)
    found = re.search(rf"\b{re.escape(Path(file).stem)}\s*\(([^)]*)\)", source)
    names = [
        part.split()[-1].lstrip("*&")
        for part in (found[1] if found else "").split(",")
        if part.strip()
    ]

    def name(match):
        return names[int(match[1])] if int(match[1]) < len(names) else match[0]

    return re.sub(r"\bargument (\d+)", name, message)


# In order: the more special kind first.
_STOPPED = {
    DoesNotEnd: (
        "it does not end, and was stopped",
        "Which loop never leaves? Look at what its condition counts.",
    ),
    errors.OutOfBounds: (
        "out of bounds",
        "Which index is too large there, and which guard would have caught it?",
    ),
    errors.Misaligned: (
        "misaligned",
        "An access of 4, 8 or 16 bytes needs an address that is a multiple of 4, 8 or 16.",
    ),
    errors.BarrierDivergence: (
        "a barrier that not all threads reach",
        "Every thread of the block must come to the same __syncthreads().",
    ),
    errors.Deadlock: (
        "it hangs, and was stopped",
        "No warp can go on: each waits for what no other will do.",
    ),
    errors.Trap: ("it stopped itself (trap)", ""),
}


def quote(line: int, source: str, file: str = "") -> str:
    """ "line 12: sum += As[ty][k];", as much of the statement as fits a page."""
    lines = source.splitlines()
    if not file.endswith(".cu") or not 1 <= line <= len(lines):
        return f"{file} line {line}"
    statement = lines[line - 1].strip()
    for more in lines[line : line + 3]:
        if statement.split("//")[0].rstrip().endswith((";", "{", "}", ")")):
            break
        statement += " " + more.strip()
    return shorten(f"line {line}: {statement}", QUOTED, placeholder=" ...")


# Kind of hazard: headline, and what the later access (its line first) did to the earlier one.
_HAZARDS = {
    "read-after-write": (
        "a race",
        "reads what another thread has just written, and nothing made it wait",
    ),
    "write-after-read": (
        "a race",
        "overwrites what another thread may still be reading",
    ),
    "write-after-write": ("a race", "writes where another thread has just written"),
    "uninitialised-read": (
        "a read of shared memory that nobody has written",
        "reads it",
    ),
    "unfinished-copy": (
        "a race with a copy",
        "touches what an asynchronous copy has not finished writing",
    ),
}


def explain_hazards(trace, source: str, file: str) -> tuple[str, ...]:
    """Headline, then each pair of source lines that race, once, in the lines of `file`."""
    frames = {row.ptx_line: row.frames for row in trace.instructions}

    def at(ptx_line) -> str:
        line = next((n for name, n in frames.get(ptx_line, ()) if name == file), None)
        return quote(line, source, file) if line else f"PTX line {ptx_line}"

    headline, said = "", []
    for hazard in trace.hazards:
        words, did = _HAZARDS.get(hazard.kind, ("a race", hazard.kind))
        headline = headline or words
        first, second = (
            at(hazard.ptx_line),
            at(hazard.other_ptx_line) if hazard.other_ptx_line else None,
        )
        text = [first, f"  {did}" + (":" if second else ".")] + ([second] if second else [])
        if text not in said:
            said.append(text)
    return (headline, *(line for text in said[:3] for line in text))


def _worst_lines(trace, goal: Goal, source: str, name: str, most: int = 2) -> list[str]:
    """The source lines that spend most of this metric, beyond what conflict-free addresses would take."""
    if goal.metric not in COLUMNS:
        return []
    lines = trace.by_line(f"{name}.cu")
    least = "shared_wavefronts_ideal" if goal.metric == "shared_wavefronts" else None
    excess = {n: row[goal.metric] - (row[least] if least else 0) for n, row in lines.items()}
    said = []
    for n in sorted(excess, key=lambda n: (-excess[n], n))[:most]:
        if excess[n] <= 0:
            continue
        spent = f"{lines[n][goal.metric]:,} {goal.words}"
        if least:
            spent += f", without conflicts {lines[n][least]:,}"
        elif goal.metric == "global_sectors":
            spent += f" in {lines[n]['global_requests']:,} requests"
        said += [quote(n, source, ".cu"), f"  {spent}"]
    return said


def _race(exercise: Exercise, built: kernels.Build, gpu) -> tuple[bool, str]:
    race = exercise.race
    if gpu is None:
        return (
            True,
            f"no GPU here: on one, it must also beat `{race.rung}` at {race.size} cubed",
        )
    import cupy

    n = race.size
    A, B = (cupy.random.standard_normal((n, n), dtype=cupy.float32) for _ in range(2))
    C = cupy.empty((n, n), cupy.float32)
    tile, block = 64, exercise.cases(np.random.default_rng())[0].block
    sizes = (np.int32(n),) * 3
    mine = prepare_on_gpu(built, exercise.name, (n // tile, n // tile), block, (A, B, C, *sizes))
    how = kernels.plan(race.rung, n, n, n)
    theirs = prepare_on_gpu(
        how.build,
        how.rung.entry,
        how.grid,
        how.block,
        how.arguments(A, B, C, 1.0, 0.0),
        how.shared_bytes,
    )
    mine_ms, theirs_ms = _median_ms(mine), _median_ms(theirs)
    told = (
        f"{mine_ms:.2f} ms at {n} cubed on this {gpu.name}; `{race.rung}` takes {theirs_ms:.2f} ms"
    )
    return mine_ms < theirs_ms, told


def _median_ms(run, repeats: int = 20) -> float:
    import cupy

    times = []
    for i in range(repeats + 3):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        run()
        stop.record()
        stop.synchronize()
        if i >= 3:
            times.append(cupy.cuda.get_elapsed_time(start, stop))
    return float(np.median(times))


def _count(n: int, what: str, plural: str) -> str:
    return f"{n} {what}{plural if n != 1 else ''}"
