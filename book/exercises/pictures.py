"""A student's own accesses beside the goal: sectors of global memory, banks and wavefronts of shared memory."""

from dataclasses import dataclass, replace

import numpy as np

import figures
from figures.drawing import Drawing

from .exercise import Exercise
from .explain import own_line, quote

GLOBAL, SHARED = "global", "shared"


@dataclass(frozen=True)
class Picture:
    """One warp's access of a student's kernel, and, where it costs more than it must, that of neighbouring addresses.

    missed: a goal that counts this is not reached yet.
    """

    space: str
    access: figures.Access
    line: str
    missed: bool = False

    @property
    def cost(self) -> tuple[int, int]:
        """What it costs, and what as many neighbours would: sectors, or wavefronts."""
        if self.space == SHARED:
            return self.access.wavefronts, self.access.wavefronts_ideal
        return len(self.access.sectors), self.access.sectors_ideal

    def drawing(self) -> Drawing:
        """Both, one below the other. The text form says the same."""
        drawn = figures.shared_banks if self.space == SHARED else figures.global_access
        mine, goal = self.cost
        panels = {"yours": self.access}
        if mine > goal:
            panels["neighbours"] = neighbours(self.access)
        more = {"rows": "wavefront"} if self.space == SHARED else {}
        what = "wavefront" if self.space == SHARED else "sector"
        title = f"Your access takes {mine} {what}{'s' * (mine != 1)}"
        if mine <= goal:
            title += ", as few as can be"
        else:
            title += f"; neighbours would take {goal}"
        line = self.line.rstrip(" .;")
        caption = f"{line[0].upper()}{line[1:]}. Shown is the first warp that executes it."
        return drawn(panels, title=title, caption=caption, **more)


def neighbours(access: figures.Access) -> figures.Access:
    """The same lanes, each at the address behind its neighbour's: no conflicts, and as few sectors as can be."""
    start = min(access.addresses[lane] for lane in access.lanes) // 128 * 128
    places = {lane: start + i * access.bytes for i, lane in enumerate(access.lanes)}
    addresses = tuple(places.get(lane, -1) for lane in range(32))
    return figures.Access(addresses, access.width, access.kind, access.matrices)


def of_accesses(exercise: Exercise, traces: dict, source: str) -> tuple[Picture, ...]:
    """For each memory that the goals are about the access that costs most beyond what it must.

    traces: of the cases by label, of which that of the goal counts. Without a goal it is global memory, at the first case.
    """
    wanted, missed = {}, set()
    for goal in exercise.goals:
        space = next((one for one in (SHARED, GLOBAL) if one in goal.metric), None)
        if space is not None:
            wanted.setdefault(space, goal.case)
            counted = goal.metric != "global_requests"  # a picture shows sectors, not requests
            if counted and goal.value(traces[goal.case]) > goal.limit:
                missed.add(space)
    wanted = wanted or {GLOBAL: next(iter(traces))}
    found = (_worst(traces[label], space, exercise.name, source) for space, label in wanted.items())
    return tuple(
        replace(picture, missed=picture.space in missed) for picture in found if picture is not None
    )


def _worst(trace, space: str, name: str, source: str) -> Picture | None:
    best = None
    for row in trace.instructions:
        seen = set()
        for access in trace.accesses(row) if row.samples else ():
            line = own_line(row.frames, f"{name}.cu")
            if access.space != space or line is None or access.warp in seen or len(seen) > 3:
                continue
            seen.add(access.warp)
            drawable = _drawable(access, row)
            if drawable is None:
                continue
            picture = Picture(space, drawable, quote(line, source, ".cu"))
            mine, goal = picture.cost
            if best is None or mine - goal > best[0]:
                best = (mine - goal, picture)
    return best[1] if best else None


def _drawable(access, row) -> figures.Access | None:
    addresses = np.where(access.active, access.addresses, -1)
    matrices = next((n for n in (1, 2, 4) if f".x{n}." in row.opcode), 4)
    try:
        return figures.Access(tuple(int(a) for a in addresses), access.width, access.kind, matrices)
    except ValueError:
        return None  # of a kind that has no picture


@dataclass(frozen=True)
class Meeting:
    """Two accesses that nothing orders, as the sanitizer found them."""

    found: object
    source: str

    def drawing(self) -> Drawing:
        """Who touches what, and what is missing in between."""
        return figures.hazard(self.found, self.source)
