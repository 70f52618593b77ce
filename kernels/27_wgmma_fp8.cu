// wgmma_fp8: operands of 8 bits (e4m3): half the bytes, twice the products per clock. The tensor core adds them with
// few bits; -DPROMOTE=128 moves the sums to fp32 registers every 128 of k. Changed from wgmma_cluster: B is (N, K), because
// wgmma transposes 16-bit operands only; so this file serves every type: e4m3, int8, tf32, bf16.
// Tiles: CLUSTER blocks below each other share B; block 128 x BN x 128 bytes, warpgroup 64 x BN, wgmma 32 bytes of k.
// One thread loads, two warpgroups compute. Rows of A, B and C in multiples of 16 bytes; sm_90a.
#ifndef BN
#define BN 256
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef BUFFERS
#define BUFFERS 2  // panels of C, 16 rows of 128 bytes, that a warp may have on their way out
#endif
#ifndef CLUSTER
#define CLUSTER 2
#endif
#ifndef GROUP
#define GROUP 8  // tiles that neighbouring clusters take go down GROUP rows of tiles before the next column
#endif
#ifndef PROMOTE
#define PROMOTE 0  // k after which sums move to fp32 registers, a multiple of a k-step; 0: never
#endif
#ifndef TF32_INPUT
#define TF32_INPUT 0
#endif
#ifndef INT8_INPUT
#define INT8_INPUT 0
#endif
#ifndef BF16_INPUT
#define BF16_INPUT 0
#endif
#ifndef FLOAT_OUTPUT
#define FLOAT_OUTPUT 0
#endif

#include "epilogue_tma.cuh"

// [types]
#if TF32_INPUT
using In = tf32;
#elif INT8_INPUT
using In = signed char;
#elif BF16_INPUT
using In = bf16;
#else
using In = e4m3;
#endif
#if INT8_INPUT
using Sum = int;
#else
using Sum = float;
#endif
#if FLOAT_OUTPUT
using Out = float;
#else
using Out = bf16;
#endif
// [/types]

// [tiles]
constexpr int BM = 128;
constexpr int PITCH = 128;  // of A and B in a stage, as far as the swizzle reaches
constexpr int BK = PITCH / sizeof(In);
constexpr int A_BYTES = BM * PITCH;
constexpr int B_BYTES = BN * PITCH;
constexpr int B_SHARE = BN / CLUSTER;  // rows of B that one block of the cluster fetches for all
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int CONSUMER_WARPS = BM / 16;
constexpr int THREADS = 32 * CONSUMER_WARPS + 128;  // setmaxnreg wants whole warpgroups: one warp of the last one loads
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;
static_assert(BN % 64 == 0 && BN <= 256, "a warpgroup has 64 rows and up to 256 columns");
static_assert(B_SHARE * CLUSTER == BN && B_SHARE % 8 == 0, "a share of B is whole groups of eight rows");
static_assert(PROMOTE % BK == 0, "sums are promoted after whole k-steps");
// [/tiles]

