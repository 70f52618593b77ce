// tcgen05_mxfp8: operands of 8 bits (e4m3), 32 along k to a scale that is a power of two; the tensor core multiplies the
// scales in. Changed from tcgen05_pipelined: scales come with their tiles, and go to tensor memory, where a tcgen05.mma
// looks for them; each stage has its own columns for them. B is (N, K), K-major. Tiles: block 128 x BN x 128; a BN of
// 256 leaves room for one set of sums. K and N in multiples of 16; sm_100a.
#include "blackwell.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef BLOCKS
#define BLOCKS 148
#endif
#ifndef HALF_OUTPUT
#define HALF_OUTPUT 0
#endif
#ifndef BF16_OUTPUT
#define BF16_OUTPUT 0
#endif

// [types]
using In = e4m3;
#if HALF_OUTPUT
using Out = half;
#elif BF16_OUTPUT
using Out = bf16;
#else
using Out = float;
#endif
// [/types]

// [tiles]
constexpr int PITCH = 128, BK = PITCH;  // a number is a byte
constexpr int A_BYTES = BM * PITCH, B_BYTES = BN * PITCH;
constexpr int A_SCALE_BYTES = SCALE_TILE_BYTES, B_SCALE_BYTES = BN / 128 * SCALE_TILE_BYTES;  // 4 for each row
constexpr int TILE_BYTES = A_BYTES + B_BYTES, SCALE_BYTES = A_SCALE_BYTES + B_SCALE_BYTES;    // of a stage
constexpr int SETS = BN == 256 ? 1 : 2;                                                       // of sums
constexpr int SCALE_COLUMNS = (BM + BN) / 32;  // of tensor memory, of a stage
constexpr int COLUMNS = 512;
constexpr int STORERS = 4, COPIER = 4, MULTIPLIER = 5;  // warps
constexpr int THREADS = 6 * 32;
static_assert(BM == 128 && (BN == 128 || BN == 256), "scales come in tiles of 128 rows");
static_assert(SETS * BN + STAGES * SCALE_COLUMNS <= COLUMNS, "what tensor memory has");
// [/tiles]

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_tcgen05_mxfp8(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
                       const unsigned char* __restrict__ A_scales, const unsigned char* __restrict__ B_scales,
                       Out* __restrict__ C, int M, int N, int K, float alpha, float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 2 * SETS];
    __shared__ unsigned tensor_address;
    const unsigned stage0 = shared_address(shared), scales0 = stage0 + STAGES * TILE_BYTES;
    const unsigned full = shared_address(barriers), empty = full + STAGES * 8;
    const unsigned summed = empty + STAGES * 8, stored = summed + SETS * 8;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int tile_cols = (N + BN - 1) / BN, tiles = (M + BM - 1) / BM * tile_cols;
    const int k_steps = (K + BK - 1) / BK;

    // [barriers]
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full + stage * 8, 1);   // the copier, and all bytes
            barrier_init(empty + stage * 8, 1);  // the commit of the products that read it
        }
        for (int set = 0; set < SETS; ++set) {
            barrier_init(summed + set * 8, 1);             // the commit of the last products
            barrier_init(stored + set * 8, STORERS * 32);  // everybody who reads the sums
        }
        barrier_init_fence();
    }
    if (warp == MULTIPLIER) tensor_alloc<COLUMNS>(shared_address(&tensor_address));
    __syncthreads();
    const unsigned tensor = tensor_address, stage_scales = tensor + SETS * BN;
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
        set = set + 1 == SETS ? 0 : set + 1;
        set_phase ^= set == 0;
    };

    if (warp == COPIER) {
        // [copy]
        if (lane == 0) {
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                const int row = tile / tile_cols * BM, col = tile % tile_cols * BN;
                for (int step = 0; step < k_steps; ++step) {
                    const unsigned a_tile = stage0 + stage * TILE_BYTES, b_tile = a_tile + A_BYTES;
                    const unsigned a_scales = scales0 + stage * SCALE_BYTES, b_scales = a_scales + A_SCALE_BYTES;
                    const unsigned landed = full + stage * 8;
                    barrier_wait(empty + stage * 8, phase ^ 1);  // the first time round this returns at once
                    barrier_expect(landed, TILE_BYTES + SCALE_BYTES);
                    tma_load(a_tile, A, step * BK, row, landed);
                    tma_load(b_tile, B, step * BK, col, landed);
                    // Scales stand in tiles of 128 rows and BK of k, along k first.
                    const auto tile_at = [&](int scale_row) {
                        return (static_cast<size_t>(scale_row / 128) * k_steps + step) * SCALE_TILE_BYTES;
                    };
                    bulk_load(a_scales, A_scales + tile_at(row), A_SCALE_BYTES, landed);
                    for (int n = 0; n < BN; n += 128)
                        bulk_load(b_scales + n / 128 * SCALE_TILE_BYTES, B_scales + tile_at(col + n), SCALE_TILE_BYTES,
                                  landed);
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
                for (int step = 0; step < k_steps; ++step) {
                    const unsigned a_tile = stage0 + stage * TILE_BYTES, b_tile = a_tile + A_BYTES;
                    const unsigned a_scales = stage_scales + stage * SCALE_COLUMNS, b_scales = a_scales + BM / 32;
                    barrier_wait(full + stage * 8, phase);
                    // [scales]
                    for (int m = 0; m < BM + BN; m += 128)  // of A, then of B: they stand so in both memories
                        tensor_copy_scales(a_scales + m / 32,
                                           scales0 + stage * SCALE_BYTES + m / 128 * SCALE_TILE_BYTES);
                    // [/scales]
                    for (int k = 0; k < BK; k += 32)
                        tensor_multiply_scaled<In>(
                            tensor + set * BN, tensor_descriptor(a_tile + k), tensor_descriptor(b_tile + k),
                            tensor_instruction_scaled<In>(BM, BN, k / 32), a_scales, b_scales, step > 0 || k > 0);
                    tensor_commit(empty +
                                  stage * 8);  // the stage, and its scales' columns, are free when they are done
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
