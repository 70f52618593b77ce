// What sm_100a adds to hopper.cuh, one wrapper each: tensor memory, and matrix products that one thread starts and a
// tensor core does on its own. Section numbers are those of the PTX ISA 9. PAIR: two blocks side by side work as one.
#pragma once
#include "hopper.cuh"

// ---- Tensor memory: 128 lanes x 512 columns of 32 bits in each multiprocessor. An address is lane << 16 | column.

// A whole warp takes COLUMNS columns, a power of two from 32; their address is written to shared memory. 9.7.16.7.1.
template <int COLUMNS, bool PAIR = false>
__device__ __forceinline__ void tensor_alloc(unsigned shared) {
    if constexpr (PAIR)
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared), "n"(COLUMNS)
                     : "memory");
    else
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared), "n"(COLUMNS)
                     : "memory");
}

// A whole warp gives them back, after everybody has done with them: nobody else will. 9.7.16.7.1: tcgen05.dealloc.
template <int COLUMNS, bool PAIR = false>
__device__ __forceinline__ void tensor_free(unsigned tensor) {
    if constexpr (PAIR)
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(tensor), "n"(COLUMNS) : "memory");
    else
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(tensor), "n"(COLUMNS) : "memory");
}

// What one thread does in tensor memory is ordered before what another does by a barrier between the two, with the
// first before it and the second after it. 9.7.16.11: tcgen05.fence.
__device__ __forceinline__ void tensor_fence_before() {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void tensor_fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

// Sixteen rows of two neighbouring atoms (8 columns each) of the accumulators, as store_atoms of epilogue.cuh takes
// them. A warp reaches the 32 lanes that its number modulo 4 gives it. 9.7.16.8.3: tcgen05.ld; 9.7.16.8.5: wait.
__device__ __forceinline__ void tensor_load_atoms(unsigned tensor, float (&left)[4], float (&right)[4]) {
    asm volatile(
        "tcgen05.ld.sync.aligned.16x256b.x2.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n"
        "tcgen05.wait::ld.sync.aligned;"
        : "=f"(left[0]), "=f"(left[1]), "=f"(left[2]), "=f"(left[3]), "=f"(right[0]), "=f"(right[1]), "=f"(right[2]),
          "=f"(right[3])
        : "r"(tensor)
        : "memory");
}

// ---- Products: D (tensor memory) = A (shared memory) * B (shared memory), plus D if `add`.

// Describes an operand as wgmma_descriptor does: rows of 128 bytes, swizzled over all of them. 9.7.16.4.1.
__device__ __forceinline__ unsigned long long tensor_descriptor(unsigned shared, int panel = 16) {
    constexpr unsigned long long SWIZZLE_128 = 2, EIGHT_ROWS = 1024 >> 4;
    return SWIZZLE_128 << 61 | 1ull << 46 | EIGHT_ROWS << 32 | static_cast<unsigned long long>(panel >> 4) << 16 |
           (shared & 0x3ffff) >> 4;
}

// Says what is multiplied: In (half or bf16) summed in fp32, m rows and n columns, A K-major, B N-major. 9.7.16.4.2.
template <typename In>
__device__ constexpr unsigned tensor_instruction(int m, int n) {
    constexpr unsigned SUMS_FP32 = 1 << 4, FORMAT = IS_BF16<In> ? 1 : 0, B_N_MAJOR = 1 << 16;
    return SUMS_FP32 | FORMAT << 7 | FORMAT << 10 | B_N_MAJOR | n / 8 << 17 | m / 16 << 24;
}

// One thread starts it; it is done when a later tensor_commit has arrived. 9.7.16.10.9: tcgen05.mma.
template <bool PAIR = false>
__device__ __forceinline__ void tensor_multiply(unsigned d, unsigned long long a, unsigned long long b,
                                                unsigned instruction, bool add) {
    if constexpr (PAIR)
        asm volatile(
            "{\n.reg .pred add;\nsetp.ne.b32 add, %4, 0;\n"
            "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, add;\n}" ::"r"(d),
            "l"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(add))
            : "memory");
    else
        asm volatile(
            "{\n.reg .pred add;\nsetp.ne.b32 add, %4, 0;\n"
            "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, add;\n}" ::"r"(d),
            "l"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(add))
            : "memory");
}

// ---- Products of numbers with block scales, which stand in tensor memory: a column holds 4 scales of each of 32 rows.

