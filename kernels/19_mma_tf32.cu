// mma_tf32: fp32 matrices through the tensor cores, rounded to tf32 on the way. A comes M-major (column-major), so a
// fragment is read along m with 128-bit loads: ldmatrix moves 16-bit pairs and cannot transpose 32-bit elements.
// Changed from mma_swizzled: shared memory and fragments are both double-buffered, the one feeding the other. Fewer
// operations per second than fp16 has: a tf32 mma does half the work in the same time. Compare it with cuBLAS in tf32.
// Block BM x BN x BK, warp WM x WN, mma 16 x 8 x 8; A (K, M), B (K, N), C (M, N) in whole tiles; sm_80 (tf32).
#include "ptx.cuh"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef BK
#define BK 16
#endif
#ifndef WM
#define WM 64
#endif
#ifndef WN
#define WN 64
#endif
#ifndef STAGES
#define STAGES 2
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif

constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
constexpr int A_PITCH = BM + 8;  // floats in a row of As: rows k .. k + 3 start 8 banks apart
constexpr int B_PITCH = BN + 8;
constexpr int A_FLOATS = BK * A_PITCH;
constexpr int STAGE_FLOATS = A_FLOATS + BK * B_PITCH;
constexpr int M_GROUPS = WM / 32, N_GROUPS = WN / 32;  // 32 rows feed two atoms of 16, 32 columns four atoms of 8
constexpr int FRAGMENTS = 2 * (M_GROUPS + N_GROUPS);   // 128-bit loads for one k
constexpr int K_ATOMS = BK / 8;
constexpr int ROWS = WM / 16;          // rows of atoms: between them, loads for later are issued
constexpr int SLOTS = K_ATOMS * ROWS;  // places in a k-step where copies are issued
constexpr int A_ROW_STEP = 4 * THREADS / BM, A_COPIES = BK / A_ROW_STEP;  // rows and copies of one thread
constexpr int B_ROW_STEP = 4 * THREADS / BN, B_COPIES = BK / B_ROW_STEP;
constexpr int COPIES = A_COPIES + B_COPIES;
static_assert(BK % A_ROW_STEP == 0 && BK % B_ROW_STEP == 0, "every thread copies whole chunks");
static_assert(BM % WM == 0 && BN % WN == 0 && WM % 32 == 0 && WN % 32 == 0, "tiles must nest");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_mma_tf32(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                  float alpha, float beta) {
    extern __shared__ __align__(128) float shared[];
    const int lane = threadIdx.x % 32;
    const int group = lane / 4, member = lane % 4;  // an atom's row (A, C) or column (B), and its k
    const int warp_row = threadIdx.x / 32 / (BN / WN) * WM;
    const int warp_col = threadIdx.x / 32 % (BN / WN) * WN;
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;

    // [load]
    // A thread copies the same 16 bytes of every A_ROW_STEP-th row of A and every B_ROW_STEP-th row of B.
    const int a_row = threadIdx.x / (BM / 4), a_col = threadIdx.x % (BM / 4) * 4;
    const int b_row = threadIdx.x / (BN / 4), b_col = threadIdx.x % (BN / 4) * 4;
    const unsigned a_target = shared_address(shared + a_row * A_PITCH + a_col);
    const unsigned b_target = shared_address(shared + A_FLOATS + b_row * B_PITCH + b_col);
    const float* a_source = A + size_t(a_row) * M + block_row + a_col;
    const float* b_source = B + size_t(b_row) * N + block_col + b_col;
    const size_t a_step = size_t(A_ROW_STEP) * M, b_step = size_t(B_ROW_STEP) * N;
    int load_k = 0;
    auto load_slot = [&](int stage, int slot) {  // this thread's copies in one of the SLOTS of a k-step
#pragma unroll
        for (int i = slot * COPIES / SLOTS; i < (slot + 1) * COPIES / SLOTS; ++i) {
            if (i < A_COPIES) {
                cp_async<16>(a_target + 4 * (stage * STAGE_FLOATS + i * A_ROW_STEP * A_PITCH), a_source, load_k < K);
                a_source += a_step;
            } else {
                const int j = i - A_COPIES;
                cp_async<16>(b_target + 4 * (stage * STAGE_FLOATS + j * B_ROW_STEP * B_PITCH), b_source, load_k < K);
                b_source += b_step;
            }
        }
    };
    // [/load]

    // [fragments]
    // Which 16 of a warp's rows form an atom is ours to choose, if C is stored by the same rule. Row `group` and
    // row `group + 8` of two atoms are rows 4 * group .. 4 * group + 3 of 32, so one 128-bit load brings all four;
    // likewise column `group` of four atoms of B. A quarter of a warp reads 4 rows, 8 banks each: no conflict.
    unsigned a[2][M_GROUPS][2][4], b[2][N_GROUPS][2][4];  // [buffer][group of 32][k = member, member + 4][row, column]
    auto fragment = [&](int buffer, int i) -> unsigned (&)[4] {  // the loads of one k in order: B, then A
        if (i < 2 * N_GROUPS) return b[buffer][i / 2][i % 2];
        return a[buffer][i / 2 - N_GROUPS][i % 2];
    };
    auto load_fragment = [&](int buffer, int stage, int k, int i) {
        const int row = k * 8 + i % 2 * 4 + member;
        const float* source = shared + stage * STAGE_FLOATS;
        if (i < 2 * N_GROUPS)
            source += A_FLOATS + row * B_PITCH + warp_col + i / 2 * 32 + group * 4;
        else
            source += row * A_PITCH + warp_row + (i / 2 - N_GROUPS) * 32 + group * 4;
        const uint4 four = *reinterpret_cast<const uint4*>(source);
        unsigned (&r)[4] = fragment(buffer, i);
        r[0] = four.x, r[1] = four.y, r[2] = four.z, r[3] = four.w;
    };
    auto round_fragment = [&](int buffer, int i) {
        unsigned (&r)[4] = fragment(buffer, i);
#pragma unroll
        for (int j = 0; j < 4; ++j) r[j] = nudge_to_tf32(__uint_as_float(r[j]));
    };
    // [/fragments]

    float acc[M_GROUPS][N_GROUPS][2][4][4] = {};  // [group of rows][group of columns][row atom][column atom][element]
    // [multiply]
    auto multiply_row = [&](int buffer, int row) {
        const unsigned (&low)[4] = a[buffer][row / 2][0], (&high)[4] = a[buffer][row / 2][1];
        const int i = row % 2 * 2;
        const unsigned rows[4] = {low[i], low[i + 1], high[i], high[i + 1]};
#pragma unroll
        for (int n = 0; n < N_GROUPS; ++n)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                mma_m16n8k8_tf32(acc[row / 2][n][row % 2][j], rows, b[buffer][n][0][j], b[buffer][n][1][j]);
    };
    // [/multiply]

    // [pipeline]
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
#pragma unroll
        for (int slot = 0; slot < SLOTS; ++slot) load_slot(stage, slot);
        load_k += BK;
        cp_async_commit();
    }
    cp_async_wait<STAGES - 2>();
    __syncthreads();
