"""Tuning in a chapter: a small part of a rung's space tried here, and the whole of it as recorded.

A setting is a row as in `results/tune-*.json`: "macros", "registers", "shared_bytes", "blocks_per_sm",
"occupancy", "ms", "tflops" (both None where it was not timed) and "dropped", which says why not.
"""

import contextlib
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import ceil

import figures
import kernels
import measure
from book.cells import columns
from kernels.occupancy import occupancy
from kernels.shapes import H100_SMS
from measure import provenance
from measure.candidates import Candidate
from measure.tune import tune


@cache
def recorded() -> dict:
    """`results/tune-*.json`. FileNotFoundError where nothing was recorded."""
    return provenance.load("tune")


def label() -> str:
    return provenance.label(recorded())


def settings(rung: str, timed: bool = True) -> list[dict]:
    """The recorded settings of a rung, fastest first; those that were not timed last, if asked for."""
    rows = [_complete(row) for row in recorded()["rows"] if row["rung"] == rung]
    rows = [_resident(row) for row in rows if row["ms"] or not timed]
    return sorted(rows, key=lambda row: row["ms"] or float("inf"))


def _resident(row: dict) -> dict:
    """The row with the occupancy that `kernels.occupancy` computes now, whatever it said when it was recorded."""
    if not row.get("registers"):
        return row
    arch = recorded()["machine"]["arch"]
    held = occupancy(arch, row["threads"], row["registers"], row["shared_bytes"])
    return {**row, "blocks_per_sm": held.blocks, "occupancy": held.fraction}


def _complete(row: dict) -> dict:
    """The row with the macros that were not searched when it was recorded, at their row's default."""
    defaults = kernels.RUNGS[row["rung"]].macros if row["rung"] in kernels.RUNGS else {}
    return {**row, "macros": {**defaults, **row["macros"]}}


def here(rung: str, fixed: Mapping[str, int], size: int = 4096) -> None:
    """Tries the part of a rung's space that `fixed` leaves, on this machine, and shows what became of each.

    With a GPU it times them (and does not remember the winner: it saw a part only); without, it
    compiles for an H100 and orders by occupancy.
    """
    arch = None if kernels.gpu() else 90
    with contextlib.redirect_stderr(io.StringIO()):  # no progress bar in a page
        tried = tune(rung, size, arch=arch, fixed=fixed, jobs=2, show=False, remember=False)
    where = f"Timed on {kernels.gpu().name}" if kernels.gpu() else "No GPU here: not timed"
    free = [name for name in kernels.find(rung).space if name not in fixed]
    rows = [
        [*(one.macros[name] for name in free), *_outcome(one, kernels.find(rung).entry)]
        for one in tried
    ]
    columns.show(
        dict.fromkeys((*free, *SETTING, "dropped"), ""),
        rows,
        caption=f"{rung} with {', '.join(f'{n} = {v}' for n, v in fixed.items())}. {where}.",
    )


SETTING = ("registers", "shared KiB", "occupancy", "TFLOP/s")


def _outcome(tried: Candidate, entry: str) -> list:
    registers = tried.build.reports[entry].registers if tried.build else "-"
    size = f"{tried.shared_bytes / 1024:.0f}"
    if tried.dropped:
        return [registers, size, "", "", _reason(tried.dropped)]
    speed = f"{tried.tflops:.1f}" if tried.tflops else "-"
    return [registers, size, f"{tried.occupancy.fraction:.0%}", speed, ""]


def show(rows: Sequence[Mapping], count: int = 5) -> None:
    """Shows the first settings: macros, registers, shared bytes, occupancy, TFLOP/s."""
    names = [name for name in rows[0]["macros"] if name not in ("HALF_OUTPUT", "BLOCKS")]
    lines = [
        [
            *(row["macros"][name] for name in names),
            row["registers"],
            f"{row['shared_bytes'] / 1024:.0f}",
            f"{row['occupancy']:.0%}",
            f"{row['tflops']:.1f}" if row["tflops"] else "",
        ]
        for row in rows[:count]
    ]
    columns.show(dict.fromkeys((*names, *SETTING), ""), lines, caption=columns.sentence(label()))


def why_dropped(rung: str) -> Counter:
    """Reasons for which recorded settings were not timed, and how often."""
    return Counter(
        "timed" if row["ms"] else _reason(row["dropped"]) for row in settings(rung, timed=False)
    )


def _reason(dropped: str) -> str:
    """Why a setting was dropped, in words without numbers."""
    if "shared memory" in dropped:
        return "too much shared memory"
    if "spill" in dropped:
        return "registers spill"
    return dropped.split(":")[0]


def by(rows: Sequence[Mapping], key: str | Callable[[Mapping], object]) -> dict:
    """{value: [TFLOP/s of the settings that have it]}; a key is a macro or a function of the row."""
    pick = key if callable(key) else lambda row: row["macros"][key]
    found: dict = {}
    for row in sorted(rows, key=lambda row: (isinstance(pick(row), str), pick(row))):
        found.setdefault(pick(row), []).append(row["tflops"])
    return found


def strips(rung: str, name: str, key=None):
    """The recorded settings of a rung as dots, one row for each value of a macro (or of `key`)."""
    stored = recorded()
    return figures.strips(
        by(settings(rung), key or name),
        name,
        machine=stored["machine"],
        recorded=stored["recorded"][:10],
    )


def tile(row: Mapping) -> str:
    return f"{row['macros']['BM']}x{row['macros']['BN']}"


def last_round(size: int, bm: int, bn: int) -> float:
    """How much of the machine an average round of tiles uses: 1 when all blocks always have one."""
    tiles = ceil(size / bm) * ceil(size / bn)
    return tiles / (ceil(tiles / H100_SMS) * H100_SMS)


def chosen(rung: str) -> list[Mapping]:
    """The recorded rows of `results/` for a rung, one for each size, with the setting that was used."""
    rows = measure.recorded().select(rung, output="float32")
    return sorted(rows, key=lambda row: row["m"])
