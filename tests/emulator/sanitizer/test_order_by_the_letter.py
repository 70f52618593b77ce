"""Order that an access, a fence or a wait gives, and that it does not: each kernel is right in one way, wrong in others."""

import numpy as np
import pytest
from cuda_source import compile_ptx

import emulator

SOURCE = r"""
__device__ unsigned at(const void* p) { return __cvta_generic_to_shared(p); }
__device__ unsigned peer(const void* p) {
    unsigned r; asm volatile("{.reg .b32 a; mov.u32 a, %%cluster_ctarank; xor.b32 a, a, 1; mapa.shared::cluster.u32 %0, %1, a;}"
                             : "=r"(r) : "r"(at(p))); return r;
}
#define DO(text) asm volatile(text ::: "memory")
#define DO1(text, a) asm volatile(text :: "r"(a) : "memory")
#define INIT(b, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory")
#define ARRIVE(b) DO1("mbarrier.arrive.shared::cta.b64 _, [%0];", at(b))
#define CLUSTER() DO("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;")
__device__ unsigned asks(const void* b, unsigned parity) {
    unsigned done;
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(at(b)), "r"(parity) : "memory");
    return done;
}
#define ASK(order, done, b) asm volatile( \
    "{.reg .pred p; mbarrier.try_wait.parity." order ".cluster.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}" \
    : "=r"(done) : "r"(at(b)) : "memory")
__device__ void wait(const void* b, unsigned parity) { while (!asks(b, parity)); }
__device__ void load(void* s, const void* from, int bytes, void* b) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(at(s)), "l"(from), "r"(bytes), "r"(at(b)) : "memory");
}
__device__ void store(void* to, const void* s, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(to), "r"(at(s)), "r"(bytes) : "memory");
    DO("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
}
#define MAKE() if (t == 0) { INIT(&b, 1); DO("fence.mbarrier_init.release.cluster;"); } __syncthreads();
#define KERNEL extern "C" __global__ void
#define CLUSTER_KERNEL extern "C" __global__ void __cluster_dims__(2, 1, 1)

// A bulk copy stores what cp.async brought; 0: with a fence between the proxies.
KERNEL stores_a_copy(int* out, int* in, int way) {
    __shared__ __align__(128) int s[32]; int t = threadIdx.x;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" :: "r"(at(s + t)), "l"(in + t) : "memory");
    if (way == 0) DO("fence.proxy.async.shared::cta;");
    __syncthreads();
    if (t == 0) store(out, s, 128);
}
// What a bulk copy has loaded, threads of two warps change in place; 0: all wait, 1: one, and a barrier, 2: one warp alone.
KERNEL in_place(int* out, int* in, int way) {
    __shared__ __align__(128) int s[64]; __shared__ unsigned long long b; int t = threadIdx.x;
    MAKE();
    if (t == 0) load(s, out, 256, &b);
    if (way == 0 || way == 1 && t == 33 || way == 2 && t < 32) wait(&b, 0);
    if (way == 1) __syncthreads();
    if (way == 2 && t >= 32) for (int i = 0; i < 60; ++i) __nanosleep(20);
    out[t] = 1;
}
// A bulk copy stores over what threads wrote to global memory; 0: behind a fence, 1: without, 2: behind one of shared memory.
KERNEL stores_over(int* out, int* in, int way) {
    __shared__ __align__(128) int s[32]; int t = threadIdx.x;
    s[t] = t;
    DO("fence.proxy.async.shared::cta;");
    out[t] = -1;
    if (way == 0) DO("fence.proxy.async.global;");
    if (way == 2) DO("fence.proxy.async.shared::cta;");
    __syncthreads();
    if (t == 0) store(out, s, 128);
}
// A copy adds to what another block adds to, 0, 1: by atomics, which need no fence, 2: by a copy that is under way, too.
KERNEL adds_both(int* out, int* in, int way) {
    __shared__ __align__(128) int s[32]; int t = threadIdx.x;
    s[t] = 1;
    DO("fence.proxy.async.shared::cta;");
    __syncthreads();
    if (blockIdx.x == way) atomicAdd(out + t, 1);
    else if (t == 0)
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 128;"
                     "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" :: "l"(out), "r"(at(s)) : "memory");
}
// Data for the other block, and a barrier of the cluster; 0: released, 1: relaxed and a fence, 2: relaxed, 3: and a narrow fence.
CLUSTER_KERNEL meets_relaxed(int* out, int* in, int way) {
    __shared__ int s[32]; int t = threadIdx.x;
    CLUSTER();
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(peer(s + t)), "r"(t) : "memory");
    if (way == 1) DO("fence.acq_rel.cluster;");
    if (way == 3) DO("fence.acq_rel.cta;");
    if (way == 0) CLUSTER();
    else DO("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;");
    out[blockIdx.x * 32 + t] = s[31 - t];
    CLUSTER();
}
// The same through global memory.
CLUSTER_KERNEL meets_relaxed_outside(int* out, int* in, int way) {
    int t = threadIdx.x;
    in[blockIdx.x * 32 + t] = 1000 + t;
    if (way == 1) DO("fence.acq_rel.gpu;");
    if (way == 3) DO("fence.acq_rel.cta;");
    if (way == 0) CLUSTER();
    else DO("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;");
    out[blockIdx.x * 32 + t] = in[(blockIdx.x ^ 1) * 32 + t];
}
// The same by an mbarrier; 0: release and acquire, 1, 2: relaxed with fences, 3: the arrival relaxed, 4: the wait.
CLUSTER_KERNEL arrives_relaxed(int* out, int* in, int way) {
    __shared__ int s[32]; __shared__ unsigned long long b; int t = threadIdx.x;
    if (t == 0) { INIT(&b, 32); DO("fence.mbarrier_init.release.cluster;"); }
    CLUSTER();
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(peer(s + t)), "r"(t) : "memory");
    if (way == 1) DO("fence.acq_rel.cluster;");
    if (way == 1 || way == 3) DO1("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];", peer(&b));
    else DO1("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];", peer(&b));
    unsigned done = 0;
    while (!done)
        if (way == 2 || way == 4) ASK("relaxed", done, &b);
        else ASK("acquire", done, &b);
    if (way == 2) DO("fence.acq_rel.cluster;");
    out[blockIdx.x * 32 + t] = s[31 - t];
    CLUSTER();
}
// A flag in shared memory, set by warp 0, seen by warp 1; 0: release and acquire, 1: relaxed with fences, 2: the store
// relaxed, 3: the load.
KERNEL flagged(int* out, int* in, int way) {
    __shared__ int s[32], flag; int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t < 32) {
        s[t] = t;
        __syncwarp();
        if (way == 1) __threadfence_block();
        if (t == 0)
            if (way == 1 || way == 2) DO1("st.relaxed.cta.shared.u32 [%0], 1;", at(&flag));
            else DO1("st.release.cta.shared.u32 [%0], 1;", at(&flag));
    } else {
        int v = 0;
        while (!v)
            if (way == 1 || way == 3)
                asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(at(&flag)) : "memory");
            else asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(at(&flag)) : "memory");
        if (way == 1) __threadfence_block();
        out[t - 32] = s[63 - t];
    }
}
// A flag in global memory, seen by an atomic; 0: acquire, 1: relaxed and a fence, 2: relaxed, 3: as atomicAdd writes it.
KERNEL counted(int* out, int* in, int way) {
    int t = threadIdx.x, v = 0;
    if (blockIdx.x == 0) {
        in[t] = t;
        __syncthreads();
        if (t == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(out + 64) : "memory");
    } else {
        if (t == 0) {
            while (!v)
                if (way == 0) asm volatile("atom.add.acquire.gpu.global.u32 %0, [%1], 0;" : "=r"(v) : "l"(out + 64) : "memory");
                else if (way == 3) v = atomicAdd(out + 64, 0);
                else asm volatile("atom.add.relaxed.gpu.global.u32 %0, [%1], 0;" : "=r"(v) : "l"(out + 64) : "memory");
            if (way == 1) __threadfence();
        }
        __syncthreads();
        out[t] = in[t];
    }
}
// Half of the block meets at barrier 0, which __syncthreads is too; 0: at another.
KERNEL barrier_zero(int* out, int* in, int way) {
    int t = threadIdx.x;
    if (t < 32) asm volatile("bar.sync %0, 32;" :: "r"(way ? 0 : 1) : "memory");
    __syncthreads();
    out[t] = t;
}
// An mbarrier is ended and made again; 0: with barriers in between, 1: made by all lanes, 2: others still wait, 3: by a
// thread that does not know of the end.
KERNEL made_again(int* out, int* in, int way) {
    __shared__ unsigned long long b; int t = threadIdx.x;
    if (way == 1 || t == 0) INIT(&b, 64);
    __syncthreads();
    ARRIVE(&b);
    if (way == 2 && t >= 32) for (int i = 0; i < 60; ++i) __nanosleep(20);
    wait(&b, 0);
    if (way != 2) __syncthreads();
    if (t == 0) DO1("mbarrier.inval.shared::cta.b64 [%0];", at(&b));
    if (way == 0) __syncthreads();
    if (way == 3 && t == 32) for (int i = 0; i < 60; ++i) __nanosleep(20);
    if (t == (way == 3 ? 32 : 0)) INIT(&b, 64);
    __syncthreads();
    ARRIVE(&b);
    wait(&b, 0);
    out[t] = t;
}
// cp.async beside an mbarrier, or over it.
KERNEL copies_over(int* out, int* in, int way) {
    __shared__ __align__(16) int s[34]; int t = threadIdx.x;
    if (t == 0) INIT(s + (way ? 0 : 32), 32);
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" :: "r"(at(s + t)), "l"(in + t) : "memory");
    out[t] = s[t];
}
// One look before the loop that waits (0), and then none: whatever it finds (1), after a while (2), noted (3).
KERNEL looks_once(int* out, int* in, int way) {
    __shared__ __align__(128) int s[32]; __shared__ unsigned long long b; int t = threadIdx.x;
    s[t] = 7;
    DO("fence.proxy.async.shared::cta;");
    MAKE();
    if (t == 0) load(s, in, 128, &b);
    unsigned seen = asks(&b, 0);
    if (way == 0 && !seen) wait(&b, 0);
    if (way == 2 && !seen) __nanosleep(100);
    if (way == 3) out[32 + t] = seen;
    out[t] = s[t];
}
// A thread that does other work until the copy is there.
KERNEL works_meanwhile(int* out, int* in, int way) {
    __shared__ __align__(128) int s[32]; __shared__ unsigned long long b; int t = threadIdx.x;
    MAKE();
    if (t == 0) load(s, in, 128, &b);
    for (int turn = 1; ; ++turn) {
        if (asks(&b, 0)) break;
        out[32 + t] = turn;
    }
    out[t] = s[t];
}
"""

