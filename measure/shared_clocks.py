"""What a wavefront costs in clocks, and whether loads and asynchronous copies take turns on one path.

`cuda/shared_clocks.cu` lets 32 warps of one multiprocessor load and copy as fast as they can.
`python -m measure shared-clocks` measures it on a GPU and writes `results/shared-clocks-<gpu>.json`.
"""

from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

import kernels
from kernels.build import DEFAULT_ARCH
from kernels.gpus import needed

from . import provenance

SOURCE = Path(__file__).with_name("cuda") / "shared_clocks.cu"
WARPS, TURNS = 32, 512
LAUNCHES = 5  # of which the fastest counts
FROM_BYTES = 1 << 20
# What ldmatrix does: bytes from row to row. What cp.async does: chunks in a row, bytes from row to row.
LOADS = {
    "no loads": {"LOADS": 0},
    **{f"pitch {n}": {"LOADS": 1, "PITCH": n} for n in (80, 96, 64, 128)},
}
COPIES = {
    "no copies": {"COPIES": 0},
    "lines of 128": {"COPIES": 1, "CHUNKS": 8, "COPY_PITCH": 128},
    "rows of 64": {"COPIES": 1, "CHUNKS": 4, "COPY_PITCH": 64},
    "64, padded": {"COPIES": 1, "CHUNKS": 4, "COPY_PITCH": 80},
}


def wavefronts(load: str, copy: str) -> tuple[float, float]:
    """What one warp's turn takes by the emulator's rules: wavefronts of its loads and of its copies."""
    _, trace = _run(load, copy, 1, "emulator")
    counts = [
        sum(row.shared_wavefronts for row in rows) / max(1, sum(row.warps for row in rows))
        for rows in (trace.rows("ldmatrix"), trace.rows("cp.async.cg"))
    ]
    return counts[0], counts[1]


def record() -> Path:
    """Measures here and stores clocks for each warp's turn. UnsupportedGPU without a GPU."""
    here, rows = needed("reading clocks"), []
    for load, copy in product(LOADS, COPIES):
        if load == "no loads" and copy == "no copies":
            continue
        best = min(_run(load, copy, TURNS, "gpu")[0] for _ in range(LAUNCHES))
        rows.append({"load": load, "copy": copy, "clocks": best / TURNS / WARPS})
    return provenance.store(
        f"shared-clocks-{here.slug}",
        f"clock64 around {TURNS} turns of {WARPS} warps on one multiprocessor, after 32 uncounted ones; "
        f"a copy of each turn from another line of L2; clocks for each warp's turn, least of {LAUNCHES} launches",
        turns=rows,
    )


@cache
def stored() -> dict | None:
    return provenance.recording("shared-clocks")


def _run(load: str, copy: str, turns: int, machine: str):
    """`(clocks, trace)` of one launch; the trace is None from a GPU."""
    arch = kernels.gpu().arch if machine == "gpu" else DEFAULT_ARCH
    built = kernels.build(SOURCE, {**LOADS[load], **COPIES[copy]}, arch=arch)
    passed, seen = np.zeros(1, np.int64), np.zeros(32 * WARPS, np.uint32)
    arguments = [np.zeros(FROM_BYTES, np.uint8), passed, seen, np.int32(turns)]
    trace = kernels.launch(built, "shared_clocks", 1, 32 * WARPS, arguments, machine=machine)
    return int(passed[0]), trace
