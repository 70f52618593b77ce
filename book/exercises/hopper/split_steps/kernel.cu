// C = A @ B, 64 x 64 per block, by two warpgroups. A step is 64 elements of K.
// Each warpgroup has a tile of A and of B, and a barrier, of its own. What lies
// beyond K arrives as zeros.
#include "hopper.cuh"

constexpr int TILE_BYTES = 64 * 128;

extern "C" __global__ void __launch_bounds__(256)
    split_steps(const __grid_constant__ TensorMap A,
                const __grid_constant__ TensorMap B, float* C, int M, int N,
                int K) {
    __shared__ __align__(1024) unsigned char tiles[4 * TILE_BYTES];
    __shared__ __align__(8) unsigned long long barriers[2];
    const int group = threadIdx.x / 128, thread = threadIdx.x % 128;
    const unsigned a_tile = shared_address(tiles) + group * 2 * TILE_BYTES;
    const unsigned b_tile = a_tile + TILE_BYTES;
    const unsigned landed = shared_address(barriers) + 8 * group;
    const int row = blockIdx.y * 64, col = blockIdx.x * 64;
    const int steps = (K + 63) / 64;
    if (thread == 0) {
        barrier_init(landed, 1);
        barrier_init_fence();
    }
    __syncthreads();

    float acc[8][4] = {};
    unsigned parity = 0;
#ifdef SOLUTION
    for (int step = group; step < steps; step += 2) {
#else
    // Your turn: so far both warpgroups take all steps. Each warpgroup shall
    // take half of the steps, and where their number is odd, one of the two
    // warpgroups one more.
    for (int step = 0; step < steps; ++step) {
#endif
        if (thread == 0) {
            barrier_expect(landed, 2 * TILE_BYTES);
            tma_load(a_tile, A, 64 * step, row, landed);
            tma_load(b_tile, B, col, 64 * step, landed);
        }
        barrier_wait(landed, parity);
        parity ^= 1;
        wgmma_fence();
        for (int k = 0; k < 64; k += 16)
            wgmma_k16<half, 0, 1>(acc, wgmma_descriptor(a_tile + k * 2),
                                  wgmma_descriptor(b_tile + k * 128), true);
        wgmma_commit();
        wgmma_wait<0>();
        // Barrier number 1 + group, for the 128 threads of this warpgroup: all
        // four warps have read the tiles. (Number 0 is __syncthreads().)
        named_barrier(1 + group, 128);
    }

#ifdef SOLUTION
    // Warpgroup 1 hands its sums over where the tiles were: register i of all
    // threads side by side.
    __syncthreads();
    float (*sums)[128] = reinterpret_cast<float (*)[128]>(tiles);
    if (group == 1)
        for (int i = 0; i < 32; ++i) sums[i][thread] = acc[i / 4][i % 4];
    __syncthreads();
    if (group == 1) return;
    for (int i = 0; i < 32; ++i) acc[i / 4][i % 4] += sums[i][thread];
#else
    // Your turn: add the sums of both warpgroups, through shared memory.
    if (group == 1) return;
#endif

    const int lane = thread % 32;
    for (int j = 0; j < 8; ++j)
        for (int i = 0; i < 4; ++i) {
            const int r = row + thread / 32 * 16 + lane / 4 + i / 2 * 8;
            const int c = col + 8 * j + lane % 4 * 2 + i % 2;
            if (r < M && c < N) C[r * N + c] = acc[j][i];
        }
}
