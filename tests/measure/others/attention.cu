// inspect --grid 2x2 --block 32 --shared 12288 --arg f32[2,2,64,32]=random:7 --arg f32[2,2,64,32]=random:8 --arg f32[2,2,64,32]=random:9 --arg f32[2,2,64,32] --arg s32=64 --arg f32=0.17677669
// Attention with tiles of 32 rows: a thread owns a row of Q, and rescales its output when the maximum grows.
#define BR 32
#define D 32
__global__ void attention_fwd(const float* Q, const float* K, const float* V, float* O, const int N, const float scale) {
    extern __shared__ float sram[];
    float *q = sram, *k = q + BR * D, *v = k + BR * D;
    int t = threadIdx.x, base = (blockIdx.x * gridDim.y + blockIdx.y) * N * D;
    for (int i = 0; i < N / BR; i++) {
        float acc[D], m = -1e30f, l = 0.f;
        for (int d = 0; d < D; d++) {
            q[t * D + d] = Q[base + (i * BR + t) * D + d];
            acc[d] = 0.f;
        }
        for (int j = 0; j < N / BR; j++) {
            __syncthreads();
            for (int d = 0; d < D; d++) {
                k[t * D + d] = K[base + (j * BR + t) * D + d];
                v[t * D + d] = V[base + (j * BR + t) * D + d];
            }
            __syncthreads();
            for (int c = 0; c < BR; c++) {
                float s = 0.f;
                for (int d = 0; d < D; d++) s += q[t * D + d] * k[c * D + d];
                s *= scale;
                float grown = fmaxf(m, s), old = __expf(m - grown), p = __expf(s - grown);
                l = l * old + p;
                for (int d = 0; d < D; d++) acc[d] = acc[d] * old + p * v[c * D + d];
                m = grown;
            }
        }
        for (int d = 0; d < D; d++) O[base + (i * BR + t) * D + d] = acc[d] / l;
    }
}
