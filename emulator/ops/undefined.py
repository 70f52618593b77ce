"""Undefined bits, kept beside the registers until they matter.

`machine.unwritten` proves of most registers that they are written before they are read. For the rest,
a register's *undefined bits* are kept beside it, held as the register itself is (an int, an `Affine`
or an array), all set until an instruction writes it. What an instruction makes of them is in
`ops.spreads`. An address, a predicate that decides, or a stored value with undefined bits is a hazard
(`ops.watching`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from emulator.machine.memory import Rows
from emulator.machine.values import UNSIGNED, Value, merge, raw


class Undefined:
    """The undefined bits of one chunk's watched registers, and of its local memory."""

    def __init__(self, m, names, eager: bool):
        self.m, self.widths = m, names.widths
        self.eager = self.active = eager  # active: something may be undefined
        self.held: dict[int, Value] = {}
        self._local: Rows | None = None

    def full(self, slot: int) -> Value:
        width = self.widths[slot]
        return (1 << 8 * width) - 1 if width else True

    def get(self, slot: int) -> Value:
        found = self.held.get(slot)
        if found is None:
            return self.full(slot) if self.eager else self.where(slot, False)
        return found

    def put(self, slot: int, value: Value, mask) -> None:
        if mask is not None:
            value = merge(mask, value, self.get(slot), self.widths[slot])
        if type(value) is np.ndarray and not value.any():
            value = 0 if self.widths[slot] else False
        self.active |= type(value) not in (int, bool) or bool(value)
        self.held[slot] = value

    def lanes(self, slot: int, bits: int = -1):
        """bool, or bool array: the lanes in which any of these bits of the register is undefined."""
        value, width = self.get(slot), self.widths[slot]
        if type(value) in (bool, int):
            return bool(value & bits)
        if not width:
            return value
        array = raw(value, np.dtype(UNSIGNED[width]))
        return array & array.dtype.type(bits & self.full(slot)) != 0

    def any_of(self, slots, bits: int = -1):
        found = False
        for slot in slots:
            found = found | self.lanes(slot, bits)
        return found

    def where(self, slot: int, lanes) -> Value:
        """All bits of the register where `lanes` holds, none elsewhere."""
        if not self.widths[slot]:
            return lanes
        if type(lanes) is not np.ndarray:
            return self.full(slot) if lanes else 0
        kind = UNSIGNED[self.widths[slot]]
        return np.where(lanes, kind(self.full(slot)), kind(0))

    @property
    def local(self) -> Rows:
        """The undefined bits of local memory, in its own geometry."""
        if self._local is None:
            like = self.m.local
            self._local = Rows("local", np.zeros((1, 1)), 1, like.size)
            self._local.row, self._local.stride = like.row, like.stride
            self._local.buffer = replace(
                like.buffer, bytes=np.full_like(like.buffer.bytes, 255), views={}
            )
        return self._local
