"""cuBLAS's gemmEx: right where the product is small, else only its time."""

import ctypes

import numpy as np
from cupy import EMULATED, cuda

TYPES = {0: np.float32, 2: np.float16}  # cudaDataType_t


def create():
    return 1


def destroy(handle):
    pass


def _there(pointer: int, kind: int, rows: int, cols: int) -> np.ndarray:
    count = rows * cols * np.dtype(TYPES[kind]).itemsize
    memory = (ctypes.c_char * count).from_address(pointer)
    return np.frombuffer(memory, TYPES[kind]).reshape(rows, cols)


def gemmEx(handle, opb, opa, n, m, k, alpha, B, typeb, ldb, A, typea, lda, beta, C, typec, ldc, compute, algorithm):  # fmt: skip
    inputs = "float16" if typea == 2 else "float32"
    cuda.takes(cuda.of_rung("cublas", (m, n, k), inputs))
    if m * n * k > EMULATED or not {typea, typec} <= set(TYPES):
        return
    a = _there(A, typea, *((k, m) if opa else (m, k))).astype(np.float32)
    b = _there(B, typeb, *((n, k) if opb else (k, n))).astype(np.float32)
    scale, old = (ctypes.c_float.from_address(at).value for at in (alpha, beta))
    product = scale * ((a.T if opa else a) @ (b.T if opb else b))
    c = _there(C, typec, m, n)
    c[...] = product + (old * c if old else 0)
