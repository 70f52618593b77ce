// C = A @ B: 32 x 8 threads compute a 32 x 32 tile of C, so a thread has TM = 4
// outputs of one column.
constexpr int TILE = 32, TM = 4;

extern "C" __global__ void coarsen(const float* A, const float* B, float* C,
                                   int M, int N, int K) {
    __shared__ __align__(16) float As[TILE][TILE], Bs[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int first_row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum[TM] = {};
    for (int tile = 0; tile < K; tile += TILE) {
        for (int i = 0; i < TM; ++i) {
            const int r = ty + 8 * i, row = first_row + 8 * i;
            As[r][tx] =
                row < M && tile + tx < K ? A[row * K + tile + tx] : 0.0f;
            Bs[r][tx] =
                tile + r < K && col < N ? B[(tile + r) * N + col] : 0.0f;
        }
        __syncthreads();
#ifdef SOLUTION
        for (int k = 0; k < TILE; ++k) {
            const float b = Bs[k][tx];  // once, for all four outputs
            for (int i = 0; i < TM; ++i) sum[i] += As[ty + 8 * i][k] * b;
        }
#else
        // Your turn: the other three outputs of this thread (rows ty + 8, ty +
        // 16 and ty + 24 of the tile). Read each element of Bs once for all
        // four.
        for (int k = 0; k < TILE; ++k) sum[0] += As[ty][k] * Bs[k][tx];
#endif
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + 8 * i;
        if (row < M && col < N) C[row * N + col] = sum[i];
    }
}
