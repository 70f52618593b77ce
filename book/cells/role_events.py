"""Who does what in `wgmma_pipelined`, in the order in which the emulator ran it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import figures
from book.cells import columns, variants
from figures.timeline import bar

RUNG = "wgmma_pipelined"
# Lines that are put behind others of the kernel; `who` is -1 for the producer.
MARKS = (
    ("// the first time round this returns at once\n", 'printf("-1 copies %d %d %u\\n", k_step / BK, stage, phase ^ 1);\n'),
    ("barrier_wait(full + stage * 8, phase);\n",
     'if (thread == 0) printf("%d multiplies %d %d %u\\n", warpgroup, k_step / BK, stage, phase);\n'),
    ("// the k-step before is done, so its stage may be filled again\n",
     'if (thread == 0 && k_step > 0) printf("%d releases %d %d -1\\n", warpgroup, k_step / BK - 1, last_stage);\n'),
)  # fmt: skip


@dataclass(frozen=True)
class Event:
    """who: -1 for the producer, else the consumer. what: "copies", "multiplies" or "releases". parity: waited for."""

    who: int
    what: str
    step: int
    stage: int
    parity: int


def events(steps: int = 4, stages: int = 2) -> list[Event]:
    """The first block's events, in the emulator's order, for a product of 128 x 64 and this many k-steps."""
    changes = [(line, line + mark) for line, mark in MARKS]
    macros = {"BM": 128, "BN": 64, "STAGES": stages}
    A, B = np.ones((128, 64 * steps), np.float16), np.ones((64 * steps, 64), np.float16)
    lines = variants.heard(RUNG, "marked", changes, A, B, macros, "90a")
    return [Event(int(who), what, *map(int, numbers)) for who, what, *numbers in lines]


def show(found: list[Event]) -> None:
    """Shows events as a table, one line for each, a column for each role."""
    roles = {
        "producer": "the thread that asks for copies, after it has waited for the stage to be empty",
        "consumer 0": "the warpgroup of rows 0 to 63, after it has waited for the stage to be full",
        "consumer 1": "the warpgroup of rows 64 to 127, likewise",
    }
    told = []
    for event in found:
        words = {
            "copies": f"k-step {event.step} into stage {event.stage} (waited for parity {event.parity})",
            "multiplies": f"k-step {event.step} in stage {event.stage} (waited for parity {event.parity})",
            "releases": f"releases stage {event.stage} (k-step {event.step})",
        }[event.what]
        told.append((event.who + 1, words))
    show_roles(roles, told)


def show_roles(roles: Mapping[str, str], told: Sequence[tuple[int, str]]) -> None:
    """Shows events, each (its role's number, words), as a table: one line for each, a column for each of the `roles`."""
    order = "the order in which the emulator ran them; what stands in different columns may also happen at the same time"
    rows = []
    for number, (role, words) in enumerate(told):
        cells = [""] * len(roles)
        cells[role] = words
        rows.append([number, *cells])
    columns.show({"": order, **roles}, rows)


def two_blocks():
    """A drawing of an SM with two blocks of `wgmma`, each of which copies, waits, multiplies and waits."""
    events = []
    for block, begin in enumerate((0, 2)):
        for turn in range(3):
            at = begin + 7 * turn
            events += [bar(f"block {block}: copies", at, at + 5, "load", turn)]
            events += [bar(f"block {block}: products", at + 5, at + 7, "compute", turn)]
    products = [one for one in events if one["kind"] == "compute"]
    events += [{**one, "row": "tensor cores"} for one in sorted(products, key=lambda e: e["start"])]
    return figures.timeline(
        events,
        unit="units of time",
        title="Two blocks on one SM: each fills some of the other's waiting",
        caption="A drawing, not a measurement: a copy takes 5 units, its products 2.",
        numbers="k-steps",
    )


def phases():
    """A drawing of one stage of the ring over three rounds: what uses it, and the phases of its two barriers."""
    events, before = [], 0
    for turn in range(3):
        asked, landed, read = 5 * turn, 5 * turn + 3, 5 * turn + 5
        events += [
            bar("copies into stage 0", asked, landed, "load", 2 * turn),
            bar("products from stage 0", landed, read, "compute", 2 * turn),
            bar("full: phase", before, landed, "barrier", turn),
            bar("empty: phase", asked, read, "barrier", turn),
        ]
        before = landed
    return figures.timeline(
        events,
        unit="units of time",
        title="A full phase ends when a tile has landed, an empty phase when it has been read",
        caption="A drawing, not a measurement, of a ring of two stages.",
        numbers="k-steps or phases",
    )
