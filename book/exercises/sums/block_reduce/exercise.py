"""Sum a block."""

import numpy as np

from book.exercises.exercise import Case, Exercise, Goal, Need
from book.exercises.sums.launches import piece_suspects, pieces


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


EXERCISE = Exercise.read(
    __file__,
    cases=pieces(256, 256),
    at="n=512",
    needs=(
        Need(
            "bytes read from shared memory",
            1_000,
            "the values of other threads are read from shared memory",
        ),
    ),
    goals=(Goal("shared_wavefronts", 100), Goal("atomic operations of a warp", 0)),
    suspects=piece_suspects(256),
    watch=turns,
    twin=lambda run: run.per_warp("barriers") - 1,
)
