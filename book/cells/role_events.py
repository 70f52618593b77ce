"""Who does what in `wgmma_pipelined`, in the order in which the emulator ran it."""

import contextlib
import io
from dataclasses import dataclass

import numpy as np

from book.cells import columns, variants
from kernels.gemm import gemm

RUNG = "wgmma_pipelined"
# Lines that are put behind others of the kernel; `who` is -1 for the producer.
MARKS = (
    ("// the first time round this returns at once\n", 'printf("-1 copies %d %d %u\\n", k_step / BK, stage, phase ^ 1);\n'),
    ("barrier_wait(full + stage * 8, phase);\n",
     'if (thread == 0) printf("%d multiplies %d %d %u\\n", warpgroup, k_step / BK, stage, phase);\n'),
    ("// the k-step before is done, so its stage may be filled again\n",
     'if (thread == 0 && k_step > 0) printf("%d releases %d %d -1\\n", warpgroup, k_step / BK - 1, last_stage);\n'),
)  # fmt: skip


@dataclass(frozen=True)
class Event:
    """who: -1 for the producer, else the consumer. what: "copies", "multiplies" or "releases". parity: waited for."""

    who: int
    what: str
    step: int
    stage: int
    parity: int


def events(steps: int = 4, stages: int = 2) -> list[Event]:
    """The first block's events, in the emulator's order, for a product of 128 x 64 and this many k-steps."""
    changes = [(line, line + mark) for line, mark in MARKS]
    macros = {"BM": 128, "BN": 64, "STAGES": stages}
    built = variants.build(RUNG, "marked", *changes, arch="90a", macros=macros)
    A, B = np.ones((128, 64 * steps), np.float16), np.ones((64 * steps, 64), np.float16)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        gemm(RUNG, A, B, macros=macros, built=built, machine="emulator")
    return [
        Event(int(who), what, int(step), int(stage), int(parity))
        for who, what, step, stage, parity in (
            line.split() for line in said.getvalue().splitlines()
        )
    ]


def show(found: list[Event]) -> None:
    """Shows events as a table, one line for each, a column for each role."""
    heads = {
        "": "the order in which the emulator ran them; what stands in different columns may also happen at the same time",
        "producer": "the thread that asks for copies, after it has waited for the stage to be empty",
        "consumer 0": "the warpgroup of rows 0 to 63, after it has waited for the stage to be full",
        "consumer 1": "the warpgroup of rows 64 to 127, likewise",
    }
    rows = []
    for number, event in enumerate(found):
        words = {
            "copies": f"k-step {event.step} into stage {event.stage} (waited for parity {event.parity})",
            "multiplies": f"k-step {event.step} in stage {event.stage} (waited for parity {event.parity})",
            "releases": f"releases stage {event.stage} (k-step {event.step})",
        }[event.what]
        cells = ["", "", ""]
        cells[event.who + 1] = words
        rows.append([number, *cells])
    columns.show(heads, rows)
