"""When a rung's loop issues its copies, its `ldmatrix` and its `mma`, in the order in which the emulator executed them.

Time is counted in `mma`: the n-th of a warp is number n. A bar of `ldmatrix` reaches from its issue to the first
`mma` that reads what it brings; a bar of copies from their issue to the wait that lets the block use them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import figures
from figures.timeline import bar

REGISTER = re.compile(r"%r\d+")
WAITED = re.compile(r"wait_group\s+(\d+)")
THIN = 1.5  # how wide a barrier is drawn, in mma


@dataclass
class Turn:
    """One turn of the main loop: how many `mma` had been issued when each thing was.

    loads: (issued, first used) of each group of `ldmatrix` that are issued with no `mma` between them; a use beyond the
    turn counts on. copies: (issued, how many). waits, barriers: when. left: groups of copies that the wait leaves under way.
    """

    mma: int = 0
    loads: list[tuple[int, int]] = field(default_factory=list)
    copies: list[tuple[int, int]] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    barriers: list[int] = field(default_factory=list)
    left: int = 0


def loop(trace) -> Turn:
    """The main loop of a rung in a trace: what all k-steps, or all but the last, executed, in order. ValueError where none is."""
    rows = trace.instructions
    most = max((row.warps for row in rows if row.opcode.startswith("mma.sync")), default=0)
    if not most:
        raise ValueError("this launch executed no mma.sync")
    inside = [at for at, row in enumerate(rows) if row.warps == most]
    body = [row for row in rows[inside[0] : inside[-1] + 1] if 2 * row.warps >= most]
    turn, waiting, used = Turn(), {}, {}
    for row in body:
        registers = REGISTER.findall(row.text)
        if row.opcode.startswith("ldmatrix"):
            waiting |= dict.fromkeys(REGISTER.findall(row.text.split("}")[0]), turn.mma)
            used.setdefault(turn.mma, [])
        elif row.opcode.startswith("mov") and len(registers) == 2 and registers[1] in waiting:
            waiting[registers[0]] = waiting.pop(registers[1])
        elif row.opcode.startswith("mma.sync"):
            for register in registers:
                if register in waiting:
                    used[waiting.pop(register)].append(turn.mma)
            turn.mma += 1
        elif row.opcode.startswith("cp.async.cg"):
            if turn.copies and turn.copies[-1][0] == turn.mma:
                turn.copies[-1] = (turn.mma, turn.copies[-1][1] + 1)
            else:
                turn.copies.append((turn.mma, 1))
        elif row.opcode.startswith("cp.async.wait"):
            turn.waits.append(turn.mma)
            found = WAITED.search(row.text)
            turn.left = int(found[1]) if found else 0
        elif row.opcode.startswith("bar"):
            turn.barriers.append(turn.mma)
    for issued, reads in used.items():  # what nobody read in this turn, the next one reads first
        turn.loads.append((issued, min(reads, default=turn.mma)))
    return turn


def events(turn: Turn, turns: int = 2) -> list[dict]:
    """Bars for `figures.timeline`: copies, `ldmatrix`, `mma` and barriers of some turns, in `mma` of one warp.

    A turn multiplies the stage of its own number, and copies into the one that was left before it.
    """
    found = []
    rows = ("copies", "ldmatrix", "mma", "barrier")
    end, stages = turns * turn.mma, turn.left + 2
    wait = turn.waits[0] if turn.waits else 0
    for number in range(-turn.left - 1, turns):  # copies of the turns before are still under way
        start = number * turn.mma
        target = (number + stages - 1) % stages
        # A group is closed before the wait of its own turn where it was issued before it, else in the next turn.
        for issued, _ in turn.copies:
            late = 0 if issued <= wait and wait else 1
            landed = min(start + wait + (turn.left + late) * turn.mma, end)
            if landed > 0:
                begin = max(start + issued, 0)
                found.append(bar(rows[0], begin, landed, "load", target))
    for number in range(turns):
        start = number * turn.mma
        for issued, used in turn.loads:
            read = bar(rows[1], start + issued, max(start + used, start + issued + 1), "ldmatrix")
            if read["end"] <= end:
                found.append(read)
        found.append(bar(rows[2], start, start + turn.mma, "compute", number % stages))
        for at in turn.barriers:
            found.append(bar(rows[3], start + at, start + at + THIN, "barrier"))
    return sorted(found, key=lambda one: (rows.index(one["row"]), one["start"]))


def lead(turn: Turn) -> Sequence[int]:
    """How many `mma` stand between each group of `ldmatrix` and the first `mma` that reads it."""
    return [used - issued for issued, used in turn.loads]


def timeline(trace, turns: int = 2, title: str | None = None):
    """The loop of one trace as a picture."""
    return figures.timeline(
        events(loop(trace), turns),
        unit="mma of one warp",
        title=title,
        caption="In the order in which the emulator executed the loop; widths are counts of mma, not times. "
        "Bars of copies end at the wait after which the block may read them.",
    )
