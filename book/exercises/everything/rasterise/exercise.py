"""Visit the tiles in bands."""

import numpy as np

from book.exercises.exercise import Case, Exercise
from book.exercises.launches import poisoned


def in_bands(tiles_m, tiles_n, group=4) -> np.ndarray:
    """(tiles_m, tiles_n) int32: the block that visits each tile."""
    m, n = (index.reshape(-1) for index in np.indices((tiles_m, tiles_n)))
    order = np.empty(tiles_m * tiles_n, np.int32)
    order[np.lexsort((m, n, m // group))] = np.arange(order.size)
    return order.reshape(tiles_m, tiles_n)


def orders(rng):
    drawn = tuple(map(int, rng.integers(1, 20, 2)))
    cases = []
    for m, n in ((8, 6), (10, 3), (3, 5), (1, 7), (9, 1), (22, 3), drawn):
        args = poisoned((m, n), np.int32), np.int32(m), np.int32(n)
        last = f"the last band has {m % 4} row{'s' if m % 4 > 1 else ''} of tiles, not 4"
        special = last if m % 4 else ""
        label = f"{m} x {n} tiles"
        cases.append(Case(label, args, 0, in_bands(m, n), (m * n,), (32,), special=special))
    return tuple(cases)


def first_tile_astray(case, out) -> str | None:
    visits = {int(block): tuple(map(int, at)) for at, block in np.ndenumerate(out)}
    for block in range(out.size):
        right = tuple(int(i) for i in np.argwhere(case.expected == block)[0])
        if block in visits and visits[block] != right:
            return (
                f"Block {block} visits tile {visits[block]} of {out.shape[0]} x {out.shape[1]}, and should visit tile {right}: "
                "in each band, m counts up first, and then n."
            )
    return None


EXERCISE = Exercise.read(
    __file__,
    cases=orders,
    suspects={
        "This is row-major order: no bands": lambda case: np.arange(case.expected.size).reshape(
            case.expected.shape
        ),
        "This is column-major order over the whole of C: no bands": lambda case: (
            np.arange(case.expected.size).reshape(case.expected.shape[::-1]).T
        ),
    },
    decode=first_tile_astray,
    outside="A band has GROUP rows of tiles, the last one as many as are left. So for every block m has to be below "
    "tiles_m and n below tiles_n, which is so when the place in the band is divided by the band's own number of rows.",
    twin=lambda run: int(run(case=1).output[5, 1]),
)
