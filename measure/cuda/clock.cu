// The clock of one multiprocessor while another kernel keeps the GPU busy: one warp sleeps beside it for `skip`
// nanoseconds, then lets `span` of them pass. It needs no shared memory and hardly issues, so it fits beside any block.
// passed[0][0] clocks went by in passed[0][1] nanoseconds: their ratio is the frequency.

#include "rates.cuh"

__device__ __forceinline__ void sleep_until(unsigned long long nanoseconds) {
    while (now().nanoseconds < nanoseconds) __nanosleep(2000);
}

extern "C" __global__ void __launch_bounds__(32) clock_seen(long long (*passed)[2], long long skip, long long span) {
    sleep_until(now().nanoseconds + skip);
    const Stopwatch start = now();
    sleep_until(start.nanoseconds + span);
    report(start, passed);
}
