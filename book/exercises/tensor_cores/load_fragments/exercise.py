"""Load an mma's registers by hand."""

import numpy as np

from book.exercises.exercise import Exercise, Need
from book.exercises.launches import products

EXERCISE = Exercise.read(
    __file__,
    cases=products(
        ((16, 8, 16),), (16, 8), (32,), drawn=None, dtype=np.float16, sizes_passed=False
    ),
    at="M=16, N=8, K=16",
    needs=(Need("matrix multiplications of a warp", 1, "one mma.m16n8k16 multiplies"),),
    outside="Row r, column c is A[16 * r + c] in A, with columns 0 to 15, and B[8 * r + c] in B, with columns 0 to 7. Both "
    "have rows 0 to 15.",
    twin=lambda run: run.lane("ld.global", 13, buffer="argument 1") // 2 % 8,
)
