"""Plain text tables, and a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence], left: int = 1) -> str:
    """Columns as wide as their widest cell; the first `left` of them and the last left-aligned if
    they hold text.
    """
    cells = [[str(c) for c in row] for row in rows]
    widths = [max(len(r[i]) for r in [list(header), *cells]) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        parts = [
            c.ljust(w) if i < left else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(parts).rstrip()

    return "\n".join([line(header), line(["-" * w for w in widths]), *map(line, cells)])


def progress(done: int, total: int, what: str = "") -> None:
    """Redraw a bar on stderr; the last call ends its line. Nothing where stderr is a file."""
    if not sys.stderr.isatty() and "ipykernel" not in sys.modules:
        return
    filled = 30 * done // max(total, 1)
    bar = "#" * filled + "." * (30 - filled)
    print(f"\r[{bar}] {done}/{total} {what:<40.40}", end="", file=sys.stderr, flush=True)
    if done >= total:
        print(file=sys.stderr)
