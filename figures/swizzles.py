"""Where 16-byte chunks of a shared tile land in the banks: as they are, padded, swizzled."""

from __future__ import annotations

from tensor_layouts import Swizzle

from figures import style
from figures.access import Access
from figures.drawing import WIDTH, Canvas, Drawing, plural

__all__ = ["swizzle_grid"]

CHUNK = 16
GROUPS = 8  # 32 banks of 4 bytes are 8 groups of one chunk
LARGEST = 64  # chunks a row that a picture shows


def chunk_addresses(
    rows: int,
    chunks: int,
    pad_bytes: int = 0,
    swizzled: tuple[int, int, int] | None = None,
    element_bytes: int = 2,
) -> list[list[int]]:
    """Byte address of each (row, chunk) of a tile of `chunks` 16-byte chunks a row.

    swizzled: (B, M, S) on element indices. ValueError for what would split or misalign a chunk.
    """
    if rows < 1 or chunks < 1:
        raise ValueError(f"a tile has rows and chunks, not {rows} x {chunks}")
    if pad_bytes % CHUNK or pad_bytes < 0:
        raise ValueError(
            f"a padding of {pad_bytes} bytes puts every second row off its 16-byte alignment"
        )
    if swizzled is not None:
        bits, base, shift = swizzled
        if bits < 0 or base < 0 or abs(shift) < bits:
            raise ValueError(f"Swizzle<{bits}, {base}, {shift}> is none: B, M >= 0 and |S| >= B")
        if (1 << base) * element_bytes < CHUNK:
            raise ValueError(
                f"Swizzle<{bits}, {base}, {shift}> moves parts of a 16-byte chunk of {element_bytes}-byte elements"
            )
    pitch = chunks * CHUNK + pad_bytes
    table = []
    for row in range(rows):
        line = [row * pitch + chunk * CHUNK for chunk in range(chunks)]
        if swizzled is not None:
            line = [Swizzle(*swizzled)(at // element_bytes) * element_bytes for at in line]
        table.append(line)
    return table


def column_wavefronts(addresses: list[list[int]]) -> list[int]:
    """Wavefronts to read 8 rows of one chunk column with one `ldmatrix` phase, for each column."""
    counts = []
    for chunk in range(len(addresses[0])):
        lanes = [addresses[row][chunk] for row in range(8)]
        counts.append(Access((*lanes, *[-1] * 24), 16, "ldmatrix", 1).wavefronts)
    return counts


def swizzle_grid(
    chunks: int = 4,
    pad_bytes: int = 16,
    swizzled: tuple[int, int, int] = (2, 3, 3),
    title: str | None = None,
) -> Drawing:
    """A shared tile three ways: unpadded, padded, XOR-swizzled; each 16-byte chunk coloured by the banks it falls in.

    chunks: 16-byte chunks a row (4 are 32 halves). Beneath each column: the wavefronts that reading it over 8 rows, one
    matrix of `ldmatrix`, takes. `facts` holds {panel: {"groups": bank group of each (row, chunk), "wavefronts", "bytes"}}.
    """
    rows = 8
    if chunks > LARGEST:
        raise ValueError(f"{chunks} chunks: at most {LARGEST} can be drawn")
    if len(swizzled) != 3:
        raise ValueError(f"a swizzle is three integers, (B, M, S), not {swizzled!r}")
    ways = {
        "as it is": chunk_addresses(rows, chunks),
        f"padded by {pad_bytes} bytes": chunk_addresses(rows, chunks, pad_bytes),
        "with Swizzle<{}, {}, {}>".format(*swizzled): chunk_addresses(rows, chunks, 0, swizzled),
    }
    side, gap, row_tall, top = 26.0, 22.0, 25.0, 62.0
    cell = min((WIDTH - 3 * side - 2 * gap - 4) / (3 * chunks), 50)
    panel = side + chunks * cell
    canvas = Canvas(3 * panel + 2 * gap + 4, top + rows * row_tall + 46)
    facts = {}
    for index, (name, addresses) in enumerate(ways.items()):
        x0 = index * (panel + gap) + side
        counts = column_wavefronts(addresses)
        groups = [[at // CHUNK % GROUPS for at in line] for line in addresses]
        pitch = addresses[1][0] - addresses[0][0] if name.startswith("padded") else chunks * CHUNK
        facts[name] = {"groups": groups, "wavefronts": counts, "bytes": rows * pitch}
        canvas.text(x0, 10, name.removeprefix("with "), size=12.5 if panel > 190 else 11, bold=True)
        canvas.label(x0, 28, f"{facts[name]['bytes']} bytes", size=11)
        for chunk in range(chunks):
            canvas.label(x0 + (chunk + 0.5) * cell, top - 10, chunk, size=10, ha="center")
            bad = counts[chunk] > 1
            y = top + rows * row_tall + 13
            color = style.VERMILION if bad else style.GREEN
            box = (x0 + chunk * cell + 2, y - 10, cell - 4, 20)
            canvas.cell(*box, color, counts[chunk], inset=0, size=11, bold=True)
        for row in range(rows):
            canvas.label(x0 - 6, top + (row + 0.5) * row_tall, row, size=10, ha="right")
            for chunk in range(chunks):
                bank = 4 * groups[row][chunk]
                words = f"{bank}-{bank + 3}" if cell > 40 else f"{bank}"
                box = (x0 + chunk * cell, top + row * row_tall, cell, row_tall)
                canvas.cell(*box, style.bank_color(bank), words, inset=1, size=10.5)
        canvas.label(
            x0 + panel - side,
            top + rows * row_tall + 34,
            "wavefronts per column",
            size=10.5,
            ha="right",
        )
    worst = {name: max(fact["wavefronts"]) for name, fact in facts.items()}
    return Drawing(
        title=title
        or "Wavefronts to read 8 rows of a chunk column: "
        + ", ".join(f"{n} {name}" for name, n in worst.items()),
        alt=f"Three grids of {rows} rows by {plural(chunks, 'chunk')} of 16 bytes, coloured by bank. "
        + " ".join(
            f"{name}: {fact['bytes']} bytes; a column of 8 rows takes {', '.join(map(str, fact['wavefronts']))} wavefronts."
            for name, fact in facts.items()
        ),
        caption="Rows and columns are rows and 16-byte chunks of the tile; the number is the banks that the chunk"
        " falls in, or the first of them. Rows that share a colour within a column take turns.",
        facts=facts,
        figure=canvas,
        min_width=int(min(canvas.width * 0.85, 590)),
    )
