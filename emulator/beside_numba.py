"""Six small kernels on the emulator and on Numba's CUDA simulator: `python -m emulator bench`.

`samples/six.cu` has them in CUDA, `_NUMBA` in Python, which the simulator runs thread by thread. A kernel's work is counted in
elements: of its input, or multiply-adds of the product. Both are checked against NumPy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emulator.module import Module

PTX = Path(__file__).parent / "samples" / "six.ptx"
_NUMBA = """
import json, sys, time, numpy as np
from numba import cuda, float32
sys.path.insert(0, sys.argv[1])
from emulator.beside_numba import REPEATS, SMALL, cases

@cuda.jit
def saxpy(a, x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] += a * x[i]

@cuda.jit
def transpose(source, out, n):
    tile = cuda.shared.array((16, 17), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile[ty, tx] = source[y * n + x]
    cuda.syncthreads()
    out[(cuda.blockIdx.x * 16 + ty) * n + cuda.blockIdx.y * 16 + tx] = tile[tx, ty]

@cuda.jit
def sums(x, out):
    part = cuda.shared.array(128, float32)
    i = cuda.threadIdx.x
    part[i] = x[cuda.grid(1)]
    half = 64
    while half > 0:
        cuda.syncthreads()
        if i < half:
            part[i] += part[i + half]
        half //= 2
    if i == 0:
        out[cuda.blockIdx.x] = part[0]

@cuda.jit
def histogram(x, counts):
    cuda.atomic.add(counts, x[cuda.grid(1)], 1)

@cuda.jit
def stencil(x, y, n):
    i = cuda.grid(1)
    if 0 < i < n - 1:
        y[i] = 0.25 * x[i - 1] + 0.5 * x[i] + 0.25 * x[i + 1]

@cuda.jit
def tiled(A, B, C, n):
    As = cuda.shared.array((16, 16), float32)
    Bs = cuda.shared.array((16, 16), float32)
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k0 in range(0, n, 16):
        As[ty, tx] = A[row * n + k0 + tx]
        Bs[ty, tx] = B[(k0 + ty) * n + col]
        cuda.syncthreads()
        for k in range(16):
            total += As[ty, k] * Bs[k, tx]
        cuda.syncthreads()
    C[row * n + col] = total

found = {}
for name, case in cases(SMALL).items():
    best = float("inf")
    for _ in range(REPEATS):
        args = case.fresh()
        started = time.perf_counter()
        globals()[name][case.grid, case.block](*args)
        best = min(best, time.perf_counter() - started)
        case.check(args)
    found[name] = case.elements / best
print(json.dumps(found))
"""
REPEATS = 3
LARGE, SMALL = 256, 32  # extents of the matrices; vectors have their squares


@dataclass(frozen=True)
class Case:
    """One launch: args, whose arrays are copied for each run, and what the one at `result` must then hold."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple
    result: int
    wanted: Callable[[tuple], np.ndarray]
    elements: int

    def fresh(self) -> list:
        return [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in self.args]

    def check(self, args) -> None:
        """AssertionError where the result is wrong."""
        np.testing.assert_allclose(args[self.result], self.wanted(self.args), rtol=2e-4, atol=1e-4)


def cases(n: int) -> dict[str, Case]:
    """{kernel: its launch} for matrices of n x n, vectors of n * n elements; n a multiple of 16."""
    rng = np.random.default_rng(4)
    x, y = rng.random((2, n * n), np.float32)
    zeros, whole = np.zeros(n * n, np.float32), rng.integers(0, 64, n * n, dtype=np.int32)
    size, line, square = np.int32(n * n), ((n * n // 128,), (128,)), ((n // 16, n // 16), (16, 16))

    def smooth(args):
        inner = np.convolve(args[0], np.float32([0.25, 0.5, 0.25]), "valid")
        return np.concatenate([[0], inner, [0]])

    def product(args):
        return (args[0].reshape(n, n) @ args[1].reshape(n, n)).ravel()

    count, rows = np.zeros(64, np.int32), np.zeros(n * n // 128, np.float32)
    return {
        "saxpy": Case(*line, (np.float32(2), x, y, size), 2, lambda a: a[2] + 2 * a[1], n * n),
        "transpose": Case(
            *square, (x, zeros, np.int32(n)), 1, lambda a: a[0].reshape(n, n).T.ravel(), n * n
        ),
        "sums": Case(*line, (x, rows), 1, lambda a: a[0].reshape(-1, 128).sum(1), n * n),
        "histogram": Case(
            *line, (whole, count), 1, lambda a: np.bincount(a[0], minlength=64), n * n
        ),
        "stencil": Case(*line, (x, zeros, size), 1, smooth, n * n),
        "tiled": Case(*square, (x, y, zeros, np.int32(n)), 2, product, n**3),
    }


def emulated(n: int = LARGE) -> dict[str, float]:
    """Elements a second of each kernel on the emulator, with its sanitizer and its counts."""
    module, found = Module(PTX.read_text(encoding="utf-8")), {}
    for name, case in cases(n).items():
        best = float("inf")
        for _ in range(REPEATS):
            args = case.fresh()
            started = time.perf_counter()
            trace = module.launch(name, case.grid, case.block, args)
            best = min(best, time.perf_counter() - started)
            case.check(args)
            assert trace.hazards == [], trace.hazards
        found[name] = case.elements / best
    return found


def simulated() -> dict[str, float] | None:
    """The same of Numba's simulator, at SMALL; None without Numba."""
    done = subprocess.run(
        [sys.executable, "-c", _NUMBA, str(Path(__file__).parents[1])],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def table() -> str:
    """What `python -m emulator bench` prints last."""
    here, there = emulated(), simulated()
    head = f"{'kernel':12} {'elements/s':>12} {'Numba simulator':>16} {'ratio':>8}"
    lines = [head]
    for name, rate in here.items():
        slow = (
            f"{there[name] / 1e6:14.3f} M {rate / there[name]:7.0f}x" if there else "not installed"
        )
        lines.append(f"{name:12} {rate / 1e6:10.2f} M {slow:>24}")
    return "\n".join(lines)
