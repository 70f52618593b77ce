"""A layer of a neural network by one kernel: gelu(x @ w + bias), batched, on views with any row pitch.

The kernel is `mma_multistage` with another epilogue: `source` makes the changes, eight of them, and fails where
the rung no longer has what they replace. The rung itself stays as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .build import Build, build, normal_arch
from .gemm import arch_on_emulator
from .gpus import choose
from .launch import launch, prepare_on_gpu
from .rungs import find
from .settings import configuration

RUNG = "mma_multistage"
WHOLE = 8  # elements of 16 bytes: what pitches and places of rows are multiples of
CHANGES = (
    ('#include "epilogue.cuh"', '#include "bias_gelu.cuh"'),
    (
        "int K, float alpha, float beta) {",
        "int K, const half* __restrict__ bias, half* __restrict__ before, int lda, int ldb, int ldc, long long a_batch,\n"
        "                        long long b_batch, long long c_batch) {\n"
        "    A += blockIdx.y * a_batch;  // one product per row of the grid\n"
        "    B += blockIdx.y * b_batch;\n"
        "    C += blockIdx.y * c_batch;\n"
        "    if (before) before += blockIdx.y * c_batch;",
    ),
    ("size_t(BK) * N", "size_t(BK) * ldb"),
    ("size_t(row + a_row) * K + a_col", "size_t(row + a_row) * lda + a_col"),
    ("size_t(b_row) * N + col + b_col", "size_t(b_row) * ldb + col + b_col"),
    ("rows_below(a_source, row, K)", "rows_below(a_source, row, lda)"),
    ("rows_below(b_source, row, N)", "rows_below(b_source, row, ldb)"),
    (
        "store_atoms(C, M, N, row + warp_row + m * 16, col + warp_col + n * 8, acc[m][n], acc[m][n + 1], alpha,\n"
        "                            beta);",
        "store_bias_gelu(C, before, bias, M, N, ldc, row + warp_row + m * 16, col + warp_col + n * 8, acc[m][n],\n"
        "                                acc[m][n + 1]);",
    ),
)


@dataclass(frozen=True)
class Linear:
    """What `linear` gives. y: gelu(x @ w + bias); before: the argument of gelu, if asked for."""

    y: Any = field(repr=False)
    before: Any = field(repr=False, default=None)
    trace: Any = field(repr=False, default=None)
    build: Build | None = None


def source() -> str:
    """The rung's text with the fused epilogue. ValueError where a change finds nothing to replace."""
    text = find(RUNG).path.read_text(encoding="utf-8")
    for old, new in CHANGES:
        if text.count(old) != 1:
            raise ValueError(f"{RUNG} has {text.count(old)} times what should be there once: {old}")
        text = text.replace(old, new)
    return text.replace("gemm_mma_multistage", "linear_bias_gelu")


def linear(
    x,
    w,
    bias=None,
    gelu: bool = True,
    keep: bool = False,
    machine: str = "auto",
    macros: Mapping[str, int] | None = None,
    arch: int | str | None = None,
) -> Linear:
    """gelu(x @ w + bias) in float16, with sums in float32.

    x: (M, K) or (batch, M, K); w: (K, N), or (batch, K, N) for a w per product; bias: (N,) or None. NumPy or CuPy
    arrays, which may be views: elements of a row lie side by side, rows anywhere at multiples of 16 bytes; what does
    not is copied. K and N are multiples of 8. keep: also return x @ w + bias, for a backward pass. On a GPU the
    result is a CuPy array, and the call does not wait.
    """
    machine = "gpu" if hasattr(x, "__cuda_array_interface__") else choose(machine)
    ready = _ready(x, w, bias, gelu, keep, machine, macros, arch)
    trace = None
    if machine == "emulator":
        trace = launch(*ready.how, machine)
    else:
        prepare_on_gpu(*ready.how)()  # in CuPy's current stream, without waiting
    shape = (*x.shape[:-1], w.shape[-1])
    before = None if ready.before is None else ready.before.reshape(shape)
    return Linear(ready.y.reshape(shape), before, trace, ready.how[0])


