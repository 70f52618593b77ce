"""What Nsight Compute saw of the rungs, and what a long run does to the clock: recorded, with a label.

`measure.limits` measures and stores; here the numbers become tables and pictures that fit a page.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import figures
from book.cells import columns
from measure import provenance
from measure.limits import BUSY, STALLS, WAITS, recorded_limits

LEAST_WAIT = 0.02  # clocks: a shorter wait has no bar


@cache
def stored() -> dict:
    return recorded_limits()


def row(rung: str) -> Mapping:
    """What was counted for one rung. KeyError lists the rungs that were watched."""
    rows = {found["rung"]: found for found in stored()["rows"]}
    if rung not in rows:
        raise KeyError(f"{rung} was not watched; there are {', '.join(rows)}")
    return rows[rung]


def label(rungs: Sequence[str]) -> str:
    """Where and when these rungs were watched."""
    return provenance.label(stored(), [row(rung) for rung in rungs])


def clock_ghz(rung: str) -> float:
    """The clock at which this rung ran while it was watched."""
    found = row(rung)
    return found["cycles"] / found["milliseconds"] / 1e6


def show(*rungs: str, title: str = "") -> None:
    """Shows how busy each part of the machine was, in % of what it could do, and the clock."""
    rows = []
    for rung in rungs:
        found = row(rung)
        busy = [f"{found[metric]:.0f}%" for metric in BUSY.values()]
        rows.append([rung, *busy, f"{clock_ghz(rung):.2f}"])
    columns.show(
        dict.fromkeys(("", *BUSY, "GHz"), ""),
        rows,
        title=title,
        caption=f"Per cent of what each part of the machine can do; {label(rungs)}.",
    )


def waits(rung: str):
    """What an average warp waits for between two of its instructions, as bars."""
    source = {**stored(), **row(rung)}  # a row that was watched again has a date of its own
    stalls = source["stalls"]
    parts = {
        words: stalls[reason]
        for reason, words in WAITS.items()
        if (stalls.get(reason) or 0) >= LEAST_WAIT
    }
    parts = dict(sorted(parts.items(), key=lambda part: -part[1]))
    first = next(iter(parts))
    return figures.bars(
        parts,
        unit="",
        title=f"{rung}: a warp waits longest for {first}",
        caption="Clocks that a warp waits for this reason, on average, between two of its own instructions.",
        highlight=[first],
        machine=source["machine"],
        recorded=source["recorded"][:10],
    )


def wait_choice(rungs: Sequence[str], title: str):
    """`waits` of several rungs to flip through."""
    pages = {rung: waits(rung) for rung in rungs}
    return figures.Choice(pages, name="kernel", title=title, slider=False, start=len(pages) - 1)


def per_multiply_add(rung: str, reason: str) -> float:
    """Clocks that a warp spends for this reason per multiply-add. KeyError for a reason the profiler does not have."""
    found = row(rung)
    m, n, k = found["size"]
    return found["stalls"][reason] * found["instructions"] / (m * n * k / 32)


def stalls(rungs: Sequence[str], *reasons: str) -> None:
    """Shows these reasons and the sum of all, for each rung."""
    rows = []
    for rung in rungs:
        every = sum(per_multiply_add(rung, reason) for reason in row(rung)["stalls"])
        each = [f"{per_multiply_add(rung, reason):.2f}" for reason in reasons]
        rows.append([rung, *each, f"{every:.2f}"])
    heads = {"": "", **{STALLS[r].name: STALLS[r].means for r in reasons}}
    heads["all"] = "all reasons together, those not shown here included"
    columns.show(
        heads,
        rows,
        title="Clocks that a warp spends per multiply-add, by reason",
        caption=columns.sentence(label(rungs)),
    )


def show_sustained() -> None:
    """Shows bursts beside long runs: the long run's lowest clock, and the highest power in it."""
    rows, highest = [], 0
    for found in stored()["sustained"]:
        watched = [look for look in found["watched"] if look]
        burst, long = found["burst_tflops"], found["sustained_tflops"]
        highest = max(highest, *(int(look["clocks.max.sm"]) for look in watched))
        mhz = min(round(float(look["clocks.sm"])) for look in watched)
        watts, limit = (
            max(float(look[key]) for look in watched) for key in ("power.draw", "power.limit")
        )
        speeds = [f"{burst:.1f}", f"{long:.1f}", f"{long / burst:.0%}"]
        rows.append([found["rung"], *speeds, mhz, f"{watts:.0f}", f"{limit:.0f}"])
    heads = {
        "": "",
        "burst": "TFLOP/s in bursts of 20 ms after a rest, as the ladder is timed",
        "long run": "TFLOP/s of a run without a pause",
        "kept": "the long run's speed as a share of the burst's",
        "MHz, long run": f"the clock of the SMs in the long run's second half, on average; the highest possible is {highest}",
        "highest W": "the highest power that the card drew in that half",
        "limit W": "the power limit, at which the card lowers its clock",
    }
    columns.show(
        heads,
        rows,
        title="TFLOP/s in bursts, and in a run of two seconds",
        caption=columns.sentence(provenance.label(stored(), stored()["sustained"])),
    )
