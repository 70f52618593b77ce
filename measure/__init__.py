"""Times, tunes, profiles and records the kernels; `results/` holds what was recorded.

`bench` times rungs beside cuBLAS, or shows recorded rows where there is no GPU; `recorded` gives a
recording; `tune` searches a rung's settings; `compare` sets the emulator's counts beside those of
Nsight Compute. `python -m measure` does the same, and the rest, from a shell.
"""

from .bench import bench
from .compare import compare
from .results import recorded, recordings
from .row import time_rung
from .tune import tune

__all__ = ["bench", "compare", "recorded", "recordings", "time_rung", "tune"]
