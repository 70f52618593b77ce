"""A CPU machine that runs PTX: what a GPU would compute, and what its profiler and sanitizer would say.

`Module(ptx).launch(entry, grid, block, args)` runs a kernel on NumPy arrays and returns a `Trace`, with a
row for every PTX instruction that ran. What real hardware would fault on, hang on or leave undefined
raises a named error. It needs NumPy only.
"""

from emulator.counts.trace import Access, Row, Trace
from emulator.errors import (
    BarrierDivergence,
    Deadlock,
    EmulatorError,
    ExecutionError,
    LimitExceeded,
    Misaligned,
    OutOfBounds,
    PtxError,
    Trap,
    Unsupported,
)
from emulator.machine.tensor_map import TensorMap
from emulator.module import Module

__all__ = [
    "Access",
    "BarrierDivergence",
    "Deadlock",
    "EmulatorError",
    "ExecutionError",
    "LimitExceeded",
    "Misaligned",
    "Module",
    "OutOfBounds",
    "PtxError",
    "Row",
    "TensorMap",
    "Trace",
    "Trap",
    "Unsupported",
]
