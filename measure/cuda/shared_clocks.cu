// shared_clocks: what a wavefront costs. 32 warps on one multiprocessor, each doing LOADS ldmatrix and COPIES cp.async
// a turn, again and again, and the clocks that pass from the first turn to the last. Launched with one block. What
// ldmatrix reads does not matter, and nobody has written it.
#include "ptx.cuh"

#ifndef LOADS
#define LOADS 1
#endif
#ifndef COPIES
#define COPIES 0
#endif
#ifndef PITCH
#define PITCH 64  // bytes from one row that ldmatrix reads to the next
#endif
#ifndef CHUNKS
#define CHUNKS 4  // chunks of 16 bytes in a row that is copied: rows are 4 KiB apart where they come from
#endif
#ifndef COPY_PITCH
#define COPY_PITCH 64  // and COPY_PITCH bytes apart where they go
#endif

constexpr int WARPS = 32, MATRIX_BYTES = 32 * 144, ROW_BYTES = 4096, COPY_BYTES = 32 / CHUNKS * COPY_PITCH;
static_assert(MATRIX_BYTES + WARPS * COPY_BYTES <= 48 * 1024 && PITCH <= 144, "all in 48 KiB");

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    shared_clocks(const unsigned char* __restrict__ from, long long* clocks, unsigned* seen, int turns) {
    __shared__ __align__(128) unsigned char shared[MATRIX_BYTES + WARPS * COPY_BYTES];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    const unsigned nothing = turns >> 30;  // 0, but the compiler cannot know, and so makes no two accesses one
    unsigned matrix = shared_address(shared) + lane * PITCH;
    const int row = lane / CHUNKS, chunk = lane % CHUNKS;
    unsigned to = shared_address(shared) + MATRIX_BYTES + warp * COPY_BYTES + row * COPY_PITCH + chunk * 16;
    from += (warp * 32 / CHUNKS + row) * ROW_BYTES + chunk * 16;

    unsigned sum = 0;
    long long start = 0;
    for (int turn = 0; turn < 32 + turns; ++turn) {  // 32 turns to fill caches and queues, not counted
        if (turn == 32) {
            __syncthreads();
            start = clock64();
        }
#pragma unroll
        for (int copy = 0; copy < COPIES; ++copy, to += nothing) cp_async<16>(to, from + turn % 32 * 128);
        if (COPIES > 0) cp_async_commit();
#pragma unroll
        for (int load = 0; load < LOADS; ++load, matrix += nothing) {
            unsigned r[4];
            ldmatrix_x4(r, matrix);
            sum += r[0] + r[1] + r[2] + r[3];
        }
        if (COPIES > 0) cp_async_wait<4>();
    }
    cp_async_wait<0>();
    __syncthreads();
    if (threadIdx.x == 0) *clocks = clock64() - start;
    seen[threadIdx.x] = sum;
}
