// y[r] = the sum over k of A[r, k] * B[r, k]: halves in, floats out, a thread
// for each row, 64 threads per block.
#include <cuda_fp16.h>

extern "C" __global__ void keep_precision(const half* A, const half* B,
                                          float* y, int M, int K) {
    const int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= M) return;
#ifdef SOLUTION
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += __half2float(A[row * K + k]) * __half2float(B[row * K + k]);
    y[row] = sum;
#else
    // Your turn: the inputs are exact, and the result is not. Where are digits
    // lost?
    half sum = __float2half(0.0f);
    for (int k = 0; k < K; ++k)
        sum = __hadd(sum, __hmul(A[row * K + k], B[row * K + k]));
    y[row] = __half2float(sum);
#endif
}
