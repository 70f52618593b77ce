// y[b] = the sum of the 256 floats from x[256 * b] on, as far as there are any.
// 256 threads per block.
extern "C" __global__ void block_reduce(const float* x, float* y, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
#ifdef SOLUTION
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();  // outside the if: all threads come to it
    }
#else
    // Your turn: halve the number of sums in each turn. Neighbouring threads
    // should read neighbouring words: in this version they do not.
    for (int step = 1; step < 256; step *= 2) {
        if (2 * step * t + step < 256)
            s[2 * step * t] += s[2 * step * t + step];
        __syncthreads();
    }
#endif
    if (t == 0) y[blockIdx.x] = s[0];
}
