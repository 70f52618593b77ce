"""The device: a T4 as Colab's, with a clock of its own that launches advance."""

import atexit
import functools
import os
import sys
import time

from . import device, runtime  # noqa: F401

now_ms = 0.0  # the device's clock
_waited_ms = 0.0
TIMERS = (
    "measure.timing",
    "measure.row",
    "measure.clock",
)  # they wait for the device, and look at the clock


class _Time:
    """The module `time` as a program sees it that waits for this device; nobody really waits."""

    passed = 0.0

    def __getattr__(self, name):
        return getattr(time, name)

    def perf_counter(self):
        return time.perf_counter() + _Time.passed

    def sleep(self, seconds):
        _Time.passed += seconds


@atexit.register
def _tell() -> None:
    """How long this process would have waited for the device, for whoever runs it."""
    if file := os.environ.get("STUB_T4_SECONDS"):
        with open(file, "a", encoding="utf-8") as told:
            told.write(f"{_Time.passed:.0f}\n")


def takes(ms: float) -> None:
    global now_ms
    now_ms += ms
    for name in TIMERS:
        if name in sys.modules:
            sys.modules[name].time = _Time()


def milliseconds(entry: str, size: list[int], threads: int) -> float:
    """How long a launch takes: the recorded rung's time, scaled to this size and to a T4's peak."""
    from kernels.rungs import RUNGS

    names = [name for name, rung in RUNGS.items() if rung.path and rung.entry == entry]
    if not names or len(size) != 3:
        return 0.005 + 2e-6 * threads
    return of_rung(names[0], tuple(size))


@functools.cache
def of_rung(name: str, size: tuple[int, int, int], inputs: str | None = None) -> float:
    from kernels.gpus import peak
    from measure.results import recorded

    there = recorded()
    M, N, K = size
    rows = [
        row for row in there.rows if row["rung"] == name and inputs in (None, row["inputs"])
    ]  # fmt: skip
    if not rows:
        return 0.005 + 2e-9 * M * N * K / 4.0
    row = min(rows, key=lambda one: abs(one["m"] * one["n"] * one["k"] - M * N * K))
    here, other = peak("Tesla T4"), there.peak
    kind = row["inputs"] if row["inputs"] in ("float32", "float16") else "float32"
    scale = other.tflops(kind) / here.tflops(kind)
    return row["ms_median"] * scale * M * N * K / (row["m"] * row["n"] * row["k"])


def _wait() -> None:
    global _waited_ms
    _Time.passed += (now_ms - _waited_ms) / 1e3
    _waited_ms = now_ms


class Event:
    def __init__(self):
        self.at = None

    def record(self):
        self.at = now_ms

    def synchronize(self):
        _wait()


def get_elapsed_time(start: Event, end: Event) -> float:
    return end.at - start.at


class Stream:
    def __init__(self, non_blocking=False):
        pass

    def synchronize(self):
        _wait()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        return None


def get_current_stream():
    return Stream()


class Device:
    attributes = {"ClockRate": 1590000}  # noqa: RUF012

    def __init__(self, index=0):
        pass


def malloc_managed(size):
    return None
