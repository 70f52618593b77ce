"""The ladder's CUDA kernels, and what it takes to build, launch, check and time one.

`RUNGS` lists them. `build` compiles one without a GPU; `gemm` runs one, on a GPU or on the emulator.
"""

from .build import Build, Report, build
from .errors import BuildError, UnsupportedGPU
from .machine import gpu
from .rungs import RUNGS, Rung, find

__all__ = [
    "RUNGS",
    "Build",
    "BuildError",
    "Report",
    "Rung",
    "UnsupportedGPU",
    "build",
    "find",
    "gpu",
]
