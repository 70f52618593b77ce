"""Where lanes of a warp meet in a bank, and how large the shared arrays of a line are declared to be."""

from __future__ import annotations

import re

import numpy as np

from .explain import own_line, statement_start

BANKS, WORD = 32, 4
_SHARED = re.compile(r"__shared__\s+([^;]+);")
_ARRAY = re.compile(r"(\w+)\s*((?:\[[^\]]*\]\s*)+)")


def meeting(trace, line: int, name: str) -> str | None:
    """ "lanes 0 and 2 need different words of bank 0", of the worst access of this line; None where no two meet."""
    worst, found = 0, None
    for row in trace.instructions:
        if own_line(row.frames, f"{name}.cu") != line or not row.shared_wavefronts:
            continue
        excess = (row.shared_wavefronts - row.shared_wavefronts_ideal) / max(row.warps, 1)
        if excess <= worst:
            continue
        for access in trace.accesses(row):
            if access.space == "shared" and (told := _two_lanes(access)):
                worst, found = excess, told
                break
    return found


def _two_lanes(access) -> str | None:
    """The first two lanes that are served together and want different words of one bank."""
    width = max(access.width, WORD)
    together = max(1, BANKS * WORD // width)  # lanes of one wavefront, where none conflict
    seen: dict[tuple[int, int], tuple[int, int]] = {}
    for lane in np.flatnonzero(access.active).tolist():
        address = int(access.addresses[lane])
        for word in range(address // WORD, (address + width - 1) // WORD + 1):
            key = lane // together, word % BANKS
            other = seen.setdefault(key, (lane, word))
            if other[1] != word:
                return f"lanes {other[0]} and {lane} need different words of bank {word % BANKS}"
    return None


def declared_shared(source: str, line: int | None) -> list[str]:
    """ "As[STEP][TILE + 4]" for each shared array, of those that the statement of this line names, else of all."""
    plain = re.sub(r"//[^\n]*", "", source)
    arrays = {
        name: name + " ".join(sizes.split())
        for declaration in _SHARED.findall(plain)
        for name, sizes in _ARRAY.findall(re.sub(r"\w+\s*\([^)]*\)", "", declaration))
    }
    if line is not None:
        lines = plain.splitlines()
        first = statement_start(line, lines)
        words = set(re.findall(r"\w+", " ".join(lines[first - 1 : line + 2])))
        here = [text for name, text in arrays.items() if name in words]
        if here:
            return here
    return list(arrays.values())
