"""A first kernel, and its guard."""

import numpy as np

from book.exercises.exercise import Case, Exercise
from book.exercises.launches import EPSILON
from book.exercises.words import where
from kernels.shapes import ceil_div


def axpy(rng) -> tuple[Case, ...]:
    cases = []
    for n in (512, 1000, 1, int(rng.integers(2, 3000))):
        x, y = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
        a = np.float32(rng.uniform(2, 3))
        cases.append(
            Case(
                f"n={n}", (x, y, np.int32(n), a), 1, a * x.astype(float) + y, (ceil_div(n, 128),), (128,),
                tolerance=2 * EPSILON, scale=np.abs(a * x) + np.abs(y),
                special="the last block has threads without an element" if n % 128 else "",
            )
        )  # fmt: skip
    return tuple(cases)


def _of(change):
    """A suspect from what y would be, a function of x, y and a."""
    return lambda case: change(case.args[0], case.args[1], case.args[3])


SUSPECTS = {
    "The old y is not added": _of(lambda x, y, a: a * x),
    "x is not multiplied by a": _of(lambda x, y, a: x + y),
    "a is added to x, not multiplied by it": _of(lambda x, y, a: a + x + y),
    "The old y is multiplied by a too": _of(lambda x, y, a: a * (x + y)),
    "Only the first block's elements are changed: i must count on from block to block": _of(
        lambda x, y, a: np.where(np.arange(len(x)) < 128, a * x + y, y)
    ),
    "x and y are the wrong way round: y is multiplied by a": _of(lambda x, y, a: a * y + x),
    "The old y is added twice": _of(lambda x, y, a: a * x + 2 * y),
    "The old y is subtracted, not added": _of(lambda x, y, a: a * x - y),
    "The last element is left out": _of(
        lambda x, y, a: np.where(np.arange(len(x)) < len(x) - 1, a * x + y, y)
    ),
}


def kept(case: Case, output) -> str | None:
    """Of y = a * x + y: the elements that still are what they were, where the others are right."""
    old = case.args[1]
    same = output == old
    close = np.abs(output - case.expected) <= 20 * case.tolerance * case.scale
    if not same.any() or not (same | close).all():
        return None
    return (
        f"{where(same).capitalize()} not changed: no thread has them as its i, or the test keeps their thread from the work. "
        "The others are right."
    )


EXERCISE = Exercise.read(
    __file__,
    cases=axpy,
    suspects=SUSPECTS,
    decode=kept,
    twin=lambda run: (
        run(case=1).trace.blocks * 128 - sum(row.threads for row in run(case=1).trace.rows("st"))
    ),
)
