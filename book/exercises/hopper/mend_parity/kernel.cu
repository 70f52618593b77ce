// y[r] = the sum of row r of X, for 64 rows per block. Two roles: thread 64 has
// tiles of 64 rows and 32 columns copied into two stages, and threads 0 to 63
// add them up, one row each. What lies beyond X arrives as zeros.
#include "hopper.cuh"

constexpr int STAGES = 2, TILE_BYTES = 64 * 32 * 4;

extern "C" __global__ void mend_parity(const __grid_constant__ TensorMap X,
                                       float* y, int M, int K) {
    __shared__ __align__(128) float stage[STAGES][64 * 32];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    const int thread = threadIdx.x, tiles = (K + 31) / 32;
    if (thread == 0) {
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(full + 8 * s, 1);    // the producer announces bytes
            barrier_init(empty + 8 * s, 64);  // every consumer releases
        }
        barrier_init_fence();
    }
    __syncthreads();

    if (thread == 64) {  // the producer
        for (int i = 0; i < tiles; ++i) {
            const int s = i % STAGES;
#ifdef SOLUTION
            barrier_wait(empty + 8 * s, i / STAGES % 2 ^ 1);  // first at once
#else
            barrier_wait(empty + 8 * s, i / STAGES % 2);
#endif
            barrier_expect(full + 8 * s, TILE_BYTES);
            tma_load(shared_address(stage[s]), X, 32 * i, 64 * blockIdx.x,
                     full + 8 * s);
        }
    } else if (thread < 64) {  // the consumers
        float sum = 0.0f;
        for (int i = 0; i < tiles; ++i) {
            const int s = i % STAGES;
#ifdef SOLUTION
            barrier_wait(full + 8 * s, i / STAGES % 2);
#else
            // Your turn: mend the parities of both roles.
            barrier_wait(full + 8 * s, i % 2);
#endif
            for (int k = 0; k < 32; ++k)
                sum += stage[s][32 * thread + (k + thread) % 32];
            barrier_arrive(empty + 8 * s);
        }
        if (64 * blockIdx.x + thread < M) y[64 * blockIdx.x + thread] = sum;
    }
}
