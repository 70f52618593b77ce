"""Tries a kernel on the emulator, and on the GPU when there is one, and says what is wrong in the kernel's own terms."""

import re
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO

import numpy as np

import kernels
from kernels.launch import loaded

from . import includes
from .attempt import Attempt, attempt, compile_cell, one_block_after_another
from .bounds import beyond_its_end
from .causes import Kernel
from .compiler_words import explained as in_words
from .diagnose import findings
from .exercise import Exercise
from .explain import own_line, parameter_name, quote
from .faster_than import faster_than
from .finding import Finding
from .goals import beyond_at_drawn_size, measured
from .hazards import absent_lanes
from .hidden_races import between_blocks
from .mistake import mistake
from .pictures import Meeting, of_accesses
from .verdict import Verdict
from .words import words


def judge(exercise: Exercise, source: str, rng: np.random.Generator | None = None) -> Verdict:
    """Build and try this CUDA source: right at every case, then within the goals, then on the GPU.

    rng: draws the inputs and the last size; with the same one the verdict is the same. What the kernel prints is kept
    apart, so that nobody takes it for the verdict.
    """
    with redirect_stdout(StringIO()) as printed:
        verdict = _judged(exercise, source, rng or np.random.default_rng())
    return replace(verdict, printed=printed.getvalue())


def _judged(exercise: Exercise, source: str, rng: np.random.Generator) -> Verdict:

    def failed(headline, *lines, pictures=()):
        found = tuple(one for one in lines if isinstance(one, Finding))
        said = tuple(map(words, lines))
        return Verdict(exercise.name, False, headline, said, tuple(pictures), findings=found)

    try:
        if unknown := includes.missing(source, f"{exercise.name}.cu"):
            raise kernels.BuildError("", unknown)
        built = compile_cell(exercise.name, source, exercise.arch)
    except kernels.BuildError as error:
        lines = (x for d in error.diagnostics for x in in_words(d, source).splitlines())
        return failed("does not compile", *lines)
    if exercise.name not in built.entries:
        return failed(
            f"there is no kernel called {exercise.name}",
            f'It must begin with: extern "C" __global__ void {exercise.name}(',
        )
    kernel = Kernel(exercise, source, built)
    tries: list[Attempt] = []
    cases = exercise.cases(rng)
    for case in cases:
        tries.append(attempt(built, exercise.name, case))
        if _is_mistake(tries[-1]):
            beyond = beyond_its_end(exercise, source, [tries[-1].case])
            seen = () if beyond else _pictures(kernel, tries[-1])
            return failed(*(beyond or mistake(kernel, tries, cases[len(tries) :])), pictures=seen)
    if beyond := beyond_its_end(exercise, source, [tries[0].case, tries[-1].case]):
        return failed(*beyond)
    if hidden := between_blocks(exercise, source, built, cases):
        return failed(*hidden)
    if by_luck := _by_luck(kernel, tries[0]):
        return failed(*by_luck)
    if stale := _wrong_again(kernel, cases[0]):
        return failed(*stale)
    right = f"right at {len(tries)} launch{'es' * (len(tries) > 1)} on the emulator, all elements"

    traces = {one.case.label: one.trace for one in tries}
    drawn = of_accesses(exercise, traces, source)
    reached, missed = measured(kernel, traces)
    if exercise.inspect is not None:
        label = exercise.needs[0].case if exercise.needs else cases[0].label
        missed += exercise.inspect(
            built, next(one.trace for one in tries if one.case.label == label)
        )
    missed = missed or beyond_at_drawn_size(kernel, tries)
    if missed:
        shown = [picture for picture in drawn if picture.missed]
        return failed("right, but not at its goal", right, *missed, pictures=shown)

    gpu = kernels.gpu()
    if gpu is not None and exercise.arch and f"{gpu.arch}a" != exercise.arch:
        reached.append(f"not tried on this {gpu.name}: it is made for sm_{exercise.arch}")
    elif gpu is not None and (built := _for_gpu(exercise, source, gpu)) is None:
        reached.append(
            f"not tried on this {gpu.name}: it needs instructions that sm_{gpu.arch} lacks"
        )
    elif gpu is not None:
        for one in tries:
            here = attempt(built, exercise.name, one.case, machine="gpu")
            if not here.right:
                said = (
                    [str(here.error)]
                    if here.error
                    else findings(one.case, here.output, exercise.suspects)
                )
                where = f"right on the emulator, but wrong at {one.case.label} on this {gpu.name}"
                return failed(where, *said)
        reached.append(f"right on this {gpu.name} too")
    if exercise.faster_than is not None and built is not None:
        faster, told = faster_than(exercise, built, gpu)
        if not faster:
            return failed("right, but not fast enough", right, *reached, told, pictures=drawn)
        reached.append(told)
    return Verdict(exercise.name, True, right, tuple(reached), drawn)


def _by_luck(kernel: Kernel, one: Attempt) -> tuple[str, ...]:
    """Headline and lines where atomics meet, and the output is right only because of the order of the blocks."""
    atomics = [row for row in one.trace.instructions if row.opcode.startswith(("atom", "red."))]
    if not atomics or one_block_after_another(kernel.built, kernel.name, one.case):
        return ()
    name = parameter_name(one.case.output, kernel.source, kernel.name)
    lines = [own_line(row.frames, kernel.file) for row in atomics]
    return (
        "right only in one order of the blocks",
        *(quote(n, kernel.source, kernel.file) for n in dict.fromkeys(filter(None, lines))),
        f"With the blocks one after the other the result is wrong at {one.case.label}. What a thread reads of {name} by itself "
        "may be old, or hold what other blocks have added: an atomic reads and adds in one step, and needs no other reading.",
    )


_VARIABLE = re.compile(r"(?m)^\s*(?:\.visible\s+)?\.global\s[^;=]*?(\w+)(?:\[[^\]]*\])?;")


def _wrong_again(kernel: Kernel, case) -> tuple[str, ...]:
    """Headline and lines where a second launch is wrong, because a __device__ variable keeps what the first left there."""
    names = _VARIABLE.findall(kernel.built.ptx)
    if not names:
        return ()
    module = loaded(kernel.built.ptx).fresh()
    for _ in range(2):
        again = attempt(kernel.built, kernel.name, case, module=module)
    if again.right:
        return ()
    return (
        "right at the first launch, wrong at the second",
        f"A __device__ variable ({', '.join(names[:3])}) keeps its value from launch to launch. Set it back before the kernel "
        "ends, or do without it.",
    )


def _for_gpu(exercise: Exercise, source: str, gpu) -> kernels.Build | None:
    """What compiled for the emulator, compiled for this GPU; None for a GPU that is too old for it."""
    try:
        return compile_cell(exercise.name, source, exercise.arch or gpu.arch)
    except kernels.BuildError:
        return None


def _pictures(kernel: Kernel, one: Attempt) -> tuple:
    """Of a launch that is wrong: its first hazard. Nothing where it stopped."""
    if one.error is not None or one.trace.uneven or absent_lanes(one.trace):
        return ()
    return tuple(Meeting(hazard, kernel.source) for hazard in one.trace.hazards[:1])


def _is_mistake(one: Attempt) -> bool:
    return not one.right or bool(one.trace.hazards or one.trace.uneven or absent_lanes(one.trace))
