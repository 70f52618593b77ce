// Reads and writes every element of C and does nothing else: the least that C = alpha * A * B + beta * C can cost.
extern "C" __global__ void touch(float* C, long long elements) {
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i < elements) C[i] = C[i] * 0.5f;
}
