"""What a GPU makes of a wrong number of announced bytes: in how many blocks does the phase end nevertheless?

`python -m measure announced`, on a GPU of sm_90. On the emulator a copy lands as a whole; on a GPU its bytes are counted in
pieces, so a phase for which too few bytes were announced can end between two pieces.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import kernels
from emulator import TensorMap
from kernels.errors import UnsupportedGPU
from kernels.gpus import gpu

from .provenance import store

SOURCE = Path(__file__).parent / "cuda" / "announced.cu"
BLOCKS = 1320  # ten for each multiprocessor of an H200
PATIENCE = 2_000_000  # clocks: about a millisecond
# (rows and columns of a box of float16, boxes): announced bytes. The first of each is what the copies bring.
ASKED = {
    ((4, 8), 1): (64, 48, 16, 80),
    ((64, 64), 6): (49152, 49136, 32768, 8192, 49168),
}
METHOD = (
    f"{BLOCKS} blocks of one thread; each announces once, asks for its boxes by TMA (no swizzle), and tests the phase of its "
    f"mbarrier (mbarrier.test_wait) for {PATIENCE:,} clocks"
)


def over(box: tuple[int, int], boxes: int, announced: int, blocks: int = BLOCKS) -> int:
    """In how many blocks the phase ended, on this machine's GPU."""
    import cupy

    one = TensorMap(cupy.ones((1024, 64), cupy.float16), box)
    ended = cupy.zeros(blocks, cupy.int32)
    numbers = (np.int32(n) for n in (boxes, one.box_bytes, announced, PATIENCE))
    built = kernels.build(SOURCE, arch="90a")
    kernels.launch(
        built, None, blocks, 1, [one, ended, *numbers], boxes * one.box_bytes, machine="gpu"
    )
    return int(ended.sum())


def record() -> Path:
    """Tries every number of `ASKED`; `results/announced-<gpu>.json`. UnsupportedGPU where there is no GPU of sm_90."""
    here = gpu()
    if here is None or here.arch != 90:
        raise UnsupportedGPU("this needs a GPU of sm_90, which has TMA")
    rows = [
        {
            "box": list(box), "boxes": boxes, "brought": every[0], "announced": announced, "blocks": BLOCKS,
            "over": over(box, boxes, announced),
        }
        for (box, boxes), every in ASKED.items()
        for announced in every
    ]  # fmt: skip
    return store(f"announced-{here.slug}", METHOD, rows=rows)
