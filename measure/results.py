"""Recorded measurements: `results/<gpu>.json`, one file per GPU, each with its provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from kernels.machine import Peak, peak

from .provenance import FOLDER

PREFERRED = "nvidia-h100"
OTHER = (
    "compare-",
    "first-call-",
    "limits-",
    "sanitizer-",
    "tune-",
)  # files that hold no times of rungs
# Measured with register-only loops on this card; what a kernel could reach if nothing but
# arithmetic took time.
CEILINGS = {"nvidia-h100-80gb-hbm3": {"float32": 56.0, "tf32": 332.0, "float16": 638.0}}


@dataclass(frozen=True)
class Recording:
    """One results file. `rows` are as `measure.timing.time_rung` gives them."""

    name: str
    machine: Mapping
    recorded: str
    commit: str
    method: str
    rows: tuple[Mapping, ...]

    @property
    def gpu(self) -> str:
        return self.machine["gpu"]

    @property
    def label(self) -> str:
        """What to print beside every recorded number."""
        return f"recorded on {self.gpu}, {self.recorded[:10]}"

    @property
    def peak(self) -> Peak | None:
        """The GPU's data-sheet limits."""
        return peak(self.gpu)

    @property
    def ceilings(self) -> Mapping[str, float]:
        """Measured arithmetic limits in TFLOP/s by input format, empty where nobody measured."""
        return CEILINGS.get(self.name, {})

    def select(self, rung: str | None = None, size: int | None = None, **columns) -> list[Mapping]:
        """Rows of this rung, at this square size, whose other columns (`inputs="tf32"` ...) are as
        given.
        """
        if size is not None:
            columns |= {"m": size, "n": size, "k": size}
        if rung is not None:
            columns["rung"] = rung
        return [r for r in self.rows if all(r[k] == v for k, v in columns.items())]


def recordings() -> dict[str, Recording]:
    """All results files, by the name of their GPU."""
    found = {}
    for path in sorted(FOLDER.glob("*.json")):
        stored = json.loads(path.read_text())
        if path.name.startswith(OTHER) or "rows" not in stored:
            continue
        fields = {key: stored.get(key, "") for key in ("machine", "recorded", "commit", "method")}
        found[path.stem] = Recording(path.stem, **fields, rows=tuple(stored["rows"]))
    return found


def recorded(gpu: str | None = None) -> Recording:
    """The recording of this GPU (any part of its file name), or of an H100 if there is one.

    FileNotFoundError names the recordings there are.
    """
    found = recordings()
    for name, recording in found.items():
        if (gpu or PREFERRED).lower() in name:
            return recording
    if gpu is None and found:
        return next(iter(found.values()))
    raise FileNotFoundError(
        f"no recording of {gpu or 'any GPU'}; there are: {', '.join(found) or 'none'}"
    )
