// inspect --grid 4x4 --block 16x16 --arg f32[64,64]=random:4 --arg f32[64,64] --arg s32=64
__global__ void transpose(const float* a, float* b, int n) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && col < n) b[col * n + row] = a[row * n + col];
}
