// C = A @ B in fp32, as fast as you can: 256 threads, a 64 x 64 tile of C. M, N
// and K are multiples of 64.
constexpr int TILE = 64, STEP = 16;

extern "C" __global__ void __launch_bounds__(256)
    beat_the_clock(const float* __restrict__ A, const float* __restrict__ B,
                   float* __restrict__ C, int M, int N, int K) {
    // As is stored transposed: a thread's four rows lie side by side.
    __shared__ __align__(16) float As[STEP][TILE + 4], Bs[STEP][TILE];
    const int thread = threadIdx.x;
    const int tx = thread % 16, ty = thread / 16;
    A += blockIdx.y * TILE * K;
    B += blockIdx.x * TILE;
    float sum[4][4] = {};

    for (int tile = 0; tile < K; tile += STEP) {
        const float4 a = *reinterpret_cast<const float4*>(
            A + thread / 4 * K + tile + thread % 4 * 4);
        const float4 b = *reinterpret_cast<const float4*>(
            B + (tile + thread / 16) * N + thread % 16 * 4);
        __syncthreads();
        As[thread % 4 * 4 + 0][thread / 4] = a.x;
        As[thread % 4 * 4 + 1][thread / 4] = a.y;
        As[thread % 4 * 4 + 2][thread / 4] = a.z;
        As[thread % 4 * 4 + 3][thread / 4] = a.w;
        *reinterpret_cast<float4*>(&Bs[thread / 16][thread % 16 * 4]) = b;
        __syncthreads();
#ifdef SOLUTION
#pragma unroll
        for (int k = 0; k < STEP; ++k) {
            const float4 va = *reinterpret_cast<float4*>(&As[k][4 * ty]);
            const float4 vb = *reinterpret_cast<float4*>(&Bs[k][4 * tx]);
            const float av[4] = {va.x, va.y, va.z, va.w},
                        bv[4] = {vb.x, vb.y, vb.z, vb.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] += av[i] * bv[j];
        }
#else
        // Your turn: sum[i][j] is row 4 * ty + i, column 4 * tx + j of the
        // tile. Read each shared value once.
#endif
    }
    for (int i = 0; i < 4; ++i)
        *reinterpret_cast<float4*>(C + (blockIdx.y * TILE + 4 * ty + i) * N +
                                   blockIdx.x * TILE + 4 * tx) =
            make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}
