"""Step 4: multiply a tile."""

import numpy as np

from book.exercises.capstone.launches import transposed_products
from book.exercises.exercise import Exercise, Goal, Need


def _b_halves(case, swap) -> np.ndarray:
    """The product if mma gets other registers of B: swap(k, n) gives where each element is taken from."""
    B = case.product.B
    k, n = np.indices(B.shape)
    return case.product.A @ B[swap(k, n)]


B_SUSPECTS = {
    "b[0] and b[1] are taken for one half of C: they are columns 0-7 and 8-15 of B, at the same k": (
        lambda case: _b_halves(case, lambda k, n: (k // 16 * 16 + n // 8 * 8 + k % 8, k % 16 // 8 * 8 + n % 8))
    ),
    "The two halves of C are the other way round": lambda case: case.expected[:, np.arange(16) ^ 8],
    "Both halves of C are columns 0-7": lambda case: case.expected[:, np.arange(16) % 8],
    "b[0] and b[2] are swapped: terms 0-7 of each 16 of k go with terms 8-15": lambda case: _b_halves(
        case, lambda k, n: (k ^ 8, n)
    ),
    "b[2] is taken for b[3]: in columns 8-15 of C, terms 8-15 of each 16 of A meet those of B's columns 0-7": (
        lambda case: _b_halves(case, lambda k, n: (k, np.where(k % 16 < 8, n, n % 8)))
    ),
    "Both products are added to columns 0-7 of C": lambda case: (
        np.hstack([case.expected[:, :8] + case.expected[:, 8:], 0 * case.expected[:, 8:]])
    ),
    "Only columns 0-7 of C are summed": lambda case: np.where(np.arange(16) < 8, case.expected, 0),
}  # fmt: skip


EXERCISE = Exercise.read(
    __file__,
    cases=transposed_products(((16, 16, 32), (16, 16, 96)), True),
    at="K=32",
    needs=(Need("matrix multiplications of a warp", 4, "four mma.m16n8k16 multiply"),),
    goals=(Goal("shared_wavefronts", 32),),
    suspects=B_SUSPECTS,
    twin=lambda run: run.count("matrix multiplications of a warp"),
)
