// A thread computes a TM x TN tile: TM values of A and TN of B, once in registers, serve TM * TN multiply-adds.
// Changed from coarsened_1d: the thread tile is two-dimensional, so that values of A are kept in registers as well.
// Block BM x BN of (BM/TM) x (BN/TN) threads. A thread's rows and columns lie that far apart, so that
// neighbouring threads read neighbouring columns of shared and of global memory.
// Needs whole tiles (the launcher pads).

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef BK
#define BK 8
#endif
#ifndef TM
#define TM 8
#endif
#ifndef TN
#define TN 8
#endif

constexpr int THREADS_M = BM / TM;
constexpr int THREADS_N = BN / TN;
constexpr int THREADS = THREADS_M * THREADS_N;
static_assert(BM * BK % THREADS == 0 && BK * BN % THREADS == 0, "each thread loads as many elements");

extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
    gemm_coarsened_2d(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                      int K, float alpha, float beta) {
    __shared__ float As[BM][BK];
    __shared__ float Bs[BK][BN];

    A += size_t(blockIdx.y) * BM * K;  // the block's rows of A, columns of B, tile of C
    B += size_t(blockIdx.x) * BN;
    C += size_t(blockIdx.y) * BM * N + size_t(blockIdx.x) * BN;
    const int thread_row = threadIdx.x / THREADS_N;  // and every THREADS_M-th row after it
    const int thread_col = threadIdx.x % THREADS_N;  // and every THREADS_N-th column after it

    float sums[TM][TN] = {};

    for (int k0 = 0; k0 < K; k0 += BK) {
        // [load]
#pragma unroll
        for (int i = 0; i < BM * BK; i += THREADS) {
            const int row = (i + threadIdx.x) / BK, k = (i + threadIdx.x) % BK;
            As[row][k] = A[size_t(row) * K + k0 + k];
        }
#pragma unroll
        for (int i = 0; i < BK * BN; i += THREADS) {
            const int k = (i + threadIdx.x) / BN, col = (i + threadIdx.x) % BN;
            Bs[k][col] = B[size_t(k0 + k) * N + col];
        }
        __syncthreads();
        // [/load]

        // [compute]
#pragma unroll 4  // all BK at once would need more than the 128 registers that let two blocks share an SM
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) a[i] = As[thread_row + i * THREADS_M][k];
#pragma unroll
            for (int j = 0; j < TN; ++j) b[j] = Bs[k][thread_col + j * THREADS_N];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sums[i][j] += a[i] * b[j];
        }
        __syncthreads();
        // [/compute]
    }

    // [store]
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            float& c = C[size_t(thread_row + i * THREADS_M) * N + thread_col + j * THREADS_N];
            c = beta == 0.0f ? alpha * sums[i][j] : alpha * sums[i][j] + beta * c;
        }
    // [/store]
}
