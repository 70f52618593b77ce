"""The table of everything this machine can execute: opcode's first word -> factory (see `machine.binder`)."""

from __future__ import annotations

from emulator.ops import (
    atomics,
    bits,
    cluster,
    copies,
    floating,
    integer,
    mbarrier,
    memory,
    moves,
    printing,
    registers,
    select,
    tensor,
    warp,
    wgmma,
)

_INTEGERS = {**integer.OPCODES, **bits.OPCODES, **select.OPCODES}


def _by_type(name: str):
    """One factory for an opcode that integers and floats share: the last word of the opcode decides."""
    of_floats, of_integers = floating.OPCODES[name], _INTEGERS.get(name)

    def factory(ins, bind):
        is_float = ins.parts[-1] in floating.FLOATS or of_integers is None
        return (of_floats if is_float else of_integers)(ins, bind)

    return factory


OPCODES: dict = {
    **_INTEGERS,
    **memory.OPCODES,
    **atomics.OPCODES,
    **moves.OPCODES,
    **warp.OPCODES,
    **{name: _by_type(name) for name in floating.OPCODES},
    **tensor.OPCODES,
    **copies.OPCODES,
    **mbarrier.OPCODES,
    **wgmma.OPCODES,
    **cluster.OPCODES,
    **registers.OPCODES,
    **printing.OPCODES,
}
