// mma_multistage: everything at once. One block a multiprocessor stays for the whole product and walks its tiles as
// one stream of k-steps, so that loads for the next tile are in flight while the last one is still being stored.
// Since mma_swizzled: STAGES shared-memory stages, fragments double-buffered in registers, tiles ordered for L2.
// Tiles: block BM x BN x BK, warp WM x WN, instruction 16 x 8 x 16. Needs K and N in multiples of 8 (16-byte rows).
// C is fp32, or fp16 with -DHALF_OUTPUT=1. On sm_75 cp.async and m16n8k16 take their slower paths (ptx.cuh).
#include "epilogue.cuh"
#include "ptx.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 256
#endif
#ifndef BK
#define BK 64
#endif
#ifndef WM
#define WM 64
#endif
#ifndef WN
#define WN 64
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef GROUP
#define GROUP 8  // tiles that neighbouring blocks take go down GROUP rows of tiles before the next column
#endif
#ifndef HALF_OUTPUT
#define HALF_OUTPUT 0
#endif

#if HALF_OUTPUT
using Out = half;
#else
using Out = float;
#endif

constexpr int WARPS = (BM / WM) * (BN / WN);
constexpr int THREADS = 32 * WARPS;
constexpr int A_CHUNKS = BK / 8;  // 16-byte chunks (8 halves) in a row of As
constexpr int B_CHUNKS = BN / 8;  // and in a row of Bs
constexpr int A_BYTES = BM * BK * 2;
constexpr int STAGE_BYTES = A_BYTES + BK * BN * 2;
constexpr int M_ATOMS = WM / 16;
constexpr int N_ATOMS = WN / 8;
constexpr int K_ATOMS = BK / 16;
static_assert(A_CHUNKS == 4 || A_CHUNKS == 8, "rows of As are 64 or 128 bytes");
static_assert(B_CHUNKS >= 8 && N_ATOMS % 2 == 0 && BM % WM == 0 && BN % WN == 0, "tiles must nest");
constexpr int A_ROW_STEP = THREADS / A_CHUNKS, A_COPIES = BM / A_ROW_STEP;  // rows and copies of one thread
constexpr int B_ROW_STEP = THREADS / B_CHUNKS, B_COPIES = BK / B_ROW_STEP;
static_assert(A_ROW_STEP % 8 == 0 && B_ROW_STEP % 8 == 0, "all copies of a thread share one swizzle mask");
static_assert(A_COPIES * A_ROW_STEP == BM && B_COPIES * B_ROW_STEP == BK, "every thread copies whole chunks");

// [swizzle]
// Where 16-byte chunk (row, chunk) stands: XOR spreads the 8 rows that one ldmatrix phase reads over all banks.
// A row of 64 bytes shares its 128 bytes of banks with a neighbour, so there every second row changes the mask.
__device__ __forceinline__ int a_offset(int row, int chunk) {
    const int mask = A_CHUNKS == 8 ? row & 7 : row / 2 & 3;
    return (row * A_CHUNKS + (chunk ^ mask)) * 16;
}
__device__ __forceinline__ int b_offset(int row, int chunk) {
    return (row * B_CHUNKS + (chunk ^ (row & 7))) * 16;
}
// [/swizzle]

