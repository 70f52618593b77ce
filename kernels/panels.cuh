// The last step of tma_mma, wgmma_split and wgmma_fp8: C = alpha * sums + beta * C. A warp lays 16 rows of 128 bytes of
// C, a panel, into shared memory, and takes whole rows out, by itself or by TMA.
#pragma once
#include "hopper.cuh"

// Where 16-byte chunk `chunk` of row `row` stands in rows of 128 bytes that are swizzled by 128 bytes.
__device__ __forceinline__ int swizzled(int row, int chunk) { return row * 128 + (chunk ^ (row & 7)) * 16; }

__device__ __forceinline__ float2 load_two(const float* c) { return *reinterpret_cast<const float2*>(c); }
__device__ __forceinline__ float2 load_two(const half* c) { return __half22float2(*reinterpret_cast<const half2*>(c)); }
__device__ __forceinline__ float2 load_two(const bf16* c) {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(c));
}

template <typename Out>
__device__ __forceinline__ unsigned pack_two(float2 v) {  // two 16-bit numbers, the first one in the low half
    if constexpr (IS_BF16<Out>) {
        const __nv_bfloat162 both = __floats2bfloat162_rn(v.x, v.y);
        return reinterpret_cast<const unsigned&>(both);
    } else {
        const half2 both = __floats2half2_rn(v.x, v.y);
        return reinterpret_cast<const unsigned&>(both);
    }
}

template <typename Out>
constexpr int PANEL_COLUMNS = 128 / sizeof(Out);
template <typename Out>
constexpr int PANEL_ATOMS = PANEL_COLUMNS<Out> / 8;
constexpr int STORE_BYTES = 16 * 128;  // of a panel

// `panel` = alpha * atoms + beta * C, where (row, col) is the panel's corner in C. All lanes call; N is even.
template <typename Out, typename Sum>
__device__ __forceinline__ void fill_panel(unsigned panel, const Out* C, int M, int N, int row, int col,
                                           const Sum (*atoms)[4], float alpha, float beta) {
    const int lane = threadIdx.x % 32;
    auto two = [&](int n, int lower) {  // what this lane has of atom n, in its upper or lower 8 rows
        const int r = row + lane / 4 + 8 * lower, c = col + 8 * n + lane % 4 * 2;
        const Sum* sums = atoms[n] + 2 * lower;
        float2 v = make_float2(alpha * static_cast<float>(sums[0]), alpha * static_cast<float>(sums[1]));
        if (beta != 0.0f && r < M && c < N) {  // beta = 0 must not read C: it may hold anything
            const float2 old = load_two(C + static_cast<long long>(r) * N + c);
            v = make_float2(v.x + beta * old.x, v.y + beta * old.y);
        }
        return v;
    };
    if constexpr (sizeof(Out) == 2) {
#pragma unroll
        for (int n = 0; n < PANEL_ATOMS<Out>; n += 2)
            stmatrix_x4(panel + swizzled(lane % 16, n + lane / 16),
                        {pack_two<Out>(two(n, 0)), pack_two<Out>(two(n, 1)), pack_two<Out>(two(n + 1, 0)),
                         pack_two<Out>(two(n + 1, 1))});
    } else {
#pragma unroll
        for (int n = 0; n < PANEL_ATOMS<Out>; ++n)
#pragma unroll
            for (int lower = 0; lower < 2; ++lower) {
                const float2 v = two(n, lower);
                const unsigned target = panel + swizzled(lane / 4 + 8 * lower, 2 * n + lane % 4 / 2) + lane % 2 * 8;
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(target), "f"(v.x), "f"(v.y) : "memory");
            }
    }
}

// C's panel at (row, col) = alpha * atoms + beta * C: four whole rows of 128 bytes by each store. A warp needs two
// panels in turns, so that nobody waits for those who still read. Rows of C are multiples of 16 bytes; all lanes call.
template <typename Out, typename Sum>
__device__ __forceinline__ void store_panel(unsigned panel, Out* C, int M, int N, int row, int col,
                                            const Sum (*atoms)[4], float alpha, float beta) {
    const int lane = threadIdx.x % 32;
    fill_panel(panel, C, M, N, row, col, atoms, alpha, beta);
    __syncwarp();
    const int chunk = lane % 8, c = col + chunk * (16 / sizeof(Out));
    Out* target = C + static_cast<long long>(row + lane / 8) * N + c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int r = lane / 8 + 4 * i;
        uint4 v;
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(panel + swizzled(r, chunk))
                     : "memory");
        if (row + r < M && c < N) *reinterpret_cast<uint4*>(target + 4LL * i * N) = v;
    }
}

// The same by TMA, which clips at C's edges and needs nobody's registers: `map` describes C in boxes of a panel. The
// warp has BUFFERS panels in turns; lane 0 must wait (tma_store_wait_read<0>) before the block ends.
template <int BUFFERS, typename Out, typename Sum>
__device__ __forceinline__ void tma_store_panel(unsigned panel, const TensorMap& map, const Out* C, int M, int N,
                                                int row, int col, const Sum (*atoms)[4], float alpha, float beta) {
    const int lane = threadIdx.x % 32;
    if (lane == 0) tma_store_wait_read<BUFFERS - 1>();  // the store that used this panel has read it
    __syncwarp();
    fill_panel(panel, C, M, N, row, col, atoms, alpha, beta);
    async_fence();
    __syncwarp();
    if (lane == 0) {
        tma_store(map, col, row, panel);
        tma_store_commit();
    }
}
