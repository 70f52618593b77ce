"""Why a rung takes the time it takes: the model's table for the rung before and the rung, beside what was measured.

Counts, rates, bound and prediction are those of `measure.model`; here they become a table that fits a page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import median

from book.cells import columns
from kernels.rungs import find
from measure.model.bound import Bound, bound
from measure.model.check import HIGHEST, check, timed
from measure.model.held import clock
from measure.model.pairs import Pair, pairs
from measure.model.prediction import predict
from measure.model.recorded import GPUS, Timed, ladder
from measure.model.store import counted
from measure.results import recordings

MEANING = (
    "the least time that the rung's work takes on this resource, as a share of the measured time"
)
LEAST_SHARE = 0.005  # of the measured time: a resource below it in every rung is not shown


@dataclass(frozen=True)
class Reason:
    """A recorded row with its bound and its prediction (None where no clock was read).

    shares: of the measured time, by resource.
    """

    row: Timed
    bound: Bound
    predicted_ms: float | None

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that the rung uses, the one that needs longest first."""
        return tuple(need.resource for need in self.bound.needs if need.work)

    def share(self, resource: str) -> float:
        return self.bound[resource].ms / self.row.ms


@cache
def reason(
    rung: str, size: int | tuple[int, int, int] = 4096, gpu: str = GPUS[0], output: str = ""
) -> Reason:
    """The model's word on a recorded row. size: M = N = K, or all three. KeyError where the rung was not recorded at
    this size, or not with this output; it names what was.
    """
    name = find(rung).name
    rows = [row for row in ladder() if row.rung == name and row.gpu == gpu]
    extents = (size,) * 3 if isinstance(size, int) else size
    found = [r for r in rows if r.size == extents and output in ("", r.output)]
    if not found:
        known = ", ".join(f"{'x'.join(map(str, dict.fromkeys(r.size)))} {r.output}" for r in rows)
        raise KeyError(f"{name} at {size} {output}on {gpu} was not recorded; there are {known}")
    row = found[0]
    counts = counted(row.rung, row.macros)
    told = predict(counts, row.size, row.gpu, clock(row)).ms if clock(row) else None
    return Reason(row, bound(counts, row.size, row.gpu, row.ghz or HIGHEST), told)


def why(*rungs: str, size: int = 4096, gpu: str = GPUS[0], output: str = "") -> None:
    """Shows what each resource of the GPU needs at least for these rungs, as a share of the measured time, with the
    bound, the prediction and the measured time below. size: M = N = K; output: a type of C, where several were
    recorded.
    """
    reasons = [reason(rung, size, gpu, output) for rung in rungs]
    resources = dict.fromkeys(name for one in reversed(reasons) for name in one.resources)
    rows = [
        [name, *(_least(one, name) for one in reasons)]
        for name in resources
        if any(name in one.resources and one.share(name) >= LEAST_SHARE for one in reasons)
    ]
    rows.append(["bound, by", *(f"{one.bound.ms:.3g} ms, {one.bound.binding}" for one in reasons)])
    rows.append(["predicted", *(_predicted(one) for one in reasons)])
    measured = [one.row for one in reasons]
    samples = (f"{row.ms:.3g} ms ({row.least:.3g} to {row.most:.3g})" for row in measured)
    rows.append(["measured", *samples])
    clocks = dict.fromkeys(
        f"{one.row.ghz:.2f}" if one.row.ghz else f"{HIGHEST} (none was read)" for one in reasons
    )
    columns.show(
        {"": "", **{one.row.rung: MEANING for one in reasons}},
        rows,
        title="What each part of the GPU needs at least, and its share of the measured time",
        caption=f"M = N = K = {size:,}; counted work divided by peak rates, at a clock of {' and '.join(clocks)} GHz. "
        "Predicted: with latencies and what the kernel overlaps. "
        + columns.sentence(recordings()[gpu].label),
    )


def _least(one: Reason, resource: str) -> str:
    if resource not in one.resources:
        return "not counted"
    return f"{one.bound[resource].ms:.3g} ms, {one.share(resource):.0%}"


