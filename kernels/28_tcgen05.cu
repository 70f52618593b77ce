// tcgen05: one thread multiplies 128 x BN x 16, and the sums stay in tensor memory until they are stored. Changed from
// wgmma: no accumulators in registers, no warpgroup that waits; a commit arrives at an mbarrier instead. One stage, so
// that allocate, multiply, commit, wait, load and deallocate stand alone. Tiles: block 128 x BN x 64, a warp stores
// 32 rows. K and N in multiples of 8 (16-byte rows); sm_100a.
#include "blackwell.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 256
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
constexpr int THREADS = 128;
constexpr int PITCH = 128;
constexpr int A_BYTES = BM * PITCH;
constexpr int PANEL_BYTES = BK * PITCH;
constexpr int B_BYTES = BN / PANEL_N * PANEL_BYTES;
constexpr int COLUMNS = BN;  // of tensor memory
static_assert(BM == 128 && (BN == 64 || BN == 128 || BN == 256), "128 lanes, and columns by powers of two");
// [/tiles]

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_tcgen05(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, Out* __restrict__ C, int M,
                 int N, int K, float alpha, float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2];
    __shared__ unsigned tensor_address;
    const unsigned a_tile = shared_address(shared), b_tile = a_tile + A_BYTES;
    const unsigned landed = shared_address(barriers), done = landed + 8;
    const int thread = threadIdx.x, warp = thread / 32;
    const int row = blockIdx.y * BM, col = blockIdx.x * BN;

    // [allocate]
    if (thread == 0) {
        barrier_init(landed, 1);
        barrier_init(done, 1);
        barrier_init_fence();
    }
    if (warp == 0) tensor_alloc<COLUMNS>(shared_address(&tensor_address));
    __syncthreads();
    const unsigned sums = tensor_address;
    // [/allocate]

    unsigned phase = 0;
    for (int k_step = 0; k_step < K; k_step += BK) {
        // [load]
        if (thread == 0) {
            barrier_expect(landed, A_BYTES + B_BYTES);
            tma_load(a_tile, A, k_step, row, landed);
            for (int panel = 0; panel < BN / PANEL_N; ++panel)
                tma_load(b_tile + panel * PANEL_BYTES, B, col + panel * PANEL_N, k_step, landed);
        }
        barrier_wait(landed, phase);
        // [/load]

        // [multiply]
        if (thread == 0) {
            for (int k = 0; k < BK; k += 16)
                tensor_multiply(sums, tensor_descriptor(a_tile + k * 2),             // 16 columns further right
                                tensor_descriptor(b_tile + k * PITCH, PANEL_BYTES),  // 16 rows further down
                                tensor_instruction<In>(BM, BN), k_step > 0 || k > 0);
            tensor_commit(done);
        }
        barrier_wait(done, phase);  // the tiles have been read, and the sums are there
        phase ^= 1;
        // [/multiply]
    }

    // [store]
    tensor_fence_after();
    store_sums<BN>(C, M, N, row + warp * 32, col, sums + (warp * 32 << 16), alpha, beta);
    tensor_fence_before();
    __syncthreads();  // everybody has read the sums
    if (warp == 0) tensor_free<COLUMNS>(sums);
    // [/store]
}
