// One warp reads shared memory in six ways, one line each; `sink` keeps the
// compiler from dropping the reads.
extern "C" __global__ void count_wavefronts(float* sink) {
    __shared__ __align__(16) float s[32 * 33];
    const int lane = threadIdx.x;
    for (int i = lane; i < 32 * 33; i += 32) s[i] = i;
    __syncwarp();
    volatile float* v = s;
    float sum = 0.0f;
    sum += v[lane];
    sum += v[2 * lane];
    sum += v[lane / 2];
    sum += v[32 * lane];
    sum += v[33 * lane];
    const float4 four = reinterpret_cast<float4*>(s)[lane];
    sink[lane] = sum + four.x + four.y + four.z + four.w;
}
