"""Recorded measurements: `results/<gpu>.json`, one file per GPU, each with its provenance."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernels.gpus import Peak, peak

from . import machine
from .provenance import FOLDER, shown

# Name of a loop in `measure.machine` that bounds what kernels with these inputs can do. mma.sync and
# wgmma have limits of their own.
LOOPS = {"float32": "ffma", "tf32": "mma tf32", "float16": "mma f16", "bfloat16": "mma bf16"}


@dataclass(frozen=True)
class Recording:
    """One results file. `rows` are as `measure.row.time_rung` gives them."""

    name: str
    machine: Mapping
    recorded: str
    rows: tuple[Mapping, ...]

    @property
    def gpu(self) -> str:
        return self.machine["gpu"]

    @property
    def label(self) -> str:
        """What to print beside recorded numbers."""
        return self.label_of(self.rows)

    def label_of(self, rows: Iterable[Mapping]) -> str:
        """The same beside these rows."""
        return f"recorded on {self.gpu}, {self.dates(rows)}"

    def dates(self, rows: Iterable[Mapping]) -> str:
        """When these rows were recorded: one that was timed again has a date of its own."""
        return " and ".join(sorted({row.get("recorded", self.recorded)[:10] for row in rows}))

    @property
    def peak(self) -> Peak | None:
        """The GPU's data-sheet limits."""
        return peak(self.gpu)

    @property
    def ceilings(self) -> Mapping[str, float]:
        """What a loop of nothing but arithmetic reaches, in TFLOP/s by input format: FFMA for float32,
        mma.sync for the others, for 2 ms, from `results/machine-<gpu>.json`. Empty where nobody
        measured.
        """
        rows = machine.rows_of(self.name)
        found = {kind: rows.get(("arithmetic", f"{name}, 2 ms")) for kind, name in LOOPS.items()}
        return {kind: row.value for kind, row in found.items() if row}

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
        stored = json.loads(path.read_text(encoding="utf-8"))
        if not {"ms_median", "rung"} <= set(next(iter(stored.get("rows", ())), ())):
            continue  # holds no times of rungs
        fields = {key: stored.get(key, "") for key in ("machine", "recorded")}
        found[path.stem] = Recording(path.stem, **fields, rows=tuple(stored["rows"]))
    return found


def recorded(gpu: str | None = None) -> Recording:
    """The recording of this GPU (any part of its file name), or of the one that the book shows.

    FileNotFoundError names the recordings there are.
    """
    found = recordings()
    matching = [name for name in found if (gpu or "").lower() in name]
    if matching:
        return found[shown(matching)]
    raise FileNotFoundError(
        f"no recording of {gpu or 'any GPU'}; there are: {', '.join(found) or 'none'}"
    )
