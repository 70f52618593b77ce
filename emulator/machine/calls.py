"""Calls through addresses, and of functions that call themselves: who goes where, and what comes back."""

from __future__ import annotations

import numpy as np

from emulator.errors import ExecutionError
from emulator.machine.values import Affine, Pattern, merge

MOST_DEEP = 4096  # calls of one thread that have not returned


class Calls:
    """The calls of recursive functions that have not returned, lane by lane.

    depth: (B, T), how many of each lane. levels: for each depth, register slot -> what it held in the lanes that
    are as deep or deeper, and under -1 where they return to.
    """

    def __init__(self, m):
        self.depth = np.zeros((m.B, m.T), np.int64)
        self.levels: list[dict] = []

    def push(self, m, mask, slots, site: int, ins) -> None:
        lanes = m.lanes_of(mask)
        for depth in np.unique(self.depth[lanes]).tolist():
            if depth == MOST_DEEP:
                block, thread = np.argwhere(lanes & (self.depth == depth))[0].tolist()
                m.fail(ExecutionError, f"{depth} calls deep without a return", ins, block, thread)
            if depth == len(self.levels):
                self.levels.append({-1: np.zeros((m.B, m.T), np.int64)})
            here, level = lanes & (self.depth == depth), self.levels[depth]
            level[-1][here] = site
            for slot in slots:
                value = m.regs[slot]
                value = value.copy() if type(value) is np.ndarray else value
                width = m.code.widths[slot]
                level[slot] = merge(here, value, level.get(slot, 0 if width else False), width)
        self.depth[lanes] += 1

    def pop(self, m, mask, slots) -> None:
        lanes = m.lanes_of(mask)
        self.depth[lanes] -= 1
        for depth in np.unique(self.depth[lanes]).tolist():
            here, level = lanes & (self.depth == depth), self.levels[depth]
            for slot in slots:
                m.regs[slot] = merge(here, level[slot], m.regs[slot], m.code.widths[slot])

    def back(self) -> Affine:
        """Which call each lane returns to."""
        found = np.zeros_like(self.depth)
        for depth, level in enumerate(self.levels):
            found = np.where(self.depth == depth + 1, level[-1], found)
        return Affine(Pattern(found, 0, int(found.max())))


def calls_of(m) -> Calls:
    return m.state("calls", lambda: Calls(m))


def selector_of(last, bind):
    """get(m) -> which of a switch's targets: the index of a `brx.idx`, a callee's, or a call to return to."""
    if "return" in last.parts:
        bind.read(last.operands[0])
        return lambda m: calls_of(m).back()
    if "call" not in last.parts:
        return bind.integer(last.operands[0], "u32")
    addresses = np.array([place.value for place in last.operands[2:]], np.int64)
    get, count = bind.integer(last.operands[0], "u64"), len(addresses)

    def chosen(m):
        value = get(m)
        if type(value) is int:
            return int(np.flatnonzero(addresses == value)[0]) if value in addresses else count
        lanes = m.addresses(value)
        found = np.full(lanes.shape, count, np.int64)
        for i, address in enumerate(addresses):
            found[lanes == address] = i
        return Affine(Pattern(found, 0, count))

    return chosen
