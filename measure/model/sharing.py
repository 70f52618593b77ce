"""How many bytes per clock come from L2 to an SM: fewer where each SM asks for tiles of its own, more where many ask for
the same.

Two loops mark the ends (`results/machine-<gpu>.json`): all SMs copy tiles of their own, or one SM copies alone; all SMs
that copy the same tiles at the same time get as much as one alone. In between, what a kernel's blocks ask for first
comes at the one rate, and what another has asked for at the other. How much is which follows from the tiles that run
at the same time.
"""

from __future__ import annotations

import numpy as np

from kernels.rungs import find
from kernels.shapes import ceil_div

from .bound import tiles_of
from .counts import Counts, cluster
from .rates import BOOK, SMS, copies, look_ups


def delivery(
    counts: Counts, size: tuple[int, int, int], way: str, together: int, gpu: str, ghz: float
) -> float:
    """Bytes per clock to one SM. way: of `copies`; together: blocks that run on an SM at a time. Copies that ask for a
    line in pieces get no more than L2's look-ups bring.
    """
    tiles = min(tiles_of(counts, size) * max(1, counts.macros.get("SPLIT", 1)), SMS * together)
    alone, of_their_own = (copies()[f"{way}, {who}"] for who in ("one SM", "all SMs"))
    own = min(alone, of_their_own * SMS / min(tiles, SMS))
    share = first_asked(counts, size, tiles)
    rate = 1 / (share / own + (1 - share) / alone)
    if gpu != BOOK or not counts.of("copies", 1):
        return rate
    piece = counts.work["L2 bytes"][1] / counts.work["look-ups"][1]
    return min(rate, piece * look_ups() / (ghz * 1e9) / SMS)


def first_asked(counts: Counts, size: tuple[int, int, int], tiles: int) -> float:
    """Which part of the bytes of a k-step is asked for the first time, by `tiles` blocks that run at a time."""
    parts = counts.macros.get("SPLIT", 1)
    if parts == 0:  # each block begins at a place of its own along k
        return 1.0
    together = max(1.0, tiles / parts)  # at the same place along k
    rows, columns = footprint(counts, size, together)
    width = np.dtype(find(counts.rung).types(counts.macros).input_dtype).itemsize
    different = (rows * counts.tile[0] + columns * counts.tile[1]) * width
    return min(1.0, different / (together * counts.work["L2 bytes"][1]))


def footprint(counts: Counts, size: tuple[int, int, int], tiles: float) -> tuple[float, float]:
    """Rows and columns of tiles of C that so many tiles touch, which follow one another in the kernel's order."""
    rows, columns = (ceil_div(n, side) for n, side in zip(size, counts.tile, strict=False))
    parts = counts.macros.get("SPLIT")
    if parts == 1:  # a block's tiles follow one another, and the next block's begin behind its last
        return min(rows, tiles), min(columns, tiles)
    group = rows if parts else counts.macros.get("GROUP", 1) * cluster(counts.macros)[1]
    high = min(rows, tiles, max(group, tiles / columns))
    return high, min(columns, max(1.0, tiles / high))
