// C = alpha * A @ B + beta * C for any M, N, K. 256 threads, a 32 x 32 tile,
// four neighbouring columns per thread. The sums are done; what is left is to put
// them away.
extern "C" __global__ void guard_epilogue(const float* A, const float* B,
                                          float* C, int M, int N, int K,
                                          float alpha, float beta) {
    const int row = blockIdx.y * 32 + threadIdx.x / 8;
    const int col = blockIdx.x * 32 + threadIdx.x % 8 * 4;
    float sum[4] = {};
    for (int k = 0; k < K; ++k)
        for (int j = 0; j < 4; ++j)
            if (row < M && col + j < N)
                sum[j] += A[row * K + k] * B[k * N + col + j];
#ifdef SOLUTION
    if (row >= M) return;
    float* c = C + row * N + col;
    if (col + 4 <= N && N % 4 == 0) {
        float4 old = beta != 0.0f ? *reinterpret_cast<float4*>(c)
                                  : make_float4(0, 0, 0, 0);
        *reinterpret_cast<float4*>(c) = make_float4(
            alpha * sum[0] + beta * old.x, alpha * sum[1] + beta * old.y,
            alpha * sum[2] + beta * old.z, alpha * sum[3] + beta * old.w);
    } else {
        for (int j = 0; j < 4 && col + j < N; ++j)
            c[j] = alpha * sum[j] + (beta != 0.0f ? beta * c[j] : 0.0f);
    }
#else
    // Your turn: guard the edges, honour alpha and beta, and do not read C when
    // beta is 0. Where a whole float4 fits and is aligned, store one.
    float* c = C + row * N + col;
    for (int j = 0; j < 4; ++j) c[j] = sum[j];
#endif
}
