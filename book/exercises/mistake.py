"""What is wrong with a launch, in the kernel's own terms: the first source of causes that has one is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
from .diagnose import findings, named, stops_at_another_size, unexplained, wrong
from .exercise import Exercise
from .explain import (
    STOPPED,
    explain_error,
    explain_refusal,
    own_line,
    parameter_name,
)
from .finding import EFFECT, HINT, Finding, explained, kinds, told
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
from .words import MOVED


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


def mistake(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple:
    """(headline, *findings) of what is wrong with the last of these launches. The cases that follow may name the cause."""
    headline, *found = _mistake(kernel, tries, later)
    kind = "error" if tries[-1].error is not None else "launch"
    return (
        headline,
        *(told(kind, one)[0] if isinstance(one, str) else one for one in found if one),
    )


def _mistake(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple:
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
    return explain_refusal(last.error, int(np.prod(last.case.block)), kernel.built.ptx)


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
    if _in_shared_memory(last):
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
    found = getattr(last.error, "accessed", None)
    return (
        isinstance(last.error, errors.OutOfBounds)
        and bool(found)
        and found.buffer == "shared memory"
    )


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


class Wrong:
    """A launch that ran to its end with a wrong output and no hazard, and what the other launches of the kernel gave."""

    def __init__(self, kernel: Kernel, tries: Sequence[Attempt], later):
        self.kernel, self.tries, self.later, self.last = kernel, tries, later, tries[-1]
        self.case, self.output = self.last.case, self.last.output
        self.headline = f"wrong at {self.case.label}"
        self.unset = np.isnan(self.output.astype(float)).any()
        self.gaps = unwritten(self.output)

    @cached_property
    def others(self) -> list[Attempt]:
        return [attempt(self.kernel.built, self.kernel.name, case) for case in self.later]

    @cached_property
    def outputs(self) -> list:
        return [(o.case, o.output) for o in self.others if o.error is None and not o.case.drawn]

    @cached_property
    def fine(self) -> list:
        return [one.case for one in (*self.tries, *self.others) if one.right]

    @cached_property
    def known(self) -> list[Finding]:
        """The suspect that gives this output."""
        return named(self.case, self.output, self.kernel.exercise.suspects, self.outputs, self.fine)

    @cached_property
    def said(self) -> list[Finding]:
        """What the output alone says."""
        suspects = self.kernel.exercise.suspects
        found = findings(self.case, self.output, suspects, self.outputs, self.fine)
        if _by_chance(self.kernel, self.last, found[-1].kind):
            bad = wrong(self.case, self.output) & ~self.gaps
            found = [*found[:-1], unexplained(self.case, self.output, bad)]
        return found

    @cached_property
    def lost(self) -> tuple[str | None, bool]:
        """Whether digits are lost on the way, and whether a line is known that loses them."""
        return digits_lost(
            self.case, self.output, self.last.trace, self.kernel.source, self.kernel.name
        )


def _parameters(e: Wrong):
    return told("parameters", e.kernel.differences())


def _accesses_between_blocks(e: Wrong):
    kernel = e.kernel
    hidden = between_blocks(kernel.exercise, kernel.source, kernel.built, [e.case])
    return hidden and (hidden[0], *told("between-blocks", hidden[1:]))


def _unset_input(e: Wrong):
    return e.unset and told("what-if", list(what_if(e.kernel.built, e.kernel.name, e.case)))


def _of_the_exercise(e: Wrong):
    """What the exercise's own `watch` and `decode` say, where no suspect explains the output."""
    watch, decode = e.kernel.exercise.watch, e.kernel.exercise.decode
    said = None if e.known else watch and _watched(e.kernel, e.last)
    said = said or (None if e.known else decode and decode(e.case, e.output))
    made = _made_of(e.kernel, [e.last]) if said and watch and e.kernel.exercise.arch is None else ()
    return said and [*made[1:3], *told("exercise", said)]


def _from_the_output(e: Wrong):
    last = e.said[-1].kind
    if last in MOVED:
        more = _causes_in_addresses(e.kernel, [e.case, *e.later]) or _astray(e.kernel, [e.case])
        if more:
            return [*e.said, *told("addresses", more)]
    if last == "scattered" and (made := _made_of(e.kernel, [e.last])):
        return [*e.said, *made[2:]]
    if last == "offset" and (made := _made_of(e.kernel, [e.last])):
        return made
    if not explained(e.said):
        return ()
    return [*e.said, *(told("new-here", _new_here(e.tries), HINT) if last in MOVED else ())]


def _at_a_larger_size(e: Wrong):
    """At a small size several mistakes give the same output: a larger one may name the cause."""
    suspects = e.kernel.exercise.suspects
    for case, output in e.outputs:
        if more := named(case, output, suspects, e.outputs, e.fine, (e.case, e.output)):
            return (f"wrong at {case.label}", *more)
    return ()


def _addresses(e: Wrong):
    """What the addresses say: arrays and axes that are not used, numbers for sizes, guards, meeting stores, row lengths."""
    kernel, case = e.kernel, e.case
    causes = told("untouched", untouched(case, e.last.trace, kernel.source, kernel.name))
    causes = causes or told("unused-axis", unused_axis(case, kernel.built.ptx))
    causes = causes or told("fixed-size", _fixed(kernel, e.tries))
    if not causes and (causes := told("other-size", stops_at_another_size(case, e.gaps))):
        causes = [*told("astray", _astray(kernel, [case])), *causes]
    causes = causes or told("shared-outputs", shared_outputs(case, e.last.trace))
    causes = causes or told("what-if", list(what_if(kernel.built, kernel.name, case)))
    causes = causes or told("addresses", _causes_in_addresses(kernel, [case, *e.later]))
    return causes and [*e.said, *causes, *told("new-here", _new_here(e.tries), HINT)]