# entry: blocks, threads, the hazards of each way
KERNELS = {
    "stores_a_copy": (1, 32, [set(), {"missing-proxy-fence"}]),
    "in_place": (1, 64, [set(), set(), {"global-race"}]),
    "stores_over": (1, 32, [set(), {"missing-proxy-fence"}, {"missing-proxy-fence"}]),
    "adds_both": (2, 32, [set()] * 3),
    "meets_relaxed": (2, 32, [set(), set(), {"read-after-write"}, {"read-after-write"}]),
    "meets_relaxed_outside": (2, 32, [set(), set(), {"global-race"}, {"global-race"}]),
    "arrives_relaxed": (2, 32, [set(), set(), set(), {"read-after-write"}, {"read-after-write"}]),
    "flagged": (1, 64, [set(), set(), {"read-after-write"}, {"read-after-write"}]),
    "counted": (2, 32, [set(), set(), {"global-race"}, set()]),
    "barrier_zero": (1, 128, [set(), {"shared-barrier"}]),
    "made_again": (1, 64, [set(), *[{"remade-barrier"}] * 3]),
    "copies_over": (1, 32, [set(), {"overwritten-barrier"}]),
    "looks_once": (1, 32, [set(), *[{"unfinished-copy", "exit-before-copy"}] * 3]),
    "works_meanwhile": (1, 32, [set()]),
}  # fmt: skip


