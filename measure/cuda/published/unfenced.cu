// Stands for a published Hopper example written in Tilus, not copied from it: one warp copies by TMA, one warpgroup
// multiplies a 128 x 128 tile of C by wgmma, one group ahead of its waits, and converts the sums to half after the last
// wait. Written anew for this book.
// AFTER=0: nothing stands between that wait and the conversions. AFTER=1: wgmma.fence does. AFTER=2: the conversions
// stand behind the branch that guards each store. AFTER=3: an empty asm names each sum, as CUTLASS does.
// ZEROS=1: the sums are set to zero in registers, as in that example. ZEROS=0: the first product does not add to them.
// A (M, K), B (K, N), C (M, N), half, row-major. M is a multiple of 128, N is SIZE, K is DEPTH, both known to the compiler.
#include "hopper.cuh"

#ifndef AFTER
#define AFTER 0
#endif
#ifndef ZEROS
#define ZEROS 1
#endif
#ifndef SIZE
#define SIZE 4096
#endif
#ifndef DEPTH
#define DEPTH 4096
#endif

constexpr int BM = 128, BN = 128, BK = 64, STAGES = 4, ATOMS = BN / 8;
constexpr int ROW_BYTES = 128, A_BYTES = BM * ROW_BYTES, PANEL_BYTES = BK * ROW_BYTES;
constexpr int STAGE_BYTES = A_BYTES + BN / 64 * PANEL_BYTES;
constexpr int CONSUMERS = 128, THREADS = CONSUMERS + 32;

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_unfenced(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, half* __restrict__ C,
                  int M) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned tiles = shared_address(shared), full = shared_address(barriers), empty = full + STAGES * 8;
    const int row = blockIdx.y * BM, col = blockIdx.x * BN, thread = threadIdx.x;
    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full + stage * 8, 1);
            barrier_init(empty + stage * 8, CONSUMERS);
        }
        barrier_init_fence();
    }
    __syncthreads();
    int stage = 0;
    unsigned phase = 0;
    auto next_stage = [&] {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        phase ^= stage == 0;
    };

    if (thread >= CONSUMERS) {
        if (thread > CONSUMERS) return;
        for (int k0 = 0; k0 < DEPTH; k0 += BK) {
            const unsigned a_tile = tiles + stage * STAGE_BYTES, landed = full + stage * 8;
            barrier_wait(empty + stage * 8, phase ^ 1);
            barrier_expect(landed, STAGE_BYTES);
            tma_load(a_tile, A, k0, row, landed);
            for (int panel = 0; panel < BN / 64; ++panel)
                tma_load(a_tile + A_BYTES + panel * PANEL_BYTES, B, col + panel * 64, k0, landed);
            next_stage();
        }
        return;
    }

    // [products]
    float sums[BM / 64][ATOMS][4];
#if ZEROS
#pragma unroll
    for (int i = 0; i < BM / 64; ++i)
#pragma unroll
        for (int j = 0; j < ATOMS; ++j) sums[i][j][0] = sums[i][j][1] = sums[i][j][2] = sums[i][j][3] = 0.0f;
#endif
    auto multiply = [&](bool add) {
        const unsigned a_tile = tiles + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
        barrier_wait(full + stage * 8, phase);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK; k += 16)
#pragma unroll
            for (int i = 0; i < BM / 64; ++i)
                wgmma_k16<half, 0, 1>(sums[i], wgmma_descriptor(a_tile + i * 64 * ROW_BYTES + k * 2),
                                      wgmma_descriptor(b_tile + k * ROW_BYTES, PANEL_BYTES), ZEROS || add || k > 0);
        wgmma_commit();
    };
    multiply(false);
    int last_stage = stage;
    next_stage();
#pragma unroll 2
    for (int k0 = BK; k0 < DEPTH; k0 += BK) {
        multiply(true);
        wgmma_wait<1>();  // all groups but the newest are done, so the stage before can be filled again
        barrier_arrive(empty + last_stage * 8);
        last_stage = stage;
        next_stage();
    }
    wgmma_wait<0>();  // all groups are done
    // [/products]

#pragma unroll
    for (int i = 0; i < BM / 64 * (AFTER == 3); ++i)
#pragma unroll
        for (int j = 0; j < ATOMS; ++j)
#pragma unroll
            for (int r = 0; r < 4; ++r) asm volatile("" : "+f"(sums[i][j][r])::"memory");
    // [store]
    if (AFTER == 1) wgmma_fence();
    barrier_arrive(empty + last_stage * 8);
    named_barrier(1, CONSUMERS);
    half out[BM / 64][ATOMS][4];
#pragma unroll
    for (int i = 0; i < BM / 64; ++i)
#pragma unroll
        for (int j = 0; j < ATOMS; ++j)
#pragma unroll
            for (int r = 0; r < 4 && AFTER != 2; ++r) out[i][j][r] = static_cast<half>(sums[i][j][r]);
    // [/store]
#pragma unroll
    for (int i = 0; i < BM / 64; ++i)
#pragma unroll
        for (int j = 0; j < ATOMS; ++j)
#pragma unroll
            for (int r = 0; r < 4; r += 2) {
                const int out_row = row + 64 * i + thread / 32 * 16 + thread % 32 / 4 + 4 * r;
                if (out_row < M) {
                    if (AFTER == 2)
                        for (int e = r; e < r + 2; ++e) out[i][j][e] = static_cast<half>(sums[i][j][e]);
                    *reinterpret_cast<unsigned*>(C + size_t(out_row) * SIZE + col + j * 8 + thread % 4 * 2) =
                        *reinterpret_cast<const unsigned*>(&out[i][j][r]);
                }
            }
}
