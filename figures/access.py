"""One warp's access as plain data: what the memory figures draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from emulator.counts.sectors import SECTOR_BYTES
from emulator.counts.wavefronts import (
    KINDS,
    shared_wavefronts,
    shared_wavefronts_ideal,
)

LANES, BANKS, LINE_BYTES = 32, 32, 128
_SET_LANES = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}


@dataclass(frozen=True)
class Access:
    """What one warp asks of memory with one instruction.

    addresses: 32 byte addresses, -1 where a lane is inactive. width: bytes per lane. kind: as in `emulator.counts.wavefronts`.
    matrices: how many 8x8 matrices an `ldmatrix` or `stmatrix` moves.
    """

    addresses: tuple[int, ...]
    width: int = 4
    kind: str = "load"
    matrices: int = 4

    def __post_init__(self):
        if len(self.addresses) != LANES:
            raise ValueError(f"a warp has 32 lanes, but {len(self.addresses)} addresses were given")
        if self.width not in _SET_LANES:
            raise ValueError(f"a lane accesses 1, 2, 4, 8 or 16 bytes, not {self.width}")
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of access {self.kind!r}; one of {', '.join(KINDS)}")
        if self.kind in ("ldmatrix", "stmatrix") and self.matrices not in (1, 2, 4):
            raise ValueError(f"{self.kind} moves 1, 2 or 4 matrices, not {self.matrices}")
        if not self.lanes:
            raise ValueError("no lane is active: there is nothing to draw")
        for lane in self.lanes:
            if self.addresses[lane] % self.bytes:
                raise ValueError(
                    f"lane {lane}: address {self.addresses[lane]} is not a multiple of the width, {self.bytes} bytes"
                )

    @property
    def bytes(self) -> int:
        """Bytes at each address: a row of a matrix is 16."""
        return 16 if self.kind in ("ldmatrix", "stmatrix") else self.width

    @property
    def lanes(self) -> tuple[int, ...]:
        """The lanes whose addresses count."""
        used = 8 * self.matrices if self.kind in ("ldmatrix", "stmatrix") else LANES
        return tuple(lane for lane in range(used) if self.addresses[lane] >= 0)

    @property
    def sectors(self) -> tuple[int, ...]:
        """The first byte addresses of the distinct 32-byte sectors touched, ascending."""
        return tuple(
            sorted({self.addresses[lane] // SECTOR_BYTES * SECTOR_BYTES for lane in self.lanes})
        )

    @property
    def sectors_ideal(self) -> int:
        """Sectors that the same lanes would touch at consecutive addresses."""
        return -(-len(self.lanes) * self.bytes // SECTOR_BYTES)

    @property
    def used_bytes(self) -> int:
        """Distinct bytes that the lanes asked for."""
        return len({self.addresses[lane] for lane in self.lanes}) * self.bytes

    @property
    def wavefronts(self) -> int:
        """Wavefronts of shared memory, as the emulator counts them."""
        return int(shared_wavefronts(*self._arrays(), self.width, self.kind, self.matrices)[0])

    @property
    def wavefronts_ideal(self) -> int:
        """Wavefronts that the same lanes cost without conflicts."""
        return int(
            shared_wavefronts_ideal(self._arrays()[1], self.width, self.kind, self.matrices)[0]
        )

    def wavefront_of_lane(self) -> dict[int, int]:
        """Which wavefront serves each lane, in an order that gives `wavefronts` in all.

        The hardware's order inside a request is not documented; lanes are served here in ascending order. For
        `cp.async.cg`, whose packets do not belong to lanes, this is the assignment of a 16-byte store.
        """
        served, first = {}, 0
        for lanes in self._sets():
            words: dict[int, list[int]] = {}
            for lane in lanes:
                slots = words.setdefault(
                    self.addresses[lane] // max(self.bytes, 4) % (128 // max(self.bytes, 4)), []
                )
                word = self.addresses[lane] // max(self.bytes, 4)
                if word not in slots:
                    slots.append(word)
                served[lane] = first + slots.index(word)
            first += max((len(slots) for slots in words.values()), default=0)
        return served

    def _arrays(self):
        addresses = np.array([self.addresses], np.int64)
        active = np.zeros((1, LANES), bool)
        active[0, list(self.lanes)] = True
        return np.where(active, addresses, 0), active

    def _sets(self) -> list[list[int]]:
        """Lanes that are served together, neighbours merged where the pair rule for loads applies."""
        size = _SET_LANES[self.bytes]
        sets = [
            [lane for lane in self.lanes if lane // size == part] for part in range(LANES // size)
        ]
        if self.kind != "load" or size == LANES or not self._paired():
            return [lanes for lanes in sets if lanes]
        merged = []
        for left, right in zip(sets[::2], sets[1::2], strict=True):
            both = left + right
            banks: dict[int, set[int]] = {}
            for lane in both:
                unit = self.addresses[lane] // self.bytes
                banks.setdefault(unit % (128 // self.bytes), set()).add(unit)
            one = max((len(units) for units in banks.values()), default=0) == 1
            merged += [both] if one else [left, right]
        return [lanes for lanes in merged if lanes]

    def _paired(self) -> bool:
        lanes = set(self.lanes)
        return any(
            all(self.addresses[lane] == self.addresses[lane ^ step] for lane in lanes)
            for step in (1, 2)
        )


def as_access(value, width: int = 4) -> Access:
    """An `Access` from one, from one of a trace's, or from 32 byte addresses (negative or masked where a lane is inactive)."""
    if isinstance(value, Access):
        return value
    if hasattr(value, "active") and hasattr(value, "addresses"):
        return _recorded(value)
    array = np.ma.filled(np.ma.asarray(value), -1).ravel()
    if array.dtype.kind not in "iu":
        raise ValueError(f"addresses are integers (bytes), not {array.dtype}")
    return Access(tuple(int(address) for address in array), width)


def _recorded(access) -> Access:
    """From an `emulator.Access`."""
    active = np.asarray(access.active, bool)
    kind = access.kind if access.kind in KINDS else "store"  # atomics are served as stores are
    matrices = 4
    if kind in ("ldmatrix", "stmatrix"):
        matrices = next((n for n in (1, 2) if not active[8 * n :].any()), 4)
    addresses = np.where(active, access.addresses, -1)
    return Access(tuple(int(at) for at in addresses), int(access.width), kind, matrices)


def as_accesses(value, width: int = 4) -> dict[str, Access]:
    """Named accesses: a mapping of them, or a single one under the empty name."""
    if isinstance(value, Mapping):
        if not value:
            raise ValueError("no access was given: there is nothing to draw")
        return {str(name): as_access(each, width) for name, each in value.items()}
    return {"": as_access(value, width)}


__all__ = ["Access"]
