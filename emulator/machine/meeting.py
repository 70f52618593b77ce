"""Lanes of one warp (for `wgmma`, of four) wait for each other before `.sync` instructions and at `bar.warp.sync`."""

from __future__ import annotations

import numpy as np

from emulator.machine.chunk import Chunk, Group
from emulator.machine.code import CodeBlock


def incomplete(m: Chunk, block: CodeBlock, group: Group) -> np.ndarray:
    """(W,) bool: warps with a lane in the group that lack a lane they wait for."""
    mask = group.mask.reshape(m.W, 32)
    if block.head == "warpgroup":
        missing = m.lanes_of(m.alive).reshape(m.W, 32) & ~mask
        return mask.any(axis=1) & of_warpgroups(m, missing.any(axis=1))
    return mask.any(axis=1) & (_needed(m, block) & ~mask).any(axis=1)


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
        if incomplete(m, block, group).any():
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
    return not incomplete(m, block, group).any()


def _needed(m: Chunk, block: CodeBlock) -> np.ndarray:
    """(W, 32) bool: the living lanes that each lane's warp waits for at this instruction."""
    alive = m.lanes_of(m.alive).reshape(m.W, 32)
    if block.head_step is None:
        return alive
    member = block.head_step(m)
    if type(member) is int:
        bits = (member >> np.arange(32)) & 1 == 1
        return alive & bits
    mask = m.lanes_of(m.group.mask).reshape(m.W, 32)
    values = m.addresses(member).reshape(m.W, 32)
    needed = np.zeros((m.W, 32), bool)
    for lane in range(32):
        named = ((values[:, lane : lane + 1] >> np.arange(32)) & 1 == 1) & mask[:, lane : lane + 1]
        named &= named[:, lane : lane + 1]  # a lane outside its own mask waits for nobody
        needed |= named
    return needed & alive


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
        ready = mask.any(axis=1) & ~(_needed(m, m.code.blocks[at]) & ~together).any(axis=1)
        go = group.mask & np.repeat(ready, 32).reshape(m.B, m.T)
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
