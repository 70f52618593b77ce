"""Runs `cuda/small_tiles.cu`, a kernel of the shape of the CUDA GEMMS post's, with and without its swizzle.

`python -m measure small-tiles` times it on a GPU, lets Nsight Compute count, and writes
`results/small-tiles-<gpu>.json`.
"""

import json
import sys
from functools import cache
from pathlib import Path

import numpy as np

import kernels
from kernels.gpus import needed
from kernels.launch import prepare_on_gpu
from kernels.rung import Types

from . import machine_code, ncu
from .compare import WAVEFRONTS
from .foreign import error_of
from .limits import METRICS, STALL_METRIC, STALLS
from .provenance import recording, store
from .timing import matrices, measure

SOURCE = Path(__file__).with_name("cuda") / "small_tiles.cu"
ENTRY = "gemm_small_tiles"
TILE, THREADS = 32, 128
POST = (
    8  # tiles of C in each direction that a block of the post's kernel computes, one after another
)
SIZE, SMALL = 4096, 512  # where it is timed, and where the post counts conflicts
KINDS = {"as it was": False, "swizzled": True}
BATCHES = (1, 2, 4, 8)  # rows that a warp loads before it stores them
# What an average warp waits for at each issue, by Nsight Compute's names.
WAITS = {f"waits: {reason}": STALL_METRIC.format(reason) for reason in STALLS}
# Nsight Compute, per instruction: an ldmatrix of four matrices takes four wavefronts at least.
COUNTED = {
    "ldmatrix wavefronts": f"{WAVEFRONTS}_op_ldsm.sum",
    "store wavefronts": f"{WAVEFRONTS}_op_st.sum",
    "bank conflicts, all": METRICS["bank conflicts"],
}


def built(swizzled: bool, tiles: int, arch: int, batch: int = 0):
    macros = {"SWIZZLED": int(swizzled), "TILES": tiles} | ({"BATCH": batch} if batch else {})
    return kernels.build(SOURCE, macros, arch=arch)


# ---- on a GPU


def record() -> Path:
    """Measures here and stores. UnsupportedGPU without a GPU or `ncu`."""
    here, rows = needed("timing"), []
    for tiles in (POST, 1):
        sets = matrices(Types("float16"), ((SIZE, SIZE),) * 3)
        timed = measure(
            {name: _launches(swizzled, tiles, sets) for name, swizzled in KINDS.items()}
        )
        del sets
        for name, swizzled in KINDS.items():
            row = {
                "kernel": name,
                "tiles": tiles,
                "size": SIZE,
                "blocks": (SIZE // TILE // tiles) ** 2,
                **timed[name].row(5),
            }
            counts = _ncu(swizzled, tiles, SMALL, COUNTED)
            row["at_512"] = {label: int(value) for label, value in counts.items()}
            row["at_4096"] = _ncu(swizzled, tiles, SIZE, METRICS | WAITS)
            rows.append(row)
    return store(
        f"small-tiles-{here.slug}",
        "times as in the ladder's file, both kernels sampled in turn; "
        f"counts: {ncu.METHOD}, second launch",
        kernels=rows,
        order=time_order(),
    )


def time_order() -> list[dict]:
    """With loads and stores in batches of 1 to 8 rows, all in turn, each after a check: rows of name, batch, milliseconds."""
    sets = matrices(Types("float16"), ((SIZE, SIZE),) * 3)
    competitors = {}
    for name, swizzled in KINDS.items():
        for batch in (0, *BATCHES):
            launches = _launches(swizzled, POST, sets, batch)
            error_of(launches[0], *sets[0], 1e-4)
            competitors[name, batch] = launches
    return [
        {
            "kernel": name,
            "batch": batch,
            "loads in a row": loads_in_a_row(KINDS[name], POST, 90, batch),
            **timing.row(5),
        }
        for (name, batch), timing in measure(competitors).items()
    ]


def _launches(swizzled: bool, tiles: int, sets, batch: int = 0):
    made = built(swizzled, tiles, kernels.gpu().arch, batch)
    (M, K), N = sets[0][0].shape, sets[0][1].shape[1]
    grid = (N // TILE // tiles, M // TILE // tiles, 1)
    sizes = (np.int32(N), np.int32(K))
    return [prepare_on_gpu(made, ENTRY, grid, THREADS, [*arrays, *sizes]) for arrays in sets]


def _ncu(swizzled: bool, tiles: int, size: int, metrics: dict[str, str]) -> dict[str, float]:
    """Nsight Compute's values of one launch, by label; what it does not know is left out."""
    program = ["measure.small_tiles", json.dumps([swizzled, tiles, size])]
    values = ncu.count(ENTRY, metrics.values(), program, launch=1)
    return {label: values[metric] for label, metric in metrics.items() if metric in values}


def run_twice(swizzled: bool, tiles: int, size: int) -> None:
    """The launches that `ncu` watches, the first one not counted."""
    sets = matrices(Types("float16"), ((size, size),) * 3, sets=1)
    ncu.run_twice(_launches(swizzled, tiles, sets)[0])


# ---- what needs none


@cache
def stored() -> dict | None:
    return recording("small-tiles")


def loads_in_a_row(swizzled: bool, tiles: int = POST, arch: int = 90, batch: int = 0) -> int:
    """Loads of A and B that a warp sends at most before it stores one of them, in the machine code."""
    return max(machine_code.loads_in_a_row(built(swizzled, tiles, arch, batch), ENTRY))


if __name__ == "__main__":
    run_twice(*json.loads(sys.argv[1]))
