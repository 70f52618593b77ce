"""An exercise's goals and needs: what was reached, what was missed, and the lines that spend most of it."""

from emulator.counts.trace import COLUMNS

from .attempt import attempt
from .bank_conflicts import meeting
from .counts import COUNTS
from .exercise import Goal
from .explain import (
    own_line,
    quote,
)

LOOSE, FEW = 1.5, 32  # at drawn sizes edges weigh more, by another share in each right answer


def beyond_at_drawn_size(kernel, tries) -> list[str]:
    """Where the last size, drawn anew, costs far more than a goal leaves for it, measured by what the solution costs there.

    tries: all launches of the reader's kernel, the one of that size last.
    """
    last, exercise = tries[-1], kernel.exercise
    if not last.case.drawn or not exercise.goals:
        return []
    solution, said = kernel.solution(), []
    there = attempt(solution, kernel.name, last.case)
    cases = {one.case.label: one.case for one in tries}
    for goal in exercise.goals:
        known = goal.value(attempt(solution, kernel.name, cases[goal.case]).trace)
        share = max(goal.limit / known, 1) if known else 1
        limit = int(LOOSE * share * goal.value(there.trace)) + FEW if goal.limit else 0
        if (value := goal.value(last.trace)) > limit:
            said += [
                f"{value:,} {goal.words} at {last.case.label}, a new size: {limit:,} would do there.",
                *_worst_lines(last.trace, goal, kernel.source, kernel.name),
            ]
    return said


def measured(kernel, traces) -> tuple[list[str], list[str]]:
    """Of the exercise's goals and needs, what was reached and what was missed, in words."""
    reached, missed = [], []
    for need in kernel.exercise.needs:
        value = need.value(traces[need.case])
        if value < need.least:
            counted = (
                f"{value:,} {need.words} at {need.case}, where at least {need.least:,} are needed"
            )
            missed += [f"The task asks for this: {need.task}.", f"  {counted}"]
    for goal in kernel.exercise.goals:
        value = goal.value(traces[goal.case])
        told = f"{value:,} {goal.words} at {goal.case}; the goal is {goal.limit:,}"
        if value <= goal.limit:
            reached.append(told)
            continue
        trace = traces[goal.case]
        missed += [told, *_worst_lines(trace, goal, kernel.source, kernel.name)]
        if (
            goal.metric == "shared_wavefronts"
            and _no_conflicts(trace)
            and not any("of the 32 lanes" in x for x in missed)
        ):
            missed.append(
                "These accesses have no conflicts, so there are too many of them. The compiler makes one 16-byte read of four "
                "neighbours where it can unroll the loops, which needs bounds that are constants."
            )
    return reached, missed


def _worst_lines(trace, goal: Goal, source: str, name: str, most: int = 2) -> list[str]:
    """The source lines that spend most of this metric, beyond what conflict-free addresses would take."""
    if goal.metric not in COLUMNS:
        return _lines_that_count(trace, goal, source, name, most)
    lines = trace.by_line(f"{name}.cu")
    least = "shared_wavefronts_ideal" if goal.metric == "shared_wavefronts" else None
    excess = {n: row[goal.metric] - (row[least] if least else 0) for n, row in lines.items()}
    if not any(excess.values()):  # no line has conflicts: the accesses are too many
        least, excess = None, {n: row[goal.metric] for n, row in lines.items()}
    said = []
    for n in sorted(excess, key=lambda n: (-excess[n], -lines[n][goal.metric], n))[:most]:
        if excess[n] <= 0 and said:
            continue
        if not lines[n][goal.metric]:
            continue
        spent = f"{lines[n][goal.metric]:,} {goal.words}"
        if least:
            spent += f", without conflicts {lines[n][least]:,}"
            if excess[n] > 0 and (lanes := meeting(trace, n, name)):
                spent += f": {lanes}"
        elif goal.metric == "global_requests":
            spent += _each_store_of(trace, n, name)
        elif goal.metric == "global_sectors":
            spent += f" in {lines[n]['global_requests']:,} requests"
        said += [quote(n, source, ".cu"), f"  {spent}"]
        if few := _few_lanes(trace, n, name):
            said.append(few)
    return said


def _few_lanes(trace, line: int, name: str) -> str | None:
    rows = [
        row
        for row in trace.instructions
        if own_line(row.frames, f"{name}.cu") == line
        and (row.global_requests or row.shared_wavefronts)
    ]
    warps, threads = (sum(getattr(row, what) for row in rows) for what in ("warps", "threads"))
    if not warps or threads > 2 * warps:
        return None
    return (
        f"  Only {max(threads // warps, 1)} of the 32 lanes of a warp is active there: a test or a loop gives one thread the "
        "work of many. Share it out, so that neighbouring threads take neighbouring elements."
    )


def _no_conflicts(trace) -> bool:
    return trace.total("shared_wavefronts") == trace.total("shared_wavefronts_ideal")


def _each_store_of(trace, line: int, name: str) -> str:
    """What would take fewer requests, where this line stores 4 bytes per thread."""
    rows = [
        row
        for row in trace.rows("st")
        if row.global_requests and row.threads and own_line(row.frames, f"{name}.cu") == line
    ]
    narrow = rows and {row.bytes // row.threads for row in rows} == {4}
    return (
        ", of 4 bytes per thread: a store of 16 (a float4) does the work of four" if narrow else ""
    )


def _lines_that_count(trace, goal: Goal, source: str, name: str, most: int) -> list[str]:
    """The same of what is no column of the trace, such as the bytes that are read."""
    spent: dict[int, int] = {}
    for row in trace.instructions:
        line = own_line(row.frames, f"{name}.cu")
        if line is not None:
            spent[line] = spent.get(line, 0) + COUNTS[goal.metric](row)
    worst = sorted((n for n in spent if spent[n]), key=lambda n: (-spent[n], n))[:most]
    return [
        text for n in worst for text in (quote(n, source, ".cu"), f"  {spent[n]:,} {goal.words}")
    ]
