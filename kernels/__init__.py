"""The ladder's CUDA kernels, and what it takes to build, launch and check one.

`RUNGS` lists them. `build` compiles one without a GPU; `gemm` runs one, on a GPU or on the
emulator; `check` says whether it is right; `source` and `diff` show the code. `python -m kernels`
does the same from a shell. How fast a kernel is, and why, is the matter of `measure`.
"""

from .accuracy import accuracy
from .build import Build, Report, build
from .check import check, random_inputs
from .cpu import strassen, threads, triple_loop
from .errors import BuildError, UnsupportedGPU
from .gemm import Result, gemm, plan
from .gpus import PEAKS, gpu, peak
from .launch import launch
from .occupancy import occupancy
from .rung import Rung, Types
from .rungs import RUNGS, find
from .settings import configuration
from .source import diff, source

__all__ = [
    "PEAKS",
    "RUNGS",
    "Build",
    "BuildError",
    "Report",
    "Result",
    "Rung",
    "Types",
    "UnsupportedGPU",
    "accuracy",
    "build",
    "check",
    "configuration",
    "diff",
    "find",
    "gemm",
    "gpu",
    "launch",
    "occupancy",
    "peak",
    "plan",
    "random_inputs",
    "source",
    "strassen",
    "threads",
    "triple_loop",
]
