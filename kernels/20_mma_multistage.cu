// mma_multistage: everything at once. One block per multiprocessor stays for the whole product and walks its tiles as
// one stream of k-steps, so that copies for the next tile are in flight while the last one is being stored.
// Changed from mma_swizzled: STAGES shared-memory stages, fragments double-buffered in registers, a few loads between
// the rows of mma, tiles in an order that suits L2, guarded edges, fp32 or fp16 output (-DHALF_OUTPUT=1).
// Tiles: block BM x BN x BK, warp WM x WN, mma 16 x 8 x 16. K and N in multiples of 8 (16-byte rows).
#include "epilogue.cuh"
#include "ptx.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 256
#endif
#ifndef BK
#define BK 64
#endif
#ifndef WM
#define WM 64
#endif
#ifndef WN
#define WN 64
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef GROUP
#define GROUP 8  // blocks take tiles down a column of GROUP tiles, then down the column beside it
#endif
#ifndef HALF_OUTPUT
#define HALF_OUTPUT 0
#endif

#if HALF_OUTPUT
using Out = half;
#else
using Out = float;
#endif

constexpr int WARPS = (BM / WM) * (BN / WN);
constexpr int THREADS = 32 * WARPS;
constexpr int A_CHUNKS = BK / 8;  // 16-byte chunks (8 halves) in a row of As
constexpr int B_CHUNKS = BN / 8;  // and in a row of Bs
constexpr int A_BYTES = BM * BK * 2;
constexpr int STAGE_BYTES = A_BYTES + BK * BN * 2;
constexpr int M_ATOMS = WM / 16;
constexpr int N_ATOMS = WN / 8;
constexpr int K_ATOMS = BK / 16;
constexpr int FRAGMENTS = M_ATOMS + N_ATOMS / 2;                            // a warp's ldmatrix.x4 for one k
constexpr int A_ROW_STEP = THREADS / A_CHUNKS, A_COPIES = BM / A_ROW_STEP;  // rows and copies of one thread
constexpr int B_ROW_STEP = THREADS / B_CHUNKS, B_COPIES = BK / B_ROW_STEP;
constexpr int COPIES = A_COPIES + B_COPIES;
constexpr int LOAD_ROWS = M_ATOMS > 1 ? M_ATOMS / 2 : 1;  // rows of mma, with the next k's ldmatrix before them
static_assert(A_CHUNKS == 4 || A_CHUNKS == 8, "rows of As are 64 or 128 bytes");
static_assert(B_CHUNKS >= 8 && N_ATOMS % 2 == 0 && BM % WM == 0 && BN % WN == 0, "tiles must nest");
static_assert(A_ROW_STEP % 8 == 0 && B_ROW_STEP % 8 == 0, "all copies of a thread share one swizzle mask");
static_assert(A_COPIES * A_ROW_STEP == BM && B_COPIES * B_ROW_STEP == BK, "every thread copies whole chunks");

// [swizzle]
// Where 16-byte chunk (row, chunk) stands: XOR spreads the 8 rows that one ldmatrix phase reads over all banks.
// A row of 64 bytes shares its 128 bytes of banks with a neighbour, so there every second row changes the mask.
__device__ __forceinline__ int a_offset(int row, int chunk) {
    const int mask = A_CHUNKS == 8 ? row & 7 : row / 2 & 3;
    return (row * A_CHUNKS + (chunk ^ mask)) * 16;
}
__device__ __forceinline__ int b_offset(int row, int chunk) { return (row * B_CHUNKS + (chunk ^ (row & 7))) * 16; }
// [/swizzle]

// [raster]
// The position of tile number `tile` in C: down GROUP rows, then the next column, so that the blocks that run at
// the same time read few rows of A and few columns of B, and find most of them in L2.
__device__ __forceinline__ void tile_position(int tile, int tile_rows, int tile_cols, int& row, int& col) {
    const int per_group = GROUP * tile_cols;
    const int first_row = tile / per_group * GROUP;
    const int rows = min(tile_rows - first_row, GROUP);
    row = (first_row + tile % per_group % rows) * BM;
    col = tile % per_group / rows * BN;
}
// [/raster]