def _predicted(one: Reason) -> str:
    if one.predicted_ms is None:
        return "no clock was read"
    return f"{one.predicted_ms:.3g} ms, {one.predicted_ms / one.row.ms - 1:+.0%}"


def binding(*rungs: str, size: int = 4096, gpu: str = GPUS[0]) -> None:
    """Shows for each rung which resource binds, the one that needs longest after it, and the model's two times."""
    rows = []
    for one in (reason(rung, size, gpu) for rung in rungs):
        first, second = (f"{n}, {one.share(n):.0%}" for n in one.resources[:2])
        ghz = f"{one.row.ghz:.2f}" if one.row.ghz else None
        told = f"{one.predicted_ms / one.row.ms - 1:+.0%}" if one.predicted_ms else None
        rows.append([one.row.rung, first, second, f"{one.row.ms:.3g}", told, ghz])
    columns.show(
        {
            "": "",
            "binds": "the part of the GPU that needs longest for the rung's work, and "
            + MEANING.removeprefix("the least time that the rung's work takes on this resource, "),
            "next": "the part that needs longest after it, likewise",
            "ms": "the measured time, the median",
            "predicted": "the model's prediction, with latencies and overlap, against the measured time",
            "GHz": "the clock that was read while the rung ran; empty where none was",
        },
        rows,
        caption=f"M = N = K = {size:,}. {columns.sentence(recordings()[gpu].label)}",
    )


def verdicts() -> None:
    """Shows what `python -m measure model --check` asks of the model, and what it found."""
    columns.show(
        {
            "asked": "what has to hold",
            "found": "over everything that is recorded",
            "holds": "whether what was found is what was asked",
        },
        [[one.claim, one.found, one.holds] for one in check()],
        title="What is asked of the model",
    )


def changes() -> None:
    """Shows, by the macro that changed, how often the model predicts which of two recorded settings is faster."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs():
        found.setdefault(pair.change.split()[0], []).append(pair)
    rows = [
        [
            f"`{macro}`",
            len(several),
            f"{sum(one.hit for one in several) / len(several):.0%}",
            _words(max(several, key=_miss)),
        ]
        for macro, several in sorted(found.items(), key=lambda item: -len(item[1]))
    ]
    columns.show(
        {
            "changed": "the one macro in which two recorded settings of a rung differ",
            "pairs": "how many such pairs have times that are apart",
            "direction": "share of the pairs whose faster one the model predicts",
            "largest miss": "the pair in which a wrong direction costs most, with the predicted and the measured ratio of times",
        },
        rows,
        title="Which of two settings is faster",
    )


def errors() -> None:
    """Shows by rung how far the prediction is from the measured time at each size."""
    sizes = (1024, 2048, 4096, 8192)
    told: dict[str, dict[int, list[float]]] = {}
    for row, counts in timed():
        if row.gpu == GPUS[0] and clock(row) and row.size in [(n,) * 3 for n in sizes]:
            error = predict(counts, row.size, row.gpu, clock(row)).ms / row.ms - 1
            told.setdefault(row.rung, {}).setdefault(row.size[0], []).append(error)
    rows = [
        [rung, *(f"{median(at[n]):+.0%}" if n in at else None for n in sizes)]
        for rung, at in sorted(told.items(), key=lambda item: find(item[0]).number)
    ]
    meaning = "predicted over measured time at M = N = K of this size, less 1; the median over the recorded types"
    columns.show(
        {"": "", **{f"{n:,}": meaning for n in sizes}},
        rows,
        title="How far the prediction is from the measured time",
        caption=columns.sentence(recordings()[GPUS[0]].label),
    )


def _miss(pair: Pair) -> float:
    return 0 if pair.hit else abs(pair.measured - 1)


def _words(pair: Pair) -> str:
    if pair.hit:
        return "none"
    values = pair.change.split(" ", 1)[1]
    return f"{pair.first.rung}, {values}: {pair.predicted:.2f} and {pair.measured:.2f}"
