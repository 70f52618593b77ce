"""Plain text tables."""

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence], left: int = 1) -> str:
    """Columns as wide as their widest cell; the first `left` of them left-aligned."""
    cells = [[str(c) for c in row] for row in rows]
    widths = [max(len(r[i]) for r in [list(header), *cells]) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        parts = [
            c.ljust(w) if i < left else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(parts).rstrip()

    return "\n".join([line(header), line(["-" * w for w in widths]), *map(line, cells)])
