"""What an H100 counted for single accesses, beside what the emulator's rules say.

One warp executes one instruction with known lane addresses, and Nsight Compute counts wavefronts. The
data and their provenance are in `results/accesses/`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from book.cells import columns
from figures import Access

DATA = Path(__file__).resolve().parents[2] / "results" / "accesses" / "h100_single_accesses.json"
ELEMENT_BYTES = {"b16": 2, "b32": 4}
KINDS = {"ld": "load", "st": "store"}


@dataclass(frozen=True)
class Measured:
    """One access to shared memory and the wavefronts that the GPU counted for it."""

    instruction: str
    pattern: str
    access: Access
    wavefronts: int

    @property
    def predicted(self) -> int:
        """What the rules of `emulator/counts/wavefronts.py` say, from the addresses alone."""
        return self.access.wavefronts


@cache
def _file() -> dict:
    return json.loads(DATA.read_text(encoding="utf-8"))


@cache
def accesses() -> tuple[Measured, ...]:
    """All measured accesses to shared memory."""
    return tuple(_read(row) for row in _file()["rows"] if "shared_wavefronts" in row)


def find(instruction: str, pattern: str) -> Measured:
    """One of them, by name. KeyError lists the patterns that were measured with this instruction."""
    same = {row.pattern: row for row in accesses() if row.instruction == instruction}
    if pattern not in same:
        raise KeyError(
            f"no {pattern!r} measured with {instruction!r}; there are: {', '.join(same) or 'none'}"
        )
    return same[pattern]


def machine() -> str:
    """The GPU, driver and profiler that the measurements come from."""
    return _file()["measured_on"]


def show(patterns: Sequence[str], *instructions: str) -> None:
    """Shows, for each pattern and instruction, the rule's wavefronts beside the GPU's."""
    heads = {"lanes' addresses": "how the byte addresses of the 32 lanes follow from the lane"}
    for name in instructions:
        heads[f"`{name}`: rule"] = "wavefronts that the rules of the emulator say"
        heads[f"`{name}`: GPU"] = "wavefronts that Nsight Compute counted"
    rows = []
    for pattern in patterns:
        found = [find(name, pattern) for name in instructions]
        rows.append([pattern, *(n for row in found for n in (row.predicted, row.wavefronts))])
    columns.show(heads, rows, caption=f"Measured on {machine()}.")


def _read(row: dict) -> Measured:
    on = [row["active_mask"] >> lane & 1 for lane in range(32)]
    addresses = tuple(at if lane_on else -1 for at, lane_on in zip(row["offsets"], on, strict=True))
    first, *rest = row["access"].split(".")
    if first in KINDS:
        vector = int(rest[1][1]) if rest[1][0] == "v" else 1
        access = Access(addresses, ELEMENT_BYTES[rest[-1]] * vector, KINDS[first])
    elif first == "cp":
        access = Access(addresses, int(rest[2]), ".".join([first, *rest[:2]]))
    else:
        access = Access(addresses, 16, first, int(rest[0][1]))
    return Measured(row["access"], row["pattern"], access, row["shared_wavefronts"])
