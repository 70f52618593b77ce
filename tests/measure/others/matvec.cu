// inspect --grid 8 --block 128 --arg f32[32,300]=random:13 --arg f32[300]=random:14 --arg f32[32] --arg s32=32 --arg s32=300
__global__ void gemv(const float* __restrict__ A, const float* __restrict__ x, float* __restrict__ y, int M, int K) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize, lane = threadIdx.x % warpSize;
    if (row >= M) return;
    float acc = 0.0f;
#pragma unroll 4
    for (int k = lane; k < K; k += warpSize) acc = fmaf(A[row * K + k], x[k], acc);
    for (int mask = warpSize / 2; mask > 0; mask /= 2) acc += __shfl_xor_sync(~0u, acc, mask);
    if (lane == 0) y[row] = acc;
}
