"""Find a race on global memory."""

import numpy as np

from book.exercises.exercise import GIVEN, Case, Exercise
from kernels.shapes import ceil_div


def reversals(rng) -> tuple[Case, ...]:
    cases = []
    for n in (512, 1000, 129, 1, 2, int(rng.integers(3, 2000))):
        x = rng.standard_normal(n).astype(np.float32)
        cases.append(
            Case(
                f"n={n}", (x, np.int32(n)), 0, x[::-1].copy(), (ceil_div(n, 128),), (128,),
                special="n is odd: the middle element has no partner" if n % 2 else
                "the last block has threads without an element" if n % 128 else "",
            )
        )  # fmt: skip
    return tuple(cases)


def kept_twice(case, out) -> str | None:
    """The first pair of an array that should be reversed that holds one value twice, where most pairs do."""
    old, there = case.args[0], case.args[0][::-1]
    twice = (out == out[::-1]) & (old != there) & ((out == old) | (out == there))
    if twice.sum() <= 0.9 * len(out) - 1:
        return None
    i = int(np.flatnonzero(twice)[0])
    kept, lost = (i, len(out) - 1 - i) if out[i] == old[i] else (len(out) - 1 - i, i)
    return (
        f"x[{i}] and x[{len(out) - 1 - i}] both hold the old x[{kept}], and the old x[{lost}] is lost: one of the two is "
        "overwritten before it is read, or only one is stored. A swap keeps one of them in a variable, and stores both."
    )


EXERCISE = Exercise.read(
    __file__,
    cases=reversals,
    decode=kept_twice,
    twin=lambda run: (
        run.lane("ld.global", 100 % 32, warp=100 // 32, buffer="argument 0", version=GIVEN, case=1)
        // 4
        // 128
    ),
)
