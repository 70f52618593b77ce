"""The ladder in miniature at the top of a chapter, and what data sheets promise of GPUs."""

from collections.abc import Mapping

import figures
import kernels
import measure
from book.cells import columns
from kernels.gpus import PEAKS


def rows(size: int = 4096) -> dict[str, Mapping]:
    """{rung: its first recorded row at this size}, by number, without the library's own."""
    recording, found = measure.recorded(), {}
    for name in kernels.RUNGS:
        for row in recording.select(name, size=size)[:1]:
            if name != "cublas":
                found[name] = row
    return found


def other_gpus(*names: str) -> None:
    """Shows what data sheets promise of some GPUs (`kernels.gpus.PEAKS`), and two ratios that follow from it."""
    peaks = {peak.name: peak for peak in PEAKS}
    lines = []
    for name in names:
        peak = peaks[name]
        lines.append(
            [
                name,
                f"{peak.fp32:.1f}",
                f"{peak.fp16:.0f}",
                f"{peak.fp16 / peak.fp32:.1f}",
                f"{peak.bandwidth:,.0f}",
                f"{peak.fp16 * 1e3 / peak.bandwidth:.0f}",
            ]
        )
    columns.show(
        {
            "": "",
            "FP32": "TFLOP/s of the CUDA cores with float32",
            "FP16": "TFLOP/s of the tensor cores with dense float16 matrices",
            "ratio": "FP16 over FP32",
            "GB/s": "bandwidth of device memory",
            "FP16 operations per byte": "operations that the tensor cores do while memory brings one byte",
        },
        lines,
        caption="From the data sheets.",
    )


def strip(*here: str):
    """The ladder in miniature, with a chapter's rungs marked. The chapters of rungs that nobody has timed show those too."""
    found = [  # without the CPU, where no chapter is about it
        row for name, row in rows().items() if kernels.find(name).number or name in here
    ]
    untimed = [name for name, rung in kernels.RUNGS.items() if not rung.timed]
    if set(here) & set(untimed):
        found += [
            {"rung": name, "tflops": None, "inputs": kernels.find(name).inputs} for name in untimed
        ]
    found.sort(key=lambda row: _place(row["rung"]))
    return figures.ladder_strip(
        {row["rung"]: row["tflops"] for row in found},
        here,
        {row["rung"]: row["inputs"] for row in found},
        first=kernels.find(found[0]["rung"]).number or 0,
    )


def _place(rung: str) -> int:
    return list(kernels.RUNGS).index(rung)
