// wgmma_split: shapes that do not fill the GPU. Blocks share tiles: each computes a part of the k-steps, then adds up a
// slice of the tile from everybody's sums, in a fixed order. Changed from wgmma_persistent: SPLIT = 2, 4, 8 blocks of
// a cluster share a tile through their shared memory (split-K); with SPLIT = 0 all k-steps of all tiles are one list,
// dealt out equally to the blocks that fit the GPU; sums go through a workspace (stream-K). SPLIT = 1 shares nothing.
// Tiles: block BM x BN x 64, warpgroup and wgmma 64 x BN. K and N in multiples of 8; sm_90a; one launch at a time.
#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef STAGES
#define STAGES 5
#endif
#ifndef SPLIT
#define SPLIT 2
#endif
#ifndef A_BOX
#define A_BOX 128  // rows of A in one copy; copies that would begin below the last row of A are left out
#endif
#ifndef BLOCKS
#define BLOCKS 132  // multiprocessors
#endif
#ifndef PER_SM
#define PER_SM 1  // blocks on a multiprocessor
#endif
#ifndef CLUSTER_M
#define CLUSTER_M 1  // tiles below each other whose blocks load parts of B for one another; with SPLIT of 0 or 1
#endif
#ifndef TOGETHER
#define TOGETHER 1  // k-steps that are loaded together: a box of A for each of them, then the next box
#endif
#ifndef BF16_INPUT
#define BF16_INPUT 0
#endif
#ifndef HALF_OUTPUT
#define HALF_OUTPUT 0
#endif
#ifndef BF16_OUTPUT
#define BF16_OUTPUT 0
#endif

#define BUFFERS 2  // panels of C in shared memory, that a warp uses in turns
#include "epilogue_tma.cuh"
#include "cluster.cuh"

// [types]
#if BF16_INPUT
using In = bf16;
#else
using In = half;
#endif
#if HALF_OUTPUT
using Out = half;
#elif BF16_OUTPUT
using Out = bf16;
#else
using Out = float;
#endif
// [/types]

// [tiles]
constexpr int BK = 64;
constexpr int PITCH = 128;
constexpr int PANEL_N = 64;  // columns of B that stand together
constexpr int A_BYTES = BM * PITCH;
constexpr int PANEL_BYTES = BK * PITCH;
constexpr int STAGE_BYTES = A_BYTES + BN / PANEL_N * PANEL_BYTES;
constexpr int CONSUMER_WARPS = BM / 16, CONSUMERS = 32 * CONSUMER_WARPS;
constexpr int THREADS = CONSUMERS + 32;
constexpr unsigned short ALL_RANKS = (1 << CLUSTER_M) - 1;  // a bit for each block of the cluster
static_assert(BM % A_BOX == 0 && A_BOX % 8 == 0, "whole copies of A, of whole groups of eight rows");
static_assert(BM % 64 == 0 && BN % PANEL_N == 0 && BN <= 256, "a warpgroup has 64 rows and up to 256 columns");
static_assert(SPLIT <= 1 || CLUSTER_M == 1, "a cluster shares one tile, or loads for tiles below each other");
// [/tiles]

// [shares]
// A list dealt out to `takers` (clusters, or blocks where there are none) in pieces that differ by one unit at most.
// Units are k-steps, tile after tile, where tiles are shared through the workspace, and whole tiles where none is.
struct Shares {
    int units, takers;
    __device__ int begin(int taker) const { return taker * (units / takers) + min(taker, units % takers); }
    __device__ int owner(int unit) const {
        const int piece = units / takers, longer = units % takers * (piece + 1);
        return unit < longer ? unit / (piece + 1) : units % takers + (unit - longer) / piece;
    }
};
// [/shares]

// [workspace]
// Where a block puts its sums of a tile that it shares, how it learns that the others have, and how it reads theirs.
#if SPLIT > 1
// The tile is cut into SPLIT slices of columns. A block finishes one, and sends its sums of the others to the blocks
// that finish those. Each sender has a place of its own behind the stages, for atoms as the accumulators hold them.
constexpr int SLICE_ATOMS = BN / 8 / SPLIT, WARP_SLICE_BYTES = SLICE_ATOMS * 512;
constexpr int SLICE_BYTES = CONSUMER_WARPS * WARP_SLICE_BYTES;
static_assert(SLICE_ATOMS % (PANEL_COLS<Out> / 8) == 0, "a slice is whole panels of C");
#elif SPLIT == 0
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
#endif
// [/workspace]