// [raster]
// The position of tile number `tile` in C: down GROUP rows, then the next column, so that the blocks that run at
// the same time read few rows of A and few columns of B, and find most of them in L2.
__device__ __forceinline__ void tile_position(int tile, int tile_rows, int tile_cols, int& row, int& col) {
    const int per_group = GROUP * tile_cols;
    const int first_row = tile / per_group * GROUP;
    const int rows = min(tile_rows - first_row, GROUP);
    row = (first_row + tile % per_group % rows) * BM;
    col = tile % per_group / rows * BN;
}
// [/raster]

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_mma_multistage(const half* __restrict__ A, const half* __restrict__ B, Out* __restrict__ C, int M, int N,
                        int K, float alpha, float beta) {
    extern __shared__ __align__(128) unsigned char shared[];
    const unsigned stage0 = shared_address(shared);
    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const int warp_row = thread / 32 / (BN / WN) * WM;
    const int warp_col = thread / 32 % (BN / WN) * WN;

    const int tile_rows = (M + BM - 1) / BM;
    const int tile_cols = (N + BN - 1) / BN;
    const int k_steps = (K + BK - 1) / BK;
    const int my_tiles = (tile_rows * tile_cols - static_cast<int>(blockIdx.x) + gridDim.x - 1) / gridDim.x;
    const int steps = my_tiles * k_steps;

    // [load]
    // The loader runs STAGES - 1 k-steps ahead of the multiplier, across the border between tiles.
    int load_tile = blockIdx.x, load_k = 0, load_row, load_col;
    tile_position(load_tile, tile_rows, tile_cols, load_row, load_col);
    const int a_row = thread / A_CHUNKS, a_col = thread % A_CHUNKS * 8;
    const int b_row = thread / B_CHUNKS, b_col = thread % B_CHUNKS * 8;
    const unsigned a_target = stage0 + a_offset(a_row, a_col / 8);
    const unsigned b_target = stage0 + A_BYTES + b_offset(b_row, b_col / 8);

    auto load_part = [&](int stage, int part) {  // one K_ATOMS-th of the copies of a k-step
        const bool a_inside = load_k + a_col < K, b_inside = load_col + b_col < N;
        const half* a_source = A + static_cast<long long>(load_row + a_row) * K + load_k + a_col;
        const half* b_source = B + static_cast<long long>(load_k + b_row) * N + load_col + b_col;
#pragma unroll
        for (int i = part * A_COPIES / K_ATOMS; i < (part + 1) * A_COPIES / K_ATOMS; ++i)
            cp_async<16>(a_target + stage * STAGE_BYTES + i * A_ROW_STEP * BK * 2,
                         a_source + static_cast<long long>(i * A_ROW_STEP) * K,
                         a_inside && load_row + a_row + i * A_ROW_STEP < M);
#pragma unroll
        for (int i = part * B_COPIES / K_ATOMS; i < (part + 1) * B_COPIES / K_ATOMS; ++i)
            cp_async<16>(b_target + stage * STAGE_BYTES + i * B_ROW_STEP * BN * 2,
                         b_source + static_cast<long long>(i * B_ROW_STEP) * N,
                         b_inside && load_k + b_row + i * B_ROW_STEP < K);
    };
    auto load_advance = [&] {
        load_k += BK;
        if (load_k >= K) {
            load_k = 0;
            load_tile += gridDim.x;
            tile_position(load_tile, tile_rows, tile_cols, load_row, load_col);
        }
    };
    // [/load]

    // [fragments]
    // ldmatrix row addresses of this lane. Moving by whole 8-row groups keeps the swizzle mask, so only the chunk
    // (k for A, n for B) needs an address of its own; everything else is a constant offset.
    unsigned a_address[K_ATOMS], b_address[N_ATOMS / 2];
#pragma unroll
    for (int k = 0; k < K_ATOMS; ++k)
        a_address[k] = stage0 + a_offset(warp_row + lane % 16, 2 * k + lane / 16);
#pragma unroll
    for (int n = 0; n < N_ATOMS / 2; ++n)
        b_address[n] = stage0 + A_BYTES + b_offset(lane % 16, warp_col / 8 + 2 * n + lane / 16);

    unsigned a[2][M_ATOMS][4], b[2][N_ATOMS / 2][4];
    auto load_fragments = [&](int buffer, int stage, int k) {
#pragma unroll
        for (int m = 0; m < M_ATOMS; ++m)
            ldmatrix_x4(a[buffer][m], a_address[k] + stage * STAGE_BYTES + m * 16 * A_CHUNKS * 16);
#pragma unroll
        for (int n = 0; n < N_ATOMS / 2; ++n)
            ldmatrix_x4_trans(b[buffer][n], b_address[n] + stage * STAGE_BYTES + k * 16 * B_CHUNKS * 16);
    };
    // [/fragments]

    float acc[M_ATOMS][N_ATOMS][4] = {};
    // [store]
    auto store = [&](int tile) {
        int tile_row, tile_col;
        tile_position(tile, tile_rows, tile_cols, tile_row, tile_col);
#pragma unroll
        for (int m = 0; m < M_ATOMS; ++m) {
#pragma unroll
            for (int n = 0; n < N_ATOMS; ++n) {
                store_atom(C, M, N, tile_row + warp_row + m * 16, tile_col + warp_col + n * 8, acc[m][n], alpha, beta);
#pragma unroll
                for (int i = 0; i < 4; ++i) acc[m][n][i] = 0.0f;
            }
        }
    };
    // [/store]

    // [prologue]
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        if (stage < steps) {
#pragma unroll
            for (int part = 0; part < K_ATOMS; ++part) load_part(stage, part);
            load_advance();
        }
        cp_async_commit();
    }
    cp_async_wait<STAGES - 2>();
    __syncthreads();
    load_fragments(0, 0, 0);
    // [/prologue]

    // [compute]
    int tile = blockIdx.x, k_step = 0, read_stage = 0, write_stage = STAGES - 1;
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int k = 0; k < K_ATOMS; ++k) {
            if (step + STAGES - 1 < steps) load_part(write_stage, k);
            if (k == K_ATOMS - 1) {  // the next stage must have landed, and everyone have left this one
                cp_async_commit();
                cp_async_wait<STAGES - 2>();
                __syncthreads();
                write_stage = read_stage;
                read_stage = read_stage + 1 == STAGES ? 0 : read_stage + 1;
            }
            load_fragments((k + 1) % 2, read_stage, (k + 1) % K_ATOMS);
#pragma unroll
            for (int m = 0; m < M_ATOMS; ++m)
#pragma unroll
                for (int n = 0; n < N_ATOMS; ++n)
                    mma_m16n8k16(acc[m][n], a[k % 2][m], b[k % 2][n / 2][n % 2 * 2], b[k % 2][n / 2][n % 2 * 2 + 1]);
        }
        load_advance();
        if (++k_step == k_steps) {
            store(tile);
            tile += gridDim.x;
            k_step = 0;
        }
    }
    // [/compute]
}
