// Stream-K, in wgmma_split: the k-steps of all tiles are one list, dealt out equally to the blocks that fit the GPU, so
// that a share may begin and end within a tile. A block puts its sums of such a tile into a workspace in global memory,
// and counts itself as come. After its last k-step it waits until all have come who share a tile with it, adds up a
// slice of that tile from everybody's sums, in a fixed order, and stores it. Nobody waits for a block that cannot run,
// since all run at the same time. The names are the rung's, which includes this.
#pragma once

// [stream_k]
// [workspace]
// A block shares at most two tiles: the one that it finishes for others, slot 0, and the one that it begins, slot 1.
__device__ float workspace[BLOCKS * PER_SM][2][BM][BN];
// How many blocks have put their sums there, and have read them: one count per tile, at the first block that shares it.
__device__ unsigned arrivals[BLOCKS * PER_SM];
constexpr int IN_FLIGHT = 16;  // sums of others that a thread reads at once

__device__ __forceinline__ unsigned load_acquire(const unsigned* counter) {  // PTX ISA 9.7.9.8: ld.acquire
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    return value;
}
// [/workspace]

struct Share : Place {
    int taker, begin, end;
    Shares shares;

    __device__ __forceinline__ Share(const Place& place, int tile_rows, int N, int k_steps) : Place(place) {
        taker = blockIdx.x / CLUSTER_M;
        shares = {tile_rows * ((N + BN - 1) / BN) * k_steps, static_cast<int>(gridDim.x) / CLUSTER_M};
        begin = shares.begin(taker), end = shares.begin(taker + 1);
    }

    __device__ __forceinline__ void pass_on(const float (&acc)[BN / 8][4], const Output& out, int row, int tile_begin,
                                            int from) const {
        // [put]
        float* sums = workspace[blockIdx.x][from == tile_begin][0];
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
#pragma unroll
            for (int lower = 0; lower < 2; ++lower) {
                const int r = warp * 16 + lane / 4 + 8 * lower, c = 8 * n + lane % 4 * 2;
                const float2 two = make_float2(acc[n][2 * lower], acc[n][2 * lower + 1]);
                if (row + r < out.M) *reinterpret_cast<float2*>(sums + r * BN + c) = two;
            }
        named_barrier(1, CONSUMERS);
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&arrivals[shares.owner(tile_begin) * CLUSTER_M + rank], 1);
        }
        // [/put]
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
            unsigned* const arrived = &arrivals[first * CLUSTER_M + rank];
            if (threadIdx.x == 0)
                while (load_acquire(arrived) < peers) continue;
            __syncwarp();
            named_barrier(1, CONSUMERS);
            // A thread adds up four neighbours of a row over every second block, its partner over the others. The
            // slice is a share of the rows inside of C.
            const int row = row_of(tile), col = col_of(tile);
            const int fours = max(min(BM, out.M - row), 0) * (BN / 4), half = lane / 16;
            for (int at = fours * me / peers; at < fours * (me + 1) / peers; at += CONSUMERS / 2) {
                const int i = at + warp * 16 + lane % 16, r = i / (BN / 4), c = i % (BN / 4) * 4;
                const bool here = i < fours * (me + 1) / peers;
                float4 sum = make_float4(0, 0, 0, 0);
                if (here) {
#pragma unroll IN_FLIGHT
                    for (int peer = half; peer < peers; peer += 2) {
                        const float4 v = __ldcg(reinterpret_cast<const float4*>(
                            &workspace[(first + peer) * CLUSTER_M + rank][peer == 0][r][c]));
                        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
                    }
                }
                sum.x += __shfl_xor_sync(~0u, sum.x, 16), sum.y += __shfl_xor_sync(~0u, sum.y, 16);
                sum.z += __shfl_xor_sync(~0u, sum.z, 16), sum.w += __shfl_xor_sync(~0u, sum.w, 16);
                if (!here || half == 1) continue;
                if (col + c >= out.N) continue;
                sum = make_float4(out.alpha * sum.x, out.alpha * sum.y, out.alpha * sum.z, out.alpha * sum.w);
                Out* target = out.C + size_t(row + r) * out.N + col + c;
                if (out.beta != 0.0f) {  // beta = 0 must not read C: it may hold anything
                    const float4 old = load4(target);
                    sum = make_float4(sum.x + out.beta * old.x, sum.y + out.beta * old.y, sum.z + out.beta * old.z,
                                      sum.w + out.beta * old.w);
                }
                store4(target, sum);
            }

            __syncwarp();
            named_barrier(1, CONSUMERS);  // the last block to have read sets the count back to 0
            if (threadIdx.x == 0 && atomicAdd(arrived, 1) == 2 * peers - 1) atomicExch(arrived, 0);
        }
        // [/reduce]
    }
};
// [/stream_k]
