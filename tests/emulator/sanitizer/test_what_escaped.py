"""Mistakes and right kernels on which the sanitizer was wrong once: each is clean when right, and caught when wrong."""

import numpy as np
import pytest
from cuda_source import compile_ptx

import emulator

SOURCE = r"""
__device__ unsigned at(const void* p) { return __cvta_generic_to_shared(p); }
__device__ void init(void* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n)); }
__device__ void arrive(unsigned b, int rank) {
    asm volatile("{.reg .b32 r; mapa.shared::cluster.u32 r, %0, %1;"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];}" :: "r"(b), "r"(rank) : "memory");
}
__device__ void wait(unsigned b, unsigned parity) {
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(b), "r"(parity) : "memory");
}
// Three warps read, and arrive; the fourth waits for `count` arrivals and writes again.
extern "C" __global__ void refill(int* out, int count) {
    __shared__ int s[32]; __shared__ unsigned long long empty;
    if (threadIdx.x == 0) init(&empty, count);
    if (threadIdx.x < 32) s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x < 96) {
        out[threadIdx.x] = s[threadIdx.x % 32];
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(&empty)) : "memory");
    } else {
        wait(at(&empty), 0);
        s[threadIdx.x - 96] = 7;
    }
}
// The same by arrivals at the barrier of block 0, from the warps of block 1 that have read its memory.
extern "C" __global__ void __cluster_dims__(2, 1, 1) refill_afar(int* out, int count) {
    __shared__ int s[32]; __shared__ unsigned long long empty;
    if (threadIdx.x == 0) init(&empty, count);
    if (threadIdx.x < 32) s[threadIdx.x] = threadIdx.x;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (blockIdx.x == 1 && threadIdx.x < 96) {
        int v;
        asm volatile("{.reg .b32 r; mapa.shared::cluster.u32 r, %1, 0; ld.shared::cluster.u32 %0, [r];}"
                     : "=r"(v) : "r"(at(s + threadIdx.x % 32)) : "memory");
        out[threadIdx.x] = v;
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(at(&empty), 0);
    } else if (blockIdx.x == 0 && threadIdx.x >= 96) {
        wait(at(&empty), 0);
        s[threadIdx.x - 96] = 7;
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
// Each block arrives at the barrier of block `blockIdx.x ^ other` and ends.
extern "C" __global__ void __cluster_dims__(2, 1, 1) last_arrival(int other) {
    __shared__ unsigned long long b;
    if (threadIdx.x == 0) init(&b, 1);
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x == 0) arrive(at(&b), blockIdx.x ^ other);
}
// A block's warp 1 writes into the next block's memory, or arrives at its barrier; MEET says what comes before.
template <int MEET, bool ARRIVES> __device__ void reach(int* out) {
    __shared__ int s[32]; __shared__ unsigned long long b;
    if (threadIdx.x == 0) init(&b, 1);
    if (MEET == 3 && threadIdx.x == 0) asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if (MEET == 1) __syncthreads();
    if (MEET == 2) asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (MEET >= 3) asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (ARRIVES && threadIdx.x == 32) arrive(at(&b), blockIdx.x % 2 ^ 1);
    if (!ARRIVES && threadIdx.x >= 32)
        asm volatile("{.reg .b32 r; mapa.shared::cluster.u32 r, %0, %1; st.shared::cluster.u32 [r], %2;}"
                     :: "r"(at(s + threadIdx.x - 32)), "r"(blockIdx.x % 2 ^ 1), "r"(threadIdx.x) : "memory");
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (!ARRIVES && threadIdx.x < 32) out[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) store_at_once(int* out) { reach<1, false>(out); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) store_after_meeting(int* out) { reach<4, false>(out); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) arrive_at_once(int* out) { reach<1, true>(out); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) arrive_unfenced(int* out) { reach<4, true>(out); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) arrive_fenced(int* out) { reach<3, true>(out); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) arrive_after_release(int* out) { reach<2, true>(out); }
// All threads wait for an mbarrier that thread 0 makes, and arrives at; `meet` says whether they meet in between.
extern "C" __global__ void made_by_another(int* out, int meet) {
    __shared__ unsigned long long b;
    if (threadIdx.x == 0) {
        init(&b, 1);
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(&b)) : "memory");
    }
    if (meet) __syncthreads();
    wait(at(&b), 0);
}
// The same mbarrier twice, in the second turn made again or written over, after an `inval` or without one.
extern "C" __global__ void twice(int* out, int inval, int plain) {
    __shared__ unsigned long long b;
    if (threadIdx.x) return;
    init(&b, 1);
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(&b)) : "memory");
    if (inval) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at(&b)) : "memory");
    if (plain) *(volatile int*)&b = 5; else init(&b, 1);
}
// A copy over what threads have written, behind a fence of the writers, of who copies, or of nobody; then a wait of
// all, or one try.
extern "C" __global__ void copy_over(const int* in, int* out, int fence, int once) {
    __shared__ __align__(16) int s[32]; __shared__ unsigned long long b;
    s[threadIdx.x] = 7;
    if (fence == 1) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (threadIdx.x == 0) { init(&b, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (fence == 2) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" :: "r"(at(&b)) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                     :: "r"(at(s)), "l"(in), "r"(at(&b)) : "memory");
    }
    unsigned done = 0;
    if (once == 1) asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                                : "=r"(done) : "r"(at(&b)) : "memory");
    else if (once == 2) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;}"
                                     :: "r"(0), "r"(at(&b)) : "memory");
    else wait(at(&b), 0);
    out[threadIdx.x] = s[threadIdx.x];
}
// Thread 0 stores 128 bytes in bulk, waits (1: .read, 2: all of it) or not, and the block reads them back.
extern "C" __global__ void read_back(int* mid, int* out, int waits) {
    __shared__ __align__(16) int s[32];
    s[threadIdx.x] = threadIdx.x;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" :: "l"(mid), "r"(at(s)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        if (waits == 1) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        if (waits == 2) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    out[threadIdx.x] = mid[31 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
// Threads write global memory, and a bulk copy of thread 0 reads it: behind a fence of all, of thread 0, or of nobody.
extern "C" __global__ void copy_of_fresh(int* mid, int* out, int fence) {
    __shared__ __align__(16) int s[32]; __shared__ unsigned long long b;
    mid[threadIdx.x] = threadIdx.x;
    if (fence == 1) asm volatile("fence.proxy.async;" ::: "memory");
    if (fence == 3) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (threadIdx.x == 0) { init(&b, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (fence == 2) asm volatile("fence.proxy.async.global;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" :: "r"(at(&b)) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                     :: "r"(at(s)), "l"(mid), "r"(at(&b)) : "memory");
    }
    wait(at(&b), 0);
    out[threadIdx.x] = s[threadIdx.x];
}
#define LOAD(how, v, at) asm volatile("ld." how ".global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory")
// Block 0 writes and sets a flag, block 1 waits for it by an acquiring load (of the GPU's scope, or the block's), by a
// relaxed one, or by a relaxed one and a fence.
extern "C" __global__ void flagged(int* data, int* out, int way) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x + 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            if (way == 4) __threadfence_block(); else __threadfence();
            asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" :: "l"(data + 64) : "memory");
        }
    } else {
        int v = 0;
        if (threadIdx.x == 0) {
            while (!v)
                if (way == 0 || way == 4) LOAD("acquire.gpu", v, data + 64);
                else if (way == 1) LOAD("acquire.cta", v, data + 64);
                else LOAD("relaxed.gpu", v, data + 64);
            if (way == 3) __threadfence();
        }
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];
    }
}
#define SYNC(n, c) asm volatile("bar.sync %0, %1;" :: "r"(n), "r"(c) : "memory")
#define DONE out[blockIdx.x * 128 + threadIdx.x] = 1  // a kernel without memory is not watched
#define ARRIVE(n, c) asm volatile("bar.arrive %0, %1;" :: "r"(n), "r"(c) : "memory")
// Two pairs of warps, each at a barrier of its own or both at one; the second pair later, perhaps behind a barrier.
extern "C" __global__ void pairs(int* out, int shared) {
    SYNC(1 + (shared ? 0 : threadIdx.x / 64), 64);
    DONE;
}
extern "C" __global__ void pairs_in_turn(int* out, int unordered) {
    if (threadIdx.x < 64) SYNC(1, 64);
    if (!unordered) __syncthreads();
    else if (threadIdx.x >= 64) for (int i = 0; i < 200; ++i) __nanosleep(20);
    if (threadIdx.x >= 64) SYNC(1, 64);
    DONE;
}
extern "C" __global__ void hand_over(int* out, int unordered) {  // one half arrives, the other waits, three times
    for (int i = 0; i < 3; ++i)
        if (threadIdx.x < 64) { ARRIVE(1, 128); if (!unordered) SYNC(2, 128); }
        else { SYNC(1, 128); if (!unordered) ARRIVE(2, 128); }
    DONE;
}
extern "C" __global__ void two_counts(int* out, int differ) {
    if (threadIdx.x >= 96) ARRIVE(2, 128); else SYNC(2, differ ? 96 : 128);
    DONE;
}
"""


