"""The table of everything this machine can execute: opcode's first word -> factory (see `decode`)."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from . import ops_float, ops_integer, ops_memory, ops_warp
from .machine import Barrier

OPCODES: dict = {
    **ops_integer.OPCODES,
    **ops_memory.OPCODES,
    **ops_warp.OPCODES,
    **{name: ops_float.by_type(name) for name in ops_float.OPCODES},
}
for _name in ("ops_tensor", "ops_async"):
    if find_spec(f"{__package__}.{_name}"):
        OPCODES.update(import_module(f".{_name}", __package__).OPCODES)

BARRIER = Barrier  # bar.sync and its kin stand at the head of a block of their own
