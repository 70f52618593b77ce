#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <cuda/pipeline>

using namespace nvcuda;

#define BLOCK_SIZE 16
#define WMMA_M 16
#define WMMA_N 16
#define WMMA_K 16
#define ASYNC_TILE_M 32
#define BLOCK_N 64  // columns of C a block has: 16 for each of its four warps

// Part A. 128 threads; a block has 16 x 64 of C, a warp 16 x 16.
__global__ void gemm_wmma_smem(const half* __restrict__ A,
                               const half* __restrict__ B,
                               float* __restrict__ C, int M, int K, int N) {
    extern __shared__ __align__(32) half shared[];
    half* As = shared;                    // 16 x 16
    half* Bs = shared + WMMA_M * WMMA_K;  // 16 x 64
    const int warp = threadIdx.x / 32;
    const int row = blockIdx.y * WMMA_M, col = blockIdx.x * BLOCK_N;

    wmma::fragment<wmma::accumulator, WMMA_M, WMMA_N, WMMA_K, float> acc;
    wmma::fill_fragment(acc, 0.0f);
#ifdef SOLUTION
    wmma::fragment<wmma::matrix_a, WMMA_M, WMMA_N, WMMA_K, half,
                   wmma::row_major>
        a;
    wmma::fragment<wmma::matrix_b, WMMA_M, WMMA_N, WMMA_K, half,
                   wmma::row_major>
        b;
    for (int k = 0; k < K; k += WMMA_K) {
        for (int i = threadIdx.x; i < WMMA_M * WMMA_K; i += blockDim.x)
            As[i] = A[(row + i / WMMA_K) * K + k + i % WMMA_K];
        for (int i = threadIdx.x; i < WMMA_K * BLOCK_N; i += blockDim.x)
            Bs[i] = B[(k + i / BLOCK_N) * N + col + i % BLOCK_N];
        __syncthreads();
        wmma::load_matrix_sync(a, As, WMMA_K);
        wmma::load_matrix_sync(b, Bs + warp * WMMA_N, BLOCK_N);
        wmma::mma_sync(acc, a, b, acc);
        __syncthreads();
    }
#else
    // Your turn: for each step of K, fill As and Bs together, then load
    // fragments and multiply.
#endif
    wmma::store_matrix_sync(C + row * N + col + warp * WMMA_N, acc, N,
                            wmma::mem_row_major);
}

// Part B. 128 threads; a block has 32 x 64 of C, a warp 32 x 16; two buffers,
// filled ahead through a pipeline.
__global__ void gemm_wmma_async(const half* __restrict__ A,
                                const half* __restrict__ B,
                                float* __restrict__ C, int M, int K, int N) {
    extern __shared__ __align__(32) half shared[];
    half* As[2] = {shared, shared + ASYNC_TILE_M * WMMA_K};
    half* Bs[2] = {shared + 2 * ASYNC_TILE_M * WMMA_K,
                   shared + 2 * ASYNC_TILE_M * WMMA_K + WMMA_K * BLOCK_N};
    const int warp = threadIdx.x / 32;
    const int row = blockIdx.y * ASYNC_TILE_M, col = blockIdx.x * BLOCK_N;

    wmma::fragment<wmma::accumulator, WMMA_M, WMMA_N, WMMA_K, float> top,
        bottom;
    wmma::fill_fragment(top, 0.0f);
    wmma::fill_fragment(bottom, 0.0f);
#ifdef SOLUTION
    wmma::fragment<wmma::matrix_a, WMMA_M, WMMA_N, WMMA_K, half,
                   wmma::row_major>
        a;
    wmma::fragment<wmma::matrix_b, WMMA_M, WMMA_N, WMMA_K, half,
                   wmma::row_major>
        b;
    auto pipe = cuda::make_pipeline();
    const cuda::aligned_size_t<16> bytes(16);  // 8 halves: one cp.async
    auto fetch = [&](int tile) {
        const int k = tile * WMMA_K;
        pipe.producer_acquire();
        for (int i = 8 * threadIdx.x; i < ASYNC_TILE_M * WMMA_K;
             i += 8 * blockDim.x)
            cuda::memcpy_async(As[tile % 2] + i,
                               A + (row + i / WMMA_K) * K + k + i % WMMA_K,
                               bytes, pipe);
        for (int i = 8 * threadIdx.x; i < WMMA_K * BLOCK_N; i += 8 * blockDim.x)
            cuda::memcpy_async(Bs[tile % 2] + i,
                               B + (k + i / BLOCK_N) * N + col + i % BLOCK_N,
                               bytes, pipe);
        pipe.producer_commit();
    };
    fetch(0);
    for (int tile = 0; tile < K / WMMA_K; ++tile) {
        pipe.consumer_wait();
        __syncthreads();
        if (tile + 1 < K / WMMA_K) fetch(tile + 1);
        wmma::load_matrix_sync(b, Bs[tile % 2] + warp * WMMA_N, BLOCK_N);
        wmma::load_matrix_sync(a, As[tile % 2], WMMA_K);
        wmma::mma_sync(top, a, b, top);
        wmma::load_matrix_sync(a, As[tile % 2] + WMMA_M * WMMA_K, WMMA_K);
        wmma::mma_sync(bottom, a, b, bottom);
        pipe.consumer_release();
    }
#else
    // Your turn: fetch tile t + 1 into one buffer while the warps multiply tile
    // t from the other.
#endif
    float* c = C + row * N + col + warp * WMMA_N;
    wmma::store_matrix_sync(c, top, N, wmma::mem_row_major);
    wmma::store_matrix_sync(c + WMMA_M * N, bottom, N, wmma::mem_row_major);
}
