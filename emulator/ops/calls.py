"""What calls of recursive functions become (`text.inlining`); no PTX is spelt like this."""

from __future__ import annotations

from emulator.errors import ExecutionError
from emulator.machine.calls import calls_of
from emulator.machine.memory import LOCAL_WINDOW
from emulator.machine.values import add
from emulator.text.rows import Row


def _push(ins, bind):
    """The caller's registers, and where it goes on, are put aside. (PTX ISA 9.7.12.5: each call has its own.)"""
    (saved,) = ins.operands
    slots = [bind.names.slot(register) for register in saved.registers]
    for slot in slots:  # not in `bind.values`: what nothing has set may be put aside
        bind.uses |= 1 << slot
    stack = bind.names.slot(saved.stack)
    bind.uses |= 1 << stack
    most = bind.names.symbols[saved.stack.name][1] + saved.limit

    def step(m, mask):
        lanes = m.lanes_of(mask)
        tops = m.addresses(m.regs[stack])
        if (tops[lanes] > most).any():
            block, thread = divmod(int((lanes & (tops > most)).argmax()), m.T)
            deep = int(calls_of(m).depth[block, thread])
            text = f"the stack of a thread is full after {deep} calls that have not returned"
            m.fail(ExecutionError, text, ins, block, thread)
        calls_of(m).push(m, mask, slots, saved.site, ins)

    return step


def _pop(ins, bind):
    """The caller has its registers back."""
    (saved,) = ins.operands
    slots = [bind.names.slot(register) for register in saved.registers]
    for slot in slots:
        bind.defs |= 1 << slot
    return lambda m, mask: calls_of(m).pop(m, mask, slots)


def _place(window: int):
    def factory(ins, bind):
        """The address of a variable on the stack."""
        destination, place = ins.operands
        offset = place.offset + window
        get = bind.integer(place.base, "u64")
        return bind.pure(destination, lambda value: add(value, offset, 8), get)

    return Row(factory, (2,), types="own -", spread="any")


OPCODES = {
    "<push>": {"": Row(_push, (1,), types="-", spread="none")},
    "<pop>": {"": Row(_pop, (1,), types="-", spread="none")},
    "<place>": {"": _place(0)},
    "<generic>": {"": _place(LOCAL_WINDOW)},
}
