// wgmma_persistent: one block a multiprocessor stays for the whole product and walks its tiles as one stream of k-steps:
// while consumers store a tile, the producer already fills stages for the next. Since wgmma_pipelined: tiles in an order
// that suits L2, the store by stmatrix and TMA; PINGPONG=1 gives each consumer tiles of its own, to compute in turns.
// Tiles: block BM x BN x 64, wgmma 64 x BN x 16. K and N in multiples of 8 (16-byte rows); sm_90a.
#include "epilogue_tma.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 256
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef GROUP
#define GROUP 16  // tiles that neighbouring blocks take go down GROUP rows of tiles before the next column
#endif
#ifndef PINGPONG
#define PINGPONG 0
#endif
#ifndef BF16_INPUT
#define BF16_INPUT 0
#endif
#ifndef HALF_OUTPUT
#define HALF_OUTPUT 0
#endif
#ifndef BF16_OUTPUT
#define BF16_OUTPUT 0
#endif

// [types]
#if BF16_INPUT
using In = bf16;
#else
using In = half;
#endif
#if HALF_OUTPUT
using Out = half;
#elif BF16_OUTPUT
using Out = bf16;
#else
using Out = float;
#endif
// [/types]

// [tiles]
constexpr int BK = 64;        // 128 bytes, as far as the swizzle reaches: a row of A in a stage
constexpr int PANEL_N = 64;   // columns of B that stand together, 128 bytes again
constexpr int CONSUMERS = PINGPONG ? 2 : BM / 64;  // warpgroups that compute; one more copies
constexpr int TEAM = PINGPONG ? 1 : CONSUMERS;     // warpgroups that share a tile
constexpr int M_ATOMS = BM / 64 / TEAM;            // wgmma one below the other in a warpgroup's part of the tile
constexpr int THREADS = (CONSUMERS + 1) * 128;
constexpr int ROW_BYTES = 128;
constexpr int A_BYTES = BM * ROW_BYTES;
constexpr int PANEL_BYTES = BK * ROW_BYTES;
constexpr int STAGE_BYTES = A_BYTES + BN / PANEL_N * PANEL_BYTES;
static_assert(BM % 64 == 0 && BN % PANEL_N == 0 && BN <= 256, "a wgmma has 64 rows and up to 256 columns");
static_assert(M_ATOMS * BN <= 256, "with more accumulators, too few registers are left");
// [/tiles]

