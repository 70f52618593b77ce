// The last step of the rungs that store their sums straight from registers: C = alpha * accumulator + beta * C, two
// neighbouring 16 x 8 atoms at a time.
#pragma once
#include <cuda_fp16.h>

__device__ __forceinline__ float4 load4(const float* c) { return *reinterpret_cast<const float4*>(c); }
__device__ __forceinline__ float4 load4(const half* c) {
    const uint2 bits = *reinterpret_cast<const uint2*>(c);
    const float2 low = __half22float2(reinterpret_cast<const half2&>(bits.x));
    const float2 high = __half22float2(reinterpret_cast<const half2&>(bits.y));
    return make_float4(low.x, low.y, high.x, high.y);
}
__device__ __forceinline__ void store4(float* c, float4 v) { *reinterpret_cast<float4*>(c) = v; }
__device__ __forceinline__ void store4(half* c, float4 v) {
    const half2 low = __floats2half2_rn(v.x, v.y), high = __floats2half2_rn(v.z, v.w);
    *reinterpret_cast<uint2*>(c) =
        make_uint2(reinterpret_cast<const unsigned&>(low), reinterpret_cast<const unsigned&>(high));
}

// (row, col) is the corner in C of two atoms side by side. A lane holds two neighbours of each atom in row lane / 4 and
// two in the row 8 below (PTX ISA 9.7.14.5.8). It trades one pair with the lane beside it, so that both hold four
// neighbours of one atom, and four lanes write 16 columns of a row: whole 32-byte sectors, for fp16 too.
// M and N bound C; N is a multiple of 4. All lanes of the warp must call.
template <typename Out>
__device__ __forceinline__ void store_atoms(Out* C, int M, int N, int row, int col, const float (&left)[4],
                                            const float (&right)[4], float alpha, float beta) {
    const int lane = threadIdx.x % 32;
    const bool odd = lane % 2;  // even lanes end up with the left atom, odd lanes with the right one
    col += odd * 8 + lane % 4 / 2 * 4;
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
        const int r = row + lane / 4 + 8 * lower, i = 2 * lower;
        const float x = __shfl_xor_sync(0xffffffffu, odd ? left[i] : right[i], 1);
        const float y = __shfl_xor_sync(0xffffffffu, odd ? left[i + 1] : right[i + 1], 1);
        float4 v = odd ? make_float4(x, y, right[i], right[i + 1]) : make_float4(left[i], left[i + 1], x, y);
        v = make_float4(alpha * v.x, alpha * v.y, alpha * v.z, alpha * v.w);
        if (r >= M || col >= N) continue;
        Out* target = C + size_t(r) * N + col;
        if (beta != 0.0f) {  // beta = 0 must not read C: it may hold anything
            const float4 old = load4(target);
            v = make_float4(v.x + beta * old.x, v.y + beta * old.y, v.z + beta * old.z, v.w + beta * old.w);
        }
        store4(target, v);
    }
}
