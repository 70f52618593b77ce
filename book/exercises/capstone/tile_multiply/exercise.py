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
    "Only columns 0-7 of C are summed": lambda case: np.where(np.arange(16) < 8, case.expected, 0),
}  # fmt: skip


def products_of_blocks(case, out) -> str | None:
    """Which 8 x 8 blocks of B each half of C is made with, for the four groups of 8 terms, where one is not the right one."""
    if not out.any():
        return None
    A, B = case.product.A, case.product.B
    blocks = [B[8 * i : 8 * i + 8, 8 * j : 8 * j + 8] for i in range(4) for j in range(2)]
    for half in range(2):
        terms = [(A[:, 8 * k : 8 * k + 8] @ b).reshape(-1) for k in range(4) for b in blocks]
        held = out[:, 8 * half : 8 * half + 8].reshape(-1)
        weights, *_ = np.linalg.lstsq(np.array(terms).T, held, rcond=None)
        whole = np.round(weights)
        if not np.isfinite(held).all() or np.abs(weights - whole).max() > 0.05:
            return None
        for k in range(4):
            used = [(i, int(n)) for i, n in enumerate(whole[8 * k : 8 * k + 8]) if n]
            if used != [(2 * k + half, 1)]:
                place = f"In columns {8 * half}-{8 * half + 7} of C, terms {8 * k}-{8 * k + 7} of A"
                should = f"terms {8 * k}-{8 * k + 7} of B's columns {8 * half}-{8 * half + 7}"
                met = " and with ".join(
                    f"terms {8 * (i // 2)}-{8 * (i // 2) + 7} of B's columns {8 * (i % 2)}-{8 * (i % 2) + 7}"
                    + (f" ({n} times)" if n != 1 else "")
                    for i, n in used
                )
                if not used:
                    return f"{place} are missing. They should be multiplied with {should}, once."
                return f"{place} are multiplied with {met}. It should be {should}, once."
    return None


EXERCISE = Exercise.read(
    __file__,
    cases=transposed_products(((16, 16, 32), (16, 16, 96)), True),
    at="K=32",
    needs=(Need("matrix multiplications of a warp", 4, "four mma.m16n8k16 multiply"),),
    goals=(Goal("shared_wavefronts", 32),),
    suspects=B_SUSPECTS,
    decode=products_of_blocks,
    twin=lambda run: run.count("matrix multiplications of a warp"),
)
