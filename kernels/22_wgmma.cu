// wgmma: a warpgroup (128 threads) multiplies straight from shared memory, where TMA has put the tiles: no fragments to
// load, and the whole tensor core to use. Changed from tma_mma: no ldmatrix, descriptors of operands instead; back to
// one stage, so that fence, commit and wait stand alone (several blocks share a multiprocessor and hide one another's
// waits). Tiles: block BM x BN x 64, warpgroup 64 x BN, wgmma 64 x BN x 16. K and N in multiples of 8 (16-byte rows);
// sm_90a.
#include "hopper.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
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
constexpr int BK = 64;       // 128 bytes, as far as the swizzle reaches: a row of A in a stage
constexpr int PANEL_N = 64;  // columns of B that stand together, 128 bytes again
constexpr int THREADS = BM / 64 * 128;
constexpr int PITCH = 128;
constexpr int A_BYTES = BM * PITCH;
constexpr int PANEL_BYTES = BK * PITCH;
constexpr int B_BYTES = BN / PANEL_N * PANEL_BYTES;
static_assert(BM % 64 == 0 && BN % PANEL_N == 0 && BN <= 256, "a warpgroup has 64 rows and up to 256 columns");
// [/tiles]

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_wgmma(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, Out* __restrict__ C, int M,
               int N, int K, float alpha, float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[1];
    const unsigned a_tile = shared_address(shared), b_tile = a_tile + A_BYTES;
    const unsigned full = shared_address(barriers);
    const int thread = threadIdx.x;
    const int warpgroup = thread / 128;
    const int row = blockIdx.y * BM, col = blockIdx.x * BN;

    // [barrier]
    if (thread == 0) {
        barrier_init(full, 1);
        barrier_init_fence();
    }
    __syncthreads();
    // [/barrier]

    float acc[BN / 8][4];
    unsigned phase = 0;
    for (int k_step = 0; k_step < K; k_step += BK) {
        // [load]
        if (thread == 0) {
            barrier_expect(full, A_BYTES + B_BYTES);
            tma_load(a_tile, A, k_step, row, full);
            for (int panel = 0; panel < BN / PANEL_N; ++panel)
                tma_load(b_tile + panel * PANEL_BYTES, B, col + panel * PANEL_N, k_step, full);
        }
        barrier_wait(full, phase);
        phase ^= 1;
        // [/load]

        // [compute]
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            const auto a = wgmma_descriptor(a_tile + warpgroup * 64 * PITCH + k * 2);  // 16 columns further right
            const auto b = wgmma_descriptor(b_tile + k * PITCH, PANEL_BYTES);          // 16 rows further down
            wgmma_k16<In, 0, 1>(acc, a, b, k_step > 0 || k > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();
        __syncthreads();  // everybody has read the tiles
        // [/compute]
    }

    // [store]
    const int warp_row = row + thread / 32 * 16;
#pragma unroll
    for (int n = 0; n < BN / 8; n += 2) store_atoms(C, M, N, warp_row, col + n * 8, acc[n], acc[n + 1], alpha, beta);
    // [/store]
}
