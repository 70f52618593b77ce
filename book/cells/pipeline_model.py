"""A pipeline in which every thread copies, waits and multiplies, over time, by a model small enough to check by hand.

As in `async_pipeline`: with s stages, the copy of the tile after the next s - 2 is started right after the wait for the
tile that is multiplied now, so a copy has the time of s - 1 tiles. (A producer that refills a stage as soon as it is
released has another model, that of `figures.PipelineExplorer`.)
"""

from collections.abc import Sequence

import figures
from figures.timeline import bar


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
        copies.append(bar("copies", start, start + load, "load", tile % stages))
        products.append(bar("products", begin, free, "compute", tile % stages))
    return copies + products


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
