"""Where a `cp.async` of a warp puts the sectors that it reads: whole, or torn into two packets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np

from emulator.counts.packets import copy_packets
from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, plural, text_width

__all__ = ["sector_copies"]

CHUNK, LINE_CHUNKS = 16, 8
ROWS, CHUNKS = 8, 4  # that 32 lanes copy
PITCH = 1 << 13  # bytes from a row of the matrix to the next, whole lines apart
CELL, HEAD = 19.5, 42.0


def sector_copies(
    ways: Mapping[str, Callable[[int, int], int]], title: str | None = None
) -> Drawing:
    """One `cp.async.cg` of 32 lanes, 16 bytes each: rows of a matrix on the left, where their chunks go beside it.

    ways: {name: place(row, chunk)}, the place in chunks of 16 bytes from the start of the tile, whose rows have four. A colour
    is a row, the number is the chunk; a sector whose two chunks need two packets has a dark edge. `facts` holds
    {name: {"sectors", "wavefronts", "torn"}}. ValueError where two chunks share a place.
    """
    grid = list(itertools.product(range(ROWS), range(CHUNKS)))
    places = {name: {at: int(place(*at)) for at in grid} for name, place in ways.items()}
    for name, found in places.items():
        if len(set(found.values())) != len(grid) or min(found.values()) < 0:
            raise ValueError(f"{name}: two chunks share a place, or one lies before the tile")
    facts = {name: _cost(grid, found) for name, found in places.items()}
    said = ", ".join(
        f"{name} {plural(fact['sectors'], 'sector')} in {plural(fact['wavefronts'], 'wavefront')}"
        for name, fact in facts.items()
    )
    return Drawing(
        title=title or f"One cp.async: {said}",
        alt=f"A warp copies {ROWS} rows of {CHUNKS} chunks. Read from L2, and written to shared memory: {said}. "
        + " ".join(
            f"{name}: {plural(fact['torn'], 'torn sector')}." for name, fact in facts.items()
        ),
        caption="A colour is a row of the matrix, a number is a chunk of 16 bytes, thick lines are borders of 32-byte sectors. "
        "A dark edge marks chunks whose sector was torn: its two halves travel in two packets.",
        facts=facts,
        figure=_drawn(grid, places, facts, WIDTH),
        narrow=_drawn(grid, places, facts, 330.0),
        min_width=560,
    )


def _torn(grid, places) -> set[tuple[int, int]]:
    """Chunks whose partner in the sector goes to another line, or by another rotation."""
    found = set()
    for row, chunk in grid:
        source = row * PITCH // CHUNK + chunk
        here, there = places[row, chunk], places[row, chunk ^ 1]
        same = here // LINE_CHUNKS == there // LINE_CHUNKS
        if not same or (source ^ here) % 4 != (source ^ 1 ^ there) % 4:
            found.add((row, chunk))
    return found


def _cost(grid, places) -> dict[str, int]:
    sources = np.array([[row * PITCH + CHUNK * chunk for row, chunk in grid]])
    targets = np.array([[CHUNK * places[at] for at in grid]])
    waves, sectors = copy_packets(targets, np.ones((1, len(grid)), bool), sources)
    return {
        "sectors": int(sectors[0]),
        "wavefronts": int(waves[0]),
        "torn": len(_torn(grid, places)) // 2,
    }


def _drawn(grid, places, facts, width: float):
    """The panels beside each other, or below each other where the width does not hold them."""
    panels = [
        ("in the matrix", CHUNKS, {at: number for number, at in enumerate(grid)}, None, set()),
        *(
            (name, LINE_CHUNKS, found, facts[name], _torn(grid, found))
            for name, found in places.items()
        ),
    ]
    lines = [1 + max(found.values()) // wide for _, wide, found, _, _ in panels]
    gap = 22.0
    wides = [max(wide * CELL, text_width(_words(fact), 10)) for _, wide, _, fact, _ in panels]
    beside = sum(wides) + gap * (len(wides) - 1) <= width
    tall = max(lines) * CELL if beside else None
    height = (
        HEAD + tall + 4 if beside else sum(HEAD + n * CELL + 12 for n in lines)
    )  # of all the panels
    canvas = Canvas(width, height)
    x, y = 0.0, 0.0
    for (name, wide, found, fact, torn), n, room in zip(panels, lines, wides, strict=True):
        canvas.text(x, y + 9, name, size=12, bold=True)
        canvas.label(x, y + 26, _words(fact), size=10)
        _panel(canvas, x, y + HEAD, wide, n, found, torn)
        if beside:
            x += room + gap
        else:
            y += HEAD + n * CELL + 12
    return canvas


def _words(fact) -> str:
    """What stands below a panel's name."""
    if fact is None:
        return f"{ROWS} rows of {CHUNKS} chunks"
    return f"{plural(fact['sectors'], 'sector')}, {plural(fact['wavefronts'], 'wavefront')}"


def _panel(canvas, x0, y0, wide, lines, places, torn) -> None:
    canvas.rect(x0, y0, wide * CELL, lines * CELL, fill=style.SOFT, z=0)
    for (row, chunk), place in places.items():
        x, y = x0 + place % wide * CELL, y0 + place // wide * CELL
        color = style.tint(style.wavefront_color(row % 8), 0.9)
        canvas.cell(x, y, CELL, CELL, color, chunk, inset=1, size=10)
        if (row, chunk) in torn:
            canvas.rect(x + 2, y + 2, CELL - 4, CELL - 4, edge=style.INK, lw=1.6, z=3)
    for sector in range(wide // 2 + 1):
        x = x0 + 2 * sector * CELL
        canvas.line((x, y0), (x, y0 + lines * CELL), color=style.INK, lw=1.3, z=2)
    for line in range(lines + 1):
        y = y0 + line * CELL
        canvas.line((x0, y), (x0 + wide * CELL, y), color=style.MUTED, lw=0.8, z=2)
