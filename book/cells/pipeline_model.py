"""A pipeline in which every thread copies, waits and multiplies, over time, by a model small enough to check by hand.

As in `async_pipeline`: with s stages, the copy of the tile after the next s - 2 is started right after the wait for the
tile that is multiplied now, so a copy has the time of s - 1 tiles. (A producer that refills a stage as soon as it is
released has another model, `figures.schedule`.)
"""

from collections.abc import Mapping, Sequence

import figures
from book.cells import columns, tuned
from measure.provenance import label, load
from measure.results import recorded


def events(stages: int, load: float, compute: float, tiles: int) -> list[dict]:
    """Copies and products for `figures.timeline`. One stage: copy, wait, multiply, in turn."""
    ahead = stages - 1
    started = dict.fromkeys(range(ahead), 0.0)
    copies, products, free = [], [], 0.0
    for tile in range(tiles):
        start = started.get(tile, free)
        begin = max(free, start + load)
        if ahead and tile + ahead < tiles:
            started[tile + ahead] = begin
        free = begin + compute
        copies.append(_bar("copies", start, start + load, "load", tile % stages))
        products.append(_bar("products", begin, free, "compute", tile % stages))
    return copies + products


def _bar(row: str, start: float, end: float, kind: str, stage: int) -> dict:
    return {"row": row, "start": start, "end": end, "kind": kind, "stage": stage}


def per_tile(stages: int, load: float, compute: float) -> float:
    """Time per tile in the steady state."""
    return load + compute if stages == 1 else max(compute, load / (stages - 1))


def picture(stages: int, load: float, compute: float, tiles: int = 8):
    """One timeline, whose title says how large a part of the steady state is arithmetic."""
    busy = compute / per_tile(stages, load, compute)
    words = "1 stage" if stages == 1 else f"{stages} stages"
    return figures.timeline(
        events(stages, load, compute, tiles),
        unit="units of time",
        title=f"{words}: in the long run, products take {busy:.0%} of the time",
        caption=f"A model, not a measurement: a copy takes {load:g}, multiplying a tile {compute:g}.",
    )


def choice(counts: Sequence[int], load: float, compute: float, title: str):
    """`picture` for several numbers of stages, to flip through."""
    pages = {count: picture(count, load, compute) for count in counts}
    return figures.Choice(pages, name="stages", title=title, slider=False)


def show_sizes(rungs: Sequence[str], sizes: Sequence[int] = (1024, 2048, 4096, 8192)) -> None:
    """Shows TFLOP/s and blocks of each rung at each size, as recorded."""
    recording, rows = recorded(), []
    for size in sizes:
        found = [recording.select(rung, size)[0] for rung in rungs]
        rows.append(
            [size, *(f"{row['tflops']:.1f} ({_blocks(row['config'], size)})" for row in found)]
        )
    heads = dict.fromkeys(rungs, "TFLOP/s, and in brackets the number of blocks")
    columns.show(
        {"M, N, K": "all three are equal", **heads},
        rows,
        "TFLOP/s at four sizes",
        columns.sentence(recording.label),
    )


def _blocks(config: Mapping[str, int], size: int) -> int:
    return -(-size // config["BM"]) * -(-size // config["BN"])


def show_thread_tiles(rungs: Sequence[str] = ("warp_tiled", "async_pipeline")) -> None:
    """Shows the best of the settings tried with blocks of 128 x 128, for two thread tiles; "-" where none was."""
    rows = []
    for height in (16, 8):
        cells = []
        for rung in rungs:
            try:
                found = tuned.at(rung, BM=128, BN=128, TM=height, TN=8)
                cells += [found["registers"], f"{found['tflops']:.1f}"]
            except (KeyError, FileNotFoundError):
                cells += ["-", "-"]
        rows.append([f"{height} x 8", *cells])
    heads = {}
    for rung in rungs:
        heads[f"{rung}: registers"] = columns.MEANINGS["registers"]
        heads[f"{rung}: TFLOP/s"] = "the fastest of the settings tried, at 4096 x 4096 x 4096"
    columns.show(
        {"outputs per thread": "TM x TN", **heads},
        rows,
        "Both kernels at equal block and thread tiles",
        columns.sentence(label(load("tune"))),
    )
