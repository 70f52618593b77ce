"""Keep the digits of a sum."""

import numpy as np

from book.exercises.exercise import GIVEN, Case, Exercise
from book.exercises.launches import EPSILON, poisoned
from kernels.shapes import ceil_div


def dot_products(rng) -> tuple[Case, ...]:
    """Row-wise dot products of halves, to the accuracy of a float sum."""
    sizes = (
        (64, 256),
        (70, 1000),
        (3, 5),
        (261, 7),
        tuple(map(int, rng.integers((1, 100), (130, 600)))),
    )
    cases = []
    for M, K in sizes:
        A, B = (rng.uniform(0.5, 1.5, (M, K)).astype(np.float16) for _ in range(2))
        wide = A.astype(float) * B.astype(float)
        cases.append(
            Case(
                f"M={M}, K={K}", (A, B, poisoned((M,)), np.int32(M), np.int32(K)), 2, wide.sum(1),
                (ceil_div(M, 64),), (64,), tolerance=3 * K**0.5 * EPSILON, scale=wide.sum(1),
                special="" if M % 64 == 0 else f"M={M} is no multiple of 64, and K is {K}, not 256",
            )
        )  # fmt: skip
    return tuple(cases)


def _in_half(kind, fused: bool = False):
    """The sums of this kind, one term after the other: of products rounded to half, or of exact ones (`fused`)."""

    def guess(case):
        A, B = case.args[:2]
        total = np.zeros(len(A), kind)
        for a, b in zip(A.T, B.T, strict=True):
            if fused:
                total = (total.astype(float) + a.astype(float) * b.astype(float)).astype(kind)
            else:
                total = total + (a * b).astype(kind)
        return total.astype(float)

    return guess


def _b_down_a_column(case):
    A, B = (x.astype(float) for x in case.args[:2])
    return (A * B.reshape(A.shape[::-1]).T).sum(1)


PRECISION_SUSPECTS = {
    "B is read at k * M + row, as if it were stored column by column": _b_down_a_column,
    "Products and sums are both rounded to half: 11 significant bits": _in_half(np.float16),
    "The sum is kept in half (fused multiply-add): each step rounds it to 11 significant bits": (
        _in_half(np.float16, fused=True)
    ),
    "Each product is rounded to half before it is added": _in_half(np.float32),
    "The sum is rounded to half at its end": lambda case: case.expected.astype(np.float16).astype(float),
}  # fmt: skip


def twin(run) -> int:
    ones = np.ones((1, 4096), np.float16)
    args = (ones, ones, poisoned((1,)), np.int32(1), np.int32(4096))
    case = Case("4096 ones", args, 2, np.ones(1), (1,), (64,))
    return int(run.launch(case, GIVEN).output[0])


EXERCISE = Exercise.read(
    __file__,
    cases=dot_products,
    suspects=PRECISION_SUSPECTS,
    twin=twin,
)
