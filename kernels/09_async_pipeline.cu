// STAGES buffers of tiles: while one is multiplied, the copies of the next STAGES - 1 are in flight.
// Changed from async_copy: STAGES buffers; groups by cuda::pipeline (thread scope): a thread waits for its oldest.
// Block BM x BN x BK of warps WM x WN of threads TM x TN (as quads of 4 x 4); STAGES buffers of shared memory.
// Needs whole tiles (the launcher pads), 16-byte aligned A, B, C, and A stored M-major, as (K, M). sm_75: plain copies.

#include <cuda/pipeline>

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef BK
#define BK 16
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
#define STAGES 3
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif

constexpr int WARPS_N = BN / WN;
constexpr int THREADS = 32 * (BM / WM) * WARPS_N;
constexpr int LANES_M = WM / TM;
constexpr int LANES_N = WN / TN;
static_assert(LANES_M * LANES_N == 32 && LANES_N % 2 == 0, "a warp tile is 32 thread tiles, an even number across");
static_assert(STAGES >= 2, "one stage is multiplied while the others are filled");

using Pipeline = cuda::pipeline<cuda::thread_scope_thread>;

__device__ __forceinline__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ __forceinline__ void store4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }

// [copy]
// Start to copy BK rows of COLS floats, `pitch` apart in global memory, to rows of COLS in shared memory.
template <int COLS>
__device__ __forceinline__ void copy_tile(float* tile, const float* source, int pitch, Pipeline& pipe) {
    constexpr int ROWS = 4 * THREADS / COLS;  // that the block copies at a time
    static_assert(ROWS * COLS == 4 * THREADS && BK % ROWS == 0, "in whole rows");
    const int row = 4 * threadIdx.x / COLS, col = 4 * threadIdx.x % COLS;
    source += size_t(row) * pitch + col;
    tile += row * COLS + col;
#pragma unroll
    for (int k = 0; k < BK; k += ROWS, source += size_t(ROWS) * pitch)
        cuda::memcpy_async(tile + k * COLS, source, cuda::aligned_size_t<16>(16), pipe);
}
// [/copy]

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_async_pipeline(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                        int K, float alpha, float beta) {
    __shared__ __align__(16) float As[STAGES][BK * BM];
    __shared__ __align__(16) float Bs[STAGES][BK * BN];

    A += size_t(blockIdx.y) * BM;  // the block's columns of A stored as (K, M), columns of B, tile of C
    B += size_t(blockIdx.x) * BN;
    C += size_t(blockIdx.y) * BM * N + size_t(blockIdx.x) * BN;

    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int lane_row = lane / 2 % LANES_M;
    const int lane_col = lane / (2 * LANES_M) * 2 + lane % 2;
    const int thread_row = warp / WARPS_N * WM + lane_row * 4;
    const int thread_col = warp % WARPS_N * WN + lane_col * 4;

    float sums[TM][TN] = {};

    // [fetch]
    Pipeline pipe = cuda::make_pipeline();
    int fetched = 0;      // elements of K whose copies have been started
    int fetch_stage = 0;  // where the next ones go
    auto fetch = [&] {
        pipe.producer_acquire();
        if (fetched < K) {
            copy_tile<BM>(As[fetch_stage], A, M, pipe);
            copy_tile<BN>(Bs[fetch_stage], B, N, pipe);
            A += size_t(BK) * M;
            B += size_t(BK) * N;
        }
        pipe.producer_commit();  // past the end an empty group, so that the count of groups still tells the stages
        fetched += BK;
        fetch_stage = fetch_stage + 1 == STAGES ? 0 : fetch_stage + 1;
    };
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) fetch();
    // [/fetch]

    // [loop]
    int stage = 0;
    for (int k0 = 0; k0 < K; k0 += BK) {
        cuda::pipeline_consumer_wait_prior<STAGES - 2>(pipe);  // this thread's part of the oldest stage has landed
        __syncthreads();  // everybody's has, and everybody is done with the stage before it, which can be filled again
        fetch();

        // [compute]
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
        // [/compute]
        pipe.consumer_release();
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    // [/loop]

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
