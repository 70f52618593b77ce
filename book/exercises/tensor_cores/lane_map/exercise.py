"""Who holds what."""

from collections.abc import Callable
from numbers import Integral

import numpy as np

from book.exercises.exercise import Exercise
from book.exercises.mma_fragment import a_element

MAP_SLIPS: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "Row and column are the other way round.": lambda lane, half: a_element(lane, half)[::-1],
    "Registers 1 and 2 are the other way round: register 1 is eight rows down, register 2 eight columns on.": (
        lambda lane, half: (
            lane // 4 + half // 4 * 8,
            2 * (lane % 4) + half % 2 + half // 2 % 2 * 8,
        )
    ),
    "lane / 4 and lane % 4 are the other way round: four neighbouring lanes share a row.": (
        lambda lane, half: (
            lane % 4 + half // 2 % 2 * 8,
            2 * (lane // 4) + half % 2 + half // 4 * 8,
        )
    ),
    "A register holds two neighbouring columns, so half 1 is one column on.": (
        lambda lane, half: (
            lane // 4 + half // 2 % 2 * 8,
            2 * (lane % 4) + half // 4 * 8,
        )
    ),
    "Lanes hold pairs: lane 1 begins at column 2, not at column 1.": (
        lambda lane, half: (
            lane // 4 + half // 2 % 2 * 8,
            lane % 4 + half % 2 + half // 4 * 8,
        )
    ),
    "Only the first register is right: where are the rows from 8 and the columns from 8?": (
        lambda lane, half: (lane // 4, 2 * (lane % 4) + half % 2)
    ),
}


def lane_map(element: Callable[[int, int], tuple[int, int]]) -> list[str]:
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
    for message, slip in MAP_SLIPS.items():
        if all(given[place] == slip(*place) for place in places):
            return [message]
    lane, half = wrong[0]
    mistakes = [
        f"{len(places) - len(wrong)} of {len(places)} are right; lane {lane}, half {half} is the first that is not"
    ]
    if told := _step_of_map(given):
        return [*mistakes, told]
    held = len(set(given.values()))
    if held != len(places):
        mistakes.append(f"{held} different elements are held: a 16 x 16 tile has 256")
    return mistakes


# One step from lane 0, half 0, and where it must lead.
MAP_STEPS = {
    (0, 1): "the other half of register 0 lies one column to the right of half 0",
    (0, 2): "register 1 begins eight rows below register 0, in the same column",
    (0, 4): "register 2 begins eight columns to the right of register 0, in the same row",
    (1, 0): "two columns to the right of what lane 0 holds, because a register holds two",
    (
        4,
        0,
    ): "the next row begins, because four lanes of two columns each hold the eight columns of a row",
}


def _step_of_map(given) -> str | None:
    """The first step from lane 0, half 0 that leads to a wrong element: what it must mean, and where it leads."""
    if given[0, 0] != (0, 0):
        return f"Lane 0 holds element (0, 0) in half 0, and this gives {given[0, 0]}."
    for place, meaning in MAP_STEPS.items():
        if given[place] != a_element(*place):
            lane, half = place
            return f"Lane {lane}, half {half}: {meaning}. This gives {given[place]}."
    return None


EXERCISE = Exercise.read(
    __file__,
    judge=lane_map,
    variable="element",
    twin=lambda run: a_element(13, 2)[0],
)