@pytest.fixture(scope="module")
def module():
    return emulator.Module(compile_ptx(SOURCE, "90a"))


def kinds(trace):
    return {hazard.kind for hazard in trace.hazards}


SURPLUS, NO_FENCE = {"write-after-read", "surplus-arrival"}, {"missing-proxy-fence"}
# entry: blocks, threads, words of its arrays, {the numbers that it is given: the hazards}
KERNELS = {
    # an arrival too many is of the next phase
    "refill": (1, 128, [128], {(3,): set(), (2,): SURPLUS}),
    "refill_afar": (2, 128, [128], {(3,): set(), (2,): SURPLUS}),
    # only another block's memory can be gone
    "last_arrival": (2, 32, [], {(0,): set(), (1,): {"exited-block"}}),
    # a block has begun and made its barrier before another reaches it
    "store_at_once": (4, 64, [128], {(): {"unstarted-block"}}),
    "store_after_meeting": (4, 64, [128], {(): set()}),
    "arrive_at_once": (4, 64, [128], {(): {"unstarted-block", "unmade-barrier"}}),
    "arrive_unfenced": (4, 64, [128], {(): {"unmade-barrier"}}),
    "arrive_fenced": (4, 64, [128], {(): set()}),
    "arrive_after_release": (4, 64, [128], {(): set()}),
    # an mbarrier is made before it is used, and not made again while it is in use
    "made_by_another": (2, 64, [1], {(1,): set(), (0,): {"unmade-barrier"}}),
    "twice": (2, 32, [1], {(1, 0): set(), (0, 0): {"remade-barrier"}, (1, 1): set(), (0, 1): {"overwritten-barrier"}}),
    # a copy of what threads wrote to global memory needs a fence
    "copy_of_fresh": (1, 32, [32, 32], {(0,): NO_FENCE, (1,): set(), (2,): set(), (3,): NO_FENCE}),
    # a flag is acquired as well as released. 1: acquired in the block's scope; 2: relaxed; 4: fenced in the block's scope
    "flagged": (2, 32, [65, 32], {(way,): set() if way in (0, 3) else {"global-race"} for way in range(5)}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "given"), [(entry, given) for entry, (*_, ways) in KERNELS.items() for given in ways]
)
def test_what_is_right_is_quiet_and_what_is_wrong_is_named(module, entry, given):
    blocks, threads, arrays, ways = KERNELS[entry]
    args = [*(np.zeros(words, "i4") for words in arrays), *map(np.int32, given)]
    assert kinds(module.launch(entry, blocks, threads, args)) == ways[given]


