// inspect --grid 2 --block 128 --shared 1024 --arg s32[256]=below:100:1 --arg s32[256]
__global__ void inclusive_scan(const int* in, int* out) {
    extern __shared__ int two[];
    int n = blockDim.x, t = threadIdx.x, from = 0;
    two[t] = in[blockIdx.x * n + t];
    __syncthreads();
    for (int d = 1; d < n; d *= 2) {
        int to = 1 - from;
        two[to * n + t] = two[from * n + t] + (t >= d ? two[from * n + t - d] : 0);
        from = to;
        __syncthreads();
    }
    out[blockIdx.x * n + t] = two[from * n + t];
}
