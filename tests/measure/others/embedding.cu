// inspect --grid 16 --block 32 --arg s64[16]=below:50:6 --arg f32[50,96]=random:23 --arg f32[16,96]
__global__ void gather(const long long* ids, const float* table, float* out) {
    const long long row = ids[blockIdx.x];
    for (int i = threadIdx.x; i < 96; i += blockDim.x) out[blockIdx.x * 96 + i] = table[row * 96 + i];
}
