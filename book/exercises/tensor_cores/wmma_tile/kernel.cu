// C = A @ B on tensor cores: one warp per 16 x 16 tile of C, fragments straight
// from global memory. M, N and K are multiples of 16; row-major; half in, float
// out.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void wmma_tile(const half* A, const half* B, float* C,
                                     int M, int N, int K) {
    const int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::fill_fragment(acc, 0.0f);
#ifdef SOLUTION
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(a, A + row * K + k, K);
        wmma::load_matrix_sync(b, B + k * N + col, N);
        wmma::mma_sync(acc, a, b, acc);
    }
#else
    // Your turn: declare fragments a and b, and walk along K.
#endif
    wmma::store_matrix_sync(C + row * N + col, acc, N, wmma::mem_row_major);
}
