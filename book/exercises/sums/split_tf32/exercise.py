"""Three products of TF32 for one of floats."""

from dataclasses import replace

import numpy as np

from book.exercises.exercise import GIVEN, Case, Exercise, Need
from book.exercises.launches import product


def tf32_products(rng) -> tuple[Case, ...]:
    """Products of floats, to more digits than one product of tf32 has."""
    sizes = (16, 8, 8), (32, 16, 24), (16, 24, 64)
    drawn = tuple(int(n * rng.integers(1, 5)) for n in (16, 8, 8))
    return tuple(
        replace(product(rng, size, (16, 8), (32,)), tolerance=2.0**-20) for size in (*sizes, drawn)
    )


def tf32(x, half: int = 0x1000) -> np.ndarray:
    """Rounded to 10 bits of mantissa, ties away from zero; cut off where half is 0."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(half)) & np.uint32(0xFFFFE000)).view(np.float32)


def _in_tf32(*pairs, cut=False, low=None):
    """The sum of these products, each "a" or "A" (what tf32 keeps, and what it loses) times "b" or "B".

    "X" is "B" with a lane's two registers swapped, "m" is "b" with the second register of "B".

    cut: high is not rounded. low: what stands for the rest, from x and high.
    """

    def guess(case):
        parts = {}
        for name, x in zip("ab", (case.product.A, case.product.B), strict=True):
            exact = x.astype(np.float32)
            high = tf32(exact, 0) if cut else tf32(exact)
            rest = tf32(low(exact, high)) if low else tf32(exact - high)
            parts |= {name: high.astype(float), name.upper(): rest.astype(float)}
        rows = np.arange(
            len(parts["b"])
        )  # of B: a lane's two registers hold rows that differ in bit 2
        parts["X"] = parts["B"][rows ^ 4]
        parts["m"] = np.where(rows[:, None] & 4, parts["B"], parts["b"])
        return sum(parts[a] @ parts[b] for a, b in pairs)

    return guess


TF32_SUSPECTS = {
    "The terms a * b_low and a_low * b are missing, or low is 0: 10 bits of mantissa are left of each number": _in_tf32("ab"),
    "What tf32 loses of B is nowhere: a * b_low is missing, or a and a_low are the other way round": _in_tf32("ab", "Ab"),
    "What tf32 loses of A is nowhere: a_low * b is missing, or b and b_low are the other way round": _in_tf32("ab", "aB"),
    "b_low[0] and b_low[1] are the other way round": _in_tf32("ab", "Ab", "aX"),
    "The product of what tf32 keeps is missing": _in_tf32("Ab", "aB"),
    "The product of what tf32 keeps is added twice": _in_tf32("ab", "ab", "Ab", "aB"),
    "The product of what tf32 keeps is added twice, and a_low * b is missing": _in_tf32("ab", "ab", "aB"),
    "low is x itself, rounded, and not what high loses: everything is added three times": _in_tf32("ab", "ab", "ab"),
    "One product takes b[0] with b_low[1]: both registers have to be of the same part of B": _in_tf32("ab", "Ab", "am"),
    "low has the wrong sign. It should be x - high": _in_tf32("ab", "Ab", "aB", low=lambda x, high: high - x),
    "high is x, not rounded. mma ignores the 13 low bits, and low, which should hold them, is 0": _in_tf32("ab", cut=True),
    "a_low * b is added twice, and a * b_low is missing": _in_tf32("ab", "Ab", "Ab"),
}  # fmt: skip

EXERCISE = Exercise.read(
    __file__,
    cases=tf32_products,
    at="M=16, N=24, K=64",
    needs=(Need("matrix multiplications of a warp", 72, "tensor cores multiply both parts"),),
    suspects=TF32_SUSPECTS,
    twin=lambda run: (
        run.count("matrix multiplications of a warp")
        // run.count("matrix multiplications of a warp", GIVEN)
    ),
)
