// Step 5. C (M, N) = A (M, K) @ B (K, N), B given as Bt (N, K): a warp for each
// 16 x 16 tile of C. M and N are multiples of 16, K of 32. Two buffers.
#include "ptx.cuh"

__device__ int place(int row, int chunk) { return chunk ^ row / 2 % 4; }

__device__ void fetch(half* tile, const half* from, int K) {
    for (int i = threadIdx.x; i < 16 * 4; i += 32) {
        const int row = i / 4, chunk = i % 4;
        cp_async<16>(shared_address(tile + row * 32 + 8 * place(row, chunk)),
                     from + row * K + 8 * chunk);
    }
}

__device__ void load(unsigned (&r)[4], const half* tile, int step) {
    const int row = threadIdx.x % 16, chunk = 2 * step + threadIdx.x / 16;
    ldmatrix_x4(r, shared_address(tile + row * 32 + 8 * place(row, chunk)));
}

__device__ void multiply(float (&acc)[2][4], const half* As, const half* Bs) {
    for (int step = 0; step < 2; ++step) {
        unsigned a[4], b[4];
        load(a, As, step);
        load(b, Bs, step);
        mma_m16n8k16(acc[0], a, b[0], b[2]);
        mma_m16n8k16(acc[1], a, b[1], b[3]);
    }
}

extern "C" __global__ void tile_pipeline(const half* A, const half* Bt,
                                         float* C, int M, int N, int K) {
    __shared__ __align__(16) half As[2][16 * 32], Bs[2][16 * 32];
    const int lane = threadIdx.x;
    const int top = blockIdx.y * 16, left = blockIdx.x * 16;
    A += top * K;
    Bt += left * K;
    float acc[2][4] = {};
#ifdef SOLUTION
    const int tiles = K / 32;
    auto start = [&](int tile) {
        fetch(As[tile % 2], A + 32 * tile, K);
        fetch(Bs[tile % 2], Bt + 32 * tile, K);
        cp_async_commit();
    };
    start(0);
    for (int tile = 0; tile < tiles; ++tile) {
        cp_async_wait<0>();
        __syncwarp();  // all lanes' copies have landed, the other pair is read
        if (tile + 1 < tiles) start(tile + 1);
        multiply(acc, As[tile % 2], Bs[tile % 2]);
    }
#else
    // Your turn: go along K in tiles of 32, and fetch the next pair of tiles
    // while this one is multiplied. This does the first tile only.
    fetch(As[0], A, K);
    fetch(Bs[0], Bt, K);
    cp_async_commit();
    cp_async_wait<0>();
    __syncwarp();
    multiply(acc, As[0], Bs[0]);
#endif
    for (int n = 0; n < 2; ++n)
        for (int i = 0; i < 4; ++i)
            C[(top + lane / 4 + 8 * (i / 2)) * N + left + 8 * n +
              2 * (lane % 4) + i % 2] = acc[n][i];
}
