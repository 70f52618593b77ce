"""Predictions that were written down before they were compared: of sizes and rungs that nobody looked at while the
model was made.

Held apart are the sizes 1024 and 8192, and the rungs of even numbers at every size. `results/model/predictions.json`
holds what the model said then; it is written once, and `check` compares it with what was measured.
"""

from __future__ import annotations

import json

from kernels.rungs import find
from measure.provenance import FOLDER, store

from .prediction import predict
from .recorded import Timed, ladder
from .store import counted

PATH = FOLDER / "model" / "predictions.json"
SIZES = (1024, 8192)


def apart(row: Timed) -> bool:
    """Whether a row was held apart."""
    return row.size[0] in SIZES or find(row.rung).number % 2 == 0


def clock(row: Timed) -> float | None:
    """The clock at which a row is predicted: its own, or for float32 the highest, which every float32 kernel with a
    clock held.
    """
    return row.ghz or (1.98 if row.output == "float32" and find(row.rung).number <= 10 else None)


def write() -> None:
    """Writes the predictions. FileExistsError where they were written before."""
    if PATH.exists():
        raise FileExistsError(
            f"{PATH.name}: predictions are written once, before they are compared"
        )
    rows = [
        {"gpu": row.gpu, "rung": row.rung, "size": row.size, "output": row.output, "macros": dict(row.macros),
         "ms": round(predict(counted(row.rung, row.macros), row.size, row.gpu, clock(row)).ms, 6)}
        for row in ladder()
        if clock(row) and apart(row)
    ]  # fmt: skip
    method = "python -m measure model --predict, before any prediction was compared with a time"
    store(PATH, method, {"gpu": "none"}, None, rows=rows)
    PATH.write_text(
        PATH.read_text(encoding="utf-8").replace('{"gpu": "nv', '\n{"gpu": "nv'), encoding="utf-8"
    )


def written() -> list[dict]:
    """The predictions as they were written."""
    return json.loads(PATH.read_text(encoding="utf-8"))["rows"]
