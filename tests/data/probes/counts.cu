// Single instructions of Hopper, one kind a kernel, executed `repeat` times: counts.py launches each
// with two repeats under Nsight Compute, so that the difference is what the instruction itself costs.
// Waits are fixed spans of clocks, not polls, so that nothing but the instruction varies; one follows
// every copy, because L2 merges requests for a line that are under way together.
#include <cstdint>
#include <cuda.h>

namespace {

constexpr int WAIT = 12000;  // clocks: longer than the largest copy takes

__device__ uint32_t shared_address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void pause() {
    const long long start = clock64();
    while (clock64() - start < WAIT) {
    }
}

__device__ void init(uint32_t barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("fence.proxy.async;");
}

__device__ void expect(uint32_t barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes));
}

__device__ uint32_t completed(uint32_t barrier) {
    uint32_t done;
    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;"
        " selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier));
    return done;
}

__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;");
    asm volatile("barrier.cluster.wait.aligned;");
}

__device__ uint32_t rank() {
    uint32_t r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

__device__ uint32_t mapped(uint32_t address, uint32_t block) {
    uint32_t result;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(block));
    return result;
}

extern __shared__ __align__(1024) unsigned char shared_tile[];
__shared__ __align__(8) uint64_t shared_barrier;

}  // namespace

// --- Bulk copies: src or dst `global`, `bytes`, offset in shared memory --------------------------

extern "C" __global__ void bulk_load(char* global, uint32_t bytes, uint32_t offset, int repeat,
                                     uint32_t* out) {
    if (threadIdx.x) return;
    const uint32_t barrier = shared_address(&shared_barrier);
    init(barrier, 1);
    expect(barrier, bytes * repeat);
#pragma unroll 1
    for (int i = 0; i < repeat; i++, pause())
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
            "[%3];" ::"r"(shared_address(shared_tile) + offset),
            "l"(global), "r"(bytes), "r"(barrier)
            : "memory");
    pause();
    *out = completed(barrier);
}

extern "C" __global__ void bulk_store(char* global, uint32_t bytes, uint32_t offset, int repeat,
                                      uint32_t* out) {
    if (threadIdx.x) return;
#pragma unroll 1
    for (int i = 0; i < repeat; i++, pause())
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
                     "r"(shared_address(shared_tile) + offset), "r"(bytes)
                     : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    pause();
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    *out = 1;
}

#define BULK_REDUCE(NAME, OPERATION)                                                              \
    extern "C" __global__ void bulk_reduce_##NAME(char* global, uint32_t bytes, uint32_t offset,   \
                                                  int repeat, uint32_t* out) {                    \
        if (threadIdx.x) return;                                                                  \
        _Pragma("unroll 1") for (int i = 0; i < repeat; i++, pause()) asm volatile( \
            "cp.reduce.async.bulk.global.shared::cta.bulk_group." OPERATION                       \
            " [%0], [%1], %2;" ::"l"(global),                                                     \
            "r"(shared_address(shared_tile) + offset), "r"(bytes)                                 \
            : "memory");                                                                          \
        asm volatile("cp.async.bulk.commit_group;");                                              \
        pause();                                                                                  \
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");                                 \
        *out = 1;                                                                                 \
    }
BULK_REDUCE(add_u32, "add.u32")
BULK_REDUCE(add_f32, "add.f32")
BULK_REDUCE(add_f16, "add.noftz.f16")
BULK_REDUCE(add_u64, "add.u64")

extern "C" __global__ void bulk_prefetch(char* global, uint32_t bytes, uint32_t offset, int repeat,
                                         uint32_t* out) {
    if (threadIdx.x) return;
#pragma unroll 1
    for (int i = 0; i < repeat; i++, pause())
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes)
                     : "memory");
    pause();
    *out = 1;
}

