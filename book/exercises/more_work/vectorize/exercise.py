"""Wide accesses where they are allowed."""

import numpy as np

from book.exercises.exercise import Exercise, Goal
from book.exercises.launches import mapping


def scale_rows(rng):
    alpha = np.float32(rng.uniform(1, 2))
    return tuple(
        mapping(
            rng, (M, N), (M, N), lambda x: alpha * x, (1, M), (64,),
            extra=(np.int32(M), np.int32(N), alpha), label=f"M={M}, N={N}",
            special=f"N={N} is no multiple of 4" if N % 4 else "N ends within a step of the block" if N % 256 else "",
        )
        for M, N in (
            (4, 512), (3, 300), (4, 301), (2, 130), (5, 3), tuple(map(int, rng.integers((2, 1), (7, 400)))),
        )
    )  # fmt: skip


def some_of_four(places):
    """The scaled matrix where only some elements of each float4 are multiplied, in rows that float4s fit."""

    def guess(case):
        X, N = case.args[0], case.expected.shape[1]
        if N % 4:
            return case.expected.astype(X.dtype)
        return np.where(np.isin(np.arange(N) % 4, places), case.expected, X)

    return guess


EXERCISE = Exercise.read(
    __file__,
    cases=scale_rows,
    goals=(Goal("global_requests", 32, "M=4, N=512"), Goal("global_requests", 18, "M=3, N=300")),
    suspects={
        "Alpha is missing": lambda case: case.args[0],
        "Alpha is missing where the accesses are wide": some_of_four(()),
        **{
            f"Only {words} of each float4 is multiplied by alpha": some_of_four(some)
            for words, some in (("one element", (0,)), ("three elements", (0, 1, 2)))
        },
    },
    outside="Of float4s: one at x + i holds elements i to i + 3 of the row, so i goes on in steps of 4 and ends at N. The index "
    "of a pointer to float4 counts float4s, and a row has N / 4 of them.",
    twin=lambda run: run.count("global_requests") // 4,
)
