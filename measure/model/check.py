"""What the model has to hold, and whether it does: `python -m measure model --check` prints each threshold, and fails
with any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from measure.provenance import load

from .bound import bound, of_product, work_of
from .counts import Counts
from .held import apart, clock, ratios
from .pairs import apart as different
from .pairs import pairs
from .prediction import predict
from .rates import BOOK, HIGHEST, SMS
from .recorded import Timed, ladder, others, searched, variants
from .store import counted, key, stored

LINE_ELEMENTS = 32  # a count holds where rows begin alike: with K = 4097 lanes of a column fall on other banks of L1
BINDING, PAIRS, DIRECTION, ERROR, APART = 24, 300, 0.90, 0.12, 0.15
NSIGHT = {
    "issue slots": "issue slots used, %",
    "FMA pipe": "FMA pipe, %",
    "tensor cores": "tensor pipe, %",
    "shared memory and L1": "shared-memory pipe, %",
    "L2 look-ups": "L2 tags, %",
    "L2 to one SM": "L2 requests from SMs, %",
}
ACTIVE = ("issue slots used, %", "FMA pipe, %", "tensor pipe, %")


@dataclass(frozen=True)
class Verdict:
    """One threshold: what is claimed, what was found, whether it holds, and what does not. of_today: whether it judges
    today's model; what an earlier one foretold cannot be mended, and fails no check.
    """

    claim: str
    found: str
    holds: bool
    misses: tuple[str, ...] = ()
    of_today: bool = True


def check() -> list[Verdict]:
    """All verdicts; the last two are of what was written down before it was timed."""
    every, held = errors()
    return [bounds(), bindings(), directions(), every, foretold(), held]


def timed() -> list[tuple[Timed, Counts]]:
    """Every row of the ladder with its counts; those that cannot be counted are left out and told by `bounds`."""
    return [
        (row, stored()[key(row.rung, row.macros)])
        for row in ladder()
        if key(row.rung, row.macros) in stored()
    ]


def bounds() -> Verdict:
    """No bound above a measured time: rows of the ladder on both GPUs, variants and the search's settings, these at the
    highest clock; of kernels whose code is not counted, what their product needs at least.
    """
    rows, theirs = [*ladder(), *variants(), *searched()], list(others())
    above, done = [], len(theirs)
    for row in theirs:
        ms, binding = of_product(row.size, row.inputs, row.output, row.gpu, HIGHEST)
        if ms > row.least:
            above.append(
                f"{row.gpu} {row.name} {row.size}: {binding} {ms:.4f} > {row.least:.4f} ms"
            )
    for row in rows:
        one = stored().get(key(row.rung, row.macros))
        if one is None or row.size[2] % LINE_ELEMENTS:
            continue
        done += 1
        limit = bound(one, row.size, row.gpu, row.ghz or HIGHEST)
        if limit.ms > row.least:
            above.append(
                f"{row.gpu} {row.rung} {row.size} {row.output} {row.source}: {limit.binding} {limit.ms:.4f} > {row.least:.4f} ms"
            )
    return Verdict(
        "no bound above a measured time",
        f"{len(above)} of {done} ({len(rows) + len(theirs) - done} not counted)",
        not above,
        tuple(above),
    )


def busy(row: Mapping, counts: Counts) -> dict[str, float]:
    """Shares of elapsed clocks by resource, from a row of `results/limits-*.json`: its `active` shares times active
    over elapsed clocks, which the issue slots tell; copies' writes, which Nsight's count of the data path lacks, are
    added to it.
    """
    elapsed = row["instructions"] / (4 * SMS * row["cycles"])
    share = elapsed / (row["issue slots used, %"] / 100)
    found = {
        name: (row.get(column) or 0) / 100 * (share if column in ACTIVE else 1)
        for name, column in NSIGHT.items()
    }
    tiles = row["size"][0] * row["size"][1] / counts.tile[0] / counts.tile[1]
    clocks = SMS * row["cycles"] / tiles
    found["shared memory and L1"] += counts.of("copies", row["size"][2]) / clocks
    found["TMA's writes"] = work_of(counts, row["size"][2])["TMA's writes"] / clocks
    return found


def bindings() -> Verdict:
    """The model's binding resource beside Nsight Compute's busiest. Where they differ the longest stall is named."""
    rows = load("limits")["rows"]
    wrong, right = [], 0
    for row in rows:
        counts = counted(row["rung"], row["config"])
        ours = bound(counts, tuple(row["size"]), BOOK, row["cycles"] / row["milliseconds"] / 1e6)
        shares = busy(row, counts)
        busiest = max(shares, key=shares.get)
        if ours.binding == busiest:
            right += 1
            continue
        stall = max((n, reason) for reason, n in row["stalls"].items() if reason != "selected")
        wrong.append(
            f"{row['rung']}: the model says {ours.binding} ({ours.ms / row['milliseconds']:.0%} of the time), "
            f"Nsight Compute {busiest} "
            f"({shares[busiest]:.0%}); longest stall {stall[1]}, {stall[0]} clocks"
        )
    return Verdict(
        f"the binding resource is Nsight Compute's busiest in {BINDING} of 27 rungs",
        f"{right} of {len(rows)}",
        right >= BINDING,
        tuple(wrong),
    )


def directions() -> Verdict:
    """The direction of recorded changes of one thing."""
    found = list(pairs())
    hits = sum(pair.hit for pair in found)
    factor = sum(0.5 <= (p.predicted - 1) / (p.measured - 1) <= 2 for p in found)
    share = hits / len(found) if found else 0
    misses = tuple(
        f"{p.first.rung} {p.change}: predicted x{p.predicted:.3f}, measured x{p.measured:.3f}"
        for p in found
        if not p.hit
    )
    words = f"{hits} of {len(found)}, {share:.1%}; size within a factor of two in {factor}"
    return Verdict(
        f"{DIRECTION:.0%} of at least {PAIRS} pairs have the predicted direction",
        words,
        len(found) >= PAIRS and share >= DIRECTION,
        misses,
    )


def foretold() -> Verdict:
    """The direction of changes whose ratio was written down before anybody timed them, by the model of that day."""
    found = [(said, b.ms / a.ms, a, b) for said, a, b in ratios() if different(a, b)]
    right = [(said - 1) * (ratio - 1) > 0 for said, ratio, *_ in found]
    misses = tuple(
        f"{a.rung} {a.size[0]} to {b.rung} {b.name}: predicted x{said:.3f}, measured x{ratio:.3f}"
        for hit, (said, ratio, a, b) in zip(right, found, strict=True)
        if not hit
    )
    return Verdict(
        f"{DIRECTION:.0%} of the changes predicted before they were timed have the predicted direction",
        f"{sum(right)} of {len(found)}, by the model of that day",
        bool(found) and sum(right) >= DIRECTION * len(found),
        misses,
        of_today=False,
    )


def errors() -> list[Verdict]:
    """The prediction's error: of all rows whose clock is known, and of sizes whose predictions were written before
    anybody timed them.
    """
    every = [
        _error(predict(counts, row.size, row.gpu, clock(row)).ms, row)
        for row, counts in timed()
        if clock(row) is not None
    ]
    held = [_error(ms, row) for ms, row in apart()]
    return [_verdict("", every, ERROR), _verdict(" of sizes held apart", held, APART)]


def _error(ms: float, row: Timed) -> tuple[float, str]:
    said = f"{row.gpu} {row.rung} {row.size} {row.output}: predicted {ms:.4f}, measured {row.ms:.4f} ms"
    return abs(ms / row.ms - 1), said


def _verdict(which: str, found: list[tuple[float, str]], most: float) -> Verdict:
    if not found:
        return Verdict(f"the prediction{which}", "nobody has timed them", False)
    middle = median(error for error, _ in found)
    worst = tuple(f"{error:.0%} {said}" for error, said in sorted(found, reverse=True)[:20])
    return Verdict(
        f"the median error of the prediction{which} is at most {most:.0%}",
        f"{middle:.1%} of {len(found)} rows",
        middle <= most,
        worst,
    )
