"""One run of a kernel on the emulator, at a setting or with words that a reader chose: what it gave, or why it gave nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from book.cells import memory
from book.cells.subjects import OfOthers, OfTheLadder, subject
from figures.drawing import plural
from kernels.errors import BuildError

SHAPE = (128, 128, 32)  # a few steps along K are enough to see what one asks
# Instructions whose addresses no lane has: how an opcode begins -> what it is called here.
UNADDRESSED = {
    "cp.async.bulk.tensor.2d.shared": "TMA reads",
    "cp.async.bulk.tensor.2d.global": "TMA writes C",
    "wgmma.mma_async": "wgmma reads",
}


@dataclass(frozen=True)
class Outcome:
    """What one run at one setting gave. `problem` says in words why there is none."""

    macros: Mapping[str, int]
    seconds: float = 0.0
    right: bool = False
    wrong: str = ""
    trace: object = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    problem: str = ""
    block: str = ""  # what a block takes of a multiprocessor

    @cached_property
    def rows(self) -> list[tuple]:
        """(access, requests, sectors, wavefronts, ideal) for each kind of access; a copy from global into shared memory is
        two of them, what it reads and what it writes.
        """
        rows = []
        for name, row in memory.traffic(self.trace).items():
            if row.sectors and row.wavefronts:
                copy = ".".join(name.split()[0].split(".")[:2])
                rows.append((f"{copy} reads", row.instructions, row.sectors, 0, 0))
                rows.append((f"{copy} writes", row.instructions, 0, row.wavefronts, row.ideal))
            else:
                rows.append((name, row.instructions, row.sectors, row.wavefronts, row.ideal))
        return [*rows, *self._by_hardware()]

    def _by_hardware(self) -> list[tuple]:
        """The rows of what no lane addresses: TMA's tiles, and the operands of wgmma."""
        found: dict[str, list[int]] = {}
        for row in self.trace.instructions:
            name = next((n for start, n in UNADDRESSED.items() if row.opcode.startswith(start)), "")
            if not name or not row.warps:
                continue
            counts = (
                row.warps,
                row.global_sectors,
                row.shared_wavefronts,
                row.shared_wavefronts_ideal,
            )
            found[name] = [a + b for a, b in zip(found.get(name, [0] * 4), counts, strict=True)]
        return [(name, *counts) for name, counts in found.items()]

    @property
    def report(self) -> str:
        """The hazards that were found, in a few words; empty where there are none."""
        kinds = sorted({str(hazard.kind) for hazard in self.trace.hazards or ()})
        return f"{plural(len(self.trace.hazards), 'hazard')} ({', '.join(kinds)})" if kinds else ""

    @property
    def verdict(self) -> str:
        if self.problem:
            return self.problem
        count = len(self.trace.hazards or ())
        found = f", and {plural(count, 'hazard')} {'was' if count == 1 else 'were'} found"
        said = "The product is right" if self.right else f"The product is wrong: {self.wrong}"
        return said + (found if count else "") + "."


def run(
    kernel: str | OfTheLadder | OfOthers,
    macros: Mapping[str, int],
    shape: Sequence[int] = SHAPE,
    changes: Sequence[tuple[str, str]] = (),
) -> Outcome:
    """One run on the emulator, of the kernel or of its source with `changes`; never raises for what a reader may choose."""
    kernel = subject(kernel) if isinstance(kernel, str) else kernel
    started = time.perf_counter()
    try:
        done = kernel.run(macros, shape, changes)
    except BuildError as refused:
        asserted = re.search(r'static assertion failed with "(.*?)"', str(refused))
        why = f"the kernel asks that {asserted[1]}" if asserted else str(refused)
        return Outcome(macros, problem=f"It does not compile: {why}")
    except Exception as refused:  # a setting that is refused, or a kernel that faults
        return Outcome(macros, problem=f"{type(refused).__name__}: {refused}")
    seconds, found = time.perf_counter() - started, done.accuracy
    text = kernel.listing(changes)
    taken = (
        f"A block of {done.threads} threads takes {done.shared_bytes:,} bytes of shared memory"
        f" and {done.registers} registers per thread."
    )
    return Outcome(macros, seconds, found.ok, str(found), done.trace, text, block=taken)
