"""A rung's main loop in machine code, in a few lines: `python -m measure.main_loops NAME ...`.

The bytes are ptxas's, the words nvdisasm's (`pip install nvidia-cuda-nvdisasm`, or a CUDA toolkit's). Runs of one opcode
are shown by their first, and a last line counts what stands in the loop.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from kernels.build import Build
from kernels.gemm import plan
from kernels.rungs import find
from kernels.settings import configuration

from .model.code import main_span

ARCH, SIZE = 90, 4096
MOST = 16  # lines of the loop
# What an opcode does, in this book's words; said where it stands first.
WORDS = {
    "LDG": "load from global memory", "STG": "store to global memory", "LDS": "load from shared memory",
    "STS": "store to shared memory", "LDGSTS": "cp.async", "LDSM": "ldmatrix", "HMMA": "mma.sync", "IMMA": "mma.sync",
    "FFMA": "multiply-add", "HGMMA": "wgmma", "QGMMA": "wgmma", "IGMMA": "wgmma", "UTMALDG": "copy by TMA",
    "SYNCS": "mbarrier", "BAR": "barrier of the block", "DEPBAR": "wait for copies or loads", "LDGDEPBAR": "commit of copies",
    "WARPGROUP": "wgmma's fence or wait", "UTMASTG": "store by TMA", "UCGABAR_WAIT": "barrier of the cluster",
}  # fmt: skip


def nvdisasm() -> str:
    """The disassembler, of the PATH or of PyPI. FileNotFoundError says how to get it."""
    if found := shutil.which("nvdisasm"):
        return found
    try:
        files = importlib.metadata.files("nvidia-cuda-nvdisasm") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.stem == "nvdisasm" and "bin" in file.parts:
            return str(file.locate())
    raise FileNotFoundError("nvdisasm is not here: pip install nvidia-cuda-nvdisasm")


def disassembled(build: Build, entry: str) -> list[str]:
    """The instructions of a kernel, one line each, without addresses."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(build.cubin)
        printed = subprocess.run([nvdisasm(), "-c", str(path)], capture_output=True, text=True, check=True).stdout  # fmt: skip
    here, found = False, []
    for line in printed.splitlines():
        if line.strip().startswith(".section"):
            here = f".text.{entry}," in line
        if here and (made := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line)):
            found.append(re.sub(r"\s+", " ", made[1]))
    return found


def opcode(line: str) -> str:
    """ "LDS" of "@P0 LDS.128 R4, [R8]"."""
    return re.sub(r"^@!?U?P\w+ ", "", line).split(" ")[0].split(".")[0]


def shortened(lines: Sequence[str], most: int = MOST) -> list[str]:
    """At most `most` lines of a loop, and one that counts all. Instructions that compute addresses or count are left out; of
    each run of one opcode the first stands, from the place on at which the most kinds stand together.
    """
    lines = [line for line in lines if not re.match("@!U?PT ", line)]  # never executed
    told = [line for line in lines if opcode(line) in WORDS]
    runs = [(code, list(run)) for code, run in groupby(told, opcode)]
    fits = min(len(runs), most - 3)
    start = max(
        range(len(runs) - fits + 1),
        key=lambda at: (len({code for code, _ in runs[at : at + fits]}), -at),
    )
    shown, said = ["..."] if start else [], set()
    for code, (first, *more) in runs[start : start + fits]:
        notes = [] if code in said else [WORDS[code]]
        notes += [f"and {len(more)} more"] if more else []
        shown.append(f"{first};" + (f"  // {', '.join(notes)}" if notes else ""))
        said.add(code)
    if start + fits < len(runs):
        shown.append("...")
    counted = Counter(map(opcode, told)).most_common()
    sums = ", ".join(f"{n} {code}" for code, n in counted)
    return [*shown, f"{lines[-1]};  // to the next turn", f"// {len(lines)} instructions: {sums}"]


def of_rung(name: str, size: int = SIZE) -> list[str]:
    """The main loop of a rung at the setting that is timed at this size, for sm_90."""
    rung = find(name)
    macros = configuration(rung, size, ARCH).macros
    build = plan(rung, size, size, size, macros, ARCH).build
    start, end = main_span(build, rung.entry)
    return shortened(disassembled(build, rung.entry)[start : end + 1])


if __name__ == "__main__":
    import sys

    for name in sys.argv[1:]:
        print("\n".join(of_rung(name)))
