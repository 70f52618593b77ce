// tma_mma: one thread moves whole tiles. TMA brings them into STAGES swizzled stages, and takes C away while the next
// tile is computed; barriers count what has landed and who has read it, so no __syncthreads is left in the loop.
// Changed from mma_multistage: TMA, mbarriers and a warp that only loads, instead of cp.async; mma.sync still computes.
// Tiles: block BM x BN x 64, warp WM x 64, mma 16 x 8 x 16. K and N in multiples of 8 (16-byte rows); sm_90a.

#ifndef BM
#define BM 256
#endif
#ifndef BN
#define BN 128
#endif
#ifndef WM
#define WM 64
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef BUFFERS
#define BUFFERS 4  // panels of C, 16 rows of 128 bytes, that a warp may have on their way out
#endif
#ifndef GROUP
#define GROUP 8  // blocks take tiles down a column of GROUP tiles, then down the column beside it
#endif
#ifndef HALF_OUTPUT
#define HALF_OUTPUT 0
#endif

#include "epilogue_tma.cuh"

#if HALF_OUTPUT
using Out = half;
#else
using Out = float;
#endif

// [tiles]
constexpr int BK = 64;  // 128 bytes, as far as the swizzle reaches: a row of A in a stage
constexpr int PITCH = 128;
constexpr int WN = 64;  // columns of B that stand together, 128 bytes again: a warp reads one panel
constexpr int WARPS = (BM / WM) * (BN / WN);
constexpr int THREADS = 32 * WARPS + 128;  // setmaxnreg wants whole warpgroups: one warp of the last one loads
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;
constexpr int A_BYTES = BM * PITCH;
constexpr int PANEL_BYTES = BK * PITCH;
constexpr int STAGE_BYTES = A_BYTES + BN / WN * PANEL_BYTES;
constexpr int M_ATOMS = WM / 16, N_ATOMS = WN / 8, K_ATOMS = BK / 16;
constexpr int PANELS = WN / PANEL_COLS<Out>;      // of C beside each other in a warp's tile
constexpr int FRAGMENTS = M_ATOMS + N_ATOMS / 2;  // a warp's ldmatrix.x4 for one k
static_assert(BM % WM == 0 && BN % WN == 0 && WM % 32 == 0, "tiles must nest");
static_assert(WARPS == 8, "two warpgroups compute");
static_assert(M_ATOMS * PANELS % BUFFERS == 0, "every tile begins with the same panel");
// [/tiles]

// Where TMA puts 16-byte chunk `chunk` of row `row` of a tile of A, or of a panel of B.
__device__ __forceinline__ int swizzled(int row, int chunk) { return row * PITCH + (chunk ^ row % 8) * 16; }

