// y[r] = the sum of row r of X (M, K): a block of 64 threads has 64 rows, and
// fetches tiles of 64 x 16 floats with cp.async. K is a multiple of 16, M of 64.
#include "ptx.cuh"

constexpr int ROWS = 64, COLS = 16, PITCH = 20;

extern "C" __global__ void two_stages(const float* X, float* y, int K) {
    __shared__ __align__(16) float buffer[2][ROWS * PITCH];
    const int thread = threadIdx.x;
    const int tiles = K / COLS;
    X += blockIdx.x * ROWS * K;

    // Start the copy of a tile into buffer tile % 2: four threads per row.
    auto fetch = [&](int tile) {
        for (int i = thread; i < ROWS * 4; i += 64)
            cp_async<16>(
                shared_address(&buffer[tile % 2][i / 4 * PITCH + i % 4 * 4]),
                X + i / 4 * K + tile * COLS + i % 4 * 4);
        cp_async_commit();
    };

    float sum = 0.0f;
#ifdef SOLUTION
    fetch(0);
    for (int tile = 0; tile < tiles; ++tile) {
        cp_async_wait<0>();  // this thread's copies of this tile have landed
        __syncthreads();     // everyone's have; the other buffer has been read
        if (tile + 1 < tiles) fetch(tile + 1);
        for (int k = 0; k < COLS; ++k)
            sum += buffer[tile % 2][thread * PITCH + k];
    }
#else
    // Your turn: fetch tile t + 1 while tile t is summed. This version fetches
    // a tile, waits for it, and only then sums it.
    for (int tile = 0; tile < tiles; ++tile) {
        fetch(tile);
        cp_async_wait<0>();
        __syncthreads();
        for (int k = 0; k < COLS; ++k)
            sum += buffer[tile % 2][thread * PITCH + k];
        __syncthreads();
    }
#endif
    y[blockIdx.x * ROWS + thread] = sum;
}
