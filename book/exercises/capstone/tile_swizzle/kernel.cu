// Step 2. The same tile, with each row's chunks in another order: chunk `chunk`
// of row `row` lies at place(row, chunk). out (4, 16, 8): the tile's four columns
// of chunks, each top to bottom. One warp; two columns are read at a time.
#include "ptx.cuh"

#ifdef SOLUTION
__device__ int place(int row, int chunk) { return chunk ^ row / 2 % 4; }
#else
__device__ int place(int row, int chunk) { return chunk; }  // Your turn
#endif

extern "C" __global__ void tile_swizzle(const half* A, half* out, int K) {
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
    const int row = lane % 16;
    for (int chunk = lane / 16; chunk < 4; chunk += 2)
        reinterpret_cast<uint4*>(out)[chunk * 16 + row] =
            *reinterpret_cast<uint4*>(tile + row * 32 + 8 * place(row, chunk));
}
