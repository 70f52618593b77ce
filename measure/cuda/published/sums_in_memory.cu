// Stands for kernel 8 of the CUDA GEMMS post: the same tiles and the same accesses, written anew for this book.
// 16 warps compute 64 x 64 of C, each 16 x 16, from tiles of 64 x 64. KEEP=0: after every 16 of k, a warp adds its
// products to C in global memory. KEEP=1: the sums stay in registers and are stored once.
// A, B half, C float, row-major, C zero at the start if KEEP=0; M, N, K are multiples of 64.
#include "ptx.cuh"

#ifndef KEEP
#define KEEP 0
#endif

constexpr int TILE = 64, THREADS = 512;

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_sums_in_memory(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C, int N, int K) {
    __shared__ __align__(128) half As[TILE * TILE], Bs[TILE * TILE];
    const int lane = threadIdx.x % 32;
    const int warp_row = threadIdx.x / 128 * 16, warp_col = threadIdx.x / 32 % 4 * 16;
    const size_t row = blockIdx.y * TILE, col = blockIdx.x * TILE;
    float* c = C + (row + warp_row + lane / 4) * N + col + warp_col + lane % 4 * 2;
    float left[4] = {}, right[4] = {};

    auto store = [&](bool add) {  // register q: two rows of two neighbours, and the same eight columns further
        for (int q = 0; q < 4; ++q) {
            float* place = c + q / 2 * 8 * size_t(N) + q % 2;
            place[0] = left[q] + (add ? place[0] : 0.0f);
            place[8] = right[q] + (add ? place[8] : 0.0f);
        }
    };
    for (int k0 = 0; k0 < K; k0 += TILE) {
        for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {  // a lane copies one half at a time
            As[i] = A[(row + i / TILE) * K + k0 + i % TILE];
            Bs[i] = B[size_t(k0 + i / TILE) * N + col + i % TILE];
        }
        __syncthreads();
        // [products]
        for (int k = 0; k < TILE; k += 16) {
            unsigned a[4], b[4];
            ldmatrix_x4(a, shared_address(&As[(warp_row + lane % 16) * TILE + k + lane / 16 * 8]));
            ldmatrix_x4_trans(b, shared_address(&Bs[(k + lane % 16) * TILE + warp_col + lane / 16 * 8]));
            if (!KEEP)
                for (int q = 0; q < 4; ++q) left[q] = right[q] = 0.0f;
            mma_m16n8k16(left, a, b[0], b[1]);
            mma_m16n8k16(right, a, b[2], b[3]);
            if (!KEEP) store(true);
        }
        // [/products]
        __syncthreads();
    }
    if (KEEP) store(false);
}
