// inspect --grid 1 --block 128 --arg f32[128]=random:3 --arg f32[1]
// The barrier in the loop is forgotten. The sum may come out right all the same.
__global__ void reduce(const float* in, float* out) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    for (int d = 64; d > 0; d /= 2)
        if (t < d) s[t] += s[t + d];
    if (t == 0) *out = s[0];
}
