"""What one thread reads and what it computes at one step of k: thread tiles of several sizes beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing

__all__ = ["thread_tiles"]

_LARGEST = 16


def thread_tiles(
    tiles: Sequence[tuple[int, int]], title: str | None = None, caption: str = ""
) -> Drawing:
    """Thread tiles TM x TN with the TM values of A and TN values of B that they need for one k.

    `facts` holds {(TM, TN): reads per multiply-add}. ValueError for a tile that is empty or has an edge above 16.
    """
    if not tiles:
        raise ValueError("there is no thread tile to draw")
    for rows, columns in tiles:
        if not (1 <= rows <= _LARGEST and 1 <= columns <= _LARGEST):
            raise ValueError(
                f"a thread tile of {rows} x {columns}: edges are 1 to {_LARGEST} outputs"
            )
    ratios = {tile: (tile[0] + tile[1]) / (tile[0] * tile[1]) for tile in tiles}
    said = [
        f"{m} x {n}: {m + n} reads for {m * n} multiply-adds, {ratios[m, n]:.3g} per multiply-add"
        for m, n in tiles
    ]
    last = tiles[-1]
    return Drawing(
        title=title
        or f"A thread tile of {last[0]} x {last[1]} needs {ratios[last]:.3g} reads per multiply-add",
        alt="Thread tiles at one step of k. " + ". ".join(said) + ".",
        caption=caption,
        legend=((style.BLUE, "read from A"), (style.ORANGE, "read from B"), (style.GREY, "output")),
        facts=ratios,
        figure=_drawn(tiles, ratios, WIDTH, True),
        narrow=_drawn(tiles, ratios, 330.0, False),
        min_width=480,
    )


def _drawn(tiles, ratios, width: float, beside: bool):
    rows = max(m for m, _ in tiles)
    across = sum(n + 3 for _, n in tiles) if beside else max(n for _, n in tiles) + 3
    cell = min(20.0, (width - 8) / max(across, 1))
    wide = width / len(tiles) if beside else width
    heights = [(m if not beside else rows) * cell + 2 * cell + 52 for m, _ in tiles]
    canvas = Canvas(width, heights[0] if beside else sum(heights))
    x = y = 0.0
    for (m, n), height in zip(tiles, heights, strict=True):
        left, top = x + 4 + 1.4 * cell, y + 22 + 1.4 * cell
        canvas.text(x + 4, y + 9, f"{m} x {n}", size=13, bold=True)
        for j in range(n):
            _cell(canvas, left + j * cell, top - 1.4 * cell, cell, style.ORANGE)
        for i in range(m):
            _cell(canvas, left - 1.4 * cell, top + i * cell, cell, style.BLUE)
            for j in range(n):
                _cell(canvas, left + j * cell, top + i * cell, cell, style.GREY)
        words = f"{m + n} reads, {m * n} multiply-add{'s' if m * n > 1 else ''}"
        below = top + m * cell
        canvas.label(x + 4, below + 12, words, size=11)
        canvas.text(x + 4, below + 27, f"{ratios[m, n]:.3g} reads each", size=11, bold=True)
        if beside:
            x += wide
        else:
            y += height
    return canvas


def _cell(canvas, x: float, y: float, side: float, color: str) -> None:
    canvas.rect(x + 0.75, y + 0.75, side - 1.5, side - 1.5, fill=color)
