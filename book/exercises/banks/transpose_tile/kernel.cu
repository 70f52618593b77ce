// Y (N, M) = X (M, N) transposed, floats: 32 x 8 threads move a 32 x 32 tile
// through shared memory.
#ifdef SOLUTION
constexpr int PITCH =
    33;  // a column's elements are 33 words apart: 32 different banks
#else
// Your turn: no two lanes of a warp may meet in a bank. Padding or an XOR, as
// you like.
constexpr int PITCH = 32;
#endif

extern "C" __global__ void transpose_tile(const float* X, float* Y, int M,
                                          int N) {
    __shared__ float tile[32 * PITCH];
    const int tx = threadIdx.x, top = blockIdx.y * 32, left = blockIdx.x * 32;
    for (int r = threadIdx.y; r < 32; r += 8)
        if (top + r < M && left + tx < N)
            tile[r * PITCH + tx] = X[(top + r) * N + left + tx];
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 8)
        if (left + r < N && top + tx < M)
            Y[(left + r) * M + top + tx] = tile[tx * PITCH + r];
}