// Block 0 copies from its shared memory to block 1's.
extern "C" __global__ void bulk_remote(char* global, uint32_t bytes, uint32_t offset, int repeat,
                                       uint32_t* out) {
    const uint32_t barrier = shared_address(&shared_barrier), tile = shared_address(shared_tile);
    if (threadIdx.x == 0) {
        init(barrier, 1);
        if (rank() == 1) expect(barrier, bytes * repeat);
    }
    cluster_sync();
    if (threadIdx.x == 0 && rank() == 0) {
#pragma unroll 1
        for (int i = 0; i < repeat; i++, pause())
            asm volatile(
                "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], "
                "[%1], %2, [%3];" ::"r"(mapped(tile, 1) + offset),
                "r"(tile), "r"(bytes), "r"(mapped(barrier, 1))
                : "memory");
    }
    pause();
    cluster_sync();
    if (threadIdx.x == 0 && rank() == 1) *out = completed(barrier);
}

// Block 0 loads for the blocks of `mask`.
extern "C" __global__ void bulk_multicast(char* global, uint32_t bytes, uint32_t mask, int repeat,
                                          uint32_t* out) {
    const uint32_t barrier = shared_address(&shared_barrier), tile = shared_address(shared_tile);
    if (threadIdx.x == 0) {
        init(barrier, 1);
        if (mask >> rank() & 1) expect(barrier, bytes * repeat);
    }
    cluster_sync();
    if (threadIdx.x == 0 && rank() == 0) {
#pragma unroll 1
        for (int i = 0; i < repeat; i++, pause())
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
                "multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(tile),
                "l"(global), "r"(bytes), "r"(barrier), "h"(static_cast<uint16_t>(mask))
                : "memory");
    }
    pause();
    if (threadIdx.x == 0 && rank() == 0) *out = completed(barrier) | (mask & 1 ^ 1);
    cluster_sync();
}

// --- Tensor copies: a map, the first coordinates, bytes of the whole box --------------------------

struct Place {
    int at[5];
};

#define C1 "{%2}"
#define C2 "{%2, %3}"
#define C3 "{%2, %3, %4}"
#define C4 "{%2, %3, %4, %5}"
#define C5 "{%2, %3, %4, %5, %6}"
#define AT "r"(p.at[0]), "r"(p.at[1]), "r"(p.at[2]), "r"(p.at[3]), "r"(p.at[4])

#define TENSOR_LOAD(DIM)                                                                          \
    extern "C" __global__ void tensor_load_##DIM(const __grid_constant__ CUtensorMap map, Place p, \
                                                 uint32_t bytes, int repeat, uint32_t* out) {     \
        if (threadIdx.x) return;                                                                  \
        const uint32_t barrier = shared_address(&shared_barrier);                                 \
        init(barrier, 1);                                                                         \
        expect(barrier, bytes* repeat);                                                           \
        _Pragma("unroll 1") for (int i = 0; i < repeat; i++, pause()) asm volatile( \
            "cp.async.bulk.tensor." #DIM                                                          \
            "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, " C##DIM            \
            "], [%7];" ::"r"(shared_address(shared_tile)),                                        \
            "l"(&map), AT, "r"(barrier)                                                           \
            : "memory");                                                                          \
        pause();                                                                                  \
        *out = completed(barrier);                                                                \
    }
TENSOR_LOAD(1)
TENSOR_LOAD(2)
TENSOR_LOAD(3)
TENSOR_LOAD(4)
TENSOR_LOAD(5)

#define TENSOR_STORE(NAME, DIM, OPERATION, SUFFIX)                                                \
    extern "C" __global__ void tensor_##NAME##_##DIM(const __grid_constant__ CUtensorMap map,      \
                                                     Place p, uint32_t bytes, int repeat,         \
                                                     uint32_t* out) {                             \
        if (threadIdx.x) return;                                                                  \
        _Pragma("unroll 1") for (int i = 0; i < repeat; i++, pause()) asm volatile( \
            OPERATION #DIM "d.global.shared::cta" SUFFIX ".bulk_group [%1, " C##DIM "], [%0];" ::"r"( \
                shared_address(shared_tile)),                                                     \
            "l"(&map), AT                                                                         \
            : "memory");                                                                          \
        asm volatile("cp.async.bulk.commit_group;");                                              \
        pause();                                                                                  \
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");                                 \
        *out = 1;                                                                                 \
    }
