// wgmma_pipelined: copying and computing by different warps at the same time. One thread of a producer warpgroup keeps
// STAGES stages filled; each consumer warpgroup has one group of wgmma running while it issues the next. Changed from
// wgmma: full and empty barriers per stage instead of __syncthreads, and registers that the producer hands over.
// Tiles: block BM x BN x 64, warpgroup 64 x BN, wgmma 64 x BN x 16. K and N in multiples of 8 (16-byte rows); sm_90a.
#include "hopper.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 256
#endif
#ifndef STAGES
#define STAGES 4
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
constexpr int PITCH = 128;
constexpr int A_BYTES = BM * PITCH;
constexpr int PANEL_BYTES = BK * PITCH;
constexpr int STAGE_BYTES = A_BYTES + BN / PANEL_N * PANEL_BYTES;
static_assert(BM % 64 == 0 && BN % PANEL_N == 0 && BN <= 256, "a warpgroup has 64 rows and up to 256 columns");
// [/tiles]

// [registers]
// A multiprocessor has 65536 registers. Three warpgroups get 168 per thread at launch; then the producer keeps what it
// needs and the two consumers take the rest. A single consumer has enough from the start.
constexpr int PRODUCER_REGISTERS = 40;
constexpr int CONSUMER_REGISTERS = 232;
static_assert(CONSUMERS <= 2, "with more consumers, too few registers are left for each");
// [/registers]

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_wgmma_pipelined(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, Out* __restrict__ C,
                         int M, int N, int K, float alpha, float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stage0 = shared_address(shared);
    const unsigned full = shared_address(barriers), empty = full + STAGES * 8;
    const int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
    const int row = blockIdx.y * BM, col = blockIdx.x * BN;

    // [barriers]
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full + stage * 8, 1);           // the producer, and all bytes
            barrier_init(empty + stage * 8, CONSUMERS);  // one thread of each consumer
        }
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
        if (CONSUMERS == 2) registers_shrink_to<PRODUCER_REGISTERS>();
        if (thread == 0) {
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
        // [/producer]
    } else {
        // [consumer]
        if (CONSUMERS == 2) registers_grow_to<CONSUMER_REGISTERS>();
        float acc[BN / 8][4];
        int last_stage = 0;
        for (int k_step = 0; k_step < K; k_step += BK) {
            const unsigned a_rows = stage0 + stage * STAGE_BYTES + warpgroup * 64 * PITCH;
            const unsigned b_tile = stage0 + stage * STAGE_BYTES + A_BYTES;
            barrier_wait(full + stage * 8, phase);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK; k += 16)
                wgmma_k16<In, 0, 1>(acc, wgmma_descriptor(a_rows + k * 2),
                                    wgmma_descriptor(b_tile + k * PITCH, PANEL_BYTES), k_step > 0 || k > 0);
            wgmma_commit();
            wgmma_wait<1>();  // the k-step before is done, so its stage may be filled again
            if (thread == 0 && k_step > 0) barrier_arrive(empty + last_stage * 8);
            last_stage = stage;
            next_stage();
        }
        wgmma_wait<0>();
        // [/consumer]

        // [store]
        const int warp_row = row + warpgroup * 64 + thread / 32 * 16;
#pragma unroll
        for (int n = 0; n < BN / 8; n += 2)
            store_atoms(C, M, N, warp_row, col + n * 8, acc[n], acc[n + 1], alpha, beta);
        // [/store]
    }
}
