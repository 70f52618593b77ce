// What the measuring loops of this folder share: a stopwatch that also tells the clock's frequency, and numbers to work on.
#pragma once

// Clocks of this multiprocessor and nanoseconds of the whole GPU between two moments. Their ratio is the frequency
// that the multiprocessor really ran at: the driver reports another one, and later.
struct Stopwatch {
    long long clocks;
    unsigned long long nanoseconds;
};

__device__ __forceinline__ Stopwatch now() {
    Stopwatch seen;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(seen.clocks)::"memory");
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(seen.nanoseconds)::"memory");
    return seen;
}

// Thread 0 of a block leaves its block's clocks and nanoseconds since `start` in row blockIdx.x of `passed`.
__device__ __forceinline__ void report(const Stopwatch& start, long long (*passed)[2]) {
    const Stopwatch end = now();
    if (threadIdx.x == 0) {
        passed[blockIdx.x][0] = end.clocks - start.clocks;
        passed[blockIdx.x][1] = static_cast<long long>(end.nanoseconds - start.nanoseconds);
    }
}

// A 32-bit hash (Wellons, "Prospecting for Hash Functions", 2018: lowbias32), so that operands are random: units that
// multiply zeros or constants take less power and keep a higher clock.
__device__ __forceinline__ unsigned hash(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

// Uniform in [-1, 1).
__device__ __forceinline__ float uniform(unsigned seed) { return static_cast<int>(hash(seed)) * 0x1p-31f; }