TENSOR_STORE(store, 1, "cp.async.bulk.tensor.", "")
TENSOR_STORE(store, 2, "cp.async.bulk.tensor.", "")
TENSOR_STORE(store, 3, "cp.async.bulk.tensor.", "")
TENSOR_STORE(store, 4, "cp.async.bulk.tensor.", "")
TENSOR_STORE(store, 5, "cp.async.bulk.tensor.", "")
TENSOR_STORE(reduce_add, 2, "cp.reduce.async.bulk.tensor.", ".add")
TENSOR_STORE(reduce_min, 2, "cp.reduce.async.bulk.tensor.", ".min")

extern "C" __global__ void tensor_prefetch_2(const __grid_constant__ CUtensorMap map, Place p,
                                             uint32_t bytes, int repeat, uint32_t* out) {
    if (threadIdx.x) return;
#pragma unroll 1
    for (int i = 0; i < repeat; i++, pause())
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(&map),
                     "r"(p.at[0]), "r"(p.at[1])
                     : "memory");
    pause();
    *out = 1;
}

// Block 0 loads the box for the blocks of mask = p.at[4].
extern "C" __global__ void tensor_multicast_2(const __grid_constant__ CUtensorMap map, Place p,
                                              uint32_t bytes, int repeat, uint32_t* out) {
    const uint32_t barrier = shared_address(&shared_barrier);
    const uint32_t mask = p.at[4];
    if (threadIdx.x == 0) {
        init(barrier, 1);
        if (mask >> rank() & 1) expect(barrier, bytes * repeat);
    }
    cluster_sync();
    if (threadIdx.x == 0 && rank() == 0) {
#pragma unroll 1
        for (int i = 0; i < repeat; i++, pause())
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes."
                "multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(
                    shared_address(shared_tile)),
                "l"(&map), "r"(p.at[0]), "r"(p.at[1]), "r"(barrier),
                "h"(static_cast<uint16_t>(mask))
                : "memory");
    }
    pause();
    if (threadIdx.x == 0 && rank() == 0) *out = completed(barrier) | (mask & 1 ^ 1);
    cluster_sync();
}

// --- A warp's shared memory: lane offsets from a table --------------------------------------------

#define WARP(NAME, SETUP, ...)                                                                    \
    extern "C" __global__ void warp_##NAME(const uint32_t* offsets, uint32_t active, int repeat,  \
                                           uint32_t* out) {                                       \
        const uint32_t lane = threadIdx.x;                                                        \
        const uint32_t tile = shared_address(shared_tile);                                        \
        uint32_t address = tile + offsets[lane];                                                  \
        uint32_t a = lane, b = lane + 1, c = lane + 2, d = lane + 3;                              \
        const uint32_t barrier = shared_address(&shared_barrier);                                 \
        if (lane == 0) init(barrier, 1023);                                                       \
        __syncwarp();                                                                             \
        SETUP;                                                                                    \
        if (active >> lane & 1) {                                                                 \
            _Pragma("unroll 1") for (int i = 0; i < repeat; i++) {                                \
                asm volatile(__VA_ARGS__ : "memory");                                             \
            }                                                                                     \
        }                                                                                         \
        pause();                                                                                  \
        out[lane] = a + b + c + d;                                                                \
    }
#define NOTHING
#define TWO                        \
    cluster_sync();                \
    address = mapped(address, rank() ^ 1); \
    const uint32_t remote = mapped(barrier, rank() ^ 1); \
    active = rank() == 0 ? active : 0;
#define TWO_WITH_BARRIER TWO

