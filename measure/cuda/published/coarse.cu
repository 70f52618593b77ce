// Stands for kernels 2 and 3 of the CUDA GEMMS post: the same tiles and the same accesses, written anew for this book.
// A block of 32 x 32 threads computes ROWS x COLS tiles of C of 32 x 32 at the same time, a thread one element of each.
// Kernel 2 is ROWS=1, COLS=4; kernel 3 is ROWS=4, COLS=4. For each of them the tile of B is loaded again; KEEP_B=1 loads
// the COLS tiles of a step once. PROMISE=1 promises that the matrices do not overlap, as the post does not; the compiler
// then keeps what it has loaded from B. A, B, C float, row-major; M is a multiple of 32 * ROWS, N of 32 * COLS, K of 32.
#ifndef ROWS
#define ROWS 1
#endif
#ifndef COLS
#define COLS 4
#endif
#ifndef KEEP_B
#define KEEP_B 0
#endif
#ifndef PROMISE
#define PROMISE 0
#endif
#if PROMISE
#define RESTRICT __restrict__
#else
#define RESTRICT
#endif

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE* TILE)
    gemm_coarse(const float* RESTRICT A, const float* RESTRICT B, float* RESTRICT C, int N, int K) {
    __shared__ float As[TILE][TILE], Bs[KEEP_B ? COLS : 1][TILE][TILE];
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    const int first_row = blockIdx.y * TILE * ROWS + y, first_col = blockIdx.x * TILE * COLS + x;
    float sums[ROWS][COLS] = {};
    // [loop]
    for (int k0 = 0; k0 < K; k0 += TILE)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            As[y][x] = A[size_t(first_row + r * TILE) * K + k0 + x];
#pragma unroll
            for (int c = 0; c < COLS; ++c) {
                auto& tile = Bs[KEEP_B ? c : 0];
                if (!KEEP_B || r == 0) tile[y][x] = B[size_t(k0 + y) * N + first_col + c * TILE];
                __syncthreads();
#pragma unroll
                for (int k = 0; k < TILE; ++k) sums[r][c] += As[y][k] * tile[k][x];
                __syncthreads();
            }
        }
    // [/loop]
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int c = 0; c < COLS; ++c) C[size_t(first_row + r * TILE) * N + first_col + c * TILE] = sums[r][c];
}
