"""From the undefined bits of an instruction's operands to those of its results.

What an instruction makes of them is said by its row (`text.rows.Row.spread`) in a word of `SPREADS`, with the
operands that it is about. `ops.undefined` keeps the bits.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from emulator.machine.access import deliver, dtype_of, fetch, resolve, space_of
from emulator.machine.binder import Binder
from emulator.machine.membermask import BITS, by_lane, is_everyone
from emulator.machine.unwritten import Touch, registers, slots_in
from emulator.machine.values import SIGNED, UNSIGNED, merge, raw
from emulator.numbers.tensor import to_matrices, to_registers
from emulator.ops.tensor import is_sparse, mma_product, sparse_product
from emulator.ops.undefined import Undefined
from emulator.ops.warp import source_lane
from emulator.ops.wmma import wmma_product
from emulator.text.program import WIDTHS, Imm, Not, Pair, Reg, Vector, items
from emulator.text.rows import row_of

_INTEGERS = {f"{sign}{bits}" for sign in "usb" for bits in (8, 16, 32, 64)}


@dataclass(frozen=True)
class Operands:
    """An instruction as a factory of `SPREADS` sees it."""

    item: Touch
    names: object
    opcodes: dict

    @property
    def ins(self):
        return self.item.ins

    def slot(self, register: Reg) -> int | None:
        return self.names.slots.get(register.name)

    def slots(self, operands) -> list[int]:
        """The slots that these operands name and that may be undefined here."""
        found = {self.slot(r) for operand in operands for r in registers(operand)}
        return [at for at in sorted(found - {None}) if self.item.undefined >> at & 1]

    @property
    def sources(self) -> list[int]:
        return slots_in(self.item.undefined & self.item.values)

    @property
    def destinations(self) -> list[int]:
        return [at for at in slots_in(self.item.watched) if at < len(self.names.widths)]


def _anything(s: Operands):
    """All of the result where any bit of an operand is undefined; of packed types, each half for itself."""
    if s.ins.parts[-1].endswith("x2") and s.ins.parts[0] != "cvt":
        return _halves(s)
    sources, destinations = s.sources, s.destinations
    bits = -1
    if s.ins.parts[0] == "cvt" and s.ins.parts[-1] in WIDTHS:
        bits = (1 << 8 * WIDTHS[s.ins.parts[-1]]) - 1

    def spread(u, mask):
        lanes = u.any_of(sources, bits)
        return {slot: u.where(slot, lanes) for slot in destinations}

    return spread


def _halves(s: Operands):
    """Packed types: each half for itself."""
    operands = s.ins.operands[1:]
    packs = s.ins.parts[0] == "cvt" and len(operands) == 2  # d = {b, a}, low half first
    if s.ins.parts[0] == "cvt" and not packs:
        return _anything(s)
    sources, destinations = s.sources, s.destinations
    low_of, high_of = (s.slots(operands[1:]), s.slots(operands[:1])) if packs else (sources,) * 2

    def spread(u, mask):
        found = {}
        for slot in destinations:
            half = 4 * u.widths[slot]
            first = (1 << half) - 1
            low = u.any_of(low_of, -1 if packs else first)
            high = u.any_of(high_of, -1 if packs else first << half)
            kind = UNSIGNED[u.widths[slot]]
            found[slot] = np.where(low, kind(first), kind(0)) | np.where(
                high, kind(first << half), kind(0)
            ).reshape(np.shape(high) or (1, 1))
        return found

    return spread


def _moved(s: Operands, *places: int):
    """The bits of operands `places` only move, and the others say where to: the instruction itself, run on the
    undefined bits.
    """
    carried = s.slots(s.ins.operands[i] for i in places)
    rest = [op for i, op in enumerate(s.ins.operands) if i and i not in places]
    control = s.slots(rest)
    if set(carried) & set(control):
        return _anything(s)
    operands = tuple(
        _without_constants(op) if i in places else op for i, op in enumerate(s.ins.operands)
    )
    ins = replace(s.ins, operands=operands, guard=None)
    step = row_of(s.opcodes, ins).factory(ins, Binder(s.names, ins))
    named = [
        s.slot(r) for i in places for r in registers(s.ins.operands[i]) if s.slot(r) is not None
    ]
    destination = s.ins.operands[0]
    first = destination.first if isinstance(destination, Pair) else destination
    written = [s.slot(r) for r in registers(destination) if s.slot(r) is not None]
    results = {s.slot(r) for r in registers(first)}
    destinations = s.destinations

    def spread(u, mask):
        m = u.m
        involved = {*named, *written}
        saved = {slot: m.regs[slot] for slot in involved}
        watching, keep = m.sanitizer, m.keep
        m.sanitizer, m.keep = None, -1
        for slot in involved:
            m.regs[slot] = u.get(slot) if slot in carried or slot in destinations else 0
        step(m, mask)
        found = {slot: m.regs[slot] for slot in destinations}
        for slot, value in saved.items():
            m.regs[slot] = value
        m.sanitizer, m.keep = watching, keep
        lanes = u.any_of(control)
        for slot in destinations:
            if slot not in results:
                found[slot] = u.where(slot, lanes)
            elif lanes is not False:
                full = u.full(slot)
                value = found[slot]
                found[slot] = (
                    merge(np.atleast_2d(lanes), full, value, u.widths[slot])
                    if type(lanes) is np.ndarray
                    else full
                )
        return found

    return spread


def _shuffled(s: Operands, place: int):
    """What a lane reads from one that does not take part is undefined (PTX ISA 9.7.9.6)."""
    moved, bind = _moved(s, place), Binder(s.names, s.ins)
    lanes, member = source_lane(s.ins, bind), bind.integer(s.ins.operands[4], "u32")
    first, _ = bind.pair(s.ins.operands[0])
    target = s.slot(first)

    def spread(u, mask):
        m = u.m
        found = moved(u, mask) if u.active else {}
        value = member(m)
        if (mask is None and is_everyone(value)) or target not in s.destinations:
            return found
        lane, valid = (np.broadcast_to(x, (m.W, 32)) for x in lanes(m))
        named = by_lane(m, value)
        here = m.lanes_of(mask).reshape(m.W, 32)
        takes_part = here & (named & BITS != 0)
        there = np.take_along_axis(takes_part, lane, axis=1)
        there &= np.take_along_axis(named, lane, axis=1) == named
        stray = here & valid & ~there
        if stray.any():
            stray = stray.reshape(m.B, m.T)
            before = found.get(target, 0)
            found[target] = merge(stray, u.full(target), before, u.widths[target])
        return found

    return spread


def _without_constants(operand):
    match operand:
        case Reg():
            return operand
        case Vector(items):
            return Vector(tuple(_without_constants(item) for item in items))
        case Not(item):
            return item
    return Imm(0)


def _converted(s: Operands):
    _, *_, result, source = s.ins.parts
    if result in _INTEGERS and source in _INTEGERS and "sat" not in s.ins.parts:
        return _moved(s, 1)
    return _halves(s) if result.endswith("x2") else _anything(s)


def _each_bit(s: Operands):
    """A bit of the result depends on the same bit of the operands alone: the instruction itself, run with the
    undefined bits set and cleared. It is defined where that makes no difference.
    """
    ins = replace(s.ins, guard=None)
    step = row_of(s.opcodes, ins).factory(ins, Binder(s.names, ins))
    sources, destinations = s.slots(s.ins.operands[1:]), s.destinations
    written = [s.slot(r) for r in registers(s.ins.operands[0])]

    def spread(u, mask):
        m = u.m
        held = {at: _dense(u.get(at), u.widths[at]) for at in sources}
        held = {at: bits for at, bits in held.items() if bits.any()}
        saved = {at: m.regs[at] for at in {*held, *written}}
        plain = {at: _dense(saved[at], u.widths[at]) for at in held}
        watching, keep = m.sanitizer, m.keep
        m.sanitizer, m.keep = None, -1
        found: dict = {}
        for choice in itertools.product((False, True), repeat=len(held)):
            for (at, bits), filled in zip(held.items(), choice, strict=True):
                m.regs[at] = plain[at] | bits if filled else plain[at] & ~bits
            step(m, mask)
            for at in destinations:
                value = _dense(m.regs[at], u.widths[at])
                first, differs = found.get(at, (value, value ^ value))
                found[at] = first, differs | (value ^ first)
        for at, value in saved.items():
            m.regs[at] = value
        m.sanitizer, m.keep = watching, keep
        return {at: differs for at, (_, differs) in found.items()}

    return spread


def _dense(value, width: int) -> np.ndarray:
    """A register's value as an array of bits; of a predicate's, of bool."""
    if width:
        return raw(value, np.dtype(UNSIGNED[width]))
    return np.atleast_2d(np.asarray(value)).astype(bool)


def _compared(s: Operands):
    """setp with a third operand, which may settle the result alone."""
    if len(s.ins.operands) < 4:
        return _anything(s)
    third = s.ins.operands[3]
    combine = next(p for p in s.ins.parts[2:] if p in ("and", "or", "xor"))
    holds, own = Binder(s.names, s.ins).predicate(third), s.slots([third])
    compared, destinations = s.slots(s.ins.operands[1:3]), s.destinations

    def spread(u, mask):
        left, right = u.any_of(compared), u.any_of(own)
        value = np.atleast_2d(holds(u.m))
        matters = {"and": value, "or": ~value, "xor": np.array([[True]])}[combine]
        return dict.fromkeys(destinations, (left & (matters | right)) | right)

    return spread


def _for_the_warp(s: Operands):
    """What one lane brings is in the result of all."""
    sources, destinations = s.sources, s.destinations

    def spread(u, mask):
        m = u.m
        lanes = np.broadcast_to(u.any_of(sources), (m.B, m.T)) & m.lanes_of(mask)
        warps = np.repeat(lanes.reshape(m.W, 32).any(axis=1), 32).reshape(m.B, m.T)
        return {slot: u.where(slot, warps) for slot in destinations}

    return spread


def _loaded(s: Operands):
    """Memory is not watched, but for local memory: it is the thread's own."""
    destinations = s.destinations
    if s.item.local != "read":
        return lambda u, mask: dict.fromkeys(destinations, 0)
    get, space, dtype = _local_access(s, 1)
    slots = [s.slot(item) for item in items(s.ins.operands[0])]

    def spread(u, mask):
        m, found = u.m, {}
        for memory, address, lanes, _ in resolve(m, space, get(m), mask):
            if memory is m.local:
                bits = fetch(m, u.local, address, lanes, dtype, len(slots), s.ins)
            else:
                bits = [np.zeros((1, 1), dtype)] * len(slots)
            for slot, value in zip(slots, bits, strict=True):
                if slot not in destinations:
                    continue
                wide = value.astype((SIGNED if dtype.kind == "i" else UNSIGNED)[u.widths[slot]])
                wide = wide.view(UNSIGNED[u.widths[slot]])
                old = found.get(slot)
                found[slot] = wide if old is None else np.where(lanes, wide, old)
        return found

    return spread


