"""The named errors: what a GPU would fault on, hang on, or leave undefined, and what this machine refuses.

`PtxError` (and its `Unsupported`) come from reading a module; the others from running one, and carry
the PTX instruction, its source line, and the block, thread and address that it happened at.
"""

from __future__ import annotations

from dataclasses import dataclass

# What an ExecutionError may be about where its class does not tell.
REASONS = (
    "parity",
    "arrivals",
    "whole warp",
    "whole warpgroup",
    "lanes disagree",
    "different barriers",
)


class EmulatorError(Exception):
    """Everything this package raises on purpose, except ValueError and TypeError for wrong arguments."""


class PtxError(EmulatorError):
    """The PTX text cannot be read, or says something impossible. `.line` is its 1-based PTX line."""

    def __init__(self, message: str, line: int | None = None, text: str = ""):
        self.line, self.text = line, text
        where = f"PTX line {line}: " if line else ""
        super().__init__(f"{where}{message}" + (f"\n    {text}" if text else ""))


class Unsupported(PtxError):
    """A well-formed instruction that this machine does not have; the message names it."""


@dataclass(frozen=True)
class Accessed:
    """What an access outside of all arrays was: `verb` "reads" or "writes" `size` bytes from byte `offset` on of `buffer`, which
    has `room` bytes. The buffer is the nearest one, or "shared memory"; "" where none is near.
    """

    verb: str
    size: int
    buffer: str = ""
    offset: int = 0
    room: int = 0


class ExecutionError(EmulatorError):
    """Something went wrong at an instruction.

    instruction: PTX text; ptx_line: 1-based; source: (file, line) or None; block, thread: (x, y, z)
    or None; address: the offending address as the program sees it, or None. hazards: those found
    until then; the first are noted in the traceback. reason: one of REASONS where the class says too little, else "".
    accessed: of an access outside of all arrays, or misaligned, which it was; else None.
    """

    def __init__(
        self,
        message: str,
        instruction: str = "",
        ptx_line: int | None = None,
        source: tuple[str, int] | None = None,
        block: tuple[int, int, int] | None = None,
        thread: tuple[int, int, int] | None = None,
        address: int | None = None,
        reason: str = "",
        accessed: Accessed | None = None,
    ):
        self.reason, self.accessed = reason, accessed
        self.instruction, self.ptx_line, self.source = instruction, ptx_line, source
        self.block, self.thread, self.address = block, thread, address
        self.hazards: list = []
        lines = [message]
        if instruction:
            lines.append(f"    at PTX line {ptx_line}: {instruction}")
        if source:
            lines.append(f"    from {source[0]}:{source[1]}")
        if block is not None:
            thread_text = f", thread {thread}" if thread is not None else ""
            lines.append(f"    in block {block}{thread_text}")
        super().__init__("\n".join(lines))


class OutOfBounds(ExecutionError):
    """An access outside every buffer, outside the block's shared memory, or outside a thread's local memory."""


class Misaligned(ExecutionError):
    """An address that is not a multiple of the access width (vector width times element width)."""


@dataclass(frozen=True)
class Lack:
    """What the mbarrier at byte `offset` of `symbol` waits for, in this block and phase: arrivals and bytes."""

    block: tuple[int, int, int]
    symbol: str
    offset: int
    phase: int
    pending: int
    expected: int
    missing: int
    announced: int
    brought: int
    wanted: int


class Deadlock(ExecutionError):
    """No warp can make progress. `.waiting` lists where each one stands, as text, `.barriers` what the
    mbarriers lack that somebody waits for. The same as values: `.stands`, a (block, warp, lanes in words,
    PTX line or None) each, and `.lacks`, a `Lack` each.
    """

    def __init__(
        self,
        message: str,
        waiting: list[str] | None = None,
        barriers: list[str] | None = None,
        stands: tuple = (),
        lacks: tuple = (),
        **where,
    ):
        self.stands, self.lacks = stands, lacks
        self.waiting, self.barriers = waiting or [], barriers or []
        lines = [message, *(f"    {line}" for line in [*self.waiting, *self.barriers])]
        super().__init__("\n".join(lines), **where)


class BarrierDivergence(Deadlock):
    """Threads of one warp wait at different barriers, or a barrier that some of its threads never reach."""


class LimitExceeded(Deadlock):
    """A budget that the launch was given is spent. `.waiting` lists where each warp stands, as text."""


class Trap(ExecutionError):
    """The program executed `trap` (a failed device-side assertion, for example)."""
