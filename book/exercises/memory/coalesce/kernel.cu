// C = A @ B, one thread per output, 32 x 32 threads: x along the columns of the
// grid, y along its rows.
extern "C" __global__ void coalesce(const float* A, const float* B, float* C,
                                    int M, int N, int K) {
#ifdef SOLUTION
    const int row = blockIdx.y * 32 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;
#else
    // Your turn: a warp is 32 threads of consecutive threadIdx.x. Which output
    // should each have?
    const int row = blockIdx.y * 32 + threadIdx.x;
    const int col = blockIdx.x * 32 + threadIdx.y;
#endif
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = sum;
    }
}
