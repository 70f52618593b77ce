"""The instructions `bar` and `barrier`: sync, arrive and red (PTX ISA 9.7.13.1)."""

from __future__ import annotations

import numpy as np

from emulator.machine.barriers import BarrierState
from emulator.machine.chunk import Chunk, Group
from emulator.machine.code import ALL, CodeBlock
from emulator.machine.values import Affine, Pattern
from emulator.text.rows import Row


class Barrier:
    """`bar` and `barrier`: sync, arrive and red. Lives in a CodeBlock of its own, as its `head_step`."""

    def __init__(self, ins, bind):
        self.ins = ins
        parts = [part for part in ins.parts[1:] if part not in ("cta", "aligned")]
        self.kind = parts[0]
        self.aligned = ins.parts[0] == "bar" or "aligned" in ins
        operands = list(ins.operands)
        self.combine = self.result = self.vote = None
        if self.kind == "red":
            self.combine = parts[1]
            self.result = bind.put(operands.pop(0))
            self.vote = bind.predicate(operands.pop())
            bind.partial = bind.defs
        self.number = bind.integer(operands[0], "u32")
        self.count = bind.integer(operands[1], "u32") if len(operands) > 1 else None
        self.votes: np.ndarray | None = None

    def arrive(self, m: Chunk, block: CodeBlock, group: Group, converged: bool) -> bool:
        """True when the group may walk on at once; otherwise it has been put where it belongs."""
        number, count = self.number(m), self.count(m) if self.count else 0
        if self.kind == "red":
            held = self.votes
            if held is None or held.shape != (m.B, m.T):
                held = np.zeros((m.B, m.T), bool)
            lanes = m.lanes_of(group.mask)
            self.votes = np.where(lanes, np.broadcast_to(self.vote(m), (m.B, m.T)), held)
        simple = type(number) is int and type(count) is int
        if converged and simple and self.kind != "arrive" and number not in m.barriers:
            living = m.T if m.alive is None else 0
            if count in (0, living):
                m.passed_barrier(number, m.lanes_of(group.mask))
                if m.sanitizer is not None:
                    lanes, done = m.lanes_of(group.mask), np.ones(m.B, bool)
                    m.sanitizer.meets(number, lanes, done, ~done, self.ins)
                    m.sanitizer.barrier(number, lanes, done)
                if self.kind == "red":
                    m.keep = 0
                    self.release(m, m.lanes_of(group.mask), m.lanes_of(group.mask))
                return True
        lanes = m.lanes_of(group.mask)
        numbers, counts = m.addresses(number), m.addresses(count)
        for value in np.unique(numbers[lanes]).tolist():
            here = lanes & (numbers == value)
            state = m.barriers.setdefault(value, BarrierState(value, m))
            rows = here.any(axis=1)
            expected = np.where(here, counts, 0).max(axis=1)
            if m.sanitizer is not None:
                other = rows & state.occupied() & (state.expected % m.T != expected % m.T)
                if other.any():
                    m.sanitizer.counted_otherwise(value, other, here, self.ins)
            state.expected[rows] = expected[rows]
            if self.kind == "arrive":
                state.arrived += here.reshape(m.B, -1, 32).any(axis=2).sum(axis=1) * 32
                m.runs[block.index][0] += m.warps_of(here)
                m.runs[block.index][1] += int(np.count_nonzero(here))
                if m.sanitizer is not None:
                    m.sanitizer.arrives(value, here, self.ins)
                    m.sanitizer.barrier_arrive(value, here)
            else:
                state.wait(block, here)
        if self.kind == "arrive":
            m.stand(block.targets[0], group)
        for value in np.unique(numbers[lanes]).tolist():
            if value in m.barriers:
                m.barriers[value].complete(m)
        return False

    def release(self, m: Chunk, mask: np.ndarray, lanes: np.ndarray) -> None:
        """Gives `bar.red` its result, over all the lanes that met."""
        if self.kind != "red":
            return
        votes = self.votes & lanes
        yes = votes.sum(axis=1, keepdims=True)
        if self.combine == "popc":
            value = Affine(Pattern(yes.astype(np.int64), 0, m.T))
        elif self.combine == "and":
            value = yes == lanes.sum(axis=1, keepdims=True)
        else:
            value = yes > 0
        keep, m.keep = m.keep, ALL
        self.result(m, value, mask)
        m.keep = keep


_WAITS, _ARRIVES = (
    Row(Barrier, (1, 2), types="b32 b32", spread="none", meets="barrier"),
    Row(Barrier, (2,), types="b32 b32", spread="none", meets="barrier"),
)
_VOTES = Row(Barrier, (3, 4), types="own b32", spread="any", meets="barrier")

OPCODES = {
    "bar": {
        "cta sync!": _WAITS,
        "cta arrive!": _ARRIVES,
        "cta red! popc|and|or! u32|pred!": _VOTES,
    },
    "barrier": {
        "cta sync! aligned": _WAITS,
        "cta arrive! aligned": _ARRIVES,
        "cta red! popc|and|or! aligned u32|pred!": _VOTES,
    },
}
