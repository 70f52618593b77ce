// tcgen05_pair: two blocks multiply 256 x BN x 16 as one. Each holds 128 rows of A and of the sums, and half of B's
// columns, which the tensor cores of both read: half the bytes of B per block. Changed from tcgen05_pipelined: the copies of
// both blocks count at the first one's barriers, its one thread starts the products of both, and their commits arrive in
// both. Tiles: pair 256 x BN x 64. K and N in multiples of 8 (16-byte rows); sm_100a.
#include "blackwell.cuh"
#include "launch_control.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 256
#endif
#ifndef STAGES
#define STAGES 6
#endif
#ifndef BLOCKS
#define BLOCKS 148
#endif
#ifndef TAKE_OVER
#define TAKE_OVER 0  // a pair for each tile, and those that run take over tiles of pairs that have not begun
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
constexpr int BK = 64, PANEL_N = 64, PITCH = 128;  // as in tcgen05
constexpr int A_BYTES = BM * PITCH, PANEL_BYTES = BK * PITCH;
constexpr int PANELS = BN / PANEL_N / 2;  // of B, in each block
constexpr int STAGE_BYTES = A_BYTES + PANELS * PANEL_BYTES;
constexpr int COLUMNS = 2 * BN;                         // of tensor memory: two sets of sums
constexpr int STORERS = 4, COPIER = 4, MULTIPLIER = 5;  // warps
constexpr int THREADS = 6 * 32;
constexpr int READERS = 2 * (1 + STORERS) + 1;  // of an answer: copiers and storers of both, the first one's multiplier
static_assert(BM == 128 && (BN == 128 || BN == 256), "128 lanes in each block, and columns by powers of two");
// [/tiles]

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(THREADS, 1)
    gemm_tcgen05_pair(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, Out* __restrict__ C,
                      int M, int N, int K, float alpha, float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 4];
    __shared__ __align__(16) uint4 answers[2];
    __shared__ __align__(8) unsigned long long turns[4];
    __shared__ unsigned tensor_address;
    const unsigned stage0 = shared_address(shared);
    const unsigned full = shared_address(barriers), empty = full + STAGES * 8;
    const unsigned summed = empty + STAGES * 8, stored = summed + 2 * 8;
    const unsigned answered = shared_address(turns), understood = answered + 2 * 8;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int rank = cluster_rank(), first_tile = blockIdx.x / 2, pairs = gridDim.x / 2;
    const int tile_cols = (N + BN - 1) / BN, tiles = (M + 2 * BM - 1) / (2 * BM) * tile_cols;

    // [barriers]
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full + stage * 8, 1);   // the first block's copier, and all bytes of both
            barrier_init(empty + stage * 8, 1);  // the commit of the products that read it
        }
        for (int set = 0; set < 2; ++set) {
            barrier_init(summed + set * 8, 1);            // the commit of the last products
            barrier_init(stored + set * 8, 2 * STORERS);  // every warp of both that reads the sums
        }
        for (int turn = 0; TAKE_OVER && turn < 2; ++turn) {
            barrier_init(answered + turn * 8, 1);          // the copier, and the bytes of the answer
            barrier_init(understood + turn * 8, READERS);  // everybody who looks at it
        }
        barrier_init_fence();
    }
    if (warp == MULTIPLIER) tensor_alloc<COLUMNS, true>(shared_address(&tensor_address));
    __syncthreads();
    cluster_sync();  // the barriers and the columns of both are there
    const unsigned tensor = tensor_address;
    // [/barriers]

    int stage = 0;
    unsigned phase = 0;  // how often all stages have been used, modulo 2
    auto next_stage = [&] {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        phase ^= stage == 0;
    };
    int set = 0;
    unsigned set_phase = 0;
    auto next_set = [&] {
        set ^= 1;
        set_phase ^= set == 0;
    };

    // [turns]
    int turn = 0;
    unsigned turn_phase = 0;
    auto ask = [&] {  // the copiers', before they copy a tile: the answer is there when it is needed
        if (!TAKE_OVER) return;
        if (rank == 0) barrier_wait(understood + turn * 8, turn_phase ^ 1);
        barrier_expect(answered + turn * 8, sizeof(uint4));
        if (rank == 0) ask_for_cluster(shared_address(answers + turn), answered + turn * 8);
    };
    auto next_tile = [&](int tile) {  // `tiles` if there is none
        if (!TAKE_OVER) return tile + pairs;
        barrier_wait(answered + turn * 8, turn_phase);
        const int first = cluster_taken_over(shared_address(answers + turn));
        async_fence();  // read before the next answer is written
        if (warp < STORERS) __syncwarp();
        if (warp >= STORERS || lane == 0) barrier_arrive_at(understood + turn * 8, 0);
        turn ^= 1;
        turn_phase ^= turn == 0;
        return first < 0 ? tiles : first / 2;
    };
    // [/turns]

    if (warp == COPIER) {
        // [copy]
        if (lane == 0) {
            for (int tile = first_tile; tile < tiles; tile = next_tile(tile)) {
                ask();
                const int row = (tile / tile_cols * 2 + rank) * BM;
                const int col = tile % tile_cols * BN + rank * (BN / 2);
                for (int k_step = 0; k_step < K; k_step += BK) {
                    const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                    const unsigned landed = in_first_block(full + stage * 8);
                    barrier_wait(empty + stage * 8, phase ^ 1);  // the first time round this returns at once
                    if (rank == 0) barrier_expect(full + stage * 8, 2 * STAGE_BYTES);
                    tma_load_of_pair(a_tile, A, k_step, row, landed);
                    for (int panel = 0; panel < PANELS; ++panel)
                        tma_load_of_pair(b_tile + panel * PANEL_BYTES, B, col + panel * PANEL_N, k_step, landed);
                    next_stage();
                }
            }
        }
        // [/copy]
    } else if (warp == MULTIPLIER) {
        // [multiply]
        if (rank == 0 && lane == 0) {
            for (int tile = first_tile; tile < tiles; tile = next_tile(tile)) {
                barrier_wait(stored + set * 8, set_phase ^ 1);  // these columns are free again
                tensor_fence_after();
                for (int k_step = 0; k_step < K; k_step += BK) {
                    const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                    barrier_wait(full + stage * 8, phase);
                    for (int k = 0; k < BK; k += 16)
                        tensor_multiply<true>(tensor + set * BN, tensor_descriptor(a_tile + k * 2),
                                              tensor_descriptor(b_tile + k * PITCH, PANEL_BYTES),
                                              tensor_instruction<In>(2 * BM, BN), k_step > 0 || k > 0);
                    tensor_commit_pair(empty + stage * 8);  // the stage may be filled again when they are done
                    next_stage();
                }
                tensor_commit_pair(summed + set * 8);
                next_set();
            }
        }
        // [/multiply]
    } else {
        // [store]
        for (int tile = first_tile; tile < tiles; tile = next_tile(tile)) {
            const int row = (tile / tile_cols * 2 + rank) * BM, col = tile % tile_cols * BN;
            barrier_wait(summed + set * 8, set_phase);
            tensor_fence_after();
            store_sums<BN>(C, M, N, row + warp * 32, col, tensor + set * BN + (warp * 32 << 16), alpha, beta);
            tensor_fence_before();
            __syncwarp();
            if (lane == 0) barrier_arrive_at(stored + set * 8, 0);
            next_set();
        }
        // [/store]
    }

    // All products are over, since the storers of both have waited for the last sums. But warps of the second block may
    // still arrive at the first one's barriers, and storers of either may read columns, which the two free together.
    tensor_fence_before();
    __syncthreads();
    cluster_exchange();  // neither ends, nor frees its columns, before all threads of both have come here
    tensor_fence_after();
    if (warp == MULTIPLIER) tensor_free<COLUMNS, true>(tensor);
}
