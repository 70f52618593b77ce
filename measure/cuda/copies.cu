// copies: bytes per clock when a block does nothing but bring tiles from L2 to shared memory, a ring of them under way.
// HOW 0: through registers. 1: cp.async of 16 bytes. 2: bulk copies (TMA without a tensor map), asked by one thread.
#include "rates.cuh"

#ifndef HOW
#define HOW 0
#endif
#ifndef STAGES
#define STAGES 4  // tiles under way
#endif

constexpr int THREADS = 256, TILE = 16384;  // bytes of a tile
#if HOW < 2
constexpr int UNITS = TILE / 16 / THREADS;  // of 16 bytes, per thread and tile
#endif

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

#if HOW == 2
__device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}
#endif

// from: `tiles` tiles. apart: blocks begin this many tiles from each other (0: all read the same at the same time).
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    copies(const char* from, long long (*passed)[2], unsigned* seen, int tiles, int apart, int turns) {
    extern __shared__ __align__(128) char ring[];
    const int first = blockIdx.x * apart % tiles;
    auto source = [&](int turn) { return from + static_cast<long long>((first + turn) % tiles) * TILE; };
#if HOW == 2
    __shared__ __align__(8) unsigned long long full[STAGES];
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(full + s)));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    auto copy = [&](int turn) {
        const unsigned barrier = shared_address(full + turn % STAGES);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(TILE) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(ring + turn % STAGES * TILE)),
                     "l"(source(turn)), "r"(TILE), "r"(barrier)
                     : "memory");
    };
#elif HOW == 1
    auto copy = [&](int turn) {
#pragma unroll
        for (int i = 0; i < UNITS; ++i) {
            const int at = (i * THREADS + threadIdx.x) * 16;
            asm volatile(
                "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(ring + turn % STAGES * TILE + at)),
                "l"(source(turn) + at)
                : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
#else
    uint4 held[STAGES][UNITS];
#endif
    __syncthreads();
    const Stopwatch start = now();
#if HOW == 0
    for (int turn = 0; turn < turns; turn += STAGES) {
#pragma unroll
        for (int s = 0; s < STAGES; ++s)
#pragma unroll
            for (int i = 0; i < UNITS; ++i) {
                const char* place = source(turn + s) + (i * THREADS + threadIdx.x) * 16;
                asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(held[s][i].x), "=r"(held[s][i].y), "=r"(held[s][i].z), "=r"(held[s][i].w)
                             : "l"(place));
            }
        unsigned all = 0;  // the first store hangs on every load, or ptxas would keep but a few under way
#pragma unroll
        for (int s = 0; s < STAGES; ++s)
#pragma unroll
            for (int i = 0; i < UNITS; ++i) all |= held[s][i].x;
        const int thread = threadIdx.x ^ (all == 0);
#pragma unroll
        for (int s = 0; s < STAGES; ++s)
#pragma unroll
            for (int i = 0; i < UNITS; ++i)
                reinterpret_cast<uint4*>(ring + s * TILE)[i * THREADS + thread] = held[s][i];
        __syncthreads();
    }
#else
    for (int turn = 0; turn < STAGES; ++turn)
        if (HOW == 1 || threadIdx.x == 0) copy(turn);
    for (int turn = 0; turn < turns; ++turn) {
#if HOW == 1
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
#else
        wait(shared_address(full + turn % STAGES), turn / STAGES % 2);
#endif
        __syncthreads();
        if (turn + STAGES < turns) {
            if (HOW == 1 || threadIdx.x == 0) copy(turn + STAGES);
        }
#if HOW == 1
        else
            asm volatile("cp.async.commit_group;" ::: "memory");
#endif
    }
#endif
    __syncthreads();
    report(start, passed);
    if (reinterpret_cast<unsigned*>(ring)[threadIdx.x] == 0x12345678u) *seen = turns;
}
