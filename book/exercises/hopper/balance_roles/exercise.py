"""Balance the registers of two roles."""

import numpy as np

from book.exercises.exercise import Exercise
from kernels.shapes import ceil_div

LEAST, UNIT = 24, 8


def best_share(launched: int, consumers: int, producer: int) -> tuple[int, int]:
    """Registers per thread of the producer and of each consumer: as few and as many as can be."""
    small = max(LEAST, ceil_div(producer, UNIT) * UNIT)
    return small, (launched * (consumers + 1) - small) // consumers // UNIT * UNIT


def shared_registers(share, rng) -> list[str]:
    """Compare `share(launched, consumers, producer)` with the best that setmaxnreg allows; say which rule is broken."""
    asked = [(168, 2, 40), (168, 2, 24), (160, 2, 40), (128, 3, 30), (128, 1, 13)]
    asked += [
        (8 * int(rng.integers(12, 22 - 5 * (c != 2))), c, int(rng.integers(10, 57)))
        for c in (1, 2, 3, 2)
    ]
    for launched, consumers, producer in asked:
        what = f"share({launched}, {consumers}, {producer})"
        found = share(launched, consumers, producer)
        pair = isinstance(found, tuple | list) and len(found) == 2
        if not pair or not all(isinstance(n, int | np.integer) for n in found):
            more = "; / gives a float, // an integer" if pair else ""
            return [
                f"{what} gives {found!r}: the answer is two integers, the producer's and a consumer's{more}"
            ]
        if said := _bad_share(tuple(map(int, found)), launched, consumers, producer):
            return [f"{what} gives {tuple(map(int, found))}. {said}."]
    return []


def _bad_share(found, launched: int, consumers: int, producer: int) -> str:
    small, large = found
    right = best_share(launched, consumers, producer)
    if found == right:
        return ""
    if found == right[::-1]:
        return "The two are the other way round: the producer's number comes first"
    held, there = small + consumers * large, launched * (consumers + 1)
    sums = f"{small} + {consumers} x {large} = {held}"
    if small == right[0] and held > there:
        return (
            f"{sums} per lane of the {consumers + 1} warpgroups, and the block was given {consumers + 1} x {launched} = {there} "
            "at launch: the consumers would wait for ever"
        )
    for name, number in (("producer", small), ("consumers", large)):
        if number % UNIT:
            return f"{number} for the {name} is no multiple of {UNIT}, in which registers are handed out"
        if not LEAST <= number <= 256:
            return f"setmaxnreg takes from {LEAST} to 256, not {number}"
    if small < producer:
        return f"The producer's code needs {producer} registers, so {small} are too few"
    if small > right[0]:
        return f"The producer needs no more than {right[0]}: {producer}, rounded up to a multiple of {UNIT}, and {LEAST} at least"
    return f"{sums} of {there}: there is room for {right[1]} in each consumer"


EXERCISE = Exercise.read(
    __file__,
    judge=shared_registers,
    variable="share",
    twin=lambda run: run.python()(168, 2, 40)[1],
)
