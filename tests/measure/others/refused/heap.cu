// inspect --grid 1 --block 32 --arg s32[32]
// said: malloc
__global__ void list(int* x) {
    int* mine = (int*)malloc(8);
    mine[0] = threadIdx.x;
    x[threadIdx.x] = mine[0];
    free(mine);
}
