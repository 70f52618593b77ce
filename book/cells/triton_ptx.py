"""The product that Triton compiled, on the emulator: its lines, its counts beside ours, its recorded speed."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np

import emulator
import figures
from book.cells import columns
from measure import with_triton
from measure.foreign import Compiled
from measure.provenance import recording


def run(arch: int, A: np.ndarray, B: np.ndarray):
    """(C, trace) of Triton's stored PTX for this architecture. A (M, K) and B (K, N) float16, C float32."""
    made = with_triton.stored_ptx(arch)
    return launched(made, A, B, made.arguments)


def launched(made: Compiled, A: np.ndarray, B: np.ndarray, arguments=lambda *given: given):
    """(C, trace) of a compiled product; `arguments` gives a launch's arguments, of A, B, C and the three sizes."""
    (M, K), N = A.shape, B.shape[1]
    C = np.zeros((M, N), np.float32)
    grid = (-(-N // made.setting["BN"]), -(-M // made.setting["BM"]))
    args = arguments(A, B, C, np.int32(M), np.int32(N), np.int32(K))
    module = emulator.Module(made.ptx)
    return C, module.launch(made.entry, grid, made.threads, args, made.shared_bytes)


def source(kernel: str, file: Path = with_triton.SOURCE) -> str:
    """The lines of one kernel of `measure/triton_kernels.py`, or of another file."""
    text = file.read_text(encoding="utf-8")
    (found,) = (f for f in ast.parse(text).body if getattr(f, "name", "") == kernel)
    return "\n".join(text.splitlines()[found.lineno - 2 : found.end_lineno])  # with its decorator


def listing(kernel: str, file: Path = with_triton.SOURCE, language: str = "Triton"):
    """One kernel's text, as a cell's result."""
    shown = figures.cuda(source(kernel, file))
    return replace(shown, alt=shown.alt.replace("CUDA", language))


def annotated(trace, title: str):
    """Triton's source with what each line cost."""
    text = with_triton.SOURCE.read_text(encoding="utf-8")
    drawn = figures.annotated_source(trace, text, title=title)
    words = ("CUDA source", "Triton source")
    return replace(drawn, body=drawn.body.replace(*words), alt=drawn.alt.replace(*words))


WHAT = {
    "copies to shared memory": ("cp.async.cg", "warps"),
    "their sectors": ("cp.async.cg", "global_sectors"),
    "their wavefronts": ("cp.async.cg", "shared_wavefronts"),
    "ldmatrix": ("ldmatrix", "warps"),
    "wavefronts of ldmatrix": ("ldmatrix", "shared_wavefronts"),
    "mma": ("mma", "warps"),
    "wgmma": ("wgmma.mma", "warps"),
    "barriers": ("bar", "warps"),
    "stores to shared memory": ("st.shared", "warps"),
    "stores to C": ("st.global", "warps"),
    "sectors of C": ("st.global", "global_sectors"),
}


def count(trace, what: str) -> int:
    """One line of the table of counts."""
    opcode, column = WHAT[what]
    return sum(getattr(row, column) for row in trace.rows(opcode))


def counts(**traces):
    """What the launches executed, side by side."""
    kinds = [what for what in WHAT if any(count(trace, what) for trace in traces.values())]
    meanings = {name: f"the kernel {name}, counted on the emulator" for name in traces}
    return figures.table(
        {"per launch": "executed by warps, PTX instructions", **meanings},
        [[what, *(count(trace, what) for trace in traces.values())] for what in kinds],
        title="The same product, counted",
    )


def speeds():
    """The recorded speeds beside ours and cuBLAS's."""
    stored = recording("triton")
    rows = sorted(stored["rows"], key=lambda row: (row["size"], row["tflops"]))
    return figures.table(
        {
            "size": "M, N and K",
            "kernel": "Triton's two, ours, and the library; all in one run",
            "setting": "tile, depth, warps and stages that its search found best",
            "TFLOP/s": "10^12 floating-point operations per second",
        },
        [
            [
                row["size"],
                row["kernel"],
                " ".join(
                    f"{k}={v}" for k, v in row["setting"].items() if not k.endswith(("PUT", "PUT_"))
                ),
                row["tflops"],
            ]
            for row in rows
        ],
        title="The same product, timed",
        caption=stored["label"],
    )


def who_decides():
    """What the programmer decides in CUDA, in CuTe's Python and in Triton, and what the compiler."""
    return columns.written(
        "Triton takes over what happens inside a block, CuTe only the index arithmetic",
        {
            "": "",
            "in CUDA": "who makes it in our rungs",
            "in CuTe": "who makes it in the kernel above",
            "in Triton": "who makes it there",
        },
    )
