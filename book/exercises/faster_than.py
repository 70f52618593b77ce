"""Times a reader's kernel beside a rung of the ladder, by the book's method. Only a GPU can tell."""

import numpy as np

import kernels
from kernels.launch import prepare_on_gpu
from measure.timing import measure, rung_launches

from .exercise import Exercise


def faster_than(exercise: Exercise, built: kernels.Build, gpu) -> tuple[bool, str]:
    """Whether it is faster than the rung, and both times in words. Without a GPU it is not judged."""
    rung, n = exercise.faster_than
    if gpu is None:
        return True, f"no GPU here: on one, it must also beat `{rung}` at {n} cubed"
    import cupy

    A, B = (cupy.random.standard_normal((n, n), dtype=cupy.float32) for _ in range(2))
    C = cupy.empty((n, n), cupy.float32)
    tile, block = 64, exercise.cases(np.random.default_rng())[0].block
    sizes = (np.int32(n),) * 3
    mine = prepare_on_gpu(built, exercise.name, (n // tile, n // tile), block, (A, B, C, *sizes))
    theirs = rung_launches(kernels.plan(rung, n, n, n), [(A, B, C)])
    ms = {name: one.median for name, one in measure({"mine": [mine], rung: theirs}).items()}
    told = f"{ms['mine']:.2f} ms at {n} cubed on this {gpu.name}; `{rung}` takes {ms[rung]:.2f} ms"
    return ms["mine"] < ms[rung], told
