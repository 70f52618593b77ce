"""A trace in a chapter's words: what a kernel's loads and stores asked of A, B, C and shared memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import figures
from book.cells import columns

# The rungs' first three arguments, as the emulator names buffers.
MATRICES = {"argument 0": "A", "argument 1": "B", "argument 2": "C"}


@dataclass(frozen=True)
class Traffic:
    """All instructions of one kind on one matrix, summed over a launch.

    instructions: executions by a warp. sectors: 32-byte pieces of global memory. wavefronts: passes of
    shared memory; ideal: what they would be without bank conflicts.
    """

    instructions: int = 0
    sectors: int = 0
    wavefronts: int = 0
    ideal: int = 0

    @property
    def sectors_per_request(self) -> float:
        return self.sectors / self.instructions

    @property
    def wavefronts_per_request(self) -> float:
        return self.wavefronts / self.instructions


def _named(trace) -> Iterator[tuple[str, object]]:
    """(name, row) of every memory instruction that ran: "load A", "store shared", ..."""
    for row in trace.instructions:
        samples = trace.accesses(row)
        if samples:
            sample = samples[0]
            shared = sample.space == "shared"
            where = "shared" if shared else MATRICES.get(sample.buffer, sample.buffer)
            yield f"{sample.kind} {where}", row


def traffic(trace) -> dict[str, Traffic]:
    """{"load A": Traffic, "store shared": ...}, in the order in which the instructions stand."""
    found: dict[str, Traffic] = {}
    for name, row in _named(trace):
        so_far = found.get(name, Traffic())
        found[name] = Traffic(
            so_far.instructions + row.warps,
            so_far.sectors + row.global_sectors,
            so_far.wavefronts + row.shared_wavefronts,
            so_far.ideal + row.shared_wavefronts_ideal,
        )
    return found


def show(**traces) -> None:
    """Shows the traffic of each trace: requests, and sectors or wavefronts, in all and per request."""
    found = [(rung, traffic(trace)) for rung, trace in traces.items()]
    units = [
        unit
        for unit in ("sectors", "wavefronts")
        if any(getattr(row, unit) for _, rows in found for row in rows.values())
    ]
    lines = []
    for rung, rows in found:
        for name, row in rows.items():
            counts = [
                cell for unit in units for cell in _pair(getattr(row, unit), row.instructions)
            ]
            lines.append([rung, name, row.instructions, *counts])
            rung = ""
    names = ["requests", *(name for unit in units for name in (unit, f"{unit} per request"))]
    what = "what was accessed, and how: A, B and C are the kernel's matrices in global memory"
    columns.show({"": "", "access": what, **dict.fromkeys(names, "")}, lines)


def _pair(total: int, requests: int) -> tuple[str, str]:
    """A count in all and per request; nothing where the instruction has none of it."""
    return (f"{total:,}", f"{total / requests:.3g}") if total else ("", "")


def first(trace, name: str, warp: int = 0, row: int = 0) -> figures.Access:
    """One warp's first execution, in the first block, of an instruction: `first(trace, "load B")`.

    row: which of the instructions of this kind, in PTX order. KeyError names the kinds there are.
    """
    access = trace.accesses(_rows(trace, name)[row], warp)[0]
    return _drawable(access)


def every(trace, name: str) -> list[figures.Access]:
    """All recorded executions of the instructions of this kind in which every lane takes part."""
    found = [access for row in _rows(trace, name) for access in trace.accesses(row)]
    return [_drawable(access) for access in found if access.active.all()]


def _rows(trace, name: str) -> list:
    rows = [found for kind, found in _named(trace) if kind == name]
    if not rows:
        raise KeyError(f"no {name!r} in this trace; there are {', '.join(traffic(trace))}")
    return rows


def _drawable(access) -> figures.Access:
    addresses = np.where(access.active, access.addresses, -1)
    return figures.Access(tuple(int(a) for a in addresses), access.width, access.kind)
