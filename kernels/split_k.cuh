// Split-K, in wgmma_split: the SPLIT blocks of a cluster share each tile, each of them a part of its k-steps. The tile
// is cut into SPLIT slices of columns. A block finishes one of them: it sends its sums of the others into the shared
// memory of the blocks that finish those, waits for the sums of its own slice, adds them up and stores. What is sent
// counts its bytes at an mbarrier, as copies by TMA do. The names are the rung's, which includes this.
#pragma once

// [split_k]
// [slices]
// Each sender has a place of its own behind the stages, for atoms as the accumulators hold them.
constexpr int SLICE_ATOMS = BN / 8 / SPLIT, WARP_SLICE_BYTES = SLICE_ATOMS * 512;
constexpr int SLICE_BYTES = CONSUMER_WARPS * WARP_SLICE_BYTES;
static_assert(SLICE_ATOMS % (PANEL_COLS<Out> / 8) == 0, "a slice is whole panels of C");
// [/slices]

struct Share : Place {
    int me, begin, end;
    unsigned sums_landed, slices;

    __device__ __forceinline__ Share(const Place& place, int, int k_steps) : Place(place) {
        const int tile_at = blockIdx.x / SPLIT * k_steps;
        me = blockIdx.x % SPLIT;
        begin = tile_at + k_steps * me / SPLIT, end = tile_at + k_steps * (me + 1) / SPLIT;
        sums_landed = barrier, slices = behind;
    }

    template <typename RowOf>
    __device__ __forceinline__ void prepare(const RowOf& row_of, int M) const {
        if (threadIdx.x == 0) {
            const int warps = min(CONSUMER_WARPS, (M - row_of(blockIdx.x / SPLIT) + 15) / 16);  // with rows inside C
            barrier_init(sums_landed, 1);
            barrier_expect(sums_landed, (SPLIT - 1) * warps * WARP_SLICE_BYTES);
            barrier_init_fence();
        }
        __syncwarp();
    }

    __device__ __forceinline__ void pass_on(const float (&acc)[BN / 8][4], const Output& out, int row, int, int) const {
        // [send]
        cluster_wait();  // all blocks of the cluster have started, and made their barriers
        const bool inside = row + warp * 16 < out.M;
        const unsigned warp_slice = slices + warp * WARP_SLICE_BYTES + lane * 16;
#pragma unroll
        for (int slice = 0; slice < SPLIT; ++slice)
#pragma unroll
            for (int n = 0; n < SLICE_ATOMS; ++n)
                if (inside && slice != me)
                    store4_async(warp_slice + (me - (me > slice)) * SLICE_BYTES + n * 512, acc[slice * SLICE_ATOMS + n],
                                 sums_landed, slice);
        barrier_wait(sums_landed, 0);
        // [/send]
    }

    __device__ __forceinline__ void complete(const float (&acc)[BN / 8][4], const Output& out, int row, int col,
                                             int& turn) const {
        // [receive]
        const unsigned warp_slice = slices + warp * WARP_SLICE_BYTES + lane * 16;
        float sums[SLICE_ATOMS][4] = {};
#pragma unroll
        for (int peer = 0; peer < SPLIT; ++peer)
            if (peer == me) {
#pragma unroll
                for (int n = 0; n < SLICE_ATOMS; ++n)
#pragma unroll
                    for (int i = 0; i < 4; ++i) sums[n][i] += acc[peer * SLICE_ATOMS + n][i];
            } else {
#pragma unroll
                for (int n = 0; n < SLICE_ATOMS; ++n) {
                    const float4 v = load4_shared(warp_slice + (peer - (peer > me)) * SLICE_BYTES + n * 512);
                    sums[n][0] += v.x, sums[n][1] += v.y, sums[n][2] += v.z, sums[n][3] += v.w;
                }
            }
        __syncwarp();  // the warp's first slice has been read, and is where C goes through
#pragma unroll
        for (int panel = 0; panel < SLICE_ATOMS * 8 / PANEL_COLS<Out>; ++panel)
            store_rows(slices + warp * WARP_SLICE_BYTES + turn++ % BUFFERS * PANEL_OUT_BYTES, sums, panel, out,
                       row + warp * 16, col + me * SLICE_ATOMS * 8);
        // [/receive]
    }
};
// [/split_k]
