"""Predictions that were written down before anybody timed what they are of.

Held apart are six sizes that were in no recording while the model was made, of every rung that is timed there.
`results/model/predictions.json` says what the model of that day gave for them, in clocks, since nobody knew beforehand at
which clock a GPU would run; `check` compares it with `results/model/apart-<gpu>.json`, which
`python -m measure record --part bench --size N --json FILE` wrote.
`results/model/comparisons.json` holds ratios of times that the model of its day gave for comparisons of `measure.variants`
before any GPU had run them; `ratios` puts what was measured since beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kernels.rungs import find
from kernels.settings import configuration
from measure.provenance import FOLDER, rows_in
from measure.row import extents
from measure.variants import COMPARED, HOPPER, HOPPER_SIZES

from .prediction import predict
from .recorded import GPUS, Timed, timed_in, variants
from .store import counted, key, store_lines

PATH = FOLDER / "model" / "predictions.json"
COMPARISONS = FOLDER / "model" / "comparisons.json"
EQUAL = 1.755  # GHz, of both sides of a comparison


def clock(row: Timed) -> float | None:
    """The clock at which a row is predicted: its own, or for float32 the highest, which every float32 kernel with a
    clock held.
    """
    return row.ghz or (1.98 if row.output == "float32" and find(row.rung).number <= 10 else None)


def apart() -> list[tuple[float, Timed]]:
    """(predicted ms, what was measured) of the sizes held apart; none where nobody has timed them."""
    before = {
        (row["rung"], row["size"], row["output"], key(row["rung"], row["macros"])): row
        for row in rows_in(PATH)
    }
    found = []
    for row in timed_in(FOLDER / "model" / f"apart-{GPUS[0]}.json", GPUS[0]):
        at = (row.rung, row.size[0], row.output, key(row.rung, row.macros))
        if at in before and (ghz := clock(row)):
            said = before[at]
            ms = max(said["clocks"] / (ghz * 1e6), said["shared_ms"]) + said["launch_ms"]
            found.append((ms, row))
    return found


def ratios() -> Iterator[tuple[float, Timed, Timed]]:
    """(predicted ratio, what it was beside, what was changed) of the comparisons that were timed after they were
    predicted.
    """
    timed: dict[tuple, Timed] = {}
    for row in variants():
        timed.setdefault((row.size[0], key(row.rung, row.macros)), row)
    for row in rows_in(COMPARISONS):
        before = timed.get((row["size"], key(row.get("after", row["rung"]), row["beside"])))
        after = timed.get((row["size"], key(row["rung"], row["macros"])))
        if before and after:
            yield row["ratio"], before, after


def compare() -> None:
    """Writes predicted ratios of times: each setting of a comparison over its first, for settings without a recorded
    time. What the file holds already stays as it was predicted then.
    """
    rows = rows_in(COMPARISONS)
    there = {(row.rung, row.size[0], key(row.rung, row.macros)) for row in variants()}
    there |= {(row["rung"], row["size"], key(row["rung"], row["macros"])) for row in rows}
    for n, before, after in _changes():
        if (after[0], n, key(*after)) not in there:
            two = [predict(counted(*side), (n,) * 3, GPUS[0], EQUAL).ms for side in (before, after)]
            rows.append({
                "rung": after[0], "size": n, "macros": after[1], "beside": before[1],
                **({"after": before[0]} if before[0] != after[0] else {}),
                "ratio": round(two[1] / two[0], 4),
            })  # fmt: skip
    method = "python -m measure model --predict, before any of these was timed"
    store_lines(COMPARISONS, method, {"gpu": "none"}, rows)


def _changes() -> Iterator[tuple[int, tuple, tuple]]:
    """(size, (rung, macros), (rung, macros)): the two sides of every comparison on square matrices, and of every step."""
    for comparison in COMPARED:
        for n in (size for size in comparison.sizes if isinstance(size, int)):
            chosen = configuration(comparison.rung, extents(n), 90, comparison.formats).macros
            first, *others = ({**chosen, **change} for change in comparison.changes)
            for macros in others:
                yield n, (comparison.rung, first), (comparison.rung, macros)
    for n in HOPPER_SIZES:
        steps = [(step.rung, find(step.rung).resolve(step.macros)) for step in HOPPER]
        for before, after in pairwise(steps):
            yield n, before, after
