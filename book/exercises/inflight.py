"""How far ahead a kernel fetches: how many groups of asynchronous copies are on their way while it reads a tile.

Groups are followed through the PTX from top to bottom, a loop's body once. A commit before the first wait counts as
often as it ran; an empty group is none.
"""

from __future__ import annotations

import math

_COPY = ("cp.async.ca", "cp.async.cg")
_MOST = 8  # groups ahead: more than any pipeline here


def ahead(trace) -> int:
    """The most groups with copies in them that are unfinished at some read of shared memory."""
    warps = trace.blocks * -(-math.prod(trace.block) // 32)
    pending: list[bool] = []
    copied, waited, most = False, False, 0
    often = max((row.warps for row in trace.rows("cp.async.commit")), default=0)
    for row in trace.instructions:
        if row.opcode.startswith("cp.async.commit"):
            if not copied and 2 * row.warps <= often and row.warps <= warps:
                continue  # the empty group of the last turn, where there is nothing left to fetch
            times = 1 if waited else min(max(1, row.warps // warps), _MOST)
            pending += [copied] * times
            copied = False
        elif row.opcode.startswith("cp.async.wait"):
            pending = pending[len(pending) - _left(row) :] if _left(row) < len(pending) else pending
            copied &= "wait_all" not in row.opcode
            waited = True
        elif row.opcode.startswith(_COPY):
            copied = True
        elif row.shared_wavefronts and row.opcode.startswith(("ld", "wmma.load")) and waited:
            most = max(most, sum(pending) + copied)
    return most


def _left(row) -> int:
    """How many groups a cp.async.wait_group may leave unfinished; 0 for wait_all."""
    last = row.text.rstrip(";").split()[-1]
    return int(last) if last.isdigit() else 0


def fetches_ahead(groups: int):
    """An `inspect` for exercises: are this many groups on their way while a tile is read?"""

    def inspect(built, trace):
        found = ahead(trace)
        if found >= groups:
            return []
        return [
            f"While a tile is read, {found} {'copy is' if found == 1 else 'copies are'} in flight; {groups} should be. "
            "Start the copies of later tiles before this one is read, and let the wait leave them unfinished. "
            "An empty group is no copy."
        ]

    return inspect
