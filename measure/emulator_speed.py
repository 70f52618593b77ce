"""How fast the emulator is, beside Numba's CUDA simulator: `python -m measure emulator-speed` stores it."""

import json
import platform
from importlib.metadata import version
from pathlib import Path

from emulator import bench

from .provenance import FOLDER, store

SPEED = FOLDER / "emulator-speed.json"


def record(size: int = 256) -> Path:
    """Measure, and write `results/emulator-speed.json`. ModuleNotFoundError without Numba: there is no ratio then."""
    slow = bench.numba_rate()
    if slow is None:
        raise ModuleNotFoundError("the ratio needs Numba: pip install numba")
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    names = [line.split(":")[1] for line in lines if line.startswith("model name")]
    cpu = " ".join((names or [platform.machine()])[0].split())
    return store(
        SPEED,
        "emulator.bench: the best of 3 launches, decoding of the PTX included; "
        "Numba's CUDA simulator on the naive kernel at 32 x 32 x 32, the best of 4",
        {"cpu": f"{cpu}, one core"},
        versions={
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "numba": version("numba"),
        },
        size=size,
        kernels=[
            {
                "name": one.name,
                "seconds": round(one.seconds, 4),
                "multiply_adds_per_second": round(one.rate),
            }
            for one in bench.measure(size)
        ],
        numba={"size": 32, "multiply_adds_per_second": round(slow)},
    )


def stored() -> dict:
    """What `record` wrote. FileNotFoundError where nothing was recorded."""
    return json.loads(SPEED.read_text(encoding="utf-8"))
