"""Named barriers on which more warps come, or others, than belong together.

A barrier counts warps, whoever they are (PTX ISA 9.7.13.1). Which of them meet is settled only where as many come as it
counts, and where whoever comes for the next meeting cannot come before the last one is over.
"""

from __future__ import annotations

import numpy as np

from emulator.sanitizer import words
from emulator.sanitizer.report import Seen


class Meetings:
    """The named barriers of a chunk. chunk_blocks, threads: its blocks, threads of one; together: blocks of a cluster."""

    def __init__(self, shadow, chunk_blocks: int, threads: int, together: int):
        self.shadow, self.B, self.per, self.together = shadow, chunk_blocks, threads // 32, together
        self.coming: dict = {}  # number -> warps, (B, per), that have arrived without waiting
        self.last: dict = {}  # number -> (who met last, (B, per); when, (B,); there, an instruction)

    def arrive(self, number: int, lanes: np.ndarray, instruction) -> None:
        """Lanes, (B, T), arrive without waiting."""
        warps = self._warps(lanes)
        coming = self.coming.setdefault(number, np.zeros_like(warps))
        again = warps & coming
        coming |= warps
        if number in self.last:
            before, when, _ = self.last[number]
            again |= self._unordered(warps & before, before, when)
        if again.any():
            self._tell("again", number, instruction, instruction, again)

    def counted(self, number: int, blocks: np.ndarray, lanes: np.ndarray, instruction) -> None:
        """Lanes name another count than those who are there in these blocks, (B,) bool."""
        self._tell("counts", number, instruction, None, self._warps(lanes) & blocks[:, None])

    def met(
        self, number: int, lanes: np.ndarray, done: np.ndarray, more: np.ndarray, instruction
    ) -> None:
        """Lanes go on in the blocks `done`; in the blocks `more` they are more than it counts. Before `Order.barrier`."""
        coming = self.coming.get(number)
        warps = self._warps(lanes)
        if coming is not None:
            warps |= coming & done[:, None]
            coming[done] = False
        if more.any():
            self._tell("more", number, instruction, None, warps & more[:, None])
        last = self.last.get(number)
        now = self.shadow.now + 1
        if last is None:
            self.last[number] = (warps.copy(), np.where(done, now, 0), instruction)
            return
        before, when, there = last
        fresh = warps & ~before & ~more[:, None]
        if fresh.any():
            others = self._unordered(fresh, before, when)
            if others.any():
                self._tell("others", number, instruction, there, others)
        before[done] = warps[done]
        when[done] = now
        self.last[number] = (before, when, instruction)

    def _unordered(self, warps: np.ndarray, before: np.ndarray, when: np.ndarray) -> np.ndarray:
        """Which of these warps, (B, per), are not ordered after what the others of `before` did since `when`, (B,)."""
        found = np.zeros_like(warps)
        block, warp = np.nonzero(warps)
        if len(block):
            cluster, first = block // self.together, block % self.together * self.per
            own = first[:, None] + np.arange(self.per)
            known = self.shadow.known[cluster[:, None], (first + warp)[:, None], own]
            others = before[block] & (np.arange(self.per) != warp[:, None])
            told = (others & (known >= when[block][:, None])).any(axis=1)
            found[block, warp] = others.any(axis=1) & ~told
        return found

    def _warps(self, lanes: np.ndarray) -> np.ndarray:
        return lanes.reshape(self.B, self.per, 32).any(axis=2)

    def _tell(self, detail: str, number: int, instruction, earlier, warps: np.ndarray) -> None:
        block, warp = np.argwhere(warps)[0].tolist()
        thread = (block % self.together * self.per + warp) * 32
        seen = Seen(instruction, earlier, block, thread, 0, self.shadow.places)
        words.tell(self.shadow.report, "shared-barrier", seen, detail, number=number)
