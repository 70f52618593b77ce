// inspect --grid 8 --block 64 --arg s32[512]=below:9:3 --arg s32[512] --arg s32[8]=zeros --arg s32[8]=zeros
// One pass over the data: a block waits for the sum that the block before it has published.
__global__ void chained_scan(const int* in, int* out, int* total, int* ready) {
    __shared__ int s[64], before;
    int t = threadIdx.x, b = blockIdx.x;
    s[t] = in[b * 64 + t];
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        int v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    if (t == 0) {
        before = 0;
        if (b > 0) {
            while (atomicAdd(&ready[b - 1], 0) == 0) {}
            __threadfence();
            before = *(volatile int*)&total[b - 1];
        }
        *(volatile int*)&total[b] = before + s[63];
        __threadfence();
        atomicExch(&ready[b], 1);
    }
    __syncthreads();
    out[b * 64 + t] = before + s[t];
}