struct e2m1 {  // two numbers of 4 bits: a sign, 2 of exponent, 1 of mantissa
    unsigned char bits;
};

// Says what is multiplied: e4m3, 32 of them to a scale of ue8m0 (`byte` says which of a column's four), or e2m1, 16 to a
// scale of e4m3 and all four of the column; m rows, n columns, both K-major, summed in fp32. 9.7.16.4.2.
template <typename In>
__device__ constexpr unsigned tensor_instruction_scaled(int m, int n, int byte = 0) {
    constexpr unsigned FORMAT = IS_SAME<In, e2m1> ? 1 : 0, POWERS_OF_TWO = IS_SAME<In, e4m3> ? 1 << 23 : 0;
    return FORMAT << 7 | FORMAT << 10 | POWERS_OF_TWO | n / 8 << 17 | m / 128 << 27 | byte << 29 | byte << 4;
}

// As tensor_multiply, 32 bytes of k; the scales of A and B from their columns on. 9.7.16.10.9.1.
template <typename In>
__device__ __forceinline__ void tensor_multiply_scaled(unsigned d, unsigned long long a, unsigned long long b,
                                                       unsigned instruction, unsigned a_scales, unsigned b_scales,
                                                       bool add) {
    if constexpr (IS_SAME<In, e2m1>)
        asm volatile(
            "{\n.reg .pred add;\nsetp.ne.b32 add, %6, 0;\n"
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%4], [%5], "
            "add;\n}" ::"r"(d),
            "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales), "r"(static_cast<int>(add))
            : "memory");
    else
        asm volatile(
            "{\n.reg .pred add;\nsetp.ne.b32 add, %6, 0;\n"
            "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%4], [%5], "
            "add;\n}" ::"r"(d),
            "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales), "r"(static_cast<int>(add))
            : "memory");
}

// 512 bytes of scales, of 128 rows, to four columns: 16 bytes to each of 32 lanes, and to the other three times 32 as
// well. The same thread's products that follow find them there. 9.7.16.9.2: tcgen05.cp.
constexpr int SCALE_TILE_BYTES = 512;
__device__ __forceinline__ void tensor_copy_scales(unsigned tensor, unsigned shared) {
    constexpr unsigned long long EIGHT_LANES = 128 >> 4;
    const unsigned long long tile = 1ull << 46 | EIGHT_LANES << 32 | (shared & 0x3ffff) >> 4;
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(tensor), "l"(tile) : "memory");
}

// Bytes in one piece, global to shared memory; they count at `barrier`. 9.7.9.25.4.1: cp.async.bulk.
__device__ __forceinline__ void bulk_load(unsigned shared, const void* global, int bytes, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
        "l"(global), "r"(bytes), "r"(barrier)
        : "memory");
}

// One arrival at the barrier when everything that this thread has started is done. 9.7.16.9.1: tcgen05.commit.
__device__ __forceinline__ void tensor_commit(unsigned barrier) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
                 : "memory");
}

// The same at the same place in both blocks of a pair.
__device__ __forceinline__ void tensor_commit_pair(unsigned barrier) {
    asm volatile(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
            barrier),
        "h"(static_cast<unsigned short>(3))
        : "memory");
}

// Sums of 32 lanes and COLUMNS columns to C: rows from `row` on, columns from `col` on. 9.7.16.8.3.
template <int COLUMNS, typename Out>
__device__ __forceinline__ void store_sums(Out* C, int M, int N, int row, int col, unsigned tensor, float alpha,
                                           float beta) {
    for (int half = 0; half < 2; ++half) {
#pragma unroll 4
        for (int n = 0; n < COLUMNS; n += 16) {
            float left[4], right[4];
            tensor_load_atoms(tensor + (half * 16 << 16) + n, left, right);
            store_atoms(C, M, N, row + half * 16, col + n, left, right, alpha, beta);
        }
    }
}

// ---- Pairs: two blocks of a cluster, the even one first.

// The address that a place in shared memory has in the even block of the pair. 9.7.9.23: mapa.
__device__ __forceinline__ unsigned in_first_block(unsigned shared) {
    unsigned remote;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared), "r"(0));
    return remote;
}

// As tma_load, into this block's shared memory; the bytes count at a barrier of either block. 9.7.9.25.5.2.
__device__ __forceinline__ void tma_load_of_pair(unsigned shared, const TensorMap& map, int x, int y,
                                                 unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%2, %3}], [%4];" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
}
