"""What is wrong with a launch, in the kernel's own terms: the first source of causes that has one is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

import kernels
from emulator import errors

from .addresses import shared_outputs, strides, untouched
from .attempt import (
    Attempt,
    attempt,
    compile_cell,
    in_ample_memory,
    what_if,
)
from .bounds import beyond_its_end
from .diagnose import (
    NOTHING_ADDED,
    explained,
    findings,
    named,
    place_and_values,
    stops_at_another_size,
    where,
    wrong,
)
from .exercise import Exercise
from .explain import (
    STOPPED,
    explain_error,
    explain_refusal,
    own_line,
    parameter_name,
)
from .hazards import absent_lanes, explain_absent, explain_hazards, explain_uneven, two_copies
from .launches import unwritten
from .made_of import made_of, of_an_input_per_line
from .places import declared_shared
from .reach import beyond_rows, fixed_sizes, unused_axis
from .settings import (
    computes_in_half,
    digits_lost,
    if_copies_were_instant,
    makes_whole_numbers,
    narrowed,
    whole_numbers,
    with_narrow_accesses,
)
from .signature import differences
from .terms import of_probe
from .territory import astray, leaves_out
from .trials import TrialFailed, Trials
from .weak import between_blocks


@dataclass(frozen=True)
class Kernel:
    """A reader's kernel, built, with the exercise that it is for."""

    exercise: Exercise
    source: str
    built: kernels.Build

    @property
    def name(self) -> str:
        return self.exercise.name

    @property
    def file(self) -> str:
        return f"{self.name}.cu"

    def solution(self) -> kernels.Build:
        """What the exercise's own solution compiles to, for the same GPU."""
        return compile_cell(self.name, self.exercise.solution, self.exercise.arch)

    def differences(self) -> list[str]:
        return differences(self.source, self.exercise.skeleton, self.name)


