"""One tile of A from global memory to the registers of an mma: who copies, who points, who receives."""

from __future__ import annotations

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing

__all__ = ["data_path"]

ROWS, HALVES, CHUNK = 16, 16, 8  # a tile of A in m16n8k16; halves in a chunk of 16 bytes
TALL = 17.0


def data_path(chunks: int = 4, title: str | None = None, caption: str = "") -> Drawing:
    """The way of a 16 x 16 tile of A, float16: `cp.async`, shared memory, `ldmatrix.x4`, `mma.m16n8k16`.

    chunks: 16-byte chunks in a row of the tile in shared memory, 4 for 64 bytes.
    `facts` holds "copies" {(row, chunk): lane}, "points" {lane: (row, chunk)} and "receives" {(row, column): (lane, register,
    half)} for the first 16 columns. ValueError for a row of fewer.
    """
    if chunks < 2:
        raise ValueError(f"an mma takes two chunks of a row, which has {chunks}")
    grid = [(row, chunk) for row in range(ROWS) for chunk in range(chunks)]
    copies = {(row, chunk): (row * chunks + chunk) % 32 for row, chunk in grid}
    # PTX ISA, ldmatrix: lanes 0-7 point to the rows of matrix 0, 8-15 of matrix 1, and so on;
    # matrices 0 and 1 are rows 0-7 and 8-15 of the left half, 2 and 3 those of the right
    points = {lane: (lane % 16, lane // 16) for lane in range(32)}
    receives = {(r, c): receiver(r, c) for r in range(ROWS) for c in range(HALVES)}
    parts = (chunks, copies, points, receives)
    return Drawing(
        title=title
        or "From global memory to mma: a lane copies one chunk, points to another, and receives parts of eight",
        alt="Three grids for a tile of 16 rows. "
        f"Global memory: {chunks} chunks of 16 bytes per row, with the lane that copies each. "
        "Shared memory: the two chunks per row that ldmatrix.x4 reads, "
        "with the lane that points to each. Registers: 16 by 16 elements, with the lane that receives each pair.",
        caption=caption
        or "Colours and numbers are lanes of one warp. Lane 0 points to row 0, but receives elements of rows 0 and 8: "
        "ldmatrix passes data between lanes.",
        facts={"copies": copies, "points": points, "receives": receives},
        figure=_drawn(WIDTH, True, *parts),
        narrow=_drawn(330, False, *parts),
        min_width=620,
    )


def receiver(row: int, column: int) -> tuple[int, int, int]:
    """(lane, register, half) of an element of A in m16n8k16, float16. PTX ISA, "Matrix fragments for mma.m16n8k16"."""
    return 4 * (row % 8) + column % 8 // 2, row // 8 + 2 * (column // 8), column % 2


def _drawn(width, beside, chunks, copies, points, receives) -> Canvas:
    """Three grids, beside each other or, on a phone, one below the other."""
    head, deep = 54.0, ROWS * TALL
    spans = (0.30, 0.30, 0.34) if beside else (1.0, 1.0, 1.0)
    gap = (width - sum(spans) * width) / 2 if beside else 0.0
    canvas = Canvas(width, head + deep + 4 if beside else 3 * (head + deep) + 2 * 30)
    heads = (
        ("1  global memory", "who copies: cp.async,", "16 bytes per lane"),
        ("2  shared memory", "who points: ldmatrix.x4,", "one row of 16 bytes per lane"),
        ("3  registers", "who receives: two elements", "per lane and register"),
    )
    pointing = {at: lane for lane, at in points.items()}
    x = y = 0.0
    for index, (span, words) in enumerate(zip(spans, heads, strict=True)):
        wide = span * width - 2
        canvas.text(x + 20, y + 8, words[0], size=12.5, bold=True)
        for line, more in enumerate(words[1:]):
            canvas.label(x + 20, y + 24 + 14 * line, more, size=11)
        top, left, inner = y + head, x + 20, wide - 20
        for row in range(ROWS):
            if row % 4 == 0 or row == ROWS - 1:
                canvas.label(left - 5, top + (row + 0.5) * TALL, row, size=10, ha="right")
            if index < 2:
                for chunk in range(chunks):
                    lane = pointing.get((row, chunk)) if index else copies[row, chunk]
                    x0, wide_one = left + chunk * inner / chunks, inner / chunks
                    _cell(canvas, x0, top + row * TALL, wide_one, lane)
            else:
                for pair in range(HALVES // 2):
                    lane, _register, _ = receives[row, 2 * pair]
                    _cell(canvas, left + pair * inner / 8, top + row * TALL, inner / 8, lane)
        if index == 2:
            for across in (0, 1):
                for down in (0, 1):
                    box = left + across * inner / 2, top + down * deep / 2
                    canvas.rect(*box, inner / 2, deep / 2, edge=style.INK, lw=1.4, z=3)
        if beside:
            if index < 2:
                canvas.arrow(
                    x + wide + 4, top + deep / 2, x + wide + gap - 2 + 14, top + deep / 2, size=7
                )
            x += wide + gap + 2
        else:
            y += head + deep + 30
            if index < 2:
                canvas.arrow(width / 2, y - 26, width / 2, y - 6, size=7)
    return canvas


def _cell(canvas, x, y, wide, lane: int | None) -> None:
    """A cell of one lane's colour with its number; pale where no lane takes part."""
    color = style.SOFT if lane is None else style.lane_color(lane)
    canvas.cell(x, y, wide, TALL, color, "" if lane is None else lane, size=10.5)
