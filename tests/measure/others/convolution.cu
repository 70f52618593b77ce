// inspect --grid 4 --block 64 --arg f32[256]=random:20 --arg f32[256] --arg s32=256
#define R 2
__constant__ float weights[2 * R + 1] = {1.f, 4.f, 6.f, 4.f, 1.f};
__global__ void conv1d(const float *in, float *out, int n) {
    __shared__ float halo[64 + 2 * R];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    halo[t + R] = in[i];
    if (t < R) {
        halo[t] = i >= R ? in[i - R] : 0.f;
        halo[t + R + 64] = i + 64 < n ? in[i + 64] : 0.f;
    }
    __syncthreads();
    float sum = 0.f;
    for (int j = -R; j <= R; ++j) sum += halo[t + R + j] * weights[R + j];
    out[i] = sum / 16.f;
}
