"""How every time in this book is taken.

Device events around groups of launches, after a warm-up; random inputs, never zeros; several sets
of matrices used in turn, together more than twice L2, so that no launch finds its inputs there; at
least 20 samples, of which the median counts; competitors (a rung and cuBLAS) taking turns in the
same run. A group is as many launches as fill a fifth of a
millisecond, queued without waiting, so that launch overhead does not count.

Samples come in bursts of some tens of milliseconds with pauses between them. A tensor-core kernel
that runs for longer takes an H100 to its power limit, and the clock, from 1.98 GHz down to 1.4:
then what is measured is the power that an operation costs, of the library as of ours. For the same
reason a burst is of one competitor alone: what runs right after cuBLAS pays for cuBLAS's watts.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernels import cublas
from kernels.accuracy import accuracy
from kernels.errors import UnsupportedGPU
from kernels.gemm import Plan, plan
from kernels.launch import prepare_on_gpu
from kernels.machine import gpu
from kernels.rungs import Rung, Types, find

SAMPLES = 25
FEWEST_SAMPLES = 5  # of which a median is still taken, on a GPU that is slow
GROUP_MS = 0.2
WARM_UP_MS = 10.0
MOST_IN_A_GROUP, MOST_WARM_UPS = 200, 2000  # launches, however short
BURST_MS = 20.0
PAUSE_S = 0.1
METHOD = (
    "device events around groups of launches filling at least 0.2 ms, queued without waiting, in bursts of about 20 ms "
    "after a pause of 0.1 s (too short for the power limit), each of one kernel alone, the first launch of a burst not "
    "counted, 10 ms of warm-up before the first; uniform random inputs in [-1, 1), matrices rotated over more than "
    "twice L2, median of 25 samples, cuBLAS taking turns with the rung in the same run with the same input, "
    "accumulator and output types; alpha 1, beta 0; padding and allocation not timed; tunable rungs at the setting "
    "that `tune` found best for the size class"
)

Launch = Callable[[], None]


@dataclass(frozen=True)
class Timing:
    """Time of one launch in ms, one value per sample."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    def tflops(self, M: int, N: int, K: int) -> float:
        """TFLOP/s at the median: 2 M N K operations."""
        return 2e-9 * M * N * K / self.median


def measure(
    competitors: Mapping[str, Sequence[Launch]], samples: int = SAMPLES, pause_s: float = PAUSE_S
) -> dict[str, Timing]:
    """Time launches on the GPU, in bursts after pauses. Each competitor gives the same launch on
    several sets of matrices, used in turn.
    """
    import cupy

    cupy.cuda.get_current_stream().synchronize()
    time.sleep(pause_s)
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    repeats, round_ms = {}, {}
    for name, launches in competitors.items():
        launches[0]()
        estimate = _estimate(launches, start, end)
        for i in range(min(MOST_WARM_UPS, math.ceil(WARM_UP_MS / len(competitors) / estimate))):
            launches[i % len(launches)]()
        estimate = _estimate(launches, start, end)
        repeats[name] = min(MOST_IN_A_GROUP, max(1, math.ceil(GROUP_MS / estimate)))
        round_ms[name] = estimate * repeats[name]

    events: dict[str, list] = {name: [] for name in competitors}
    for name, count in _turns(round_ms, samples):
        launches = competitors[name]
        cupy.cuda.get_current_stream().synchronize()
        time.sleep(pause_s)
        launches[0]()  # the clock wakes up before the first event
        for sample in range(len(events[name]), len(events[name]) + count):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            for i in range(repeats[name]):
                launches[(sample * repeats[name] + i) % len(launches)]()
            end.record()
            events[name].append((start, end))
    cupy.cuda.get_current_stream().synchronize()
    return {
        name: Timing(tuple(cupy.cuda.get_elapsed_time(*pair) / repeats[name] for pair in pairs))
        for name, pairs in events.items()
    }


def _turns(sample_ms: Mapping[str, float], samples: int) -> list[tuple[str, int]]:
    """Whose burst is next and of how many samples, such that all competitors come along alike."""
    turns = []
    for name, ms in sample_ms.items():
        burst = max(1, round(BURST_MS / ms))
        turns += [(first, name, min(burst, samples - first)) for first in range(0, samples, burst)]
    return [(name, count) for _, name, count in sorted(turns, key=lambda turn: turn[0])]


def _estimate(launches: Sequence[Launch], start, end) -> float:
    """Rough time of one launch in ms."""
    import cupy

    start.record()
    for launch in launches[:3]:
        launch()
    end.record()
    end.synchronize()
    return max(1e-3, cupy.cuda.get_elapsed_time(start, end) / len(launches[:3]))


def matrices(
    types: Types, shapes: Sequence[tuple[int, int]], sets: int | None = None, seed: int = 0
) -> list[tuple]:
    """Sets of random (A, B, C) on the GPU, as many as exceed twice L2 together (at least 2)."""
    import cupy

    dtypes = (types.input_dtype, types.input_dtype, types.output_dtype)
    size = sum(
        rows * cols * (2 if d == "float16" else 4)
        for (rows, cols), d in zip(shapes, dtypes, strict=True)
    )
    if sets is None:
        free = cupy.cuda.runtime.memGetInfo()[0]
        wanted = max(2, math.ceil(2 * gpu().l2_bytes / size) + 1)
        sets = max(1, min(wanted, int(0.4 * free / size)))
    rng = cupy.random.default_rng(seed)
    return [
        tuple(
            (2 * rng.random(shape, dtype=cupy.float32) - 1).astype(dtype)
            for shape, dtype in zip(shapes, dtypes, strict=True)
        )
        for _ in range(sets)
    ]


