// What stands between the launches that are timed. Neither kernel runs beside them, where it would take their place.

#include "rates.cuh"

// The clocks of every multiprocessor that one of the blocks comes to, and the nanoseconds of the whole GPU: row %smid of
// `seen`. Between two such marks the difference of the one over the difference of the other is the frequency.
extern "C" __global__ void __launch_bounds__(32) clock_mark(long long (*seen)[2]) {
    if (threadIdx.x != 0) return;
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    const Stopwatch here = now();
    seen[sm][0] = here.clocks;
    seen[sm][1] = static_cast<long long>(here.nanoseconds);
}

// Holds the stream for so many nanoseconds: what is queued meanwhile then runs without waiting for the processor.
extern "C" __global__ void __launch_bounds__(32) hold_back(long long nanoseconds) {
    const unsigned long long end = now().nanoseconds + static_cast<unsigned long long>(nanoseconds);
    while (now().nanoseconds < end) __nanosleep(500);
}

// Does nothing: what is left of a launch.
extern "C" __global__ void nothing() {}
