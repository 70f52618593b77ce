"""How fast the emulator is: `python -m emulator bench`.

Two kernels at 256 x 256 x 256, on one core: the naive float32 one (memory-bound here as there), and a
tile kernel on tensor cores. Where Numba is installed, its CUDA simulator runs the naive kernel beside
it, at a size it can manage. `--against FOLDER` sets another checkout of the emulator beside this one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emulator.module import Module

SAMPLES = Path(__file__).parent / "samples"
_NUMBA = """
import time, numpy as np
from numba import cuda
@cuda.jit
def gemm(A, B, C):
    column, row = cuda.grid(2)
    if row < C.shape[0] and column < C.shape[1]:
        total = np.float32(0)
        for k in range(A.shape[1]):
            total += A[row, k] * B[k, column]
        C[row, column] = total
A, B, C = np.ones((32, 32), np.float32), np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32)
best = float("inf")
for _ in range(4):
    started = time.perf_counter()
    gemm[(2, 2), (16, 16)](A, B, C)
    best = min(best, time.perf_counter() - started)
print(32**3 / best)
"""


@dataclass(frozen=True)
class Measurement:
    """name; seconds: best of `repeats`; rate: multiply-adds a second."""

    name: str
    seconds: float
    rate: float


def _gemm(
    sample: str,
    entry: str,
    grid,
    block,
    dtype,
    size: int,
    repeats: int,
    clock=time.perf_counter,
    **options,
) -> float:
    module = Module((SAMPLES / sample).read_text(encoding="utf-8"))
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((size, size)).astype(dtype) for _ in range(2))
    c = np.zeros((size, size), np.float32)
    sizes = [np.int32(size)] * 3
    best = float("inf")
    for _ in range(repeats):
        started = clock()
        module.launch(
            entry, grid, block, [a, b, c, *sizes, np.float32(1), np.float32(0)], **options
        )
        best = min(best, clock() - started)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    if np.abs(c - exact).max() > 1e-3:
        raise AssertionError(f"{sample}: wrong result")
    return best


def measure(size: int = 256, repeats: int = 3, clock=time.perf_counter) -> list[Measurement]:
    """Times, decoding included. size: a multiple of 128, else ValueError."""
    if size < 128 or size % 128:
        raise ValueError(f"size {size}: the kernels measured here need a multiple of 128")
    macs, tiles = size**3, size // 128
    naive = (
        "naive.ptx",
        "gemm_naive",
        (size // 32, size // 32),
        (32, 32),
        np.float32,
        size,
        repeats,
        clock,
    )
    mma = (
        "mma_tile.ptx",
        "gemm_mma_swizzled",
        (tiles, tiles),
        128,
        np.float16,
        size,
        repeats,
        clock,
    )
    runs = (
        ("naive, counting", naive, {}),
        ("naive, not counting", naive, {"count": False, "record": 0}),
        ("mma.sync tiles, counting", mma, {}),
    )
    found = []
    for name, arguments, options in runs:
        seconds = _gemm(*arguments, **options)
        found.append(Measurement(name, seconds, macs / seconds))
    return found


def cpu_seconds(size: int) -> dict[str, float]:
    """CPU time of each kernel: unlike time on the wall, it leaves out what other processes use."""
    return {row.name: row.seconds for row in measure(size, clock=time.process_time)}


def against(folder: Path | str, size: int = 256, rounds: int = 9) -> str:
    """The CPU time of this emulator beside that of another checkout in `folder`, as a table.

    Both run the kernels of this one, in turn, each in a process of its own; the ratio is the median of the
    rounds. ValueError where the folder holds no emulator.
    """
    other, here = Path(folder).resolve(), Path(__file__).resolve().parents[1]
    if not (other / "emulator" / "module.py").exists():
        raise ValueError(f"--against {folder}: no emulator is there")
    times = [[_in_process(place, size) for place in (other, here)] for _ in range(rounds)]
    lines = [f"{'kernel':26} {'there, s':>9} {'here, s':>9} {'there / here':>13}"]
    for name in times[0][0]:
        there, ours = ([pair[i][name] for pair in times] for i in (0, 1))
        ratio = statistics.median(a / b for a, b in zip(there, ours, strict=True))
        lines.append(f"{name:26} {min(there):9.3f} {min(ours):9.3f} {ratio:13.2f}")
    return "\n".join(lines)


_IN_PROCESS = """
import json, runpy, sys
sys.path.insert(0, sys.argv[1])
print(json.dumps(runpy.run_path(sys.argv[2])["cpu_seconds"](int(sys.argv[3]))))
"""


def _in_process(folder: Path, size: int) -> dict[str, float]:
    """`cpu_seconds` of the emulator in a folder, by this very file."""
    command = [sys.executable, "-c", _IN_PROCESS, str(folder), __file__, str(size)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def numba_rate() -> float | None:
    """Multiply-adds a second of Numba's CUDA simulator on the naive kernel at 32**3; None without Numba."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _NUMBA],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return float(done.stdout) if done.returncode == 0 else None


def table(size: int = 256) -> str:
    """What `python -m emulator bench` prints."""
    rows, numba = measure(size), numba_rate()
    lines = [
        f"{'kernel':26} {'size':>6} {'seconds':>8} {'multiply-adds/s':>16} {'ratio to Numba simulator':>25}"
    ]
    for row in rows:
        ratio = f"{row.rate / numba:.0f}x" if numba else "Numba not installed"
        lines.append(
            f"{row.name:26} {size:>4}^3 {row.seconds:8.2f} {row.rate / 1e6:14.1f} M {ratio:>25}"
        )
    if numba:
        lines.append(
            f"{'Numba CUDA simulator':26} {32:>4}^3 {32**3 / numba:8.2f} {numba / 1e6:14.3f} M {'1x':>25}"
        )
    return "\n".join(lines)
