// inspect --grid 4 --block 128 --arg u8[4096]=below:256:4 --arg u32[256]=zeros --arg u32=4096
#include <cstdint>
#include <stdlib.h>
__global__ void histogram256(const uint8_t* data, uint32_t* bins, uint32_t n) {
    __shared__ uint32_t local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[data[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (local[i]) atomicAdd(&bins[i], local[i]);
}
