"""What is wrong with a launch, in the kernel's own terms: where it stopped, what it raced on, or what came out."""

from collections.abc import Sequence

from emulator import errors

from .attempt import Attempt, in_ample_memory
from .causes import Kernel, gone_astray, sizes_differ
from .diagnose import named
from .explain import STOPPED, explain_error
from .finding import told
from .hazards import absent_lanes, explain_absent, explain_hazards, explain_uneven
from .signature import differences
from .wrong_output import explain_output


def mistake(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple:
    """(headline, *findings) of what is wrong with the last of these launches. The cases that follow may name the cause."""
    headline, *found = _mistake(kernel, tries, later)
    found = (*differences(kernel.source, kernel.exercise.skeleton, kernel.name), *found)
    kind = "error" if tries[-1].error is not None else "launch"
    return (
        headline,
        *(told(kind, one)[0] if isinstance(one, str) else one for one in found if one),
    )


def _mistake(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple:
    last = tries[-1]
    if isinstance(last.error, STOPPED):
        if isinstance(last.error, errors.OutOfBounds | errors.Misaligned):
            return _outside(kernel, tries)
        return explain_error(last.error, kernel.source, kernel.file, kernel.name)
    if isinstance(last.error, errors.Unsupported):
        return ("the emulator cannot run it", str(last.error))
    if last.error is not None:
        text = str(last.error).splitlines()[0].rstrip(".")
        return ("it cannot be launched", f"{text}.")
    if absent_lanes(last.trace):
        return explain_absent(last.trace, kernel.source, kernel.file)
    if last.trace.uneven:
        return explain_uneven(last.trace, kernel.source, kernel.file)
    if last.trace.hazards:
        return _raced(kernel, last)
    return explain_output(kernel, tries, later)


def _raced(kernel: Kernel, last: Attempt) -> tuple:
    """The hazards, and the mistake behind a wrong output, where a wrong index may have made both."""
    said = explain_hazards(
        last.trace, kernel.source, kernel.file, case=last.case, kernel=kernel.name
    )
    if last.right:
        return said
    exercise, case, first = kernel.exercise, last.case, last.trace.hazards[0]
    if first.kind == "missing-wgmma-fence":
        return (*said, *named(case, last.output, exercise.suspects))
    if first.kind == "global-race":
        # Threads that share an output have mostly computed a wrong index.
        said += tuple(named(case, last.output, exercise.suspects))
        if exercise.decode:
            said += (exercise.decode(case, last.output),)
        if case.product is not None or case.output == 1:
            said += tuple(gone_astray(kernel, case))
    elif "write" in first.kind and exercise.watch:
        # The turns of two lanes of one warp are not told apart by barriers.
        one_warp = first.other_thread and first.thread[0] // 32 == first.other_thread[0] // 32
        said += () if one_warp else (exercise.watch(case, last.trace),)
    return said


def _outside(kernel: Kernel, tries: Sequence[Attempt]) -> tuple[str, ...]:
    """An access out of bounds or misaligned: the parameter, the stride, the grid or the guard behind it."""
    last, special = tries[-1], tries[-1].case.special
    watch, outside = kernel.exercise.watch, kernel.exercise.outside
    said = explain_error(last.error, kernel.source, kernel.file, kernel.name)
    found = last.error.accessed
    shared = found is not None and found.buffer == "shared memory"
    seen = [] if shared else gone_astray(kernel, last.case)
    if isinstance(last.error, errors.Misaligned):
        question = "Which test keeps a thread from a wide access where the address is no multiple of its width?"
    else:
        question = outside or (BEYOND_SHARED if shared else BEYOND_A_GUARD)
    # Launches that are right though none of their sizes equals another: their indices are right.
    whole = [one for one in tries[:-1] if one.right and sizes_differ(one.case)]
    if whole and special:
        new = f"It is right at {whole[-1].case.label}; new at {last.case.label} is that {special}."
        return (*said, *seen, f"{new} {question}")
    if not whole and watch and not shared:
        trace = in_ample_memory(kernel.built, kernel.entry, last.case)
        if trace and (told := watch(last.case, trace)):
            return (*said, told)
    if whole or seen or outside or isinstance(last.error, errors.Misaligned):
        return (*said, *seen, *([] if whole else [outside]))
    if special and not shared:
        return (*said, f"Here {special}. {question}")
    return (*said, BEYOND_SHARED) if shared else said


BEYOND_SHARED = (
    "Either the index is too large for the array (a loop that runs too far, a wrong row length, two indices in the wrong "
    "order), or the array is declared too small."
)
BEYOND_A_GUARD = "Which test keeps a thread from the accesses that it must not make there?"