def _other_settings(e: Wrong):
    rows = e.kernel.exercise.settings
    narrow = rows and narrowed(rows, e.kernel.built, e.kernel.name, e.case)
    before = [f"It is right at {one.case.label}." for one in e.tries[:-1] if one.right]
    return narrow and [*e.said, *told("setting", narrow), *told("new-here", before[:1], HINT)]


def _lines_that_lose_digits(e: Wrong):
    said, has_line = e.lost
    return has_line and told("digits-lost", said)


def _beyond_an_array(e: Wrong):
    if e.unset:
        return ()
    return _beyond(beyond_its_end(e.kernel.exercise, e.kernel.source, [e.case], NO_ERROR))


def _what_it_is_made_of(e: Wrong):
    made = () if e.kernel.exercise.arch else _made_of(e.kernel, [e.last, *e.others])
    return made and (*made, *_not_begun(e.kernel, e.last))


def _digits(e: Wrong):
    return told("digits-lost", e.lost[0])


def _terms_of_a_probe(e: Wrong):
    counted = _counted(e.kernel, [e.case, *e.later])
    return counted and [*e.said, *told("terms", counted)]


def _astray_where_nothing_is_written(e: Wrong):
    causes = e.gaps.any() and told("astray", _astray(e.kernel, [e.case]))
    return causes and [*e.said, *causes, *told("new-here", _new_here(e.tries), HINT)]


def _outside_at_another_size(e: Wrong):
    stopped = (one for one in e.others if isinstance(one.error, errors.OutOfBounds))
    one = None if e.gaps.any() else next(stopped, None)
    return one and _outside(e.kernel, [*e.tries[:-1], one], ())


def _no_cause(e: Wrong):
    """Where it is wrong, and what to look at."""
    more = [] if e.gaps.any() else _not_begun(e.kernel, e.last)
    if not more and kinds(e.said) == {"nothing-added"}:
        more = told(
            "not-stored",
            "The sums are stored as they began: the loop that adds never runs, or what it adds up is not what is stored.",
            HINT,
        )
    if not more and e.gaps.any():
        more = told(
            "too-few",
            "No thread stores there: a loop or the grid stops too early, a step is too large, or a guard is too strict "
            "(does it compare the row with the number of rows, and the column with that of columns?).",
            HINT,
        )
    return [*e.said, *more, *told("new-here", _new_here(e.tries), HINT)]


# Of a wrong output, in order. Each returns findings, after a headline of its own where it has one; none where it knows nothing.
FINDERS = (
    _parameters,
    _accesses_between_blocks,
    _unset_input,
    _of_the_exercise,
    _from_the_output,
    _at_a_larger_size,
    _addresses,
    _other_settings,
    _lines_that_lose_digits,
    _beyond_an_array,
    _what_it_is_made_of,
    _digits,
    _terms_of_a_probe,
    _astray_where_nothing_is_written,
    _outside_at_another_size,
    _no_cause,
)


def _wrong(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple:
    """A launch that ran to its end with a wrong output, and no hazard: the first finder that knows something is believed."""
    e = Wrong(kernel, tries, later)
    for finder in FINDERS:
        if found := finder(e):
            return tuple(found) if isinstance(found[0], str) else (e.headline, *found)
    raise AssertionError("the last finder always says where it is wrong")


def _beyond(said: tuple[str, ...]) -> tuple:
    return said and (said[0], *told("beyond-an-array", said[1:]))


def _not_begun(kernel: Kernel, last: Attempt) -> list[Finding]:
    """What the task asks for and the kernel does nowhere."""
    return told(
        "not-begun",
        [
            f"The task asks for this: {need.task}. So far: {need.value(last.trace):,} {need.words}."
            for need in kernel.exercise.needs
            if not need.value(last.trace)
        ],
    )


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


def _by_chance(kernel: Kernel, last: Attempt, kind: str) -> bool:
    """Whether values look rounded, and no line of the kernel rounds so."""
    if kind == "fits-a-half":
        return not computes_in_half(last.trace, kernel.source, kernel.name)
    if kind == "whole-numbers":
        return not makes_whole_numbers(last.trace, kernel.source, kernel.name)
    return False


def _goes_on_after_the_sum(case) -> bool:
    """Whether the right output is a function of sums, such as gelu: whole numbers say little of it."""
    if case.expected.ndim != 2 or not case.tolerance:
        return False
    return case.product is None or not np.allclose(case.expected, case.product.C, 1e-3, 1e-3)


def _made_of(kernel: Kernel, tried: Sequence[Attempt]) -> tuple:
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
        said, rounds = at and of_an_input_per_line(mine, right, at, kernel.source), False
    else:
        said, rounds = made_of(mine, right, one.output, kernel.source)
    if not said:
        return ()
    lines = whole_numbers(one.trace, kernel.source, kernel.name) if rounds else ()
    return (
        f"wrong at {one.case.label}",
        Finding("place", bad_ones, certainty=EFFECT),
        *told("made-of", said),
        *told("whole-numbers-of", lines),
        *told("astray", _astray(kernel, [one.case]) or _in_shared(kernel, one)),
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
    return made_of(mine, right, output, kernel.source)[0]


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
