"""What Nsight Compute saw of the rungs, and what a long run does to the clock: recorded, with a label.

`measure.limits` measures and stores; here the numbers become tables and pictures that fit a page.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import figures
from measure.limits import WAITS, recorded_limits

COLUMNS = {
    "issue slots": "issue slots used, %",
    "FMA pipe": "FMA pipe, %",
    "tensor pipe": "tensor pipe, %",
    "shared memory": "shared-memory pipe, %",
    "L2": "L2, %",
}


@cache
def stored() -> dict:
    return recorded_limits()


def row(rung: str) -> Mapping:
    """What was counted for one rung. KeyError lists the rungs that were watched."""
    rows = {found["rung"]: found for found in stored()["rows"]}
    if rung not in rows:
        raise KeyError(f"{rung} was not watched; there are {', '.join(rows)}")
    return rows[rung]


def clock_ghz(rung: str) -> float:
    """The clock at which this rung ran while it was watched."""
    found = row(rung)
    return found["cycles"] / found["milliseconds"] / 1e6


def show(*rungs: str) -> None:
    """Prints how busy each part of the machine was, in % of what it could do, and the clock."""
    print(stored()["label"])
    widths = {name: max(len(name) + 2, 6) for name in COLUMNS}
    head = "".join(f"{name:>{width}}" for name, width in widths.items())
    print(f"{'% of what it can':17}{head}{'GHz':>6}")
    for rung in rungs:
        found = row(rung)
        cells = "".join(f"{found[metric]:{widths[name]}.0f}" for name, metric in COLUMNS.items())
        print(f"{rung:17}{cells}{clock_ghz(rung):6.2f}")


def waits(rung: str, least: float = 0.02):
    """What an average warp waits for between two of its instructions, as bars."""
    return wait_bars(rung, row(rung)["stalls"], stored(), least)


def wait_bars(name: str, stalls: Mapping[str, float | None], source: Mapping, least: float = 0.02):
    """The same of any kernel: `stalls` by Nsight Compute's reasons, `source` the file that holds them."""
    parts = {
        words: stalls[reason]
        for reason, words in WAITS.items()
        if (stalls.get(reason) or 0) >= least
    }
    parts = dict(sorted(parts.items(), key=lambda part: -part[1]))
    first = next(iter(parts))
    return figures.bars(
        parts,
        unit="",
        title=f"{name}: a warp mostly waits for {first}",
        caption="Warps that wait for this reason, for each instruction that a scheduler issues.",
        highlight=[first],
        machine=source["machine"],
        recorded=source["recorded"][:10],
    )


def wait_choice(rungs: Sequence[str], title: str):
    """`waits` of several rungs to flip through."""
    pages = {rung: waits(rung) for rung in rungs}
    return figures.Choice(pages, name="kernel", title=title, slider=False, start=len(pages) - 1)


def sustained() -> list[dict]:
    """One row for each watched program: TFLOP/s in bursts and without a pause, lowest clock, highest power."""
    rows = []
    for found in stored()["sustained"]:
        watched = [look for look in found["watched"] if look]
        rows.append(
            {
                "rung": found["rung"],
                "burst": found["burst_tflops"],
                "sustained": found["sustained_tflops"],
                "seconds": found["seconds"],
                "mhz": min(int(look["clocks.sm"]) for look in watched),
                "max_mhz": max(int(look["clocks.max.sm"]) for look in watched),
                "watts": max(float(look["power.draw"]) for look in watched),
                "limit": max(float(look["power.limit"]) for look in watched),
            }
        )
    return rows


def show_sustained() -> None:
    """Prints bursts beside long runs."""
    highest = max(found["max_mhz"] for found in sustained())
    print(f"{stored()['label']}; highest clock {highest} MHz")
    names = ("burst", "long run", "kept", "lowest MHz", "highest W", "limit W")
    head = {word: max(len(word) + 2, 8) for word in names}
    print(f"{'TFLOP/s':15}" + "".join(f"{word:>{width}}" for word, width in head.items()))
    for found in sustained():
        cells = (
            f"{found['burst']:.1f}",
            f"{found['sustained']:.1f}",
            f"{found['sustained'] / found['burst']:.0%}",
            f"{found['mhz']}",
            f"{found['watts']:.0f}",
            f"{found['limit']:.0f}",
        )
        print(f"{found['rung']:15}" + _aligned(cells, head.values()))


def _aligned(cells: Sequence[str], widths) -> str:
    return "".join(f"{c:>{width}}" for c, width in zip(cells, widths, strict=True))