// The position of the cluster's tile number `tile`, in units of its rows and columns of tiles.
__device__ __forceinline__ void tile_position(int tile, int tile_rows, int tile_cols, int& row, int& col) {
    const int per_group = GROUP * tile_cols;
    const int first_row = tile / per_group * GROUP;
    const int rows = min(tile_rows - first_row, GROUP);
    row = first_row + tile % per_group % rows;
    col = tile % per_group / rows;
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    gemm_wgmma_fp8(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
                   const __grid_constant__ TensorMap C_map, const Out* __restrict__ C, int M, int N, int K, float alpha,
                   float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stage0 = shared_address(shared);
    const unsigned full0 = shared_address(barriers), empty0 = full0 + 8 * STAGES;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int rank = cluster_rank();
    const int tile_rows = (M + CLUSTER * BM - 1) / (CLUSTER * BM), tile_cols = (N + BN - 1) / BN;
    const int tiles = tile_rows * tile_cols;
    const int k_steps = (K + BK - 1) / BK;
    const int cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;

    // [barriers]
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full0 + 8 * stage, 1);  // this block's producer, and all bytes, whoever sends them
            barrier_init(empty0 + 8 * stage, CLUSTER * CONSUMER_WARPS);  // whoever reads what this block fetches
        }
        barrier_init_fence();
    }
    cluster_sync();
    // [/barriers]

    int stage = 0;
    unsigned phase = 0;  // how often all stages have been used, modulo 2
    auto next_stage = [&] {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        phase ^= stage == 0;
    };
    if (warp >= CONSUMER_WARPS) {
        // [producer]
        registers_shrink_to<PRODUCER_REGISTERS>();
        if (warp == CONSUMER_WARPS && lane == 0) {
            for (int tile = cluster; tile < tiles; tile += clusters) {
                int tile_row, tile_col;
                tile_position(tile, tile_rows, tile_cols, tile_row, tile_col);
                const int row = (tile_row * CLUSTER + rank) * BM, col = tile_col * BN + rank * B_SHARE;
                for (int step = 0; step < k_steps; ++step, next_stage()) {
                    const unsigned a_tile = stage0 + stage * STAGE_BYTES;
                    const unsigned b_tile = a_tile + A_BYTES + rank * B_SHARE * PITCH;
                    const unsigned full = full0 + 8 * stage;
                    barrier_wait(empty0 + 8 * stage, phase ^ 1);  // the first time round this returns at once
                    barrier_expect(full, STAGE_BYTES);
                    tma_load(a_tile, A, step * BK, row, full);
                    tma_load_shared<CLUSTER>(b_tile, B, step * BK, col, full, (1 << CLUSTER) - 1);
                }
            }
        }
        __syncwarp();
        // [/producer]
    } else {
        registers_grow_to<CONSUMER_REGISTERS>();
        const unsigned staging = stage0 + STAGES * STAGE_BYTES + warp * BUFFERS * PANEL_OUT_BYTES;
        const auto a0 = wgmma_descriptor(stage0 + warp / 4 * 64 * PITCH);
        const auto b0 = wgmma_descriptor(stage0 + A_BYTES);
        auto multiply = [&](Sum(&sums)[BN / 8][4], bool add) {  // one stage; `add`: to what is there
            const unsigned long long here = stage * STAGE_BYTES >> 4;
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < PITCH; k += 32)
                wgmma_32_bytes<In>(sums, a0 + here + (k >> 4), b0 + here + (k >> 4), add || k > 0);
            wgmma_commit();
        };
        auto release = [&](int used) {  // to every block that fetched a part of it
            if (lane < CLUSTER) barrier_arrive_at(empty0 + 8 * used, lane);
        };
        for (int tile = cluster; tile < tiles; tile += clusters) {
            Sum acc[BN / 8][4];
#if PROMOTE
            // [promote]
            // Wait for the step's products; every PROMOTE of k add them to acc, while the other warpgroup multiplies.
            Sum part[BN / 8][4];
#pragma unroll
            for (int n = 0; n < BN / 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) acc[n][i] = 0;
            for (int step = 0; step < k_steps; ++step, next_stage()) {
                barrier_wait(full0 + 8 * stage, phase);
                multiply(part, step * BK % PROMOTE > 0);
                wgmma_wait<0>();
                release(stage);
                if ((step + 1) * BK % PROMOTE == 0 || step + 1 == k_steps) {
#pragma unroll
                    for (int n = 0; n < BN / 8; ++n)
#pragma unroll
                        for (int i = 0; i < 4; ++i) acc[n][i] += part[n][i];
                }
            }
            // [/promote]
#else
            // [compute]
            int previous = 0;
            for (int step = 0; step < k_steps; ++step, next_stage()) {
                barrier_wait(full0 + 8 * stage, phase);
                multiply(acc, step > 0);
                wgmma_wait<1>();  // the step before is done; this one runs on
                if (step > 0) release(previous);
                previous = stage;
            }
            wgmma_wait<0>();
            release(previous);
            // [/compute]
#endif

            // [store]
            int tile_row, tile_col;
            tile_position(tile, tile_rows, tile_cols, tile_row, tile_col);
            const int row = (tile_row * CLUSTER + rank) * BM + warp * 16, col = tile_col * BN;
            float sums[BN / 8][4];
#pragma unroll
            for (int n = 0; n < BN / 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) sums[n][i] = static_cast<float>(acc[n][i]);
#pragma unroll
            for (int panel = 0; panel < BN / PANEL_COLS<Out>; ++panel) {
                unsigned words[PANEL_WORDS];
                finish_panel(words, sums, panel, C, M, N, row, col, alpha, beta);
                store_panel<Out>(C_map, row, col + panel * PANEL_COLS<Out>, words, panel, staging);
            }
            // [/store]
        }
        if (lane == 0) tma_store_wait_read<0>();
        __syncwarp();
    }
    cluster_sync();  // a block whose barriers the others still arrive at must not end
}
