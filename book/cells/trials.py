"""What was tried on Hopper's rungs, also what did not pay: tables of `results/hopper-trials.json`."""

from __future__ import annotations

import json
from functools import cache

from book.cells import columns
from measure.provenance import FOLDER


@cache
def stored() -> dict:
    """The whole file."""
    return json.loads((FOLDER / "hopper-trials.json").read_text(encoding="utf-8"))


def label() -> str:
    """Where and when."""
    found = stored()
    return f"Measured on an {found['machine']['gpu']}, {found['recorded']}."


def _cell(value, form: str = "g") -> str:
    return "" if value is None else format(value, form)


def dense(*names: str) -> None:
    """Shows trials of the dense rungs, by name; without names all of them."""
    rows = [
        [
            row["change"],
            row["predicted"] or "-",
            *(_cell(row[size][what], form) for size in ("4096", "8192") for what, form in HEADS),
            row["verdict"],
        ]
        for row in stored()["dense"]
        if not names or row["name"] in names
    ]
    columns.show(
        {
            "": "",
            "prediction": "what was expected before it was measured",
            "4096": "TFLOP/s at 4096 x 4096 x 4096, bfloat16 in and out",
            "of cuBLAS": "share of cuBLAS in the same run, at 4096",
            "8192": "TFLOP/s at 8192 x 8192 x 8192",
            "of cuBLAS ": "share of cuBLAS in the same run, at 8192",
            "what came of it": "whether the kernel of today has it, and what the trial showed",
        },
        rows,
        caption=f"{label()} Speeds of different runs differ by up to 2%; the shares are within one run.",
    )


HEADS = (("tflops", "g"), ("of_cublas", ".1%"))


def promotion() -> None:
    """Shows the speed of fp8 with sums that are promoted."""
    rows = [
        [
            row["setting"],
            *(_cell(row[key], form) for key, form in (("4096", "g"), ("of 4096", ".0%"))),
            *(_cell(row[key], form) for key, form in (("8192", "g"), ("of 8192", ".0%"))),
        ]
        for row in stored()["promotion"]
    ]
    columns.show(
        {
            "": "",
            "4096": "TFLOP/s at 4096 x 4096 x 4096, e4m3 in and bfloat16 out",
            "of the library": "share of cuBLASLt without fast accumulation in the same run, at 4096",
            "8192": "TFLOP/s at 8192 x 8192 x 8192",
            "of the library ": "share of cuBLASLt without fast accumulation in the same run, at 8192",
        },
        rows,
        caption=label(),
    )


def shapes() -> None:
    """Shows how the times of shapes that are not square came down, step by step."""
    found = stored()["shapes"]
    heads = list(found[0]["us"])
    rows = [[row["version"], *(_cell(row["us"][head]) for head in heads)] for row in found]
    columns.show(
        {
            "µs": "microseconds per product, float16 in and out",
            **{
                head: f"M = {head}, N = K = 8192" if head.isdigit() else f"M, N, K = {head}"
                for head in heads
            },
        },
        rows,
        caption=f"An empty cell was not measured. {label()}",
    )
