// tcgen05_pipelined: a warp copies, a warp multiplies, four warps store, and all three go on at the same time. Changed
// from tcgen05: a ring of STAGES tiles with barriers in between, blocks that stay for several tiles, and two sets of sums
// in tensor memory, so that one is stored while the other is added up. Tiles: block 128 x BN x 64. K and N in multiples
// of 8 (16-byte rows); sm_100a.
#include "blackwell.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 256
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef BLOCKS
#define BLOCKS 148
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
constexpr int STAGE_BYTES = A_BYTES + BN / PANEL_N * PANEL_BYTES;
constexpr int COLUMNS = 2 * BN;                         // of tensor memory: two sets of sums
constexpr int STORERS = 4, COPIER = 4, MULTIPLIER = 5;  // warps
constexpr int THREADS = 6 * 32;
static_assert(BM == 128 && (BN == 64 || BN == 128 || BN == 256), "128 lanes, and columns by powers of two");
// [/tiles]

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_tcgen05_pipelined(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
                           Out* __restrict__ C, int M, int N, int K, float alpha, float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 4];
    __shared__ unsigned tensor_address;
    const unsigned stage0 = shared_address(shared);
    const unsigned full = shared_address(barriers), empty = full + STAGES * 8;
    const unsigned summed = empty + STAGES * 8, stored = summed + 2 * 8;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int tile_cols = (N + BN - 1) / BN, tiles = (M + BM - 1) / BM * tile_cols;

    // [barriers]
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full + stage * 8, 1);   // the copier, and all bytes
            barrier_init(empty + stage * 8, 1);  // the commit of the products that read it
        }
        for (int set = 0; set < 2; ++set) {
            barrier_init(summed + set * 8, 1);             // the commit of the last products
            barrier_init(stored + set * 8, STORERS * 32);  // everybody who reads the sums
        }
        barrier_init_fence();
    }
    if (warp == MULTIPLIER) tensor_alloc<COLUMNS>(shared_address(&tensor_address));
    __syncthreads();
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

    if (warp == COPIER) {
        // [copy]
        if (lane == 0) {
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                const int row = tile / tile_cols * BM, col = tile % tile_cols * BN;
                for (int k_step = 0; k_step < K; k_step += BK) {
                    const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                    const unsigned landed = full + stage * 8;
                    barrier_wait(empty + stage * 8, phase ^ 1);  // the first time round this returns at once
                    barrier_expect(landed, STAGE_BYTES);
                    tma_load(a_tile, A, k_step, row, landed);
                    for (int panel = 0; panel < BN / PANEL_N; ++panel)
                        tma_load(b_tile + panel * PANEL_BYTES, B, col + panel * PANEL_N, k_step, landed);
                    next_stage();
                }
            }
        }
        // [/copy]
    } else if (warp == MULTIPLIER) {
        // [multiply]
        if (lane == 0) {
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                barrier_wait(stored + set * 8, set_phase ^ 1);  // these columns are free again
                tensor_fence_after();
                for (int k_step = 0; k_step < K; k_step += BK) {
                    const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                    barrier_wait(full + stage * 8, phase);
                    for (int k = 0; k < BK; k += 16)
                        tensor_multiply(tensor + set * BN, tensor_descriptor(a_tile + k * 2),
                                        tensor_descriptor(b_tile + k * PITCH, PANEL_BYTES),
                                        tensor_instruction<In>(BM, BN), k_step > 0 || k > 0);
                    tensor_commit(empty + stage * 8);  // the stage may be filled again when they are done
                    next_stage();
                }
                tensor_commit(summed + set * 8);
                next_set();
            }
        }
        // [/multiply]
    } else {
        // [store]
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const int row = tile / tile_cols * BM, col = tile % tile_cols * BN;
            barrier_wait(summed + set * 8, set_phase);
            tensor_fence_after();
            store_sums<BN>(C, M, N, row + warp * 32, col, tensor + set * BN + (warp * 32 << 16), alpha, beta);
            tensor_fence_before();
            barrier_arrive(stored + set * 8);
            next_set();
        }
        // [/store]
    }

    tensor_fence_before();
    __syncthreads();
    tensor_fence_after();
    if (warp == MULTIPLIER) tensor_free<COLUMNS>(tensor);
}
