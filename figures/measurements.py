"""What drawings of measurements share: where a number comes from, how it is written, marks on an axis."""

from __future__ import annotations

import math
from collections.abc import Mapping

INPUTS = {
    "float32": "FP32",
    "tf32": "TF32",
    "float16": "FP16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "FP8",
    "int8": "INT8",
}  # how a page names a rung's number format


def provenance(machine: Mapping | str | None, recorded: str | None) -> str:
    gpu = machine.get("gpu", "") if isinstance(machine, Mapping) else (machine or "")
    words = [f"on {gpu}" if gpu else "", f"recorded {recorded}" if recorded else ""]
    if gpu.lower().startswith("data sheet"):
        return f"From the {gpu}."
    said = ", ".join(word for word in words if word)
    return f"Measured {said}." if gpu else f"{said.capitalize()}." if said else ""


def ticks(low: float, high: float, log: bool) -> list[float]:
    if log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return [
            10.0**d for d in decades if low <= 10.0**d * 1.0000001 and 10.0**d <= high * 1.0000001
        ]
    step = 10 ** math.floor(math.log10(high))
    step = next(s for s in (step / 5, step / 2, step, step * 2) if high / s <= 7)
    return [step * i for i in range(int(high / step + 1e-9) + 1)]


def plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
