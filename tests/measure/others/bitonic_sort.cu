// inspect --grid 1 --block 256 --arg u32[256]=below:100000:5
#include <algorithm>
__device__ inline void swap_if(unsigned& a, unsigned& b, bool up) {
    if ((a > b) == up) { unsigned c = a; a = b; b = c; }
}
extern "C" {
__global__ void sort256(unsigned* keys) {
    __shared__ unsigned s[256];
    unsigned t = threadIdx.x;
    s[t] = keys[t];
    for (unsigned k = 2; k <= 256; k <<= 1)
        for (unsigned j = k >> 1; j; j >>= 1) {
            __syncthreads();
            unsigned other = t ^ j;
            if (other > t) swap_if(s[t], s[other], (t & k) == 0);
        }
    __syncthreads();
    keys[t] = s[t];
}
}
