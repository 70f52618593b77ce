"""Times any callables by the book's method (`measure.timing`): a kernel of one's own beside cuBLAS, say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kernels.errors import UnsupportedGPU
from kernels.gpus import gpu
from kernels.table import table

from .timing import SAMPLES, Timing, measure

NOTHING_MS = 5e-4  # an empty kernel takes four times that
ONE_SET = "one set of arrays: the launches of a group may find theirs in L2"


@dataclass(frozen=True)
class Times:
    """What `time` found: a `Timing` by name, and how many sets of arrays the launches used in turn. Its text is a
    table: ms of one launch, the median and the extremes of the samples, and the time over the first one's.
    """

    timings: Mapping[str, Timing]
    sets: int
    gpu: str

    def __getitem__(self, name: str) -> Timing:
        return self.timings[name]

    def __str__(self) -> str:
        first = next(iter(self.timings))
        heads = ["", "median ms", "least", "most", "samples", f"over {first}"]
        rows = [
            [name, *(f"{ms:.4g}" for ms in (t.median, min(t.samples), max(t.samples))), len(t.samples),
             f"{t.median / self[first].median:.3f}"]
            for name, t in self.timings.items()
        ]  # fmt: skip
        rotation = f"{self.sets} sets of arrays in turn" if self.sets > 1 else ONE_SET
        return f"{self.gpu}; {rotation}\n{table(heads, rows)}"


def time(
    competitors: Mapping[str, Callable],
    sets: Sequence[Sequence] = ((),),
    samples: int = SAMPLES,
) -> Times:
    """Time callables side by side: warm-up, bursts of one of them alone after a rest, by turns, the median of
    `samples`. Each launches its work on CuPy's current stream (PyTorch's default stream is the same one).

    `sets` are sets of arrays, as `matrices` makes them: a callable is called with each set in turn, `fn(*set)`, so
    that L2 does not serve repeats. Without them a callable gets no arguments, and the result says that L2 may.
    UnsupportedGPU without a GPU; ValueError for what cannot be timed, and for a callable that launches nothing.
    """
    if not competitors:
        raise ValueError('no callable to time: give a dictionary, {"mine": fn}')
    for name, function in competitors.items():
        if not callable(function):
            raise ValueError(f"{name}: a function to call, not {function!r}")
    if not sets:
        raise ValueError(
            "no set of arrays to call with: leave `sets` out for functions that need none"
        )
    if samples < 1:
        raise ValueError(f"samples {samples}: a median is of at least 1")
    here = gpu()
    if here is None:
        raise UnsupportedGPU(
            "timing needs an NVIDIA GPU and CuPy; without one, measure.bench shows recorded times"
        )
    launches = {name: [partial(f, *one) for one in sets] for name, f in competitors.items()}
    timings = measure(launches, samples)
    for name, timing in timings.items():
        if timing.median < NOTHING_MS:
            raise ValueError(f"{name} launched nothing on CuPy's current stream: no time was taken")
    return Times(timings, len(sets), here.name)