// [rows]
// C = alpha * acc + beta * C for one panel, through shared memory at `panel`, of which the warp takes four rows of 128
// bytes at a time. The other panel is next, so that nobody waits for those who still read this one.
template <int ATOMS>
__device__ __forceinline__ void store_rows(unsigned panel, const float (&acc)[ATOMS][4], int number, Out* C, int M,
                                           int N, int row, int col, float alpha, float beta) {
    unsigned words[PANEL_WORDS];
    finish_panel(words, acc, number, C, M, N, row, col, alpha, beta);
    lay_panel(Out(), panel, words);
    __syncwarp();
    const int chunk = threadIdx.x % 8, c = col + number * PANEL_COLS<Out> + chunk * (16 / sizeof(Out));
#pragma unroll
    for (int i = 0; i < PANEL_ROWS; i += 4) {
        const int r = i + threadIdx.x % 32 / 8;
        uint4 v;
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(panel + r * 128 + (chunk ^ r % 8) * 16)
                     : "memory");
        if (row + r < M && c < N) *reinterpret_cast<uint4*>(C + size_t(row + r) * N + c) = v;
    }
}
// [/rows]

extern "C" __global__ void
#if SPLIT > 1
__cluster_dims__(SPLIT, 1, 1)
#elif CLUSTER_M > 1
__cluster_dims__(CLUSTER_M, 1, 1)
#endif
    __launch_bounds__(THREADS, PER_SM)
        gemm_wgmma_split(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, Out* __restrict__ C,
                         int M, int N, int K, float alpha, float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 1];
    const unsigned stage0 = shared_address(shared);
    const unsigned full0 = shared_address(barriers), empty0 = full0 + 8 * STAGES;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int rank = blockIdx.x % CLUSTER_M;
    const int tile_rows = (M + BM * CLUSTER_M - 1) / (BM * CLUSTER_M);
    const int a_rows = min(BM, (M + A_BOX - 1) / A_BOX * A_BOX);  // of a tile of A, that are copied
    const int k_steps = (K + BK - 1) / BK;
    auto row_of = [&](int tile) { return (tile % tile_rows * CLUSTER_M + rank) * BM; };
    auto col_of = [&](int tile) { return tile / tile_rows * BN; };
#if SPLIT > 1
    const int tile_at = blockIdx.x / SPLIT * k_steps, me = blockIdx.x % SPLIT;
    const int begin = tile_at + k_steps * me / SPLIT, end = tile_at + k_steps * (me + 1) / SPLIT;
    const unsigned sums_landed = empty0 + 8 * STAGES, slices = stage0 + STAGES * STAGE_BYTES;
#else
    constexpr bool WHOLE = SPLIT == 1;
    const int taker = blockIdx.x / CLUSTER_M;
    const Shares shares{tile_rows * ((N + BN - 1) / BN) * (WHOLE ? 1 : k_steps),
                        static_cast<int>(gridDim.x) / CLUSTER_M};
    const int begin = shares.begin(taker) * (WHOLE ? k_steps : 1);
    const int end = shares.begin(taker + 1) * (WHOLE ? k_steps : 1);
