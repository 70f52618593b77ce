"""Membermasks: which lanes of a warp take part together in one `.sync` instruction (PTX ISA 9.7.9.6, 9.7.13).

The lanes of one warp may execute the same instruction with different masks at the same time: two
halves of a warp, say, each with its own. Each mask is then a group of its own, as on hardware.
"""

from __future__ import annotations

import numpy as np

from emulator.machine.values import Value, raw
from emulator.sanitizer.lanes import note
from emulator.sanitizer.report import where

ALL_LANES = 0xFFFFFFFF
BITS = np.uint32(1) << np.arange(32, dtype=np.uint32)


def is_everyone(member: Value) -> bool:
    """Whether a membermask names all 32 lanes, for every thread."""
    return type(member) is int and member & ALL_LANES == ALL_LANES


def by_lane(m, member: Value) -> np.ndarray:
    """A membermask as (W, 32) uint32: the one that each lane gives."""
    array = raw(member, np.dtype(np.uint32))
    return np.broadcast_to(array, (m.B, m.T)).reshape(m.W, 32)


def as_bits(lanes: np.ndarray) -> np.ndarray:
    """(W, 32) bool to (W,) uint32, a bit for each lane."""
    return np.packbits(lanes, axis=1, bitorder="little").view("<u4")[:, 0].astype(np.uint32)


def groups(m, mask, member: Value) -> list:
    """The masks, (B, T) bool or None for every lane, of the parts that execute an instruction each on its own.

    mask: the lanes that are there. No warp has lanes with different membermasks in one part, so there is
    one part unless some warp has several masks.
    """
    if type(member) is int:
        return [mask]
    known = member.pattern.facts.get(("groups", member.offset))
    if known is None or known[0] is not mask or known[1] is not m:
        known = (mask, m, _groups(m, mask, by_lane(m, member)))
        member.pattern.remember(("groups", member.offset), known)
    return known[2]


def _groups(m, mask, named: np.ndarray) -> list:
    left = m.lanes_of(mask).reshape(m.W, 32)
    found = []
    while True:
        leader = named[np.arange(m.W), left.argmax(axis=1)][:, None]
        part = left & (named == leader)
        left = left & ~part
        if not left.any():
            return [*found, part.reshape(m.B, m.T)] if found else [mask]
        found.append(part.reshape(m.B, m.T))


def check_callers(m, mask, member: Value, ins) -> None:
    """Reports lanes that are not in the mask they call with: PTX leaves undefined what they get."""
    if is_everyone(member) or m.launch.report is None:
        return
    key = ("callers", ins.index)
    known = m.masks.get(key)
    same = (member if type(member) is int else (member.pattern, member.offset), mask)
    if known is not None and known[1] is mask and known[0] == same[0]:
        return
    m.masks[key] = same
    outside = by_lane(m, member) & BITS == 0
    lanes = m.lanes_of(mask) & outside.reshape(m.B, m.T)
    if lanes.any():
        note(m, "membermask", lanes, ins, lambda: f"executes {ins.parts[0]} {where(ins)} with a mask that it is "
             "not in itself; every caller must be in its mask")  # fmt: skip


def each(member, step, ins):
    """A step that runs `step` once for each group of lanes with one membermask. member: its getter."""

    def run(m, mask):
        value = member(m)
        check_callers(m, mask, value, ins)
        if m.sanitizer is not None:
            m.sanitizer.collective(mask)
        parts = groups(m, mask, value)
        if len(parts) == 1:
            return step(m, mask)
        keep, m.keep = m.keep, -1  # what a part writes must not disturb the other parts
        for part in parts:
            step(m, part)
        m.keep = keep

    return run
