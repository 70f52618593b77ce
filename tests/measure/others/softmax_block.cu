// inspect --grid 5 --block 64 --shared 256 --arg f32[5,300]=random:6 --arg f32[5,300] --arg s32=300
#include <float.h>
extern __shared__ float sh[];
__global__ void softmax(const float* x, float* y, int C) {
    const float* in = x + blockIdx.x * C;
    int t = threadIdx.x;
    float m = -FLT_MAX;
    for (int i = t; i < C; i += blockDim.x) m = max(m, in[i]);
    sh[t] = m;
    __syncthreads();
    for (int d = blockDim.x / 2; d >= 1; d /= 2) {
        __syncthreads();
        if (t < d) sh[t] = max(sh[t], sh[t + d]);
    }
    __syncthreads();
    m = sh[0];
    __syncthreads();
    float s = 0;
    for (int i = t; i < C; i += blockDim.x) s += expf(in[i] - m);
    sh[t] = s;
    __syncthreads();
    for (int d = blockDim.x / 2; d >= 1; d /= 2) {
        __syncthreads();
        if (t < d) sh[t] += sh[t + d];
    }
    __syncthreads();
    for (int i = t; i < C; i += blockDim.x) y[blockIdx.x * C + i] = expf(in[i] - m) / sh[0];
}
