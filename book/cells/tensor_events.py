"""Who does what in `tcgen05_pipelined`, in the order in which the emulator ran it."""

from dataclasses import dataclass

import numpy as np

from book.cells import role_events, variants
from figures.timeline import bar

RUNG = "tcgen05_pipelined"
# Lines that are put behind others of the kernel.
MARKS = (
    ("// the first time round this returns at once\n",
     'if (blockIdx.x == 0) printf("copies %d %d %d %u\\n", tile, k_step / BK, stage, phase ^ 1);\n'),
    ("barrier_wait(full + stage * 8, phase);\n",
     'if (blockIdx.x == 0) printf("multiplies %d %d %d %u\\n", tile, k_step / BK, stage, phase);\n'),
    ("// these columns are free again\n",
     'if (blockIdx.x == 0) printf("begins %d -1 %d %u\\n", tile, set, set_phase ^ 1);\n'),
    ("barrier_wait(summed + set * 8, set_phase);\n",
     'if (blockIdx.x == 0 && threadIdx.x == 0) printf("stores %d -1 %d %u\\n", tile, set, set_phase);\n'),
)  # fmt: skip
ROLES = {"copies": 0, "begins": 1, "multiplies": 1, "stores": 2}


@dataclass(frozen=True)
class Event:
    """what: "copies", "begins", "multiplies" or "stores". place: the stage or, of "begins" and "stores", the set of sums.
    step: the k-step, -1 where there is none. parity: waited for.
    """

    what: str
    tile: int
    step: int
    place: int
    parity: int


def events(tiles: int = 3, steps: int = 2, stages: int = 2) -> list[Event]:
    """The events of a block that computes `tiles` tiles of 128 x 64, of so many k-steps each, in the emulator's order."""
    changes = [(line, line + mark) for line, mark in MARKS]
    macros = {"BN": 64, "STAGES": stages, "BLOCKS": 1}
    A, B = np.ones((128, 64 * steps), np.float16), np.ones((64 * steps, 64 * tiles), np.float16)
    lines = variants.heard(RUNG, "marked", changes, A, B, macros, "100a")
    return [Event(what, *map(int, numbers)) for what, *numbers in lines]


def show(found: list[Event]) -> None:
    """Shows events as a table, one line for each, a column for each role."""
    roles = {
        "copier": "the thread that asks for copies, after it has waited for the stage to be empty",
        "multiplier": "the thread that starts products, after it has waited for the stage, or for the set of sums",
        "storers": "the four warps that store, after they have waited for the set of sums",
    }
    told = []
    for event in found:
        at, waited = f"tile {event.tile}", f"(parity {event.parity})"
        words = {
            "copies": f"{at}, k-step {event.step} into stage {event.place} {waited}",
            "begins": f"{at}: set {event.place} is free {waited}",
            "multiplies": f"{at}, k-step {event.step} in stage {event.place} {waited}",
            "stores": f"{at} from set {event.place} {waited}",
        }[event.what]
        told.append((ROLES[event.what], words))
    role_events.show_roles(roles, told)


def tiles_over_time(sets: int, products: float, store: float, tiles: int = 4) -> list[dict]:
    """The bars of `figures.timeline` for tiles whose sums stay in `sets` sets: a model in clocks, without copies and start."""
    bars, free, tensor, storers = [], [0.0] * sets, 0.0, 0.0
    for tile in range(tiles):
        at = tile % sets
        begins = max(tensor, free[at])
        tensor = begins + products
        begins_store = max(tensor, storers)
        storers = free[at] = begins_store + store
        bars.append(bar("tensor cores", begins, tensor, "compute"))
        bars.append(bar("storers", begins_store, storers, "store"))
    return bars
