"""A fused bias and GELU."""

import math

import numpy as np

from book.exercises.exercise import Case, Exercise, Goal
from book.exercises.launches import EPSILON, poisoned
from kernels.shapes import ceil_div


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x * math.sqrt(0.5)))


def layers(rng):
    cases = []
    drawn = (int(rng.integers(1, 40)), 4 * int(rng.integers(1, 20)), int(rng.integers(1, 40)))
    for M, N, K in ((32, 64, 8), (33, 36, 5), (5, 100, 16), drawn):
        A, B = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((M, K), (K, N)))
        bias = rng.uniform(-2, 2, N).astype(np.float32)
        args = (A, B, bias, poisoned((M, N)), np.int32(M), np.int32(N), np.int32(K))
        scale = np.abs(A.astype(float)) @ np.abs(B.astype(float)) + np.abs(bias) + 1
        cases.append(
            Case(
                f"M={M}, N={N}, K={K}", args, 3, gelu(A.astype(float) @ B + bias),
                (ceil_div(N, 32), ceil_div(M, 32)), (256,), tolerance=(K + 8) * EPSILON, scale=scale,
                special="" if M % 32 == N % 32 == 0 else "the tiles at the edges are not whole",
            )
        )  # fmt: skip
    return tuple(cases)


def with_bias_of_rows(c, bias):
    """gelu of the product and four numbers of the bias that begin at the row's, where the bias has so many."""
    row, col = np.indices(c.shape)
    return gelu(c + bias[(row // 4 * 4 + col % 4) % len(bias)])


def end_of_layer(end):
    """The output if the layer ended so: a function of the product and the bias."""

    def guess(case):
        A, B, bias = (x.astype(float) for x in case.args[:3])
        return end(A @ B, bias)

    return guess


EXERCISE = Exercise.read(
    __file__,
    cases=layers,
    goals=(Goal("global_requests", 672, "M=32, N=64, K=8"),),
    suspects={
        "The bias and gelu are missing: this is A @ B": end_of_layer(lambda c, bias: c),
        "gelu is missing: this is A @ B + bias": end_of_layer(lambda c, bias: c + bias),
        "The bias is missing: this is gelu(A @ B)": end_of_layer(lambda c, bias: gelu(c)),
        "The bias is subtracted, not added": end_of_layer(lambda c, bias: gelu(c - bias)),
        "The bias is added twice": end_of_layer(lambda c, bias: gelu(c + 2 * bias)),
        "The bias is multiplied, not added, before gelu": end_of_layer(
            lambda c, bias: gelu(c * bias)
        ),
        "The bias is added after gelu": end_of_layer(lambda c, bias: gelu(c) + bias),
        "This is relu instead of gelu": end_of_layer(lambda c, bias: np.maximum(c + bias, 0)),
        "The bias is taken by the row: each column has one": end_of_layer(with_bias_of_rows),
        "Every column of four gets the bias of the first": end_of_layer(
            lambda c, bias: gelu(c + np.repeat(bias[::4], 4))
        ),
    },
    twin=lambda run: run.sectors_per_request(2),
)
