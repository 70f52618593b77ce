// wgmma_split: shapes that do not fill the GPU. Blocks share tiles: each computes a part of the k-steps, then adds up a
// slice of the tile from everybody's sums, always in the same order. Since wgmma_persistent: SPLIT = 2, 4, 8 blocks of
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
#define STAGES 6
#endif
#ifndef SPLIT
#define SPLIT 2
#endif
#ifndef A_BOX
#define A_BOX 128  // rows of A in one copy: of a matrix with few rows, the copies below them are left out
#endif
#ifndef BLOCKS
#define BLOCKS 132  // multiprocessors
#endif
#ifndef PER_SM
#define PER_SM 1  // blocks on a multiprocessor
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
constexpr int ROW_BYTES = 128;
constexpr int PANEL_N = 64;  // columns of B that stand together
constexpr int A_BYTES = BM * ROW_BYTES;
constexpr int PANEL_BYTES = BK * ROW_BYTES;
constexpr int STAGE_BYTES = A_BYTES + BN / PANEL_N * PANEL_BYTES;
constexpr int CONSUMER_WARPS = BM / 16, CONSUMERS = 32 * CONSUMER_WARPS;
constexpr int THREADS = CONSUMERS + 32;
static_assert(BM % A_BOX == 0 && A_BOX % 8 == 0, "whole copies of A, of whole groups of eight rows");
static_assert(BM % 64 == 0 && BN % PANEL_N == 0 && BN <= 256, "a warpgroup has 64 rows and up to 256 columns");
// [/tiles]

// [shares]
// A list dealt out to the blocks in pieces that differ by one unit at most. Units are k-steps, tile after tile, where
// tiles are shared through the workspace, and whole tiles where none is shared.
struct Shares {
    int units, blocks;
    __device__ int begin(int block) const { return block * (units / blocks) + min(block, units % blocks); }
    __device__ int owner(int unit) const {
        const int piece = units / blocks, longer = units % blocks * (piece + 1);
        return unit < longer ? unit / (piece + 1) : units % blocks + (unit - longer) / piece;
    }
};
// [/shares]

// [workspace]
// Where a block puts its sums of a tile that it shares, how it learns that the others have, and how it reads theirs.
#if SPLIT > 1
constexpr int PITCH = BN + 8;  // eight rows that are written at once fall into different banks
static_assert(BM * PITCH * 4 <= STAGES * STAGE_BYTES, "the sums go where the stages were");
#elif SPLIT == 0
// A block shares at most two tiles: the one that it finishes for others, slot 0, and the one that it begins, slot 1.
__device__ float workspace[BLOCKS * PER_SM][2][BM][BN];
// Blocks that have put their sums there, then also those that have read; by the first block that shares the tile.
__device__ unsigned arrivals[BLOCKS * PER_SM];

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
        if (row + r < M && c < N) *reinterpret_cast<uint4*>(C + static_cast<long long>(row + r) * N + c) = v;
    }
}
// [/rows]

extern "C" __global__ void
#if SPLIT > 1
__cluster_dims__(SPLIT, 1, 1)
#endif
    __launch_bounds__(THREADS, PER_SM)
        gemm_wgmma_split(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, Out* __restrict__ C,
                         int M, int N, int K, float alpha, float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ alignas(8) unsigned long long barriers[2 * STAGES];
    const unsigned stage0 = shared_address(shared);
    const unsigned full0 = shared_address(barriers), empty0 = full0 + 8 * STAGES;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int tile_rows = (M + BM - 1) / BM;
    const int a_rows = min(BM, (M + A_BOX - 1) / A_BOX * A_BOX);  // of a tile of A, that are copied
    const int k_steps = (K + BK - 1) / BK;
#if SPLIT > 1
    const int tile_at = blockIdx.x / SPLIT * k_steps, part_at = blockIdx.x % SPLIT;
    const int begin = tile_at + k_steps * part_at / SPLIT, end = tile_at + k_steps * (part_at + 1) / SPLIT;
#else
    constexpr bool WHOLE = SPLIT == 1;
    const Shares shares{tile_rows * ((N + BN - 1) / BN) * (WHOLE ? 1 : k_steps), static_cast<int>(gridDim.x)};
    const int begin = shares.begin(blockIdx.x) * (WHOLE ? k_steps : 1);
    const int end = shares.begin(blockIdx.x + 1) * (WHOLE ? k_steps : 1);
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
                barrier_init(empty0 + 8 * i, CONSUMER_WARPS);
            }
            barrier_init_fence();
        }
        __syncwarp();
        named_barrier_arrive(2, THREADS);  // the others wait for the barriers; this warp can begin
        if (lane == 0) {
            wait_for_last_kernel();
            for (int step = begin; step < end; ++step, next_stage()) {
                const int tile = step / k_steps, row = tile % tile_rows * BM, col = tile / tile_rows * BN;
                const int k = step % k_steps * BK;
                const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                const unsigned full = full0 + 8 * stage;
                barrier_wait(empty0 + 8 * stage, phase ^ 1);  // the first time round this returns at once
                barrier_expect(full, STAGE_BYTES - (BM - a_rows) * ROW_BYTES);
#pragma unroll
                for (int panel = 0; panel < BN / PANEL_N; ++panel)
                    tma_load(b_tile + panel * PANEL_BYTES, B, col + panel * PANEL_N, k, full);
                for (int r = 0; r < a_rows; r += A_BOX) tma_load(a_tile + r * ROW_BYTES, A, k, row + r, full);
            }
        }
        return;
        // [/producer]
    }

    // [zeros]
    if (a_rows < BM) {  // wgmma reads 64 rows, whether they are copied or not
        for (int i = threadIdx.x * 16; i < (BM - a_rows) * ROW_BYTES; i += CONSUMERS * 16)
            for (int s = 0; s < STAGES; ++s)
                *reinterpret_cast<uint4*>(shared + s * STAGE_BYTES + a_rows * ROW_BYTES + i) = make_uint4(0, 0, 0, 0);
        async_fence();
    }
    // [/zeros]

    named_barrier(2, THREADS);
    wait_for_last_kernel();
    const unsigned staging = stage0 + STAGES * STAGE_BYTES + warp * BUFFERS * PANEL_OUT_BYTES;
    int step = begin, turn = 0;
    do {  // once per tile
        const int tile = step / k_steps, row = tile % tile_rows * BM, col = tile / tile_rows * BN;
        const int tile_begin = tile * k_steps, tile_end = tile_begin + k_steps;
        const int from = step, to = min(end, tile_end);

        // [compute]
        float acc[BN / 8][4] = {};
        int previous = 0;
        for (; step < to; ++step, next_stage()) {
            const unsigned a_tile = stage0 + stage * STAGE_BYTES + warp / 4 * 64 * ROW_BYTES;
            const unsigned b_tile = stage0 + stage * STAGE_BYTES + A_BYTES;
            barrier_wait(full0 + 8 * stage, phase);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK; k += 16)
                wgmma_k16<In, 0, 1>(acc, wgmma_descriptor(a_tile + k * 2),
                                    wgmma_descriptor(b_tile + k * ROW_BYTES, PANEL_BYTES), true);
            wgmma_commit();
            wgmma_wait<1>();  // the step before is done; this one runs on
            if (step > from && lane == 0) barrier_arrive(empty0 + 8 * previous);
            previous = stage;
        }
        wgmma_wait<0>();
        if (to > from && lane == 0) barrier_arrive(empty0 + 8 * previous);
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

