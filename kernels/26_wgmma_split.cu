// wgmma_split: shapes that do not fill the GPU. Blocks share tiles: each computes a part of the k-steps, then adds up a
// slice of the tile from everybody's sums, in a fixed order. Changed from wgmma_persistent: SPLIT = 2, 4, 8 blocks of a
// cluster share each tile (split_k.cuh); SPLIT = 0 deals out all k-steps equally to the blocks that fit the GPU
// (stream_k.cuh); SPLIT = 1 shares nothing.
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
#ifndef CLUSTER_N
#define CLUSTER_N 1  // tiles beside each other whose blocks load boxes of A for one another; likewise
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
constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;
static_assert(BM % A_BOX == 0 && A_BOX % 8 == 0, "whole copies of A, of whole groups of eight rows");
static_assert(BM % 64 == 0 && BN % PANEL_N == 0 && BN <= 256, "a warpgroup has 64 rows and up to 256 columns");
static_assert(SPLIT <= 1 || CLUSTER == 1, "a cluster shares one tile, or loads for tiles that are neighbours");
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

// [rows]
struct Output {  // C = alpha * sums + beta * C
    Out* C;
    int M, N;
    float alpha, beta;
};

// One panel of the output, through shared memory at `panel`, of which the warp takes four rows of 128 bytes at a time.
// The other panel is next, so that nobody waits for those who still read this one.
template <int ATOMS>
__device__ __forceinline__ void store_rows(unsigned panel, const float (&acc)[ATOMS][4], int number, const Output& out,
                                           int row, int col) {
    unsigned words[PANEL_WORDS];
    finish_panel(words, acc, number, out.C, out.M, out.N, row, col, out.alpha, out.beta);
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
        if (row + r < out.M && c < out.N) *reinterpret_cast<uint4*>(out.C + size_t(row + r) * out.N + c) = v;
    }
}
// [/rows]

// [share]
// What a thread knows of its block's share, and what is done at four points where tiles are shared; else nothing is.
struct Place {
    int warp, lane, rank;
    unsigned barrier, behind;  // unused so far: a barrier, and the shared memory behind the stages
    template <typename... What>
    __device__ void prepare(const What&...) const {}  // before the blocks of a cluster meet
    template <typename... What>
    __device__ void pass_on(const What&...) const {}  // the sums of a part of a tile, to those who share it
    template <typename... What>
    __device__ void complete(const What&...) const {}  // what this block finishes of that tile
    template <typename... What>
    __device__ void finish(const What&...) const {}  // after all its k-steps
};

// Share: which k-steps the block computes, counted through all tiles, and what it does at those points.
#if SPLIT > 1
#include "split_k.cuh"
#elif SPLIT == 0
#include "stream_k.cuh"
#else
struct Share : Place {  // whole tiles
    int begin, end;
    __device__ __forceinline__ Share(const Place& place, int tiles, int k_steps) : Place(place) {
        const int taker = blockIdx.x / CLUSTER;
        const Shares shares{tiles, static_cast<int>(gridDim.x) / CLUSTER};
        begin = shares.begin(taker) * k_steps;
        end = shares.begin(taker + 1) * k_steps;
    }
};
#endif
// [/share]

