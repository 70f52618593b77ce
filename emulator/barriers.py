"""`bar` and `barrier`: who stands at which named barrier, and when it lets them go.

A barrier counts warps, 32 threads each, once all living lanes of the warp are there (PTX ISA 9.7.13.1).
Without a count it expects every living thread of the block. Threads that have exited are not waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .errors import BarrierDivergence
from .values import Affine, Pattern

if TYPE_CHECKING:
    from .decode import CodeBlock
    from .machine import Chunk, Group

ALL = -1  # every register


class BarrierState:
    """Who stands at one named barrier, by the block of code they stand in front of."""

    def __init__(self, number: int, chunk: Chunk):
        self.number = number
        self.standing: dict[int, np.ndarray] = {}
        self.arrived = np.zeros(chunk.B, np.int64)  # threads that arrived without waiting
        self.expected = np.zeros(chunk.B, np.int64)  # threads, 0 for all of the block
        self.handlers: dict[int, Barrier] = {}

    def wait(self, chunk: Chunk, block: CodeBlock, lanes: np.ndarray) -> None:
        there = self.standing.get(block.index)
        self.standing[block.index] = lanes if there is None else there | lanes
        self.handlers[block.index] = block.head_step

    def complete(self, chunk: Chunk) -> None:
        """Lets go every block whose barrier has everyone it expects."""
        if not self.standing and not self.arrived.any():
            return
        waiting = np.zeros((chunk.B, chunk.T), bool)
        for mask in self.standing.values():
            waiting |= mask
        alive = chunk.lanes_of(chunk.alive)
        per_warp = (chunk.B, chunk.T // 32, 32)
        there = waiting.reshape(per_warp).any(axis=2)
        whole = there & ~(alive & ~waiting).reshape(per_warp).any(axis=2)
        present = whole.sum(axis=1) * 32 + self.arrived
        living = alive.reshape(per_warp).any(axis=2).sum(axis=1) * 32
        need = np.where(self.expected > 0, self.expected, living)
        done = (
            (present >= need)
            & (there.any(axis=1) | (self.arrived > 0))
            & (there == whole).all(axis=1)
        )
        if not done.any():
            return
        lanes = waiting & done[:, None]
        self._check_one_barrier(chunk, lanes)
        chunk.changes += 1
        if chunk.sanitizer is not None:
            chunk.sanitizer.barrier(self.number, lanes, done)
        handlers = {at: self.handlers[at] for at in self.standing}
        going = {at: mask & lanes for at, mask in self.standing.items()}
        self.standing = {
            at: mask & ~lanes for at, mask in self.standing.items() if (mask & ~lanes).any()
        }
        self.arrived[done] = 0
        self.expected[done] = 0
        if not self.standing and not self.arrived.any():
            chunk.barriers.pop(self.number, None)
        for at, mask in going.items():
            count = int(np.count_nonzero(mask))
            if count:
                handlers[at].release(chunk, mask, lanes)
                chunk.runs[at][0] += chunk.warps_of(mask)
                chunk.runs[at][1] += count
                mask = chunk.alive if chunk.alive is None and count == chunk.alive_count else mask
                chunk.stand_at(chunk.code.blocks[at].targets[0], mask, count)

    def _check_one_barrier(self, chunk: Chunk, lanes: np.ndarray) -> None:
        """`bar.sync` is `.aligned`: all threads of a warp must be at the same one."""
        if len(self.standing) < 2:
            return
        seen = np.zeros(chunk.W, np.int64)
        for at, mask in self.standing.items():
            if self.handlers[at].aligned:
                seen += (mask & lanes).reshape(chunk.W, 32).any(axis=1)
        if (seen > 1).any():
            warp = int((seen > 1).argmax())
            block, number = divmod(warp, chunk.T // 32)
            places = [
                f"lanes {ranges(mask.reshape(chunk.W, 32)[warp])}: PTX line {self.handlers[at].ins.line}"
                for at, mask in self.standing.items()
                if mask.reshape(chunk.W, 32)[warp].any()
            ]
            at = next(iter(self.standing))
            raise BarrierDivergence(
                f"threads of warp {number} are at different barriers", places,
                **chunk.place_of(self.handlers[at].ins, block, number * 32),
            )  # fmt: skip


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
        elif self.kind not in ("sync", "arrive"):
            raise bind.unsupported()
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
                if m.sanitizer is not None:
                    m.sanitizer.barrier(number, m.lanes_of(group.mask), np.ones(m.B, bool))
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
            state.expected[rows] = np.where(here, counts, 0).max(axis=1)[rows]
            if self.kind == "arrive":
                state.arrived += here.reshape(m.B, -1, 32).any(axis=2).sum(axis=1) * 32
                m.runs[block.index][0] += m.warps_of(here)
                m.runs[block.index][1] += int(np.count_nonzero(here))
                if m.sanitizer is not None:
                    m.sanitizer.barrier_arrive(value, here)
            else:
                state.wait(m, block, here)
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


def ranges(lanes: np.ndarray) -> str:
    """[1,1,1,0,1] as "0-2,4"."""
    found, numbers = [], np.flatnonzero(lanes).tolist()
    for lane in numbers:
        if found and found[-1][1] == lane - 1:
            found[-1][1] = lane
        else:
            found.append([lane, lane])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)
