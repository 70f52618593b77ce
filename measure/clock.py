"""The clock that a kernel really ran at, what it does when it runs for seconds, and a gate for launches
that are shorter than the processor takes to ask for them.

The driver's own number lags and is read when the kernel has ended. So a mark (`cuda/clock.cu`) goes into the
same stream before and after the launches that count: each multiprocessor's `clock64` and the GPU's
`globaltimer`. Nothing stands beside the kernel, where it would take the place of a block.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from kernels.build import build
from kernels.gpus import clocks, gpu
from kernels.launch import prepare_on_gpu

SOURCE = Path(__file__).with_name("cuda") / "clock.cu"
BURST_MS = 20.0
REST_S = 0.1
SKIPPED, WATCHED = 0.2, 0.6  # of a burst's launches: before, and between the marks
QUEUED_MS = 50.0  # launches that are queued at a time in a long run
LOOK_S = 0.25  # between two looks at the power
MOST_SMS = 1024  # rows of a mark

Launch = Callable[[], None]


@dataclass(frozen=True)
class Sustained:
    """The last half of a long run: ms per launch, the clock seen, and the highest power that
    nvidia-smi reported meanwhile (None without it).
    """

    ms: float
    ghz: float
    watts: float | None


def seen(launches: Sequence[Launch], ms: float, burst_ms: float = BURST_MS) -> float:
    """GHz during a burst of these launches of about `ms` each, after a rest as in `measure.timing`."""
    import cupy

    cupy.cuda.get_current_stream().synchronize()
    time.sleep(REST_S)
    count = max(3, math.ceil(burst_ms / ms))
    first = max(1, int(SKIPPED * count))
    last = min(count - 1, first + max(1, int(WATCHED * count)))
    marks = {}
    for number in range(count):
        if number in (first, last):
            marks[number] = mark()
        launches[number % len(launches)]()
    cupy.cuda.get_current_stream().synchronize()
    return ghz(marks[first], marks[last])


def sustain(launches: Sequence[Launch], ms: float, seconds: float = 2.0) -> Sustained:
    """These launches back to back for `seconds`, of which the last half counts."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    stream.synchronize()
    time.sleep(REST_S)
    batch = max(1, math.ceil(QUEUED_MS / ms))
    with watching(LOOK_S) as watts:
        events, marks = [_event()], [mark()]
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            for number in range(batch):
                launches[number % len(launches)]()
            events.append(_event())
            marks.append(mark())
            events[-2].synchronize()  # one batch runs while the next is queued
        stream.synchronize()
    half = len(events) // 2 if len(events) > 3 else 0
    each = cupy.cuda.get_elapsed_time(events[half], events[-1]) / (batch * (len(events) - 1 - half))
    highest = max(watts[len(watts) // 2 :], default=None)
    return Sustained(each, ghz(marks[half], marks[-1]), highest)


@contextmanager
def watching(pause_s: float) -> Iterator[list[float]]:
    """The watts that nvidia-smi reports meanwhile, a look every `pause_s` seconds."""
    watts: list[float] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(pause_s):
            if power := clocks().get("power.draw"):
                watts.append(float(power))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield watts
    finally:
        ended.set()
        watcher.join()


def mark():
    """Every multiprocessor's clocks and the nanoseconds, when the launches before have ended: a CuPy array of
    (MOST_SMS, 2), zero where no block came.
    """
    import cupy

    passed = cupy.zeros((MOST_SMS, 2), np.int64)
    _kernel("clock_mark", gpu().sms)(passed)
    return passed


def ghz(before, after) -> float:
    """The frequency between two marks: the median of the multiprocessors that both marks came to."""
    before, after = before.get(), after.get()
    both = (before[:, 1] > 0) & (after[:, 1] > 0)
    if not both.any():
        raise RuntimeError("no multiprocessor was seen by both marks")
    passed = (after - before)[both]
    return round(statistics.median((passed[:, 0] / passed[:, 1]).tolist()), 4)


def elapsed(work: Callable[[], object]) -> float:
    """ms that what `work` queues takes on the GPU."""
    import cupy

    start = _event()
    work()
    end = _event()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end)


def hold_back(microseconds: float) -> None:
    """Holds the current stream for so long, while the launches that come next are queued."""
    _kernel("hold_back", 1)(np.int64(1e3 * microseconds))


@lru_cache
def _built():
    return build(SOURCE, arch=gpu().arch)


def _kernel(entry: str, blocks: int) -> Callable:
    """A function that launches this kernel of `cuda/clock.cu` on one argument."""
    return lambda argument: prepare_on_gpu(_built(), entry, blocks, 32, [argument])()


def _event():
    import cupy

    event = cupy.cuda.Event()
    event.record()
    return event
