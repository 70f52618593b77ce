// What sm_90a added to PTX and C++ has no name for, one wrapper each, shared by the rungs from tma_mma on: barriers
// that count bytes, tiles copied by TMA, matrix products of a whole warpgroup, registers moved between warpgroups,
// clusters. Section numbers are those of the PTX ISA 9. Addresses into shared memory are 32-bit: see shared_address in
// ptx.cuh.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "epilogue.cuh"
#include "ptx.cuh"

using bf16 = __nv_bfloat16;

// ---- Barriers: mbarrier, an object of 8 bytes in shared memory (9.7.13.15). A phase ends when `count` threads have
// arrived and all bytes that were announced have landed; phases are told apart by their parity, the first one's is 0.

__device__ __forceinline__ void barrier_init(unsigned barrier, int count) {  // 9.7.13.15.9
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// After the initialising, before TMA or other blocks of a cluster use the barriers. 9.7.13.4: fence.
__device__ __forceinline__ void barrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned barrier) {  // 9.7.13.15.13
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrive, and announce `bytes` that copies will bring. 9.7.13.15.13: mbarrier.arrive.expect_tx.
__device__ __forceinline__ void barrier_expect(unsigned barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

// Arrive at the barrier that stands at the same place in block `rank` of the cluster. Without .release.cluster: that
// one fences the whole GPU first, some 500 clocks each time; wgmma's reads, which this follows, are complete without.
// 9.7.9.23: mapa; 9.7.13.15.13: mbarrier.arrive.
__device__ __forceinline__ void barrier_arrive_at(unsigned barrier, unsigned rank) {
    unsigned remote;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(barrier), "r"(rank));
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
}

// Wait until the phase of this parity is over. 9.7.13.15.16: mbarrier.try_wait, which sleeps for a while by itself.
__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    unsigned done = 0;
    while (!done)
        asm volatile(
            "{\n"
            ".reg .pred over;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
            "selp.b32 %0, 1, 0, over;\n"
            "}\n"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
}

// A barrier of some of the block's warps, `threads` threads in all, by number (0 is __syncthreads). 9.7.13.1: bar.sync.
__device__ __forceinline__ void named_barrier(int number, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// Say that one has come, without waiting. 9.7.13.1: bar.arrive.
__device__ __forceinline__ void named_barrier_arrive(int number, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// ---- TMA: one thread has a whole tile copied. The host has described the matrix and the tile (kernels/tensor_map.py);
// x counts elements along the contiguous dimension, y rows. Outside of the matrix zeros come in and nothing goes out.

struct __align__(128) TensorMap {  // a CUtensorMap: a kernel parameter, const __grid_constant__
    unsigned char opaque[128];
};

__device__ __forceinline__ void tma_prefetch_map(const TensorMap& map) {  // 9.7.9.15: prefetch.tensormap
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Global to shared memory; the bytes count at `barrier` when they have landed. 9.7.9.25.5.2: cp.async.bulk.tensor.
__device__ __forceinline__ void tma_load(unsigned shared, const TensorMap& map, int x, int y, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            shared),
        "l"(&map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
}

// The same into every block of the cluster whose bit is set in `ranks`: at the same place, at its own barrier.
__device__ __forceinline__ void tma_load_multicast(unsigned shared, const TensorMap& map, int x, int y,
                                                   unsigned barrier, unsigned short ranks) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3}], [%4], %5;" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(ranks)
        : "memory");
}

// The one or the other: a copy that SHARERS blocks of the cluster need.
template <int SHARERS>
__device__ __forceinline__ void tma_load_shared(unsigned shared, const TensorMap& map, int x, int y, unsigned barrier,
                                                unsigned short ranks) {
    if constexpr (SHARERS > 1)
        tma_load_multicast(shared, map, x, y, barrier, ranks);
    else
        tma_load(shared, map, x, y, barrier);
}

// Shared to global memory. Needs async_fence() and a barrier after the writes to shared memory. 9.7.9.25.5.2.
__device__ __forceinline__ void tma_store(const TensorMap& map, int x, int y, unsigned shared) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x),
                 "r"(y), "r"(shared)
                 : "memory");
}

