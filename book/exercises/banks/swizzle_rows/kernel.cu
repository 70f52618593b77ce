// A 32 x 32 tile of halves (64-byte rows, four 16-byte chunks each) goes into
// shared memory row by row and comes back column by column: out (4, 32, 8) =
// the tile's four 8-column chunks, each top to bottom. One warp, no padding.
#include <cuda_fp16.h>

// Where chunk `chunk` of row `row` lies within its row.
#ifdef SOLUTION
__device__ int place(int row, int chunk) { return chunk ^ row / 2 % 4; }
#else
__device__ int place(int row, int chunk) { return chunk; }  // Your turn
#endif

extern "C" __global__ void swizzle_rows(const half* in, half* out) {
    __shared__ __align__(16) half tile[32 * 32];
    const int lane = threadIdx.x;
    for (int i = lane; i < 32 * 4; i += 32) {
        const int row = i / 4, chunk = i % 4;
        *reinterpret_cast<uint4*>(tile + row * 32 + 8 * place(row, chunk)) =
            reinterpret_cast<const uint4*>(in)[i];
    }
    __syncwarp();
    for (int chunk = 0; chunk < 4; ++chunk)
        reinterpret_cast<uint4*>(out)[chunk * 32 + lane] =
            *reinterpret_cast<uint4*>(tile + lane * 32 +
                                      8 * place(lane, chunk));
}
