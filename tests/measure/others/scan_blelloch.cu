// inspect --grid 1 --block 128 --arg s32[256]=below:50:2 --arg s32[256]
// Up and down a tree: places 2 d apart again, so conflicts that grow with d.
#define N 256
__global__ void exclusive_scan(int* in, int* out) {
    __shared__ int s[N];
    int t = threadIdx.x, d = 1;
    s[2 * t] = in[2 * t];
    s[2 * t + 1] = in[2 * t + 1];
    for (int active = N / 2; active > 0; active >>= 1, d *= 2) {
        __syncthreads();
        if (t < active) s[d * (2 * t + 2) - 1] += s[d * (2 * t + 1) - 1];
    }
    if (t == 0) s[N - 1] = 0;
    for (int active = 1; active < N; active *= 2) {
        d >>= 1;
        __syncthreads();
        if (t < active) {
            int left = d * (2 * t + 1) - 1, right = d * (2 * t + 2) - 1, kept = s[left];
            s[left] = s[right];
            s[right] += kept;
        }
    }
    __syncthreads();
    out[2 * t] = s[2 * t];
    out[2 * t + 1] = s[2 * t + 1];
}
