// Stands for kernel 7b of the CUDA GEMMS post and for the asynchronous part of the ECE 60827 lab: tiles of half that
// memcpy_async brings BYTES at a time, multiplied by WMMA. Written anew for this book. 16 warps compute 64 x 64 of C,
// each 16 x 16; four stages of 64 x 64 tiles are 64 KiB. STATIC=1 declares them with a fixed size, as the post does.
// A, B half, C float, row-major; M, N, K are multiples of 64.
#include <cuda/pipeline>
#include <mma.h>

#ifndef BYTES
#define BYTES 2
#endif
#ifndef STATIC
#define STATIC 0
#endif
#ifndef STAGES
#define STAGES 4
#endif

using namespace nvcuda;

constexpr int TILE = 64, THREADS = 512, CHUNK = BYTES / 2;
using Tile = half[TILE * TILE];

// [copy]
__device__ __forceinline__ void copy_tile(half* tile, const half* source, int pitch,
                                          cuda::pipeline<cuda::thread_scope_thread>& pipe) {
#pragma unroll
    for (int i = threadIdx.x * CHUNK; i < TILE * TILE; i += THREADS * CHUNK)
        cuda::memcpy_async(tile + i, source + size_t(i / TILE) * pitch + i % TILE, cuda::aligned_size_t<BYTES>(BYTES),
                           pipe);
}
// [/copy]

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_half_copies(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C, int N, int K) {
#if STATIC
    __shared__ __align__(32) Tile As[STAGES], Bs[STAGES];
#else
    extern __shared__ __align__(32) unsigned char tiles[];
    Tile *As = reinterpret_cast<Tile*>(tiles), *Bs = As + STAGES;
#endif
    const int warp_row = threadIdx.x / 128 * 16, warp_col = threadIdx.x / 32 % 4 * 16;
    const size_t row = blockIdx.y * TILE, col = blockIdx.x * TILE;
    auto pipe = cuda::make_pipeline();
    auto copy = [&](int stage, int k0) {
        pipe.producer_acquire();
        if (k0 < K) {
            copy_tile(As[stage], A + row * K + k0, K, pipe);
            copy_tile(Bs[stage], B + size_t(k0) * N + col, N, pipe);
        }
        pipe.producer_commit();
    };

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int s = 0; s < STAGES; ++s) copy(s, s * TILE);
    for (int k0 = 0, stage = 0; k0 < K; k0 += TILE, stage = (stage + 1) % STAGES) {
        cuda::pipeline_consumer_wait_prior<STAGES - 1>(pipe);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
            wmma::load_matrix_sync(a, As[stage] + warp_row * TILE + k, TILE);
            wmma::load_matrix_sync(b, Bs[stage] + k * TILE + warp_col, TILE);
            wmma::mma_sync(sums, a, b, sums);
        }
        pipe.consumer_release();
        __syncthreads();
        copy(stage, k0 + STAGES * TILE);
    }
    wmma::store_matrix_sync(C + (row + warp_row) * N + col + warp_col, sums, N, wmma::mem_row_major);
}
