// Tensor cores through the WMMA API: a warp multiplies 16x16x16 fragments that it loads straight from global memory.
// Changed from warp_specialized: fp16 inputs, multiplied by one warp-wide instruction; no shared memory, no barriers.
// Block BM x BN = warps of WM x WN; a warp keeps (WM/16) x (WN/16) accumulator fragments for the whole of K.
// Needs whole tiles (M % BM == N % BN == K % 16 == 0: the launcher pads) and 32-byte aligned A, B, C.

#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 64
#endif
#ifndef WM
#define WM 64
#endif
#ifndef WN
#define WN 32
#endif

constexpr int FRAG = 16;  // a fragment is 16 x 16, K advances by 16
constexpr int WARPS_N = BN / WN;
constexpr int THREADS = 32 * (BM / WM) * WARPS_N;
constexpr int FRAGS_M = WM / FRAG;
constexpr int FRAGS_N = WN / FRAG;

using FragA = wmma::fragment<wmma::matrix_a, FRAG, FRAG, FRAG, half, wmma::row_major>;
using FragB = wmma::fragment<wmma::matrix_b, FRAG, FRAG, FRAG, half, wmma::row_major>;
using FragC = wmma::fragment<wmma::accumulator, FRAG, FRAG, FRAG, float>;

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_wmma(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C, int M, int N, int K,
              float alpha, float beta) {
    const int warp = threadIdx.x / 32;
    const size_t row = blockIdx.y * BM + warp / WARPS_N * WM;  // first row and column of this warp's tile
    const size_t col = blockIdx.x * BN + warp % WARPS_N * WN;

    FragC acc[FRAGS_M][FRAGS_N];
#pragma unroll
    for (int m = 0; m < FRAGS_M; ++m)
#pragma unroll
        for (int n = 0; n < FRAGS_N; ++n) wmma::fill_fragment(acc[m][n], 0.0f);

    for (int k = 0; k < K; k += FRAG) {
        // [load]
        FragA a[FRAGS_M];
        FragB b[FRAGS_N];
#pragma unroll
        for (int m = 0; m < FRAGS_M; ++m) wmma::load_matrix_sync(a[m], A + (row + m * FRAG) * K + k, K);
#pragma unroll
        for (int n = 0; n < FRAGS_N; ++n) wmma::load_matrix_sync(b[n], B + size_t(k) * N + col + n * FRAG, N);
        // [/load]

        // [compute]
#pragma unroll
        for (int m = 0; m < FRAGS_M; ++m)
#pragma unroll
            for (int n = 0; n < FRAGS_N; ++n) wmma::mma_sync(acc[m][n], a[m], b[n], acc[m][n]);
        // [/compute]
    }

    // [store]
    // Which lane holds which element is unspecified, but two fragments of one type agree: element-wise work is allowed.
#pragma unroll
    for (int m = 0; m < FRAGS_M; ++m)
#pragma unroll
        for (int n = 0; n < FRAGS_N; ++n) {
            float* tile = C + (row + m * FRAG) * N + col + n * FRAG;
            FragC old;
            wmma::fill_fragment(old, 0.0f);
            if (beta != 0.0f) wmma::load_matrix_sync(old, tile, N, wmma::mem_row_major);
#pragma unroll
            for (int i = 0; i < old.num_elements; ++i) old.x[i] = alpha * acc[m][n].x[i] + beta * old.x[i];
            wmma::store_matrix_sync(tile, old, N, wmma::mem_row_major);
        }
    // [/store]
}
