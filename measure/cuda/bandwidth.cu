// bandwidth: bytes per clock and per second when warps do nothing but load 16 bytes per lane, one after the other,
// without a conflict, with many loads under way.
// FROM 0: shared memory. 1: L1. 2: L2, past L1. 3: device memory. 4: device memory, read and written (a copy).
#include "rates.cuh"

#ifndef FROM
#define FROM 0
#endif

constexpr int THREADS = 1024, BATCH = 4;  // loads under way per thread

__device__ __forceinline__ uint4 load(const uint4* place) {
    uint4 v;
#if FROM == 1
    asm volatile("ld.global.ca.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(place));
#elif FROM == 0
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(place))));
#else
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(place));
#endif
    return v;
}

// from: `count` units of 16 bytes. Each block of a turn takes the next BATCH * THREADS of them; for L1 and shared memory
// each block reads its own again and again.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    bandwidth(const uint4* from, uint4* to, long long (*passed)[2], unsigned* seen, long long count, int turns) {
    unsigned sum = 0;
#if FROM == 0
    __shared__ __align__(16) uint4 tile[2048];
    for (int i = threadIdx.x; i < 2048; i += THREADS) tile[i] = make_uint4(i, i, i, i);
    const uint4* base = tile;
    constexpr int own = 2048;
#elif FROM == 1
    const uint4* base = from + blockIdx.x * 2048ll;
    constexpr int own = 2048;
#endif
    __syncthreads();
    const Stopwatch start = now();
    for (int turn = 0; turn < turns; ++turn) {
        uint4 v[BATCH];
#if FROM <= 1
#pragma unroll
        for (int i = 0; i < BATCH; ++i) v[i] = load(base + (turn * 7 + i * own / BATCH + threadIdx.x) % own);
#else
        long long first = (static_cast<long long>(turn) * gridDim.x + blockIdx.x) * BATCH * THREADS % count;
#pragma unroll
        for (int i = 0; i < BATCH; ++i) v[i] = load(from + first + i * THREADS + threadIdx.x);
#endif
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
#if FROM == 4
            to[first + i * THREADS + threadIdx.x] = v[i];
#else
            sum += v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
#endif
        }
    }
    __syncthreads();
    report(start, passed);
    if (sum == 0x12345678u) *seen = sum;
}
