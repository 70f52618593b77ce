"""Three products of TF32 for one of floats."""

from dataclasses import replace

import numpy as np

from book.exercises.exercise import GIVEN, Case, Exercise, Need
from book.exercises.launches import last_drawn, poisoned, product


def _exact(number: int):
    """The same launch with an operand that tf32 holds exactly, so that nothing is left for its `low`."""

    def change(case: Case) -> Case:
        args = list(case.args)
        for i in (0, 1) if number == 2 else (number,):
            args[i] = np.rint(64 * args[i]).astype(np.float32) / 64
        wide = replace(case.product, A=args[0].astype(float), B=args[1].astype(float))
        args[case.output] = poisoned(case.expected.shape)
        magnitude = np.abs(wide.A) @ np.abs(wide.B)
        return replace(case, args=tuple(args), expected=wide.C, scale=magnitude, product=wide)

    return change


A_EXACT, B_EXACT, BOTH_EXACT = map(_exact, range(3))


TF32_SETTINGS = (
    (
        "It is right where tf32 holds all of A, and where it holds all of B it is not: the product with a_low is at fault.",
        (A_EXACT,), (B_EXACT,),
    ),
    (
        "It is right where tf32 holds all of B, and where it holds all of A it is not: the product with b_low is at fault.",
        (B_EXACT,), (A_EXACT,),
    ),
    (
        "It is right where tf32 holds all of A and B, so the product of a and b is right: `low` is wrong, or both "
        "products with it.",
        (BOTH_EXACT,), (A_EXACT, B_EXACT),
    ),
)  # fmt: skip


def tf32_products(rng) -> tuple[Case, ...]:
    """Products of floats, to more digits than one product of tf32 has."""
    sizes = (16, 8, 8), (32, 16, 24), (16, 24, 64)
    drawn = tuple(int(n * rng.integers(1, 5)) for n in (16, 8, 8))
    return tuple(
        replace(product(rng, size, (16, 8), (32,)), tolerance=2.0**-20) for size in (*sizes, drawn)
    )


def tf32(x) -> np.ndarray:
    """Rounded to 10 bits of mantissa, ties away from zero."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def _of_registers(change):
    """A suspect from the right product: change(row, column) gives where each element is taken from."""
    return lambda case: case.expected[change(*np.indices(case.expected.shape))]


def _in_tf32(*pairs, cut=False, low=None):
    """The sum of these products, each "a" or "A" (what tf32 keeps, and what it loses) times "b" or "B".

    With registers of B swapped these are "x" and "X", with the first one for both "p" and "P".

    cut: high is not rounded. low: what stands for the rest, from x and high.
    """

    def guess(case):
        parts = {}
        for name, x in zip("ab", (case.product.A, case.product.B), strict=True):
            exact = x.astype(np.float32)
            high = (
                (exact.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
                if cut
                else tf32(exact)
            )
            rest = tf32(low(exact, high)) if low else tf32(exact - high)
            parts |= {name: high.astype(float), name.upper(): rest.astype(float)}
        turned = np.arange(len(parts["b"])) ^ 4  # a lane's two registers of B, the other way round
        parts |= {"x": parts["b"][turned], "X": parts["B"][turned]}
        second = (np.arange(len(turned)) & 4 > 0)[
            :, None
        ]  # the rows of a lane's second register of B
        parts |= {"m": np.where(second, parts["B"], parts["b"])}
        parts |= {"n": np.where(second, parts["b"], parts["B"])}
        first = np.arange(len(turned)) & ~4  # the first register for both
        parts |= {"p": parts["b"][first], "P": parts["B"][first]}
        return sum(parts[a] @ parts[b] for a, b in pairs)

    return guess


TF32_SUSPECTS = {
    "The terms a * b_low and a_low * b are missing, or low is 0: 10 bits of mantissa are left of each number": _in_tf32("ab"),
    "What tf32 loses of B is nowhere: a * b_low is missing, or a and a_low are the other way round": _in_tf32("ab", "Ab"),
    "What tf32 loses of A is nowhere: a_low * b is missing, or b and b_low are the other way round": _in_tf32("ab", "aB"),
    "b_low[0] and b_low[1] are the other way round": _in_tf32("ab", "Ab", "aX"),
    "b[0] and b[1] are the other way round": _in_tf32("ax", "Ax", "aB"),
    "b[0] and b[1] are the other way round, and b_low[0] and b_low[1] too": _in_tf32("ax", "Ax", "aX"),
    "The product of what tf32 keeps is missing": _in_tf32("Ab", "aB"),
    "The product of what tf32 keeps is added twice": _in_tf32("ab", "ab", "Ab", "aB"),
    "The product of what tf32 keeps is added twice, and a * b_low is missing": _in_tf32("ab", "ab", "Ab"),
    "The product of what tf32 keeps is added twice, and a_low * b is missing": _in_tf32("ab", "ab", "aB"),
    "b[0] and b[1] are the other way round where a_low is multiplied": _in_tf32("ab", "Ax", "aB"),
    "b_low[0] is given twice: b_low[1] is the register of rows 4 to 7": _in_tf32("ab", "Ab", "aP"),
    "b[0] is given twice: b[1] is the register of rows 4 to 7": _in_tf32("ap", "Ap", "aB"),
    "low is x itself, rounded, and not what high loses: everything is added three times": _in_tf32("ab", "ab", "ab"),
    "One product takes b[0] with b_low[1]: both registers have to be of the same part of B": _in_tf32("ab", "Ab", "am"),
    "One product takes b_low[0] with b[1]: both registers have to be of the same part of B": _in_tf32("ab", "Ab", "an"),
    "low is x minus the bits of high taken as a whole number: __uint_as_float(high) gives the number that they stand for": (
        _in_tf32("ab", "Ab", "aB", low=lambda x, high: x - high.view(np.uint32).astype(np.float32))
    ),
    "low has the wrong sign. It should be x - high": _in_tf32("ab", "Ab", "aB", low=lambda x, high: high - x),
    "high is x, not rounded. mma ignores the 13 low bits, and low, which should hold them, is 0": _in_tf32("ab", cut=True),
    "acc[1] and acc[2] are stored at the other's place: acc[2] is eight rows down, acc[1] the next column": (
        _of_registers(lambda row, col: (row // 16 * 16 + row % 8 + col % 2 * 8, col // 2 * 2 + row // 8 % 2))
    ),
    "a_low * b is added twice, and a * b_low is missing": _in_tf32("ab", "Ab", "Ab"),
    "a * b_low is added twice, and a_low * b is missing": _in_tf32("ab", "aB", "aB"),
    "a * b_low is missing: only a_low is used, twice": _in_tf32("ab", "Ab", "AB"),
    "a_low * b is missing: only b_low is used, twice": _in_tf32("ab", "aB", "AB"),
}  # fmt: skip


EXERCISE = Exercise.read(
    __file__,
    cases=lambda rng: last_drawn(tf32_products(rng)),
    needs=(
        Need(
            "matrix multiplications of a warp",
            72,
            "M=16, N=24, K=64",
            "tensor cores multiply both parts",
        ),
    ),
    suspects=TF32_SUSPECTS,
    settings=TF32_SETTINGS,
    twin=lambda run: (
        run.count("matrix multiplications of a warp")
        // run.count("matrix multiplications of a warp", GIVEN)
    ),
)
