// nvcc -O3 -arch=native first_program.cu -o first_program && ./first_program
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                \
    do {                                                                           \
        cudaError_t error = (call);                                                \
        if (error != cudaSuccess) {                                                \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

__global__ void naive(const float* A, const float* B, float* C, int M, int N, int K) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}

int main() {
    const int M = 1000, N = 1100, K = 1200, runs = 20;
    std::vector<float> a(M * K), b(K * N), c(M * N);
    for (float& x : a) x = rand() / float(RAND_MAX) - 0.5f;
    for (float& x : b) x = rand() / float(RAND_MAX) - 0.5f;

    float *A, *B, *C;  // addresses in the GPU's memory
    CHECK(cudaMalloc(&A, a.size() * sizeof(float)));
    CHECK(cudaMalloc(&B, b.size() * sizeof(float)));
    CHECK(cudaMalloc(&C, c.size() * sizeof(float)));
    CHECK(cudaMemcpy(A, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(B, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));

    const dim3 threads(32, 32), blocks((N + 31) / 32, (M + 31) / 32);
    naive<<<blocks, threads>>>(A, B, C, M, N, K);  // warm-up, and the run that is checked
    CHECK(cudaGetLastError());                     // was the launch refused?
    CHECK(cudaMemcpy(c.data(), C, c.size() * sizeof(float), cudaMemcpyDeviceToHost));

    int wrong = 0;
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            double sum = 0, size = 0;
            for (int k = 0; k < K; ++k) {
                const double term = double(a[i * K + k]) * b[k * N + j];
                sum += term, size += term < 0 ? -term : term;
            }
            wrong += !(c[i * N + j] > sum - 1e-5 * size && c[i * N + j] < sum + 1e-5 * size);
        }

    cudaEvent_t start, stop;
    float ms;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    for (int run = 0; run < runs; ++run) naive<<<blocks, threads>>>(A, B, C, M, N, K);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));  // wait until the GPU has come to `stop`
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("%d wrong of %d; %.3f ms, %.2f TFLOP/s\n", wrong, M * N, ms / runs, 2e-9 * M * N * K * runs / ms);
}
