// C = A @ B with K = 64: a warpgroup, 64 x 128 of C per block. TMA brings the
// tiles in rows of 128 bytes with the 128-byte swizzle. A is M x 64, and its
// tile is 64 such rows. B is 64 x N, and its tile is two panels: columns 0 to 63
// and 64 to 127, each 64 rows of 128 bytes.
#include "hopper.cuh"

constexpr int A_BYTES = 64 * 128, PANEL_BYTES = 64 * 128;

// The descriptor of an operand. The first three are in bytes.
__device__ unsigned long long describe(unsigned start, unsigned leading,
                                       unsigned stride, int swizzle_code) {
    unsigned long long bits = (start & 0x3ffff) >> 4;  // bits 0-13: start / 16
#ifdef SOLUTION
    bits |= static_cast<unsigned long long>(leading >> 4) << 16;
    bits |= static_cast<unsigned long long>(stride >> 4) << 32;
    bits |= static_cast<unsigned long long>(swizzle_code) << 62;
#else
    // Your turn: leading / 16 in bits 16-29, stride / 16 in bits 32-45, the
    // code of the swizzle in bits 62-63.
#endif
    return bits;
}

extern "C" __global__ void __launch_bounds__(128)
    write_descriptor(const __grid_constant__ TensorMap A,
                     const __grid_constant__ TensorMap B, float* C, int M,
                     int N) {
    __shared__ __align__(1024) unsigned char tiles[A_BYTES + 2 * PANEL_BYTES];
    __shared__ __align__(8) unsigned long long barrier[1];
    const unsigned a_tile = shared_address(tiles), b_tile = a_tile + A_BYTES;
    const unsigned landed = shared_address(barrier);
    const int row = blockIdx.y * 64, col = blockIdx.x * 128;
    if (threadIdx.x == 0) {
        barrier_init(landed, 1);
        barrier_init_fence();
        barrier_expect(landed, A_BYTES + 2 * PANEL_BYTES);
        tma_load(a_tile, A, 0, row, landed);
        tma_load(b_tile, B, col, 0, landed);
        tma_load(b_tile + PANEL_BYTES, B, col + 64, 0, landed);
    }
    __syncthreads();
    barrier_wait(landed, 0);

    float acc[16][4];
    wgmma_fence();
    for (int k = 0; k < 64; k += 16) {
#ifdef SOLUTION
        const auto a = describe(a_tile + k * 2, 16, 8 * 128, 1);
        const auto b = describe(b_tile + k * 128, PANEL_BYTES, 8 * 128, 1);
#else
        // Your turn: elements k to k + 15 of each row of A, rows k to k + 15
        // of B. The code of the 128-byte swizzle is 1.
        const auto a = describe(a_tile, 0, 0, 0);
        const auto b = describe(b_tile, 0, 0, 0);
#endif
        wgmma_k16<half, 0, 1>(acc, a, b, k > 0);  // B is N-major
    }
    wgmma_commit();
    wgmma_wait<0>();

    const int lane = threadIdx.x % 32;
    for (int j = 0; j < 16; ++j)
        for (int i = 0; i < 4; ++i) {
            const int r = row + threadIdx.x / 32 * 16 + lane / 4 + i / 2 * 8;
            const int c = col + 8 * j + lane % 4 * 2 + i % 2;
            if (r < M && c < N) C[r * N + c] = acc[j][i];
        }
}
