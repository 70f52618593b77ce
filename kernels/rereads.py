"""Loads that a compiler issues twice, and why a build then compiles again.

NVRTC (13.5, measured on `warp_tiled` and `mma_tf32`) does not always give the same PTX: in about
one compile of sixteen, as memory addresses in its own process have it, the pass that joins four
neighbouring loads into a 128-bit one leaves a second, smaller load of two of the four numbers
behind. The result is right; but a count of instructions, or of wavefronts, is no longer the one
that everybody else gets.

A single number that is loaded again is no accident: a kernel of the book whose PTX has such a load (`measure/cuda/
published/pipelined.cu`) has it in every compile.
"""

import re

LOAD = re.compile(
    r"^\s*ld\.(?:shared|global)[\w.:]*?(?:\.v(?P<count>[24]))?\.[usfb](?P<bits>\d+)\s+.*"
    r"\[(?P<base>%\w+)(?:\+(?P<offset>-?\d+))?\];",
    re.MULTILINE,
)
# What lies between these executes in one go, and no store changes what a load would bring.
ENDS = re.compile(r"^(?:\s*(?:st|bar|barrier|cp|atom|red|bra|@%p\d+ bra)\b|[$\w]+:)", re.MULTILINE)


def rereads(ptx: str) -> int:
    """Loads of two numbers that bring again a part of the four that a load before them brought, from
    the same base register and with no store, copy, barrier or branch between.
    """
    found, fours = 0, []
    for line in ptx.splitlines():
        if ENDS.match(line):
            fours = []
        elif load := LOAD.match(line):
            first, count = int(load["offset"] or 0), int(load["count"] or 1)
            last = first + count * int(load["bits"]) // 8
            if count == 2:
                same = (four for four in fours if four[0] == load["base"])
                found += any(first < end and start < last for _, start, end in same)
            elif count == 4:
                fours.append((load["base"], first, last))
    return found
