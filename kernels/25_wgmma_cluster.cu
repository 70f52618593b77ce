// wgmma_cluster: blocks that run side by side share what they read. CLUSTER_M x CLUSTER_N blocks form a cluster; those
// of one column of it need the same tile of B, those of one row the same tile of A. Each loads a part of it from L2 and
// TMA delivers that part to all of them. Changed from wgmma_persistent: multicast, and stages that are empty only when
// all blocks that receive them have read them. Tiles and needs as there.
#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 256
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef BUFFERS
#define BUFFERS 2  // panels of C that a warp may have on their way from shared memory
#endif
#ifndef GROUP
#define GROUP 8  // tiles of clusters that neighbouring clusters take go down GROUP rows before the next column
#endif
#ifndef CLUSTER_M
#define CLUSTER_M 2
#endif
#ifndef CLUSTER_N
#define CLUSTER_N 1
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
constexpr int BK = 64;              // 128 bytes, as far as the swizzle reaches: a row of A in a stage
constexpr int PANEL_N = 64;         // columns of B that stand together, 128 bytes again
constexpr int CONSUMERS = BM / 64;  // warpgroups that compute; one more copies
constexpr int THREADS = (CONSUMERS + 1) * 128;
constexpr int PITCH = 128;
constexpr int A_BYTES = BM * PITCH;
constexpr int PANEL_BYTES = BK * PITCH;
constexpr int PANELS = BN / PANEL_N;
constexpr int STAGE_BYTES = A_BYTES + PANELS * PANEL_BYTES;
constexpr int OUT_PANELS = BN / PANEL_COLS<Out>;              // of a warp's part of C
constexpr int LATER = HELD < OUT_PANELS ? HELD : OUT_PANELS;  // of these, so many wait in registers
constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;
constexpr int A_PART = BM / CLUSTER_N;      // rows of A that this block loads for all that need them
constexpr int B_PART = PANELS / CLUSTER_M;  // and panels of B
static_assert(BM % 64 == 0 && BN % PANEL_N == 0 && BN <= 256, "a warpgroup has 64 rows and up to 256 columns");
static_assert(A_PART % 8 == 0 && B_PART * CLUSTER_M == PANELS, "the blocks of a cluster load equal parts");
// [/tiles]

// [registers]
// A multiprocessor has 65536 registers. Three warpgroups get 168 per thread at launch; then the producer keeps what it
// needs and the two consumers take the rest. A single consumer has enough from the start.
constexpr int PRODUCER_REGISTERS = 40;
constexpr int CONSUMER_REGISTERS = 232;
static_assert(CONSUMERS <= 2, "with more consumers, too few registers are left for each");
// [/registers]

