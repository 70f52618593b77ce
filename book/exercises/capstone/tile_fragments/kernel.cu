// Step 3. Registers for mma.m16n8k16 from the swizzled tile, by ldmatrix: out
// (2, 32, 4) = for each half of k, lane and register, the two halves it holds.
#include "ptx.cuh"

__device__ int place(int row, int chunk) { return chunk ^ row / 2 % 4; }

extern "C" __global__ void tile_fragments(const half* A, unsigned* out, int K) {
    __shared__ __align__(16) half tile[16 * 32];
    const int lane = threadIdx.x;
    for (int i = lane; i < 16 * 4; i += 32) {
        const int row = i / 4, chunk = i % 4;
        cp_async<16>(shared_address(tile + row * 32 + 8 * place(row, chunk)),
                     A + row * K + 8 * chunk);
    }
    cp_async_commit();
    cp_async_wait<0>();
    __syncwarp();
    for (int step = 0; step < 2; ++step) {
        unsigned a[4] = {};
#ifdef SOLUTION
        // Matrices 0 and 1 are rows 0-7 and 8-15 of the left chunk, 2 and 3 of
        // the right one.
        const int row = lane % 16, chunk = 2 * step + lane / 16;
        ldmatrix_x4(a, shared_address(tile + row * 32 + 8 * place(row, chunk)));
#else
        // Your turn: which row and which chunk does this lane point at, for
        // columns 16 * step and up? Mind that chunks do not lie in order.
#endif
        for (int r = 0; r < 4; ++r) out[(step * 32 + lane) * 4 + r] = a[r];
    }
}
