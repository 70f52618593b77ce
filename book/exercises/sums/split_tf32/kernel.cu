// C = A @ B by tensor cores, one warp for 16 x 8 of C. A and B are float. mma
// reads tf32: a float of which only 10 bits of mantissa are kept. M is a
// multiple of 16, N and K are multiples of 8.
#include "ptx.cuh"

// What tf32 keeps of x, and what it loses, which is rounded to tf32 again.
__device__ void split(float x, unsigned& high, unsigned& low) {
    high = to_tf32(x);
    low = to_tf32(x - __uint_as_float(high));
}

extern "C" __global__ void split_tf32(const float* A, const float* B, float* C,
                                      int M, int N, int K) {
    const int lane = threadIdx.x, group = lane / 4, pair = lane % 4;
    const int row = blockIdx.y * 16 + group, col = blockIdx.x * 8;
    float acc[4] = {};
    for (int k = 0; k < K; k += 8) {
        unsigned a[4], a_low[4], b[2], b_low[2];
        for (int i = 0; i < 4; ++i)
            split(A[(row + i % 2 * 8) * K + k + pair + i / 2 * 4], a[i],
                  a_low[i]);
        for (int i = 0; i < 2; ++i)
            split(B[(k + pair + 4 * i) * N + col + group], b[i], b_low[i]);
#ifdef SOLUTION
        mma_m16n8k8_tf32(acc, a_low, b[0], b[1]);  // small terms first
        mma_m16n8k8_tf32(acc, a, b_low[0], b_low[1]);
#else
        // Your turn: this multiplies only what tf32 keeps. Bring in what it
        // loses, by further products of the same kind.
#endif
        mma_m16n8k8_tf32(acc, a, b[0], b[1]);
    }
    for (int i = 0; i < 4; ++i)
        C[(row + i / 2 * 8) * N + col + 2 * pair + i % 2] = acc[i];
}
