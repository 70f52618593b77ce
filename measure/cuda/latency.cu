// latency: clocks from one instruction to the next one that needs its result. A warp executes a chain in which every
// instruction depends on the one before, and reads the clock before and after. What is loaded is the next address, so
// that no arithmetic stands between two loads.
// WHAT 0: a load of global memory through L1. 1: the same past L1, from L2 or device memory. 2: a load of shared memory.
// 3: FFMA. 4: mma.sync m16n8k16. 5: ldmatrix.x4. 6: shfl. 7: atomicAdd on shared memory. 8: on global memory.
// 9: a barrier of the whole block. 10: an integer multiply-add.
#include <cuda_fp16.h>

#include "ptx.cuh"
#include "rates.cuh"

#ifndef WHAT
#define WHAT 0
#endif

constexpr int UNROLL = 16;  // so that the loop's own instructions do not count

// first: where an endless chain of addresses begins. The first `warm` turns of UNROLL steps are not counted.
extern "C" __global__ void latency(unsigned long long* first, long long* clocks, unsigned* seen, int warm, int turns) {
    __shared__ __align__(16) unsigned here[128];
    for (int i = threadIdx.x; i < 128; i += blockDim.x) here[i] = WHAT == 2 ? shared_address(here) : 0;
    __syncthreads();
    unsigned long long global = reinterpret_cast<unsigned long long>(first);
    unsigned shared = shared_address(here) + (WHAT == 5 ? threadIdx.x % 32 * 16 : 0);
    unsigned number = threadIdx.x;
    float sum = uniform(threadIdx.x), d[4] = {};
    long long start = 0;
    for (int turn = -warm; turn < turns; ++turn) {
        if (turn == 0) start = clock64();
#pragma unroll
        for (int step = 0; step < UNROLL; ++step) {
#if WHAT == 0
            asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(global)::"memory");
#elif WHAT == 1
            asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(global)::"memory");
#elif WHAT == 2
            asm volatile("ld.shared.u32 %0, [%0];" : "+r"(shared)::"memory");
#elif WHAT == 3
            asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(sum));
#elif WHAT == 4
            const unsigned a[4] = {number, number, number, number};
            mma_m16n8k16(d, a, number, number);
#elif WHAT == 5
            unsigned r[4];
            ldmatrix_x4(r, shared);
            shared += r[0];  // an addition more per step
#elif WHAT == 6
            number = __shfl_xor_sync(0xffffffffu, number, 1);
#elif WHAT == 7
            asm volatile("atom.shared.add.u32 %0, [%1], %0;" : "+r"(number) : "r"(shared) : "memory");
#elif WHAT == 8
            asm volatile("atom.global.add.u64 %0, [%0], 0;" : "+l"(global)::"memory");
#elif WHAT == 9
            __syncthreads();
#else
            asm volatile("mad.lo.u32 %0, %0, %0, %0;" : "+r"(number));
#endif
        }
    }
    const long long end = clock64();
    seen[threadIdx.x] =
        static_cast<unsigned>(global) + shared + number + __float_as_uint(sum + d[0] + d[1] + d[2] + d[3]);
    if (threadIdx.x == 0) *clocks = end - start;
}

// The same line of L2 again and again, for each of `lines` lines of 128 bytes that begin with their own address: how far
// is each from this multiprocessor?
extern "C" __global__ void line_latency(unsigned long long* first, long long* clocks, unsigned* seen, int lines) {
    unsigned long long at = 0;
    for (int line = 0; line < lines; ++line) {
        at = reinterpret_cast<unsigned long long>(first + 16 * line);
        long long start = 0;
        for (int turn = -1; turn < 4; ++turn) {
            if (turn == 0) start = clock64();
#pragma unroll
            for (int step = 0; step < UNROLL; ++step) asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(at)::"memory");
        }
        clocks[line] = clock64() - start;
    }
    *seen = static_cast<unsigned>(at);
}
