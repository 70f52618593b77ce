// y = a * x + y for n floats: blocks of 128 threads, one element per thread.
extern "C" __global__ void first_guard(const float* x, float* y, int n,
                                       float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SOLUTION
    if (i < n) y[i] = a * x[i] + y[i];
#else
    // Your turn: n need not be a multiple of 128, so the last block has threads
    // without an element.
    y[i] = a * x[i] + y[i];
#endif
}
