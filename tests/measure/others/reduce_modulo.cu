// inspect --grid 4 --block 256 --arg f32[1024]=random:1 --arg f32[4]
// Halving by a modulo: half of every warp idles from the second step on.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void reduce(float *in, float *out) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        if (t % (2 * d) == 0) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

int main() {
    float *in, *out;
    cudaMalloc(&in, 4096);
    cudaMalloc(&out, 16);
    reduce<<<4, 256>>>(in, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
