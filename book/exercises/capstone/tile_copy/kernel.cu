// Step 1. A 16 x 32 tile of halves, its rows K apart in global memory, arrives
// in shared memory by cp.async, 16 bytes a copy, and goes out as it is. One warp.
#include "ptx.cuh"

extern "C" __global__ void tile_copy(const half* A, half* out, int K) {
    __shared__ __align__(16) half tile[16 * 32];
    const int lane = threadIdx.x;
#ifdef SOLUTION
    for (int i = lane; i < 16 * 4; i += 32) {
        const int row = i / 4, chunk = i % 4;
        cp_async<16>(shared_address(tile + row * 32 + 8 * chunk),
                     A + row * K + 8 * chunk);
    }
    cp_async_commit();
    cp_async_wait<0>();
    __syncwarp();
#else
    // Your turn: 16 rows of four 16-byte chunks, two chunks a lane. Then wait
    // for the copies, and for the other lanes.
#endif
    for (int i = lane; i < 16 * 4; i += 32) {
        const int chunk = 63 - i;  // one that another lane has copied
        reinterpret_cast<uint4*>(out)[chunk] =
            reinterpret_cast<uint4*>(tile)[chunk];
    }
}
