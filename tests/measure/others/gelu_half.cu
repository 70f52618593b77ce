// inspect --grid 2 --block 64 --arg f16[1000]=random:22 --arg f16[1000] --arg s32=500
#include <cuda_fp16.h>
__global__ void gelu(const half2* x, half2* y, int pairs) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += blockDim.x * gridDim.x) {
        float2 v = __half22float2(x[i]);
        v.x = 0.5f * v.x * (1.f + tanhf(0.7978845608f * (v.x + 0.044715f * v.x * v.x * v.x)));
        v.y = 0.5f * v.y * (1.f + tanhf(0.7978845608f * (v.y + 0.044715f * v.y * v.y * v.y)));
        y[i] = __float22half2_rn(v);
    }
}
