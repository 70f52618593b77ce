"""PyTorch's matrix product beside cuBLAS called directly and beside a rung: three callers, one clock.

`python -m measure torch`, on a GPU with PyTorch, measures and stores `results/torch-<gpu>.json`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from kernels.errors import UnsupportedGPU
from kernels.gemm import plan
from kernels.gpus import gpu, live

from .provenance import label_here, store
from .timing import METHOD, Launch, cublas_launches, matrices, measure, rung_launches

RUNG = "mma_multistage"
SETTING = {"HALF_OUTPUT": 1}  # what torch.mm gives for float16: float16


def available(*packages: str) -> bool:
    """Whether there is a GPU to measure on, a PyTorch that can use it, and these packages too."""
    if live() is None or not all(map(importlib.util.find_spec, ("torch", *packages))):
        return False
    import torch

    return torch.cuda.is_available()


def torch_launches(sets: Sequence[tuple]) -> list[Launch]:
    """`torch.mm` into C on each set of matrices, which stay where they are."""
    import torch

    tensors = [tuple(torch.from_dlpack(matrix) for matrix in one) for one in sets]
    return [lambda a=a, b=b, c=c: torch.mm(a, b, out=c) for a, b, c in tensors]


def _tflops(size: int) -> dict[str, float]:
    how = plan(RUNG, size, size, size, SETTING)
    sets = matrices(how.types, how.shapes())
    timings = measure(
        {
            RUNG: rung_launches(how, sets),
            "cublas": cublas_launches(sets, how.types),
            "torch.mm": torch_launches(sets),
        }
    )
    return {name: round(timing.tflops(size, size, size), 1) for name, timing in timings.items()}


def record(size: int = 4096) -> Path:
    """Measure and store. UnsupportedGPU without a GPU or without PyTorch."""
    if not available():
        raise UnsupportedGPU("this needs a GPU and a PyTorch that can use it")
    import torch

    return store(
        f"torch-{gpu().slug}",
        METHOD,
        label=label_here(f"PyTorch {torch.__version__}"),
        size=size,
        tflops=_tflops(size),
    )