def _stored(s: Operands):
    """A store to local memory takes the undefined bits with it."""
    get, space, dtype = _local_access(s, 0)
    slots = [s.slot(x) if isinstance(x, Reg) else None for x in items(s.ins.operands[1])]

    def spread(u, mask):
        m, values = u.m, []
        for slot in slots:
            if slot is None or not s.item.undefined >> slot & 1:
                values.append(np.zeros((1, 1), dtype))
            else:
                whole = raw(u.get(slot), np.dtype(UNSIGNED[u.widths[slot]]))
                values.append(whole.astype(dtype))
        for memory, address, lanes, _ in resolve(m, space, get(m), mask):
            if memory is m.local:
                deliver(m, u.local, address, lanes, dtype, values, s.ins)
        return {}

    return spread


def _local_access(s: Operands, position: int):
    """(getter of the address, space, unsigned or signed type of an element) of a load or store."""
    space = space_of(s.ins)
    if space == "param":
        space = "local"
    dtype = dtype_of(s.ins.parts[-1])
    if dtype.kind == "f":
        dtype = np.dtype(UNSIGNED[dtype.itemsize])
    return Binder(s.names, s.ins).address(s.ins.operands[position], space), space, dtype


def _product(s: Operands):
    """A row of A, a column of B and an element of C each make what comes of them undefined."""
    ins = s.ins
    if is_sparse(ins):
        return _sparse_product(s)
    product = (mma_product if ins.parts[0] == "mma" else wmma_product)(ins, Binder(s.names, ins))
    d, *inputs = (items(operand) for operand in ins.operands)
    parts = (product.a, product.b, product.c)
    slots = [[s.slot(r) if isinstance(r, Reg) else None for r in part] for part in inputs]
    targets, destinations = [s.slot(r) for r in d], set(s.destinations)
    word = np.uint64 if product.a_type == "f64" else np.uint32

    def spread(u, mask):
        a, b, c = (
            to_matrices(part, _registers(u, held, s.item.undefined, word)) != 0
            for part, held in zip(parts, slots, strict=True)
        )
        total = a.any(axis=-1, keepdims=True) | b.any(axis=-2, keepdims=True) | c
        return _as_registers(u, product.d, total, targets, destinations)

    return spread


