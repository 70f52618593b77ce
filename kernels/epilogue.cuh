// The last step of every mma.sync rung: C = alpha * accumulator + beta * C for one 16 x 8 atom, straight from registers.
#pragma once
#include <cuda_fp16.h>

__device__ __forceinline__ float2 load_pair(const float* c) { return *reinterpret_cast<const float2*>(c); }
__device__ __forceinline__ float2 load_pair(const half* c) {
    return __half22float2(*reinterpret_cast<const half2*>(c));
}
__device__ __forceinline__ void store_pair(float* c, float2 v) { *reinterpret_cast<float2*>(c) = v; }
__device__ __forceinline__ void store_pair(half* c, float2 v) {
    *reinterpret_cast<half2*>(c) = __float22half2_rn(v);
}

// (row, col) is the atom's corner in C. A lane holds two neighbours in row lane / 4 and two in the row 8 below
// (PTX ISA 9.7.13.4.8), so four lanes write 32 bytes together: a whole sector of fp32. N is even.
template <typename Out>
__device__ __forceinline__ void store_atom(Out* C, int M, int N, int row, int col, const float (&acc)[4], float alpha,
                                           float beta) {
    const int lane = threadIdx.x % 32;
    col += lane % 4 * 2;
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
        const int r = row + lane / 4 + 8 * lower;
        if (r >= M || col >= N) continue;
        Out* target = C + static_cast<long long>(r) * N + col;
        float2 value = make_float2(alpha * acc[2 * lower], alpha * acc[2 * lower + 1]);
        if (beta != 0.0f) {  // beta = 0 must not read C: it may hold anything
            const float2 old = load_pair(target);
            value.x += beta * old.x;
            value.y += beta * old.y;
        }
        store_pair(target, value);
    }
}
