"""Tensor memory, and what works on it beside the threads (PTX ISA 9.7.16).

A `tcgen05.mma`, `.cp` or `.shift` is done when somebody waits for an mbarrier at which a later `tcgen05.commit` of
the same thread arrives, and could not go on without it: then it reads its operands, and writes, as late as the
program allows. Operations of one thread are done in order. Each block has all 512 columns to itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from emulator.errors import ExecutionError
from emulator.machine.mbarriers import MBarrier
from emulator.numbers.tcgen05 import COLUMNS, LANES
from emulator.sanitizer.tensor_memory import TensorShadow
from emulator.text.program import Instruction

UNWRITTEN = 0x7FFFDEAD  # what nobody has written reads as: a NaN
LEAST = 32  # columns of an allocation


@dataclass
class Operation:
    """A product or copy under way. run: does it. ticket: the sanitizer's."""

    ins: Instruction
    block: int
    thread: int
    run: Callable[[], None]
    ticket: object = None


@dataclass
class Commit:
    """Arrivals at mbarriers, (block, offset) each, when the operations before it are done."""

    ins: Instruction
    targets: set


@dataclass
class Held:
    """Allocated columns of a block: [first, first + count)."""

    first: int
    count: int
    ins: Instruction
    warp: int


class TensorMemory:
    """The tensor memories of a chunk's blocks, (B, 128, 512) uint32, and what is under way on them."""

    def __init__(self, m):
        self.m = m
        self.cells = np.full((m.B, LANES, COLUMNS), UNWRITTEN, np.uint32)
        self.held: list[list[Held]] = [[] for _ in range(m.B)]
        self.allocated = np.zeros((m.B, COLUMNS), bool)
        self.ever = np.zeros((m.B, COLUMNS), bool)
        self.relinquished: dict[int, Instruction] = {}  # block -> by what
        self.queues: dict[tuple[int, int], deque] = {}  # (block, thread) -> what it issued
        self.waiting: dict[tuple[int, int], deque] = {}  # (block, offset) -> (queue, Commit)
        self.pair: bool | None = None  # what every instruction's cta_group says
        self.tables: dict = {}  # where operands lie, by descriptor
        self.shadow = TensorShadow(m) if m.sanitizer is not None else None
        m.endings.append(self._check_end)

    def check_group(self, ins: Instruction, pair: bool) -> None:
        """All tcgen05 instructions of a kernel name one cta_group (PTX ISA 9.7.16.5)."""
        if self.pair is None:
            self.pair = pair
        if self.pair != pair:
            text = f"{ins.opcode} after instructions of cta_group::{1 + self.pair}: a kernel has one cta_group"
            self.m.fail(ExecutionError, text, ins)
        if pair and self.m.cluster % 2:
            text = (
                f"cta_group::2 is for pairs of blocks; this launch has clusters of {self.m.cluster}"
            )
            self.m.fail(ExecutionError, text, ins)

    # --- Columns ---

    def allocate(self, ins, block: int, warp: int, count: int) -> int:
        """The first column of `count` free ones, aligned to `count`."""
        if block in self.relinquished:
            text = "tcgen05.alloc after tcgen05.relinquish_alloc_permit of its block"
            self.m.fail(ExecutionError, text, ins, block, 32 * warp)
        if not (LEAST <= count <= COLUMNS and count & (count - 1) == 0):
            text = f"tcgen05.alloc of {count} columns: a power of two from {LEAST} to {COLUMNS}"
            self.m.fail(ExecutionError, text, ins, block, 32 * warp)
        for first in range(0, COLUMNS, count):
            if not self.allocated[block, first : first + count].any():
                self.allocated[block, first : first + count] = True
                self.ever[block, first : first + count] = True
                self.held[block].append(Held(first, count, ins, warp))
                return first
        free = COLUMNS - int(self.allocated[block].sum())
        text = (
            f"tcgen05.alloc of {count} columns, of which {free} are free (not in one piece): it would wait until "
            "another warp deallocates some, which this machine does not model"
        )
        self.m.fail(ExecutionError, text, ins, block, 32 * warp)
        return 0

    def free(self, ins, block: int, warp: int, address: int, count: int) -> None:
        for one in self.held[block]:
            if (one.first, one.count) == (address, count):
                self.held[block].remove(one)
                self.allocated[block, one.first : one.first + count] = False
                if self.shadow is not None:
                    self.shadow.deallocate(ins, block, warp, one.first, count)
                return
        held = ", ".join(f"{h.count} columns at {h.first}" for h in self.held[block]) or "nothing"
        text = f"tcgen05.dealloc of {count} columns at {address:#x}; allocated are {held}"
        self.m.fail(ExecutionError, text, ins, block, 32 * warp)

    def check_columns(self, ins, block: int, thread: int, first: int, count: int, what: str):
        """An error for columns that do not exist, or are not allocated."""
        inside = first + count <= COLUMNS
        if inside and self.allocated[block, first : first + count].all():
            return
        text = f"{what} columns {first} to {first + count - 1} of tensor memory, "
        if not inside:
            text += f"which has {COLUMNS}"
        elif self.ever[block, first : first + count].all():
            text += "which were deallocated before"
        else:
            held = [f"{h.first} to {h.first + h.count - 1}" for h in self.held[block]]
            text += f"which nobody has allocated (allocated: {', '.join(held) or 'none'})"
        self.m.fail(ExecutionError, text, ins, block, thread, address=first)

    # --- What is under way ---

    def issue(self, operation: Operation) -> None:
        key = operation.block, operation.thread
        self.queues.setdefault(key, deque()).append(operation)
        self.m.progress()

    def commit(self, ins, block: int, thread: int, targets) -> None:
        """Arrives at the mbarriers when what this thread has issued is done."""
        queue = self.queues.setdefault((block, thread), deque())
        one = Commit(ins, set(targets))
        queue.append(one)
        for target in one.targets:
            self.waiting.setdefault(target, deque()).append((block, queue, one))
        self.m.progress()

    def finish(self, offset: int, blocks: np.ndarray) -> bool:
        """Ends what the mbarriers at `offset` of these blocks, (B,) bool, wait for. Was there anything?"""
        found = False
        for block in np.flatnonzero(blocks).tolist():
            pending = self.waiting.get((block, offset))
            phase = None  # of the mbarrier, before anything arrived here
            while pending:
                barrier = MBarrier(self.m, offset)
                if phase is not None and int(barrier.phase[block]) != phase:
                    break
                phase = int(barrier.phase[block])
                by, queue, one = pending.popleft()
                self._run(queue, one)
                one.targets.discard((block, offset))
                if not one.targets:
                    queue.remove(one)
                here = np.zeros(self.m.B, np.int64)
                here[block] = 1
                if self.m.sanitizer is not None:
                    self.m.sanitizer.commit_arrives(offset, block, by)
                barrier.arrive_from_afar(here)
                found = True
        return found

    def _run(self, queue: deque, until: Commit) -> None:
        """Does what stands in the queue before this commit; other commits stay."""
        rest = deque()
        while queue and queue[0] is not until:
            one = queue.popleft()
            if isinstance(one, Commit):
                rest.append(one)
                continue
            one.run()
        queue.extendleft(reversed(rest))

    def _check_end(self, m) -> None:
        if self.shadow is None:
            return
        for queue in self.queues.values():
            for one in queue:
                if isinstance(one, Operation):
                    self.shadow.tell("uncommitted-product", one.ins, None, one.block, one.thread)
        for block, held in enumerate(self.held):
            for one in held:
                detail = f"{one.count} columns at {one.first}"
                self.shadow.tell("leaked-columns", one.ins, None, block, 32 * one.warp, detail)


