"""The same rungs compiled by two versions of NVRTC: the rows of two recordings of one day and GPU, side by side.

`python -m measure compilers OLD.json NEW.json [RUNG ...]` writes `results/compilers-<gpu>.json`. A recording is what
`python -m measure record` writes; a row's column `nvrtc`, where it has one, stands before its machine's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from kernels.gpus import slug
from kernels.rungs import find

from .provenance import store

SAME = ("rung", "m", "n", "k", "inputs", "accumulator", "output", "config")
METHOD = (
    "the rows of two recordings on one day, measure.timing in both: "
    "code compiled by NVRTC {new} and by NVRTC {old}, TFLOP/s"
)


def compared(old: Mapping, new: Mapping, rungs: Iterable[str] = ()) -> list[dict]:
    """A row for each rung, square size and configuration that both recordings have, by two compilers.

    rungs: which; all unless named. ValueError for recordings of two GPUs, drivers or days, and where no row is in both.
    """
    for what in ("gpu", "driver"):
        if (one := old["machine"].get(what)) != (other := new["machine"].get(what)):
            raise ValueError(f"two recordings of different {what}s: {one} and {other}")
    days = [recording["recorded"][:10] for recording in (old, new)]
    if days[0] != days[1]:
        raise ValueError(f"two recordings of different days: {days[0]} and {days[1]}")
    names = {find(rung).name for rung in rungs}
    mine, others = ({_key(row): row for row in recording["rows"]} for recording in (old, new))
    found = []
    for key, row in mine.items():
        other = others.get(key)
        if other is None or (names and row["rung"] not in names):
            continue
        versions = _version(old, row), _version(new, other)
        if versions[0] == versions[1] or not row["m"] == row["n"] == row["k"]:
            continue
        found.append(
            {
                "rung": row["rung"],
                "size": row["m"],
                "config": row["config"],
                "tflops": dict(zip(versions, (row["tflops"], other["tflops"]), strict=True)),
            }
        )
    if not found:
        raise ValueError(
            "no row is in both recordings, of the same configuration and two compilers"
        )
    if len(pairs := {tuple(row["tflops"]) for row in found}) > 1:
        raise ValueError(f"more than two compilers: {', '.join(map(' and '.join, sorted(pairs)))}")
    return sorted(found, key=lambda row: row["size"])


def _key(row: Mapping) -> str:
    return json.dumps([row.get(name) for name in SAME], sort_keys=True)


def _version(recording: Mapping, row: Mapping) -> str:
    return row.get("nvrtc") or recording["machine"]["nvrtc"]


def record(old: Path, new: Path, rungs: Iterable[str] = ()) -> Path:
    """Write what two recordings' files say; ValueError as of `compared`."""
    first, second = (json.loads(path.read_text(encoding="utf-8")) for path in (old, new))
    rows = compared(first, second, rungs)
    before, after = rows[0]["tflops"]
    machine = {name: second["machine"][name] for name in ("gpu", "driver")}
    method = METHOD.format(old=before, new=after)
    return store(f"compilers-{slug(machine['gpu'])}", method, machine, rows=rows)
