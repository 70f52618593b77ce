"""Times a reader's kernel against a rung of the ladder. Only a GPU can tell."""

from __future__ import annotations

import numpy as np

import kernels
from kernels.launch import prepare_on_gpu
from measure.timing import rung_launches

from .exercise import Exercise


def race(exercise: Exercise, built: kernels.Build, gpu) -> tuple[bool, str]:
    """Whether it is faster than the rung, and both times in words. Without a GPU it is not judged."""
    against = exercise.race
    if gpu is None:
        return (
            True,
            f"no GPU here: on one, it must also beat `{against.rung}` at {against.size} cubed",
        )
    import cupy

    n = against.size
    A, B = (cupy.random.standard_normal((n, n), dtype=cupy.float32) for _ in range(2))
    C = cupy.empty((n, n), cupy.float32)
    tile, block = 64, exercise.cases(np.random.default_rng())[0].block
    sizes = (np.int32(n),) * 3
    mine = prepare_on_gpu(built, exercise.name, (n // tile, n // tile), block, (A, B, C, *sizes))
    how = kernels.plan(against.rung, n, n, n)
    (theirs,) = rung_launches(how, [(A, B, C)])
    mine_ms, theirs_ms = _median_ms(mine), _median_ms(theirs)
    told = f"{mine_ms:.2f} ms at {n} cubed on this {gpu.name}; `{against.rung}` takes {theirs_ms:.2f} ms"
    return mine_ms < theirs_ms, told


def _median_ms(run, repeats: int = 20) -> float:
    import cupy

    times = []
    for i in range(repeats + 3):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        run()
        stop.record()
        stop.synchronize()
        if i >= 3:
            times.append(cupy.cuda.get_elapsed_time(start, stop))
    return float(np.median(times))
