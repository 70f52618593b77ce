// Stands for kernels 5 and 6 of the CUDA GEMMS post: the same tiles and the same accesses, written anew for this book.
// A block computes TILES x TILES tiles of C of 32 x 32, one after another; four stages of 32 x 32 tiles of A and B are
// on their way. ALIGN is the alignment in bytes that memcpy_async is promised. ROLES=0: every thread copies and
// multiplies (kernel 5). ROLES=1: warp 0 copies, the others multiply (kernel 6). A consumer thread has 1 x 4 of C.
// A, B, C float, row-major; M, N are multiples of 32 * TILES, K of 32.
#include <cooperative_groups.h>
#include <cuda/pipeline>

#ifndef TILES
#define TILES 4
#endif
#ifndef ALIGN
#define ALIGN 4
#endif
#ifndef ROLES
#define ROLES 0
#endif
#ifndef WALK  // of the copying warp: 1, each lane copies a row of its own; 0, eight lanes share a row
#define WALK 1
#endif
#ifndef EVEN  // ROLES=1: 1, eight warps multiply, four rows each; 0, seven do, and the first of them has eight rows
#define EVEN 0
#endif
#ifndef SHARED_STATE  // ROLES=0: 1, the pipeline's state is in shared memory, as ROLES=1 needs it
#define SHARED_STATE 0
#endif

#ifndef TURNS  // 1, the turns over a tile's rows have a known number, so that the sums may lie in registers
#define TURNS 0
#endif

constexpr int TILE = 32, STAGES = 4;
constexpr int PRODUCERS = ROLES ? 32 : 0, CONSUMERS = ROLES && !EVEN ? 224 : 256;
constexpr int THREADS = PRODUCERS + CONSUMERS;
constexpr int ROWS = CONSUMERS / 8;  // of a tile that the consumers have between them at a time

#pragma nv_diag_suppress static_var_with_dynamic_init
using State = cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES>;

// Start to copy a tile of A and one of B. `thread` counts those that copy.
template <class Pipeline>
__device__ __forceinline__ void copy_tiles(float* a_tile, float* b_tile, const float* a, const float* b, int K, int N,
                                           int thread, Pipeline& pipe) {
    if (ROLES && WALK) {
        // [rows]
        const cuda::aligned_size_t<ALIGN> row(TILE * sizeof(float));
        cuda::memcpy_async(a_tile + thread * TILE, a + size_t(thread) * K, row, pipe);
        cuda::memcpy_async(b_tile + thread * TILE, b + size_t(thread) * N, row, pipe);
        // [/rows]
    } else {
        // [chunks]
        const cuda::aligned_size_t<ALIGN> chunk(4 * sizeof(float));
        const int col = thread % 8 * 4;
#pragma unroll
        for (int row = thread / 8; row < TILE; row += ROLES ? 4 : 32) {
            cuda::memcpy_async(a_tile + row * TILE + col, a + size_t(row) * K + col, chunk, pipe);
            cuda::memcpy_async(b_tile + row * TILE + col, b + size_t(row) * N + col, chunk, pipe);
        }
        // [/chunks]
    }
}

// Add the product of a row of A and four columns of B.
__device__ __forceinline__ void multiply(float (&sums)[4], const float* a, const float* b) {
#pragma unroll
    for (int k = 0; k < TILE; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[j] += a[k] * b[k * TILE + j];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_pipelined(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N, int K) {
    __shared__ __align__(16) float As[STAGES][TILE * TILE], Bs[STAGES][TILE * TILE];
#if ROLES || SHARED_STATE
    __shared__ State state;
#endif
#if ROLES
    auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state, PRODUCERS);
#elif SHARED_STATE
    auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state);
#else
    auto pipe = cuda::make_pipeline();
#endif
    const int consumer = static_cast<int>(threadIdx.x) - PRODUCERS;
    const int col = consumer % 8 * 4, first_row = consumer / 8;
    int stage = 0;
    for (int tile = 0; tile < TILES * TILES; ++tile) {
        const size_t tile_row = (blockIdx.y * TILES + tile / TILES) * TILE;
        const size_t tile_col = (blockIdx.x * TILES + tile % TILES) * TILE;
        const float *a = A + tile_row * K, *b = B + tile_col;
        float sums[2][4] = {};
        auto copy = [&](int into, int k0) {
            pipe.producer_acquire();
            if (k0 < K) copy_tiles(As[into], Bs[into], a + k0, b + size_t(k0) * N, K, N, threadIdx.x, pipe);
            pipe.producer_commit();
        };
#if ROLES
        if (consumer < 0) {
            for (int k0 = 0; k0 < K; k0 += TILE, stage = (stage + 1) % STAGES) copy(stage, k0);
            continue;
        }
        for (int k0 = 0; k0 < K; k0 += TILE, stage = (stage + 1) % STAGES) {
            pipe.consumer_wait();
#if TURNS
#pragma unroll
            for (int i = 0; i < (TILE + ROWS - 1) / ROWS; ++i)
                if (int row = first_row + i * ROWS; row < TILE)
                    multiply(sums[i], As[stage] + row * TILE, Bs[stage] + col);
#else
            for (int i = 0, row = first_row; row < TILE; ++i, row += ROWS)
                multiply(sums[i], As[stage] + row * TILE, Bs[stage] + col);
#endif
            pipe.consumer_release();
        }
#else
        for (int s = 0; s < STAGES; ++s) copy(s, s * TILE);
        stage = 0;
        for (int k0 = 0; k0 < K; k0 += TILE, stage = (stage + 1) % STAGES) {
#if SHARED_STATE
            pipe.consumer_wait();
#else
            cuda::pipeline_consumer_wait_prior<STAGES - 1>(pipe);
            __syncthreads();
#endif
            multiply(sums[0], As[stage] + first_row * TILE, Bs[stage] + col);
            pipe.consumer_release();
            if (!SHARED_STATE) __syncthreads();
            copy(stage, k0 + STAGES * TILE);
        }
#if SHARED_STATE
        for (int s = 0; s < STAGES; ++s) {  // the groups past the end, which are empty
            pipe.consumer_wait();
            pipe.consumer_release();
        }
#endif
#endif
#if TURNS
#pragma unroll
        for (int i = 0; i < (TILE + ROWS - 1) / ROWS; ++i)
            if (int row = first_row + i * ROWS; row < TILE)
                for (int j = 0; j < 4; ++j) C[(tile_row + row) * N + tile_col + col + j] = sums[i][j];
#else
        for (int i = 0, row = first_row; row < TILE; ++i, row += ROWS)
            for (int j = 0; j < 4; ++j) C[(tile_row + row) * N + tile_col + col + j] = sums[i][j];
#endif
    }
}
