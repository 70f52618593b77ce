"""An end for what does not end: a budget of instructions, and of time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from emulator.errors import LimitExceeded
from emulator.machine import deadlock

_EVERY = 2000  # instructions of a chunk between two looks at the budget
NEVER = 1 << 62


@dataclass
class Limits:
    """What a launch may use. warp_instructions: executed by all its warps; seconds: of this machine's time.

    None is no limit. Both are looked at every few thousand instructions.
    """

    warp_instructions: int | None = None
    seconds: float | None = None
    started: float = field(default_factory=time.perf_counter)
    spent: int = 0  # warp instructions of chunks that have ended

    def __post_init__(self):
        for name in ("warp_instructions", "seconds"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not value > 0):
                raise ValueError(f"max_{name} is a positive number, not {value!r}")

    @property
    def first_look(self) -> int:
        """The clock at which a chunk first calls `look`."""
        unlimited = self.warp_instructions is None and self.seconds is None
        return NEVER if unlimited else _EVERY

    def look(self, m, at: int | None = None) -> None:
        """Raises LimitExceeded where a budget is spent. at: the block that the running group is in."""
        m.next_look = m.clock + _EVERY
        seconds = time.perf_counter() - self.started
        used = 0 if self.warp_instructions is None else self.spent + used_by(m)
        late = self.seconds is not None and seconds > self.seconds
        if at is not None and (late or used > (self.warp_instructions or used)):
            m.groups.setdefault(at, m.group)  # so that it is listed
        if late:
            deadlock.report(
                m,
                f"stopped after {seconds:.1f} s, with a limit of {self.seconds:g} s",
                LimitExceeded,
            )
        if used > (self.warp_instructions or used):
            limit = self.warp_instructions
            why = f"stopped after {used} warp instructions, with a limit of {limit}"
            deadlock.report(m, why, LimitExceeded)


def used_by(m) -> int:
    """Warp instructions that a chunk has executed."""
    return sum(
        warps * (len(block.plain) + len(block.guarded))
        for block, (warps, _) in zip(m.code.blocks, m.runs, strict=True)
    )