__device__ __forceinline__ void tma_store_commit() {  // 9.7.9.25.6.1: cp.async.bulk.commit_group
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Wait until at most PENDING of this thread's groups of stores still read shared memory. 9.7.9.25.6.2.
template <int PENDING>
__device__ __forceinline__ void tma_store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// Orders this thread's own accesses to shared memory before those of TMA and wgmma. 9.7.13.4: fence.proxy.async.
__device__ __forceinline__ void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- wgmma: a warpgroup (four warps, the first a multiple of four) multiplies tiles that stand in shared memory.

// Describes an operand in rows of SPAN bytes (32, 64 or 128), over which a swizzle reaches, eight rows after eight rows.
// `panel` is how far apart in bytes panels of SPAN bytes stand where the contiguous dimension is M or N; where it is K,
// the operand is one panel and this is ignored. 9.7.15.5.1.2.2: matrix descriptor.
template <int SPAN = 128>
__device__ __forceinline__ unsigned long long wgmma_descriptor(unsigned shared, int panel = 16) {
    static_assert(SPAN == 128 || SPAN == 64 || SPAN == 32, "the spans that a swizzle may have");
    constexpr unsigned long long SWIZZLE = SPAN == 128 ? 1 : SPAN == 64 ? 2 : 3;
    constexpr unsigned long long EIGHT_ROWS = 8 * SPAN >> 4;
    return SWIZZLE << 62 | EIGHT_ROWS << 32 | static_cast<unsigned long long>(panel >> 4) << 16 |
           (shared & 0x3ffff) >> 4;
}

// Before the first product: orders the warpgroup's accesses to accumulators before wgmma's. 9.7.15.7.1.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Close the group of products started since the last commit. 9.7.15.7.2.
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Wait until at most PENDING of the warpgroup's groups are unfinished. 9.7.15.7.3.
template <int PENDING>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Types of operands that C++ has no name for.
struct e4m3 {  // an 8-bit float of 4 bits of exponent and 3 of mantissa, as wgmma reads it
    unsigned char bits;
};
struct tf32 {  // a float whose 13 low bits wgmma ignores
    float value;
};

template <typename A, typename B>
constexpr bool IS_SAME = false;
template <typename A>
constexpr bool IS_SAME<A, A> = true;
template <typename T>
constexpr bool IS_BF16 = IS_SAME<T, bf16>;

// clang-format off
// The registers of atoms of d from d[i] on, of constraint R ("+f" or "+r"), and their numbers as operands.
#define ATOMS_1(R, i) R(d[i][0]), R(d[i][1]), R(d[i][2]), R(d[i][3])
#define ATOMS_4(R, i) ATOMS_1(R, i), ATOMS_1(R, i + 1), ATOMS_1(R, i + 2), ATOMS_1(R, i + 3)
#define ATOMS_8(R, i) ATOMS_4(R, i), ATOMS_4(R, i + 4)
#define ATOMS_16(R, i) ATOMS_8(R, i), ATOMS_8(R, i + 8)
#define ATOMS_24(R, i) ATOMS_16(R, i), ATOMS_8(R, i + 16)
#define ATOMS_32(R, i) ATOMS_16(R, i), ATOMS_16(R, i + 16)
#define NUMBERS_8 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15," \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NUMBERS_16 \
    NUMBERS_8 "," \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47," \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NUMBERS_24 \
    NUMBERS_16 "," \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79," \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define NUMBERS_32 \
    NUMBERS_24 "," \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111," \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// One wgmma of SHAPE and TYPES, whose d has COUNT atoms. Behind their registers come operands of the numbers A to TB: a
// and b, whether to add d, whether a and b are not K-major. LAST(TA, TB) is how the instruction ends.
#define WGMMA(SHAPE, TYPES, R, LAST, COUNT, A, B, ADD, TA, TB)                                                         \
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADD ", 0;\n"                                                  \
                 "wgmma.mma_async.sync.aligned." SHAPE "." TYPES " {" NUMBERS_##COUNT "}, " A ", " B ", add"           \
                 LAST(TA, TB) ";\n}\n"                                                                                 \
                 : ATOMS_##COUNT(R, 0)                                                                                 \
                 : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(A_M_MAJOR), "n"(B_N_MAJOR))
#define WGMMA_OF_EVERY_WIDTH(K, TYPES, R, LAST)                                                                        \
    if constexpr (N == 64) WGMMA("m64n64" K, TYPES, R, LAST, 8, "%32", "%33", "%34", "%35", "%36");                    \
    if constexpr (N == 128) WGMMA("m64n128" K, TYPES, R, LAST, 16, "%64", "%65", "%66", "%67", "%68");                 \
    if constexpr (N == 192) WGMMA("m64n192" K, TYPES, R, LAST, 24, "%96", "%97", "%98", "%99", "%100");                \
    if constexpr (N == 256) WGMMA("m64n256" K, TYPES, R, LAST, 32, "%128", "%129", "%130", "%131", "%132")
// 1, 1: a and b are not negated, as floats may be. Those of 16 bits need not be K-major, either.
#define SIGNS_AND_MAJORS(TA, TB) ", 1, 1, " TA ", " TB
#define SIGNS(TA, TB) ", 1, 1"
#define NOTHING(TA, TB)
// clang-format on

