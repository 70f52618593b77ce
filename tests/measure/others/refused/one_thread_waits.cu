// inspect --grid 1 --block 64 --arg s32[2]=zeros
// said: Deadlock
// said: one_thread_waits.cu
__global__ void spin(volatile int* flag) {
    if (threadIdx.x == 0)
        while (flag[0] == 0) {}
    flag[1] = 1;
}
