// The PTX instructions that C++ has no name for, one wrapper each, shared by every rung that needs them.
// Section numbers are those of the PTX ISA 9; below the architecture that an instruction needs, its wrapper
// does the same work in another way, so that one kernel source serves sm_75 and everything after it.
#pragma once
#include <cuda_fp16.h>

// The 32-bit address that ldmatrix and cp.async want, from an ordinary pointer into shared memory.
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Copy BYTES (4, 8 or 16) from global to shared memory without waiting; write zeros instead where !valid.
// Both addresses must be multiples of BYTES. 9.7.9.25.3.1: cp.async; 16 bytes may bypass L1 (.cg).
template <int BYTES>
__device__ __forceinline__ void cp_async(unsigned shared, const void* global, bool valid = true) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
#if __CUDA_ARCH__ >= 800
    const int source_bytes = valid ? BYTES : 0;
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(source_bytes)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(global), "n"(BYTES),
                     "r"(source_bytes)
                     : "memory");
    }
#else
    unsigned words[BYTES / 4] = {};
    if (valid) {
#pragma unroll
        for (int w = 0; w < BYTES / 4; ++w) words[w] = static_cast<const unsigned*>(global)[w];
    }
#pragma unroll
    for (int w = 0; w < BYTES / 4; ++w)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared + 4 * w), "r"(words[w]) : "memory");
#endif
}

// Close the group of copies issued since the last commit. 9.7.9.25.3.2: cp.async.commit_group.
__device__ __forceinline__ void cp_async_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Wait until at most PENDING of this thread's groups are unfinished. 9.7.9.25.3.3: cp.async.wait_group.
// Only the calling thread's copies: other threads may read the data after a barrier that follows.
template <int PENDING>
__device__ __forceinline__ void cp_async_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

// Load four 8x8 matrices of 16-bit elements. Lanes 8i .. 8i+7 give the row addresses of matrix i, and register i
// receives it: lane l holds elements (l / 4, 2 * (l % 4)) and the one beside it. 9.7.14.5.15: ldmatrix.
__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], unsigned shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}

// The same, each matrix transposed on the way: lane l holds elements (2 * (l % 4), l / 4) and the one below it.
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], unsigned shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}

// D (16x8, fp32) += A (16x16, fp16, row-major) * B (16x8, fp16, column-major), one warp. 9.7.14.5.8.
// sm_75 has the instruction for k = 8 only (9.7.14.5.7): two of them make one.
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

#if __CUDA_ARCH__ >= 800
// D (16x8, fp32) += A (16x8, tf32, row-major) * B (8x8, tf32, column-major), one warp. 9.7.14.5.7.
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Round a float to the nearest tf32 (10 bits of mantissa, ties away from zero). 9.7.9.21: cvt.rna.tf32.f32.
// ptxas 13.5 makes three instructions of it, two where the 13 low bits may stay: a test for infinity, an addition.
__device__ __forceinline__ unsigned to_tf32(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

// Nearly that in one multiplication. mma ignores the 13 low bits of a tf32 operand (seen on an H100), so what it reads
// is rounded towards zero; growing the number by 0.35 to 0.7 tf32 units first takes the bias away. tf32 numbers stay as
// they are, infinities and NaN too; of random products the error is a few percent above that of rounding to nearest.
__device__ __forceinline__ unsigned nudge_to_tf32(float x) { return __float_as_uint(x * (1.0f + 0.7f * 0x1p-11f)); }
#endif

// Four independent D (8x8, fp32) += A (8x4, fp16) * B (4x8, fp16), one per quad-pair of lanes (l % 16 / 4), the
// Volta instruction: A column-major, B row-major (NT). 9.7.14.5.1.
__device__ __forceinline__ void mma_m8n8k4_nt(float (&d)[8], const unsigned (&a)[2], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, "
        "{%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
}
