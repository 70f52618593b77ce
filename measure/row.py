"""One row of `results/`: a rung at one size, against cuBLAS on the same problem, with the clock seen."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, MutableMapping, Sequence

import numpy as np

from kernels import cublas
from kernels.accuracy import accuracy
from kernels.errors import UnsupportedGPU
from kernels.gemm import Plan, plan
from kernels.gpus import needed
from kernels.rung import Rung, Types
from kernels.rungs import find
from kernels.settings import types_of

from . import clock
from .library import Library, timed
from .timing import (
    BURST_MS,
    PAUSE_S,
    SAMPLES,
    Launch,
    Timing,
    cublas_launches,
    matrices,
    measure,
    rung_launches,
)

CUBLAS_TYPES = tuple(
    Types(inputs, output=output)
    for inputs in ("float32", "tf32", "float16", "bfloat16")
    for output in ("float32", "float16", "bfloat16")
    if output in ("float32", inputs)
)
FEWEST_SAMPLES = 5  # of which a median is still taken, on a GPU that is slow
COPY_SAMPLES = 7  # of the times with padding or a transposed copy

Size = tuple[int, int, int]


def extents(size: int | Size) -> Size:
    """(M, N, K) of a size, which is the edge of square matrices or all three."""
    return (size, size, size) if isinstance(size, int) else tuple(size)


def choices(rung: str | Rung) -> Sequence[Types | Mapping[str, int]]:
    """What is timed of a rung, each with a row of its own: its macros for formats; of cuBLAS, types."""
    rung = find(rung)
    return CUBLAS_TYPES if rung.name == "cublas" else [macros for macros, _ in types_of(rung)]


def release() -> None:
    """Give the memory of one row's matrices back to the GPU, for a row of other sizes."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


def time_rung(
    rung: str | Rung,
    M: int,
    N: int,
    K: int,
    choice: Types | Mapping[str, int] | None = None,
    samples: int = SAMPLES,
    limit_s: float = 20.0,
    sustained_s: float = 0.0,
    library: MutableMapping | None = None,
    defaults: bool = False,
    patience_s: float = math.inf,
) -> dict:
    """This rung against cuBLAS at one size, on this machine's GPU, at the configuration that
    `kernels.settings` names, with the macros `choice` (and `defaults`) as there; of the rung `cublas`,
    whose formats are the caller's choice, with these types.

    With `sustained_s`
    the kernel also runs for so many seconds without a pause. `library` keeps cuBLAS's times between
    calls of one run. UnsupportedGPU when the GPU is absent or cannot run the rung. A slow GPU takes
    fewer samples, as many as `limit_s` seconds hold; TimeoutError when that is fewer than 5. Whoever waits for
    the row gives `patience_s`: what takes longer, pauses included, has as few as 5.
    """
    needed("timing")
    rung = find(rung)
    size = (M, N, K)
    if rung.machine == "cpu":
        return _time_cpu(*size)
    if rung.name == "cublas":
        return _time_cublas(rung, size, choice or Types(), samples, sustained_s, patience_s)
    how = plan(rung, M, N, K, choice, defaults=defaults)
    sets = matrices(how.types, how.shapes())
    launches = rung_launches(how, sets)
    seconds = _seconds(launches[0])
    samples = min(_affordable(seconds, samples, limit_s), _bearable(seconds, samples, patience_s))
    timing = measure({"rung": launches}, samples)["rung"]
    _poison(sets[0][2])  # what the kernel does not write is seen
    launches[0]()
    row = _row(rung, size, how.types, timing, how.macros, how.configuration.source)
    row |= _error(sets[0], how.types, rung)
    row |= _clocks(launches, timing, size, sustained_s)
    del launches
    row |= _with_copies(how, sets)
    del sets
    return row | _beside(timing, _library(rung, how.types, size, samples, library))


def _library(rung: Rung, types: Types, size: Size, samples: int, known) -> Library | None:
    """cuBLAS on this problem, measured once per run."""
    known = {} if known is None else known
    key = (types, size, rung.a_major, rung.b_major)
    if key not in known:
        known[key] = timed(types, size, (rung.a_major, rung.b_major), samples)
    return known[key]


def _time_cublas(
    rung: Rung, size: Size, types: Types, samples: int, sustained_s: float, patience_s: float
) -> dict:
    M, N, K = size
    if not cublas.takes(types):
        raise UnsupportedGPU(f"cuBLAS's gemmEx has no {types}")
    sets = matrices(types, ((M, K), (K, N), (M, N)))
    launches = cublas_launches(sets, types)
    samples = _bearable(_seconds(launches[0]), samples, patience_s)
    found = timed(types, size, samples=samples)
    row = _row(rung, size, types, found.asked, {}, "the library's own choice")
    row |= _error(sets[0], types, rung)
    row |= _clocks(launches, found.asked, size, sustained_s)
    return row | _beside(found.asked, found)


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
    fewest = min(samples, FEWEST_SAMPLES)
    if fit < fewest:
        raise TimeoutError(
            f"one launch takes {seconds:.2g} s: {fewest} samples exceed {limit_s:.0f} s"
        )
    return fit


def _bearable(seconds: float, samples: int, patience_s: float) -> int:
    """How many samples of such launches `measure.timing` takes in that time, at most `samples` and at least 5."""
    in_a_burst = max(1, round(BURST_MS / 1e3 / seconds))
    each = seconds + (PAUSE_S + seconds) / in_a_burst
    return min(samples, max(FEWEST_SAMPLES, int(min(samples, patience_s / each))))