#if SPLIT != 1
        // [put]
#if SPLIT > 1
        float* sums = reinterpret_cast<float*>(shared);
        constexpr int pitch = PITCH;
        named_barrier(1, CONSUMERS);  // nobody multiplies from the stages any more
#else
        float* sums = workspace[blockIdx.x][from == tile_begin][0];
        constexpr int pitch = BN;
#endif
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
#pragma unroll
            for (int lower = 0; lower < 2; ++lower) {
                const int r = warp * 16 + lane / 4 + 8 * lower, c = 8 * n + lane % 4 * 2;
                const float2 two = make_float2(acc[n][2 * lower], acc[n][2 * lower + 1]);
                if (row + r < M) *reinterpret_cast<float2*>(sums + r * pitch + c) = two;
            }
#if !SPLIT
        named_barrier(1, CONSUMERS);
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&arrivals[shares.owner(tile_begin)], 1);
        }
#endif
        // [/put]
#endif
    } while (step < end);

#if SPLIT != 1
    // [reduce]
    const int last_tile = max(begin, end - 1) / k_steps;
    for (int tile = begin / k_steps; tile <= last_tile; tile = max(tile + 1, last_tile)) {
#if SPLIT > 1
        constexpr int peers = SPLIT;
        const int me = part_at;
        cluster_exchange();
        auto part = [&](int peer, int r, int c) { return load4_from(stage0 + (r * PITCH + c) * 4, peer); };
#else
        const int first = shares.owner(tile * k_steps);
        const int peers = shares.owner((tile + 1) * k_steps - 1) - first + 1, me = blockIdx.x - first;
        if (peers == 1) continue;
        if (threadIdx.x == 0)
            while (load_acquire(&arrivals[first]) < peers) continue;
        __syncwarp();
        named_barrier(1, CONSUMERS);
        auto part = [&](int peer, int r, int c) {
            return __ldcg(reinterpret_cast<const float4*>(&workspace[first + peer][peer == 0][r][c]));
        };
#endif

        // A thread adds up four neighbours of a row at a time; the slice is a share of the rows inside of C.
        constexpr int IN_FLIGHT = BM * BN > 128 * 128 ? 8 : 32;  // sums of others that a thread reads at once
        const int row = tile % tile_rows * BM, col = tile / tile_rows * BN;
        const int fours = min(BM, M - row) * (BN / 4);
#pragma unroll 2
        for (int i = fours * me / peers + threadIdx.x; i < fours * (me + 1) / peers; i += CONSUMERS) {
            const int r = i / (BN / 4), c = i % (BN / 4) * 4;
            float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll IN_FLIGHT
            for (int peer = 0; peer < peers; ++peer) {
                const float4 v = part(peer, r, c);
                sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
            }
            if (col + c >= N) continue;
            sum = make_float4(alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w);
            Out* target = C + static_cast<long long>(row + r) * N + col + c;
            if (beta != 0.0f) {  // beta = 0 must not read C: it may hold anything
                const float4 old = load4(target);
                sum =
                    make_float4(sum.x + beta * old.x, sum.y + beta * old.y, sum.z + beta * old.z, sum.w + beta * old.w);
            }
            store4(target, sum);
        }

        __syncwarp();
#if SPLIT > 1
        cluster_sync();  // a block must not end while others read its shared memory
#else
        named_barrier(1, CONSUMERS);  // the last one to have read leaves everything as it was
        if (threadIdx.x == 0 && atomicAdd(&arrivals[first], 1) == 2 * peers - 1) atomicExch(&arrivals[first], 0);
#endif
    }
    // [/reduce]
#endif
}
