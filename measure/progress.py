"""A progress bar for what takes minutes."""

from __future__ import annotations

import sys


def progress(done: int, total: int, what: str = "") -> None:
    """Redraw a bar on stderr; the last call ends its line. Nothing where stderr is a file."""
    if not sys.stderr.isatty() and "ipykernel" not in sys.modules:
        return
    filled = 30 * done // max(total, 1)
    bar = "#" * filled + "." * (30 - filled)
    print(f"\r[{bar}] {done}/{total} {what:<40.40}", end="", file=sys.stderr, flush=True)
    if done >= total:
        print(file=sys.stderr)
