"""Rungs beside each other at settings of the reader's choice, as the tuner timed them: one change at a time."""

from __future__ import annotations

from collections.abc import Mapping

import figures
from book.cells import tuned
from measure.provenance import load


def found(steps: Mapping[str, tuple[str, Mapping[str, int]]]) -> dict[str, float]:
    """{words: TFLOP/s} of those steps (a rung, and macros that its setting must have) that were timed."""
    speeds = {}
    for words, (rung, macros) in steps.items():
        try:
            speeds[words] = tuned.at(rung, **macros)["tflops"]
        except KeyError:
            continue
    return speeds


def waterfall(
    steps: Mapping[str, tuple[str, Mapping[str, int]]], title: str | None = None, tile: str = ""
):
    """The steps as a waterfall: {words: (rung, macros)}, of settings with these macros the fastest. tile: what they share.

    A step that nobody timed is left out, and a line says so.
    """
    recording, speeds = load("tune"), found(steps)
    missing = [words for words in steps if words not in speeds]
    if missing:
        print(f"not timed on {recording['machine']['gpu']}: {', '.join(missing)}")
    if len(speeds) < 2:
        return None
    size = recording["size"]
    return figures.waterfall(
        speeds,
        title=title,
        caption=f"{size} x {size} x {size}{tile}.",
        machine=recording["machine"],
        recorded=recording["recorded"][:10],
    )
