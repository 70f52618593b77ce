"""mbarriers: 64-bit words in shared memory that count arrivals and bytes (PTX ISA 9.7.13.15).

Bits 0-19 hold the arrivals still pending, 20-39 the expected count, 40-60 the transaction bytes
outstanding, 63 the parity of the current phase. The token of an arrival is the word as it stood before.
Programs must not look inside either.
"""

from __future__ import annotations

import numpy as np

from emulator.errors import ExecutionError
from emulator.machine.access import resolve

COUNT = (1 << 20) - 1  # the largest number of arrivals
_TX = (1 << 21) - 1


class MBarrier:
    """The mbarriers at one offset in each block's shared memory. Fields are (B,) int64."""

    def __init__(self, m, offset: int):
        self.m, self.offset = m, offset
        self.word = m.shared.buffer.view(np.dtype(np.uint64))
        self.index = (np.arange(m.B) * m.shared.stride + offset) >> 3
        word = self.word[self.index].astype(np.uint64)
        self.pending = (word & np.uint64(COUNT)).astype(np.int64)
        self.expected = (word >> np.uint64(20) & np.uint64(COUNT)).astype(np.int64)
        tx = (word >> np.uint64(40) & np.uint64(_TX)).astype(np.int64)
        self.tx = np.where(tx > _TX >> 1, tx - _TX - 1, tx)
        self.phase = (word >> np.uint64(63)).astype(np.int64)

    @staticmethod
    def pack(pending, expected, tx, phase) -> np.ndarray:
        """The word (uint64) of these fields."""
        fields = ((pending & COUNT, 0), (expected & COUNT, 20), (tx & _TX, 40), (phase & 1, 63))
        return sum(np.asarray(f).astype(np.uint64) << np.uint64(at) for f, at in fields)

    def store(self, blocks: np.ndarray) -> None:
        word = self.pack(self.pending, self.expected, self.tx, self.phase)
        self.word[self.index[blocks]] = word[blocks]
        self.m.progress()

    def complete(self, blocks: np.ndarray) -> None:
        """Ends the phase where nothing is pending any more."""
        done = blocks & (self.pending == 0) & (self.tx == 0)
        self._turn(done, np.ones_like(self.phase))

    def _turn(self, done: np.ndarray, phases: np.ndarray) -> None:
        if done.any():
            self.phase = np.where(done, self.phase ^ (phases & 1), self.phase)
            self.pending = np.where(done & (self.pending == 0), self.expected, self.pending)
            if self.m.sanitizer is not None:
                now, past = keys(self.offset)
                self.m.sanitizer.transfer(now, past, done)

    def arrive(self, lanes: np.ndarray, count) -> np.ndarray:
        """Lanes, (B, T) bool, arrive with `count` each. Returns each lane's token, (B, T) uint64."""
        m = self.m
        blocks = lanes.any(axis=1)
        if m.sanitizer is not None:
            m.sanitizer.release(keys(self.offset)[0], warps_of(m, lanes))
        each = np.where(lanes, count, 0)
        before = np.cumsum(each, axis=1) - each  # arrivals of the lanes ahead, in lane order
        total = each.sum(axis=1)
        expected = np.maximum(self.expected, 1)
        beyond = before - self.pending[:, None]  # arrivals into later phases
        waiting = self.tx != 0  # the phase cannot end before its bytes are there
        later = (beyond >= 0) & ~waiting[:, None]
        passed = np.where(later, beyond // expected[:, None] + 1, 0)
        left = np.where(later, expected[:, None] - beyond % expected[:, None], -beyond)
        token = self.pack(
            left, self.expected[:, None], self.tx[:, None], self.phase[:, None] + passed
        )
        left = self.pending - total
        phases = np.where(waiting | (left > 0), 0, -left // expected + 1)
        self.pending = np.where(blocks, left + phases * self.expected, self.pending)
        self._turn(blocks & (phases > 0), phases)
        self.store(blocks)
        return token

    def check(self, lanes: np.ndarray, ins) -> None:
        bad = lanes.any(axis=1) & (self.expected == 0) & (self.pending == 0)
        if bad.any():
            block = int(bad.argmax())
            thread = int(lanes[block].argmax())
            text = f"the mbarrier at byte {self.offset} of shared memory is not initialised"
            self.m.fail(ExecutionError, text, ins, block, thread, address=self.offset)


def keys(offset: int) -> tuple:
    """What the sanitizer calls the arrivals of an mbarrier's current and of its finished phases."""
    return ("mbarrier", offset, "now"), ("mbarrier", offset, "past")


def warps_of(m, lanes: np.ndarray) -> np.ndarray:
    return lanes.reshape(m.B, m.T // 32, 32).any(axis=2)


def named(m, ins, space: str, address, mask) -> list[tuple[int, np.ndarray]]:
    """[(offset, lanes)]: the mbarriers that an instruction names, and who names each."""
    found = []
    for memory, where, lanes, name in resolve(m, space, address, mask):
        if name != "shared":
            m.fail(ExecutionError, "an mbarrier must be in shared memory", ins)
        memory.places(m, where, lanes, 8, 8, ins)
        lanes = m.lanes_of(lanes)
        if type(where) is int:
            found.append((where, lanes))
            continue
        offsets = m.addresses(where)
        distinct = np.unique(offsets[lanes]).tolist()
        if len(distinct) == 1:
            found.append((distinct[0], lanes))
        else:
            found += [(offset, lanes & (offsets == offset)) for offset in distinct]
    return found
