// wgmma_cluster: blocks that run side by side share what they read. CLUSTER_M x CLUSTER_N blocks form a cluster; those of
// one column of it need the same tile of B, those of one row the same tile of A. Each loads a part of it from L2 and
// TMA delivers that part to all of them. Since wgmma_persistent: multicast, and stages that are empty only when all
// blocks that receive them have read them. Tiles and needs as there.
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
#define GROUP 8  // tiles of clusters that neighbouring clusters take go down GROUP rows before the next column
#endif
#ifndef CLUSTER_M
#define CLUSTER_M 2
#endif
#ifndef CLUSTER_N
#define CLUSTER_N 1
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
constexpr int BK = 64;              // 128 bytes, as far as the swizzle reaches: a row of A in a stage
constexpr int PANEL_N = 64;         // columns of B that stand together, 128 bytes again
constexpr int CONSUMERS = BM / 64;  // warpgroups that compute; one more copies
constexpr int THREADS = (CONSUMERS + 1) * 128;
constexpr int ROW_BYTES = 128;
constexpr int A_BYTES = BM * ROW_BYTES;
constexpr int PANEL_BYTES = BK * ROW_BYTES;
constexpr int PANELS = BN / PANEL_N;
constexpr int STAGE_BYTES = A_BYTES + PANELS * PANEL_BYTES;
constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;
constexpr int A_PART = BM / CLUSTER_N;      // rows of A that this block loads for all that need them
constexpr int B_PART = PANELS / CLUSTER_M;  // and panels of B
static_assert(BM % 64 == 0 && BN % PANEL_N == 0 && BN <= 256, "a warpgroup has 64 rows and up to 256 columns");
static_assert(A_PART % 8 == 0 && B_PART * CLUSTER_M == PANELS, "the blocks of a cluster load equal parts");
// [/tiles]

// [registers]
// 65536 registers a multiprocessor, equally many per thread at launch; then the producer keeps what it needs.
constexpr int PRODUCER_REGISTERS = CONSUMERS == 1 ? 56 : CONSUMERS == 2 ? 40 : 32;
constexpr int CONSUMER_REGISTERS = CONSUMERS == 1 ? 240 : CONSUMERS == 2 ? 232 : 160;
static_assert(CONSUMERS <= 3, "with more consumers, too few registers are left for each");
// [/registers]

// [raster]
// The position in C of this block's part of the cluster's tile number `tile`: down GROUP rows of clusters, then the next
// column, so that the blocks that run at the same time find most of what they read in L2.
__device__ __forceinline__ void tile_position(int tile, int tile_rows, int tile_cols, int rank, int& row, int& col) {
    const int per_group = GROUP * tile_cols;
    const int first_row = tile / per_group * GROUP;
    const int rows = min(tile_rows - first_row, GROUP);
    row = ((first_row + tile % per_group % rows) * CLUSTER_M + rank % CLUSTER_M) * BM;
    col = (tile % per_group / rows * CLUSTER_N + rank / CLUSTER_M) * BN;
}
// [/raster]

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    gemm_wgmma_cluster(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
                       const __grid_constant__ TensorMap C_map, Out* __restrict__ C, int M, int N, int K, float alpha,
                       float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ alignas(8) unsigned long long barriers[2 * STAGES];
    const unsigned stage0 = shared_address(shared);
    const unsigned full = shared_address(barriers), empty = full + STAGES * 8;
    const int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
    const int rank = cluster_rank();
    const int tile_rows = (M + BM * CLUSTER_M - 1) / (BM * CLUSTER_M);
    const int tile_cols = (N + BN * CLUSTER_N - 1) / (BN * CLUSTER_N);
    const int tiles = tile_rows * tile_cols;
    const int first_tile = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;

    // [barriers]
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full + stage * 8, 1);  // this block's producer, and all bytes, whoever sends them
            barrier_init(empty + stage * 8, CONSUMERS * (CLUSTER_M + CLUSTER_N - 1));  // of all that this block sends to
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
        registers_shrink_to<PRODUCER_REGISTERS>();
        if (thread == 0) {
            const int cluster_row = rank % CLUSTER_M, cluster_col = rank / CLUSTER_M;
            unsigned short same_row = 0, same_col = 0;  // a bit for each block that needs this tile of A, of B
            for (int n = 0; n < CLUSTER_N; ++n) same_row |= 1 << (n * CLUSTER_M + cluster_row);
            for (int m = 0; m < CLUSTER_M; ++m) same_col |= 1 << (cluster_col * CLUSTER_M + m);
            for (int tile = first_tile; tile < tiles; tile += clusters) {
                int row, col;
                tile_position(tile, tile_rows, tile_cols, rank, row, col);
                for (int k_step = 0; k_step < K; k_step += BK) {
                    const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                    const unsigned landed = full + stage * 8;
                    barrier_wait(empty + stage * 8, phase ^ 1);  // the first time round this returns at once
                    barrier_expect(landed, STAGE_BYTES);
                    const int a_row = cluster_col * A_PART;
                    tma_load_shared<CLUSTER_N>(a_tile + a_row * ROW_BYTES, A, k_step, row + a_row, landed, same_row);
                    for (int panel = cluster_row * B_PART; panel < (cluster_row + 1) * B_PART; ++panel)
                        tma_load_shared<CLUSTER_M>(b_tile + panel * PANEL_BYTES, B, col + panel * PANEL_N, k_step, landed,
                                                   same_col);
                    next_stage();
                }
            }
        }
        // [/producer]
    } else {
        registers_grow_to<CONSUMER_REGISTERS>();
        const unsigned staging = stage0 + STAGES * STAGE_BYTES + threadIdx.x / 32 * STORE_BUFFERS * STORE_BYTES;
        float acc[BN / 8][4];

        // [release]
        // One thread for each block that sends to this one: those in its row and in its column of the cluster.
        const bool sender = thread < CLUSTER && (thread % CLUSTER_M == rank % CLUSTER_M || thread / CLUSTER_M == rank / CLUSTER_M);
        auto release = [&](int stage) {
            if (sender) barrier_arrive_at(empty + stage * 8, thread);
        };
        // [/release]

        for (int tile = first_tile; tile < tiles; tile += clusters) {
            // [consumer]
            int last_stage = 0;
            for (int k_step = 0; k_step < K; k_step += BK) {
                const unsigned a_rows = stage0 + stage * STAGE_BYTES + warpgroup * 64 * ROW_BYTES;
                const unsigned b_tile = stage0 + stage * STAGE_BYTES + A_BYTES;
                barrier_wait(full + stage * 8, phase);
                wgmma_fence();
#pragma unroll
                for (int k = 0; k < BK; k += 16)
                    wgmma_k16<In, 0, 1>(acc, wgmma_descriptor(a_rows + k * 2),
                                        wgmma_descriptor(b_tile + k * ROW_BYTES, PANEL_BYTES), k_step > 0 || k > 0);
                wgmma_commit();
                wgmma_wait<1>();  // the k-step before is done, so its stage may be filled again
                if (k_step > 0) release(last_stage);
                last_stage = stage;
                next_stage();
            }
            wgmma_wait<0>();
            release(last_stage);
            // [/consumer]

            // [store]
            int row, col;
            tile_position(tile, tile_rows, tile_cols, rank, row, col);
            store_by_tma(C_map, C, M, N, row + warpgroup * 64 + thread / 32 * 16, col, acc, alpha, beta, staging);
            // [/store]
        }
        tma_store_wait_read<0>();  // shared memory must stay until the last store has read it
    }
    cluster_sync();  // and as long as another block of the cluster may still arrive at its barriers
}
