"""Lanes of one warp (for `wgmma`, of four) wait for each other before `.sync` instructions and at `bar.warp.sync`."""

from __future__ import annotations

import numpy as np

from emulator.machine.chunk import Chunk, Group
from emulator.machine.code import CodeBlock
from emulator.machine.membermask import ALL_LANES, BITS, as_bits, by_lane


def waiting(m: Chunk, block: CodeBlock, group: Group) -> np.ndarray:
    """(B, T) bool: the lanes of the group that wait for lanes that are not here yet."""
    here = group.mask.reshape(m.W, 32)
    if block.head == "warpgroup":
        missing = (m.lanes_of(m.alive).reshape(m.W, 32) & ~here).any(axis=1)
        return (here & of_warpgroups(m, missing)[:, None]).reshape(m.B, m.T)
    return _lacking(m, block, here, here).reshape(m.B, m.T)


def of_warpgroups(m: Chunk, warps: np.ndarray) -> np.ndarray:
    """(W,) bool: whether any of the four warps of each warp's warpgroup is among `warps`."""
    per = m.T // 32
    whole = -(-per // 4) * 4
    padded = np.zeros((m.B, whole), bool)
    padded[:, :per] = warps.reshape(m.B, per)
    any_of_four = padded.reshape(m.B, -1, 4).any(axis=2)
    return np.repeat(any_of_four, 4, axis=1)[:, :per].reshape(m.W)


def whole(m: Chunk, block: CodeBlock, group: Group) -> bool:
    """Whether nobody lacks anyone whom it waits for."""
    if block.head == "warpgroup":
        known = m.masks.get("whole warpgroups")
        if known is not None and known[0] is group.mask and known[1] is m.alive:
            return True
        if waiting(m, block, group).any():
            return False
        m.masks["whole warpgroups"] = (group.mask, m.alive)
        return True
    known = m.masks.get("whole")
    if known is not None and known[0] is group.mask and known[1] is m.alive:
        return True
    mask = group.mask.reshape(m.W, 32)
    missing = m.lanes_of(m.alive).reshape(m.W, 32) & ~mask
    if not (mask.any(axis=1) & missing.any(axis=1)).any():
        m.masks["whole"] = (group.mask, m.alive)
        return True
    return not waiting(m, block, group).any()


def _lacking(m: Chunk, block: CodeBlock, lanes: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Those of `lanes` that wait at this instruction for living lanes that are not `present`; all (W, 32) bool."""
    absent = m.lanes_of(m.alive).reshape(m.W, 32) & ~present
    member = ALL_LANES if block.head_step is None else block.head_step(m)
    if type(member) is int:
        named = member & BITS != 0
        return lanes & (absent & named).any(axis=1, keepdims=True)
    named = by_lane(m, member)
    own = named & BITS != 0  # a lane outside its own mask waits for nobody
    return lanes & own & (named & as_bits(absent)[:, None] != 0)


def meet_at_warp_barriers(m: Chunk) -> bool:
    """Lanes of one warp may wait at different `bar.warp.sync`; lets those go that are complete together."""
    here = {
        at: group
        for at, group in m.groups.items()
        if group.blocked and m.code.blocks[at].head == "warp barrier"
    }
    if len(here) < 2:
        return False
    together = np.logical_or.reduce([group.mask for group in here.values()]).reshape(m.W, 32)
    moved = False
    for at, group in here.items():
        m.group = group
        mask = group.mask.reshape(m.W, 32)
        lacking = _lacking(m, m.code.blocks[at], mask, together)
        go = group.mask & ~lacking.reshape(m.B, m.T)
        if not go.any():
            continue
        moved = True
        stay = group.mask & ~go
        del m.groups[at]
        if stay.any():
            m.groups[at] = Group(stay, int(np.count_nonzero(stay)), group.turn)
            m.groups[at].blocked = True
        count = int(np.count_nonzero(go))
        m.runs[at][0] += m.warps_of(go)
        m.runs[at][1] += count
        if m.sanitizer is not None:
            m.sanitizer.warp_barrier(go)
        m.stand(m.code.blocks[at].targets[0], Group(go, count, group.turn))
    return moved
