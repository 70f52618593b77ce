// y[r] = sum over k of X[r, k]: a block of 64 threads has 64 rows, and fetches
// tiles of 64 x 16 floats with cp.async. STAGES tiles are in flight or in use
// at once. K is a multiple of 16, at least 16; M a multiple of 64.
#include "ptx.cuh"

constexpr int STAGES = 4, ROWS = 64, COLS = 16, PITCH = 20;

extern "C" __global__ void pipeline_stages(const float* X, float* y, int K) {
    __shared__ __align__(16) float buffer[STAGES][ROWS * PITCH];
    const int thread = threadIdx.x;
    const int tiles = K / COLS;
    X += blockIdx.x * ROWS * K;

    // Start the copy of a tile: four threads per row, 16 bytes each.
    auto fetch = [&](int tile) {
        for (int i = thread; i < ROWS * 4; i += 64)
            cp_async<16>(shared_address(
                             &buffer[tile % STAGES][i / 4 * PITCH + i % 4 * 4]),
                         X + i / 4 * K + tile * COLS + i % 4 * 4);
    };

    float sum = 0.0f;
#ifdef SOLUTION
    for (int tile = 0; tile < STAGES - 1; ++tile) {
        if (tile < tiles) fetch(tile);
        cp_async_commit();  // a group for every tile, even an empty one
    }
    for (int tile = 0; tile < tiles; ++tile) {
        // All but the newest STAGES - 2 groups have landed: this tile has. After
        // the barrier, for everyone; and the slot filled next has been read.
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        if (tile + STAGES - 1 < tiles) fetch(tile + STAGES - 1);
        cp_async_commit();
        for (int k = 0; k < COLS; ++k)
            sum += buffer[tile % STAGES][thread * PITCH + k];
    }
#else
    // Your turn: keep the copies of STAGES - 1 tiles in flight. This version
    // fetches a tile, waits for it, and only then sums it.
    for (int tile = 0; tile < tiles; ++tile) {
        fetch(tile);
        cp_async_commit();
        cp_async_wait<0>();
        __syncthreads();
        for (int k = 0; k < COLS; ++k)
            sum += buffer[tile % STAGES][thread * PITCH + k];
        __syncthreads();
    }
#endif
    y[blockIdx.x * ROWS + thread] = sum;
}
