"""Writes `kernels/README.md`, the ladder at a glance, from `kernels.rungs` and what was recorded.

`python -m measure readme` does it; a test keeps the file true.
"""

from __future__ import annotations

from pathlib import Path

from kernels.rung import FOLDER, Rung
from kernels.rungs import RUNGS

from .results import Recording, recorded

README = FOLDER / "README.md"
SIZE = 4096
HEAD = """\
# The ladder at a glance

One CUDA file per rung, numbered as the book meets them (but 20 comes before 19); a file's first lines say what changed,
mostly from the rung before it. Every rung computes `C = alpha * A @ B + beta * C`. All timed rows but `cpu` and 8-bit inputs
are compared with cuBLAS on the same types and layout, in the same run.

"""
FOOT = """
`ptx.cuh` holds PTX instructions that C++ has no name for (`hopper.cuh`, `cluster.cuh` and `blackwell.cuh` those of later
GPUs), `epilogue.cuh` and `epilogue_tma.cuh` the last step of most tensor-core rungs. `alone.cu` is a main for any rung,
`alone_rows.cuh` says how each is launched. The Python files build, launch and check a rung: `rungs.py` is the ladder as a
table (`rung.py` says what a row means, `shapes.py` computes its threads, blocks and bytes), `build.py` compiles, `launch.py`
and `gemm.py` run, `check.py` judges.
[`HOPPER_NOTES.md`](HOPPER_NOTES.md) tells what was tried on Hopper's rungs, and what each trial gave. From a shell:

```
python -m kernels check tiled --size 100x70x30   # right, on the emulator and on a GPU where there is one?
python -m kernels build tiled                    # registers, shared memory and spills on every architecture
python -m kernels source tiled load              # a part of the source, as marked: // [load]
python -m measure bench tiled                    # times it against cuBLAS on a GPU
python -m kernels alone tiled                    # builds it with nvcc and a main of its own (alone.cu), and runs it
python -m kernels alone tiled --line             # its commands, for use without Python
```

`python -m measure readme` writes this page.
"""


def text(recording: Recording | None = None) -> str:
    """The page: a row per rung, and a speed per pair of number formats that was recorded at `SIZE`."""
    recording = recording or recorded()
    lines = [
        f"Speeds: {SIZE} x {SIZE} x {SIZE}, {recording.label}.",
        "",
        "| | file | idea | compared with | TFLOP/s | of cuBLAS |",
        "|---|---|---|---|---|---|",
    ]
    for rung in RUNGS.values():
        lines += _rows(rung, recording)
    return HEAD + "\n".join(lines) + "\n" + FOOT


def _rows(rung: Rung, recording: Recording) -> list[str]:
    number = "" if rung.number is None else str(rung.number)
    file = f"[`{rung.file}`]({rung.file})" if rung.file else f"[`{rung.name}.py`]({rung.name}.py)"
    rows, before = [], (number, file, rung.idea)
    for row in recording.select(rung.name, SIZE):
        types = f"{row['inputs']} to {row['output']}"
        rival = "" if rung.name == "cublas" else "cuBLAS, "
        share = f"{row['ratio_to_cublas']:.0%}" if row["ratio_to_cublas"] else ""
        if not row["ratio_to_cublas"] and rival:
            rival = ""
        rows.append((*before, f"{rival}{types}", _three_digits(row["tflops"]), share))
        before = ("", "", "")  # further types of the same rung
    missing = "not recorded" if rung.timed else "not timed here"
    rows = rows or [(*before, str(rung.types()).replace("->", " to "), missing, "")]
    return ["| " + " | ".join(row) + " |" for row in rows]


def _three_digits(number: float) -> str:
    """A number to three digits, as people write it: 0.498, 21.5, 1,350."""
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 1000 else f"{number:.3g}"


def write() -> Path:
    """Write the page and return its path. FileNotFoundError when nothing was recorded."""
    README.write_text(text(), encoding="utf-8")
    return README
