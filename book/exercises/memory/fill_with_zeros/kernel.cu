// y[r] = the sum of row r of X (M, K): a block of 16 x 16 threads has 16 rows,
// and brings them into shared memory in tiles of 16 x 16.
extern "C" __global__ void fill_with_zeros(const float* X, float* y, int M,
                                           int K) {
    __shared__ float tile[16][17];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.x * 16 + ty;
    float sum = 0.0f;
    for (int first = 0; first < K; first += 16) {
#ifdef SOLUTION
        tile[ty][tx] =
            row < M && first + tx < K ? X[row * K + first + tx] : 0.0f;
#else
        // Your turn: the tile may reach beyond the last row or column of X.
        tile[ty][tx] = X[row * K + first + tx];
#endif
        __syncthreads();  // the tile is filled before it is read
        if (tx == 0)
            for (int k = 0; k < 16; ++k) sum += tile[ty][k];
        __syncthreads();  // it has been read before it is filled again
    }
    if (tx == 0 && row < M) y[row] = sum;
}
