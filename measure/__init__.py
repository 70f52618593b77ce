"""Times, tunes, profiles and records the kernels; `results/` holds what was recorded.

`time` times any callables beside each other, on `matrices` that rotate; `bench` times rungs beside
cuBLAS, or shows recorded rows where there is no GPU; `recorded` gives a recording; `tune` searches a
rung's settings; `compare` sets the emulator's counts beside those of Nsight Compute. `python -m measure`
does the same, and the rest, from a shell.
"""

from .bench import bench
from .callables import time
from .compare import compare
from .results import recorded, recordings
from .row import time_rung
from .timing import matrices
from .tune import tune

__all__ = [
    "bench",
    "compare",
    "matrices",
    "recorded",
    "recordings",
    "time",
    "time_rung",
    "tune",
]
