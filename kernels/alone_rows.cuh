// How each rung is launched, from its macros: what alone.cu needs to know, and what the rung's row in rungs.py says in
// Python. tests/kernels/test_alone.py compares the two.
#pragma once

namespace alone {

enum Format { FP32, TF32, FP16, BF16, E4M3, INT8, MXFP8, NVFP4 };
enum Order { BY_ROW, BY_COLUMN };  // what of a matrix lies in one piece

struct Launch {
    Format inputs;
    Order A, B;
    int whole[3];  // M, N and K are padded to multiples of these
    dim3 block, grid;
    int shared;        // dynamic shared memory, bytes
    int a_box, b_box;  // rows of 128 bytes that TMA copies at once; 0: the kernel takes pointers
    bool early;        // the kernel itself waits for the one before it
};

#define BOTH_SIDES __host__ __device__ constexpr
BOTH_SIDES int least(int a, int b) { return a < b ? a : b; }
BOTH_SIDES int ceil_div(int a, int b) { return (a + b - 1) / b; }
BOTH_SIDES dim3 tile_grid(int M, int N, int rows, int cols) { return dim3(ceil_div(N, cols), ceil_div(M, rows)); }

// As few blocks, in clusters of m x n, as finish in as many rounds as `blocks` of them would.
BOTH_SIDES dim3 persistent_grid(int M, int N, int rows, int cols, int blocks, int m = 1, int n = 1) {
    const int tiles = ceil_div(M, rows * m) * ceil_div(N, cols * n);
    return dim3(ceil_div(tiles, ceil_div(tiles, blocks / (m * n))) * m * n);
}

// `split` blocks per tile; where no tile is shared (1), or any (0), as many as run at a time and have work.
BOTH_SIDES dim3 split_grid(int tiles, int k_steps, int split, int blocks, int cluster) {
    return dim3(split > 1 ? tiles * split : least(blocks / cluster, split ? tiles : tiles * k_steps) * cluster);
}

}  // namespace alone

// clang-format off
#define PLAIN BY_ROW, BY_ROW
#define A_TURNED BY_COLUMN, BY_ROW
#define B_TURNED BY_ROW, BY_COLUMN
#define SQUARES {1, 1, 1}, dim3(BLOCK, BLOCK), tile_grid(M, N, BLOCK, BLOCK)
#define TILES tile_grid(M, N, BM, BN)
#define WARPS (32 * (BM / WM) * (BN / WN))
#define HALF (BF16_INPUT ? BF16 : FP16)
#define STAYING persistent_grid(M, N, BM, BN, BLOCKS)
#define STAGED (128 * (BM + BN) * STAGES)
#define WARPS_OF_64 (32 * (BM / WM) * (BN / 64))

//      rung                    kernel                 inputs  A, B      padded to     threads                      blocks   shared memory, boxes
#define ROW_01_uncoalesced      gemm_uncoalesced,      FP32,   PLAIN,    SQUARES
#define ROW_02_naive            gemm_naive,            FP32,   PLAIN,    SQUARES
#define ROW_03_tiled            gemm_tiled,            HALF_INPUT ? FP16 : FP32, PLAIN, SQUARES
#define ROW_04_coarsened_1d     gemm_coarsened_1d,     FP32,   PLAIN,    {BM, BN, BK}, BM * BN / TM,                TILES
#define ROW_05_coarsened_2d     gemm_coarsened_2d,     FP32,   PLAIN,    {BM, BN, BK}, BM * BN / (TM * TN),         TILES
#define ROW_06_vectorized       gemm_vectorized,       FP32,   PLAIN,    {BM, BN, BK}, BM * BN / (TM * TN),         TILES
#define ROW_07_warp_tiled       gemm_warp_tiled,       FP32,   PLAIN,    {BM, BN, BK}, WARPS * SLICES,              TILES
#define ROW_08_async_copy       gemm_async_copy,       FP32,   A_TURNED, {BM, BN, BK}, WARPS,                       TILES
#define ROW_09_async_pipeline   gemm_async_pipeline,   FP32,   A_TURNED, {BM, BN, BK}, WARPS,                       TILES
#define ROW_10_warp_specialized gemm_warp_specialized, FP32,   A_TURNED, {BM, BN, BK}, WARPS + PRODUCERS,           TILES
#define ROW_11_wmma             gemm_wmma,             FP16,   PLAIN,    {BM, BN, 16}, WARPS,                       TILES
#define ROW_12_wmma_shared      gemm_wmma_shared,      FP16,   PLAIN,    {BM, BN, BK}, WARPS,                       TILES, 2 * (BM * (BK + PAD) + BK * (BN + PAD))
#define ROW_13_wmma_async       gemm_wmma_async,       FP16,   PLAIN,    {BM, BN, BK}, WARPS,                       TILES, 2 * STAGES * (BM * (BK + PAD) + BK * (BN + PAD))
#define ROW_14_mma_atoms        gemm_mma_atoms,        FP16,   PLAIN,    {16, 8, 16},  32,                          tile_grid(M, N, 16, 8)
#define ROW_15_mma_sync         gemm_mma_sync,         FP16,   PLAIN,    {BM, BN, 32}, 32 * (BM / 16) * (BN / 32),  TILES
#define ROW_16_mma_tiled        gemm_mma_tiled,        FP16,   PLAIN,    {BM, BN, 32}, WARPS,                       TILES
#define ROW_17_mma_padded       gemm_mma_padded,       FP16,   PLAIN,    {BM, BN, 32}, WARPS,                       TILES
#define ROW_18_mma_swizzled     gemm_mma_swizzled,     FP16,   PLAIN,    {BM, BN, 32}, WARPS,                       TILES
#define ROW_19_mma_tf32         gemm_mma_tf32,         TF32,   A_TURNED, {BM, BN, BK}, WARPS,                       TILES, 4 * STAGES * BK * (BM + 8 + BN + 8)
#define ROW_20_mma_multistage   gemm_mma_multistage,   FP16,   PLAIN,    {1, 8, 8},    WARPS, \
    dim3(least(ceil_div(M, BM) * ceil_div(N, BN), BLOCKS)), 2 * STAGES * BK * (BM + BN)
