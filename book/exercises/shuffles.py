"""Sums across threads, step by step: over which distances a kernel brings values together, read off what ran."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from .exercise import Case

_SHUFFLE = re.compile(r"shfl\.sync\.(\w+)\.b32\s+[^,]+,\s*[^,]+,\s*([^,]+),\s*([^,]+),")
_CONSTANT = re.compile(r"mov\.\w+\s+(%\w+),\s*(-?\d+);?$")
_MODES = {
    "idx": "__shfl_sync takes the number of a lane, not a distance: every lane gets the value of that one lane",
    "up": "__shfl_up_sync brings values from lower lanes to higher ones, so the sum arrives at lane 31",
}


def distances(case: Case, trace) -> str | None:
    """A sentence where the shuffles of a sum over 32 lanes are not those over 16, 8, 4, 2 and 1."""
    constants = _constants(trace)
    found: list[int] = []
    for row in trace.rows("shfl.sync"):
        read = _SHUFFLE.search(row.text)
        if read is None:
            return None
        if read[1] in _MODES:
            return f"{_MODES[read[1]]}."
        distance, last = (constants.get(read[i].strip()) for i in (2, 3))
        if last is not None and last >> 8:
            lanes = 32 - (last >> 8)
            return (
                f"With a width of {lanes} each {lanes} lanes are by themselves, and no value comes from beyond them: leave "
                "the width out."
            )
        if distance is None:
            return None
        found += [distance] * round(row.warps / (trace.blocks * -(-np.prod(case.block) // 32)))
    if sorted(found) == [1, 2, 4, 8, 16] or not found:
        return None
    shown = ", ".join(map(str, found[:8])) + (
        f" and so on, {len(found)} in all" if len(found) > 8 else ""
    )
    return f"The shuffles go over distances of {shown}. They have to go over 16, 8, 4, 2 and 1, each once."


def _constants(trace) -> dict[str, int]:
    """The registers that hold one constant, and constants themselves."""
    texts = [row.text.strip() for row in trace.instructions]
    moved = [read for text in texts if (read := _CONSTANT.search(text))]
    times = Counter(read[1] for read in moved)
    known = {read[1]: int(read[2]) for read in moved if times[read[1]] == 1}
    return known | {str(n): n for n in range(1 << 13)}


def turns(case: Case, trace) -> str | None:
    """A sentence where the turns of a sum in shared memory do not halve: the first thread that reads what it must not."""
    size = int(np.prod(case.block))
    found = _turns(trace)
    if not found:
        return (
            "No thread adds what another one has stored. Which threads does the test let through?"
        )
    for number, reads in enumerate(found, 1):
        half = size >> number
        if half == 0:
            return None
        for thread in sorted(reads):
            others = sorted(reads[thread] - {thread})
            if thread < half and others == [thread + half]:
                continue
            if not others:
                continue
            read = " and ".join(f"s[{i}]" for i in others[:2])
            must = (
                f"and must read s[{thread + half}]" if thread < half else "and must do nothing then"
            )
            return (
                f"In turn {number} thread {thread} reads {read}, {must}: "
                + (f"then threads 0 to {half - 1} add" if half > 1 else "then thread 0 adds")
                + f" what lies {half} place{'s' if half > 1 else ''} further on."
            )
        if missing := [thread for thread in range(half) if not reads.get(thread, set()) - {thread}]:
            return f"In turn {number} thread {missing[0]} adds nothing, and must add s[{missing[0] + half}] to its sum."
    return None


def _turns(trace) -> list[dict[int, set[int]]]:
    """For each turn the words of shared memory that each thread of the first block reads. Reading one's own is no turn."""
    found: dict[tuple[int, int], dict[int, set[int]]] = {}
    line = 0
    for order, row in enumerate(trace.instructions):
        if row.opcode.startswith("bar"):
            line = order
        if not row.opcode.startswith("ld.shared"):
            continue
        for access in trace.accesses(row):
            turn = found.setdefault((access.occurrence, line), {})
            for lane in np.flatnonzero(access.active).tolist():
                turn.setdefault(32 * access.warp + lane, set()).add(
                    int(access.addresses[lane]) // 4
                )
    return [
        found[key]
        for key in sorted(found)
        if any(words - {thread} for thread, words in found[key].items())
    ]
