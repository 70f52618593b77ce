"""How cuBLAS looks to a stopwatch that starts too early: start-up and page migration, timed as GEMM.

The "CUDA GEMMS" post times one call, with the handle made inside the timed region and the matrices
in managed memory, where the host has just filled C with zeros. `measure` takes such steps one by
one, in a fresh process, with all three matrices filled by the host, and then times the call alone.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kernels.gpus import gpu, live, needed

from .clock import elapsed
from .provenance import FOLDER

CALLS = 20


@dataclass(frozen=True)
class FirstCall:
    """Where the time goes, in ms, for fp16 matrices of `size`; `recorded` is None for a live run."""

    gpu: str
    size: int
    handle_ms: float
    first_ms: float
    second_ms: float
    fair_ms: float
    recorded: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.where}: cuBLAS's first call at {self.size}\n"
            f"making its handle {self.handle_ms:.2f} ms, the first call with it {self.first_ms:.2f} ms on managed memory, "
            f"the second {self.second_ms:.2f} ms; one on the device {self.fair_ms:.3f} ms"
        )

    @property
    def where(self) -> str:
        """The machine, in words that a caption can use."""
        return f"{self.gpu}, " + (f"recorded {self.recorded}" if self.recorded else "this machine")


def measure(size: int = 4096) -> FirstCall | None:
    """Measures on this machine's GPU; where there is none to measure on, what was recorded, None
    when nothing was.
    """
    return _measured(size) if live() else recorded()


def _measured(size: int) -> FirstCall:
    command = [sys.executable, "-m", "measure.first_call", str(size)]
    run = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"the measurement failed:\n{run.stderr.strip()[-500:]}")
    return FirstCall(**json.loads(run.stdout))


def recorded(folder: Path = FOLDER) -> FirstCall | None:
    """The newest of `results/first-call-<gpu>.json`, None when there is none."""
    files = folder.glob("first-call-*.json")
    runs = [FirstCall(**json.loads(path.read_text(encoding="utf-8"))) for path in files]
    return max(runs, key=lambda run: run.recorded, default=None)


def record() -> Path:
    """Measures here and writes `results/first-call-<gpu>.json`. UnsupportedGPU without a GPU."""
    here = needed("recording")
    run = replace(_measured(4096), recorded=datetime.date.today().isoformat())
    path = FOLDER / f"first-call-{here.slug}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(run), indent=1) + "\n", encoding="utf-8")
    return path


def _measure_here(size: int) -> FirstCall:
    """The steps themselves; cuBLAS must not have been used before in this process."""
    import ctypes

    import cupy
    import numpy as np
    from cupy_backends.cuda.libs import cublas

    cupy.zeros(1)  # the CUDA context is made before any clock starts
    random = np.random.default_rng(7)
    scalars = np.array([1, 0], np.float32)

    def managed(dtype):
        memory = cupy.cuda.malloc_managed(size * size * np.dtype(dtype).itemsize)
        return cupy.ndarray((size, size), dtype, memory)

    def fill_from_host(array):
        bytes_ = (ctypes.c_char * array.nbytes).from_address(array.data.ptr)
        host = np.frombuffer(bytes_, array.dtype)
        host[:] = random.random(array.size, np.float32).astype(array.dtype)

    def call(handle, A, B, C):
        cublas.gemmEx(
            handle, 0, 0, size, size, size, scalars.ctypes.data, B.data.ptr, 2, size,
            A.data.ptr, 2, size, scalars.ctypes.data + 4, C.data.ptr, 0, size, 68, -1,
        )  # fmt: skip

    def stopwatch(work) -> float:
        cupy.cuda.get_current_stream().synchronize()
        start = time.perf_counter()
        work()
        cupy.cuda.get_current_stream().synchronize()
        return 1e3 * (time.perf_counter() - start)

    A, B, C = managed(np.float16), managed(np.float16), managed(np.float32)
    for array in (A, B, C):
        fill_from_host(array)
    handles = []
    handle_ms = stopwatch(lambda: handles.append(cublas.create()))
    first_ms = stopwatch(lambda: call(handles[0], A, B, C))
    second_ms = stopwatch(lambda: call(handles[0], A, B, C))

    A, B, C = cupy.array(A), cupy.array(B), cupy.empty_like(C)
    times = [elapsed(lambda: call(handles[0], A, B, C)) for _ in range(3 + CALLS)]
    cublas.destroy(handles[0])
    fair_ms = float(np.median(times[3:]))
    return FirstCall(gpu().name, size, handle_ms, first_ms, second_ms, fair_ms)


if __name__ == "__main__":
    print(json.dumps(asdict(_measure_here(int(sys.argv[1])))))
