// mma_sync: ldmatrix brings 8x8 matrices from shared memory straight into the registers where mma.sync wants them.
// Changed from mma_atoms: shared memory in between, each lane choosing the row it addresses. Slower than wmma_async,
// which has larger tiles and padded rows; this one begins again from a small warp tile, with conflicts, to mend both.
// Block BM x BN x BK, warp 16 x 32 (four 16 x 8 mma), double-buffered with cp.async; rows of 64 bytes (panels of 32
// columns): 4-way conflicts. Whole tiles (its launcher pads); sm_75 through ptx.cuh.
#include "epilogue.cuh"
#include "ptx.cuh"

#ifndef BM
#define BM 64
#endif
#ifndef BN
#define BN 64
#endif

constexpr int BK = 32;
constexpr int WM = 16, WN = 32;
constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
constexpr int PITCH = 64;                // bytes from a shared row to the next: 32 halves
constexpr int A_BYTES = BM * PITCH;      // As: BM rows of BK = 32 halves
constexpr int PANEL_BYTES = BK * PITCH;  // Bs: BN / 32 panels, each BK rows of 32 halves
constexpr int STAGE_BYTES = A_BYTES + BN / 32 * PANEL_BYTES;

// [layout]
// Byte offset of 16-byte chunk `chunk` (8 halves) of row `row` in a shared panel: rows of 64 bytes, one after another.
__device__ __forceinline__ int panel_offset(int row, int chunk) { return row * PITCH + chunk * 16; }
// [/layout]

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_mma_sync(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C, int M, int N, int K,
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

    float acc[4][4] = {};
    // [compute]
    auto multiply = [&](int stage) {
        const unsigned As = shared0 + stage * STAGE_BYTES;
        const unsigned Bs = As + A_BYTES + warp_col / 32 * PANEL_BYTES;  // the warp's 32 columns are one panel
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned a[4], b[4], c[4];  // 16 x 16 of A; twice 16 x 16 of B, transposed on the way
            ldmatrix_x4(a, As + panel_offset(warp_row + lane % 16, k / 8 + lane / 16));
            ldmatrix_x4_trans(b, Bs + panel_offset(k + lane % 16, lane / 16));
            ldmatrix_x4_trans(c, Bs + panel_offset(k + lane % 16, 2 + lane / 16));
            mma_m16n8k16(acc[0], a, b[0], b[1]);
            mma_m16n8k16(acc[1], a, b[2], b[3]);
            mma_m16n8k16(acc[2], a, c[0], c[1]);
            mma_m16n8k16(acc[3], a, c[2], c[3]);
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
    for (int n = 0; n < 4; n += 2)
        store_atoms(C, M, N, block_row + warp_row, block_col + warp_col + n * 8, acc[n], acc[n + 1], alpha, beta);
    // [/store]
}