def tensor_memory(m) -> TensorMemory:
    return m.state("tensor memory", lambda: TensorMemory(m))


def finish(m, offset: int, blocks: np.ndarray) -> bool:
    """`TensorMemory.finish`, for kernels that have any."""
    found = m.states.get("tensor memory")
    return found is not None and found.finish(offset, blocks)


# --- Registers that a tcgen05.ld is loading ---------------------------------------------------------


@dataclass
class Load:
    """One tcgen05.ld that nobody has waited for. warps: (W,) bool; slots: the registers that hold what it loads."""

    ins: Instruction
    warps: np.ndarray
    slots: set[int]


class Loading:
    """The loads of a chunk that nobody has waited for. Their registers hold the values already: ptxas makes whoever
    uses them wait, and published PTX relies on it, though the PTX ISA asks for a tcgen05.wait::ld.
    """

    def __init__(self, m):
        self.m, self.pending, self.bits = m, [], 0

    def start(self, load: Load) -> None:
        self.pending.append(load)
        for slot in load.slots:
            self.bits |= 1 << slot

    def wait(self, warps: np.ndarray) -> None:
        """These warps, (W,) bool, wait for their loads."""
        for load in self.pending:
            load.warps = load.warps & ~warps
        self.pending = [load for load in self.pending if load.warps.any()]
        self.bits = 0
        for load in self.pending:
            for slot in load.slots:
                self.bits |= 1 << slot

    def touch(self, mask, ins: Instruction, reads: int, writes: int, move) -> None:
        """An instruction reads and writes these registers. move: (from, to) slots of a mov."""
        if not (reads | writes) & self.bits:
            return
        m = self.m
        warps = m.lanes_of(mask).reshape(m.W, 32).any(axis=1)
        for load in self.pending:
            here = load.warps & warps
            if not here.any():
                continue
            if move is not None and move[0] in load.slots:
                load.slots.add(move[1])
                self.bits |= 1 << move[1]
                continue
            if any((reads | writes) >> slot & 1 for slot in load.slots):
                shadow = tensor_memory(m).shadow
                if shadow is not None:
                    block, thread = divmod(32 * int(here.argmax()), m.T)
                    shadow.tell("unfinished-tensor-load", ins, load.ins, block, thread)


def loading(m) -> Loading:
    return m.state("tensor loads", lambda: Loading(m))


def held(item: Instruction):
    """The registers that a tcgen05.ld writes."""
    if item.parts[:2] != ("tcgen05", "ld"):
        return ()
    return getattr(item.operands[0], "items", item.operands[:1])


def under_way(m) -> Loading | None:
    """The loads under way, None where there are none."""
    found = m.states.get("tensor loads")
    return found if found is not None and found.pending else None
