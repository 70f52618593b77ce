"""What one line of the L1 cache per clock would allow a rung, beside its speed: an inference, tried on several rungs."""

from collections.abc import Sequence

import numpy as np

import measure
from book.cells import columns, memory

LINE = 128  # bytes
OPERATIONS = {"fma": 2 * 32, "mma": 2 * 16 * 8 * 16}  # of one execution by a warp


def touched(trace, opcode: str) -> float:
    """Lines that the loads of A and B touch for each execution of this instruction by a warp."""
    lines = 0.0
    for name in ("load A", "load B"):
        found = memory.every(trace, name)
        each = np.mean([len({s // LINE for s in access.sectors}) for access in found])
        lines += each * memory.traffic(trace)[name].instructions
    return lines / sum(row.warps for row in trace.rows(opcode))


def show(traces: Sequence[tuple[str, str, object]], size: int = 4096) -> None:
    """Shows, for (rung, opcode, trace), the lines per product, the limit that follows, and the recorded speed."""
    recording = measure.recorded()
    sms, rows = recording.machine["sms"], []
    for rung, opcode, trace in traces:
        found = recording.select(rung, size)[0]
        ghz = found.get("clock_ghz") or recording.machine["clock_mhz"] / 1e3
        lines = touched(trace, opcode)
        limit = OPERATIONS[opcode] / lines * sms * ghz / 1e3
        speed = found["tflops"]
        cells = [f"{limit:.2f}", f"{speed:.2f}", f"{speed / limit:.0%}"]
        rows.append([f"`{rung}`", opcode, f"{lines:.0f}", *cells])
    columns.show(
        {
            "": "",
            "product": "the instruction that computes: `fma` does 64 operations per warp, `mma` 4,096",
            "lines": "lines of 128 bytes that its loads touch, per product and warp, counted by the emulator",
            "limit": f"TFLOP/s if the L1 cache of each of the {sms} SMs handed out one line per clock",
            "measured": "TFLOP/s",
            "share": "measured speed as a share of the limit",
        },
        rows,
        caption=f"At {size} x {size} x {size}; {recording.label}.",
    )
