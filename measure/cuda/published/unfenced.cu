// Stands for a published Hopper example written in Tilus, not copied from it: one warpgroup multiplies a BM x BN tile of
// C with wgmma, one group ahead of its waits, and converts the sums to half after the last wait. Written anew for this
// book. AFTER=0: nothing stands between that wait and the conversions. AFTER=1: wgmma.fence does.
// ZEROS=1: the sums are set to zero in registers, as in that example. ZEROS=0: the first product does not add.
// A (M, K), B (N, K), both K-major, C (M, N), all half. M, N, K are multiples of BM, BN, BK.
#include "hopper.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef AFTER
#define AFTER 0
#endif
#ifndef ZEROS
#define ZEROS 1
#endif

constexpr int BK = 64, THREADS = 128, ATOMS = BN / 8, ROW_BYTES = 2 * BK, STAGE = (BM + BN) * ROW_BYTES;

// Copy ROWS rows of 128 bytes, `pitch` halves apart, to where a swizzle of 128 bytes wants their chunks of 16.
template <int ROWS>
__device__ __forceinline__ void copy_tile(unsigned char* tile, const half* source, int pitch) {
#pragma unroll
    for (int i = 0; i < ROWS * 8; i += THREADS) {
        const int row = (i + threadIdx.x) / 8, chunk = threadIdx.x % 8;
        const int4 value = *reinterpret_cast<const int4*>(source + size_t(row) * pitch + chunk * 8);
        *reinterpret_cast<int4*>(tile + row * ROW_BYTES + (chunk ^ row % 8) * 16) = value;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_unfenced(const half* __restrict__ A, const half* __restrict__ B, half* __restrict__ C, int N, int K) {
    extern __shared__ __align__(1024) unsigned char tiles[];
    unsigned char *As = tiles, *Bs = tiles + BM * ROW_BYTES;
    A += size_t(blockIdx.y) * BM * K;
    B += size_t(blockIdx.x) * BN * K;
    C += size_t(blockIdx.y) * BM * N + size_t(blockIdx.x) * BN;

    float sums[BM / 64][ATOMS][4];
#if ZEROS
#pragma unroll
    for (int i = 0; i < BM / 64; ++i)
#pragma unroll
        for (int j = 0; j < ATOMS; ++j) sums[i][j][0] = sums[i][j][1] = sums[i][j][2] = sums[i][j][3] = 0.0f;
#endif
    auto multiply = [&](int stage, bool add) {
        wgmma_fence();
        const auto a = wgmma_descriptor(shared_address(As + stage * STAGE));
        const auto b = wgmma_descriptor(shared_address(Bs + stage * STAGE));
#pragma unroll
        for (int k = 0; k < BK / 16; ++k)
#pragma unroll
            for (int i = 0; i < BM / 64; ++i)
                wgmma_k16<half, 0, 0>(sums[i], a + i * (64 * ROW_BYTES >> 4) + k * 2, b + k * 2, ZEROS || add || k > 0);
        wgmma_commit();
    };
    auto fetch = [&](int stage, int k0) {
        copy_tile<BM>(As + stage * STAGE, A + k0, K);
        copy_tile<BN>(Bs + stage * STAGE, B + k0, K);
        async_fence();  // wgmma sees what the threads have written
        __syncthreads();
    };
    // [loop]
    fetch(0, 0);
    multiply(0, false);
    for (int k0 = BK, stage = 1; k0 < K; k0 += BK, stage ^= 1) {
        fetch(stage, k0);
        multiply(stage, true);
        wgmma_wait<1>();
        __syncthreads();
    }
    wgmma_wait<0>();
    // [/loop]

    // [store]
    if (AFTER == 1) wgmma_fence();
#pragma unroll
    for (int i = 0; i < BM / 64; ++i)
#pragma unroll
        for (int j = 0; j < ATOMS; ++j)
#pragma unroll
            for (int r = 0; r < 4; r += 2) {
                const int row = 64 * i + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + 4 * r;
                half2* c = reinterpret_cast<half2*>(C + size_t(row) * N + j * 8 + threadIdx.x % 4 * 2);
                *c = __floats2half2_rn(sums[i][j][r], sums[i][j][r + 1]);
            }
    // [/store]
}
