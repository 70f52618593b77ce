// arithmetic: how many operations a multiprocessor does per clock when nothing but arithmetic takes time. Every operand
// stays in registers; each warp has enough independent sums to hide an instruction's latency behind the others.
// UNIT 0: FFMA. 1: mma.sync f16. 2: bf16. 3: tf32. 4: s8, all with 32-bit sums. (Not e4m3: on sm_90 ptxas makes products of
// halves and additions of it, and each product only once.)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "rates.cuh"

#ifndef UNIT
#define UNIT 0
#endif

constexpr int SUMS = UNIT == 0 ? 16 : 8;  // independent sums (for mma: tiles of 16 x 8) per thread
constexpr int UNROLL = 8;
constexpr int THREADS = UNIT == 0 ? 1024 : 256;

#if UNIT == 4
using Sum = int;
#else
using Sum = float;
#endif

// Two numbers of 16 bits, four of 8, or one tf32, random.
__device__ __forceinline__ unsigned operand(unsigned seed) {
    const float x = uniform(2 * seed), y = uniform(2 * seed + 1);
    if constexpr (UNIT == 1) {
        const half2 pair = __floats2half2_rn(x, y);
        return reinterpret_cast<const unsigned&>(pair);
    } else if constexpr (UNIT == 2) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
        return reinterpret_cast<const unsigned&>(pair);
    } else if constexpr (UNIT == 3) {
        return __float_as_uint(x) & ~0x1fffu;
    } else {
        return hash(seed);
    }
}

__device__ __forceinline__ void multiply(Sum (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if UNIT == 4
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif UNIT >= 1
    asm volatile(
        "mma.sync.aligned."
#if UNIT == 1
        "m16n8k16.row.col.f32.f16.f16.f32 "
#elif UNIT == 2
        "m16n8k16.row.col.f32.bf16.bf16.f32 "
#else
        "m16n8k8.row.col.f32.tf32.tf32.f32 "
#endif
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) arithmetic(long long (*passed)[2], float* seen, int turns) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    float kept = 0.0f;
#if UNIT == 0
    float sums[SUMS], a[2], b[2];
    for (int i = 0; i < SUMS; ++i) sums[i] = uniform(thread + 1000003u * i);
    for (int i = 0; i < 2; ++i) a[i] = uniform(thread * 7 + i), b[i] = uniform(thread * 11 + i);
    __syncthreads();
    const Stopwatch start = now();
    for (int turn = 0; turn < turns; ++turn)
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
#pragma unroll
            for (int i = 0; i < SUMS; ++i)
                sums[i] = fmaf(sums[i], a[u % 2], b[u % 2]);  // a and b stay at the unit's inputs
    __syncthreads();
    report(start, passed);
    for (int i = 0; i < SUMS; ++i) kept += sums[i];
#else
    Sum sums[SUMS][4] = {};
    unsigned a[2][4], b[4][2];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) a[i][j] = operand(thread * 8 + 4 * i + j);
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 2; ++j) b[i][j] = operand(~(thread * 8 + 2 * i + j));
    __syncthreads();
    const Stopwatch start = now();
    for (int turn = 0; turn < turns; ++turn)
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
#pragma unroll
            for (int i = 0; i < SUMS; ++i) multiply(sums[i], a[(i + u) % 2], b[(i / 2 + u / 2) % 4]);
    __syncthreads();
    report(start, passed);
    for (int i = 0; i < SUMS; ++i)
        for (int j = 0; j < 4; ++j) kept += static_cast<float>(sums[i][j]);
#endif
    if (kept == 1.25f) *seen = kept;  // never, as good as; the compiler cannot know
}
