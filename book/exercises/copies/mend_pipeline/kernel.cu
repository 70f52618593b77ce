// Each block reverses its 512 floats, tile by tile of 128, through two shared
// buffers that cp.async fills ahead of time.
#include "ptx.cuh"

extern "C" __global__ void mend_pipeline(const float* in, float* out) {
    __shared__ __align__(16) float buffer[2][128];
    const int thread = threadIdx.x;  // 128 of them
    in += blockIdx.x * 512;
    out += blockIdx.x * 512;

    auto fetch = [&](int tile) {
        if (thread < 32)
            cp_async<16>(shared_address(&buffer[tile % 2][4 * thread]),
                         in + 128 * tile + 4 * thread);
        cp_async_commit();
    };
    fetch(0);
    for (int tile = 0; tile < 4; ++tile) {
#ifdef SOLUTION
        cp_async_wait<0>();  // this thread's copies have landed ...
        __syncthreads();  // ... everyone's have; the other buffer has been read
        if (tile + 1 < 4) fetch(tile + 1);
#else
        // Your turn: mend the three races. A tile may be read only when it has
        // landed for every thread, and overwritten only when all have read it.
        if (tile + 1 < 4) fetch(tile + 1);
        cp_async_wait<1>();
#endif
        out[511 - 128 * tile - thread] = buffer[tile % 2][thread];
    }
}
