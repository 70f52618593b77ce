"""What is wrong with a launch, in the kernel's own terms: where it stopped, what it raced on, or what came out."""

from collections.abc import Sequence

import numpy as np

from emulator import errors

from .attempt import Attempt, in_ample_memory, what_if
from .bounds import beyond_its_end
from .causes import Kernel, gone_astray, sizes_differ
from .diagnose import named
from .explain import STOPPED, explain_error, explain_refusal, parameter_name
from .finding import told
from .hazards import absent_lanes, explain_absent, explain_hazards, explain_uneven
from .wrong_output import explain_output


def mistake(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple:
    """(headline, *findings) of what is wrong with the last of these launches. The cases that follow may name the cause."""
    headline, *found = _mistake(kernel, tries, later)
    found = (*kernel.differences(), *found)
    kind = "error" if tries[-1].error is not None else "launch"
    return (
        headline,
        *(told(kind, one)[0] if isinstance(one, str) else one for one in found if one),
    )


def _mistake(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple:
    last = tries[-1]
    if isinstance(last.error, STOPPED):
        if isinstance(last.error, errors.OutOfBounds | errors.Misaligned):
            return _outside(kernel, tries, later)
        return explain_error(last.error, kernel.source, kernel.file)
    if isinstance(last.error, errors.Unsupported):
        return ("the emulator cannot run it", str(last.error))
    if last.error is not None:
        return explain_refusal(last.error, int(np.prod(last.case.block)), kernel.built.ptx)
    if absent_lanes(last.trace):
        return explain_absent(last.trace, kernel.source, kernel.file)
    if last.trace.uneven:
        return explain_uneven(last.trace, kernel.source, kernel.file)
    if last.trace.hazards:
        said = explain_hazards(last.trace, kernel.source, kernel.file, case=last.case)
        if last.trace.hazards[0].kind == "global-race" and not last.right:
            # Threads that share an output have mostly computed a wrong index.
            causes = tuple(what_if(kernel.built, kernel.name, last.case))
            said += causes or tuple(named(last.case, last.output, kernel.exercise.suspects))
            if kernel.exercise.decode and (told := kernel.exercise.decode(last.case, last.output)):
                said += (told,)
            if last.case.product is not None or last.case.output == 1:
                said += tuple(gone_astray(kernel, [last.case]))
        elif (
            "write" in last.trace.hazards[0].kind
            and kernel.exercise.watch
            and not last.right
            and not _within_a_warp(last.trace.hazards[0])
        ):
            told = kernel.exercise.watch(last.case, last.trace)
            said += (told,) if told else ()
        if last.trace.hazards[0].kind == "missing-wgmma-fence" and not last.right:
            said += tuple(named(last.case, last.output, kernel.exercise.suspects))
        return said
    return explain_output(kernel, tries, later)


def _within_a_warp(hazard) -> bool:
    return hazard.other_thread is not None and (
        hazard.thread[0] // 32 == hazard.other_thread[0] // 32
    )


def _watched_in_ample_memory(kernel: Kernel, last: Attempt) -> str | None:
    """What the exercise's `watch` says of a launch that would have left an array, in arrays that go on."""
    if kernel.exercise.watch is None or _in_shared_memory(last):
        return None
    trace = in_ample_memory(kernel.built, kernel.name, last.case)
    return trace and kernel.exercise.watch(last.case, trace)


def _whole(tries: Sequence[Attempt]) -> list[Attempt]:
    """Of these launches those that are right though none of their sizes equals another: their indices are right."""
    return [one for one in tries if one.right and sizes_differ(one.case)]


def _outside(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple[str, ...]:
    """An access out of bounds or misaligned: the parameter, the stride, the grid or the guard behind it."""
    last = tries[-1]
    said = explain_error(last.error, kernel.source, kernel.file)
    if _in_shared_memory(last):
        beyond = beyond_its_end(kernel.exercise, kernel.source, [last.case], last.error)
        if beyond:
            return beyond
    if whole := _whole(tries[:-1]):
        case = last.case
        seen = [] if _in_shared_memory(last) else gone_astray(kernel, [case])
        if case.special and seen and _of_wide_only(kernel, last):
            return (*said, *seen, _right_before(whole[-1], case))
        if case.special:
            return (*said, *seen, f"{_right_before(whole[-1], case)} {_question(last, kernel)}")
        return (*said, *seen)
    causes = list(what_if(kernel.built, kernel.name, last.case))
    if not causes and (told := _watched_in_ample_memory(kernel, last)):
        causes = [told]
    if not causes:
        causes = [] if _in_shared_memory(last) else gone_astray(kernel, [last.case])
        if kernel.exercise.outside and not (causes and _of_wide_only(kernel, last)):
            causes.append(kernel.exercise.outside)
    if not causes and isinstance(last.error, errors.OutOfBounds):
        if _in_shared_memory(last):
            causes = [BEYOND_SHARED]
        elif last.case.special:
            causes = [_place(last, kernel), f"Here {last.case.special}. {_question(last, kernel)}"]
        else:
            causes = [
                _place(last, kernel),
                "It happens where every tile fits, so no guard is missing: look at the index itself, and at the loop that "
                "counts it, which may make a turn too many.",
            ]
    return (*said, *filter(None, causes))


def _of_wide_only(kernel: Kernel, last: Attempt) -> bool:
    """Whether what the exercise says of accesses outside is about float4s, and this one takes single elements."""
    return "float4" in kernel.exercise.outside and ".v" not in getattr(
        last.error, "instruction", ""
    )


def _right_before(one: Attempt, case) -> str:
    return f"It is right at {one.case.label}; new at {case.label} is that {case.special}."


def _in_shared_memory(last: Attempt) -> bool:
    found = getattr(last.error, "accessed", None)
    return (
        isinstance(last.error, errors.OutOfBounds)
        and bool(found)
        and found.buffer == "shared memory"
    )


BEYOND_SHARED = (
    "Either the index is too large for the array (a loop that runs too far, a wrong row length, two indices in the wrong "
    "order), or the array is declared too small."
)


def _question(last: Attempt, kernel: Kernel) -> str:
    """What to look at, where a launch with new sizes leaves an array."""
    if isinstance(last.error, errors.Misaligned):
        return "Which test keeps a thread from a wide access where the address is no multiple of its width?"
    if kernel.exercise.outside and not _of_wide_only(kernel, last):
        return kernel.exercise.outside
    if _in_shared_memory(last):
        return BEYOND_SHARED
    return "Which test keeps a thread from the accesses that it must not make there?"


def _place(last: Attempt, kernel: Kernel) -> str:
    sizes = [
        f"{parameter_name(i, kernel.source, kernel.name)} has {' x '.join(map(str, a.shape))} elements"
        for i, a in enumerate(last.case.args)
        if isinstance(a, np.ndarray)
    ]
    return f"{', '.join(sizes)}."
