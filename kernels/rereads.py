"""Loads that a compiler issues twice, and why a build then compiles again.

NVRTC (13.5, measured on `warp_tiled` and `mma_tf32`) does not always give the same PTX: in about
one compile of sixteen, as memory addresses in its own process have it, the pass that joins four
neighbouring loads into a 128-bit one leaves a second, smaller load of two of the four numbers
behind. The result is right; but a count of instructions, or of wavefronts, is no longer the one
that everybody else gets.
"""

from __future__ import annotations

import re

LOAD = re.compile(
    r"^\s*ld\.(?:shared|global)[\w.:]*?(?:\.v(?P<count>[24]))?\.[usfb](?P<bits>\d+)\s+.*"
    r"\[(?P<base>%\w+)(?:\+(?P<offset>-?\d+))?\];",
    re.MULTILINE,
)
# What lies between these executes in one go, and no store changes what a load would bring.
ENDS = re.compile(r"^(?:\s*(?:st|bar|barrier|cp|atom|red|bra|@%p\d+ bra)\b|[$\w]+:)", re.MULTILINE)


def rereads(ptx: str) -> int:
    """Loads that bring again a part, and not the whole, of what a load before them brought, from
    the same base register and with no store, copy, barrier or branch between.
    """
    found, seen = 0, []
    for line in ptx.splitlines():
        if ENDS.match(line):
            seen = []
        elif load := LOAD.match(line):
            first = int(load["offset"] or 0)
            span = (load["base"], first, first + int(load["count"] or 1) * int(load["bits"]) // 8)
            found += any(_partly(span, other) for other in seen)
            seen.append(span)
    return found


def _partly(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    return one != other and one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