#endif

    int stage = 0;
    unsigned phase = 0;
    auto next_stage = [&] {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        phase ^= stage == 0;
    };
    let_next_kernel_begin();
    if (warp == CONSUMER_WARPS) {
        // [producer]
        if (lane == 0) {
            tma_prefetch_map(A);
            tma_prefetch_map(B);
            for (int i = 0; i < STAGES; ++i) {
                barrier_init(full0 + 8 * i, 1);
                barrier_init(empty0 + 8 * i, CONSUMER_WARPS * CLUSTER_M);
            }
            barrier_init_fence();
        }
        __syncwarp();
        named_barrier_arrive(2, THREADS);  // the others wait for the barriers; this warp can begin
        if (CLUSTER_M > 1) cluster_arrive(), cluster_wait();
        if (lane == 0) {
            wait_for_last_kernel();
#if TOGETHER == 1
            for (int step = begin; step < end; ++step, next_stage()) {
                const int tile = step / k_steps, row = row_of(tile), col = col_of(tile);
                const int k = step % k_steps * BK;
                const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                const unsigned full = full0 + 8 * stage;
                barrier_wait(empty0 + 8 * stage, phase ^ 1);  // the first time round this returns at once
                barrier_expect(full, STAGE_BYTES - (BM - a_rows) * PITCH);
#pragma unroll
                for (int panel = rank; panel < BN / PANEL_N; panel += CLUSTER_M)
                    tma_load_shared<CLUSTER_M>(b_tile + panel * PANEL_BYTES, B, col + panel * PANEL_N, k, full,
                                               ALL_RANKS);
                for (int r = 0; r < a_rows; r += A_BOX) tma_load(a_tile + r * PITCH, A, k, row + r, full);
            }
#else
            for (int step = begin; step < end;) {
                const int tile = step / k_steps, row = row_of(tile), col = col_of(tile), first = step % k_steps;
                const int together = min(TOGETHER, min(end - step, k_steps - first));
                unsigned stages[TOGETHER], full[TOGETHER];
#pragma unroll
                for (int i = 0; i < TOGETHER; ++i) {
                    if (i >= together) break;
                    stages[i] = stage0 + stage * STAGE_BYTES;
                    full[i] = full0 + 8 * stage;
                    barrier_wait(empty0 + 8 * stage, phase ^ 1);
                    barrier_expect(full[i], STAGE_BYTES - (BM - a_rows) * PITCH);
                    next_stage();
#pragma unroll
                    for (int panel = rank; panel < BN / PANEL_N; panel += CLUSTER_M)
                        tma_load_shared<CLUSTER_M>(stages[i] + A_BYTES + panel * PANEL_BYTES, B, col + panel * PANEL_N,
                                                   (first + i) * BK, full[i], ALL_RANKS);
                }
                for (int r = 0; r < a_rows; r += A_BOX)
#pragma unroll
                    for (int i = 0; i < TOGETHER; ++i)
                        if (i < together) tma_load(stages[i] + r * PITCH, A, (first + i) * BK, row + r, full[i]);
                step += together;
            }
#endif
        }
        return;
        // [/producer]
    }

    // [zeros]
    if (a_rows < BM) {  // wgmma reads 64 rows, whether they are copied or not
        for (int i = threadIdx.x * 16; i < (BM - a_rows) * PITCH; i += CONSUMERS * 16)
            for (int s = 0; s < STAGES; ++s)
                *reinterpret_cast<uint4*>(shared + s * STAGE_BYTES + a_rows * PITCH + i) = make_uint4(0, 0, 0, 0);
        async_fence();
    }
    // [/zeros]

#if SPLIT > 1
    if (threadIdx.x == 0) {
        const int warps = min(CONSUMER_WARPS, (M - row_of(blockIdx.x / SPLIT) + 15) / 16);  // with rows inside C
        barrier_init(sums_landed, 1);
        barrier_expect(sums_landed, (SPLIT - 1) * warps * WARP_SLICE_BYTES);
        barrier_init_fence();
    }
    __syncwarp();
