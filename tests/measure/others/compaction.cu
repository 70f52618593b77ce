// inspect --grid 1 --block 128 --arg s32[128]=below:10:7 --arg s32[128]=zeros --arg s32[1]=zeros
// Elements above 4, in order: a ballot numbers them within a warp, and a warp's count moves the next one's.
__global__ void keep_large(const int* in, int* out, int* count) {
    __shared__ int of_warp[4];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5, v = in[t];
    unsigned votes = __ballot_sync(0xffffffffu, v > 4);
    if (lane == 0) of_warp[warp] = __popc(votes);
    __syncthreads();
    int before = __popc(votes & ((1u << lane) - 1));
    for (int w = 0; w < warp; ++w) before += of_warp[w];
    if (v > 4) out[before] = v;
    if (t == 127) *count = before + (v > 4);
}