def prepared(x, w, bias=None, gelu: bool = True):
    """A function that launches the kernel on these CuPy arrays and returns at once: for timing."""
    ready = _ready(x, w, bias, gelu, False, "gpu", None, None)
    return prepare_on_gpu(*ready.how)


@dataclass(frozen=True)
class _Ready:
    """One launch: what `launch` takes, and where the results are."""

    how: tuple
    y: Any
    before: Any


def _ready(x, w, bias, gelu, keep, machine, macros, arch) -> _Ready:
    batch, M, N, K = _check(x, w, bias)
    arch = normal_arch(arch_on_emulator(RUNG, arch) if machine == "emulator" else arch)
    chosen = configuration(RUNG, (M, N, K), arch, macros)
    values = {**chosen.macros, "HALF_OUTPUT": 1}
    grid, block, shared_bytes = find(RUNG).geometry(values, M, N, K)
    built = build(source(), {**values, "GELU": int(gelu)}, arch, "linear_bias_gelu.cu")
    xp = np
    if machine == "gpu":
        import cupy as xp

        x, w = xp.asarray(x), xp.asarray(w)
        bias = None if bias is None else xp.asarray(bias)
    y = xp.empty((batch, M, N), np.float16)
    before = xp.empty_like(y) if keep else None
    a, a_pitch, a_step = _flat(xp, x)
    b, b_pitch, b_step = _flat(xp, w)
    null = np.uint64(0)
    args = [a, b, y, *map(np.int32, (M, N, K))]
    args += [null if bias is None else xp.ascontiguousarray(bias)]
    args += [null if before is None else before]
    args += [*map(np.int32, (a_pitch, b_pitch, N)), *map(np.int64, (a_step, b_step, M * N))]
    return _Ready((built, None, (grid[0], batch), block, args, shared_bytes), y, before)


def _check(x, w, bias) -> tuple[int, int, int, int]:
    """batch, M, N, K. ValueError or TypeError says what is wrong and what would be right."""
    for name, array in (("x", x), ("w", w), ("bias", bias)):
        if array is not None and array.dtype != np.float16:
            raise TypeError(f"{name} is {array.dtype}; it has to be float16")
    if x.ndim not in (2, 3) or w.ndim not in (2, x.ndim) or x.shape[-1] != w.shape[-2]:
        raise ValueError(
            f"x {tuple(x.shape)} @ w {tuple(w.shape)}: (M, K) or (batch, M, K), and (K, N) or the same batch"
        )
    if w.ndim == 3 and w.shape[0] != x.shape[0]:
        raise ValueError(f"x has a batch of {x.shape[0]}, w of {w.shape[0]}")
    K, N = w.shape[-2:]
    if K % WHOLE or N % WHOLE or 0 in (*x.shape, *w.shape):
        raise ValueError(f"K = {K} and N = {N} have to be multiples of {WHOLE}, and no extent 0")
    if bias is not None and bias.shape != (N,):
        raise ValueError(f"bias has shape {tuple(bias.shape)}; ({N},) is wanted")
    return (x.shape[0] if x.ndim == 3 else 1), x.shape[-2], N, K


def _flat(xp, array):
    """The memory of a matrix or a batch of them as one row, its pitch and the step of the batch, in elements."""
    size = array.dtype.itemsize
    steps = [stride // size for stride in array.strides]
    pitch, step = steps[-2], steps[0] if array.ndim == 3 else 0
    fits = steps[-1] == 1 and pitch >= array.shape[-1] and step >= 0
    start = array.data.ptr if xp is not np else array.__array_interface__["data"][0]
    if not fits or pitch % WHOLE or step % WHOLE or start % 16:
        return _flat(xp, xp.array(array, order="C", copy=True))
    extent = (array.shape[-2] - 1) * pitch + array.shape[-1]
    extent += (array.shape[0] - 1) * step if array.ndim == 3 else 0
    if xp is np:
        row = np.lib.stride_tricks.as_strided(array, (extent,), (size,))
    else:
        row = xp.ndarray((extent,), array.dtype, memptr=array.data)
    return row, pitch, step
