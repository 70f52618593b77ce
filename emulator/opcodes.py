"""The table of everything this machine can execute: opcode's first word -> factory (see `decode`)."""

from __future__ import annotations

from . import (
    ops_async,
    ops_bits,
    ops_float,
    ops_integer,
    ops_memory,
    ops_print,
    ops_select,
    ops_tensor,
    ops_warp,
)

_INTEGERS = {**ops_integer.OPCODES, **ops_bits.OPCODES, **ops_select.OPCODES}


def _by_type(name: str):
    """One factory for an opcode that integers and floats share: the last word of the opcode decides."""
    of_floats, of_integers = ops_float.OPCODES[name], _INTEGERS.get(name)

    def factory(ins, bind):
        is_float = ins.parts[-1] in ops_float.FLOATS or of_integers is None
        return (of_floats if is_float else of_integers)(ins, bind)

    return factory


OPCODES: dict = {
    **_INTEGERS,
    **ops_memory.OPCODES,
    **ops_warp.OPCODES,
    **{name: _by_type(name) for name in ops_float.OPCODES},
    **ops_tensor.OPCODES,
    **ops_async.OPCODES,
    **ops_print.OPCODES,
}