extern "C" __global__ void
#if SPLIT > 1 || CLUSTER_M * CLUSTER_N > 1
__cluster_dims__(SPLIT > 1 ? SPLIT : CLUSTER, 1, 1)
#endif
    __launch_bounds__(THREADS, PER_SM)
        gemm_wgmma_split(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, Out* __restrict__ C,
                         int M, int N, int K, float alpha, float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 1];
    const unsigned stage0 = shared_address(shared);
    const unsigned full0 = shared_address(barriers), empty0 = full0 + 8 * STAGES;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int rank = blockIdx.x % CLUSTER, cluster_row = rank % CLUSTER_M, cluster_col = rank / CLUSTER_M;
    const int tile_rows = (M + BM * CLUSTER_M - 1) / (BM * CLUSTER_M);
    const int tiles = tile_rows * ((N + BN * CLUSTER_N - 1) / (BN * CLUSTER_N));  // of a cluster's blocks together
    const int a_rows = min(BM, (M + A_BOX - 1) / A_BOX * A_BOX);                  // of a tile of A, that are copied
    const int k_steps = (K + BK - 1) / BK;
    auto row_of = [&](int tile) { return (tile % tile_rows * CLUSTER_M + cluster_row) * BM; };
    auto col_of = [&](int tile) { return (tile / tile_rows * CLUSTER_N + cluster_col) * BN; };
    const Output output{C, M, N, alpha, beta};
    const unsigned behind = stage0 + STAGES * STAGE_BYTES;  // of the stages: shared memory for sums and for C
    const Share share({warp, lane, rank, empty0 + 8 * STAGES, behind}, tiles, k_steps);
    const int begin = share.begin, end = share.end;

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
                barrier_init(empty0 + 8 * i, CONSUMER_WARPS * (CLUSTER_M + CLUSTER_N - 1));
            }
            barrier_init_fence();
        }
        __syncwarp();
        named_barrier_arrive(2, THREADS);  // the others wait for the barriers; this warp can begin
        if (CLUSTER > 1) cluster_arrive(), cluster_wait();
        if (lane == 0) {
            wait_for_last_kernel();
            unsigned short same_row = 0, same_col = 0;  // a bit for each block that needs this tile of A, of B
            for (int n = 0; n < CLUSTER_N; ++n) same_row |= 1 << (n * CLUSTER_M + cluster_row);
            for (int m = 0; m < CLUSTER_M; ++m) same_col |= 1 << (cluster_col * CLUSTER_M + m);
            for (int step = begin; step < end; ++step, next_stage()) {
                const int tile = step / k_steps, row = row_of(tile), col = col_of(tile);
                const int k = step % k_steps * BK;
                const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                const unsigned full = full0 + 8 * stage;
                barrier_wait(empty0 + 8 * stage, phase ^ 1);  // the first time round this returns at once
                barrier_expect(full, STAGE_BYTES - (BM - a_rows) * PITCH);
#pragma unroll
                for (int panel = cluster_row; panel < BN / PANEL_N; panel += CLUSTER_M)
                    tma_load_shared<CLUSTER_M>(b_tile + panel * PANEL_BYTES, B, col + panel * PANEL_N, k, full,
                                               same_col);
                for (int r = cluster_col * A_BOX; r < a_rows; r += CLUSTER_N * A_BOX)
                    tma_load_shared<CLUSTER_N>(a_tile + r * PITCH, A, k, row + r, full, same_row);
            }
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

    share.prepare(row_of, M);
    named_barrier(2, THREADS);
    // With SPLIT the loading warps take no part: a warp that has ended counts as arrived.
    if (SPLIT > 1 || CLUSTER > 1) cluster_arrive();
    if (CLUSTER > 1) cluster_wait();
    wait_for_last_kernel();
    // A lane for each block that sends to this one: those in its row and in its column of the cluster.
    const bool sender = lane < CLUSTER && (lane % CLUSTER_M == cluster_row || lane / CLUSTER_M == cluster_col);
    auto release = [&](int stage) {
        if (CLUSTER == 1 && lane == 0) barrier_arrive(empty0 + 8 * stage);
        if (CLUSTER > 1 && sender) barrier_arrive_at(empty0 + 8 * stage, lane);
    };
    const unsigned staging = behind + warp * BUFFERS * PANEL_OUT_BYTES;
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
                store_rows(staging + turn++ % BUFFERS * PANEL_OUT_BYTES, acc, panel, output, row + warp * 16, col);
            continue;
        }
        // [/store]

        share.pass_on(acc, output, row, tile_begin, from);
        if (SPLIT > 1 && row + warp * 16 >= M) break;  // a warp without rows in C
        share.complete(acc, output, row, col, turn);
    } while (step < end);

    share.finish(row_of, col_of, k_steps, output);
    if (CLUSTER > 1) {  // a block must not end while others arrive at its barriers
        __syncwarp();
        cluster_sync();
    }
}
