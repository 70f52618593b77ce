"""The ladder's CUDA kernels, and what it takes to build, launch, check and time one.

`RUNGS` lists them. `build` compiles one without a GPU; `gemm` runs one, on a GPU or on the
emulator; `check` says whether it is right, `bench` how fast; `recorded` gives measurements made
elsewhere; `source` and `diff` show the code. `python -m kernels` does the same from a shell.
"""

from .accuracy import accuracy
from .bench import bench
from .build import Build, Report, build
from .check import check, random_inputs
from .compare import compare
from .cpu import strassen, threads, triple_loop
from .errors import BuildError, UnsupportedGPU
from .gemm import Result, gemm, plan
from .launch import launch
from .machine import PEAKS, gpu, peak
from .occupancy import occupancy
from .results import recorded, recordings
from .rungs import RUNGS, Rung, Types, find
from .source import diff, source
from .timing import measure, time_rung
from .tune import tune

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
    "bench",
    "build",
    "check",
    "compare",
    "diff",
    "find",
    "gemm",
    "gpu",
    "launch",
    "measure",
    "occupancy",
    "peak",
    "plan",
    "random_inputs",
    "recorded",
    "recordings",
    "source",
    "strassen",
    "threads",
    "time_rung",
    "triple_loop",
    "tune",
]
