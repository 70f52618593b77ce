// wgmma_persistent: one block per multiprocessor stays for the whole product and walks its tiles as one stream of
// k-steps. Changed from wgmma_pipelined: the producer fills stages for the next tile while this one is stored, by
// stmatrix and TMA (HELD=4: the last panels while the next tile is computed), and tiles and k-steps come in an order
// that suits L2. PINGPONG=1 (with BM=64): each consumer has tiles of its own, and they compute in turns.
// Tiles: block BM x BN x 64, warpgroup and wgmma 64 x BN. K and N in multiples of 8 (16-byte rows); sm_90a.
#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 256
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef BUFFERS
#define BUFFERS 4  // panels of C that a warp may have on their way from shared memory
#endif
#ifndef GROUP
#define GROUP 16  // blocks take tiles down a column of GROUP tiles, then down the column beside it
#endif
#ifndef PINGPONG
#define PINGPONG 0
#endif
#ifndef HELD
#define HELD 0  // panels of a finished tile that are kept in registers and stored during the next one's first k-steps
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

#include "epilogue_tma.cuh"

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
constexpr int BK = 64;                          // 128 bytes, as far as the swizzle reaches: a row of A in a stage
constexpr int PANEL_N = 64;                     // columns of B that stand together, 128 bytes again
constexpr int TEAM = BM / 64;                   // warpgroups that share a tile
constexpr int CONSUMERS = PINGPONG ? 2 : TEAM;  // warpgroups that compute; one more copies
constexpr int THREADS = (CONSUMERS + 1) * 128;
constexpr int PITCH = 128;
constexpr int A_BYTES = BM * PITCH;
constexpr int PANEL_BYTES = BK * PITCH;
constexpr int STAGE_BYTES = A_BYTES + BN / PANEL_N * PANEL_BYTES;
constexpr int PANELS = BN / PANEL_COLS<Out>;          // of a warp's part of C
constexpr int LATER = HELD < PANELS ? HELD : PANELS;  // of these, so many wait in registers
static_assert(BM % 64 == 0 && BN % PANEL_N == 0 && BN <= 256, "a warpgroup has 64 rows and up to 256 columns");
static_assert(!PINGPONG || BM == 64, "a warpgroup with tiles of its own has 64 rows");
// [/tiles]

// [registers]
// A multiprocessor has 65536 registers. Three warpgroups get 168 per thread at launch; then the producer keeps what it
// needs and the two consumers take the rest. A single consumer has enough from the start.
constexpr int PRODUCER_REGISTERS = 40;
constexpr int CONSUMER_REGISTERS = 232;
static_assert(CONSUMERS <= 2, "with more consumers, too few registers are left for each");
// [/registers]