__device__ __forceinline__ int stage_after(int stage) { return stage + 1 == STAGES ? 0 : stage + 1; }

// The element `rows` rows further down, by one instruction for each copy. To keep a pointer for every copy would
// cost registers; to move one pointer on would hold the warp at each copy until the one before has been issued.
__device__ __forceinline__ const half* rows_below(const half* pointer, int rows, int pitch) {
    const half* result;
    asm volatile("mad.wide.s32 %0, %1, %2, %3;" : "=l"(result) : "r"(pitch), "r"(rows * 2), "l"(pointer));
    return result;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_mma_multistage(const half* __restrict__ A, const half* __restrict__ B, Out* __restrict__ C, int M, int N,
                        int K, float alpha, float beta) {
    extern __shared__ __align__(128) unsigned char shared[];
    const unsigned stage0 = shared_address(shared);
    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const int warp_row = thread / 32 / (BN / WN) * WM;
    const int warp_col = thread / 32 % (BN / WN) * WN;
    const int tile_rows = (M + BM - 1) / BM;
    const int tile_cols = (N + BN - 1) / BN;
    const int tiles = tile_rows * tile_cols;

    // [load]
    // A thread copies the same column of every A_ROW_STEP-th row of A, and of every B_ROW_STEP-th row of B.
    const int a_row = thread / A_CHUNKS, a_col = thread % A_CHUNKS * 8;
    const int b_row = thread / B_CHUNKS, b_col = thread % B_CHUNKS * 8;
    const unsigned a_target = stage0 + a_offset(a_row, a_col / 8);
    const unsigned b_target = stage0 + A_BYTES + b_offset(b_row, b_col / 8);
    const half *a_source = A, *b_source = B;
    int load_tile = blockIdx.x - gridDim.x, load_k = K, load_stage = STAGES - 1;  // the step before the first
    int rows_inside, columns_inside, a_inside, b_inside;  // rows of a copy from a_inside, b_inside on are zeros
    auto copy_next_step = [&] {  // where the next k-step comes from, how much of it is inside, and which stage it fills
        a_source += BK;
        b_source += size_t(BK) * N;
        if (load_k >= K) {
            load_k = 0;
            load_tile += gridDim.x;
            int row, col;
            tile_position(min(load_tile, tiles - 1), tile_rows, tile_cols, row, col);
            a_source = A + size_t(row + a_row) * K + a_col;
            b_source = B + size_t(b_row) * N + col + b_col;
            rows_inside = load_tile < tiles ? M - row - a_row : 0;  // past the last tile, nothing is
            columns_inside = load_tile < tiles ? N - col - b_col : 0;
        }
        a_inside = load_k + a_col < K ? rows_inside : 0;
        b_inside = columns_inside > 0 ? K - load_k - b_row : 0;
        load_k += BK;
        load_stage = stage_after(load_stage);
    };
    auto copy_part = [&](int part) {  // number `part` of K_ATOMS parts of this thread's copies for that k-step
        const int first = part * COPIES / K_ATOMS, end = (part + 1) * COPIES / K_ATOMS;
#pragma unroll
        for (int i = first; i < end; ++i) {
            const int row = i < A_COPIES ? i * A_ROW_STEP : (i - A_COPIES) * B_ROW_STEP;
            if (i < A_COPIES)
                cp_async<16>(a_target + load_stage * STAGE_BYTES + row * BK * 2, rows_below(a_source, row, K),
                             row < a_inside);
            else
                cp_async<16>(b_target + load_stage * STAGE_BYTES + row * BN * 2, rows_below(b_source, row, N),
                             row < b_inside);
        }
    };
    // [/load]

    // [fragments]
    // ldmatrix row addresses of this lane. Moving by whole 8-row groups keeps the swizzle mask, so only the chunk
    // (k for A, n for B) needs an address of its own; everything else is a constant offset.
    unsigned a_address[K_ATOMS], b_address[N_ATOMS / 2];
#pragma unroll
    for (int k = 0; k < K_ATOMS; ++k) a_address[k] = stage0 + a_offset(warp_row + lane % 16, 2 * k + lane / 16);
#pragma unroll
    for (int n = 0; n < N_ATOMS / 2; ++n)
        b_address[n] = stage0 + A_BYTES + b_offset(lane % 16, warp_col / 8 + 2 * n + lane / 16);
    unsigned a[2][M_ATOMS][4], b[2][N_ATOMS / 2][4];
    int stage = 0;
    auto load_fragment = [&](int k, int i) {  // B first: the first row of atoms needs it all
        if (i < N_ATOMS / 2)
            ldmatrix_x4_trans(b[k % 2][i], b_address[i] + stage * STAGE_BYTES + k % K_ATOMS * 16 * BN * 2);
        else
            ldmatrix_x4(a[k % 2][i - N_ATOMS / 2],
                        a_address[k % K_ATOMS] + stage * STAGE_BYTES + (i - N_ATOMS / 2) * 16 * BK * 2);
    };
    auto load_fragments = [&](int k, int part) {  // number `part` of LOAD_ROWS parts of the ldmatrix for k
        const int first = part * FRAGMENTS / LOAD_ROWS, end = (part + 1) * FRAGMENTS / LOAD_ROWS;
#pragma unroll
        for (int i = first; i < end; ++i) load_fragment(k, i);
    };
    // [/fragments]

    float acc[M_ATOMS][N_ATOMS][4] = {};
    auto multiply_row = [&](int k, int m) {  // row m of this warp's atoms
#pragma unroll
        for (int n = 0; n < N_ATOMS; ++n)
            mma_m16n8k16(acc[m][n], a[k % 2][m], b[k % 2][n / 2][n % 2 * 2], b[k % 2][n / 2][n % 2 * 2 + 1]);
    };

    // [prologue]
#pragma unroll
    for (int step = 0; step < STAGES - 1; ++step) {
        copy_next_step();
#pragma unroll
        for (int part = 0; part < K_ATOMS; ++part) copy_part(part);
        cp_async_commit();
    }
    cp_async_wait<STAGES - 2>();
    __syncthreads();
#pragma unroll
    for (int part = 0; part < LOAD_ROWS; ++part) load_fragments(0, part);
    // [/prologue]

    // [compute]
    // While a warp multiplies k, the fragments of k + 1 come from shared memory, and copies of the k-step STAGES - 1
    // ahead are on their way from global memory. Both are issued a few at a time between rows of mma, so that no queue
    // fills and holds the warp. The two kinds are kept apart; mixed, they were not timed.
    auto multiply = [&](int k, bool copies) {
#pragma unroll
        for (int m = 0; m < M_ATOMS; ++m) {
            if (m < LOAD_ROWS) load_fragments(k + 1, m);   // before the first half of the rows
            if (copies && m == M_ATOMS - 1) copy_part(k);  // before the last
            multiply_row(k, m);
        }
    };
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        for (int k_step = 0; k_step < K; k_step += BK) {
            copy_next_step();
#pragma unroll
            for (int k = 0; k < K_ATOMS - 1; ++k) multiply(k, true);
            copy_part(K_ATOMS - 1);
            cp_async_commit();
            cp_async_wait<STAGES - 2>();  // this thread's part of the next stage has landed;
            __syncthreads();              // everybody's has, and everybody has read all of this stage
            stage = stage_after(stage);   // from here on, fragments come from the next one
            multiply(K_ATOMS - 1, false);
        }
        // [/compute]

        // [store]
        int row, col;
        tile_position(tile, tile_rows, tile_cols, row, col);
#pragma unroll
        for (int m = 0; m < M_ATOMS; ++m)
#pragma unroll
            for (int n = 0; n < N_ATOMS; n += 2) {
                store_atoms(C, M, N, row + warp_row + m * 16, col + warp_col + n * 8, acc[m][n], acc[m][n + 1], alpha,
                            beta);
#pragma unroll
                for (int i = 0; i < 4; ++i) acc[m][n][i] = acc[m][n + 1][i] = 0.0f;
            }
        // [/store]
    }
}