#define ROW_21_tma_mma          gemm_tma_mma,          FP16,   PLAIN,    {1, 8, 8},    WARPS_OF_64 + 128,           STAYING, \
    STAGED + 64 * BUFFERS * WARPS_OF_64, BM, 64
#define ROW_22_wgmma            gemm_wgmma,            HALF,   PLAIN,    {1, 8, 8},    BM / 64 * 128,               TILES, 128 * (BM + BN), BM, 64
#define ROW_23_wgmma_pipelined  gemm_wgmma_pipelined,  HALF,   PLAIN,    {1, 8, 8},    BM / 64 * 128 + 128,         TILES, STAGED, BM, 64
#define ROW_24_wgmma_persistent gemm_wgmma_persistent, HALF,   PLAIN,    {1, 8, 8},    PINGPONG ? 384 : BM / 64 * 128 + 128, STAYING, \
    STAGED + 2048 * BUFFERS * (PINGPONG ? 8 : BM / 16), BM, 64
#define ROW_25_wgmma_cluster    gemm_wgmma_cluster,    HALF,   PLAIN,    {1, 8, 8},    BM / 64 * 128 + 128, \
    persistent_grid(M, N, BM, BN, BLOCKS, CLUSTER_M, CLUSTER_N), STAGED + 2048 * BUFFERS * (BM / 16), BM / CLUSTER_N, 64
#define ROW_26_wgmma_split      gemm_wgmma_split,      HALF,   PLAIN,    {1, 8, 8},    BM / 64 * 128 + 32, \
    split_grid(ceil_div(M, BM * CLUSTER_M) * ceil_div(N, BN * CLUSTER_N), ceil_div(K, 64), SPLIT, BLOCKS * PER_SM, \
               CLUSTER_M * CLUSTER_N), \
    STAGED + (SPLIT > 1 ? 4 * BM * (BN / SPLIT) * (SPLIT - 1) : 4096 * (BM / 16)), A_BOX, 64, true
#define ROW_27_wgmma_fp8        gemm_wgmma_fp8,        TF32_INPUT ? TF32 : INT8_INPUT ? INT8 : BF16_INPUT ? BF16 : E4M3, \
    B_TURNED, {1, 16, 16}, 384, persistent_grid(M, N, 128, BN, BLOCKS, CLUSTER), \
    128 * (128 + BN) * STAGES + 2048 * BUFFERS * 8, 128, BN / CLUSTER
#define ROW_28_tcgen05           gemm_tcgen05,           HALF,  PLAIN,    {1, 8, 8},   128, TILES,   128 * (BM + BN), BM, 64
#define ROW_29_tcgen05_pipelined gemm_tcgen05_pipelined, HALF,  PLAIN,    {1, 8, 8},   192, STAYING, STAGED, BM, 64
#define ROW_30_tcgen05_pair      gemm_tcgen05_pair,      HALF,  PLAIN,    {1, 8, 8},   192, \
    TAKE_OVER ? dim3(2 * ceil_div(M, 2 * BM) * ceil_div(N, BN)) : persistent_grid(M, N, BM, BN, BLOCKS, 2), \
    128 * (BM + BN / 2) * STAGES, BM, 64
#define ROW_31_tcgen05_mxfp8     gemm_tcgen05_mxfp8,     MXFP8, B_TURNED, {1, 16, 16}, 192, STAYING, (128 + 4) * (BM + BN) * STAGES, BM, BN
#define ROW_32_tcgen05_nvfp4     gemm_tcgen05_nvfp4,     NVFP4, B_TURNED, {1, 32, 32}, 192, STAYING, (128 + 16) * (BM + BN) * STAGES, BM, BN
// clang-format on
