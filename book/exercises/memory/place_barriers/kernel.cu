// C = A @ B through 16 x 16 tiles in shared memory: 16 x 16 threads, one output
// each.
extern "C" __global__ void place_barriers(const float* A, const float* B,
                                          float* C, int M, int N, int K) {
    __shared__ float As[16][16], Bs[16][16];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0.0f;
#ifdef SOLUTION
    for (int tile = 0; tile < K; tile += 16) {
        As[ty][tx] = row < M && tile + tx < K ? A[row * K + tile + tx] : 0.0f;
        Bs[ty][tx] = tile + ty < K && col < N ? B[(tile + ty) * N + col] : 0.0f;
        __syncthreads();  // the tiles are whole before anyone reads them
        for (int k = 0; k < 16; ++k) sum += As[ty][k] * Bs[k][tx];
        __syncthreads();  // everyone has read them: overwrite them
    }
#else
    // Your turn: place two __syncthreads() in this loop; nothing else is
    // missing. Which two lines must not run at the same time?
    for (int tile = 0; tile < K; tile += 16) {
        As[ty][tx] = row < M && tile + tx < K ? A[row * K + tile + tx] : 0.0f;
        Bs[ty][tx] = tile + ty < K && col < N ? B[(tile + ty) * N + col] : 0.0f;
        for (int k = 0; k < 16; ++k) sum += As[ty][k] * Bs[k][tx];
    }
#endif
    if (row < M && col < N) C[row * N + col] = sum;
}