// [registers]
// 65536 registers a multiprocessor, equally many per thread at launch; then the producer keeps what it needs.
constexpr int PRODUCER_REGISTERS = CONSUMERS == 1 ? 56 : CONSUMERS == 2 ? 40 : 32;
constexpr int CONSUMER_REGISTERS = CONSUMERS == 1 ? 240 : CONSUMERS == 2 ? 232 : 160;
static_assert(CONSUMERS <= 3, "with more consumers, too few registers are left for each");
// [/registers]

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

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_wgmma_persistent(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
                          const __grid_constant__ TensorMap C_map, Out* __restrict__ C, int M, int N, int K,
                          float alpha, float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ alignas(8) unsigned long long barriers[2 * STAGES + CONSUMERS];
    const unsigned stage0 = shared_address(shared);
    const unsigned full = shared_address(barriers), empty = full + STAGES * 8, turn = empty + STAGES * 8;
    const int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
    const int tile_rows = (M + BM - 1) / BM, tile_cols = (N + BN - 1) / BN;
    const int tiles = tile_rows * tile_cols;
    const int k_steps = (K + BK - 1) / BK;

    // [barriers]
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full + stage * 8, 1);      // the producer, and all bytes
            barrier_init(empty + stage * 8, TEAM);  // one thread of each consumer
        }
        for (int consumer = 0; consumer < CONSUMERS; ++consumer) barrier_init(turn + consumer * 8, 128);
        barrier_init_fence();
    }
    __syncthreads();
    // [/barriers]

    int stage = 0;
    unsigned phase = 0;  // how often all stages have been used, modulo 2
    auto next_stage = [&](int steps = 1) {
        stage += steps;
        phase ^= stage / STAGES & 1;
        stage %= STAGES;
    };

    if (warpgroup == CONSUMERS) {
        // [producer]
        registers_shrink_to<PRODUCER_REGISTERS>();
        if (thread == 0) {
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                int row, col;
                tile_position(tile, tile_rows, tile_cols, row, col);
                for (int k_step = 0; k_step < k_steps; ++k_step) {
                    const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                    const unsigned landed = full + stage * 8;
                    barrier_wait(empty + stage * 8, phase ^ 1);  // the first time round this returns at once
                    barrier_expect(landed, STAGE_BYTES);
                    tma_load(a_tile, A, k_step * BK, row, landed);
                    for (int panel = 0; panel < BN / PANEL_N; ++panel)
                        tma_load(b_tile + panel * PANEL_BYTES, B, col + panel * PANEL_N, k_step * BK, landed);
                    next_stage();
                }
            }
        }
        // [/producer]
    } else {
        // [consumer]
        registers_grow_to<CONSUMER_REGISTERS>();
        const int first_row = PINGPONG ? 0 : warpgroup * 64;  // of this warpgroup's part of the tile
        const unsigned staging = stage0 + STAGES * STAGE_BYTES + threadIdx.x / 32 * STORE_BUFFERS * STORE_BYTES;
        float acc[M_ATOMS][BN / 8][4];
        unsigned my_turn = warpgroup == 0;  // parity of the phase to wait for: the first consumer begins at once
        if (PINGPONG) next_stage(warpgroup * k_steps);
        for (int tile = blockIdx.x + (PINGPONG ? warpgroup * gridDim.x : 0); tile < tiles;
             tile += gridDim.x * CONSUMERS / TEAM) {
            if (PINGPONG) barrier_wait(turn + warpgroup * 8, my_turn);
            int last_stage = 0;
            for (int k_step = 0; k_step < k_steps; ++k_step) {
                const unsigned a_rows = stage0 + stage * STAGE_BYTES + first_row * ROW_BYTES;
                const unsigned b_tile = stage0 + stage * STAGE_BYTES + A_BYTES;
                barrier_wait(full + stage * 8, phase);
                wgmma_fence();
#pragma unroll
                for (int k = 0; k < BK; k += 16)
#pragma unroll
                    for (int m = 0; m < M_ATOMS; ++m)
                        wgmma_k16<In, 0, 1>(acc[m], wgmma_descriptor(a_rows + m * 64 * ROW_BYTES + k * 2),
                                            wgmma_descriptor(b_tile + k * ROW_BYTES, PANEL_BYTES), k_step > 0 || k > 0);
                wgmma_commit();
                wgmma_wait<1>();  // the k-step before is done, so its stage may be filled again
                if (thread == 0 && k_step > 0) barrier_arrive(empty + last_stage * 8);
                last_stage = stage;
                next_stage();
            }
            if (PINGPONG) {  // the tensor cores are the other's now, and the next k_steps stages
                barrier_arrive(turn + (warpgroup ^ 1) * 8);
                my_turn ^= 1;
                next_stage(k_steps);
            }
            wgmma_wait<0>();
            if (thread == 0) barrier_arrive(empty + last_stage * 8);
            // [/consumer]

            // [store]
            int row, col;
            tile_position(tile, tile_rows, tile_cols, row, col);
#pragma unroll
            for (int m = 0; m < M_ATOMS; ++m)
                store_by_tma(C_map, C, M, N, row + first_row + m * 64 + thread / 32 * 16, col, acc[m], alpha, beta,
                             staging);
            // [/store]
        }
        tma_store_wait_read<0>();  // shared memory must stay until the last store has read it
    }
}
