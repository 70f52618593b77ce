"""What is wrong with a launch that came to its end with a wrong output: the first finder that knows something is believed."""

from collections.abc import Sequence
from functools import cached_property

from .attempt import Attempt, attempt
from .causes import Kernel, gone_astray, new_here
from .diagnose import findings, named
from .explain import own_line
from .finding import HINT, Finding, explained, told
from .launches import unwritten
from .words import MOVED


class Wrong:
    """A launch that ran to its end with a wrong output and no hazard, and what the other launches of the kernel gave."""

    def __init__(self, kernel: Kernel, tries: Sequence[Attempt], later):
        self.kernel, self.tries, self.later, self.last = kernel, tries, later, tries[-1]
        self.case, self.output = self.last.case, self.last.output
        self.headline = f"wrong at {self.case.label}"
        self.gaps = unwritten(self.output)

    @cached_property
    def others(self) -> list[Attempt]:
        return [attempt(self.kernel.built, self.kernel.entry, case) for case in self.later]

    @cached_property
    def outputs(self) -> list:
        return [(o.case, o.output) for o in self.others if o.error is None and not o.case.drawn]

    @cached_property
    def fine(self) -> list:
        return [one.case for one in (*self.tries, *self.others) if one.right]

    @cached_property
    def said(self) -> list[Finding]:
        suspects = self.kernel.exercise.suspects
        return findings(self.case, self.output, suspects, self.outputs, self.fine)


def _of_the_exercise(e: Wrong):
    """What the exercise's own `watch` and `decode` say, where no suspect explains the output."""
    watch, decode = e.kernel.exercise.watch, e.kernel.exercise.decode
    if any(one.kind == "suspect" for one in e.said):
        return ()
    said = watch and watch(e.case, e.last.trace)
    return told("exercise", said or (decode and decode(e.case, e.output)))


def _from_the_output(e: Wrong):
    moved = e.said[-1].kind in MOVED
    if moved and (found := _astray(e)):
        return found
    if not explained(e.said):
        return ()
    return [*e.said, *(told("new-here", new_here(e.tries), HINT) if moved else ())]


def _at_a_larger_size(e: Wrong):
    """At a small size several mistakes give the same output: a larger one may name the cause."""
    suspects = e.kernel.exercise.suspects
    for case, output in e.outputs:
        if more := named(case, output, suspects, e.outputs, e.fine, (e.case, e.output)):
            return (f"wrong at {case.label}", *more)
    return ()


def _astray(e: Wrong):
    """Which elements of global memory a block touches and must not, or must and does not."""
    causes = told("astray", gone_astray(e.kernel, e.case))
    return causes and [*e.said, *causes, *told("new-here", new_here(e.tries), HINT)]


def _no_cause(e: Wrong):
    more = [] if e.gaps.any() else _not_begun(e.kernel, e.last)
    if not more and not e.gaps.any() and e.kernel.exercise.arch is None:
        more = told("in-shared-memory", _in_shared(e.kernel, e.last), HINT)
    if not more and e.gaps.any():
        more = told(
            "too-few",
            "No thread stores there: a loop or the grid stops too early, a step is too large, or a guard is too strict "
            "(does it compare the row with the number of rows, and the column with that of columns?).",
            HINT,
        )
    return [*e.said, *more, *told("new-here", new_here(e.tries), HINT)]


# Of a wrong output, in order. Each returns findings, after a headline of its own where it has one; none where it knows nothing.
FINDERS = (
    _of_the_exercise,
    _from_the_output,
    _at_a_larger_size,
    _astray,
    _no_cause,
)


def explain_output(kernel: Kernel, tries: Sequence[Attempt], later) -> tuple:
    """A launch that ran to its end with a wrong output, and no hazard: the first finder that knows something is believed."""
    e = Wrong(kernel, tries, later)
    for finder in FINDERS:
        if found := finder(e):
            return tuple(found) if isinstance(found[0], str) else (e.headline, *found)
    raise AssertionError("the last finder always says where it is wrong")


def _not_begun(kernel: Kernel, last: Attempt) -> list[Finding]:
    return told(
        "not-begun",
        [
            f"The task asks for this: {need.task}. So far: {need.value(last.trace):,} {need.words}."
            for need in kernel.exercise.needs
            if not need.value(last.trace)
        ],
    )


def _in_shared(kernel: Kernel, one: Attempt) -> list[str]:
    lines = {
        own_line(row.frames, kernel.file)
        for row in one.trace.instructions
        if row.shared_wavefronts and row.opcode.startswith(("ld", "st"))
    } - {None}
    listed = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, sorted(lines)[:6]))}"
    said = f"Look at the indices where shared memory is written and read ({listed}), and at what is done with the values."
    return [said] if lines else []
