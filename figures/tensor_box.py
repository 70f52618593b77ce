"""One copy by TMA: the box in its matrix, and where its 16-byte chunks stand in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, number, plural
from figures.widgets import Explorer, Span, one_of

__all__ = ["TensorBoxExplorer", "box_chunks", "tensor_box"]

CHUNK, LINE = 16, 128
SWIZZLES = (0, 32, 64, 128)


@dataclass(frozen=True)
class Chunk:
    """16 bytes of a box: its row and its place in the row, its byte in shared memory, whether the matrix has it."""

    row: int
    chunk: int
    byte: int
    inside: bool


def swizzled(byte: int, swizzle: int) -> int:
    """Where a byte of a box stands: address bits 4 to 6 XORed with bits 7 to 9, one, two or three of them."""
    return byte ^ (byte // LINE % max(swizzle // CHUNK, 1) * CHUNK)


def box_chunks(
    matrix: tuple[int, int], box: tuple[int, int], at: tuple[int, int], swizzle: int = 0
) -> list[Chunk]:
    """The chunks of a box, row by row, as one copy lays them into shared memory from a multiple of 1024 bytes on.

    matrix, box, at: (rows, chunks). ValueError where a swizzled row is longer than the swizzle's span.
    """
    one_of("swizzle", swizzle, SWIZZLES)
    if swizzle and box[1] * CHUNK > swizzle:
        raise ValueError(
            f"a box's row has {box[1] * CHUNK} bytes: at most the swizzle's span, {swizzle}"
        )
    return [
        Chunk(
            row,
            chunk,
            swizzled((row * box[1] + chunk) * CHUNK, swizzle),
            0 <= at[0] + row < matrix[0] and 0 <= at[1] + chunk < matrix[1],
        )
        for row in range(box[0])
        for chunk in range(box[1])
    ]


def tensor_box(
    matrix: tuple[int, int] = (12, 10),
    box: tuple[int, int] = (8, 8),
    at: tuple[int, int] = (2, 1),
    swizzle: int = 0,
    title: str | None = None,
) -> Drawing:
    """A box of a matrix, and the 128-byte lines of shared memory that it fills; arguments as of `box_chunks`.

    `facts` holds {"bytes", "inside", "zeros"}, the last two in chunks.
    """
    chunks = box_chunks(matrix, box, at, swizzle)
    inside = sum(chunk.inside for chunk in chunks)
    size = len(chunks) * CHUNK
    edge = f", {plural(len(chunks) - inside, 'chunk')} of them zeros" * (inside < len(chunks))
    return Drawing(
        title=title or f"One instruction copies a box of {number(size)} bytes{edge}",
        alt=(
            f"A matrix of {matrix[0]} rows of {matrix[1]} 16-byte chunks, and a box of {box[0]} rows of {box[1]} "
            f"chunks that begins at row {at[0]}, chunk {at[1]}. Beside it the box in shared memory, "
            f"{'without a swizzle' if not swizzle else f'swizzled over {swizzle} bytes'}, eight chunks to a line."
        ),
        caption="A number is the row of the box that a chunk comes from; its colour is the chunk's place in that row.",
        legend=((style.GREY, "zeros, outside of the matrix"),) if inside < len(chunks) else (),
        facts={"bytes": size, "inside": inside, "zeros": len(chunks) - inside},
        figure=_drawn(matrix, box, at, chunks, True),
        narrow=_drawn(matrix, box, at, chunks, False),
        min_width=560,
    )


def _drawn(matrix, box, at, chunks: list[Chunk], beside: bool):
    low = (min(0, at[0]), min(0, at[1]))
    rows = max(matrix[0], at[0] + box[0]) - low[0]
    across = max(matrix[1], at[1] + box[1]) - low[1]
    lines = -(-len(chunks) * CHUNK // LINE)
    width = WIDTH if beside else 330.0
    room = (width - 90) / 2 if beside else width - 8
    cell, tall = min(30.0, room / across, room / 8), 20.0
    head, gap = 24.0, 40.0
    right, below = (room + 82, 0.0) if beside else (44.0, head + rows * tall + 16)
    deep = max(rows, lines) if beside else lines
    canvas = Canvas(width, below + head + deep * tall + 6)
    canvas.text(2, 10, "the matrix in global memory", size=12, bold=True)
    for row in range(matrix[0]):
        for chunk in range(matrix[1]):
            x, y = 2 + (chunk - low[1]) * cell, head + (row - low[0]) * tall
            canvas.rect(x + 0.5, y + 0.5, cell - 1, tall - 1, fill=style.SOFT)
    for one in chunks:
        x = 2 + (at[1] + one.chunk - low[1]) * cell
        y = head + (at[0] + one.row - low[0]) * tall
        _cell(canvas, x, y, cell, tall, one)
    left, top = 2 + (at[1] - low[1]) * cell, head + (at[0] - low[0]) * tall
    canvas.rect(left, top, box[1] * cell, box[0] * tall, edge=style.INK, lw=2, z=3)
    canvas.text(right, below + 10, "the box in shared memory", size=12, bold=True)
    for one in chunks:
        x = right + one.byte % LINE // CHUNK * cell
        _cell(canvas, x, below + head + one.byte // LINE * tall, cell, tall, one)
    for line in range(lines):
        y = below + head + (line + 0.5) * tall
        canvas.label(right - 6, y, line * LINE, size=10.5, ha="right")
    if beside:
        y = head + max(rows, lines) * tall / 2
        canvas.arrow(room + 8, y, room + gap, y, lw=2, size=9)
    return canvas


def _cell(canvas, x, y, wide, tall, one: Chunk) -> None:
    color = style.bank_color(4 * one.chunk) if one.inside else style.GREY
    canvas.cell(x, y, wide, tall, color, one.row if one.inside else 0, z=2, size=10.5)


class TensorBoxExplorer(Explorer):
    """A tensor map and a copy: extents, box, coordinates and swizzle against places in shared memory."""

    kind = "tensor_box"
    asks = "Move the box: what does one copy bring, and where does it put it?"
    says = (
        "An explorer of tensor maps, starting with a box of {box_rows} rows of {box_chunks} 16-byte chunks at row "
        "{y}, chunk {x}, of a matrix of {rows} rows of {columns} chunks, swizzle {swizzle}."
    )
    takes = (
        ("rows", 12, Span(1, 16)),
        ("columns", 10, Span(1, 12)),
        ("box_rows", 8, Span(1, 16)),
        ("box_chunks", 8, (1, 2, 4, 8)),
        ("y", 2, Span(-4, 16)),
        ("x", 1, Span(-4, 12)),
        ("swizzle", 128, SWIZZLES),
    )

    def begins(self, **given):
        names = {"box_rows": "boxRows", "box_chunks": "boxChunks"}  # as the script has them
        return {names.get(name, name): value for name, value in given.items()}, {}, given
