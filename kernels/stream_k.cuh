// Stream-K, in wgmma_split: the k-steps of all tiles are one list, dealt out equally to the blocks that fit the GPU, so
// that a share may begin and end within a tile. A block puts its sums of such a tile into a workspace in global memory,
// and counts itself as come. After its last k-step it waits until all have come who share a tile with it, adds up a
// slice of that tile from everybody's sums, in a fixed order, and stores it. Nobody waits for a block that cannot run,
// since all run at the same time. The names are the rung's, which includes this.
#pragma once

// [stream_k]
// [workspace]
// A block shares at most two tiles: the one that it finishes for others, slot 0, and the one that it begins, slot 1.
// Sums stand there as the accumulators hold them, four of a lane after four of the next: whole lines are written.
__device__ float4 workspace[BLOCKS * PER_SM][2][CONSUMER_WARPS][BN / 8][32];
// How many blocks have put their sums there, and have read them: one count per tile, at the first block that shares it.
__device__ unsigned arrivals[BLOCKS * PER_SM];
constexpr int FEW = 4, MANY = BM * PER_SM > 128 ? 16 : 32;  // sums of others that a thread has registers for at once

__device__ __forceinline__ unsigned load_acquire(const unsigned* counter) {  // PTX ISA 9.7.9.8: ld.acquire
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    return value;
}
// [/workspace]

struct Share : Place {
    int taker, begin, end;
    Shares shares;

    __device__ __forceinline__ Share(const Place& place, int tiles, int k_steps) : Place(place) {
        taker = blockIdx.x / CLUSTER;
        shares = {tiles * k_steps, static_cast<int>(gridDim.x) / CLUSTER};
        begin = shares.begin(taker), end = shares.begin(taker + 1);
    }

    __device__ __forceinline__ void pass_on(const float (&acc)[BN / 8][4], const Output& out, int row, int tile_begin,
                                            int from) const {
        // [put]
        const bool inside = row + warp * 16 < out.M;
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
            if (inside)
                workspace[blockIdx.x][from == tile_begin][warp][n][lane] =
                    make_float4(acc[n][0], acc[n][1], acc[n][2], acc[n][3]);
        named_barrier(1, CONSUMERS);
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&arrivals[shares.owner(tile_begin) * CLUSTER + rank], 1);
        }
        // [/put]
    }

    // Element i of the sums of all peers, of which AT_ONCE are on their way at a time.
    template <int AT_ONCE>
    __device__ __forceinline__ float4 total(int first, int peers, int i) const {
        float4 sum = make_float4(0, 0, 0, 0), v[AT_ONCE];
        for (int from = 0; from < peers; from += AT_ONCE) {
#pragma unroll
            for (int n = 0; n < AT_ONCE; ++n) {
                const int peer = from + n;
                v[n] = make_float4(0, 0, 0, 0);
                if (peer < peers) v[n] = __ldcg(workspace[(first + peer) * CLUSTER + rank][peer == 0][0][0] + i);
            }
#pragma unroll
            for (int n = 0; n < AT_ONCE; ++n)
                sum = make_float4(sum.x + v[n].x, sum.y + v[n].y, sum.z + v[n].z, sum.w + v[n].w);
        }
        return sum;
    }

    template <typename RowOf, typename ColOf>
    __device__ __forceinline__ void finish(const RowOf& row_of, const ColOf& col_of, int k_steps,
                                           const Output& out) const {
        // [reduce]
        const int last_tile = max(begin, end - 1) / k_steps;
        for (int tile = begin / k_steps; tile <= last_tile; tile = max(tile + 1, last_tile)) {
            const int first = shares.owner(tile * k_steps);
            const int peers = shares.owner((tile + 1) * k_steps - 1) - first + 1, me = taker - first;
            if (peers == 1) continue;
            unsigned* const arrived = &arrivals[first * CLUSTER + rank];
            if (threadIdx.x == 0)
                while (load_acquire(arrived) < peers) continue;
            __syncwarp();
            named_barrier(1, CONSUMERS);
            // A thread adds up the four sums of a lane. The slice is a share of what the warps with rows inside of C have
            // put there.
            const int row = row_of(tile), col = col_of(tile);
            const int fours = min(BM, max(out.M - row + 15, 0) / 16 * 16) * (BN / 4);
            for (int i = fours * me / peers + threadIdx.x; i < fours * (me + 1) / peers; i += CONSUMERS) {
                const float4 sum = peers > FEW ? total<MANY>(first, peers, i) : total<FEW>(first, peers, i);
#pragma unroll
                for (int lower = 0; lower < 2; ++lower) {
                    const int r = row + i / (BN * 4) * 16 + i % 32 / 4 + 8 * lower;
                    const int c = col + i / 32 % (BN / 8) * 8 + i % 4 * 2;
                    if (r >= out.M || c >= out.N) continue;
                    float x = out.alpha * (lower ? sum.z : sum.x), y = out.alpha * (lower ? sum.w : sum.y);
                    Out* target = out.C + size_t(r) * out.N + c;
                    if (out.beta != 0.0f) {  // beta = 0 must not read C: it may hold anything
                        x += out.beta * static_cast<float>(target[0]);
                        y += out.beta * static_cast<float>(target[1]);
                    }
                    target[0] = static_cast<Out>(x);
                    target[1] = static_cast<Out>(y);
                }
            }

            __syncwarp();
            named_barrier(1, CONSUMERS);  // the last block to have read sets the count back to 0
            if (threadIdx.x == 0 && atomicAdd(arrived, 1) == 2 * peers - 1) atomicExch(arrived, 0);
        }
        // [/reduce]
    }
};
// [/stream_k]
