"""Counts behind *Shapes that are not square*: what a shape needs at least (by the model), and what sharing a tile moves."""

from __future__ import annotations

import kernels
from book.cells import columns, why
from kernels.check import random_inputs
from kernels.gemm import gemm
from measure.model.recorded import GPUS
from measure.results import recordings

SHAPES = (
    (16, 8192, 8192),
    (64, 8192, 8192),
    (128, 8192, 8192),
    (256, 256, 65536),
    (4096, 4096, 128),
    (1024, 1024, 1024),
)


def name(shape: tuple[int, int, int]) -> str:
    return "\u00a0x\u00a0".join(map(str, shape))


def least() -> None:
    """Shows for each recorded shape what the model says of a rung that shares no tile and of `wgmma_split`."""
    rows, shown = [], []
    recording = recordings()[GPUS[0]]
    for shape in SHAPES:
        cells = []
        for rung in ("wgmma_persistent", "wgmma_split"):
            one = why.reason(rung, shape, output="float16")
            shown += recording.select(
                rung, **dict(zip("mnk", shape, strict=True)), output="float16"
            )[:1]
            cells += [f"{1e3 * one.bound.ms:.1f}, {one.bound.binding}", f"{1e3 * one.row.ms:.1f}"]
        rows.append([name(shape), *cells])
    columns.show(
        {
            "M x N x K": "sizes of the product",
            "nothing shared: bound": "µs that `wgmma_persistent` needs at least, and the part that needs them, on the SM "
            "with the most tiles",
            "measured": "µs of `wgmma_persistent`, the median",
            "shared: bound": "the same of `wgmma_split`, at the setting that is timed",
            "measured ": "µs of `wgmma_split`, the median",
        },
        rows,
        caption="Microseconds, float16 in and out. " + columns.sentence(recording.label_of(shown)),
    )


def run(M: int, N: int, K: int, **macros: int):
    """`wgmma_split` on the emulator: a result with its trace."""
    A, B, _ = random_inputs(kernels.find("wgmma_split").types(macros), M, N, K)
    return gemm("wgmma_split", A, B, macros=macros, machine="emulator")


def moved(trace) -> dict[str, int]:
    """Bytes of a launch by where they went: read by TMA, sums of other blocks, and C."""
    kinds = {
        "A and B, by TMA": ("cp.async.bulk.tensor",),
        "sums sent through the cluster": ("st.async",),
        "sums put into the workspace": ("st.global.v4.f32",),
        "sums read from the workspace": ("ld.global.cg.v4.f32",),
    }
    return {
        words: sum(row.bytes for start in starts for row in trace.rows(start))
        for words, starts in kinds.items()
    }
