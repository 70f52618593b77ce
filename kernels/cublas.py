"""Rung `cublas`: the library, with one handle for all calls, device arrays, no copies in the call."""

import numpy as np

from .errors import UnsupportedGPU
from .gpus import gpu
from .rung import Types

# library_types.h, cudaDataType_t
CUDA_TYPE = {"float32": 0, "tf32": 0, "float16": 2, "bfloat16": 14}
# cublas_api.h, cublasComputeType_t: CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32
COMPUTE_TYPE = {"float32": 68, "float16": 68, "bfloat16": 68, "tf32": 77}
# cublasGemmEx: what it writes for each type of A and B.
OUTPUTS = {
    "float32": ("float32",),
    "tf32": ("float32",),
    "float16": ("float32", "float16"),
    "bfloat16": ("float32", "bfloat16"),
}
DEFAULT_ALGORITHM = -1  # CUBLAS_GEMM_DEFAULT
KEEP, TRANSPOSE = 0, 1  # cublasOperation_t


def takes(types: Types) -> bool:
    """Whether cublasGemmEx multiplies these types, with sums in float32."""
    return types.output in OUTPUTS.get(types.inputs, ()) and types.accumulator == "float32"


def call(A, B, C, alpha=1.0, beta=0.0, types: Types | None = None, a_major="K", b_major="N"):
    """A function that runs `C[...] = alpha * A @ B + beta * C` on the current stream and returns at
    once.

    A, B, C: CuPy arrays, C-contiguous: `(M, K)`, or `(K, M)` with `a_major` "M"; `(K, N)`, or
    `(N, K)` with `b_major` "K"; `(M, N)`. `types` are their dtypes' unless given: inputs "tf32"
    lets float32 be rounded to TF32, "bfloat16" is stored as uint16. Accumulation is in float32.
    """
    if gpu() is None:
        raise UnsupportedGPU("cublas needs an NVIDIA GPU and CuPy")
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    types = types or Types(str(A.dtype), output=str(C.dtype))
    fits = takes(types) and (A.dtype, B.dtype, C.dtype) == (
        types.input_dtype, types.input_dtype, types.output_dtype
    )  # fmt: skip
    if not fits:
        raise ValueError(
            f"cublas takes two float32 or two float16 arrays and writes float32, or float16 from float16; "
            f"not {A.dtype} and {B.dtype} to {C.dtype}"
        )
    (M, N), K = C.shape, A.shape[1 if a_major == "K" else 0]
    # On the stack of a call these would be gone when the library reads them.
    scalars = np.array([alpha, beta], np.float32)
    read, written = CUDA_TYPE[types.inputs], CUDA_TYPE[types.output]

    # cuBLAS is column-major: a row-major matrix looks transposed to it, and C^T = B^T A^T.
    arguments = (
        KEEP if b_major == "N" else TRANSPOSE, KEEP if a_major == "K" else TRANSPOSE, N, M, K,
        scalars.ctypes.data, B.data.ptr, read, N if b_major == "N" else K,
        A.data.ptr, read, K if a_major == "K" else M,
        scalars.ctypes.data + 4, C.data.ptr, written, N,
        COMPUTE_TYPE[types.inputs], DEFAULT_ALGORITHM,
    )  # fmt: skip
    handle = device.get_cublas_handle()

    def run(keep=(scalars, A, B, C)) -> None:
        cublas.gemmEx(handle, *arguments)

    return run


def gemm(
    A, B, C=None, alpha: float = 1.0, beta: float = 0.0, inputs: str | None = None, output=None
):
    """`alpha * A @ B + beta * C` as a new CuPy array of dtype `output`, else C's, else float32."""
    if gpu() is None:
        raise UnsupportedGPU("cublas needs an NVIDIA GPU and CuPy")
    import cupy

    A, B = (cupy.ascontiguousarray(cupy.asarray(x)) for x in (A, B))
    dtype = output or (C.dtype if C is not None else np.float32)
    blank = cupy.full((A.shape[0], B.shape[1]), np.nan, dtype)
    result = blank if beta == 0 else cupy.array(C, dtype=dtype, order="C")
    types = Types(inputs or str(A.dtype), output=str(result.dtype))
    call(A, B, result, alpha, beta, types)()
    return result
