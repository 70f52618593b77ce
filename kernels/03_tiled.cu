// tiled: a block copies one tile of A and one of B into shared memory, and all its threads compute from there.
// Changed from naive: a value is read from global memory once per block, not once per row or column of threads.
// Block: BLOCK x BLOCK outputs, one per thread; tiles BLOCK x BLOCK. Any M, N, K: tiles hold zeros outside a matrix.
// HALF_INPUT=1: A and B in fp16, accumulated in fp32, 16 x 16 tiles, as in the ECE 60827 lab's gemm_tiled_smem.

#ifndef HALF_INPUT
#define HALF_INPUT 0
#endif
#ifndef BLOCK
#define BLOCK (HALF_INPUT ? 16 : 32)
#endif

#if HALF_INPUT
#include <cuda_fp16.h>
using Input = __half;
#else
using Input = float;
#endif

constexpr int THREADS = BLOCK * BLOCK;

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_tiled(const Input* __restrict__ A, const Input* __restrict__ B, float* __restrict__ C, int M, int N, int K,
               float alpha, float beta) {
    __shared__ Input As[BLOCK][BLOCK];
    __shared__ Input Bs[BLOCK][BLOCK];

    // [index]
    const int tile_row = threadIdx.y;
    const int tile_col = threadIdx.x;
    const int row = blockIdx.y * BLOCK + tile_row;
    const int col = blockIdx.x * BLOCK + tile_col;
    // [/index]

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BLOCK) {
        // [load]
        const int a_col = k0 + tile_col;
        const int b_row = k0 + tile_row;
        As[tile_row][tile_col] = row < M && a_col < K ? A[row * K + a_col] : Input(0.0f);
        Bs[tile_row][tile_col] = b_row < K && col < N ? B[b_row * N + col] : Input(0.0f);
        __syncthreads();
        // [/load]

        // [compute]
#pragma unroll
        for (int k = 0; k < BLOCK; ++k) {
            sum += static_cast<float>(As[tile_row][k]) * static_cast<float>(Bs[k][tile_col]);
        }
        __syncthreads();
        // [/compute]
    }

    // [store]
    if (row < M && col < N) {
        float& c = C[row * N + col];
        c = beta == 0.0f ? alpha * sum : alpha * sum + beta * c;
    }
    // [/store]
}
