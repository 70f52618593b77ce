"""A trace in a chapter's words: what a kernel's loads and stores asked of A, B, C and shared memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import figures

# The rungs' first three arguments, as the emulator names buffers.
MATRICES = {"argument 0": "A", "argument 1": "B", "argument 2": "C"}
KINDS = {"load": "load", "store": "store", "ldmatrix": "ldmatrix"}


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
        if row.samples:
            sample = row.samples[0]
            shared = sample.space == "shared"
            where = "shared" if shared else MATRICES.get(sample.buffer, sample.buffer)
            yield f"{KINDS.get(sample.kind, sample.kind)} {where}", row


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
    """Prints the traffic of each trace: requests, and sectors or wavefronts a request."""
    print(f"{'':14}{'':14}{'requests':>10}{'sectors':>10}{'a request':>11}", end="")
    print(f"{'wavefronts':>12}{'a request':>11}")
    for rung, trace in traces.items():
        for name, row in traffic(trace).items():
            print(f"{rung:14}{name:14}{row.instructions:10,}", end="")
            print(_pair(row.sectors, row.instructions, 10), end="")
            print(_pair(row.wavefronts, row.instructions, 12).rstrip())
            rung = ""


def _pair(total: int, requests: int, width: int) -> str:
    return f"{total:{width},}{total / requests:11.3g}" if total else " " * (width + 11)


def first(trace, name: str, warp: int = 0, occurrence: int = 0) -> figures.Access:
    """One execution by one warp of the first block, to draw: `first(trace, "load B")`.

    KeyError names the kinds of traffic that there are.
    """
    rows = [row for found, row in _named(trace) if found == name]
    if not rows:
        raise KeyError(
            f"no {name!r} in this trace; there are {', '.join(traffic(trace))}"
        )
    samples = [access for row in rows for access in trace.accesses(row, warp)]
    access = samples[occurrence]
    addresses = np.where(access.active, access.addresses, -1)
    return figures.Access(tuple(int(a) for a in addresses), access.width, access.kind)
