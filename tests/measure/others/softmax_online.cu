// inspect --grid 4 --block 32x4 --arg f32[16,200]=random:5 --arg f32[16,200] --arg s32=16 --arg s32=200
// A warp per row; maximum and sum in one pass.
#include <math.h>
__global__ void softmax_forward(const float* x, float* y, int N, int C) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= N) return;
    const float* in = x + row * C;
    float m = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 32) {
        float v = in[i], bigger = fmaxf(m, v);
        sum = sum * expf(m - bigger) + expf(v - bigger);
        m = bigger;
    }
    for (int o = 16; o; o /= 2) {
        float m2 = __shfl_xor_sync(0xffffffff, m, o), s2 = __shfl_xor_sync(0xffffffff, sum, o);
        float bigger = fmaxf(m, m2);
        sum = sum * expf(m - bigger) + s2 * expf(m2 - bigger);
        m = bigger;
    }
    for (int i = threadIdx.x; i < C; i += 32) y[row * C + i] = expf(in[i] - m) / sum;
}
