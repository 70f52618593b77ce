"""What a factory asks for: getters and setters of one instruction's operands.

A row of an opcode table (`text.rows`) names a *factory*, called once for each instruction that fits it:

    def factory(ins: program.Instruction, bind: Binder) -> step
    def step(m: chunk.Chunk, mask: np.ndarray | None) -> None

Its modifiers and the number of its operands have been checked. The factory looks at `ins.parts` and
`ins.operands`, raises `bind.unsupported()` for what it does not
have, and asks `bind` for getters of its sources and setters of its destinations (this is also how the
machine learns which registers the instruction reads and writes). The step runs the instruction for a
whole chunk: `m.B` blocks of `m.T` threads, `m.W = m.B * m.T // 32` warps. `mask` is None when every
lane takes part, else a (B, T) bool array; guards (`@p`) are already in it. A getter is called as
`get(m)`, a setter as `put(m, value, mask)`; getters may return rubbish in lanes outside the mask.

    bind.integer(op, "s32")   -> int | Affine         (see `values`)
    bind.array(op, np.float32)-> ndarray, broadcastable to (B, T)
    bind.value(op, 4)         -> whatever the register holds; for moving bits
    bind.predicate(op)        -> bool | ndarray of bool
    bind.lanes([ops], dtype)  -> ndarray (len(ops), W, 32): registers by warp, for tensor-core fragments
    bind.address(op, space)   -> int | Affine: the address, [base + offset], in the space's own terms
    bind.pair(op)             -> the two registers of `d|p`, the second `_` where there is one
    bind.put(op)              -> setter for any register value; arrays of shape (1, 1) become ints
    bind.put_lanes([ops])     -> setter that takes (len(ops), W, 32), 4-byte elements
    bind.pure(dst, f, *gets)  -> the step `dst = f(*values)`, for instructions without side effects

What steps call on `m`, besides `m.B`, `m.T`, `m.W`, `m.regs`:

    m.lanes_of(mask)                  -> (B, T) bool, also for None
    m.addresses(address)              -> (B, T) int64
    m.shared.places(m, address, mask, element, total, ins) -> [Place]: checked gather indices
    m.count_shared(ins, address, mask, width, kind)   wavefronts, bytes, samples (cheap when repeated)
    m.count_global(ins, address, mask, width, kind)   requests, sectors, bytes, samples
    m.state(name, make)               -> an object of yours that lives as long as the chunk
    m.count_wavefronts(ins, mask, by_warp, by_lane)   what an instruction always costs in shared memory
    m.endings.append(f)               f(m) is called when every thread has come to its end
    m.cluster                         blocks of a cluster; they lie side by side in the chunk
    m.progress()                      something that others may wait for has changed
    m.spin(mask)                      these lanes polled something; let others run before they go on
    m.sanitizer                       None, or the object that watches shared memory
    m.fail(Error, text, ins, block, thread)   raises a named error at this instruction
"""

from __future__ import annotations

import struct

import numpy as np

from emulator.errors import PtxError, Unsupported
from emulator.machine.code import ALL
from emulator.machine.memory import LOCAL_WINDOW, SHARED_WINDOW
from emulator.machine.names import Names
from emulator.machine.values import UNSIGNED, Affine, Value, add, collapse, exact, lift, raw
from emulator.text.program import (
    SINK,
    WIDTHS,
    Address,
    Imm,
    Instruction,
    Not,
    Pair,
    Reg,
    Special,
    Symbol,
    items,
)

PARAM_ADDRESS = (
    0x4000_0000  # where the kernel's parameters are mapped: an address that 32 bits hold, too
)

_INTEGER = {
    kind: (WIDTHS[kind], kind[0] == "s")
    for kind in WIDTHS
    if kind[0] in "usb" and kind[1:].isdigit()
}


