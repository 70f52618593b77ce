// inspect --grid 1 --block 64 --arg u32[1]=zeros
// said: curand_kernel.h
#include <curand_kernel.h>
__global__ void pi(unsigned* inside) {
    curandState s;
    curand_init(1, threadIdx.x, 0, &s);
    float x = curand_uniform(&s), y = curand_uniform(&s);
    if (x * x + y * y < 1) atomicAdd(inside, 1);
}
