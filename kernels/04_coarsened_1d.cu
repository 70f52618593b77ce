// A thread computes a column of TM outputs, so that one value of B serves TM multiply-adds from a register.
// Changed from tiled: TM partial sums a thread, a block tile taller than its threads, a short BK slice of K at a time.
// Block BM x BN, a warp 32 neighbouring columns of TM rows, a thread TM x 1.
// Needs whole tiles (the launcher pads) and BN a multiple of 32.

#ifndef BM
#define BM 64
#endif
#ifndef BN
#define BN 64
#endif
#ifndef BK
#define BK 8
#endif
#ifndef TM
#define TM 8
#endif

constexpr int THREADS = BM * BN / TM;
static_assert(BM * BK % THREADS == 0 && BK * BN % THREADS == 0, "each thread loads as many elements");

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_coarsened_1d(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                      int K, float alpha, float beta) {
    __shared__ float As[BM][BK];
    __shared__ float Bs[BK][BN];

    A += size_t(blockIdx.y) * BM * K;  // the block's rows of A, columns of B, tile of C
    B += size_t(blockIdx.x) * BN;
    C += size_t(blockIdx.y) * BM * N + size_t(blockIdx.x) * BN;
    const int thread_row = threadIdx.x / BN * TM;
    const int thread_col = threadIdx.x % BN;

    float sums[TM] = {};

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
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float b = Bs[k][thread_col];  // read once, used TM times
#pragma unroll
            for (int i = 0; i < TM; ++i) sums[i] += As[thread_row + i][k] * b;
        }
        __syncthreads();
        // [/compute]
    }

    // [store]
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        float& c = C[size_t(thread_row + i) * N + thread_col];
        c = beta == 0.0f ? alpha * sums[i] : alpha * sums[i] + beta * c;
    }
    // [/store]
}
