"""Who holds what."""

from collections.abc import Callable
from numbers import Integral

import numpy as np

from book.exercises.exercise import Exercise
from emulator.numbers.fragments import mma_a


def a_element(lane: int, half: int) -> tuple[int, int]:
    """(row, column) of A that half `half` (0-7) of a lane's four registers holds."""
    held = mma_a(16, 16, "f16")
    return int(held.rows[half, lane]), int(held.cols[half, lane])


def lane_map(element: Callable[[int, int], tuple[int, int]], _) -> list[str]:
    places = [(lane, half) for lane in range(32) for half in range(8)]
    given = {place: element(*place) for place in places}
    for (lane, half), found in given.items():
        pair = isinstance(found, tuple | list | np.ndarray) and len(found) == 2
        if not pair or not all(isinstance(i, Integral) for i in found):
            said = f"lane {lane}, half {half}: a row and a column are two integers, not {found!r}"
            return [said + ("; / gives a float, // an integer" if pair else "")]
    given = {place: tuple(map(int, found)) for place, found in given.items()}
    wrong = [place for place in places if given[place] != a_element(*place)]
    if not wrong:
        return []
    lane, half = wrong[0]
    right = len(places) - len(wrong)
    first = f"{right} of {len(places)} are right; lane {lane}, half {half} is the first that is not"
    return [first, *_step_of_map(given)]


# One step from lane 0, half 0, and where it must lead.
MAP_STEPS = {
    (0, 0): "it holds element (0, 0)",
    (0, 1): "the other half of register 0 lies one column to the right of half 0",
    (0, 2): "register 1 begins eight rows below register 0, in the same column",
    (0, 4): "register 2 begins eight columns to the right of register 0, in the same row",
    (1, 0): "two columns to the right of what lane 0 holds, because a register holds two",
    (4, 0): "the next row begins, because four lanes hold two columns each, so all eight of a row",
}


def _step_of_map(given) -> list[str]:
    """The first step from lane 0, half 0 that leads to a wrong element: what it must mean, and where it leads."""
    for place, meaning in MAP_STEPS.items():
        if given[place] != a_element(*place):
            lane, half = place
            return [f"Lane {lane}, half {half}: {meaning}. This gives {given[place]}."]
    return []


EXERCISE = Exercise.read(
    __file__,
    judge=lane_map,
    variable="element",
    twin=lambda run: a_element(13, 2)[0],
)
