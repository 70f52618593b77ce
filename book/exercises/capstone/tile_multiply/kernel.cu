// Step 4. C (16, 16) = A (16, 32) @ B (32, 16) by one warp. B is given column by
// column, as Bt (16, 32), so that both tiles are copied and swizzled alike.
#include "ptx.cuh"

__device__ int place(int row, int chunk) { return chunk ^ row / 2 % 4; }

__device__ void fetch(half* tile, const half* from, int K) {
    for (int i = threadIdx.x; i < 16 * 4; i += 32) {
        const int row = i / 4, chunk = i % 4;
        cp_async<16>(shared_address(tile + row * 32 + 8 * place(row, chunk)),
                     from + row * K + 8 * chunk);
    }
}

// Four 8 x 8 matrices: rows 0-7 and 8-15 of the left chunk, then of the right.
__device__ void load(unsigned (&r)[4], const half* tile, int step) {
    const int row = threadIdx.x % 16, chunk = 2 * step + threadIdx.x / 16;
    ldmatrix_x4(r, shared_address(tile + row * 32 + 8 * place(row, chunk)));
}

extern "C" __global__ void tile_multiply(const half* A, const half* Bt,
                                         float* C, int K) {
    __shared__ __align__(16) half As[16 * 32], Bs[16 * 32];
    const int lane = threadIdx.x;
    fetch(As, A, K);
    fetch(Bs, Bt, K);
    cp_async_commit();
    cp_async_wait<0>();
    __syncwarp();
    float acc[2][4] = {};  // columns 0-7 and 8-15 of C
    for (int step = 0; step < 2; ++step) {
        unsigned a[4], b[4];
        load(a, As, step);
        load(b, Bs, step);
#ifdef SOLUTION
        // b[0], b[1] are columns 0-7 and 8-15 of B in the left chunk of k.
        mma_m16n8k16(acc[0], a, b[0], b[2]);
        mma_m16n8k16(acc[1], a, b[1], b[3]);
#else
        // Your turn: two mma, for the two halves of C. Which two registers of b
        // belong to columns 0-7 of B?
#endif
    }
    for (int n = 0; n < 2; ++n)
        for (int i = 0; i < 4; ++i)
            C[(lane / 4 + 8 * (i / 2)) * 16 + 8 * n + 2 * (lane % 4) + i % 2] =
                acc[n][i];
}
