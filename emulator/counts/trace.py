"""What a launch did: one row for every PTX instruction that ran, and sample accesses of its memory rows."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

COLUMNS = (
    "warps",
    "threads",
    "shared_wavefronts",
    "shared_wavefronts_ideal",
    "global_requests",
    "global_sectors",
    "bytes",
)


@dataclass(frozen=True)
class Access:
    """One warp's execution of one memory instruction.

    space: "global", "shared" or "local". buffer: whose bytes these are ("argument 0", a variable's
    name, or "shared"). block: (x, y, z); warp: its number in the block; occurrence: the how-manieth
    time that this warp executed the instruction. active: (32,) bool. addresses: (32,) int64, in
    bytes from the start of the buffer (of the block's shared memory), meaningless where inactive.
    width: bytes that a lane accesses. kind: "load", "store", "atomic", "ldmatrix", ...
    """

    space: str
    buffer: str
    block: tuple[int, int, int]
    warp: int
    occurrence: int
    active: np.ndarray
    addresses: np.ndarray
    width: int
    kind: str


@dataclass(frozen=True, slots=True)
class Sample:
    """One execution of a memory instruction by a launch's first block: all its warps, addresses as issued."""

    space: str
    block: tuple[int, int, int]
    active: np.ndarray  # (T,) bool
    addresses: np.ndarray  # (T,) int64
    width: int
    kind: str


@dataclass(frozen=True)
class UnevenBarrier:
    """A block whose threads did not all go through a barrier of the whole block equally often.

    number: of the barrier; block: (x, y, z); times: (threads,) int, how often each thread went through
    it. Barriers for a number of threads, and those that somebody only arrives at, are not counted.
    A barrier does not wait for threads that have exited (PTX ISA 9.7.13.1), so the launch ran to its end
    nonetheless; CUDA allows a barrier in conditional code only where all threads of the block take it.
    """

    number: int
    block: tuple[int, int, int]
    times: np.ndarray


@dataclass(slots=True)
class Row:
    """One PTX instruction, summed over the launch.

    source: (file, line) in the innermost inlined function, or None without `-lineinfo`; frames: the
    same with its call sites, innermost first. warps: executions by a warp; threads: by a thread whose
    guard held. shared_wavefronts, shared_wavefronts_ideal: passes of shared memory, and what
    conflict-free addresses would take. global_requests: warps that asked global memory for anything;
    global_sectors: 32-byte segments they touched. bytes: moved by all threads. copies_ahead: of a read of
    shared memory, how often it was executed while so many groups of cp.async were on their way.
    machine_size: where ptxas merged this load from shared memory with others (`merged=` in `Module.launch`), the
    bytes per lane of the machine's load, or 0 for a load that another one brings; else None.
    """

    opcode: str
    ptx_line: int
    text: str
    source: tuple[str, int] | None
    frames: tuple[tuple[str, int], ...]
    warps: int = 0
    threads: int = 0
    shared_wavefronts: int = 0
    shared_wavefronts_ideal: int = 0
    global_requests: int = 0
    global_sectors: int = 0
    bytes: int = 0
    samples: list[Sample] = field(default_factory=list, repr=False)
    copies_ahead: dict[int, int] = field(default_factory=dict, repr=False)
    room: int = field(default=0, repr=False)  # warps that may still be sampled
    machine_size: int | None = None
    merged_wavefronts: int = field(default=0, repr=False)

    @property
    def machine_loads(self) -> int:
        """Executions by a warp of the machine's instruction: none where another one brings the bytes."""
        return 0 if self.machine_size == 0 else self.warps

    @property
    def machine_wavefronts(self) -> int:
        """Passes of shared memory of the machine's instruction."""
        return self.shared_wavefronts if self.machine_size is None else self.merged_wavefronts


class Trace:
    """The result of a launch.

    instructions: Rows in PTX order. entry, grid, block: what was launched. blocks: how many blocks
    ran. counted: False when the launch was told not to count memory traffic. seconds: how long the
    emulator took. uneven: the blocks whose threads did not go through a barrier equally often.
    """

    def __init__(
        self, entry, grid, block, instructions, hazards, counted, blocks, seconds, buffers=(),
        uneven=(),
    ):  # fmt: skip
        self.entry, self.grid, self.block = entry, grid, block
        self.instructions: list[Row] = instructions
        self.counted, self.blocks, self.seconds = counted, blocks, seconds
        self._hazards = hazards
        self.uneven: list[UnevenBarrier] = list(uneven)
        self._buffers: list[tuple[int, int, str]] = list(buffers)  # (start, end, name)

    @property
    def hazards(self) -> list:
        """What the sanitizer found. ValueError if the launch ran with `sanitize=False`."""
        if self._hazards is None:
            raise ValueError("this launch ran with sanitize=False, so nobody looked for hazards")
        return self._hazards

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were counted: all, or those that do not speak of memory."""
        return COLUMNS if self.counted else COLUMNS[:2]

    def total(self, name: str) -> int:
        """The sum of one column over all instructions."""
        if name not in COLUMNS:
            raise ValueError(f"no column {name!r}; there are {', '.join(COLUMNS)}")
        if name not in self.columns:
            raise ValueError(f"this launch ran with count=False, so nobody counted its {name}")
        return sum(getattr(row, name) for row in self.instructions)

    def rows(self, opcode: str = "", line: int | None = None) -> list[Row]:
        """Rows whose opcode starts with `opcode` and (if given) that come from this source line."""
        return [
            row
            for row in self.instructions
            if row.opcode.startswith(opcode)
            and (line is None or line in (at for _, at in row.frames))
        ]

    def accesses(self, row: Row | int, warp: int | None = None) -> list[Access]:
        """The recorded executions of a row (or of the row with this index), in the order they ran.

        Only the first executions by the launch's first block are kept (`record=` in `Module.launch`).
        """
        if isinstance(row, int):
            row = self.instructions[row]
        in_a_block = -(-math.prod(self.block) // 32)
        if warp is not None and not 0 <= warp < in_a_block:
            raise ValueError(f"no warp {warp}: a block of {self.block} has {in_a_block}, from 0")
        if not self.counted:
            raise ValueError("this launch ran with count=False, so no accesses were recorded")
        found, occurrences = [], defaultdict(int)
        for sample in row.samples:
            for number in np.flatnonzero(sample.active.reshape(-1, 32).any(axis=1)).tolist():
                occurrence = occurrences[number]
                occurrences[number] += 1
                if warp is None or warp == number:
                    found.append(self._access(sample, number, occurrence))
        return found

    def _access(self, sample: Sample, warp: int, occurrence: int) -> Access:
        lanes = slice(32 * warp, 32 * warp + 32)
        active, addresses, name = sample.active[lanes], sample.addresses[lanes], sample.space
        if name == "global":
            first = int(addresses[active.argmax()])
            for start, end, buffer in self._buffers:
                if start <= first < end:
                    name, addresses = buffer, addresses - start
        return Access(
            sample.space,
            name,
            sample.block,
            warp,
            occurrence,
            active,
            addresses,
            sample.width,
            sample.kind,
        )

    def by_line(self, file: str | None = None) -> dict[int, dict[str, int]]:
        """{source line: {column: sum, "instructions": PTX instructions}} for one source file.

        Code that was inlined from elsewhere counts at the line of `file` that called it. Without
        `file`, the file that the kernel itself is written in.
        """
        if file is None:
            file = next((row.frames[-1][0] for row in self.instructions if row.frames), None)
        lines: dict[int, dict[str, int]] = defaultdict(
            lambda: dict.fromkeys((*self.columns, "instructions"), 0)
        )
        for row in self.instructions:
            line = next((at for name, at in row.frames if name == file), None)
            if line is None:
                continue
            for name in self.columns:
                lines[line][name] += getattr(row, name)
            lines[line]["instructions"] += 1
        return dict(sorted(lines.items()))

    def __repr__(self) -> str:
        return (
            f"<Trace of {self.entry}, grid {self.grid}, block {self.block}: {len(self.instructions)} PTX "
            f"instructions, {self.total('warps')} warp executions, {self.seconds:.2f} s>"
        )
