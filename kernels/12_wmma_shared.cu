// WMMA with both operands staged in shared memory: a tile is read from global once per block, 16 bytes per thread.
// Changed from wmma: the block's warps share one copy of A and B: a fragment load costs shared memory, not L1 and L2.
// Block BM x BN, K step BK, warps of WM x WN; rows of As and Bs carry PAD spare halves against bank conflicts.
// Needs whole tiles (the launcher pads), 16-byte aligned A and B, 32-byte aligned C; PAD must be a multiple of 8.

#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef BK
#define BK 32
#endif
#ifndef WM
#define WM 64
#endif
#ifndef WN
#define WN 32
#endif
#ifndef PAD
#define PAD 8
#endif

constexpr int FRAG = 16;  // a fragment is 16 x 16, K advances by 16
constexpr int VEC = 8;    // halves in one 16-byte access

using FragA = wmma::fragment<wmma::matrix_a, FRAG, FRAG, FRAG, half, wmma::row_major>;
using FragB = wmma::fragment<wmma::matrix_b, FRAG, FRAG, FRAG, half, wmma::row_major>;
using FragC = wmma::fragment<wmma::accumulator, FRAG, FRAG, FRAG, float>;

// One tile of ROWS x COLS halves from global (row stride `stride`) to shared (row stride PITCH) by all THREADS.
// [load]
template <int ROWS, int COLS, int PITCH, int THREADS>
__device__ void stage(half* shared, const half* global, int stride) {
    constexpr int VECS_PER_ROW = COLS / VEC;
#pragma unroll
    for (int vec = threadIdx.x; vec < ROWS * VECS_PER_ROW; vec += THREADS) {
        const int row = vec / VECS_PER_ROW;
        const int col = vec % VECS_PER_ROW * VEC;
        *reinterpret_cast<uint4*>(shared + row * PITCH + col) =
            *reinterpret_cast<const uint4*>(global + size_t(row) * stride + col);
    }
}
// [/load]

// A template, so that the lab's kernels (book/exercises/cuda/lab_part_*.cu) are the same with other tiles.
template <int TILE_M, int TILE_N, int TILE_K, int WARP_M, int WARP_N, int SPARE>
__device__ void multiply(const half* A, const half* B, float* C, int M, int N, int K, float alpha, float beta) {
    constexpr int WARPS_N = TILE_N / WARP_N;
    constexpr int THREADS = 32 * (TILE_M / WARP_M) * WARPS_N;
    constexpr int FRAGS_M = WARP_M / FRAG;
    constexpr int FRAGS_N = WARP_N / FRAG;
    constexpr int A_PITCH = TILE_K + SPARE;
    constexpr int B_PITCH = TILE_N + SPARE;

    extern __shared__ __align__(128) half shared[];  // As: TILE_M x A_PITCH, then Bs: TILE_K x B_PITCH
    half* As = shared;
    half* Bs = shared + TILE_M * A_PITCH;

    const int warp = threadIdx.x / 32;
    const int warp_row = warp / WARPS_N * WARP_M;  // of this warp's tile, inside the block's tile
    const int warp_col = warp % WARPS_N * WARP_N;
    A += size_t(blockIdx.y) * TILE_M * K;
    B += blockIdx.x * TILE_N;
    C += (size_t(blockIdx.y) * TILE_M + warp_row) * N + blockIdx.x * TILE_N + warp_col;

    FragC acc[FRAGS_M][FRAGS_N];
#pragma unroll
    for (int m = 0; m < FRAGS_M; ++m)
#pragma unroll
        for (int n = 0; n < FRAGS_N; ++n) wmma::fill_fragment(acc[m][n], 0.0f);

    for (int k = 0; k < K; k += TILE_K) {
        stage<TILE_M, TILE_K, A_PITCH, THREADS>(As, A + k, K);
        stage<TILE_K, TILE_N, B_PITCH, THREADS>(Bs, B + size_t(k) * N, N);
        __syncthreads();  // the tiles are complete

        // [compute]
#pragma unroll
        for (int step = 0; step < TILE_K; step += FRAG) {
            FragA a[FRAGS_M];
            FragB b[FRAGS_N];
#pragma unroll
            for (int m = 0; m < FRAGS_M; ++m)
                wmma::load_matrix_sync(a[m], As + (warp_row + m * FRAG) * A_PITCH + step, A_PITCH);
#pragma unroll
            for (int n = 0; n < FRAGS_N; ++n)
                wmma::load_matrix_sync(b[n], Bs + step * B_PITCH + warp_col + n * FRAG, B_PITCH);
#pragma unroll
            for (int m = 0; m < FRAGS_M; ++m)
#pragma unroll
                for (int n = 0; n < FRAGS_N; ++n) wmma::mma_sync(acc[m][n], a[m], b[n], acc[m][n]);
        }
        // [/compute]
        __syncthreads();  // every warp is done with the tiles: they may be overwritten
    }

    // [store]
#pragma unroll
    for (int m = 0; m < FRAGS_M; ++m)
#pragma unroll
        for (int n = 0; n < FRAGS_N; ++n) {
            float* tile = C + m * FRAG * N + n * FRAG;
            FragC old;
            wmma::fill_fragment(old, 0.0f);
            if (beta != 0.0f) wmma::load_matrix_sync(old, tile, N, wmma::mem_row_major);
#pragma unroll
            for (int i = 0; i < old.num_elements; ++i) old.x[i] = alpha * acc[m][n].x[i] + beta * old.x[i];
            wmma::store_matrix_sync(tile, old, N, wmma::mem_row_major);
        }
    // [/store]
}

extern "C" __global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN))
    gemm_wmma_shared(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                     float alpha, float beta) {
    multiply<BM, BN, BK, WM, WN, PAD>(A, B, C, M, N, K, alpha, beta);
}
