// A fused epilogue: C = gelu(accumulator + bias), and the argument of gelu beside it where a backward pass will ask
// for it. Takes the place of store_atoms in mma_multistage; see kernels/linear.py.
#pragma once
#include "epilogue.cuh"

#ifndef GELU
#define GELU 1
#endif

__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
__device__ __forceinline__ float4 gelu(float4 v) { return make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w)); }

// As store_atoms: each lane trades a pair with the lane beside it, and then holds four neighbours of a row. The bias of
// these four columns is one load of 8 bytes, the same for all rows. `before` may be null, `bias` too. ldc: pitch of C.
__device__ __forceinline__ void store_bias_gelu(half* C, half* before, const half* bias, int M, int N, int ldc, int row,
                                                int col, const float (&left)[4], const float (&right)[4]) {
    const int lane = threadIdx.x % 32;
    const bool odd = lane % 2;
    col += odd * 8 + lane % 4 / 2 * 4;
    const float4 b = bias && col < N ? load4(bias + col) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
        const int r = row + lane / 4 + 8 * lower, i = 2 * lower;
        const float x = __shfl_xor_sync(0xffffffffu, odd ? left[i] : right[i], 1);
        const float y = __shfl_xor_sync(0xffffffffu, odd ? left[i + 1] : right[i + 1], 1);
        float4 v = odd ? make_float4(x, y, right[i], right[i + 1]) : make_float4(left[i], left[i + 1], x, y);
        if (r >= M || col >= N) continue;
        v = make_float4(v.x + b.x, v.y + b.y, v.z + b.z, v.w + b.w);
        const size_t place = size_t(r) * ldc + col;
        if (before) store4(before + place, v);
        store4(C + place, GELU ? gelu(v) : v);
    }
}