def mistake(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple[str, ...]:
    """(headline, *lines) of what is wrong with the last of these launches. The cases that follow may name the cause."""
    last = tries[-1]
    if isinstance(last.error, STOPPED):
        if isinstance(last.error, errors.OutOfBounds | errors.Misaligned):
            return _outside(kernel, tries, later)
        return _with_differences(kernel, explain_error(last.error, kernel.source, kernel.file))
    if isinstance(last.error, errors.Unsupported):
        return ("the emulator cannot run it", str(last.error))
    if last.error is not None:
        return _refused(kernel, last)
    if absent_lanes(last.trace):
        return explain_absent(last.trace, kernel.source, kernel.file)
    if last.trace.uneven:
        return explain_uneven(last.trace, kernel.source, kernel.file)
    if last.trace.hazards:
        said = explain_hazards(last.trace, kernel.source, kernel.file, case=last.case)
        if last.trace.hazards[0].kind == "global-race" and not last.right:
            # Threads that share an output have mostly computed a wrong index.
            said += tuple(
                _causes_in_addresses(kernel, [last.case, *later])
                or what_if(kernel.built, kernel.name, last.case)
            ) or tuple(named(last.case, last.output, kernel.exercise.suspects))
            if kernel.exercise.decode and (told := kernel.exercise.decode(last.case, last.output)):
                said += (told,)
            if last.case.product is not None or last.case.output == 1:
                said += tuple(_astray(kernel, [last.case]))
        elif (
            "write" in last.trace.hazards[0].kind
            and kernel.exercise.watch
            and not last.right
            and not _within_a_warp(last.trace.hazards[0])
        ):
            told = kernel.exercise.watch(last.case, last.trace)
            said += (told,) if told else ()
        elif (first := last.trace.hazards[0]).kind == "unfinished-copy" and (
            not two_copies(first, kernel.file)
        ):
            told = if_copies_were_instant(
                kernel.built,
                kernel.name,
                last.case,
                lambda other: _told_of(kernel, other, last.case),
            )
            said += (told,) if told else ()
        if last.trace.hazards[0].kind == "missing-wgmma-fence" and not last.right:
            said += tuple(named(last.case, last.output, kernel.exercise.suspects))
        return _with_differences(kernel, said)
    return _wrong(kernel, tries, later)


def _within_a_warp(hazard) -> bool:
    """Whether two lanes of one warp race: their turns are not told apart by barriers."""
    return hazard.other_thread is not None and (
        hazard.thread[0] // 32 == hazard.other_thread[0] // 32
    )


def _with_differences(kernel: Kernel, said: tuple[str, ...]) -> tuple[str, ...]:
    headline, *lines = said
    return (headline, *kernel.differences(), *lines)


# Hazards behind which a wrong index may stand.
OF_INDICES = (
    "global-race",
    "write-after-write",
    "read-after-write",
    "write-after-read",
    "uninitialised-read",
    "unfinished-copy",
)


def _watched_in_ample_memory(kernel: Kernel, last: Attempt) -> str | None:
    """What the exercise's `watch` says of a launch that would have left an array, in arrays that go on."""
    if kernel.exercise.watch is None or _in_shared_memory(last):
        return None
    trace = in_ample_memory(kernel.built, kernel.name, last.case)
    return trace and kernel.exercise.watch(last.case, trace)


def _decoded_in_ample_memory(kernel: Kernel, last: Attempt) -> str | None:
    """What the exercise's `decode` says of a launch that would have left shared memory, where that goes on."""
    if kernel.exercise.decode is None or not _in_shared_memory(last):
        return None
    case = replace(last.case, shared_bytes=last.case.shared_bytes + MORE_SHARED_BYTES)
    one = attempt(kernel.built, kernel.name, case)
    return kernel.exercise.decode(case, one.output) if one.error is None else None


def _refused(kernel: Kernel, last: Attempt) -> tuple[str, ...]:
    """The launch itself was refused: parameters, threads per block, shared memory."""
    if said := kernel.differences():
        return ("its parameters have changed", *said)
    return explain_refusal(last.error, int(np.prod(last.case.block)))


def _whole(tries: Sequence[Attempt]) -> list[Attempt]:
    """Of these launches those that are right though none of their sizes equals another: their indices are right."""
    return [one for one in tries if one.right and _sizes_differ(one.case)]


def _sizes_differ(case) -> bool:
    if case.product is None:
        shape = case.args[0].shape if isinstance(case.args[0], np.ndarray) else case.expected.shape
        return len(set(shape)) == len(shape)
    (M, K), N = case.product.A.shape, case.product.B.shape[1]
    return len({M, N, K}) == 3


def _new_here(tries: Sequence[Attempt]) -> str | None:
    """What is special at the last launch, where an earlier one was right."""
    right = [one.case.label for one in tries[:-1] if one.right]
    special = tries[-1].case.special
    return (
        f"It is right at {right[0]}; new at {tries[-1].case.label} is that {special}."
        if right and special
        else None
    )


def _outside(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple[str, ...]:
    """An access out of bounds or misaligned: the parameter, the stride, the grid or the guard behind it."""
    last = tries[-1]
    said = explain_error(last.error, kernel.source, kernel.file)
    if causes := kernel.differences():
        return (*said, *causes)
    if "shared memory" in str(last.error):
        beyond = beyond_its_end(kernel.exercise, kernel.source, [last.case], last.error)
        if beyond:
            return beyond
    copied = getattr(last.error, "instruction", "").startswith("cp.async")
    if copied and isinstance(last.error, errors.OutOfBounds) and not _in_shared_memory(last):
        seen = _astray(kernel, [last.case])
        if seen and leaves_out(last.case, *_of_a_block(kernel, last.case)):
            return (*said, *seen)
        return (*said, *seen, COPIED_BEYOND)
    if causes := _reach(kernel, [last.case, *later]) or _fixed(kernel, tries):
        return (*said, *causes)
    if whole := _whole(tries[:-1]):
        case = last.case
        seen = [] if _in_shared_memory(last) else _astray(kernel, [case], copied)
        if case.special and seen and _of_wide_only(kernel, last):
            return (*said, *seen, _right_before(whole[-1], case))
        if case.special:
            return (*said, *seen, f"{_right_before(whole[-1], case)} {_question(last, kernel)}")
        return (*said, *seen)
    causes = _causes_in_addresses(kernel, [last.case, *later])
    if not causes:
        causes = list(what_if(kernel.built, kernel.name, last.case))
    if not causes and (told := _watched_in_ample_memory(kernel, last)):
        causes = [told]
    if not causes and (told := _decoded_in_ample_memory(kernel, last)):
        causes = [told]
    if not causes:
        causes = [] if _in_shared_memory(last) else _astray(kernel, [last.case], copied)
        if kernel.exercise.outside and not (causes and _of_wide_only(kernel, last)):
            causes.append(kernel.exercise.outside)
    if not causes and isinstance(last.error, errors.OutOfBounds):
        if _in_shared_memory(last):
            causes = [_beyond_shared(last, kernel)]
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


MORE_SHARED_BYTES = 1 << 13  # behind the arrays of a kernel, to see where its indices lead


NO_ERROR = errors.OutOfBounds("no access left shared memory, but one may have left an array in it")


def _right_before(one: Attempt, case) -> str:
    return f"It is right at {one.case.label}; new at {case.label} is that {case.special}."


def _in_shared_memory(last: Attempt) -> bool:
    return isinstance(last.error, errors.OutOfBounds) and "shared memory has" in str(last.error)


def _beyond_shared(last: Attempt, kernel: Kernel) -> str:
    """What an index beyond shared memory means, with the declarations of the arrays in its line."""
    lines = (
        n for n in [own_line(last.error.frames.get(last.error.ptx_line, ()), kernel.file)] if n
    )
    declared = declared_shared(kernel.source, next(lines, None))
    sizes = f"Declared here: {', '.join(declared)}. " if declared else ""
    return (
        f"{sizes}Either the index is too large for the array (a loop that runs too far, a wrong row length, two indices in "
        "the wrong order), or the array is declared too small."
    )


def _question(last: Attempt, kernel: Kernel) -> str:
    """What to look at, where a launch with new sizes leaves an array."""
    if isinstance(last.error, errors.Misaligned):
        return "Which test keeps a thread from a wide access where the address is no multiple of its width?"
    if kernel.exercise.outside and not _of_wide_only(kernel, last):
        return kernel.exercise.outside
    if _in_shared_memory(last):
        return _beyond_shared(last, kernel)
    return "Which test keeps a thread from the accesses that it must not make there?"


COPIED_BEYOND = (
    "The copy begins where there is no more tile: a loop that fetches ahead has nothing left to fetch in its last turns, and "
    "the turns before it must not start more tiles than there are. Test the number of the tile before the copy."
)


def _fixed(kernel: Kernel, tries: Sequence[Attempt]) -> list[str]:
    """A size of a launch that is right, written into the kernel as a number."""
    right = (one.case for one in tries[:-1] if one.right)
    said = (
        fixed_sizes(case, kernel.source, kernel.exercise.skeleton, kernel.exercise.solution)
        for case in right
    )
    return next(filter(None, said), [])


def _reach(kernel: Kernel, cases) -> list[str]:
    """A loop that goes on beyond the end of an array, from the first case that shows one."""
    for case in cases:
        columns = case.expected.shape[1] if case.product is not None else 32
        flat = all(a.ndim == 1 for a in case.args if isinstance(a, np.ndarray))
        if case.drawn or not (flat or case.product) or (columns % 16 and columns < 32):
            continue  # nothing to tell, or a row's end is left as well, and looks like the end of its matrix
        trace = in_ample_memory(kernel.built, kernel.name, case)
        if trace is not None and (said := beyond_rows(case, trace, kernel.source, kernel.name)):
            return said
    return []


def _place(last: Attempt, kernel: Kernel) -> str:
    sizes = [
        f"{parameter_name(i, kernel.source, kernel.name)} has {' x '.join(map(str, a.shape))} elements"
        for i, a in enumerate(last.case.args)
        if isinstance(a, np.ndarray)
    ]
    return f"{', '.join(sizes)}."


def _causes_in_addresses(kernel: Kernel, cases) -> list[str]:
    """Row lengths that the kernel takes wrongly, from the first case that shows any."""
    for case in cases:
        if case.drawn or not _sizes_differ(case):
            continue
        trace = in_ample_memory(kernel.built, kernel.name, case)
        if trace is not None and (said := strides(case, trace, kernel.source, kernel.name)):
            return said
    return []


def _wrong(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple[str, ...]:
    """A launch that ran to its end with a wrong output, and no hazard. The first source of causes that has any is asked."""
    last = tries[-1]
    suspects = kernel.exercise.suspects
    headline = f"wrong at {last.case.label}"
    if causes := kernel.differences():
        return (headline, *causes)
    if hidden := between_blocks(kernel.exercise, kernel.source, kernel.built, [last.case]):
        return hidden
    others = [attempt(kernel.built, kernel.name, case) for case in later]
    outputs = [(o.case, o.output) for o in others if o.error is None and not o.case.drawn]
    fine = [one.case for one in (*tries, *others) if one.right]
    said = findings(last.case, last.output, suspects, outputs, fine)
    unset = np.isnan(last.output.astype(float)).any()
    if unset and (causes := list(what_if(kernel.built, kernel.name, last.case))):
        return (headline, *causes)
    known = named(last.case, last.output, suspects, outputs, fine)
    watch, decode = kernel.exercise.watch, kernel.exercise.decode
    told = None if known else watch and _watched(kernel, last)
    told = told or (None if known else decode and decode(last.case, last.output))
    if told:
        made = _made_of(kernel, [last]) if watch and kernel.exercise.arch is None else ()
        return (headline, *made[1:3], told)
    if "holds what belongs" in said[-1] and (
        rows := _causes_in_addresses(kernel, [last.case, *later]) or _astray(kernel, [last.case])
    ):
        return (headline, *said, *rows)
    if "the sum is right, and stored at another element" in said[-1] and (
        made := _made_of(kernel, [last])
    ):
        return (headline, *said, *made[2:])
    if said[-1].startswith("Every element is too ") and (made := _made_of(kernel, [last])):
        return made
    if _by_chance(kernel, last, said[-1]):
        bad = wrong(last.case, last.output) & ~unwritten(last.output)
        said = [*said[:-1], place_and_values(last.case, last.output, bad)]
    if explained(said):
        if "holds what belongs" not in said[-1]:
            return (headline, *said)
        new = _new_here(tries)
        return (headline, *said, *([new] if new else []))
    # At a small size several mistakes give the same output: a larger one may name the cause.
    for case, output in outputs:
        if more := named(case, output, suspects, outputs, fine, (last.case, last.output)):
            return (f"wrong at {case.label}", *more)
    causes = untouched(last.case, last.trace, kernel.source, kernel.name)
    causes = causes or unused_axis(last.case, kernel.built.ptx) or _fixed(kernel, tries)
    if not causes and (causes := stops_at_another_size(last.case, unwritten(last.output))):
        causes = [*_astray(kernel, [last.case]), *causes]
    causes = causes or shared_outputs(last.case, last.trace)
    causes = causes or list(what_if(kernel.built, kernel.name, last.case))
    causes = causes or _causes_in_addresses(kernel, [last.case, *later])
    if not causes and kernel.exercise.settings:
        narrow = narrowed(kernel.exercise.settings, kernel.built, kernel.name, last.case)
        before = [f"It is right at {one.case.label}." for one in tries[:-1] if one.right]
        causes = [narrow, *before[:1]] if narrow else []
    lost = (
        None
        if causes
        else digits_lost(last.case, last.output, last.trace, kernel.source, kernel.name)
    )
    if lost and ": line " in lost:
        return (headline, lost)
    if (
        not causes
        and not unset
        and (beyond := beyond_its_end(kernel.exercise, kernel.source, [last.case], NO_ERROR))
    ):
        return beyond
    if not causes and kernel.exercise.arch is None and (made := _made_of(kernel, [last, *others])):
        return (*made, *_not_begun(kernel, last))
    if lost and not causes:
        return (headline, lost)
    if not causes and (counted := _counted(kernel, [last.case, *later])):
        return (headline, *said, counted)
    if not causes and unwritten(last.output).any():
        causes = _astray(kernel, [last.case])
    if not causes and not unwritten(last.output).any():
        stopped = (one for one in others if isinstance(one.error, errors.OutOfBounds))
        if one := next(stopped, None):
            return _outside(kernel, [*tries[:-1], one], ())
        causes = _not_begun(kernel, last)
    if not causes and not unset:
        beyond = beyond_its_end(kernel.exercise, kernel.source, [last.case], NO_ERROR)
        if beyond:
            return beyond
    if not causes and said[-1].endswith(NOTHING_ADDED):
        causes = [
            "The sums are stored as they began: the loop that adds never runs, or what it adds up is not what is stored."
        ]
    if not causes and unwritten(last.output).any():
        causes = [
            "No thread stores there: a loop or the grid stops too early, a step is too large, or a guard is too strict "
            "(does it compare the row with the number of rows, and the column with that of columns?)."
        ]
    new = _new_here(tries)
    return (headline, *said, *causes, *([new] if new else []))


def _not_begun(kernel: Kernel, last: Attempt) -> list[str]:
    """What the task asks for and the kernel does nowhere."""
    return [
        f"The task asks for this: {need.task}. So far: {need.value(last.trace):,} {need.words}."
        for need in kernel.exercise.needs
        if not need.value(last.trace)
    ]


def _watched(kernel: Kernel, last: Attempt) -> str | None:
    """What `watch` says of the first block, or else of the block of the first wrong element, where each block has one."""
    case, watch = last.case, kernel.exercise.watch
    told = watch(case, last.trace)
    if told or len(case.grid) > 1 or case.expected.shape != tuple(case.grid):
        return told
    block = int(np.flatnonzero(wrong(case, last.output))[0])
    trace = in_ample_memory(kernel.built, kernel.name, case, [(block, 0, 0)])
    told = trace and watch(case, trace)
    return f"In block {block}, {told[0].lower()}{told[1:]}" if told else None


def _by_chance(kernel: Kernel, last: Attempt, said: str) -> bool:
    """Whether values look rounded, and no line of the kernel rounds so."""
    if said.startswith("All values fit a half"):
        return not computes_in_half(last.trace, kernel.source, kernel.name)
    if said.startswith("Every element is a whole number"):
        return not makes_whole_numbers(last.trace, kernel.source, kernel.name)
    return False


def _goes_on_after_the_sum(case) -> bool:
    """Whether the right output is a function of sums, such as gelu: whole numbers say little of it."""
    if case.expected.ndim != 2 or not case.tolerance:
        return False
    return case.product is None or not np.allclose(case.expected, case.product.C, 1e-3, 1e-3)


def _made_of(kernel: Kernel, tried: Sequence[Attempt]) -> tuple[str, ...]:
    """Headline and lines on what a wrong element is made of, in the smallest of these launches that is wrong."""
    bad = [one for one in tried if one.error is None and not one.right and not one.case.drawn]
    if not bad:
        return ()
    one = (
        bad[0] if _elements(bad[0].case) <= MANY else min(bad, key=lambda one: _elements(one.case))
    )
    mine, right = (
        Trials(built, kernel.name, one.case) for built in (kernel.built, kernel.solution())
    )
    bad_ones = wrong(one.case, one.output) & ~unwritten(one.output)
    if _goes_on_after_the_sum(one.case):
        at = tuple(int(i) for i in np.argwhere(bad_ones)[0]) if bad_ones.any() else None
        told = at and of_an_input_per_line(mine, right, at, kernel.source)
    else:
        told = made_of(mine, right, one.output, kernel.source)
    if told is None:
        return ()
    told_where = where(bad_ones)
    return (
        f"wrong at {one.case.label}",
        f"{told_where[0].upper()}{told_where[1:]} wrong.",
        told,
        *(whole_numbers(one.trace, kernel.source, kernel.name) if _says_rounded(told) else ()),
        *(_astray(kernel, [one.case]) or _in_shared(kernel, one)),
    )


def _in_shared(kernel: Kernel, one: Attempt) -> list[str]:
    """Where to look in a kernel with shared memory whose blocks read what they have to."""
    lines = {
        own_line(row.frames, kernel.file)
        for row in one.trace.instructions
        if row.shared_wavefronts and row.opcode.startswith(("ld", "st"))
    } - {None}
    if not lines:
        return []
    listed = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, sorted(lines)[:6]))}"
    return [
        "Each block reads the right elements of global memory, so look at the indices where shared memory is written and "
        f"read ({listed}), and at what is done with the values."
    ]