@pytest.mark.parametrize(("fence", "found"), [(0, {"missing-proxy-fence"}), (1, set()), (2, set())])
def test_a_copy_over_what_threads_wrote_needs_a_fence(module, fence, found):
    out = np.zeros(32, "i4")
    trace = module.launch(
        "copy_over", 1, 32, [np.arange(32, dtype="i4"), out, np.int32(fence), np.int32(0)]
    )
    assert kinds(trace) == found
    assert (out == np.arange(32)).all()


@pytest.mark.parametrize("once", [1, 2])
def test_a_wait_whose_answer_nobody_looks_at_is_none(module, once):
    """The old data is there, every time, as without a wait."""
    out = np.zeros(32, "i4")
    trace = module.launch(
        "copy_over", 1, 32, [np.arange(32, dtype="i4"), out, np.int32(1), np.int32(once)]
    )
    assert {"unchecked-wait", "unfinished-copy"} <= kinds(trace)
    assert (out == 7).all()


@pytest.mark.parametrize(
    ("waits", "found"), [(0, {"unfinished-store"}), (1, {"unfinished-store"}), (2, set())]
)
def test_what_a_copy_stores_is_there_when_its_thread_has_waited(module, waits, found):
    mid, out = np.zeros(32, "i4"), np.zeros(32, "i4")
    assert kinds(module.launch("read_back", 1, 32, [mid, out, np.int32(waits)])) == found
    assert (out == (np.arange(32)[::-1] if waits == 2 else 0)).all()
    assert (mid == np.arange(32)).all()


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("pairs", "more threads stand than it counts"),
        ("pairs_in_turn", "where others met before"),
        ("hand_over", "where it has arrived before"),
        ("two_counts", "another count of threads"),
    ],
)
def test_a_named_barrier_is_for_those_who_belong_together(module, entry, says, wrong):
    trace = module.launch(entry, 2, 128, [np.zeros(256, "i4"), np.int32(wrong)])
    assert kinds(trace) == ({"shared-barrier"} if wrong else set())
    assert all(says in str(hazard) for hazard in trace.hazards)


