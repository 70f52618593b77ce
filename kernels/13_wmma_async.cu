// Double-buffered WMMA: cuda::memcpy_async fills one buffer while the tensor cores work on the other.
// Changed from wmma_shared: copies bypass registers, a cuda::pipeline says when one has landed, one barrier per step.
// Block BM x BN, K step BK, warps of WM x WN, STAGES buffers; rows of As and Bs carry PAD spare halves.
// Needs whole tiles (the launcher pads); A and B aligned to 16 bytes, C to 32; before sm_80 the copies are ordinary.

#include <cuda/pipeline>
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
#ifndef STAGES
#define STAGES 2
#endif
#ifndef PAD
#define PAD 8
#endif

constexpr int FRAG = 16;  // a fragment is 16 x 16, K advances by 16
constexpr int VEC = 8;    // halves in one 16-byte access

using FragA = wmma::fragment<wmma::matrix_a, FRAG, FRAG, FRAG, half, wmma::row_major>;
using FragB = wmma::fragment<wmma::matrix_b, FRAG, FRAG, FRAG, half, wmma::row_major>;
using FragC = wmma::fragment<wmma::accumulator, FRAG, FRAG, FRAG, float>;
using Pipeline = cuda::pipeline<cuda::thread_scope_thread>;

// One tile of ROWS x COLS halves from global (row stride `stride`) to shared (row stride PITCH) by all THREADS.
// [load]
template <int ROWS, int COLS, int PITCH, int THREADS>
__device__ void stage(half* shared, const half* global, int stride, Pipeline& pipe) {
    constexpr int VECS_PER_ROW = COLS / VEC;
#pragma unroll
    for (int vec = threadIdx.x; vec < ROWS * VECS_PER_ROW; vec += THREADS) {
        const int row = vec / VECS_PER_ROW;
        const int col = vec % VECS_PER_ROW * VEC;
        // aligned_size_t is what makes this one cp.async of 16 bytes: 2-byte copies have no hardware path
        cuda::memcpy_async(reinterpret_cast<uint4*>(shared + row * PITCH + col),
                           reinterpret_cast<const uint4*>(global + size_t(row) * stride + col),
                           cuda::aligned_size_t<16>(16), pipe);
    }
}
// [/load]

// A template, so that the lab's kernels (book/exercises/cuda/lab_part_*.cu) are the same with other tiles.
template <int TILE_M, int TILE_N, int TILE_K, int WARP_M, int WARP_N, int BUFFERS, int SPARE>
__device__ void multiply(const half* A, const half* B, float* C, int M, int N, int K, float alpha, float beta) {
    constexpr int WARPS_N = TILE_N / WARP_N;
    constexpr int THREADS = 32 * (TILE_M / WARP_M) * WARPS_N;
    constexpr int FRAGS_M = WARP_M / FRAG;
    constexpr int FRAGS_N = WARP_N / FRAG;
    constexpr int A_PITCH = TILE_K + SPARE;
    constexpr int B_PITCH = TILE_N + SPARE;
    constexpr int A_TILE = TILE_M * A_PITCH;
    constexpr int B_TILE = TILE_K * B_PITCH;

    extern __shared__ __align__(128) half shared[];  // As[BUFFERS], then Bs[BUFFERS]
    half* As = shared;
    half* Bs = shared + BUFFERS * A_TILE;

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

    // [pipeline]
    Pipeline pipe = cuda::make_pipeline();
    const int tiles = K / TILE_K;
    auto fetch = [&](int tile) {
        const int buffer = tile % BUFFERS;
        pipe.producer_acquire();
        stage<TILE_M, TILE_K, A_PITCH, THREADS>(As + buffer * A_TILE, A + tile * TILE_K, K, pipe);
        stage<TILE_K, TILE_N, B_PITCH, THREADS>(Bs + buffer * B_TILE, B + size_t(tile) * TILE_K * N, N, pipe);
        pipe.producer_commit();
    };

    for (int tile = 0; tile < BUFFERS - 1 && tile < tiles; ++tile) fetch(tile);
    for (int tile = 0; tile < tiles; ++tile) {
        pipe.consumer_wait();  // this thread's copies of the tile have landed ...
        __syncthreads();       // ... and everyone's; and every warp has left the buffer that is filled next
        if (tile + BUFFERS - 1 < tiles) fetch(tile + BUFFERS - 1);
        // [/pipeline]

        // [compute]
        const half* a_tile = As + tile % BUFFERS * A_TILE;
        const half* b_tile = Bs + tile % BUFFERS * B_TILE;
#pragma unroll
        for (int step = 0; step < TILE_K; step += FRAG) {
            FragA a[FRAGS_M];
            FragB b[FRAGS_N];
#pragma unroll
            for (int m = 0; m < FRAGS_M; ++m)
                wmma::load_matrix_sync(a[m], a_tile + (warp_row + m * FRAG) * A_PITCH + step, A_PITCH);
#pragma unroll
            for (int n = 0; n < FRAGS_N; ++n)
                wmma::load_matrix_sync(b[n], b_tile + step * B_PITCH + warp_col + n * FRAG, B_PITCH);
#pragma unroll
            for (int m = 0; m < FRAGS_M; ++m)
#pragma unroll
                for (int n = 0; n < FRAGS_N; ++n) wmma::mma_sync(acc[m][n], a[m], b[n], acc[m][n]);
        }
        pipe.consumer_release();
        // [/compute]
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
    gemm_wmma_async(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                    float alpha, float beta) {
    multiply<BM, BN, BK, WM, WN, STAGES, PAD>(A, B, C, M, N, K, alpha, beta);
}