def _clocks(launches: list[Launch], timing: Timing, size: Size, sustained_s: float) -> dict:
    """The clock seen in a burst, and what a long run comes to."""
    row = {"clock_ghz": clock.seen(launches, timing.median)}
    row |= dict.fromkeys(("sustained_tflops", "sustained_ghz", "sustained_watts"))
    if sustained_s:
        held = clock.sustain(launches, timing.median, sustained_s)
        row["sustained_tflops"] = round(Timing((held.ms,)).tflops(*size), 4)
        row["sustained_ghz"], row["sustained_watts"] = held.ghz, held.watts
    return row


def _with_copies(how: Plan, sets: list[tuple]) -> dict:
    """ms of a launch with the copies that its launcher makes for it: zero-padding A, B and C and
    cropping the result; transposing A or B. None where it needs none.
    """
    import cupy

    M, N, K = how.size
    A, B, C = (
        cupy.zeros(shape, x.dtype) for shape, x in zip(how.layout(M, N, K), sets[0], strict=True)
    )
    copies = {}
    if how.padded != how.size:
        copies["ms_with_padding"] = lambda: _padded(sets[0], (A, B, C))
    turned = [
        x
        for x, other in (
            (sets[0][0], how.rung.a_major == "M"),
            (sets[0][1], how.rung.b_major == "K"),
        )
        if other
    ]
    if turned:
        sources = [cupy.ascontiguousarray(x.T) for x in turned]
        copies["ms_with_transpose"] = lambda: [
            cupy.copyto(x, source.T) for x, source in zip(turned, sources, strict=True)
        ]
    launch = rung_launches(how, sets[:1])[0]
    row = {"ms_with_padding": None, "ms_with_transpose": None}
    for name, copy in copies.items():

        def both(copy=copy, name=name):
            copy()
            launch()
            if name == "ms_with_padding":
                cupy.copyto(C, sets[0][2][: C.shape[0], : C.shape[1]])

        row[name] = round(measure({"it": [both]}, COPY_SAMPLES)["it"].median, 6)
    return row


def _padded(padded: tuple, given: tuple) -> None:
    """Copies A, B and C into matrices of whole tiles whose rest is zero."""
    for wide, narrow in zip(padded, given, strict=True):
        wide.fill(0)
        wide[: narrow.shape[0], : narrow.shape[1]] = narrow


def _poison(C) -> None:
    """Fills C with NaN; of a format that NumPy lacks, with all bits set."""
    C.fill(np.iinfo(C.dtype).max if C.dtype.kind == "u" else np.nan)


def _error(matrices: tuple, types: Types, rung: Rung) -> dict:
    """The largest error over (|A||B|)_ij against float64, and over `kernels.accuracy`'s bound; None
    where memory is short. ValueError above the bound.
    """
    import cupy

    A, B, C = matrices
    A = A.T if rung.a_major == "M" else A
    B = B.T if rung.b_major == "K" else B
    if cupy.cuda.runtime.memGetInfo()[0] < 6 * 8 * (A.size + B.size + C.size):
        return {"relative_error": None, "of_bound": None}
    found = accuracy(C, A, B, None, 1.0, 0.0, types)
    if not found.of_bound <= 1:
        raise ValueError(f"{rung.name} is wrong, or wrote only a part of C: {found}")
    return {"relative_error": found.relative, "of_bound": round(found.of_bound, 3)}


def _row(
    rung: Rung, size: Size, types: Types, timing: Timing, config: Mapping, source: str
) -> dict:
    M, N, K = size
    return {
        "rung": rung.name,
        "m": M,
        "n": N,
        "k": K,
        "inputs": types.inputs,
        "accumulator": types.accumulator,
        "output": types.output,
        **timing.row(6),
        "tflops": round(timing.tflops(M, N, K), 4),
        "config": dict(config),
        "config_source": source,
    }


def _beside(timing: Timing, library: Library | None) -> dict:
    """cuBLAS's columns. `cublas_best_ms` and its layout are None where its best layout is the rung's."""
    row = dict.fromkeys(("cublas_ms", "ratio_to_cublas", "cublas_best_ms", "cublas_best_layout"))
    if library is None:
        return row
    row["cublas_ms"] = round(library.asked.median, 6)
    row["ratio_to_cublas"] = round(library.asked.median / timing.median, 5)
    if library.best is not library.asked:
        row["cublas_best_ms"] = round(library.best.median, 6)
        row["cublas_best_layout"] = "A {}-major, B {}-major".format(*library.best_layout)
    return row


def _time_cpu(M: int, N: int, K: int, samples: int = 5) -> dict:
    """NumPy's BLAS on this machine's cores, wall time."""
    from kernels import cpu
    from kernels.check import random_inputs

    A, B, _ = random_inputs(Types(), M, N, K)
    taken = []
    for _ in range(samples + 1):
        start = time.perf_counter()
        result = cpu.blas(A, B)
        taken.append(1e3 * (time.perf_counter() - start))
    config = {"way": "blas", "cores": os.cpu_count()}
    row = _row(find("cpu"), (M, N, K), Types(), Timing(tuple(taken[1:])), config, "NumPy's BLAS")
    found = accuracy(result, A, B, None, 1.0, 0.0, Types())
    row |= {"relative_error": found.relative, "of_bound": round(found.of_bound, 3)}
    return row | _beside(Timing(tuple(taken[1:])), None)