def _sparse_product(s: Operands):
    """As `_product`, of the rows of B that are chosen; metadata that are undefined make all of D undefined."""
    bind = Binder(s.names, s.ins)
    product = sparse_product(s.ins, bind)
    d, *inputs = (items(operand) for operand in s.ins.operands[:5])
    metadata = bind.lanes(inputs[3])
    slots = [[s.slot(r) if isinstance(r, Reg) else None for r in part] for part in inputs]
    targets, destinations = [s.slot(r) for r in d], set(s.destinations)

    def spread(u, mask):
        *parts, own = (_registers(u, held, s.item.undefined, np.uint32) for held in slots)
        a, b, c = (x != 0 for x in product.matrices(*parts, metadata(u.m)[0]))
        unknown = product.chunks(own[0]).any(axis=(1, 2))[:, None, None, None]
        total = a.any(axis=-1, keepdims=True) | b.any(axis=-2, keepdims=True) | c | unknown
        return _as_registers(u, product.d, total[:, :, 0], targets, destinations)

    return spread


def _as_registers(u: Undefined, fragment, undefined, targets, destinations) -> dict:
    """All bits of the elements that are undefined, (W, rows, cols) bool, by register slot."""
    element = UNSIGNED[fragment.bits // 8]
    bits = np.where(undefined, element(np.iinfo(element).max), element(0))
    found = to_registers(fragment, bits)
    return {
        slot: found[i].reshape(u.m.B, u.m.T)
        for i, slot in enumerate(targets)
        if slot in destinations
    }


def _warpgroup_product(s: Operands):
    """D where scale-d adds what was there, each register for itself; all of a warp's D where its part of A is.

    B, and A in shared memory, are not watched.
    """
    if s.ins.parts[1] != "mma_async":
        return _anything(s)
    a, adds_of = s.ins.operands[1], Binder(s.names, s.ins).predicate(s.ins.operands[3])
    fragment = s.slots([a]) if isinstance(a, Vector) else []
    destinations = s.destinations

    def spread(u, mask):
        m, adds, rows = u.m, adds_of(u.m), u.any_of(fragment)
        if type(rows) is np.ndarray:
            warps = np.broadcast_to(rows, (m.B, m.T)).reshape(m.W, 32).any(axis=1)
            rows = np.repeat(warps, 32).reshape(m.B, m.T)
        return {slot: u.where(slot, rows | (adds & u.lanes(slot))) for slot in destinations}

    return spread


def _registers(u: Undefined, slots, undefined: int, word) -> np.ndarray:
    """(registers, W, 32): the undefined bits of a fragment."""
    found = np.zeros((len(slots), u.m.B, u.m.T), word)
    for i, slot in enumerate(slots):
        if slot is not None and undefined >> slot & 1:
            found[i] = raw(u.get(slot), np.dtype(word))
    return found.reshape(len(slots), u.m.W, 32)


SPREADS = {
    "any": _anything,
    "none": _anything,  # it writes no register, or what no operand has to do with
    "bits": _each_bit,
    "moves": _moved,
    "shuffles": _shuffled,
    "converts": _converted,
    "compares": _compared,
    "warp": _for_the_warp,
    "loads": _loaded,
    "stores": _stored,
    "product": _product,
    "warpgroup product": _warpgroup_product,
}


def spread_of(s: Operands):
    """spread(u, mask) -> undefined bits by slot, of this instruction."""
    words = row_of(s.opcodes, s.ins).spread.split()
    places = [int(word) for word in words if word.isdigit()]
    return SPREADS[" ".join(word for word in words if not word.isdigit())](s, *places)