// [raster]
// The position of tile number `tile` in C: down GROUP rows, then the next column, so that the blocks that run at the
// same time read few rows of A and few columns of B, and find most of them in L2. Every second group goes from right to
// left: it begins with the columns that the group before read last.
__device__ __forceinline__ void tile_position(int tile, int tile_rows, int tile_cols, int& row, int& col) {
    const int per_group = GROUP * tile_cols;
    const int group = tile / per_group;
    const int rows = min(tile_rows - group * GROUP, GROUP);
    const int across = tile % per_group / rows;
    row = (group * GROUP + tile % per_group % rows) * BM;
    col = (group % 2 ? tile_cols - 1 - across : across) * BN;
}
// [/raster]

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_wgmma_persistent(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
                          const __grid_constant__ TensorMap C_map, Out* __restrict__ C, int M, int N, int K,
                          float alpha, float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + CONSUMERS];
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
    auto next_stage = [&] {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        phase ^= stage == 0;
    };

    if (warpgroup == CONSUMERS) {
        // [producer]
        // Every second tile is read from its last k to its first: L2 still holds what was read last of the same rows.
        if (CONSUMERS == 2) registers_shrink_to<PRODUCER_REGISTERS>();
        if (thread == 0) {
            bool backwards = false;
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, backwards = !backwards) {
                int row, col;
                tile_position(tile, tile_rows, tile_cols, row, col);
                for (int k_step = 0; k_step < k_steps; ++k_step) {
                    const int k = (backwards ? k_steps - 1 - k_step : k_step) * BK;
                    const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                    const unsigned landed = full + stage * 8;
                    barrier_wait(empty + stage * 8, phase ^ 1);  // the first time round this returns at once
                    barrier_expect(landed, STAGE_BYTES);
                    tma_load(a_tile, A, k, row, landed);
                    for (int panel = 0; panel < BN / PANEL_N; ++panel)
                        tma_load(b_tile + panel * PANEL_BYTES, B, col + panel * PANEL_N, k, landed);
                    next_stage();
                }
            }
        }
        // [/producer]
    } else {
        if (CONSUMERS == 2) registers_grow_to<CONSUMER_REGISTERS>();
        const int first_row = PINGPONG ? 0 : warpgroup * 64;  // of this warpgroup's part of the tile
        const unsigned staging = stage0 + STAGES * STAGE_BYTES + threadIdx.x / 32 * BUFFERS * PANEL_OUT_BYTES;
        float acc[BN / 8][4];
        int last_stage = 0;

        // [consumer]
        auto start = [&](int k_step) {
            const unsigned a_rows = stage0 + stage * STAGE_BYTES + first_row * PITCH;
            const unsigned b_tile = stage0 + stage * STAGE_BYTES + A_BYTES;
            barrier_wait(full + stage * 8, phase);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK; k += 16)
                wgmma_k16<In, 0, 1>(acc, wgmma_descriptor(a_rows + k * 2),
                                    wgmma_descriptor(b_tile + k * PITCH, PANEL_BYTES), k_step > 0 || k > 0);
            wgmma_commit();
        };
        auto finish_last = [&](int k_step) {  // the k-step before is done, so its stage may be filled again
            wgmma_wait<1>();
            if (thread == 0 && k_step > 0) barrier_arrive(empty + last_stage * 8);
            last_stage = stage;
            next_stage();
        };
        // [/consumer]

        // [held]
        unsigned held[LATER > 0 ? LATER : 1][PANEL_WORDS];
        int held_row = 0, held_col = N;  // nothing yet: outside of C
        auto store_held = [&](int panel) {
            if (held_col + panel * PANEL_COLS<Out> >= N) return;
            store_panel<Out>(C_map, held_row, held_col + panel * PANEL_COLS<Out>, held[panel], panel, staging);
        };
#pragma unroll
        for (int panel = 0; panel < LATER; ++panel)
#pragma unroll
            for (int i = 0; i < PANEL_WORDS; ++i) held[panel][i] = 0;
        // [/held]

        unsigned my_turn = warpgroup == 0;  // parity of the phase to wait for: the first consumer begins at once
        auto skip_other_tile = [&] {
            for (int k_step = 0; k_step < k_steps; ++k_step) next_stage();
        };
        if (PINGPONG && warpgroup == 1) skip_other_tile();
        for (int tile = blockIdx.x + (PINGPONG ? warpgroup * gridDim.x : 0); tile < tiles;
             tile += gridDim.x * CONSUMERS / TEAM) {
            // [compute]
            if (PINGPONG) barrier_wait(turn + warpgroup * 8, my_turn);
#pragma unroll
            for (int k_step = 0; k_step < LATER; ++k_step) {  // the first k-steps hide the store of the tile before
                if (k_step < k_steps) start(k_step);
                store_held(k_step);
                if (k_step < k_steps) finish_last(k_step);
            }
            for (int k_step = LATER; k_step < k_steps; ++k_step) {
                start(k_step);
                finish_last(k_step);
            }
            if (PINGPONG) {  // the tensor cores are the other's now, and so are the next k_steps stages
                barrier_arrive(turn + (warpgroup ^ 1) * 8);
                my_turn ^= 1;
                skip_other_tile();
            }
            wgmma_wait<0>();
            if (thread == 0) barrier_arrive(empty + last_stage * 8);
            // [/compute]

            // [store]
            int row, col;
            tile_position(tile, tile_rows, tile_cols, row, col);
            row += first_row + thread / 32 * 16;
#pragma unroll
            for (int panel = 0; panel < PANELS - LATER; ++panel) {
                unsigned words[PANEL_WORDS];
                finish_panel(words, acc, panel, C, M, N, row, col, alpha, beta);
                store_panel<Out>(C_map, row, col + panel * PANEL_COLS<Out>, words, panel, staging);
            }
#pragma unroll
            for (int panel = 0; panel < LATER; ++panel)
                finish_panel(held[panel], acc, PANELS - LATER + panel, C, M, N, row, col, alpha, beta);
            held_row = row;
            held_col = col + (PANELS - LATER) * PANEL_COLS<Out>;
            // [/store]
        }
#pragma unroll
        for (int panel = 0; panel < LATER; ++panel) store_held(panel);
        tma_store_wait_read<0>();  // shared memory must stay until the last store has read it
    }
}