// D (64 x N) = A (64 rows, 32 bytes of k) * B (N columns, 32 bytes of k), plus D if `add`; A and B of In, described by
// a and b. D is int32 for signed char, else fp32. In thread t of the warpgroup d[j] is what mma.sync m16n8 has for rows
// 16 * (t / 32) on and columns 8j on, in lane t % 32. A is K-major unless A_M_MAJOR, B is K-major unless B_N_MAJOR:
// half and bf16 have the choice. 9.7.15.5.2: wgmma.mma_async.
template <typename In, int A_M_MAJOR = 0, int B_N_MAJOR = 0, typename Sum, int ATOMS>
__device__ __forceinline__ void wgmma_32_bytes(Sum (&d)[ATOMS][4], unsigned long long a, unsigned long long b,
                                               bool add) {
    constexpr int N = 8 * ATOMS;
    static_assert(N == 64 || N == 128 || N == 192 || N == 256, "the widths that are written out above");
    static_assert(sizeof(In) == 2 || A_M_MAJOR + B_N_MAJOR == 0, "operands of other than 16 bits are K-major");
    if constexpr (IS_SAME<In, half>) {
        WGMMA_OF_EVERY_WIDTH("k16", "f32.f16.f16", "+f", SIGNS_AND_MAJORS);
    } else if constexpr (IS_SAME<In, bf16>) {
        WGMMA_OF_EVERY_WIDTH("k16", "f32.bf16.bf16", "+f", SIGNS_AND_MAJORS);
    } else if constexpr (IS_SAME<In, e4m3>) {
        WGMMA_OF_EVERY_WIDTH("k32", "f32.e4m3.e4m3", "+f", SIGNS);
    } else if constexpr (IS_SAME<In, tf32>) {
        WGMMA_OF_EVERY_WIDTH("k8", "f32.tf32.tf32", "+f", SIGNS);
    } else {
        static_assert(IS_SAME<In, signed char>, "no such operands");
        WGMMA_OF_EVERY_WIDTH("k32", "s32.s8.s8", "+r", NOTHING);
    }
}

// The same of half or bf16, of which 32 bytes are 16.
template <typename In, int A_M_MAJOR, int B_N_MAJOR, int ATOMS>
__device__ __forceinline__ void wgmma_k16(float (&d)[ATOMS][4], unsigned long long a, unsigned long long b, bool add) {
    wgmma_32_bytes<In, A_M_MAJOR, B_N_MAJOR>(d, a, b, add);
}

// ---- Registers: a warpgroup hands registers back, or takes some that others handed back. All its warps call.
// 9.7.19.5.

template <int REGISTERS>
__device__ __forceinline__ void registers_shrink_to() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
__device__ __forceinline__ void registers_grow_to() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// ---- Clusters: blocks that run at the same time and reach each other's shared memory.

__device__ __forceinline__ unsigned cluster_rank() {  // this block's number in its cluster. 10: %cluster_ctarank
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// All threads of all blocks of the cluster meet. Relaxed: what they wrote before is not made visible by this (releasing
// it costs a fence of the whole GPU); the barriers are, by barrier_init_fence. 9.7.13.3: barrier.cluster.
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// ---- Output.

// Store four 8x8 matrices of 16-bit elements, held as ldmatrix_x4 loads them. 9.7.14.5.16: stmatrix.
__device__ __forceinline__ void stmatrix_x4(unsigned shared, const unsigned (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
}

// What store_atoms of epilogue.cuh needs for outputs of bf16.
__device__ __forceinline__ float4 load4(const bf16* c) {
    const uint2 bits = *reinterpret_cast<const uint2*>(c);
    const float2 low = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits.x));
    const float2 high = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits.y));
    return make_float4(low.x, low.y, high.x, high.y);
}
__device__ __forceinline__ void store4(bf16* c, float4 v) {
    const __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y), high = __floats2bfloat162_rn(v.z, v.w);
    *reinterpret_cast<uint2*>(c) =
        make_uint2(reinterpret_cast<const unsigned&>(low), reinterpret_cast<const unsigned&>(high));
}

// ---- Shared memory of another block of the cluster.

// As cluster_sync, and what each thread wrote before, to shared memory too, is seen by all after. 9.7.13.3.
__device__ __forceinline__ void cluster_exchange() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Four floats at the place `shared` has in block `rank`. 9.7.9.23: mapa; 9.7.9.8: ld.shared::cluster.
__device__ __forceinline__ float4 load4_from(unsigned shared, unsigned rank) {
    unsigned remote;
    float4 v;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(remote)
                 : "memory");
    return v;
}

// ---- Programmatic launches: where the launch allows it, the next kernel of the stream may begin before this one has
// ended, and must wait before it touches what this one writes. Else both do nothing. 9.7.13.13: griddepcontrol.

__device__ __forceinline__ void let_next_kernel_begin() { asm volatile("griddepcontrol.launch_dependents;"); }

__device__ __forceinline__ void wait_for_last_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