ONE_BLOCK = ".maxntid 256, 1, 1 .minnctapersm 1"


@pytest.mark.parametrize(
    ("bounds", "counts", "wrong"),
    [
        (ONE_BLOCK, (("inc", 248),), ""),  # ptxas gives at most 255
        (ONE_BLOCK, (("inc", 240),), ""),  # and not more than the largest that is asked for
        (ONE_BLOCK, (("inc", 240), ("inc", 232)), "inc to 232 registers by a warp that has 240"),
        (".maxnreg 128", (("dec", 24), ("dec", 128)), "dec to 128 registers by a warp that has 24"),
        (".maxnreg 64", (("inc", 128),), "would hold 32768 registers, and it has 16384"),
        (".maxntid 256, 1, 1", (("inc", 240), ("inc", 232)), ""),  # ptxas leaves them out: C7508
        (".minnctapersm 1", (("dec", 24), ("dec", 128)), ""),
    ],
)
def test_a_thread_begins_with_the_registers_that_ptxas_gives_it(bounds, counts, wrong):
    moves = " ".join(f"setmaxnreg.{way}.sync.aligned.u32 {count};" for way, count in counts)
    text = f""".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {bounds} {{ {moves} ret; }}"""
    module = emulator.Module(text)
    if not wrong:
        module.launch("k", 1, 256, [])
    else:
        with pytest.raises(emulator.ExecutionError, match=wrong):
            module.launch("k", 1, 256, [])


@pytest.mark.parametrize(
    "address",
    [
        "mov.b32 %r1, s; cvt.u64.u32 %rd2, %r1; cvta.param.u64 %rd3, %rd2; ld.u32 %r2, [%rd3+4];",  # as Triton's
        "mov.b32 %r1, s; ld.param.u32 %r2, [%r1+4];",
        "mov.b64 %rd2, s; cvta.param.u64 %rd3, %rd2; ld.u32 %r2, [%rd3+4];",
    ],
)
def test_the_address_of_a_parameter_in_32_bits(address):
    text = f""".version 9.0\n.target sm_90a\n.address_size 64
    .visible .entry k(.param .u64 out, .param .align 64 .b8 s[128]) {{ .reg .b32 %r<3>; .reg .b64 %rd<4>;
    {address} ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r2; ret; }}"""
    out = np.zeros(1, "u4")
    emulator.Module(text).launch("k", 1, 1, [out, np.arange(32, dtype="u4").tobytes()])
    assert out[0] == 1


MAPS = r"""
struct __align__(64) Map { unsigned char opaque[128]; };
struct Both { Map in; int scale; Map out; int* count; };
__device__ unsigned at(const void* p) { return __cvta_generic_to_shared(p); }
// Doubles (by `scale`) 8 x 32 of a padded tile, which the stored map clips.
__device__ void scaled(const void* in, const void* out, int scale) {
    __shared__ __align__(128) int tile[8 * 36]; __shared__ unsigned long long b;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" :: "r"(at(&b)) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(at(&b)) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];"
                     :: "r"(at(tile)), "l"(in), "r"(0), "r"(at(&b)) : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(at(&b)) : "memory");
    int mine[8];
    for (int row = 0; row < 8; ++row) mine[row] = tile[row * 32 + threadIdx.x] * scale;
    __syncwarp();
    for (int row = 0; row < 8; ++row) tile[row * 36 + threadIdx.x] = mine[row];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %1}], [%2];"
                     :: "l"(out), "r"(0), "r"(at(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
extern "C" __global__ void by_value(const __grid_constant__ Map in, const __grid_constant__ Map out) { scaled(&in, &out, 2); }
extern "C" __global__ void by_pointer(const Map* in, const Map* out) { scaled(in, out, 2); }
extern "C" __global__ void in_struct(const __grid_constant__ Both both) {
    scaled(&both.in, &both.out, both.scale);
    if (threadIdx.x == 0) *both.count = 1;
}
extern "C" __global__ void behind_pointer(const Both* both) {
    scaled(&both->in, &both->out, both->scale);
    if (threadIdx.x == 0) *both->count = 1;
}
"""