@pytest.fixture(scope="module")
def module():
    return emulator.Module(compile_ptx(SOURCE, "90a"))


@pytest.mark.parametrize(
    ("entry", "way"),
    [(name, way) for name, (*_, found) in KERNELS.items() for way in range(len(found))],
)
def test_what_orders_is_quiet_and_what_does_not_is_named(module, entry, way):
    blocks, threads, found = KERNELS[entry]
    out, data = np.zeros(256, "i4"), np.arange(256, dtype="i4")
    trace = module.launch(entry, blocks, threads, [out, data, np.int32(way)])
    assert {hazard.kind for hazard in trace.hazards} == found[way]
    if entry == "looks_once":  # nobody waited, so that nothing has landed
        assert (out[:32] == (data[:32] if way == 0 else 7)).all()


UNFENCED = (
    SOURCE
    + r"""
struct __align__(64) Map { unsigned char opaque[128]; };
// Both blocks load by a tensor map; 0: behind a fence, 1, 2: without one, the cluster meets by release and acquire or relaxed.
CLUSTER_KERNEL loads(const __grid_constant__ Map map, int* out, int way) {
    __shared__ __align__(128) int s[32]; __shared__ unsigned long long b; int t = threadIdx.x;
    if (t == 0) {
        INIT(&b, 1);
        if (way == 0) DO("fence.mbarrier_init.release.cluster;");
    }
    if (way == 1) CLUSTER();
    else DO("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;");
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" :: "r"(at(&b)) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                     :: "r"(at(s)), "l"(&map), "r"(0), "r"(at(&b)) : "memory");
    }
    wait(&b, 0);
    out[blockIdx.x * 32 + t] = s[t];
    CLUSTER();
}
"""
)


def test_an_init_without_its_fence_is_noted_where_the_cluster_meets_by_release():
    """fast.cu's clusters meet so, and run."""
    module, data = emulator.Module(compile_ptx(UNFENCED, "90a")), np.arange(32, dtype="i4")
    for way, notes in enumerate(([], [True], [False])):
        out = np.zeros(64, "i4")
        trace = module.launch("loads", 2, 32, [emulator.TensorMap(data, 32), out, np.int32(way)])
        assert [h.note for h in trace.hazards if h.kind == "missing-init-fence"] == notes
        assert len(trace.hazards) == len(notes) and (out == [*data, *data]).all()
