// Every access but the stores to As moves 128 bits: a quarter of these instructions for the same bytes.
// Changed from coarsened_2d: float4 loads from global and shared memory, float4 stores; As is stored transposed, so
// that the values of A that a thread needs for one k are neighbours; a thread owns quads of rows and of columns.
// Block BM x BN of (BM/TM) x (BN/TN) threads, a thread (TM/4) x (TN/4) squares of 4 x 4.
// Needs whole tiles (the launcher pads) and 16-byte aligned A, B, C.

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
static_assert(BM * BK % (4 * THREADS) == 0 && BK * BN % (4 * THREADS) == 0, "each thread loads as many float4");

__device__ __forceinline__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ __forceinline__ void store4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }

extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
    gemm_vectorized(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                    int K, float alpha, float beta) {
    __shared__ __align__(16) float As[BK][BM];  // transposed: As[k][row]
    __shared__ __align__(16) float Bs[BK][BN];

    A += size_t(blockIdx.y) * BM * K;  // the block's rows of A, columns of B, tile of C
    B += size_t(blockIdx.x) * BN;
    C += size_t(blockIdx.y) * BM * N + size_t(blockIdx.x) * BN;
    const int thread_row = threadIdx.x / THREADS_N * 4;  // first row of the thread's first quad
    const int thread_col = threadIdx.x % THREADS_N * 4;

    float sums[TM][TN] = {};

    for (int k0 = 0; k0 < K; k0 += BK) {
        // [load]
#pragma unroll
        for (int i = 0; i < BM * BK; i += 4 * THREADS) {
            const int row = (i + 4 * threadIdx.x) / BK, k = (i + 4 * threadIdx.x) % BK;
            const float4 quad = load4(A + size_t(row) * K + k0 + k);
            As[k + 0][row] = quad.x;
            As[k + 1][row] = quad.y;
            As[k + 2][row] = quad.z;
            As[k + 3][row] = quad.w;
        }
#pragma unroll
        for (int i = 0; i < BK * BN; i += 4 * THREADS) {
            const int k = (i + 4 * threadIdx.x) / BN, col = (i + 4 * threadIdx.x) % BN;
            store4(&Bs[k][col], load4(B + size_t(k0 + k) * N + col));
        }
        __syncthreads();
        // [/load]

        // [compute]
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            __align__(16) float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4) store4(a + i, load4(&As[k][thread_row + i * THREADS_M]));
#pragma unroll
            for (int j = 0; j < TN; j += 4) store4(b + j, load4(&Bs[k][thread_col + j * THREADS_N]));
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
        for (int j = 0; j < TN; j += 4) {
            const int row = thread_row + i / 4 * 4 * THREADS_M + i % 4;
            float* c = C + size_t(row) * N + thread_col + j * THREADS_N;
            const float4 old = beta == 0.0f ? float4{} : load4(c);
            store4(c, {alpha * sums[i][j + 0] + beta * old.x, alpha * sums[i][j + 1] + beta * old.y,
                       alpha * sums[i][j + 2] + beta * old.z, alpha * sums[i][j + 3] + beta * old.w});
        }
    // [/store]
}
