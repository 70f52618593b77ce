"""The command that compiles a rung by nvcc alone, outside of the book."""

from __future__ import annotations

from book.cells import columns
from kernels.build import WORD
from kernels.rung import Rung
from kernels.rungs import RUNGS

TARGETS = ("80", "90a", "100a")  # the oldest that a rung runs on


def line(rung: Rung, arch: str | None = None) -> str:
    """The line, from the repository's folder, with the row's macros at their defaults; those that the source names."""
    target = rung.target(arch or next(target for target in TARGETS if rung.runs_on(target)))
    text = rung.path.read_text(encoding="utf-8")
    words = set(WORD.findall(text))
    macros = rung.resolve({}, target)
    given = [f"-D{name}={value}" for name, value in sorted(macros.items()) if name in words]
    code = f"-gencode arch=compute_{target},code=sm_{target}"
    return " ".join(["nvcc -std=c++17", code, *given, "-cubin", f"kernels/{rung.file}"])


def lines(arch: str | None = None) -> dict[str, str]:
    """{rung: line} of all rungs that are CUDA files."""
    return {name: line(rung, arch) for name, rung in RUNGS.items() if rung.path}


def show():
    """All lines as a table."""
    heads = {
        "rung": "the kernel's name",
        "line": "what compiles it to machine code, from the repository's folder",
    }
    return columns.explained(
        heads, [[name, text] for name, text in lines().items()], "One line builds each rung"
    )
