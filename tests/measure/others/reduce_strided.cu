// inspect --grid 4 --block 256 --arg f32[1024]=random:1 --arg f32[4]
// Neighbouring threads work, on places 2 d apart: no idle lanes, and conflicts of up to 16 ways.
__global__ void reduce(const float* in, float* out) {
    __shared__ float s[256];
    unsigned t = threadIdx.x;
    s[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned d = 1; d < blockDim.x; d <<= 1) {
        unsigned at = 2 * d * t;
        if (at + d < blockDim.x) s[at] += s[at + d];
        __syncthreads();
    }
    if (!t) out[blockIdx.x] = s[0];
}
