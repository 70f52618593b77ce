"""Builds the launches that a kernel is tried on: fresh random asymmetric inputs, poisoned outputs, awkward sizes."""

from __future__ import annotations

import numpy as np

from kernels.shapes import ceil_div

from .exercise import Case, Product

# A quiet NaN that no arithmetic makes: an element that still holds it was never written.
POISON_BITS = 0x7FC0DEAD
POISON_INT = -559038737
EPSILON = {np.dtype(np.float32): 2.0**-23, np.dtype(np.float16): 2.0**-10}


def poisoned(shape, dtype=np.float32) -> np.ndarray:
    """An output that nobody has written."""
    dtype = np.dtype(dtype)
    if dtype == np.float32:
        return np.full(shape, POISON_BITS, np.uint32).view(np.float32)
    if dtype == np.float16:
        return np.full(shape, 0x7EAD, np.uint16).view(np.float16)
    return np.full(shape, POISON_INT, dtype)


def unwritten(array: np.ndarray) -> np.ndarray:
    """Mask of the elements that still hold the poison."""
    if array.dtype.kind == "f":
        bits = np.dtype(f"u{array.dtype.itemsize}")
        return array.view(bits) == poisoned((1,), array.dtype).view(bits)[0]
    return array == POISON_INT


def product(
    rng: np.random.Generator,
    size: tuple[int, int, int],
    tile: tuple[int, int],
    block: tuple[int, ...],
    *,
    dtype=np.float32,
    scalars: tuple[float, float] | None = None,
    sizes_passed: bool = True,
) -> Case:
    """A GEMM launch `(A, B, C[, M, N, K][, alpha, beta])`: one block per (rows, columns) `tile` of C, x along N.

    `scalars` are (alpha, beta), when the kernel takes them. C is poisoned unless beta needs it.
    """
    M, N, K = size
    A = rng.standard_normal((M, K)).astype(dtype)
    B = rng.standard_normal((K, N)).astype(dtype)
    alpha, beta = scalars or (1.0, 0.0)
    C = rng.standard_normal((M, N)).astype(np.float32) if beta else poisoned((M, N))
    wide = Product(A.astype(float), B.astype(float), np.where(np.isnan(C), 0, C), alpha, beta)
    magnitude = abs(alpha) * np.abs(wide.A) @ np.abs(wide.B) + abs(beta) * np.abs(wide.old)
    extra = [np.int32(n) for n in size] if sizes_passed else []
    extra += [np.float32(x) for x in scalars or ()]
    label = f"M={M}, N={N}, K={K}"
    if scalars:
        label += f", alpha={alpha:g}, beta={beta:g}"
    return Case(
        label=label,
        args=(A, B, C, *extra),
        output=2,
        expected=wide.C,
        grid=(ceil_div(N, tile[1]), ceil_div(M, tile[0])),
        block=block,
        tolerance=(K + 4) * EPSILON[np.dtype(np.float32)],
        scale=magnitude,
        product=wide,
        special=_special(size, tile),
    )


def _special(size, tile) -> str:
    """What no tile of its own size has: edges along M and N."""
    rest = [
        f"{name}={n} is no multiple of {t}"
        for name, n, t in zip("MN", size, tile, strict=False)
        if n % t
    ]
    return " and ".join(rest)
