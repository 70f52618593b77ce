"""Launches whose sums must be more exact than half or tf32, and the outputs that their usual mistakes give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .cases import ceil_div, poisoned, product
from .exercise import Case
from .ramp import EPSILON


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
                probe=_one_term_a_row,
            )
        )  # fmt: skip
    return tuple(cases)


def _one_term_a_row() -> Case:
    """Row k of A holds a 1 at place k and zeros elsewhere, B holds ones: the sum is how often term k is counted."""
    A, B = np.eye(64, dtype=np.float16), np.ones((64, 64), np.float16)
    args = (A, B, poisoned((64,)), np.int32(64), np.int32(64))
    return Case("one term a row", args, 2, np.ones(64), (1,), (64,))


def _in_half(products_in_half: bool, sums_in_half: bool, fused: bool = False):
    """The sums with products, sums or both rounded to half, one term after the other."""

    def guess(case):
        A, B = case.args[0], case.args[1]
        kind = np.float16 if sums_in_half else np.float32
        total = np.zeros(len(A), kind)
        for a, b in zip(A.T, B.T, strict=True):
            term = a * b if products_in_half else a.astype(np.float32) * b.astype(np.float32)
            if fused:
                total = (total.astype(float) + a.astype(float) * b.astype(float)).astype(kind)
            else:
                total = (
                    total + term.astype(kind) if sums_in_half else total + term.astype(np.float32)
                )
        return total.astype(float)

    return guess


def _down_a_column(number: int):
    """The sums if one operand is read at k * M + row."""

    def guess(case):
        A, B = (x.astype(float) for x in case.args[:2])
        turned = case.args[number].astype(float).reshape(A.shape[::-1]).T
        return (turned * B if number == 0 else A * turned).sum(1)

    return guess


PRECISION_SUSPECTS = {
    "A and B are added, not multiplied": lambda case: (
        case.args[0].astype(float) + case.args[1].astype(float)
    ).sum(1),
    "The sum of A is multiplied with the sum of B: each pair has to be multiplied before it is added": lambda case: (
        case.args[0].astype(float).sum(1) * case.args[1].astype(float).sum(1)
    ),
    "A is read at k * M + row, as if it were stored column by column": _down_a_column(0),
    "B is read at k * M + row, as if it were stored column by column": _down_a_column(1),
    "Products and sums are both rounded to half: 11 significant bits": _in_half(True, True),
    "The sum is kept in half (fused multiply-add): each step rounds it to 11 significant bits": (
        _in_half(False, True, fused=True)
    ),
    "The sum is kept in half: each step rounds it to 11 significant bits": _in_half(False, True),
    "Each product is rounded to half before it is added": _in_half(True, False),
    "The sum is rounded to half at its end": lambda case: case.expected.astype(np.float16).astype(float),
}  # fmt: skip


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
