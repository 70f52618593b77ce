// uncoalesced: one thread computes one element of C, and a warp's 32 threads lie down a column of C.
// The first rung: three nested loops, the outer two spread over threads.
// Block: BLOCK x BLOCK outputs, one per thread. Any M, N, K: the edges are guarded.

#ifndef BLOCK
#define BLOCK 32
#endif

constexpr int THREADS = BLOCK * BLOCK;

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_uncoalesced(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                     int K, float alpha, float beta) {
    // [index]
    const int row = blockIdx.y * BLOCK + threadIdx.x;
    const int col = blockIdx.x * BLOCK + threadIdx.y;
    // [/index]
    if (row >= M || col >= N) return;

    // [compute]
    float sum = 0.0f;
#pragma unroll 32  // so that many loads are under way at once
    for (int k = 0; k < K; ++k) {
        sum += A[row * K + k] * B[k * N + col];
    }
    // [/compute]

    // [store]
    float& c = C[row * N + col];
    c = beta == 0.0f ? alpha * sum : alpha * sum + beta * c;
    // [/store]
}
