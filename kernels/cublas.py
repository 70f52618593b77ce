"""Rung `cublas`: the library, called properly. One handle for all calls, device arrays, no copies
in the call.
"""

from __future__ import annotations

import numpy as np

from .errors import UnsupportedGPU
from .machine import gpu
from .rungs import Types

# library_types.h, cudaDataType_t
CUDA_TYPE = {"float32": 0, "float16": 2}
# cublas_api.h, cublasComputeType_t: CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32
COMPUTE_TYPE = {"float32": 68, "float16": 68, "tf32": 77}
DEFAULT_ALGORITHM = -1  # CUBLAS_GEMM_DEFAULT
KEEP, TRANSPOSE = 0, 1  # cublasOperation_t


def call(
    A, B, C, alpha: float = 1.0, beta: float = 0.0, inputs: str | None = None, a_major: str = "K"
):
    """A function that runs `C[...] = alpha * A @ B + beta * C` on the current stream and returns at
    once.

    A, B, C: CuPy arrays, row-major, `(M, K)` (or `(K, M)` with `a_major` "M"), `(K, N)`, `(M, N)`;
    A and B float32 or float16, C float32 or float16; accumulation is in float32. `inputs="tf32"`
    lets float32 inputs be rounded to TF32.
    """
    if gpu() is None:
        raise UnsupportedGPU("cublas needs an NVIDIA GPU and CuPy")
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    inputs = inputs or str(A.dtype)
    if inputs not in COMPUTE_TYPE or Types(inputs).input_dtype != A.dtype or A.dtype != B.dtype:
        raise ValueError(
            f"cublas takes two float32 or two float16 arrays, not {A.dtype} and {B.dtype}"
        )
    if str(C.dtype) not in CUDA_TYPE:
        raise ValueError(f"cublas writes float32 or float16 here, not {C.dtype}")
    (M, N), K = C.shape, B.shape[0]
    # On the stack of a call these would be gone when the library reads them.
    scalars = np.array([alpha, beta], np.float32)
    types = [CUDA_TYPE[str(x.dtype)] for x in (A, B, C)]

    # cuBLAS is column-major: a row-major matrix looks transposed to it, and C^T = B^T A^T.
    arguments = (
        KEEP, KEEP if a_major == "K" else TRANSPOSE, N, M, K,
        scalars.ctypes.data, B.data.ptr, types[1], N,
        A.data.ptr, types[0], K if a_major == "K" else M,
        scalars.ctypes.data + 4, C.data.ptr, types[2], N,
        COMPUTE_TYPE[inputs], DEFAULT_ALGORITHM,
    )  # fmt: skip
    handle = device.get_cublas_handle()

    def run(keep=(scalars, A, B, C)) -> None:
        cublas.gemmEx(handle, *arguments)

    return run


def gemm(
    A, B, C=None, alpha: float = 1.0, beta: float = 0.0, inputs: str | None = None, output=None
):
    """`alpha * A @ B + beta * C` as a new CuPy array of dtype `output` (float32 unless given, or
    C's).
    """
    if gpu() is None:
        raise UnsupportedGPU("cublas needs an NVIDIA GPU and CuPy")
    import cupy

    A, B = (cupy.ascontiguousarray(cupy.asarray(x)) for x in (A, B))
    dtype = output or (C.dtype if C is not None else np.float32)
    blank = cupy.full((A.shape[0], B.shape[1]), np.nan, dtype)
    result = blank if beta == 0 else cupy.array(C, dtype=dtype, order="C")
    call(A, B, result, alpha, beta, inputs)()
    return result
