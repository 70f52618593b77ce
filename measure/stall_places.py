"""At which instructions the warps of a kernel wait, by Nsight Compute's samples of where they stand."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from . import ncu

LEAST = 0.01  # of all samples: what has fewer is left out
# What the columns of its source page call a reason, where not by the whole name.
SHORT = {
    "long_sb": "long_scoreboard", "short_sb": "short_scoreboard", "math": "math_pipe_throttle", "mio": "mio_throttle",
    "lg": "lg_throttle", "dispatch": "dispatch_stall", "no_inst": "no_instruction", "imc": "imc_miss",
    "sleep": "sleeping", "tex": "tex_throttle",
}  # fmt: skip


def sampled(entry: str, program: Sequence[str], launch: int = 0) -> list[dict]:
    """`places` of one launch of the kernel `entry` in `python -m <program>`; empty where ncu takes no samples."""
    with tempfile.TemporaryDirectory() as folder:
        report = str(Path(folder) / "samples.ncu-rep")
        ncu.watch(entry, program, launch, "-o", report, "--section", "SourceCounters")
        shown = ncu.run("--import", report, "--page", "source", "--csv", "--print-source", "sass")
    return places(shown.stdout)


def places(page: str) -> list[dict]:
    """[{"reason", "instruction", "share"}] of the source page as CSV, the largest share of all samples first.

    instruction: the opcode with its modifiers, of the one that the warp could not yet issue; for a branch, which waits for its
    predicate, of the one that sets it.
    """
    lines = list(csv.reader(io.StringIO(page)))
    top = next((n for n, line in enumerate(lines) if line[:2] == ["Address", "Source"]), None)
    if top is None:
        return []
    header, body = lines[top], lines[top + 1 :]
    columns = {
        SHORT.get(name[6:], name[6:]): at
        for at, name in enumerate(header)
        if name.startswith("stall_") and "(" not in name
    }
    every, found = 0, Counter()
    code = [line[1].strip() for line in body]
    for row, line in enumerate(body):
        for reason, at in columns.items():
            if n := int(line[at] or 0):
                every += n
                found[reason, _awaited(code, row)] += n
    return [
        {"reason": reason, "instruction": instruction, "share": round(n / every, 4)}
        for (reason, instruction), n in found.most_common()
        if n >= LEAST * every
    ]


def _awaited(code: Sequence[str], row: int) -> str:
    """The opcode at this row, or, of a branch, of the instruction before it that sets its predicate."""
    if branch := re.match(r"@!?(U?P\d)\s+BRA", code[row]):
        sets = re.compile(rf"[A-Z][\w.]*\s+(?:\w+,\s*)?{branch[1]},")
        row = next((n for n in range(row - 1, -1, -1) if sets.search(code[n])), row)
    return re.sub(r"^@!?U?P\w+\s+", "", code[row]).split(" ")[0]
