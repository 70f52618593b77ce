// The PTX instructions that C++ has no name for, one wrapper each, shared by every rung that needs them.
// Section numbers are those of the PTX ISA 8.5; below the architecture that an instruction needs, its wrapper
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

// A barrier in shared memory that threads arrive at without waiting and wait for without arriving. Phase n of `barrier`
// is over when `count` arrivals have been made n + 1 times. 9.7.12.15: mbarrier (sm_80); sm_75 counts arrivals in a word.
__device__ __forceinline__ void barrier_init(unsigned long long* barrier, int count) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
#else
    *barrier = static_cast<unsigned long long>(count) << 32;
#endif
}

// Arrive once; all that this thread wrote or read before is done for whoever waits for the phase.
__device__ __forceinline__ void barrier_arrive(unsigned long long* barrier) {
#if __CUDA_ARCH__ >= 800
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(shared_address(barrier))
                 : "memory");
#else
    asm volatile("red.release.cta.shared.add.u32 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
#endif
}

// Arrive once when all cp.async issued by this thread so far have landed. 9.7.12.15.16: cp.async.mbarrier.arrive.
__device__ __forceinline__ void barrier_arrive_after_copies(unsigned long long* barrier) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
#else
    barrier_arrive(barrier);
#endif
}

// Wait until phase `phase` is over. 9.7.12.15.15: mbarrier.try_wait; before it (sm_80), test_wait in a loop.
__device__ __forceinline__ void barrier_wait(unsigned long long* barrier, int phase) {
    const unsigned address = shared_address(barrier);
    unsigned done;
#if __CUDA_ARCH__ >= 800
    do {
        asm volatile(
            "{ .reg .pred p;"
#if __CUDA_ARCH__ >= 900
            "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;"
#else
            "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;"
#endif
            "selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(address), "r"(phase & 1)
            : "memory");
    } while (!done);
#else
    const unsigned target = static_cast<unsigned>(*barrier >> 32) * (phase + 1);
    do asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(done) : "r"(address) : "memory");
    while (done < target);
#endif
}

// Load four 8x8 matrices of 16-bit elements. Lanes 8i .. 8i+7 give the row addresses of matrix i, and register i
// receives it: lane l holds elements (l / 4, 2 * (l % 4)) and the one beside it. 9.7.13.4.15: ldmatrix.
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

// D (16x8, fp32) += A (16x16, fp16, row-major) * B (16x8, fp16, column-major), one warp. 9.7.13.4.8.
// sm_75 has the instruction for k = 8 only (9.7.13.4.7): two of them make one.
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
// D (16x8, fp32) += A (16x8, tf32, row-major) * B (8x8, tf32, column-major), one warp. 9.7.13.4.7.
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Round a float to the nearest tf32 (10 bits of mantissa, ties away from zero): half a tf32 unit is added, and mma
// ignores the 13 bits below (seen on an H100: the products equal those of cvt.rna.tf32.f32, 9.7.9.21, bit for bit).
// Right for normal numbers, infinities and NaN, in two instructions where an sm_90 compiler makes four or more of the cvt.
__device__ __forceinline__ unsigned to_tf32(float x) {
    const float power_of_two = __uint_as_float(__float_as_uint(x) & 0xff800000u);  // x without its mantissa
    return __float_as_uint(__fmaf_rn(power_of_two, 0x1p-11f, x));
}
#endif

// Four independent D (8x8, fp32) += A (8x4, fp16) * B (4x8, fp16), one per quad-pair of lanes (l % 16 / 4), the
// Volta instruction: A column-major, B row-major (NT). 9.7.13.4.1.
__device__ __forceinline__ void mma_m8n8k4_nt(float (&d)[8], const unsigned (&a)[2], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, "
        "{%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
}