def _told_of(kernel: Kernel, built: kernels.Build, case, output=None) -> str | None:
    """What the first wrong element of this build's output is made of."""
    mine, right = (Trials(one, kernel.name, case) for one in (built, kernel.solution()))
    try:
        output = mine.raw({}) if output is None else output
    except TrialFailed:
        return None
    return made_of(mine, right, output, kernel.source)


def _says_rounded(told: str) -> bool:
    return "behind the point" in told or "something else is done" in told


MANY = 20_000  # elements in the arrays of a launch: trials of a larger one take long


def _elements(case) -> int:
    return sum(a.size for a in case.args if isinstance(a, np.ndarray))


def _astray(kernel: Kernel, cases, copies: bool = False) -> list[str]:
    """What a block touches and must not, or must and does not, in the first of these cases that shows it."""
    for case in cases if kernel.exercise.arch is None else ():
        if case.drawn:
            continue
        mine, right = _of_a_block(kernel, case, copies)
        if said := astray(case, mine, right, kernel.source, kernel.name):
            return [said]
    return []


def _of_a_block(kernel: Kernel, case, copies: bool = False):
    """Two functions that give the trace of one block in ample memory: of the reader's kernel, and of the solution."""
    builds = [with_narrow_accesses(built, copies) for built in (kernel.built, kernel.solution())]
    return tuple(
        lambda block, built=built: in_ample_memory(built, kernel.name, case, [block])
        for built in builds
    )


def _counted(kernel: Kernel, cases) -> str | None:
    """How often the terms of a sum are added, from the first case that can be asked."""
    case = next((case for case in cases if case.probe is not None), None)
    if case is None:
        return None
    return of_probe(lambda probe: attempt(kernel.built, kernel.name, probe), case)