// The position of tile number `tile` in C: down GROUP rows, then the next column, as in mma_multistage.
__device__ __forceinline__ void tile_position(int tile, int tile_rows, int tile_cols, int& row, int& col) {
    const int per_group = GROUP * tile_cols;
    const int first_row = tile / per_group * GROUP;
    const int rows = min(tile_rows - first_row, GROUP);
    row = (first_row + tile % per_group % rows) * BM;
    col = tile % per_group / rows * BN;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_tma_mma(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
                 const __grid_constant__ TensorMap C_map, const Out* __restrict__ C, int M, int N, int K, float alpha,
                 float beta) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stage0 = shared_address(shared);
    const unsigned full0 = shared_address(barriers), empty0 = full0 + 8 * STAGES;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / (BN / WN) * WM, warp_panel = warp % (BN / WN);
    const unsigned panel0 = stage0 + STAGES * STAGE_BYTES + warp * BUFFERS * PANEL_OUT_BYTES;
    const int tile_rows = (M + BM - 1) / BM, tile_cols = (N + BN - 1) / BN;
    const int tiles = tile_rows * tile_cols;

    // [barriers]
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full0 + 8 * stage, 1);       // the producer, and all bytes
            barrier_init(empty0 + 8 * stage, WARPS);  // each warp that reads
        }
        barrier_init_fence();
    }
    __syncthreads();
    // [/barriers]

    int stage = 0;
    unsigned phase = 0;  // how often all stages have been used, modulo 2
    auto next_stage = [&] {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        phase ^= stage == 0;
    };
    if (warp >= WARPS) {
        // [load]
        registers_shrink_to<PRODUCER_REGISTERS>();
        if (warp > WARPS || lane > 0) return;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            int row, col;
            tile_position(tile, tile_rows, tile_cols, row, col);
            for (int k_step = 0; k_step < K; k_step += BK, next_stage()) {
                const unsigned a_tile = stage0 + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
                const unsigned full = full0 + 8 * stage;
                barrier_wait(empty0 + 8 * stage, phase ^ 1);  // the first time round this returns at once
                barrier_expect(full, STAGE_BYTES);
                tma_load(a_tile, A, k_step, row, full);
#pragma unroll
                for (int panel = 0; panel < BN / WN; ++panel)
                    tma_load(b_tile + panel * PANEL_BYTES, B, col + panel * WN, k_step, full);
            }
        }
        return;
        // [/load]
    }
    registers_grow_to<CONSUMER_REGISTERS>();

    // [fragments]
    // A warp's rows of A and its panel of B are rows of 128 bytes. Moving by whole 8-row groups keeps the swizzle mask;
    // moving along a row by 32 bytes flips bits of the chunk's number.
    const unsigned a_lane = warp_row * PITCH + swizzled(lane % 16, lane / 16);
    const unsigned b_lane = A_BYTES + warp_panel * PANEL_BYTES + swizzled(lane % 16, lane / 16);
    unsigned a[2][M_ATOMS][4], b[2][N_ATOMS / 2][4];
    auto load_fragment = [&](int buffer, unsigned tile, int k, int i) {  // B first: the first row of atoms needs it all
        if (i < N_ATOMS / 2)
            ldmatrix_x4_trans(b[buffer][i], (tile + b_lane ^ i * 32) + k * 16 * PITCH);
        else
            ldmatrix_x4(a[buffer][i - N_ATOMS / 2], (tile + a_lane ^ k * 32) + (i - N_ATOMS / 2) * 16 * PITCH);
    };
    // [/fragments]

    barrier_wait(full0, 0);
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) load_fragment(0, stage0, 0, i);
    float acc[M_ATOMS][N_ATOMS][4] = {};
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        for (int k_step = 0; k_step < K; k_step += BK) {
            // [compute]
            const bool last = k_step + BK >= K && tile + gridDim.x >= tiles;
            unsigned here = stage0 + stage * STAGE_BYTES;
#pragma unroll
            for (int k = 0; k < K_ATOMS; ++k) {
                if (k == K_ATOMS - 1) {  // the warp has read all of this stage; the next one's first fragments follow
                    __syncwarp();
                    if (lane == 0) barrier_arrive(empty0 + 8 * stage);
                    next_stage();
                    if (!last) {  // else fragments of this stage are loaded again, and nobody uses them
                        barrier_wait(full0 + 8 * stage, phase);
                        here = stage0 + stage * STAGE_BYTES;
                    }
                }
#pragma unroll
                for (int m = 0; m < M_ATOMS; ++m) {
                    constexpr int HALF = M_ATOMS / 2;
#pragma unroll
                    for (int i = m * FRAGMENTS / HALF; m < HALF && i < (m + 1) * FRAGMENTS / HALF; ++i)
                        load_fragment((k + 1) % 2, here, (k + 1) % K_ATOMS, i);
#pragma unroll
                    for (int n = 0; n < N_ATOMS; ++n)
                        mma_m16n8k16(acc[m][n], a[k % 2][m], b[k % 2][n / 2][n % 2 * 2],
                                     b[k % 2][n / 2][n % 2 * 2 + 1]);
                }
            }
            // [/compute]
        }

        // [store]
        int row, col;
        tile_position(tile, tile_rows, tile_cols, row, col);
        const int warp_tile_row = row + warp_row, warp_tile_col = col + warp_panel * WN;
#pragma unroll
        for (int m = 0; m < M_ATOMS; ++m) {
#pragma unroll
            for (int p = 0; p < PANELS; ++p) {
                unsigned words[PANEL_WORDS];
                finish_panel(words, acc[m], p, C, M, N, warp_tile_row + m * 16, warp_tile_col, alpha, beta);
                store_panel<Out>(C_map, warp_tile_row + m * 16, warp_tile_col + p * PANEL_COLS<Out>, words,
                                 m * PANELS + p, panel0);
            }
#pragma unroll
            for (int n = 0; n < N_ATOMS; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) acc[m][n][i] = 0.0f;
        }
        // [/store]
    }
    if (lane == 0) tma_store_wait_read<0>();
}
