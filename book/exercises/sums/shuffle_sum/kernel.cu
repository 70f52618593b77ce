// y[w] = the sum of the 32 floats from x[32 * w] on, as far as there are any: a
// block is four warps, and each warp has one sum.
extern "C" __global__ void shuffle_sum(const float* x, float* y, int n) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    const int lane = threadIdx.x % 32;
    float sum = i < n ? x[i] : 0.0f;
#ifdef SOLUTION
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);
#else
    // Your turn: add the 32 values of the warp with __shfl_down_sync, in five
    // steps and without shared memory.
#endif
    if (lane == 0 && i < n) y[i / 32] = sum;
}
