"""Named accessors of `results/`: what a number in prose may be bound to (`book.bound_numbers`).

Each returns one number (or a word, for a setting that is one) of the GPU that the pages show. Speeds are TFLOP/s, times ms,
clocks GHz, powers W. **A share is a fraction**: 0.85 is what prose writes as 85%. Sizes are those of square products, 4096
where none is given.

    tflops("warp_tiled", 4096)                       ms("mma_tf32", 1024)
    ratio("warp_tiled")                              speed over cuBLAS's in the same run, as a fraction
    ratio("vectorized", "coarsened_2d", size=2048)   speed over another rung's
    config("mma_tiled", "BM", 4096)                  the setting that was timed
    limits("mma_padded", "L2")                       a column of Nsight Compute's; clock("mma_padded") in GHz
    stalls("vectorized", "dispatch_stall")           warps waiting for this reason, per instruction issued
    tuned("async_pipeline", STAGES=3)                the best speed among the tuned settings with these macros
    least("tiled", "shared memory and L1")           the model's least time of a resource, as a fraction of the measured time
    bound("tiled")   predicted("tiled")              the model's bound and prediction in ms
    compared("naive", "global sectors, loads")       what the GPU counted; side="emulator" for the emulator
    ceiling("float32")   peak("float16")   bandwidth()   machine("sms")   sustained("wmma_async", "watts")
    stored("small-tiles", "kernels", {"kernel": "as it was", "tiles": 8}, "ms_median")    any place of any file
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from book.cells import tuned as settings_tried
from measure import results
from measure.limits import SHORT

SIZE = 4096


@cache
def _read(name: str) -> Any:
    return json.loads((results.FOLDER / name).read_text(encoding="utf-8"))


@cache
def _recording():
    return results.recorded()


def _file(kind: str) -> Any:
    """The contents of `results/<kind>-<gpu>.json`, or of `results/<kind>.json` where no GPU is in the name."""
    name = f"{kind}-{_recording().name}.json"
    for candidate in (name, f"{kind}.json"):
        if (results.FOLDER / candidate).exists():
            return _read(candidate)
    raise LookupError(f"there is no results/{name}")


def _only(rows: list, what: str) -> Mapping:
    """The one row that was asked for."""
    if len(rows) != 1:
        raise LookupError(
            f"{what}: {len(rows) or 'no'} rows" + (", say which" if rows else " recorded")
        )
    return rows[0]


def _pick(row: Mapping, column: str, what: str):
    if column not in row:
        raise LookupError(f"{what} has no {column!r}; there are {', '.join(map(repr, row))}")
    return row[column]


def row(rung: str, size: int = SIZE, **types: str) -> Mapping:
    """A rung's recorded row; `inputs=`, `output=` choose among several, the first is meant without."""
    rows = _recording().select(rung, size, **types)
    if not rows:
        raise LookupError(f"{rung} at {size}: no rows recorded on {_recording().gpu}")
    return rows[0]


def tflops(rung: str, size: int = SIZE, **types: str) -> float:
    return row(rung, size, **types)["tflops"]


def ms(rung: str, size: int = SIZE, **types: str) -> float:
    """The median."""
    return row(rung, size, **types)["ms_median"]


def ratio(rung: str, other: str = "cublas", size: int = SIZE, **types: str) -> float:
    """A rung's speed over that of another; "cublas" is the library's time in the same run, with the same types."""
    if other == "cublas":
        return row(rung, size, **types)["ratio_to_cublas"]
    return tflops(rung, size, **types) / tflops(other, size, **types)


def config(rung: str, macro: str, size: int = SIZE, **types: str):
    """A macro of the setting that was timed."""
    return _pick(row(rung, size, **types)["config"], macro, f"the setting of {rung}")


def _watched(rung: str) -> Mapping:
    rows = [found for found in _file("limits")["rows"] if found["rung"] == rung]
    return _only(rows, f"Nsight Compute on {rung}")


def limits(rung: str, column: str) -> float:
    """A column of Nsight Compute's, by its own name or one of `SHORT`; percentages as fractions."""
    column = SHORT.get(column, column)
    value = _pick(_watched(rung), column, f"Nsight Compute's row of {rung}")
    return value / 100 if column.endswith(", %") else value