def cublas_launches(sets: Sequence[tuple], inputs: str, a_major: str = "K") -> list[Launch]:
    """cuBLAS on each set of matrices."""
    return [cublas.call(A, B, C, inputs=inputs, a_major=a_major) for A, B, C in sets]


def rung_launches(how: Plan, sets: Sequence[tuple]) -> list[Launch]:
    """A rung on each set of matrices, which have the plan's padded shapes."""
    return [
        prepare_on_gpu(
            how.build,
            how.rung.entry,
            how.grid,
            how.block,
            how.arguments(A, B, C, 1.0, 0.0),
            how.shared_bytes,
        )
        for A, B, C in sets
    ]


def time_rung(
    rung: str | Rung,
    M: int,
    N: int,
    K: int,
    macros: Mapping[str, int] | None = None,
    samples: int = SAMPLES,
    types: Types | None = None,
    limit_s: float = 20.0,
) -> dict:
    """One row of `results/`: this rung against cuBLAS at one size, on this machine's GPU.

    `types` is for the rung `cublas` alone, whose formats are the caller's choice. UnsupportedGPU
    when the GPU is absent or cannot run the rung. A slow GPU takes fewer samples, as many as `limit_s`
    seconds hold; TimeoutError when that is fewer than 5.
    """
    if gpu() is None:
        raise UnsupportedGPU("timing needs an NVIDIA GPU and CuPy")
    rung = find(rung)
    if rung.machine == "cpu":
        return _time_cpu(M, N, K)
    if rung.name == "cublas":
        types = types or Types()
        sets = matrices(types, ((M, K), (K, N), (M, N)))
        timing = measure({"cublas": cublas_launches(sets, types.inputs)}, samples)["cublas"]
        return _row(rung, (M, N, K), types, timing, timing, _error(sets[0], types, "K"), {})
    how = plan(rung, M, N, K, macros)
    types = how.types
    sets = matrices(types, how.shapes())
    launches = rung_launches(how, sets)
    samples = _affordable(_seconds(launches[0]), samples, limit_s)
    competitors = {
        "rung": launches,
        "cublas": cublas_launches(sets, types.inputs, rung.a_major),
    }
    # cuBLAS last used the matrices; run the rung once more before its result is read.
    timings = measure(competitors, samples)
    sets[0][2].fill(float("nan"))
    launches[0]()
    error = _error(sets[0], types, rung.a_major)
    return _row(rung, (M, N, K), types, timings["rung"], timings["cublas"], error, dict(how.macros))


def _seconds(launch: Launch) -> float:
    """How long one launch takes, after one that warms up."""
    import cupy

    launch()
    cupy.cuda.get_current_stream().synchronize()
    start = time.perf_counter()
    launch()
    cupy.cuda.get_current_stream().synchronize()
    return time.perf_counter() - start


def _affordable(seconds: float, samples: int, limit_s: float) -> int:
    """How many samples of a launch of that many seconds fit into the limit, at most `samples`."""
    fit = min(samples, int(limit_s / seconds))
    if fit < min(samples, FEWEST_SAMPLES):
        raise TimeoutError(
            f"one launch takes {seconds:.2g} s: {min(samples, FEWEST_SAMPLES)} samples exceed {limit_s:.0f} s"
        )
    return fit


def _error(matrices: tuple, types: Types, a_major: str) -> float | None:
    """Largest error over (|A||B|)_ij against float64; None where memory is short."""
    import cupy

    A, B, C = matrices
    if a_major == "M":
        A = A.T
    wide = 8 * (A.size + B.size + C.size)
    if cupy.cuda.runtime.memGetInfo()[0] < 6 * wide:
        return None
    return accuracy(C, A, B, None, 1.0, 0.0, types).relative


def _row(rung: Rung, size, types: Types, timing: Timing, library: Timing, error, config) -> dict:
    M, N, K = size
    return {
        "rung": rung.name,
        "m": M,
        "n": N,
        "k": K,
        "inputs": types.inputs,
        "accumulator": types.accumulator,
        "output": types.output,
        "ms_median": round(timing.median, 6),
        "ms_min": round(min(timing.samples), 6),
        "ms_max": round(max(timing.samples), 6),
        "tflops": round(timing.tflops(M, N, K), 4),
        "cublas_ms": round(library.median, 6),
        "ratio_to_cublas": round(library.median / timing.median, 5),
        "relative_error": error,
        "config": config,
    }


def _time_cpu(M: int, N: int, K: int, samples: int = 5) -> dict:
    """NumPy's BLAS on this machine's cores, wall time."""
    import os

    from kernels import cpu
    from kernels.check import random_inputs

    A, B, _ = random_inputs(Types(), M, N, K)
    taken = []
    for _ in range(samples + 1):
        start = time.perf_counter()
        result = cpu.blas(A, B)
        taken.append(1e3 * (time.perf_counter() - start))
    timing = Timing(tuple(taken[1:]))
    error = accuracy(result, A, B, None, 1.0, 0.0, Types()).relative
    row = _row(
        find("cpu"),
        (M, N, K),
        Types(),
        timing,
        timing,
        error,
        {"way": "blas", "cores": os.cpu_count()},
    )
    return {**row, "cublas_ms": None, "ratio_to_cublas": None}
