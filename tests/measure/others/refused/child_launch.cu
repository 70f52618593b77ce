// inspect --grid 1 --block 32 --arg s32[32]=zeros
// said: child_launch.cu
__global__ void child(int* x) { x[threadIdx.x] += 1; }
__global__ void parent(int* x) {
    if (threadIdx.x == 0) child<<<1, 32>>>(x);
}
