"""A progress bar for what takes minutes."""

from __future__ import annotations

import sys


def progress(done: int, total: int, what: str = "") -> None:
    """Redraw a bar on stderr; the last call ends its line. Nothing where stderr is a file."""
    if not _drawn():
        return
    filled = 30 * done // max(total, 1)
    bar = "#" * filled + "." * (30 - filled)
    print(f"\r[{bar}] {done}/{total} {what:<40.40}", end="", file=sys.stderr, flush=True)
    if done >= total:
        print(file=sys.stderr)


def aside(text: str) -> None:
    """A line on stderr of its own, in place of the bar where one is drawn; the next call of `progress` draws it again."""
    print(f"\r{text:<85}" if _drawn() else text, file=sys.stderr, flush=True)


def _drawn() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