WARP(ldmatrix_x1, NOTHING, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "+r"(a) : "r"(address))
WARP(ldmatrix_x2, NOTHING, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "+r"(a), "+r"(b) : "r"(address))
WARP(ldmatrix_x4, NOTHING, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(address))
WARP(ldmatrix_x4_trans, NOTHING, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(address))
WARP(stmatrix_x1, NOTHING, "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(address), "r"(a))
WARP(stmatrix_x2, NOTHING, "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b))
WARP(stmatrix_x4, NOTHING, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d))
WARP(stmatrix_x4_trans, NOTHING, "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d))
WARP(mbarrier_init, NOTHING, "mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address))
WARP(mbarrier_arrive, NOTHING, "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier))
WARP(mbarrier_expect_tx, NOTHING, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(barrier))
WARP(mbarrier_arrive_expect_tx, NOTHING, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(barrier))
WARP(mbarrier_test_wait, NOTHING, "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "+r"(a) : "r"(barrier))
WARP(mbarrier_try_wait_done, NOTHING, "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 1; selp.u32 %0, 1, 0, p; }" : "+r"(a) : "r"(barrier))
WARP(cp_async_mbarrier_arrive, NOTHING, "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier))
WARP(fence_proxy_async, NOTHING, "fence.proxy.async.shared::cta;" ::"r"(a))
WARP(ld_shared_b32, NOTHING, "ld.volatile.shared::cta.b32 %0, [%1];" : "+r"(a) : "r"(address))
WARP(atom_shared_add_u32, NOTHING, "atom.shared::cta.add.u32 %0, [%1], %2;" : "+r"(a) : "r"(address), "r"(b))
WARP(red_shared_add_u32, NOTHING, "red.shared::cta.add.u32 [%0], %1;" ::"r"(address), "r"(b))
WARP(atom_shared_add_f32, NOTHING, "{ .reg .f32 f; mov.b32 f, %2; atom.shared::cta.add.f32 f, [%1], f; mov.b32 %0, f; }" : "+r"(a) : "r"(address), "r"(b))
WARP(atom_shared_cas_b32, NOTHING, "atom.shared::cta.cas.b32 %0, [%1], %2, %3;" : "+r"(a) : "r"(address), "r"(b), "r"(c))
WARP(ld_cluster_b32, TWO, "ld.volatile.shared::cluster.b32 %0, [%1];" : "+r"(a) : "r"(address))
WARP(ld_cluster_v2, TWO, "ld.volatile.shared::cluster.v2.b32 {%0, %1}, [%2];" : "+r"(a), "+r"(b) : "r"(address))
WARP(ld_cluster_v4, TWO, "ld.volatile.shared::cluster.v4.b32 {%0, %1, %2, %3}, [%4];" : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(address))
WARP(st_cluster_b32, TWO, "st.volatile.shared::cluster.b32 [%0], %1;" ::"r"(address), "r"(a))
WARP(st_cluster_v2, TWO, "st.volatile.shared::cluster.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b))
WARP(st_cluster_v4, TWO, "st.volatile.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d))
WARP(atom_cluster_add_u32, TWO, "atom.shared::cluster.add.u32 %0, [%1], %2;" : "+r"(a) : "r"(address), "r"(b))
WARP(red_cluster_add_u32, TWO, "red.shared::cluster.add.u32 [%0], %1;" ::"r"(address), "r"(b))
WARP(st_async_b32, TWO, "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(address), "r"(a), "r"(remote))
WARP(st_async_v2, TWO, "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(address), "r"(a), "r"(b), "r"(remote))
WARP(st_async_v4, TWO, "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d), "r"(remote))
WARP(red_async_add_u32, TWO, "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(address), "r"(a), "r"(remote))
WARP(mbarrier_remote_arrive, TWO, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote))
WARP(mbarrier_remote_expect_tx, TWO, "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], 16;" ::"r"(remote))

// cp.async beside, for comparison.
extern "C" __global__ void warp_cp_async_16(const uint32_t* offsets, uint32_t active, int repeat,
                                            uint32_t* out) {
    const uint32_t address = shared_address(shared_tile) + offsets[threadIdx.x];
    if (active >> threadIdx.x & 1) {
#pragma unroll 1
        for (int i = 0; i < repeat; i++, pause())
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address),
                         "l"(reinterpret_cast<const char*>(out) + 4096 + threadIdx.x * 16)
                         : "memory");
    }
    asm volatile("cp.async.wait_all;");
    pause();
    out[threadIdx.x] = 1;
}
