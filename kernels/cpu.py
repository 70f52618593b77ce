"""Rung `cpu`: the triple loop, then every core, then BLAS; and Strassen's recursion."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

STRIP = 32  # rows of C that a thread works on at a time: long enough that calling NumPy is cheap


def _epilogue(product: np.ndarray, C, alpha: float, beta: float, dtype) -> np.ndarray:
    result = np.float32(alpha) * product
    if beta != 0:  # beta = 0 does not read C
        result = result + np.float32(beta) * C
    return result.astype(dtype)


def triple_loop(A, B, C=None, alpha: float = 1.0, beta: float = 0.0) -> np.ndarray:
    """`alpha * A @ B + beta * C` in plain Python, one multiply-add at a time: below a size of 100."""
    (M, K), N = A.shape, B.shape[1]
    a, b = A.tolist(), B.tolist()
    product = np.zeros((M, N), np.float32)
    for row in range(M):
        for col in range(N):
            total = 0.0
            for k in range(K):
                total += a[row][k] * b[k][col]
            product[row, col] = total
    return _epilogue(product, C, alpha, beta, A.dtype)


def threads(
    A, B, C=None, alpha: float = 1.0, beta: float = 0.0, workers: int | None = None
) -> np.ndarray:
    """The same sums without BLAS: for each k, a column of A times a row of B is added to C. Strips of C
    are spread over all cores (NumPy lets go of the interpreter lock).
    """
    (M, K), N = A.shape, B.shape[1]
    workers = workers or os.cpu_count() or 1
    wide_a, wide_b = A.astype(np.float32, copy=False), B.astype(np.float32, copy=False)
    product = np.zeros((M, N), np.float32)

    def strip(first: int) -> None:
        sums, columns = product[first : first + STRIP], wide_a[first : first + STRIP, :, None]
        term = np.empty_like(sums)
        for k in range(K):
            np.multiply(columns[:, k], wide_b[k], out=term)
            np.add(sums, term, out=sums)

    firsts = range(0, M, STRIP)
    if sys.platform == "emscripten":  # a browser's Python has no threads
        list(map(strip, firsts))
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(strip, firsts))
    return _epilogue(product, C, alpha, beta, A.dtype)


def blas(A, B, C=None, alpha: float = 1.0, beta: float = 0.0) -> np.ndarray:
    """The same through NumPy's BLAS, in float32 (float64 stays float64)."""
    if A.dtype == np.float64:
        return alpha * (A @ B) + (beta * C if beta != 0 else 0.0)
    product = A.astype(np.float32, copy=False) @ B.astype(np.float32, copy=False)
    return _epilogue(product, C, alpha, beta, A.dtype)


def strassen(A, B, levels: int = 1) -> np.ndarray:
    """`A @ B` with `levels` of Strassen's recursion: 7 half-size products and 18 additions for 8
    and 4.

    V. Strassen, "Gaussian elimination is not optimal", Numer. Math. 13 (1969). Odd sizes are padded
    with zeros.
    """
    (M, K), N = A.shape, B.shape[1]
    if levels == 0 or min(M, N, K) < 2:
        return A @ B
    A = np.pad(A, ((0, M % 2), (0, K % 2)))
    B = np.pad(B, ((0, K % 2), (0, N % 2)))
    a11, a12, a21, a22 = _quarters(A)
    b11, b12, b21, b22 = _quarters(B)
    m1 = strassen(a11 + a22, b11 + b22, levels - 1)
    m2 = strassen(a21 + a22, b11, levels - 1)
    m3 = strassen(a11, b12 - b22, levels - 1)
    m4 = strassen(a22, b21 - b11, levels - 1)
    m5 = strassen(a11 + a12, b22, levels - 1)
    m6 = strassen(a21 - a11, b11 + b12, levels - 1)
    m7 = strassen(a12 - a22, b21 + b22, levels - 1)
    return np.block([[m1 + m4 - m5 + m7, m3 + m5], [m2 + m4, m1 - m2 + m3 + m6]])[:M, :N]


def _quarters(X: np.ndarray):
    r, c = X.shape[0] // 2, X.shape[1] // 2
    return X[:r, :c], X[:r, c:], X[r:, :c], X[r:, c:]
