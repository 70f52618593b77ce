"""The table of everything this machine can execute: opcode's first word -> factory (see `decode`)."""

from __future__ import annotations

from . import ops_float, ops_integer, ops_memory, ops_warp
from .machine import Barrier

OPCODES: dict = {
    **ops_integer.OPCODES,
    **ops_memory.OPCODES,
    **ops_warp.OPCODES,
    **{name: ops_float.by_type(name) for name in ops_float.OPCODES},
}
BARRIER = Barrier  # bar.sync and its kin stand at the head of a block of their own
