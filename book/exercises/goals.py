"""An exercise's goals and needs: what was reached, what was missed, and the lines that spend most of it."""

from collections import defaultdict

import numpy as np

from emulator.counts.trace import COLUMNS

from .attempt import attempt
from .counts import of_row
from .exercise import Goal
from .explain import own_line, quote

BANKS, WORD = 32, 4
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
    lines = defaultdict(list)
    for row in trace.instructions:
        lines[own_line(row.frames, f"{name}.cu")].append(row)
    lines.pop(None, None)
    spent = {n: sum(of_row(row, goal.metric) for row in rows) for n, rows in lines.items()}
    conflicts = goal.metric == "shared_wavefronts" and not _no_conflicts(trace)
    least = {n: conflicts * sum(r.shared_wavefronts_ideal for r in lines[n]) for n in lines}
    said = []
    worst = sorted(filter(spent.get, lines), key=lambda n: (least[n] - spent[n], -spent[n], n))
    for n in worst[:most]:
        if spent[n] == least[n] and said:
            continue
        text = f"{spent[n]:,} {goal.words}"
        if conflicts:
            text += f", without conflicts {least[n]:,}"
            if spent[n] > least[n] and (lanes := meeting(trace, lines[n])):
                text += f": {lanes}"
        elif goal.metric == "global_requests":
            text += _each_store(lines[n])
        elif goal.metric == "global_sectors":
            text += f" in {sum(row.global_requests for row in lines[n]):,} requests"
        said += [quote(n, source, ".cu"), f"  {text}"]
        if goal.metric in COLUMNS:
            said += _few_lanes(lines[n])
    return said


def _few_lanes(rows) -> list[str]:
    """A sentence where hardly any lane of a warp executes the accesses among these rows of a line."""
    rows = [row for row in rows if row.global_requests or row.shared_wavefronts]
    warps, threads = (sum(getattr(row, what) for row in rows) for what in ("warps", "threads"))
    if not warps or threads > 2 * warps:
        return []
    return [
        f"  Only {max(threads // warps, 1)} of the 32 lanes of a warp is active there: a test or a loop gives one thread the "
        "work of many. Share it out, so that neighbouring threads take neighbouring elements."
    ]


def _no_conflicts(trace) -> bool:
    return trace.total("shared_wavefronts") == trace.total("shared_wavefronts_ideal")


def _each_store(rows) -> str:
    """What would take fewer requests, where these rows store 4 bytes per thread."""
    stores = [row for row in rows if row.opcode.startswith("st") and row.global_requests]
    if {row.bytes // row.threads for row in stores if row.threads} != {4}:
        return ""
    return ", of 4 bytes per thread: a store of 16 (a float4) does the work of four"


def meeting(trace, rows) -> str | None:
    """ "lanes 0 and 2 need different words of bank 0", of the worst access of these rows; None where no two meet."""
    worst, found = 0, None
    for row in rows:
        if not row.shared_wavefronts:
            continue
        excess = (row.shared_wavefronts - row.shared_wavefronts_ideal) / max(row.warps, 1)
        if excess <= worst:
            continue
        for access in trace.accesses(row):
            if access.space == "shared" and (told := _two_lanes(access)):
                worst, found = excess, told
                break
    return found


def _two_lanes(access) -> str | None:
    """The first two lanes that are served together and want different words of one bank."""
    width = max(access.width, WORD)
    together = max(1, BANKS * WORD // width)  # lanes of one wavefront, where none conflict
    seen: dict[tuple[int, int], tuple[int, int]] = {}
    for lane in np.flatnonzero(access.active).tolist():
        address = int(access.addresses[lane])
        for word in range(address // WORD, (address + width - 1) // WORD + 1):
            key = lane // together, word % BANKS
            other = seen.setdefault(key, (lane, word))
            if other[1] != word:
                return f"lanes {other[0]} and {lane} need different words of bank {word % BANKS}"
    return None
