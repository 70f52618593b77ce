"""How every time in this book is taken.

Device events around groups of launches, after a warm-up; random inputs, never zeros; several sets
of matrices used in turn, together more than twice L2, so that no launch finds its inputs there; at
least 20 samples, of which the median counts; competitors (a rung and cuBLAS) taking turns in the
same run. A group is as many launches as fill a fifth of a
millisecond, queued without waiting. Where a launch is shorter than the processor takes to ask for it,
the stream is held back until the whole group is queued, so that the processor's time does not count.

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

import numpy as np

from kernels import cublas
from kernels.formats import encode
from kernels.gemm import Plan
from kernels.gpus import gpu
from kernels.launch import prepare_on_gpu
from kernels.rung import Types

from .clock import elapsed, hold_back

SAMPLES = 25
GROUP_MS = 0.2
WARM_UP_MS = 10.0
MOST_IN_A_GROUP, MOST_WARM_UPS = 200, 2000  # launches, however short
SHORT_MS = 0.05  # a launch of less is queued before its group begins
QUEUEING_US = 20.0  # that a launch takes to queue, at most
BURST_MS = 20.0
PAUSE_S = 0.1
METHOD = (
    "device events around groups of launches filling at least 0.2 ms, queued without waiting (launches under 0.05 ms: "
    "the whole group queued before its first one begins), in bursts of about 20 ms after a pause of 0.1 s (too short "
    "for the power limit), each of one kernel alone, the first launch of a burst not counted, 10 ms of warm-up before "
    "the first; random inputs, normally distributed (int8: 42 times that, clipped), matrices rotated over more than "
    "twice L2, median of 25 samples; cuBLAS in the same run, once per size, types and layout, on the caller's sizes "
    "(never padded ones) in the rung's layout, and in its best layout where that is another; alpha 1, beta 0; "
    "allocation not timed; padding and transposed copies not in ms_median, but in ms_with_padding and "
    "ms_with_transpose; every rung at the configuration of results/settings.json for its size; clock_ghz from clock64 "
    "over globaltimer of every multiprocessor, read between the launches of a burst of its own; sustained columns: "
    "the last half of a run of 2 s without a pause, with its clock, and the highest power that nvidia-smi reported"
)

Launch = Callable[[], None]


@dataclass(frozen=True)
class Timing:
    """Time of one launch in ms, one value per sample."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    def row(self, digits: int) -> dict[str, float]:
        """The columns of a stored row."""
        ms = {"median": self.median, "min": min(self.samples), "max": max(self.samples)}
        return {f"ms_{name}": round(value, digits) for name, value in ms.items()}

    def tflops(self, M: int, N: int, K: int) -> float:
        """TFLOP/s at the median: 2 M N K operations."""
        return 2e-9 * M * N * K / self.median


def measure(
    competitors: Mapping[str, Sequence[Launch]],
    samples: int = SAMPLES,
    pause_s: float = PAUSE_S,
    warm_up_ms: float = WARM_UP_MS,
    group_ms: float = GROUP_MS,
) -> dict[str, Timing]:
    """Time launches on the GPU, in bursts after pauses. Each competitor gives the same launch on
    several sets of matrices, used in turn.
    """
    import cupy

    cupy.cuda.get_current_stream().synchronize()
    time.sleep(pause_s)
    repeats, round_ms, short = {}, {}, set()
    for name, launches in competitors.items():
        launches[0]()
        estimate = _estimate(launches)
        for i in range(min(MOST_WARM_UPS, math.ceil(warm_up_ms / len(competitors) / estimate))):
            launches[i % len(launches)]()
        estimate = _estimate(launches)
        repeats[name] = min(MOST_IN_A_GROUP, max(1, math.ceil(group_ms / estimate)))
        round_ms[name] = estimate * repeats[name]
        if estimate < SHORT_MS:
            short.add(name)

    events: dict[str, list] = {name: [] for name in competitors}
    for name, count in _turns(round_ms, samples):
        launches = competitors[name]
        cupy.cuda.get_current_stream().synchronize()
        time.sleep(pause_s)
        launches[0]()  # the clock wakes up before the first event
        for sample in range(len(events[name]), len(events[name]) + count):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            if name in short:
                hold_back(QUEUEING_US * (repeats[name] + 2))
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


def _estimate(launches: Sequence[Launch]) -> float:
    """Rough time of one launch in ms."""
    first = launches[:3]
    hold_back(QUEUEING_US * 5)
    return max(1e-3, elapsed(lambda: [launch() for launch in first]) / len(first))


def matrices(
    types: Types, shapes: Sequence[tuple[int, int]], sets: int | None = None, seed: int = 0
) -> list[tuple]:
    """Sets of random (A, B, C) on the GPU, normally distributed, as many as exceed twice L2 together (at least 2)."""
    import cupy

    dtypes = (types.input_dtype, types.input_dtype, types.output_dtype)
    formats = (types.inputs, types.inputs, types.output)
    size = sum(
        rows * cols * np.dtype(d).itemsize for (rows, cols), d in zip(shapes, dtypes, strict=True)
    )
    if sets is None:
        free = cupy.cuda.runtime.memGetInfo()[0]
        wanted = max(2, math.ceil(2 * gpu().l2_bytes / size) + 1)
        sets = max(1, min(wanted, int(0.4 * free / size)))
    rng = cupy.random.default_rng(seed)

    def random(shape: tuple[int, int], name: str):
        values = rng.standard_normal(shape, dtype=cupy.float32)
        return encode((values / 3).clip(-1, 1) if name == "int8" else values, name)

    return [
        tuple(random(shape, name) for shape, name in zip(shapes, formats, strict=True))
        for _ in range(sets)
    ]


def cublas_launches(
    sets: Sequence[tuple], types: Types, a_major: str = "K", b_major: str = "N"
) -> list[Launch]:
    """cuBLAS on each set of matrices."""
    return [cublas.call(A, B, C, 1.0, 0.0, types, a_major, b_major) for A, B, C in sets]


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
            how.rung.early,
            how.rung.together(**how.macros),
        )
        for A, B, C in sets
    ]