#endif
    named_barrier(2, THREADS);
    // With SPLIT the loading warps take no part: a warp that has ended counts as arrived.
    if (SPLIT > 1 || CLUSTER_M > 1) cluster_arrive();
    if (CLUSTER_M > 1) cluster_wait();
    wait_for_last_kernel();
    auto release = [&](int stage) {  // a lane for each block that sends to this one
        if (CLUSTER_M == 1 && lane == 0) barrier_arrive(empty0 + 8 * stage);
        if (CLUSTER_M > 1 && lane < CLUSTER_M) barrier_arrive_at(empty0 + 8 * stage, lane);
    };
    const unsigned staging = stage0 + STAGES * STAGE_BYTES + warp * BUFFERS * PANEL_OUT_BYTES;
    int step = begin, turn = 0;
    do {  // once per tile
        const int tile = step / k_steps, row = row_of(tile), col = col_of(tile);
        const int tile_begin = tile * k_steps, tile_end = tile_begin + k_steps;
        const int from = step, to = min(end, tile_end);

        // [compute]
        float acc[BN / 8][4] = {};
        int previous = 0;
        for (; step < to; ++step, next_stage()) {
            const unsigned a_tile = stage0 + stage * STAGE_BYTES + warp / 4 * 64 * PITCH;
            const unsigned b_tile = stage0 + stage * STAGE_BYTES + A_BYTES;
            barrier_wait(full0 + 8 * stage, phase);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK; k += 16)
                wgmma_k16<In, 0, 1>(acc, wgmma_descriptor(a_tile + k * 2),
                                    wgmma_descriptor(b_tile + k * PITCH, PANEL_BYTES), true);
            wgmma_commit();
            wgmma_wait<1>();  // the step before is done; this one runs on
            if (step > from) release(previous);
            previous = stage;
        }
        wgmma_wait<0>();
        if (to > from) release(previous);
        // [/compute]

        // [store]
        if (SPLIT <= 1 && from == tile_begin && to == tile_end) {
#pragma unroll
            for (int panel = 0; panel < BN / PANEL_COLS<Out>; ++panel)
                store_rows(staging + turn++ % BUFFERS * PANEL_OUT_BYTES, acc, panel, C, M, N, row + warp * 16, col,
                           alpha, beta);
            continue;
        }
        // [/store]

#if SPLIT > 1
        // [send]
        cluster_wait();  // all blocks of the cluster have started, and made their barriers
        const bool inside = row + warp * 16 < M;
        const unsigned warp_slice = slices + warp * WARP_SLICE_BYTES + lane * 16;
#pragma unroll
        for (int slice = 0; slice < SPLIT; ++slice)
#pragma unroll
            for (int n = 0; n < SLICE_ATOMS; ++n)
                if (inside && slice != me)
                    store4_async(warp_slice + (me - (me > slice)) * SLICE_BYTES + n * 512, acc[slice * SLICE_ATOMS + n],
                                 sums_landed, slice);
        // [/send]

        // [receive]
        barrier_wait(sums_landed, 0);
        if (!inside) break;
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
            store_rows(slices + warp * WARP_SLICE_BYTES + turn++ % BUFFERS * PANEL_OUT_BYTES, sums, panel, C, M, N,
                       row + warp * 16, col + me * SLICE_ATOMS * 8, alpha, beta);
        // [/receive]
#elif SPLIT == 0
        // [put]
        float* sums = workspace[blockIdx.x][from == tile_begin][0];
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
#pragma unroll
            for (int lower = 0; lower < 2; ++lower) {
                const int r = warp * 16 + lane / 4 + 8 * lower, c = 8 * n + lane % 4 * 2;
                const float2 two = make_float2(acc[n][2 * lower], acc[n][2 * lower + 1]);
                if (row + r < M) *reinterpret_cast<float2*>(sums + r * BN + c) = two;
            }
        named_barrier(1, CONSUMERS);
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&arrivals[shares.owner(tile_begin) * CLUSTER_M + rank], 1);
        }
        // [/put]
#endif
    } while (step < end);

#if SPLIT == 0
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
        const int fours = max(min(BM, M - row), 0) * (BN / 4), half = lane / 16;
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
            if (col + c >= N) continue;
            sum = make_float4(alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w);
            Out* target = C + size_t(row + r) * N + col + c;
            if (beta != 0.0f) {  // beta = 0 must not read C: it may hold anything
                const float4 old = load4(target);
                sum =
                    make_float4(sum.x + beta * old.x, sum.y + beta * old.y, sum.z + beta * old.z, sum.w + beta * old.w);
            }
            store4(target, sum);
        }

        __syncwarp();
        named_barrier(1, CONSUMERS);  // the last block to have read sets the count back to 0
        if (threadIdx.x == 0 && atomicAdd(arrived, 1) == 2 * peers - 1) atomicExch(arrived, 0);
    }
    // [/reduce]
#endif
    if (CLUSTER_M > 1) {  // a block must not end while others arrive at its barriers
        __syncwarp();
        cluster_sync();
    }
}
