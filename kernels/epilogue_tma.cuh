// The last step of the rungs that store by TMA: C = alpha * accumulator + beta * C goes from registers through shared
// memory, where stmatrix lays rows of 128 bytes, swizzled, and TMA takes them to C while the warp goes on computing.
// The rung says by BUFFERS how many panels of a warp may be on their way.
#pragma once
#include "hopper.cuh"

// A panel is what one TMA store takes: the 16 rows of C that a warp holds in one mma or wgmma, 128 bytes of each.
constexpr int PANEL_ROWS = 16;
constexpr int PANEL_OUT_BYTES = PANEL_ROWS * 128;
constexpr int PANEL_WORDS = PANEL_OUT_BYTES / 4 / 32;  // of a lane
template <typename Out>
constexpr int PANEL_COLS = 128 / sizeof(Out);

__device__ __forceinline__ unsigned pack(half, float x, float y) {
    const half2 pair = __floats2half2_rn(x, y);
    return reinterpret_cast<const unsigned&>(pair);
}
__device__ __forceinline__ unsigned pack(bf16, float x, float y) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
    return reinterpret_cast<const unsigned&>(pair);
}

// How a panel's values stand in a lane's words: of fp32 one each, of the 16-bit types two neighbours.
__device__ __forceinline__ void to_words(float, unsigned (&words)[PANEL_WORDS], const float (&values)[4][4]) {
#pragma unroll
    for (int i = 0; i < 16; ++i) words[i] = __float_as_uint(values[i / 4][i % 4]);
}
template <typename Out>
__device__ __forceinline__ void to_words(Out, unsigned (&words)[PANEL_WORDS], const float (&values)[8][4]) {
#pragma unroll
    for (int i = 0; i < 16; ++i) words[i] = pack(Out(), values[i / 2][i % 2 * 2], values[i / 2][i % 2 * 2 + 1]);
}

// The words of panel number `panel` of alpha * acc + beta * C, in the output's type. The warp's rows begin at (row,
// col) of C, which is M x N and read only if beta is not 0.
template <typename Out, int ATOMS>
__device__ __forceinline__ void finish_panel(unsigned (&words)[PANEL_WORDS], const float (&acc)[ATOMS][4], int panel,
                                             const Out* C, int M, int N, int row, int col, float alpha, float beta) {
    constexpr int PANEL_ATOMS = PANEL_COLS<Out> / 8;
    const int lane = threadIdx.x % 32;
    float values[PANEL_ATOMS][4];
#pragma unroll
    for (int n = 0; n < PANEL_ATOMS; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) values[n][i] = alpha * acc[panel * PANEL_ATOMS + n][i];
    if (beta != 0.0f) {
#pragma unroll
        for (int n = 0; n < PANEL_ATOMS; ++n)
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                const int r = row + lane / 4 + 4 * i, c = col + (panel * PANEL_ATOMS + n) * 8 + lane % 4 * 2;
                if (r >= M || c >= N) continue;
                const Out* old = C + size_t(r) * N + c;
                values[n][i] += beta * static_cast<float>(old[0]);
                values[n][i + 1] += beta * static_cast<float>(old[1]);
            }
    }
    to_words(Out(), words, values);
}

// Lay a panel into shared memory. The 16-byte chunk is XORed with the row, as the tensor map says, so that no two of
// the eight rows of a matrix meet in a bank. Of fp32 a row of an atom is two chunks, which alone would leave two rows
// in the same banks: odd rows lay another atom at the same time.
__device__ __forceinline__ void lay_panel(float, unsigned buffer, const unsigned (&words)[PANEL_WORDS]) {
    const int lane = threadIdx.x % 32;
    const bool odd = lane / 4 % 2;
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            const unsigned x = words[4 * n + i], other_x = words[4 * (n ^ 2) + i];
            const unsigned y = words[4 * n + i + 1], other_y = words[4 * (n ^ 2) + i + 1];
            const int row = lane / 4 + 4 * i, chunk = 2 * (odd ? n ^ 2 : n) + lane % 4 / 2;
            asm volatile(
                "st.shared.v2.b32 [%0], {%1, %2};" ::"r"(buffer + row * 128 + (chunk ^ row % 8) * 16 + lane % 2 * 8),
                "r"(odd ? other_x : x), "r"(odd ? other_y : y)
                : "memory");
        }
}
template <typename Out>
__device__ __forceinline__ void lay_panel(Out, unsigned buffer, const unsigned (&words)[PANEL_WORDS]) {
    const int row = threadIdx.x % 16, right = threadIdx.x % 32 / 16;  // of the matrices whose rows this lane points at
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
        const unsigned matrices[4] = {words[2 * n], words[2 * n + 1], words[2 * n + 2], words[2 * n + 3]};
        stmatrix_x4(buffer + row * 128 + (n + right ^ row % 8) * 16, matrices);
    }
}

// Store a panel at (row, col) of C, the `turn`-th of a sequence, through the warp's BUFFERS * PANEL_OUT_BYTES of shared
// memory at `staging`. Returns while TMA still reads there. `map` has boxes of 16 rows of 128 bytes.
template <typename Out>
__device__ __forceinline__ void store_panel(const TensorMap& map, int row, int col,
                                            const unsigned (&words)[PANEL_WORDS], int turn, unsigned staging) {
    const unsigned buffer = staging + turn % BUFFERS * PANEL_OUT_BYTES;
    const bool leader = threadIdx.x % 32 == 0;
    if (leader) {  // what this buffer held has been read
        if (turn == 0)
            tma_store_wait_read<0>();
        else if (turn >= BUFFERS)
            tma_store_wait_read<BUFFERS - 1>();
    }
    __syncwarp();
    lay_panel(Out(), buffer, words);
    async_fence();
    __syncwarp();
    if (leader) {
        tma_store(map, col, row, buffer);
        tma_store_commit();
    }
}
