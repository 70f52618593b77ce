"""Watchful steps: they check what decides, and keep up which bits of their results are undefined."""

from __future__ import annotations

import numpy as np

from emulator.machine.access import resolve
from emulator.machine.binder import Binder
from emulator.machine.unwritten import Touch, origin, slots_in
from emulator.ops.spreads import Operands, spread_of
from emulator.ops.undefined import Undefined
from emulator.sanitizer.lanes import note
from emulator.sanitizer.report import where
from emulator.text.program import WIDTHS

KIND = "uninitialised-register"
_DOING = {
    "addresses": "addresses memory {} with what depends on",
    "stores": "stores {} what depends on",
    "decides": "decides {} by what depends on",
    "uses": "uses {} what depends on",
}
_STORES = {"st", "red", "atom", "stmatrix", "wmma"}


class Watch:
    """Makes the watchful steps of one entry.

    touches: of each basic block, as `machine.unwritten` left them. eager: whether registers are undefined from
    the start; else only shuffles may make them so, and until one does nothing is watched.
    """

    def __init__(self, touches: list[list[Touch]], names, opcodes: dict, eager: bool):
        self.touches, self.names, self.opcodes, self.eager = touches, names, opcodes, eager

    def of(self, m) -> Undefined | None:
        """The state of a chunk, None for a launch that is not watched."""
        if m.launch.report is None:
            return None
        return m.state("undefined", lambda: Undefined(m, self.names, self.eager))

    def step(self, step, bind, item: Touch):
        """`step`, with its operands checked and its results' undefined bits kept up."""
        sinks = self._sinks(item)
        spread = spread_of(Operands(item, self.names, self.opcodes)) if item.watched else None
        if not sinks and spread is None:
            return step

        def watched(m, mask):
            u = self.of(m)
            if u is None or not (u.active or item.strays):
                return step(m, mask)
            for slot, bits, what in sinks:
                lanes = u.lanes(slot, bits)
                if lanes is not False:
                    self._check(m, lanes, mask, slot, what, item)
            found = spread(u, mask) if spread else {}
            step(m, mask)
            for slot, value in found.items():
                u.put(slot, value, mask)

        return watched

    def guard(self, step, item: Touch):
        """A guarded step, its predicate checked."""
        if not item.undefined & item.guard:
            return step
        return self._checked(step, item.guard.bit_length() - 1, item)

    def cleared(self, item: Touch):
        """A step for behind a barrier, whose result is defined."""

        def clear(m, mask):
            u = self.of(m)
            if u is not None:
                for slot in slots_in(item.watched):
                    u.put(slot, u.where(slot, False), mask)

        return clear

    def end(self, block, condition: int) -> list:
        """Steps that check what a block's branch or switch decides by."""
        last = Touch(block.last, 0, 0, 0, 0, condition)
        last.undefined = condition
        last.unwritten = condition
        return [self._checked(None, slot, last) for slot in slots_in(condition)]

    def _checked(self, step, slot: int, item: Touch):
        def checked(m, mask):
            u = self.of(m)
            if u is not None:
                lanes = u.lanes(slot)
                if lanes is not False:
                    self._check(m, lanes, mask, slot, "decides", item)
            if step is not None:
                step(m, mask)

        return checked

    def _sinks(self, item: Touch) -> list[tuple[int, int, str]]:
        """(slot, bits that matter, what is done with it)"""
        bits = -1
        if item.ins.parts[0] == "st":
            bits = (1 << 8 * WIDTHS[item.ins.parts[-1]]) - 1
        verb = "stores" if item.ins.parts[0] in _STORES else "uses"
        found = [(slot, -1, "addresses") for slot in slots_in(item.undefined & item.addresses)]
        return found + [(slot, bits, verb) for slot in slots_in(item.undefined & item.stored)]

    def _check(self, m, lanes, mask, slot: int, what: str, item: Touch) -> None:
        bad = np.broadcast_to(lanes, (m.B, m.T)) & m.lanes_of(mask)
        if item.local == "write" and what == "stores":
            bad = self._elsewhere(m, bad, item)
        if bad.any():
            first = origin(self.touches, item, 1 << slot)
            kind, source, name, cause = self._cause(first)
            doing = _DOING[what].format(where(item.ins))
            note(m, kind, bad, item.ins, lambda: f"{doing} {cause}", source, name)

    def _elsewhere(self, m, bad, item: Touch) -> np.ndarray:
        """Of a generic store, the lanes that do not store to local memory."""
        get = Binder(self.names, item.ins).address(item.ins.operands[0])
        found = np.zeros_like(bad)
        for memory, _, lanes, _ in resolve(m, "generic", get(m), bad if bad.any() else None):
            if memory is not m.local:
                found |= m.lanes_of(lanes) & bad
        return found

    def _cause(self, first):
        """(kind of hazard, instruction, register, in words) of what brought something undefined about."""
        if first is None:
            words = "local memory that it has not written (an array that was never filled, say)"
            return KIND, None, "local memory", words
        source, slot = first
        if slot is None:
            words = (
                f"a shuffle {where(source)} from a lane that does not take part in it (it has exited, does not "
                "exist, or is not in the mask)"
            )
            return "undefined-shuffle", source, "", words
        name = self.names.names[slot]
        words = f"a variable that nothing has set: {name}, read {where(source)}"
        return KIND, source, name, words
