// inspect --grid 3 --block 128 --arg f32[1000]=random:2 --arg f32[1]=zeros --arg s32=1000
#include <iostream>
#include <vector>
#define FULL 0xffffffff

__inline__ __device__ float warpSum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(FULL, v, o);
    return v;
}

template <int THREADS>
__global__ void sumKernel(const float* __restrict__ x, float* total, int n) {
    static_assert(THREADS % 32 == 0, "whole warps");
    float v = 0.f;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += THREADS * gridDim.x) v += x[i];
    v = warpSum(v);
    __shared__ float part[THREADS / 32];
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < THREADS / 32 ? part[threadIdx.x] : 0.f;
        v = warpSum(v);
        if (threadIdx.x == 0) atomicAdd(total, v);
    }
}

static std::vector<float> host(int n) { return std::vector<float>(n, 1.0f); }

int main(int argc, char** argv) {
    auto h = host(1000);
    float *x, *t;
    cudaMalloc(&x, h.size() * 4);
    cudaMalloc(&t, 4);
    sumKernel<128><<<3, 128>>>(x, t, (int)h.size());
    std::cout << "done" << std::endl;
    return 0;
}
