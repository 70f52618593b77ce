"""Nobody can go on: says where each warp stands, and raises Deadlock or BarrierDivergence."""

from __future__ import annotations

import numpy as np

from emulator.errors import BarrierDivergence, Deadlock
from emulator.machine import mbarriers
from emulator.machine.barriers import ranges
from emulator.machine.chunk import Chunk
from emulator.machine.residency import MULTIPROCESSORS


def report(m: Chunk, why: str, error: type[Deadlock] | None = None) -> None:
    """Raises `error` with where everybody stands.

    Without one it is Deadlock, or BarrierDivergence when one warp's lanes wait at a barrier that others never
    reach.
    """
    places: dict[int, np.ndarray] = {}
    for at, group in m.groups.items():
        places[at] = m.lanes_of(group.mask)
    at_barrier = np.zeros((m.B, m.T), bool)
    for barrier in m.barriers.values():
        for at, mask in barrier.standing.items():
            places[at] = places[at] | mask if at in places else mask
            at_barrier |= mask
    lines, stands, first = [], [], None
    warps_at_barrier = at_barrier.reshape(m.W, 32).any(axis=1)
    divided = np.zeros(m.W, bool)
    for warp in range(m.W):
        block, number = divmod(warp, m.T // 32)
        for at, mask in sorted(places.items()):
            lanes = mask.reshape(m.W, 32)[warp]
            if not lanes.any():
                continue
            divided[warp] |= not (lanes | ~m.lanes_of(m.alive).reshape(m.W, 32)[warp]).all()
            item = _next_instruction(m, at)
            first = first or (item, block)
            text = f"PTX line {item.line}: {item.text}{_cited(item)}" if item else "its end"
            coordinates = tuple(int(x) for x in m.blocks[block])
            stands.append((coordinates, number, ranges(lanes), item.line if item else None))
            lines.append(f"block {coordinates}, warp {number}, lanes {ranges(lanes)}: {text}")
    more = [f"... and {len(lines) - 32} more"] if len(lines) > 32 else []
    item, block = first if first else (None, None)
    where = m.place_of(item, block) if item else {}
    where["stands"] = tuple(stands[:32])
    if error is not None:
        raise error(why, lines[:32] + more, **where)
    left = m.launch.block_count - m.first - m.B
    if left and m.launch.together:
        why += (
            f"; {left} more blocks have not begun, because a GPU of {MULTIPROCESSORS} multiprocessors holds only "
            f"{m.B} of this size at once: blocks may not wait for those that come later"
        )
        raise Deadlock(why, lines[:32] + more, **where)
    if (divided & warps_at_barrier).any():
        raise BarrierDivergence(
            "threads of one warp wait at a barrier that others of the warp never reach",
            lines[:32] + more,
            mbarriers.describe(m),
            lacks=mbarriers.lacks(m),
            **where,
        )
    raise Deadlock(why, lines[:32] + more, mbarriers.describe(m), lacks=mbarriers.lacks(m), **where)


def _next_instruction(m: Chunk, at: int):
    """The first instruction that a group standing before block `at` comes to, or None."""
    for _ in m.code.blocks:  # empty blocks fall through to others
        block = m.code.blocks[at]
        item = block.code[0] if block.code else block.last
        if item is not None or not block.targets:
            return item
        at = block.targets[0]
    return None


def _cited(item) -> str:
    """` (file:line)` of an instruction; where it was inlined, of the kernel's own line that called it as well."""
    if item.location is None:
        return ""
    frames = item.location.frames()
    inner, own = (f"{file}:{line}" for file, line in (frames[0], frames[-1]))
    return f" ({own})" if inner == own else f" ({inner}, called from {own})"
