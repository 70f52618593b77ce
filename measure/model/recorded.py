"""Every recorded time of a kernel of this repository, as one kind of row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernels.rungs import find
from measure import published
from measure.provenance import FOLDER, rows_in
from measure.results import recordings

GPUS = ("nvidia-h200", "nvidia-h100-80gb-hbm3")


@dataclass(frozen=True)
class Timed:
    """A recorded time. least, most: its samples' (the same as `ms` where only a median is stored); ghz: the clock
    read, None where nobody read it. source: the file; name: the variant's, where the file has one.
    """

    gpu: str
    rung: str
    macros: Mapping[str, int]
    size: tuple[int, int, int]
    ms: float
    least: float
    most: float
    ghz: float | None
    source: str
    output: str = ""
    name: str = ""


def ladder() -> Iterator[Timed]:
    """The rungs' rows of `results/<gpu>.json`."""
    for gpu in GPUS:
        yield from _rows(recordings()[gpu].rows, gpu)


def timed_in(path: Path, gpu: str) -> Iterator[Timed]:
    """The rungs' rows of a file that `measure record --part bench --json` wrote."""
    yield from _rows(rows_in(path), gpu)


def _rows(rows: Iterable[Mapping], gpu: str) -> Iterator[Timed]:
    for row in rows:
        if row["rung"] in ("cpu", "cublas"):
            continue
        macros = find(row["rung"]).resolve(row["config"])
        yield Timed(
            gpu, row["rung"], macros, (row["m"], row["n"], row["k"]), row["ms_median"], row["ms_min"],
            row["ms_max"], row.get("clock_ghz"), gpu, row["output"],
        )  # fmt: skip


def searched() -> Iterator[Timed]:
    """The settings that the search timed, at the defaults of what it did not vary. Only a median is stored, and no
    clock.
    """
    gpu = GPUS[0]
    for row in _file("tune", gpu)["rows"]:
        if row["ms"]:
            macros = find(row["rung"]).resolve(row["macros"])
            yield Timed(gpu, row["rung"], macros, (4096,) * 3, row["ms"], row["ms"], row["ms"], None, "tune")  # fmt: skip


def variants() -> Iterator[Timed]:
    """Rungs with one macro changed, sampled in turn."""
    gpu = GPUS[0]
    for row in _file("variants", gpu)["rows"]:
        if row["config"]:
            yield Timed(
                gpu, row["rung"], row["config"], (row["m"], row["n"], row["k"]), row["ms"], row["fastest_ms"],
                row["slowest_ms"], row["clock_ghz"], "variants", row["output"], row["name"],
            )  # fmt: skip


@dataclass(frozen=True)
class Other:
    """A recorded time of a product by somebody else's kernel, or one of ours that is no rung: its code is not counted."""

    gpu: str
    name: str
    size: tuple[int, int, int]
    inputs: str
    output: str
    least: float


def others() -> Iterator[Other]:
    """cuBLAS and cuBLASLt, Triton, CuTe's Python, Tilus, and the kernels that stand for published ones."""
    for gpu in GPUS:
        for row in recordings()[gpu].rows:
            if row["rung"] == "cublas":
                size = row["m"], row["n"], row["k"]
                yield Other(gpu, "cublasGemmEx", size, row["inputs"], row["output"], row["ms_min"])
    gpu = GPUS[0]
    for row in _file("cublaslt", gpu)["rows"]:
        size = row["m"], row["n"], row["k"]
        yield Other(gpu, "cuBLASLt", size, row["inputs"], row["output"], row["cublasLt"]["us_min"] / 1e3)  # fmt: skip
    for kind, output in (("triton", "float16"), ("cute", "float32"), ("tilus", "float16")):
        stored = _file(kind, gpu)
        for row in stored["rows"]:
            size = (row.get("size") or stored["size"],) * 3
            yield Other(gpu, row["kernel"], size, "float16", output, row["ms_median"])
    types = {case.name: case.types for case in published.CASES}
    for row in _file("published", gpu)["rows"]:
        of = types[row["kernel"]]
        yield Other(gpu, row["kernel"], (published.SIZE,) * 3, of.inputs, of.output, row["ms_min"])


def _file(kind: str, gpu: str) -> dict:
    return json.loads((FOLDER / f"{kind}-{gpu}.json").read_text(encoding="utf-8"))