// [raster]
// The position in C of this block's part of the cluster's tile number `tile`: down GROUP rows of clusters, then the
// next column, every second group from right to left, so that blocks find most of what they read in L2.
__device__ __forceinline__ void tile_position(int tile, int tile_rows, int tile_cols, int rank, int& row, int& col) {
    const int per_group = GROUP * tile_cols;
    const int group = tile / per_group;
    const int rows = min(tile_rows - group * GROUP, GROUP);
    const int across = tile % per_group / rows;
    row = ((group * GROUP + tile % per_group % rows) * CLUSTER_M + rank % CLUSTER_M) * BM;
    col = ((group % 2 ? tile_cols - 1 - across : across) * CLUSTER_N + rank / CLUSTER_M) * BN;
}
// [/raster]

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    gemm_wgmma_cluster(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
                       const __grid_constant__ TensorMap C_map, Out* __restrict__ C, int M, int N, int K, float alpha,
                       float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stage0 = shared_address(shared);
    const unsigned full = shared_address(barriers), empty = full + STAGES * 8;
    const int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
    const int rank = cluster_rank();
    const int tile_rows = (M + BM * CLUSTER_M - 1) / (BM * CLUSTER_M);
    const int tile_cols = (N + BN * CLUSTER_N - 1) / (BN * CLUSTER_N);
    const int tiles = tile_rows * tile_cols;
    const int k_steps = (K + BK - 1) / BK;
    const int first_tile = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;

    // [barriers]
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full + stage * 8, 1);  // this block's producer, and all bytes, whoever sends them
            barrier_init(empty + stage * 8,
                         CONSUMERS * (CLUSTER_M + CLUSTER_N - 1));  // of all that this block sends to
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

    if (warpgroup == CONSUMERS) {
        // [producer]
        // Every second tile is read from its last k to its first: L2 still holds what was read last of the same rows.
        if (CONSUMERS == 2) registers_shrink_to<PRODUCER_REGISTERS>();
        if (thread == 0) {
            const int cluster_row = rank % CLUSTER_M, cluster_col = rank / CLUSTER_M;
            unsigned short same_row = 0, same_col = 0;  // a bit for each block that needs this tile of A, of B
            for (int n = 0; n < CLUSTER_N; ++n) same_row |= 1 << (n * CLUSTER_M + cluster_row);
            for (int m = 0; m < CLUSTER_M; ++m) same_col |= 1 << (cluster_col * CLUSTER_M + m);
            bool backwards = false;
            for (int tile = first_tile; tile < tiles; tile += clusters, backwards = !backwards) {
                int row, col;
                tile_position(tile, tile_rows, tile_cols, rank, row, col);
                for (int k_step = 0; k_step < k_steps; ++k_step) {
                    const int k = (backwards ? k_steps - 1 - k_step : k_step) * BK;
                    const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                    const unsigned landed = full + stage * 8;
                    barrier_wait(empty + stage * 8, phase ^ 1);  // the first time round this returns at once
                    barrier_expect(landed, STAGE_BYTES);
                    const int a_row = cluster_col * A_PART;
                    tma_load_shared<CLUSTER_N>(a_tile + a_row * PITCH, A, k, row + a_row, landed, same_row);
                    for (int panel = cluster_row * B_PART; panel < (cluster_row + 1) * B_PART; ++panel)
                        tma_load_shared<CLUSTER_M>(b_tile + panel * PANEL_BYTES, B, col + panel * PANEL_N, k, landed,
                                                   same_col);
                    next_stage();
                }
            }
        }
        // [/producer]
    } else {
        if (CONSUMERS == 2) registers_grow_to<CONSUMER_REGISTERS>();
        const unsigned staging = stage0 + STAGES * STAGE_BYTES + threadIdx.x / 32 * BUFFERS * PANEL_OUT_BYTES;
        float acc[BN / 8][4];
        int last_stage = 0;

        // [release]
        // One thread for each block that sends to this one: those in its row and in its column of the cluster.
        const bool sender =
            thread < CLUSTER && (thread % CLUSTER_M == rank % CLUSTER_M || thread / CLUSTER_M == rank / CLUSTER_M);
        auto release = [&](int stage) {
            if (sender) barrier_arrive_at(empty + stage * 8, thread);
        };
        // [/release]

        // [consumer]
        auto start = [&](int k_step) {
            const unsigned a_rows = stage0 + stage * STAGE_BYTES + warpgroup * 64 * PITCH;
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
            if (k_step > 0) release(last_stage);
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

        for (int tile = first_tile; tile < tiles; tile += clusters) {
            // [compute]
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
            wgmma_wait<0>();
            release(last_stage);
            // [/compute]

            // [store]
            int row, col;
            tile_position(tile, tile_rows, tile_cols, rank, row, col);
            row += warpgroup * 64 + thread / 32 * 16;
#pragma unroll
            for (int panel = 0; panel < OUT_PANELS - LATER; ++panel) {
                unsigned words[PANEL_WORDS];
                finish_panel(words, acc, panel, C, M, N, row, col, alpha, beta);
                store_panel<Out>(C_map, row, col + panel * PANEL_COLS<Out>, words, panel, staging);
            }
#pragma unroll
            for (int panel = 0; panel < LATER; ++panel)
                finish_panel(held[panel], acc, OUT_PANELS - LATER + panel, C, M, N, row, col, alpha, beta);
            held_row = row;
            held_col = col + (OUT_PANELS - LATER) * PANEL_COLS<Out>;
            // [/store]
        }
#pragma unroll
        for (int panel = 0; panel < LATER; ++panel) store_held(panel);
        tma_store_wait_read<0>();  // shared memory must stay until the last store has read it
    }
    cluster_sync();  // and as long as another block of the cluster may still arrive at its barriers
}
