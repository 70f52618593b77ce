// Reads and writes every element of C and does nothing else: the least that C = alpha * A * B + beta * C can cost.
extern "C" __global__ void touch(float* C, size_t elements) {
    const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < elements) C[i] = C[i] * 0.5f;
}
