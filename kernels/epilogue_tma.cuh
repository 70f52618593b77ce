// The last step of the rungs that store by TMA: C = alpha * accumulator + beta * C goes from registers through shared
// memory, where stmatrix lays rows of 128 bytes, swizzled, and TMA takes them to C while the warp goes on computing.
#pragma once
#include "hopper.cuh"

constexpr int STORE_ROWS = 16;    // rows of C that a warp holds in one wgmma, and that one TMA store takes
constexpr int STORE_BUFFERS = 2;  // stores of a warp that may be on their way
constexpr int STORE_BYTES = STORE_ROWS * 128;

__device__ __forceinline__ unsigned pack(half, float x, float y) {
    const half2 pair = __floats2half2_rn(x, y);
    return reinterpret_cast<const unsigned&>(pair);
}
__device__ __forceinline__ unsigned pack(bf16, float x, float y) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
    return reinterpret_cast<const unsigned&>(pair);
}

// acc = alpha * acc + beta * C for the rows from `row` on and the columns from `col` on. C is read only if beta is not 0.
template <typename Out, int ATOMS>
__device__ __forceinline__ void scale_and_add(float (&acc)[ATOMS][4], const Out* C, int M, int N, int row, int col,
                                              float alpha, float beta) {
    const int lane = threadIdx.x % 32;
    if (alpha != 1.0f) {
#pragma unroll
        for (int n = 0; n < ATOMS; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) acc[n][i] *= alpha;
    }
    if (beta != 0.0f) {
#pragma unroll
        for (int n = 0; n < ATOMS; ++n)
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                const int r = row + lane / 4 + 4 * i, c = col + 8 * n + lane % 4 * 2;
                if (r >= M || c >= N) continue;
                const Out* old = C + static_cast<long long>(r) * N + c;
                acc[n][i] += beta * static_cast<float>(old[0]);
                acc[n][i + 1] += beta * static_cast<float>(old[1]);
            }
    }
}

// Lay 16 rows of 128 bytes of the output into shared memory at `buffer`, from atom `first` on. The chunk of 16 bytes is
// XORed with the row, as the tensor map says: no two of the eight rows of a matrix meet in a bank.
template <int ATOMS>
__device__ __forceinline__ void lay_rows(float*, unsigned buffer, const float (&acc)[ATOMS][4], int first) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int lower = 0; lower < 2; ++lower) {
            const int row = lane / 4 + 8 * lower, chunk = 2 * n + lane % 4 / 2;
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(buffer + row * 128 + (chunk ^ row % 8) * 16 +
                                                                  lane % 2 * 8),
                         "f"(acc[first + n][2 * lower]), "f"(acc[first + n][2 * lower + 1])
                         : "memory");
        }
}
template <typename Out, int ATOMS>
__device__ __forceinline__ void lay_rows(Out*, unsigned buffer, const float (&acc)[ATOMS][4], int first) {
    const int row = threadIdx.x % 16, right = threadIdx.x % 32 / 16;  // of the matrices whose rows this lane points at
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
        const auto &left_atom = acc[first + n], &right_atom = acc[first + n + 1];
        const unsigned matrices[4] = {pack(Out(), left_atom[0], left_atom[1]), pack(Out(), left_atom[2], left_atom[3]),
                                      pack(Out(), right_atom[0], right_atom[1]),
                                      pack(Out(), right_atom[2], right_atom[3])};
        stmatrix_x4(buffer + row * 128 + (n + right ^ row % 8) * 16, matrices);
    }
}

// Store a warp's 16 rows of C, 8 * ATOMS columns from (row, col) on, through its STORE_BUFFERS * STORE_BYTES of shared
// memory at `staging`. Returns while the last stores still read there. `map` has boxes of 16 rows of 128 bytes.
template <typename Out, int ATOMS>
__device__ __forceinline__ void store_by_tma(const TensorMap& map, const Out* C, int M, int N, int row, int col,
                                             float (&acc)[ATOMS][4], float alpha, float beta, unsigned staging) {
    constexpr int PANEL = 128 / sizeof(Out);  // columns that go together
    const bool leader = threadIdx.x % 32 == 0;
    scale_and_add(acc, C, M, N, row, col, alpha, beta);
#pragma unroll
    for (int panel = 0; panel < 8 * ATOMS / PANEL; ++panel) {
        const unsigned buffer = staging + panel % STORE_BUFFERS * STORE_BYTES;
        if (leader) tma_store_wait_read<STORE_BUFFERS - 1>();  // what this buffer held has been read
        __syncwarp();
        lay_rows(static_cast<Out*>(nullptr), buffer, acc, panel * PANEL / 8);
        async_fence();
        __syncwarp();
        if (leader) {
            tma_store(map, col + panel * PANEL, row, buffer);
            tma_store_commit();
        }
    }
}