@pytest.mark.parametrize("entry", ["by_value", "by_pointer", "in_struct", "behind_pointer"])
def test_tensor_maps_by_value_behind_pointers_and_in_structs(entry):
    """What the store clips, nobody has to write."""
    data, out = np.arange(256, dtype="i4").reshape(8, 32), np.zeros((8, 32), "i4")
    count = np.zeros(1, "i4")
    maps = [emulator.TensorMap(data, (8, 32)), emulator.TensorMap(out, (8, 36))]
    fields = (maps[0], np.int32(2), maps[1], count)
    args = maps if entry.startswith("by_") else [fields]
    trace = emulator.Module(compile_ptx(MAPS, "90a")).launch(entry, 1, 32, args)
    assert (out == 2 * data).all()
    assert kinds(trace) == set()
    assert count[0] == (0 if entry.startswith("by_") else 1)


@pytest.mark.parametrize(("count_at", "found"), [(0, set()), (1024, {1024})])
def test_a_tensor_map_of_a_part_of_an_allocation(count_at, found):
    """As the plug-in passes it: the launch is given the memory, and a pointer may meet what the map copies."""
    held = np.zeros(4 * 1024, "u1")
    data, out = (held[at : at + 1024].view("i4").reshape(8, 32) for at in (1024, 2048))
    data[:] = np.arange(256).reshape(8, 32)
    maps = [emulator.TensorMap(data, (8, 32)), emulator.TensorMap(out, (8, 36))]
    fields = (maps[0], np.int32(2), maps[1], np.uint64((1 << 40) + count_at))
    module = emulator.Module(compile_ptx(MAPS, "90a"))
    trace = module.launch("in_struct", 2, 32, [fields], memory={1 << 40: held})
    assert held[count_at : count_at + 4].view("i4")[0] == 1
    assert {one.address for one in trace.hazards if "read" in (one.verb[:4], one.did)} == found


@pytest.mark.parametrize(("parity", "goes_on"), [(0xFFFFFFFF, True), (2, False)])
def test_a_parity_as_triton_writes_it(parity, goes_on):
    """A sign-extended true is 1, of which the phase before the first is over; ptxas's code looks at the lowest bit."""
    text = f""".version 9.0\n.target sm_90a\n.address_size 64\n.shared .align 8 .b64 b;
    .visible .entry k() {{ .reg .pred %p; mbarrier.init.shared::cta.b64 [b], 1;
    AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p, [b], {parity}; @!%p bra AGAIN; ret; }}"""
    if goes_on:
        emulator.Module(text).launch("k", 1, 1, [])
    else:
        with pytest.raises(emulator.ExecutionError, match="a wait for parity 2"):
            emulator.Module(text).launch("k", 1, 1, [])


def test_fields_that_do_not_fit_are_told():
    module = emulator.Module(compile_ptx(MAPS, "90a"))
    one = emulator.TensorMap(np.zeros((8, 32), "i4"), (8, 32))
    with pytest.raises(TypeError, match="takes 384 bytes; these members take 512"):
        module.launch("in_struct", 1, 32, [(one,) * 4])
    with pytest.raises(TypeError, match=r"member 1: .*, not int"):
        module.launch("in_struct", 1, 32, [(one, 2)])
    with pytest.raises(TypeError, match="for a struct that holds one pass a tuple"):
        module.launch("in_struct", 1, 32, [one])


@pytest.mark.parametrize(
    "how",
    [
        "ld.const.u32 %r2, [%r1+4];",
        "cvt.u64.u32 %rd2, %r1; cvta.const.u64 %rd3, %rd2; ld.u32 %r2, [%rd3+4];",
    ],
)
def test_the_address_of_a_constant_in_32_bits(how):
    text = f""".version 9.0\n.target sm_90a\n.address_size 64\n.const .align 4 .u32 c[2] = {{7, 9}};
    .visible .entry k(.param .u64 out) {{ .reg .b32 %r<3>; .reg .b64 %rd<4>;
    mov.b32 %r1, c; {how} ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r2; ret; }}"""
    out = np.zeros(1, "u4")
    emulator.Module(text).launch("k", 1, 1, [out])
    assert out[0] == 9
