// mma_tf32: fp32 matrices through the tensor cores, rounded to tf32 on the way. A comes M-major (column-major), so a
// fragment is read along m with 128-bit loads: ldmatrix moves 16-bit pairs and cannot transpose 32-bit elements.
// Since mma_swizzled: shared memory and fragments are both double-buffered, the one feeding the other.
// Tiles: block BM x BN x BK, warp WM x WN, instruction 16 x 8 x 8. A is (K, M), B is (K, N), C is (M, N).
// Needs sm_80 (tf32), and M, N, K in whole tiles (its launcher pads).
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
constexpr int K_ATOMS = BK / 8;
static_assert(BM % WM == 0 && BN % WN == 0 && WM % 32 == 0 && WN % 32 == 0, "tiles must nest");
static_assert(BK * BM / 4 % THREADS == 0 && BK * BN / 4 % THREADS == 0, "every thread copies whole chunks");

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
    auto load = [&](int stage, int k0) {
        float* As = shared + stage * STAGE_FLOATS;
        float* Bs = As + A_FLOATS;
#pragma unroll
        for (int i = threadIdx.x; i < BK * BM / 4; i += THREADS) {
            const int k = i / (BM / 4), m = i % (BM / 4) * 4;
            cp_async<16>(shared_address(As + k * A_PITCH + m), A + static_cast<long long>(k0 + k) * M + block_row + m);
        }
#pragma unroll
        for (int i = threadIdx.x; i < BK * BN / 4; i += THREADS) {
            const int k = i / (BN / 4), n = i % (BN / 4) * 4;
            cp_async<16>(shared_address(Bs + k * B_PITCH + n), B + static_cast<long long>(k0 + k) * N + block_col + n);
        }
    };
    // [/load]

    // [fragments]
    // Which 16 of a warp's rows form an atom is ours to choose, if C is stored by the same rule. Row `group` and
    // row `group + 8` of two atoms are rows 4 * group .. 4 * group + 3 of 32, so one 128-bit load brings all four;
    // likewise column `group` of four atoms of B. A quarter of a warp reads 4 rows, 8 banks each: no conflict.
    float4 a[2][M_GROUPS][2], b[2][N_GROUPS][2];
    auto load_fragments = [&](int buffer, int stage, int k) {
        const float* As = shared + stage * STAGE_FLOATS + (k * 8 + member) * A_PITCH + warp_row + group * 4;
        const float* Bs = shared + stage * STAGE_FLOATS + A_FLOATS + (k * 8 + member) * B_PITCH + warp_col + group * 4;
#pragma unroll
        for (int upper = 0; upper < 2; ++upper) {  // k = member, and k = member + 4
#pragma unroll
            for (int m = 0; m < M_GROUPS; ++m)
                a[buffer][m][upper] = *reinterpret_cast<const float4*>(As + upper * 4 * A_PITCH + m * 32);
#pragma unroll
            for (int n = 0; n < N_GROUPS; ++n)
                b[buffer][n][upper] = *reinterpret_cast<const float4*>(Bs + upper * 4 * B_PITCH + n * 32);
        }
    };
    // [/fragments]

    float acc[M_GROUPS][N_GROUPS][2][4][4] = {};  // [group of rows][group of columns][row atom][column atom][element]
    // [multiply]
    auto multiply = [&](int buffer) {
        unsigned b_bits[N_GROUPS][4][2];
#pragma unroll
        for (int n = 0; n < N_GROUPS; ++n)
#pragma unroll
            for (int upper = 0; upper < 2; ++upper) {
                const float4 v = b[buffer][n][upper];
                b_bits[n][0][upper] = to_tf32(v.x), b_bits[n][1][upper] = to_tf32(v.y);
                b_bits[n][2][upper] = to_tf32(v.z), b_bits[n][3][upper] = to_tf32(v.w);
            }
#pragma unroll
        for (int m = 0; m < M_GROUPS; ++m) {
            const float4 v = a[buffer][m][0], w = a[buffer][m][1];
            const unsigned first[4] = {to_tf32(v.x), to_tf32(v.y), to_tf32(w.x), to_tf32(w.y)};
            const unsigned second[4] = {to_tf32(v.z), to_tf32(v.w), to_tf32(w.z), to_tf32(w.w)};
#pragma unroll
            for (int n = 0; n < N_GROUPS; ++n)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    mma_m16n8k8_tf32(acc[m][n][0][j], first, b_bits[n][j][0], b_bits[n][j][1]);
                    mma_m16n8k8_tf32(acc[m][n][1][j], second, b_bits[n][j][0], b_bits[n][j][1]);
                }
        }
    };
    // [/multiply]

    // [pipeline]
    const int steps = K / BK;
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        if (stage < steps) load(stage, stage * BK);
        cp_async_commit();
    }
    cp_async_wait<STAGES - 2>();
    __syncthreads();
    load_fragments(0, 0, 0);
    int read_stage = 0, write_stage = STAGES - 1;
    for (int step = 0; step < steps; ++step) {
        if (step + STAGES - 1 < steps) load(write_stage, (step + STAGES - 1) * BK);
        cp_async_commit();
#pragma unroll
        for (int k = 0; k < K_ATOMS; ++k) {
            if (k == K_ATOMS - 1) {  // the next stage must have landed, and everyone have left this one
                cp_async_wait<STAGES - 2>();
                __syncthreads();
                write_stage = read_stage;
                read_stage = read_stage + 1 == STAGES ? 0 : read_stage + 1;
            }
            load_fragments((k + 1) % 2, read_stage, (k + 1) % K_ATOMS);
            multiply(k % 2);
        }
    }
    // [/pipeline]

    // [store]
    // Element (row, column) of the atoms goes where the fragments were read: 8 neighbouring columns a lane.
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
                    float4* target = reinterpret_cast<float4*>(C + static_cast<long long>(row) * N + col);
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