class Binder:
    """Getters and setters for one instruction's operands; see the module's docstring."""

    def __init__(self, names: Names, ins: Instruction):
        self.names, self.ins = names, ins
        self.uses = self.values = self.addresses = self.defs = self.partial = 0
        if ins.guard:
            self.uses |= 1 << names.slot(ins.guard[0])

    # complaints

    def unsupported(self, why: str = "") -> Unsupported:
        text = f"{self.ins.opcode} is not supported" + (f": {why}" if why else "")
        return Unsupported(text, self.ins.line, self.ins.text)

    def error(self, message: str) -> PtxError:
        return PtxError(message, self.ins.line, self.ins.text)

    def vector(self, operand, count: int, what: str) -> tuple:
        """The parts of an operand, which has to have `count` of them."""
        if len(found := items(operand)) != count:
            raise self.error(f"{count} {what} expected")
        return found

    # sources

    def width(self, operand) -> int:
        """Bytes of the register (0 for a predicate); of other operands, 8."""
        if isinstance(operand, Reg) and operand is not SINK and operand != SINK:
            return self.names.widths[self.names.slot(operand)]
        return 8

    def read(self, register: Reg):
        if register == SINK:
            raise self.error("_ has no value")
        if not isinstance(register, Reg):
            raise self.error(f"expected a register, found {register}")
        slot = self.names.slot(register)
        self.uses |= 1 << slot
        self.values |= 1 << slot
        return lambda m: m.regs[slot]

    def _number(self, register: Reg):
        """(get, bytes) of a register that is not a predicate."""
        get, held = self.read(register), self.width(register)
        if not held:
            raise self.error(f"{register.name} is a predicate, not a number")
        return get, held

    def _truth(self, register: Reg):
        """get of a register that is a predicate."""
        get = self.read(register)
        if self.width(register):
            raise self.error(f"{register.name} is not a predicate")
        return get

    def symbol(self, operand: Symbol) -> tuple[str, int]:
        """(space, address in that space) of a variable."""
        found = self.names.symbols.get(operand.name)
        if found is None:
            code = self.names.program.address_of(operand.name)
            if code is not None:
                return "code", code + operand.offset
            if self.names.is_function(operand.name):
                raise self.unsupported(
                    f"{operand.name} is an entry or has no body here, and so no address"
                )
            raise self.error(f"undefined symbol {operand.name}")
        space, at = found
        return space, at + operand.offset

    def constant(self, operand, width: int, is_float: bool = False) -> int:
        """An immediate (or the address of a symbol) as a bit pattern."""
        mask = (1 << 8 * width) - 1
        if isinstance(operand, Symbol):
            space, at = self.symbol(operand)
            return at + PARAM_ADDRESS if space == "param" else at
        if not isinstance(operand, Imm):
            raise self.error(f"unexpected operand {operand}")
        if isinstance(operand.value, float) or is_float:
            if operand.bits is not None and not (
                width == 8 and operand.bits < 1 << 32 and operand.value
            ):
                return operand.bits & mask
            kind = {8: ("<d", "<Q"), 4: ("<f", "<I"), 2: ("<e", "<H")}[width]
            return struct.unpack(kind[1], struct.pack(kind[0], float(operand.value)))[0]
        return operand.value & mask

    def value(self, operand, width: int):
        """get(m) -> the operand as it is held: int, Affine or ndarray (of the register's own width)."""
        if isinstance(operand, Reg):
            return self.read(operand)
        if isinstance(operand, Special):
            name = operand.name
            return lambda m: m.special(name)
        constant = self.constant(operand, width)
        return lambda m: constant

    def integer(self, operand, kind: str):
        """get(m) -> int | Affine: the operand as an integer of type `kind`, modulo its width."""
        width, _ = _INTEGER[kind]
        if isinstance(operand, Reg):
            get, held = self._number(operand)
            mask = (1 << 8 * width) - 1

            def read(m):
                found = get(m)
                if type(found) is Affine:
                    return found
                if type(found) is int:
                    return found & mask
                return lift(found, held)

            return read
        if isinstance(operand, Special):
            name, mask = operand.name, (1 << 8 * width) - 1

            def special(m):
                found = m.special(name)
                return found & mask if type(found) is int else found

            return special
        constant = self.constant(operand, width)
        return lambda m: constant

    def array(self, operand, dtype):
        """get(m) -> ndarray of `dtype`, broadcastable to (B, T): the low bits of the register."""
        dtype = np.dtype(dtype)
        if isinstance(operand, Reg):
            get, held = self._number(operand)
            if held == dtype.itemsize:

                def read(m):
                    found = get(m)
                    if type(found) is np.ndarray and found.dtype == dtype:
                        return found
                    return raw(found, dtype)

                return read
            return lambda m: raw(lift(get(m), held), dtype)
        if isinstance(operand, Special):
            name = operand.name
            return lambda m: raw(m.special(name), dtype)
        is_float = dtype.kind == "f"
        constant = self.constant(operand, dtype.itemsize, is_float)
        held = np.array([[constant]], UNSIGNED[dtype.itemsize]).view(dtype)
        return lambda m: held

    def predicate(self, operand):
        """get(m) -> bool | ndarray of bool."""
        if isinstance(operand, Not):
            get = self._truth(operand.item)
            return lambda m: _inverse(get(m))
        if isinstance(operand, Imm):
            constant = bool(operand.value)
            return lambda m: constant
        if isinstance(operand, Special):
            name = operand.name
            return lambda m: bool(m.special(name))
        get = self._truth(operand)

        def read(m):
            found = get(m)
            return found if type(found) is not int else bool(found)

        return read

    def lanes(self, operands, dtype=np.uint32):
        """get(m) -> (len(operands), W, 32) of a 4- or 8-byte `dtype`."""
        dtype = np.dtype(dtype)
        gets = [self.array(operand, dtype) for operand in operands]

        def read(m):
            out = np.empty((len(gets), m.B, m.T), dtype)
            for at, get in enumerate(gets):
                out[at] = get(m)
            return out.reshape(len(gets), m.W, 32)

        return read

    def address(self, operand: Address, space: str = "generic"):
        """get(m) -> int | Affine. `space` only says how wide the address is taken to be when it is symbolic."""
        if not isinstance(operand, Address):
            raise self.error("expected an address in brackets")
        base, offset = operand.base, operand.offset
        if isinstance(base, Reg):
            width, values = self.width(base), self.values
            get = self.integer(base, f"u{8 * width}")
            self.values, self.addresses = values, self.addresses | 1 << self.names.slot(base)
            if width == 8:
                if not offset:
                    return get
                bits = offset & ((1 << 64) - 1)
                return lambda m: add(get(m), bits, 8)

            def narrow(m):
                found = get(m)
                if offset:
                    found = add(found, offset & ((1 << 8 * width) - 1), width)  # which wraps around
                return exact(found, width, False) if type(found) is Affine else found

            return narrow
        if base is None:
            return lambda m: offset
        at = self.constant(Symbol(base.name, offset), 8)
        home, _ = self.symbol(base)
        if space == "generic" and home in ("shared", "local"):
            at += SHARED_WINDOW if home == "shared" else LOCAL_WINDOW
        return lambda m: at

    # destinations

    def pair(self, operand) -> tuple[Reg, Reg]:
        """The registers of `d|p`; for a lone `d` the second is the sink."""
        return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, SINK)

    def _written(self, operand) -> tuple[int, int]:
        """(slot, its bit) of a register that the instruction writes."""
        if not isinstance(operand, Reg):
            raise self.error("the destination is not a register")
        slot = self.names.slot(operand)
        self.defs |= 1 << slot
        return slot, 1 << slot

    def put(self, operand):
        """put(m, value, mask): writes a register; other lanes keep what they had if anyone may still read it."""
        if operand == SINK:
            return lambda m, value, mask: None
        slot, bit = self._written(operand)

        def put(m, value, mask):
            if type(value) is np.ndarray and value.size == 1:
                value = collapse(value)
            if mask is not None and m.keep & bit:
                value = m.merge(slot, value, mask)
            m.regs[slot] = value

        return put

    def put_lanes(self, operands):
        """put(m, array, mask): writes (len(operands), W, 32) elements to the registers."""
        puts = [self.put(operand) for operand in operands]

        def put_all(m, array, mask):
            for at, put in enumerate(puts):
                put(m, array[at].reshape(m.B, m.T), mask)

        return put_all

    def pure(self, destination, function, *gets):
        """The step `destination = function(*values)`."""
        if destination == SINK:
            return lambda m, mask: None
        slot, bit = self._written(destination)
        if len(gets) == 1:
            (a,) = gets

            def step(m, mask):
                value = function(a(m))
                if mask is not None and m.keep & bit:
                    value = m.merge(slot, value, mask)
                m.regs[slot] = value

        elif len(gets) == 2:
            a, b = gets

            def step(m, mask):
                value = function(a(m), b(m))
                if mask is not None and m.keep & bit:
                    value = m.merge(slot, value, mask)
                m.regs[slot] = value

        elif len(gets) == 3:
            a, b, c = gets

            def step(m, mask):
                value = function(a(m), b(m), c(m))
                if mask is not None and m.keep & bit:
                    value = m.merge(slot, value, mask)
                m.regs[slot] = value

        else:

            def step(m, mask):
                value = function(*[get(m) for get in gets])
                if mask is not None and m.keep & bit:
                    value = m.merge(slot, value, mask)
                m.regs[slot] = value

        return step

    def guarded(self, step):
        """`@p`: runs the step for the lanes whose predicate holds, and counts them."""
        register, negated = self.ins.guard
        slot, index = self.names.slot(register), self.ins.index
        self.partial |= self.defs
        self.uses |= self.defs

        def run(m, mask):
            holds = m.regs[slot]
            if type(holds) is np.ndarray:
                lanes, count = m.narrow(slot, negated, holds, mask)
                if not count:
                    return
            elif bool(holds) is not negated:
                lanes, count = mask, m.active
            else:
                return
            m.guarded_threads[index] += count
            keep, m.keep = m.keep, ALL
            step(m, lanes)
            m.keep = keep

        return run


def _inverse(value: Value):
    return ~value if type(value) is np.ndarray else not value
