// Adds up 128 numbers: in each step, the lower half of the threads adds what the upper half holds.
__global__ void sum(const float* in, float* out) {
    __shared__ float part[128];
    int t = threadIdx.x;
    part[t] = in[t];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2)
        if (t < half) part[t] += part[t + half];
    if (t == 0) *out = part[0];
}
