// small_tiles: a kernel of the shape of the CUDA GEMMS post's kernel 9, written anew for this book: 32 x 32 tiles, four
// warps with 16 x 16 of C each, copies of one half a lane through registers, one buffer, everybody waits. A block
// computes TILES x TILES tiles of C, one after another (the post: 8 x 8, so that 4096 x 4096 has 256 blocks).
// SWIZZLED=1 moves the 16-byte chunks of every row as the post does. BATCH is a control: how many rows a warp loads
// before it stores them, where 0 leaves the order to the compiler. M, N are multiples of 32 * TILES, K of 32.
#include "ptx.cuh"

#ifndef SWIZZLED
#define SWIZZLED 0
#endif
#ifndef TILES
#define TILES 8
#endif
#ifndef BATCH
#define BATCH 0
#endif

constexpr int TILE = 32, THREADS = 128;

// Where element (row, col) of a tile stands, in halves.
__device__ __forceinline__ int place(int row, int col) {
    const int chunk = col / 8 ^ (SWIZZLED ? row / 2 % 4 : 0);
    return row * TILE + chunk * 8 + col % 8;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_small_tiles(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C, int N, int K) {
    __shared__ __align__(128) half As[TILE * TILE], Bs[TILE * TILE];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * 16, warp_col = warp % 2 * 16;

    for (int tile = 0; tile < TILES * TILES; ++tile) {
        const int tile_row = (blockIdx.y * TILES + tile / TILES) * TILE;
        const int tile_col = (blockIdx.x * TILES + tile % TILES) * TILE;
        float left[4] = {}, right[4] = {};
        for (int k0 = 0; k0 < K; k0 += TILE) {
#if BATCH == 0
            for (int row = warp; row < TILE; row += THREADS / 32) {  // a warp copies a row, a lane one half of it
                As[place(row, lane)] = A[(tile_row + row) * K + k0 + lane];
                Bs[place(row, lane)] = B[(k0 + row) * N + tile_col + lane];
            }
#else
#pragma unroll 1
            for (int first = warp; first < TILE; first += THREADS / 32 * BATCH) {
                half a[BATCH], b[BATCH];
#pragma unroll
                for (int i = 0; i < BATCH; ++i) {
                    const int row = first + THREADS / 32 * i;
                    a[i] = A[(tile_row + row) * K + k0 + lane];
                    b[i] = B[(k0 + row) * N + tile_col + lane];
                }
#pragma unroll
                for (int i = 0; i < BATCH; ++i) {
                    const int row = first + THREADS / 32 * i;
                    As[place(row, lane)] = a[i];
                    Bs[place(row, lane)] = b[i];
                }
            }
#endif
            __syncthreads();
            for (int k = 0; k < TILE; k += 16) {
                unsigned a[4], b[4];
                ldmatrix_x4(a, shared_address(&As[place(warp_row + lane % 16, k + lane / 16 * 8)]));
                ldmatrix_x4_trans(b, shared_address(&Bs[place(k + lane % 16, warp_col + lane / 16 * 8)]));
                mma_m16n8k16(left, a, b[0], b[1]);
                mma_m16n8k16(right, a, b[2], b[3]);
            }
            __syncthreads();
        }
        for (int i = 0; i < 4; ++i) {  // lane l holds columns 2 * (l % 4) and the next, of rows l / 4 and l / 4 + 8
            const int row = tile_row + warp_row + lane / 4 + i / 2 * 8;
            float* c = C + row * N + tile_col + warp_col + lane % 4 * 2 + i % 2;
            c[0] = left[i];
            c[8] = right[i];
        }
    }
}
