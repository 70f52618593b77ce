"""`bar` and `barrier`: who stands at which named barrier, and when it lets them go.

A barrier counts warps, 32 threads each, once all living lanes of the warp are there (PTX ISA 9.7.13.1).
Without a count it expects every living thread of the block. Threads that have exited are not waited for.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from emulator.errors import BarrierDivergence
from emulator.machine.chunk import Chunk
from emulator.machine.code import CodeBlock
from emulator.text.program import Instruction


class Handler(Protocol):
    """What a CodeBlock holds as its `head_step` where it begins with a barrier: `ops.barriers.Barrier`."""

    ins: Instruction
    aligned: bool  # all threads of a warp must be at this very instruction

    def release(self, chunk: Chunk, mask: np.ndarray, lanes: np.ndarray) -> None:
        """Called when `mask`, of the `lanes` that met, are let go."""


class BarrierState:
    """Who stands at one named barrier, by the block of code they stand in front of."""

    def __init__(self, number: int, chunk: Chunk):
        self.number = number
        self.standing: dict[int, np.ndarray] = {}
        self.arrived = np.zeros(chunk.B, np.int64)  # threads that arrived without waiting
        self.expected = np.zeros(chunk.B, np.int64)  # threads, 0 for all of the block
        self.handlers: dict[int, Handler] = {}

    def wait(self, block: CodeBlock, lanes: np.ndarray) -> None:
        there = self.standing.get(block.index)
        self.standing[block.index] = lanes if there is None else there | lanes
        self.handlers[block.index] = block.head_step

    def occupied(self) -> np.ndarray:
        """(B,) bool: the blocks of which somebody has come."""
        there = self.arrived > 0
        for mask in self.standing.values():
            there = there | mask.any(axis=1)
        return there

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
        for_all = (self.expected == 0) & (self.arrived == 0)
        if (for_all & done).any():
            chunk.passed_barrier(self.number, lanes & for_all[:, None])
        chunk.changes += 1
        if chunk.sanitizer is not None:
            more = done & (self.expected > 0) & (present > self.expected)
            ins = next(iter(self.handlers.values())).ins if self.handlers else None
            chunk.sanitizer.meets(self.number, lanes, done, more, ins)
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
            there = [
                (ranges(mask.reshape(chunk.W, 32)[warp]), self.handlers[at].ins.line)
                for at, mask in self.standing.items()
                if mask.reshape(chunk.W, 32)[warp].any()
            ]
            places = [f"lanes {lanes}: PTX line {line}" for lanes, line in there]
            coordinates = tuple(int(x) for x in chunk.blocks[block])
            stands = tuple((coordinates, number, lanes, line) for lanes, line in there)
            at = next(iter(self.standing))
            raise BarrierDivergence(
                f"threads of warp {number} are at different barriers", places,
                stands=stands, reason="different barriers",
                **chunk.place_of(self.handlers[at].ins, block, number * 32),
            )  # fmt: skip


def ranges(lanes: np.ndarray) -> str:
    """[1,1,1,0,1] as "0-2,4"."""
    found, numbers = [], np.flatnonzero(lanes).tolist()
    for lane in numbers:
        if found and found[-1][1] == lane - 1:
            found[-1][1] = lane
        else:
            found.append([lane, lane])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)
