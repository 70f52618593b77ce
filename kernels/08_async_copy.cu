// cp.async carries a tile from global to shared memory past the registers; a thread waits for it when it wants to.
// Changed from warp_tiled: that copy, into one buffer, with nothing fetched ahead, and smaller tiles per thread. It is
// here to show what the copy asks of a layout and of a barrier; async_pipeline fills the time that it waits.
// Tiles are (BM, BK):(1, BM + PAD), copied COPY floats at a time: misaligned unless PAD is a multiple of COPY.
// Needs whole tiles (the launcher pads), 16-byte aligned A, B, C, and A stored M-major, as (K, M). sm_75: plain copies.

#include "ptx.cuh"

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
#define WN 32
#endif
#ifndef TM
#define TM 8
#endif
#ifndef TN
#define TN 8
#endif
#ifndef COPY
#define COPY 4
#endif
#ifndef PAD
#define PAD COPY
#endif

constexpr int WARPS_N = BN / WN;
constexpr int THREADS = 32 * (BM / WM) * WARPS_N;
constexpr int LANES_M = WM / TM;
constexpr int LANES_N = WN / TN;
static_assert(LANES_M * LANES_N == 32 && LANES_N % 2 == 0, "a warp tile is 32 thread tiles, an even number across");

constexpr int A_PITCH = BM + PAD;
constexpr int B_PITCH = BN + PAD;
constexpr int READ = PAD % 4 == 0 ? 4 : PAD % 2 == 0 ? 2 : 1;  // floats of a shared load: as rows are aligned

struct __align__(4 * READ) Vector {
    float x[READ];
};
__device__ __forceinline__ Vector& vector(float* p) { return *reinterpret_cast<Vector*>(p); }

// [copy]
// Start to copy BK rows of COLS floats, `pitch` apart in global memory, to rows of COLS + PAD in shared memory.
template <int COLS>
__device__ __forceinline__ void copy_tile(float* tile, const float* source, int pitch) {
    constexpr int ROWS = COPY * THREADS / COLS;  // that the block copies at a time
    static_assert(ROWS * COLS == COPY * THREADS && BK % ROWS == 0, "in whole rows");
    const int row = COPY * threadIdx.x / COLS, col = COPY * threadIdx.x % COLS;
    source += size_t(row) * pitch + col;
    tile += row * (COLS + PAD) + col;
#pragma unroll
    for (int k = 0; k < BK; k += ROWS, source += size_t(ROWS) * pitch)
        cp_async<4 * COPY>(shared_address(tile + k * (COLS + PAD)), source);
}
// [/copy]

extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
    gemm_async_copy(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                    int K, float alpha, float beta) {
    __shared__ __align__(16) float As[BK][A_PITCH];
    __shared__ __align__(16) float Bs[BK][B_PITCH];

    A += size_t(blockIdx.y) * BM;  // the block's columns of A stored as (K, M), columns of B, tile of C
    B += size_t(blockIdx.x) * BN;
    C += size_t(blockIdx.y) * BM * N + size_t(blockIdx.x) * BN;

    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int lane_row = lane / 2 % LANES_M;
    const int lane_col = lane / (2 * LANES_M) * 2 + lane % 2;
    const int thread_row = warp / WARPS_N * WM + lane_row * READ;
    const int thread_col = warp % WARPS_N * WN + lane_col * READ;

    float sums[TM][TN] = {};

    for (int k0 = 0; k0 < K; k0 += BK, A += size_t(BK) * M, B += size_t(BK) * N) {
        // [load]
        copy_tile<BM>(As[0], A, M);
        copy_tile<BN>(Bs[0], B, N);
        cp_async_commit();
        cp_async_wait<0>();  // this thread's copies have landed
        __syncthreads();     // so have everybody's
                             // [/load]

        // [compute]
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            __align__(16) float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i += READ) vector(a + i) = vector(&As[k][thread_row + i * LANES_M]);
#pragma unroll
            for (int j = 0; j < TN; j += READ) vector(b + j) = vector(&Bs[k][thread_col + j * LANES_N]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 ? TN - 1 - step : step;
                    sums[i][j] += a[i] * b[j];
                }
        }
        __syncthreads();
        // [/compute]
    }

    // [store]
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += READ) {
            const int row = thread_row + i / READ * READ * LANES_M + i % READ;
            float* c = C + size_t(row) * N + thread_col + j * LANES_N;
            Vector v = beta == 0.0f ? Vector{} : vector(c);
#pragma unroll
            for (int jj = 0; jj < READ; ++jj) v.x[jj] = alpha * sums[i][j + jj] + beta * v.x[jj];
            vector(c) = v;
        }
    // [/store]
}
