// mma_tiled: the same instructions, a 64 x 64 warp tile: a fragment of A is used in eight mma instead of four, one of B
// in four instead of one, and all 128 partial sums of a lane stay in registers for the whole product.
// Changed from mma_sync: loops over M_ATOMS x N_ATOMS around the mma: 8 times the products from 8/3 times the ldmatrix.
// Tiles: block BM x BN x BK, warp WM x WN, instruction 16 x 8 x 16, double-buffered with cp.async.
// Needs M, N, K in whole tiles (its launcher pads); sm_75 through ptx.cuh.
#include "epilogue.cuh"
#include "ptx.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef WM
#define WM 64
#endif
#ifndef WN
#define WN 64
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif

constexpr int BK = 32;
constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
constexpr int PITCH = 64;                // bytes from a shared row to the next: 32 halves
constexpr int A_BYTES = BM * PITCH;      // As: BM rows of BK = 32 halves
constexpr int PANEL_BYTES = BK * PITCH;  // Bs: BN / 32 panels, each BK rows of 32 halves
constexpr int STAGE_BYTES = A_BYTES + BN / 32 * PANEL_BYTES;
constexpr int M_ATOMS = WM / 16, N_ATOMS = WN / 8;
static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 32 == 0, "tiles must nest");

// [layout]
// Byte offset of 16-byte chunk `chunk` (8 halves) of row `row` in a shared panel: rows of 64 bytes, one after another.
__device__ __forceinline__ int panel_offset(int row, int chunk) { return row * PITCH + chunk * 16; }
// [/layout]

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_mma_tiled(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                   float alpha, float beta) {
    __shared__ __align__(128) unsigned char shared[2 * STAGE_BYTES];
    const unsigned shared0 = shared_address(shared);
    const int lane = threadIdx.x % 32;
    const int warp_row = threadIdx.x / 32 / (BN / WN) * WM;
    const int warp_col = threadIdx.x / 32 % (BN / WN) * WN;
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;

    // [load]
    // A thread copies the same 16 bytes of every A_ROW_STEP-th row of A and of every B_ROW_STEP-th row of B.
    const int a_row = threadIdx.x / 4, a_chunk = threadIdx.x % 4;
    const int b_row = threadIdx.x / (BN / 8), b_chunk = threadIdx.x % (BN / 8);
    constexpr int A_ROW_STEP = THREADS / 4, B_ROW_STEP = 8 * THREADS / BN;
    static_assert(BM % A_ROW_STEP == 0 && BK % B_ROW_STEP == 0, "every thread copies whole chunks");
    auto load = [&](int stage, int k0) {
        const unsigned As = shared0 + stage * STAGE_BYTES, Bs = As + A_BYTES + b_chunk / 4 * PANEL_BYTES;
        const half* a_source = A + size_t(block_row + a_row) * K + k0 + a_chunk * 8;
        const half* b_source = B + size_t(k0 + b_row) * N + block_col + b_chunk * 8;
#pragma unroll
        for (int row = 0; row < BM; row += A_ROW_STEP, a_source += A_ROW_STEP * K)
            cp_async<16>(As + panel_offset(a_row + row, a_chunk), a_source);
#pragma unroll
        for (int row = 0; row < BK; row += B_ROW_STEP, b_source += B_ROW_STEP * N)
            cp_async<16>(Bs + panel_offset(b_row + row, b_chunk % 4), b_source);
        cp_async_commit();
    };
    // [/load]

    float acc[M_ATOMS][N_ATOMS][4] = {};
    // [compute]
    auto multiply = [&](int stage) {
        const unsigned As = shared0 + stage * STAGE_BYTES, Bs = As + A_BYTES;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned a[M_ATOMS][4], b[N_ATOMS / 2][4];
#pragma unroll
            for (int m = 0; m < M_ATOMS; ++m)  // 16 x 16 of A: lanes 0-15 address rows, lanes 16-31 the next 8 columns
                ldmatrix_x4(a[m], As + panel_offset(warp_row + m * 16 + lane % 16, k / 8 + lane / 16));
#pragma unroll
            for (int n = 0; n < N_ATOMS / 2; ++n) {  // 16 x 16 of B, transposed on the way
                const int col = warp_col / 8 + n * 2 + lane / 16;
                ldmatrix_x4_trans(b[n], Bs + col / 4 * PANEL_BYTES + panel_offset(k + lane % 16, col % 4));
            }
#pragma unroll
            for (int m = 0; m < M_ATOMS; ++m)
#pragma unroll
                for (int n = 0; n < N_ATOMS; ++n)
                    mma_m16n8k16(acc[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
        }
    };
    // [/compute]

    // [pipeline]
    load(0, 0);
    for (int k0 = 0, stage = 0; k0 < K; k0 += BK, stage ^= 1) {
        cp_async_wait<0>();  // this thread's copies of this stage have landed;
        __syncthreads();     // now everybody's have, and everybody has left the other stage
        if (k0 + BK < K) load(stage ^ 1, k0 + BK);
        multiply(stage);
    }
    // [/pipeline]

    // [store]
#pragma unroll
    for (int m = 0; m < M_ATOMS; ++m)
#pragma unroll
        for (int n = 0; n < N_ATOMS; n += 2)
            store_atoms(C, M, N, block_row + warp_row + m * 16, block_col + warp_col + n * 8, acc[m][n], acc[m][n + 1],
                        alpha, beta);
    // [/store]
}
