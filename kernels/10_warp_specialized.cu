// Some warps only copy, the others only multiply; cuda::pipeline (block scope) hands stages to and fro: one is filled
// when all consumers have released it, multiplied when all producers' copies have landed.
// Changed from async_pipeline: PRODUCERS more threads. Slower: their registers are missing where the products are
// summed; it is here because copying by others is how kernels for Hopper and after are built.
// Needs whole tiles (the launcher pads), 16-byte aligned A, B, C, and A stored M-major, as (K, M). sm_75: plain copies.

#include <cooperative_groups.h>
#include <cuda/pipeline>

#ifndef BM
#define BM 256
#endif
#ifndef BN
#define BN 64
#endif
#ifndef BK
#define BK 8
#endif
#ifndef WM
#define WM 64
#endif
#ifndef WN
#define WN 64
#endif
#ifndef TM
#define TM 16
#endif
#ifndef TN
#define TN 8
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef PRODUCERS
#define PRODUCERS 64
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif

constexpr int WARPS_N = BN / WN;
constexpr int CONSUMERS = 32 * (BM / WM) * WARPS_N;
constexpr int THREADS = CONSUMERS + PRODUCERS;
constexpr int LANES_M = WM / TM;
constexpr int LANES_N = WN / TN;
static_assert(LANES_M * LANES_N == 32 && LANES_N % 2 == 0, "a warp tile is 32 thread tiles, an even number across");

// The state in shared memory is initialised by make_pipeline, not by its constructor.
#pragma nv_diag_suppress static_var_with_dynamic_init

using Pipeline = cuda::pipeline<cuda::thread_scope_block>;
using PipelineState = cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES>;

__device__ __forceinline__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ __forceinline__ void store4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }

// [copy]
// Start to copy BK rows of COLS floats, `pitch` apart in global memory, to rows of COLS in shared memory.
template <int COLS>
__device__ __forceinline__ void copy_tile(float* tile, const float* source, int pitch, Pipeline& pipe) {
    const int thread = threadIdx.x - CONSUMERS;
#pragma unroll
    for (int i = 0; i < BK * COLS; i += 4 * PRODUCERS) {
        const int k = (i + 4 * thread) / COLS, col = (i + 4 * thread) % COLS;
        cuda::memcpy_async(tile + k * COLS + col, source + size_t(k) * pitch + col, cuda::aligned_size_t<16>(16), pipe);
    }
}
// [/copy]

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_warp_specialized(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                          int K, float alpha, float beta) {
    __shared__ __align__(16) float As[STAGES][BK * BM];
    __shared__ __align__(16) float Bs[STAGES][BK * BN];
    __shared__ PipelineState state;

    A += size_t(blockIdx.y) * BM;  // the block's columns of A stored as (K, M), columns of B, tile of C
    B += size_t(blockIdx.x) * BN;
    C += size_t(blockIdx.y) * BM * N + size_t(blockIdx.x) * BN;

    Pipeline pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state, PRODUCERS);
    int stage = 0;

    // [producer]
    if (threadIdx.x >= CONSUMERS) {
        for (int k0 = 0; k0 < K; k0 += BK, A += size_t(BK) * M, B += size_t(BK) * N) {
            pipe.producer_acquire();  // wait until the consumers have released this stage
            copy_tile<BM>(As[stage], A, M, pipe);
            copy_tile<BN>(Bs[stage], B, N, pipe);
            pipe.producer_commit();  // arrives at the stage's barrier when the copies have landed
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
        return;
    }
    // [/producer]

    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int lane_row = lane / 2 % LANES_M;
    const int lane_col = lane / (2 * LANES_M) * 2 + lane % 2;
    const int thread_row = warp / WARPS_N * WM + lane_row * 4;
    const int thread_col = warp % WARPS_N * WN + lane_col * 4;

    float sums[TM][TN] = {};

    // [consumer]
    for (int k0 = 0; k0 < K; k0 += BK) {
        pipe.consumer_wait();  // until the producers' copies of this stage have landed
        const float* as = As[stage] + thread_row;
        const float* bs = Bs[stage] + thread_col;
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            __align__(16) float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4) store4(a + i, load4(as + k * BM + i * LANES_M));
#pragma unroll
            for (int j = 0; j < TN; j += 4) store4(b + j, load4(bs + k * BN + j * LANES_N));
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 ? TN - 1 - step : step;
                    sums[i][j] += a[i] * b[j];
                }
        }
        pipe.consumer_release();
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    // [/consumer]

    // [store]
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int row = thread_row + i / 4 * 4 * LANES_M + i % 4;
            float* c = C + size_t(row) * N + thread_col + j * LANES_N;
            const float4 old = beta == 0.0f ? float4{} : load4(c);
            store4(c, {alpha * sums[i][j + 0] + beta * old.x, alpha * sums[i][j + 1] + beta * old.y,
                       alpha * sums[i][j + 2] + beta * old.z, alpha * sums[i][j + 3] + beta * old.w});
        }
    // [/store]
}
