"""The clock that a kernel really ran at, and what it does when it runs for seconds.

The driver's own number lags and is read when the kernel has ended. So one sleeping warp
(`cuda/clock.cu`) stands beside the kernel in a stream of its own and reads `clock64` over
`globaltimer`. That run is one of its own, after the timed ones: the warp would take a place on one
multiprocessor.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernels.build import build
from kernels.launch import prepare_on_gpu
from kernels.machine import clocks, gpu

SOURCE = Path(__file__).with_name("cuda") / "clock.cu"
BURST_MS = 20.0
REST_S = 0.1
SKIPPED, WATCHED = 0.2, 0.6  # of a burst, before and while the clock is read
QUEUED_MS = 50.0  # launches that are queued at a time in a long run
LOOK_S = 0.25  # between two looks at the power

Launch = Callable[[], None]


@dataclass(frozen=True)
class Sustained:
    """The last half of a long run: ms per launch, the clock seen, and the highest power that
    nvidia-smi reported meanwhile (None without it).
    """

    ms: float
    ghz: float
    watts: float | None
    seconds: float


def seen(launches: Sequence[Launch], ms: float, burst_ms: float = BURST_MS) -> float:
    """GHz during a burst of these launches of about `ms` each, after a rest as in `measure.timing`."""
    import cupy

    cupy.cuda.get_current_stream().synchronize()
    time.sleep(REST_S)
    count = max(2, math.ceil(burst_ms / ms))
    read = _watch(SKIPPED * count * ms, WATCHED * count * ms)
    for number in range(count):
        launches[number % len(launches)]()
    cupy.cuda.get_current_stream().synchronize()
    return read()


def sustain(launches: Sequence[Launch], ms: float, seconds: float = 2.0) -> Sustained:
    """These launches back to back for `seconds`, of which the last half counts."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    stream.synchronize()
    time.sleep(REST_S)
    watts: list[float] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_S):
            if power := clocks().get("power.draw"):
                watts.append(float(power))

    watcher = threading.Thread(target=look)
    watcher.start()
    read = _watch(500 * seconds, 400 * seconds)
    batch = max(1, math.ceil(QUEUED_MS / ms))
    marks = [_mark()]
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for number in range(batch):
            launches[number % len(launches)]()
        marks.append(_mark())
        marks[-2].synchronize()  # one batch runs while the next is queued
    stream.synchronize()
    took = time.perf_counter() - start
    ghz = read()
    ended.set()
    watcher.join()
    late = marks[len(marks) // 2 :] if len(marks) > 3 else marks
    each = cupy.cuda.get_elapsed_time(late[0], late[-1]) / (batch * (len(late) - 1))
    return Sustained(each, ghz, max(watts[len(watts) // 2 :], default=None), took)


def _watch(skip_ms: float, span_ms: float) -> Callable[[], float]:
    """Starts the sleeping warp; what is returned waits for it and gives GHz."""
    import cupy

    passed = cupy.zeros((1, 2), np.int64)
    arguments = [passed, np.int64(1e6 * skip_ms), np.int64(1e6 * span_ms)]
    launch = prepare_on_gpu(build(SOURCE, arch=gpu().arch), "clock_seen", 1, 32, arguments)
    cupy.cuda.get_current_stream().synchronize()
    beside = cupy.cuda.Stream(non_blocking=True)
    with beside:
        launch()

    def read() -> float:
        beside.synchronize()
        count, nanoseconds = passed.get()[0]
        return round(float(count) / float(nanoseconds), 4)

    return read


def _mark():
    import cupy

    event = cupy.cuda.Event()
    event.record()
    return event