#pragma unroll
    for (int slot = 0; slot < ROWS; ++slot) load_slot(STAGES - 1, slot);
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) {
        load_fragment(0, 0, 0, i);
        round_fragment(0, i);
    }
    int read_stage = 0, write_stage = STAGES - 1;
    auto multiply = [&](int k) {  // while the fragments of k + 1 are loaded, then rounded, and copies are issued
        const int next_k = (k + 1) % K_ATOMS, next = (k + 1) % 2;
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
#pragma unroll
            for (int i = 0; i < FRAGMENTS; ++i) {
                const int load_row = i * (ROWS / 2) / FRAGMENTS;  // loads before the first half of the rows of mma,
                if (row == load_row) load_fragment(next, read_stage, next_k, i);
                if (row == load_row + ROWS / 2) round_fragment(next, i);  // roundings before the second
            }
            load_slot(write_stage, next_k * ROWS + row);
            multiply_row(k % 2, row);
        }
    };
    for (int k_step = 0; k_step < K; k_step += BK) {
#pragma unroll
        for (int k = 0; k < K_ATOMS - 1; ++k) multiply(k);
        load_k += BK;
        cp_async_commit();
        cp_async_wait<STAGES - 2>();  // this thread's part of the next stage has landed;
        __syncthreads();              // everybody's has, and everybody has read all of this stage:
        write_stage = read_stage;     // it is filled next,
        read_stage = read_stage + 1 == STAGES ? 0 : read_stage + 1;  // and fragments come from the one after it
        multiply(K_ATOMS - 1);
    }
    // [/pipeline]

    // [store]
    // Element (row, column) of the atoms goes where the fragments were read: 8 neighbouring columns per lane.
#pragma unroll
    for (int m = 0; m < M_GROUPS; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // atom i / 2, upper or lower half i % 2: row 4 * group + i of 32
            const int row = block_row + warp_row + m * 32 + group * 4 + i;
#pragma unroll
            for (int n = 0; n < N_GROUPS; ++n)
#pragma unroll
                for (int pair = 0; pair < 2; ++pair) {
                    const int col = block_col + warp_col + n * 32 + member * 8 + pair * 4;
                    float4* target = reinterpret_cast<float4*>(C + size_t(row) * N + col);
                    const int e = i % 2 * 2 + pair;
                    float4 value = make_float4(alpha * acc[m][n][i / 2][0][e], alpha * acc[m][n][i / 2][1][e],
                                               alpha * acc[m][n][i / 2][2][e], alpha * acc[m][n][i / 2][3][e]);
                    if (beta != 0.0f) {
                        const float4 old = *target;
                        value.x += beta * old.x, value.y += beta * old.y;
                        value.z += beta * old.z, value.w += beta * old.w;
                    }
                    *target = value;
                }
        }
    // [/store]
}