def stalls(rung: str, reason: str) -> float:
    return _pick(_watched(rung)["stalls"], reason, f"the stalls of {rung}")


def clock(rung: str) -> float:
    """GHz while Nsight Compute watched this rung."""
    found = _watched(rung)
    return found["cycles"] / found["milliseconds"] / 1e6


def sustained(rung: str, what: str, **types: str) -> float:
    """A run without a pause: "burst_tflops", "sustained_tflops", "ghz", the highest "watts", their "limit".

    They stand in the rung's row, whose "burst_ghz" is the clock of the timed bursts.
    """
    found, recording = row(rung, SIZE, **types), _recording()
    seen = {
        "burst_tflops": found["tflops"],
        "burst_ghz": found["clock_ghz"],
        "sustained_tflops": found["sustained_tflops"],
        "ghz": found["sustained_ghz"],
        "watts": found["sustained_watts"],
        "limit": recording.machine["power_limit_w"],
    }
    return _pick(seen, what, f"the long run of {rung}")


def tuned(rung: str, column: str = "tflops", **macros: int):
    """A column (or macro) of the fastest tuned setting that has these macros."""
    best = settings_tried.at(rung, **macros)
    return _pick({**best["macros"], **best}, column, f"the tuned setting of {rung}")


def _reason(rung: str, size: int | tuple[int, int, int], output: str):
    from book.cells.why import reason

    return reason(rung, size, _recording().name, output)


def least(rung: str, resource: str, size: int = SIZE, output: str = "") -> float:
    """The least time that this resource needs, by `measure.model`, as a fraction of the measured time."""
    found = _reason(rung, size, output)
    if resource not in found.resources:
        raise LookupError(
            f"{rung} has no need of {resource!r}; it has {', '.join(found.resources)}"
        )
    return found.share(resource)


def bound(rung: str, size: int = SIZE, output: str = "") -> float:
    """The least time that the model allows, ms."""
    return _reason(rung, size, output).bound.ms


def predicted(rung: str, size: int = SIZE, output: str = "") -> float:
    """The time that the model predicts, ms. LookupError where no clock was read."""
    if (found := _reason(rung, size, output).predicted_ms) is None:
        raise LookupError(f"{rung} at {size}: no clock was read, so nothing is predicted")
    return found


def compared(rung: str, counter: str, side: str = "gpu") -> int:
    """A counter of a whole launch, as the GPU ("gpu") or the emulator ("emulator") had it."""
    rows = [found for found in _file("compare")["rows"] if found["rung"] == rung]
    named = [found for found in rows if found["counter"] == counter]
    if not named:
        there = ", ".join(repr(found["counter"]) for found in rows) or "none"
        raise LookupError(f"{rung} has no counter {counter!r}; there are {there}")
    return _pick(_only(named, counter), side, "a comparison")


def ceiling(kind: str) -> float:
    """TFLOP/s of a loop that only computes, for "float32", "tf32" or "float16"."""
    return _pick(_recording().ceilings, kind, "the ceilings")


def peak(kind: str) -> float:
    """TFLOP/s that the data sheet states, dense."""
    return _recording().peak.tflops(kind)


def bandwidth() -> float:
    """GB/s of DRAM that the data sheet states."""
    return _recording().peak.bandwidth


def machine(key: str):
    """What the recording says of its GPU: "sms", "clock_mhz", "l2_bytes", "driver", "cublas" ..."""
    return _pick(_recording().machine, key, "the machine")


def stored(kind: str, *path: str | int | Mapping):
    """What stands at a place of `results/<kind>-<gpu>.json`.

    A word is a key, a number an index, a mapping such as {"load": "pitch 80"} the one row of a list that has it.
    """
    found, where = _file(kind), kind
    for step in path:
        if isinstance(step, Mapping):
            found = _only([row for row in found if step.items() <= row.items()], f"{where} {step}")
        elif isinstance(found, Mapping):
            found = _pick(found, step, where)
        else:
            found = found[step]
        where = f"{where} > {step}"
    return found


ACCESSORS = {
    accessor.__name__: accessor
    for accessor in (
        *(tflops, ms, ratio, config, limits, stalls, clock, sustained),
        *(least, bound, predicted, tuned, compared, ceiling, peak, bandwidth, machine, stored),
    )
}
