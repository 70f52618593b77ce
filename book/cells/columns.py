"""What the columns of the chapters' tables mean, one sentence for each heading, wherever it stands.

`show` makes a table of them; what a heading means that is not here stands at the call.
"""

from collections.abc import Mapping
from pathlib import Path

from IPython.display import display

import figures

MEANINGS = {
    # the compiler and the checker
    "registers": "32-bit registers per thread, as ptxas reports them; an SM has 65,536 for all its threads",
    "shared bytes": "bytes of shared memory per block",
    "shared KiB": "KiB of shared memory per block",
    "spills": "bytes stored to memory because registers ran out, plus bytes loaded again",
    "warps per SM": "warps that one SM can hold at a time, of the most it could hold",
    "limited by": "the resource that stops the SM from holding one more block",
    "PTX lines": "length of the PTX text: instructions, labels and declarations",
    "types": "number formats of the inputs and of the output",
    "sizes": "how many sizes were tried, some of which do not divide by the tile",
    "of bound": "the largest error, as a part of the error that rounding explains; below 1 is right",
    "hazards": "accesses that no barrier orders, as the emulator found them",
    "verdict": "ok, or what is wrong",
    # the emulator's counts
    "requests": "instructions executed, counted once per warp",
    "sectors": "32-byte pieces of global memory that the requests touched; a piece that is fetched in two goes counts twice",
    "sectors per request": "sectors divided by requests; 32 neighbouring floats need 4",
    "wavefronts": "passes through shared memory that the requests took",
    "wavefronts per request": "wavefronts divided by requests; without bank conflicts, 1 for 4 bytes per lane and 4 for "
    "16, or 2 where neighbouring lanes want the same bytes",
    "right": "whether the result is right",
    "operations per byte": "floating-point operations per byte loaded from global memory, counted",
    "at 8 bytes per number": "the same if a number had 8 bytes, as the post's formula says",
    # Nsight Compute
    "issue slots": "share of clocks in which a scheduler issued an instruction (Nsight Compute: issue slots busy)",
    "FMA pipe": "share of clocks in which the pipe for multiply-adds was busy",
    "tensor pipe": "share of clocks in which the tensor cores were busy",
    "shared memory": "share of the most wavefronts that the path to shared memory and L1 could have passed",
    "L2": "share of L2's busiest unit's peak: it may be requests or tag look-ups, not only bytes",
    "GHz": "clock of the SMs while the kernel ran; under power limits it falls below the nominal clock",
    # times
    "TFLOP/s": "10^12 floating-point operations per second; a multiply-add counts as two",
    "ms": "milliseconds, the median of repeated runs",
    "of cuBLAS": "speed as a share of cuBLAS's, with the same types and sizes in the same run",
    "idea": "what the rung adds to the one before it",
    # tuning
    "block": "tile of C per block, and the depth of K that it stages: BM x BN x BK",
    "block tile": "tile of C per block: BM x BN",
    "warp tile": "tile of C per warp: WM x WN",
    "blocks per SM": "blocks that one SM can hold at a time",
    "occupancy": "warps that an SM could hold, as a share of the most it could hold",
    "dropped": "why a setting was not timed",
    "BM": "rows of C per block",
    "BN": "columns of C per block",
    "BK": "depth of K per stage",
    "WM": "rows of C per warp",
    "WN": "columns of C per warp",
    "TM": "rows of C per thread",
    "TN": "columns of C per thread",
    "STAGES": "buffers in the pipeline, each for one step of K",
    "GROUP": "rows of tiles that neighbouring blocks take before they go on to the next column",
    # clocks
    "clocks": "clocks of the SM per turn, as the SM's own counter had them",
    "warps": "warps that were resident, as a share of the most an SM can hold",
    "conflicts": "wavefronts of ldmatrix beyond the four that each needs",
}


def sentence(words: str) -> str:
    """ "recorded on ..." as a sentence of its own."""
    return f"{words[:1].upper()}{words[1:]}."


def explained(columns: Mapping[str, str], rows, title: str = "", caption: str = ""):
    """A `figures.table` of {heading: meaning}; an empty meaning is looked up."""
    found = {name: meaning or MEANINGS.get(name, "") for name, meaning in columns.items()}
    return figures.table(found, rows, title, caption)


def cells_of(markdown: str) -> list[list[str]]:
    """The rows of the Markdown table in this text: its headings, then the cells."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [head, *rows]


def written(title: str, columns: Mapping[str, str]):
    """The table of `tables.md` with this title; `columns` says what its headings mean, in their order."""
    text = Path(__file__).with_name("tables.md").read_text(encoding="utf-8")
    part = text.split(f"## {title}\n")[1].split("\n## ")[0]
    return explained(columns, cells_of(part)[1:], title)


def show(columns: Mapping[str, str], rows, title: str = "", caption: str = "") -> None:
    """Displays such a table, wherever in a cell; in a terminal its text."""
    display(explained(columns, rows, title, caption))
