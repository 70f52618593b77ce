// Reverse the n floats of x in place: blocks of 128 threads, a thread for each
// element.
extern "C" __global__ void find_race(float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SOLUTION
    if (i < n / 2) {  // a pair belongs to one thread
        const float other = x[n - 1 - i];
        x[n - 1 - i] = x[i];
        x[i] = other;
    }
#else
    // Your turn: it has a race. Who else touches x[i] and x[n - 1 - i]?
    if (i < n) {
        const float other = x[n - 1 - i];
        x[i] = other;
    }
#endif
}
