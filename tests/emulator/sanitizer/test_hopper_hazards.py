"""Thirty planted mistakes in Hopper kernels, each named with its line; the right kernels raise nothing.

One kernel holds all roles: a producer loads tiles by TMA, a warpgroup multiplies, results go out by
TMA. A mistake is an edit of one place in its source.
"""

import numpy as np
import pytest
from cuda_source import compile_ptx, line_of

import emulator
from emulator import TensorMap

HEAD = r"""
struct __align__(128) Map { unsigned char opaque[128]; };
__device__ __forceinline__ unsigned shared_address(const void* p) { return __cvta_generic_to_shared(p); }
#define INIT(b, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(b), "r"(n) : "memory")
#define INIT_FENCE() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define EXPECT(b, n) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(b), "r"(n) : "memory")
#define ARRIVE(b) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(b) : "memory")
#define LOAD(to, map, x, y, b) asm volatile( \
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" \
    :: "r"(to), "l"(&map), "r"(x), "r"(y), "r"(b) : "memory")
#define STORE(map, x, y, from) asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" \
    :: "l"(&map), "r"(x), "r"(y), "r"(from) : "memory")
#define STORE_COMMIT() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define STORE_WAIT_READ(n) asm volatile("cp.async.bulk.wait_group.read " #n ";" ::: "memory")
#define PROXY_FENCE() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define WGMMA_FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned " #n ";" ::: "memory")
__device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ unsigned long long described(unsigned at, unsigned long long swizzle = 1) {
    return swizzle << 62 | 64ull << 32 | 1ull << 16 | (at & 0x3ffff) >> 4;
}
__device__ __forceinline__ void multiply(float (&d)[8], unsigned long long a, unsigned long long b, int add) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %10, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1, 0, 0;}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        : "l"(a), "l"(b), "r"(add));
}
"""

# A pipeline: 64 x 16 of C = A (64, K) @ B (16, K)^T, stages of 64 columns.
PIPELINE = (
    HEAD
    + r"""
extern "C" __global__ void __launch_bounds__(256) pipeline(const __grid_constant__ Map A, const __grid_constant__ Map B,
                                                           const __grid_constant__ Map C, int steps) {
    extern __shared__ __align__(1024) unsigned char tiles[];
    __shared__ __align__(8) unsigned long long barriers[4];
    const unsigned full = shared_address(barriers), empty = full + 16, stages = shared_address(tiles);
    const unsigned out = stages + 2 * 10240;
    const int thread = threadIdx.x % 128;
    if (threadIdx.x == 0) {
        INIT(full, 1); INIT(full + 8, 1);  // one thread announces
        INIT(empty, 1); INIT(empty + 8, 1);  // one thread frees
        INIT_FENCE();
    }
    __syncthreads();  // barriers are there
    if (threadIdx.x >= 128) {
        if (thread == 0)
            for (int step = 0; step < steps; ++step) {
                const unsigned stage = stages + step % 2 * 10240, landed = full + step % 2 * 8;
                wait(empty + step % 2 * 8, step / 2 % 2 ^ 1);  // stage is free
                EXPECT(landed, 8192 + 2048);  // bytes of both tiles
                LOAD(stage, A, step * 64, 0, landed);  // tile of A
                LOAD(stage + 8192, B, step * 64, 0, landed);  // tile of B
            }
    } else {
        float d[8];
        for (int step = 0; step < steps; ++step) {
            const unsigned stage = stages + step % 2 * 10240;
            wait(full + step % 2 * 8, step / 2 % 2);  // stage is full
            WGMMA_FENCE();  // before products
            for (int k = 0; k < 4; ++k)
                multiply(d, described(stage + 32 * k), described(stage + 8192 + 32 * k), step + k > 0);  // products
            COMMIT();  // the group
            WAIT(0);  // for the products
            if (thread == 0) ARRIVE(empty + step % 2 * 8);  // stage may be filled
        }
        float* tile = reinterpret_cast<float*>(tiles + 2 * 10240);
        const int row = thread / 32 * 16 + thread % 32 / 4;
        for (int i = 0; i < 8; ++i)
            tile[(row + i / 2 % 2 * 8) * 16 + i / 4 * 8 + thread % 4 * 2 + i % 2] = d[i];  // result
        PROXY_FENCE();  // before the store
        asm volatile("bar.sync 1, 128;" ::: "memory");  // result is whole
        if (thread == 0) {
            STORE(C, 0, 0, out);  // the tile
            STORE_COMMIT();  // of the store
            STORE_WAIT_READ(0);  // memory is free
        }
    }
}
"""
)


def run_pipeline(source, steps=5, swizzle=128, out_swizzle=0):
    rng = np.random.default_rng(steps)
    a, b = (rng.integers(-3, 4, (n, 64 * steps)).astype(np.float16) for n in (64, 16))
    c = np.zeros((64, 16), np.float32)
    maps = [
        TensorMap(a, (64, 64), swizzle=swizzle), TensorMap(b, (16, 64), swizzle=128),
        TensorMap(c, (64, 16), swizzle=out_swizzle),
    ]  # fmt: skip
    trace = emulator.Module(compile_ptx(source, "90a")).launch(
        "pipeline", 1, 256, [*maps, np.int32(steps)], shared_bytes=2 * 10240 + 4096
    )
    return trace, (c == a.astype(np.float64) @ b.T.astype(np.float64)).all()


def planted(source, old, new):
    assert source.count(old) == 1, old
    return source.replace(old, new)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8])
def test_the_right_pipeline_is_right_and_quiet(steps):
    trace, right = run_pipeline(PIPELINE, steps)
    assert right
    assert trace.hazards == []


# name: what is replaced by what; the hazards' kinds, of which one must be there; the marks of its
# lines; words of the cure
HAZARDS = {
    "a stage is read before its barrier's phase": (
        "wait(full + step % 2 * 8, step / 2 % 2);  // stage is full", "", ("unfinished-copy",),
        ("products", "tile of"), "waited for the phase of the mbarrier",
    ),
    "the consumer's parity is wrong": (
        "wait(full + step % 2 * 8, step / 2 % 2);  // stage is full",
        "wait(full + step % 2 * 8, step / 2 % 2 ^ 1);  // stage is full", ("unfinished-copy",),
        ("products", "tile of"), "is its parity right",
    ),
    "only one warp waits": (
        "wait(full + step % 2 * 8, step / 2 % 2);  // stage is full",
        "if (thread < 32) wait(full + step % 2 * 8, step / 2 % 2);  // stage is full", ("read-after-write",),
        ("products", "tile of"), "wait for it",
    ),
    "a stage is refilled without waiting for it to be free": (
        "wait(empty + step % 2 * 8, step / 2 % 2 ^ 1);  // stage is free",
        "if (step > 1) wait(full + step % 2 * 8, step / 2 % 2 ^ 1);  // stage is free",
        ("unfinished-copy", "unfinished-read"), ("tile of", "products"), "",
    ),
    "a stage is refilled late, but without waiting for it to be free": (
        "wait(empty + step % 2 * 8, step / 2 % 2 ^ 1);  // stage is free",
        "if (step > 1) for (int i = 0; i < 300; ++i) __nanosleep(9);",
        ("write-after-read",),
        ("tile of", "products"),
        "arrive at an mbarrier after wgmma.wait_group",
    ),
    "a stage is freed before its products are done": (
        "WAIT(0);  // for the products\n            if (thread == 0) ARRIVE(empty + step % 2 * 8);  // stage may be filled",
        "if (thread == 0) ARRIVE(empty + step % 2 * 8);  // stage may be filled\n"
        "            for (int i = 0; i < 40; ++i) __nanosleep(9);\n            WAIT(0);  // for the products",
        ("unfinished-read",), ("tile of", "products"), "wgmma.wait_group must come before",
    ),
    "a group of products is in flight when its stage is freed": (
        "WAIT(0);  // for the products",
        "WAIT(1);  // for the products\n            for (int i = 0; i < 40; ++i) __nanosleep(9);",
        ("unfinished-read", "unfinished-wgmma"), ("tile of", "products", "result"), "wgmma.wait_group must come before",
    ),
    "no wgmma.fence": (
        "WGMMA_FENCE();  // before products", "", ("missing-wgmma-fence",), ("products",),
        "wgmma.fence stands between",
    ),
    "accumulators are set after the fence": (
        "WGMMA_FENCE();  // before products",
        "WGMMA_FENCE();  // before products\n"
        "            if (step == 0) for (int i = 0; i < 8; ++i) d[i] = 0.5f * (float)steps;  // set",
        ("missing-wgmma-fence",), ("products", "// set"), "put one before the first wgmma",
    ),
    "the wait is missing": (
        "WAIT(0);  // for the products", "", ("unfinished-wgmma", "unfinished-read"), ("products", "tile of", "result"),
        "wgmma.wait_group must come before",
    ),
    "the commit is missing": (
        "COMMIT();  // the group", "", ("unfinished-wgmma", "unfinished-read"), ("products", "tile of", "result"),
        "wgmma.wait_group",
    ),
    "the wait leaves the last group": (
        "WAIT(0);  // for the products", "if (step + 1 < steps) WAIT(0); else WAIT(1);  // for the products",
        ("unfinished-wgmma",), ("result", "products"), "wgmma.wait_group must come before",
    ),
    "no proxy fence before the store": (
        "PROXY_FENCE();  // before the store", "", ("missing-proxy-fence",), ("the tile", "result"),
        "no fence.proxy.async",
    ),
    "one thread's fence for all": (
        "PROXY_FENCE();  // before the store", "if (thread == 64) PROXY_FENCE();  // before the store",
        ("missing-proxy-fence",), ("the tile", "result"), "no fence.proxy.async",
    ),
    "no barrier before the store": (
        'asm volatile("bar.sync 1, 128;" ::: "memory");  // result is whole', "", ("read-after-write",),
        ("the tile", "result"), "between",
    ),
    "the descriptor's swizzle is not the map's": (
        "described(stage + 32 * k), described(stage + 8192", "described(stage + 32 * k, 2), described(stage + 8192",
        ("wrong-swizzle",), ("products", "tile of A"), "descriptor and tensor map must agree",
    ),
    "the other operand's swizzle is none": (
        "described(stage + 8192 + 32 * k)", "described(stage + 8192 + 32 * k, 0)",
        ("wrong-swizzle",), ("products", "tile of B"), "descriptor and tensor map must agree",
    ),
    "the barriers are not fenced": (
        "        INIT_FENCE();\n", "", ("missing-init-fence",), ("tile of A", "INIT(full, 1)"), "fence.mbarrier_init",
    ),
    "the block ends while the store reads": (
        "STORE_WAIT_READ(0);  // memory is free", "", ("exit-before-copy",), ("the tile",), "wait_group.read 0",
    ),
    "the store is not committed": (
        "STORE_COMMIT();  // of the store", "", ("exit-before-copy",), ("the tile",), "wait_group.read 0",
    ),
    "the result is overwritten while the store reads it": (
        "STORE_WAIT_READ(0);  // memory is free", "tile[5] = 7; STORE_WAIT_READ(0);  // memory is free",
        ("unfinished-read",), ("memory is free", "the tile"), "cp.async.bulk.wait_group.read must come",
    ),
    "a load that nobody waits for": (
        "for (int step = 0; step < steps; ++step) {\n                const",
        "for (int step = 0; step < steps + 1; ++step) {\n                const",
        ("exit-before-copy",), ("tile of",), "wait for its mbarrier before the end",
    ),
    "two loads land on each other": (
        "LOAD(stage + 8192, B, step * 64, 0, landed);  // tile of B",
        "LOAD(stage + 6144, B, step * 64, 0, landed);  // tile of B", ("unfinished-copy",),
        ("tile of B", "tile of A"), "waited for the phase",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HAZARDS)
def test_a_planted_mistake_is_named(name):
    old, new, kinds, marks, cure = HAZARDS[name]
    source = planted(PIPELINE, old, new)
    try:
        hazards = run_pipeline(source)[0].hazards
    except emulator.ExecutionError as problem:  # the kernel hung on top of it
        hazards = problem.hazards
        assert "before that" in "".join(problem.__notes__)
    found = [h for h in hazards if h.kind in kinds]
    assert found, hazards
    assert any(cure in str(h) for h in found), [str(h) for h in found]
    assert all(h.note == (name == "the barriers are not fenced") for h in found)
    lines = {line for mark in marks for line in lines_of(source, mark)}
    assert any({at[1] for at in (h.source, h.other_source) if at} <= lines for h in found), found


def lines_of(source, text):
    return [i for i, line in enumerate(source.splitlines(), 1) if text in line]


DEADLOCKS = {
    "too many bytes are expected": (
        "EXPECT(landed, 8192 + 2048);", "EXPECT(landed, 8192 + 4096);",
        r"lacks 0 of 1 arrivals and 2048 bytes: 12288 were announced, copies brought 10240",
    ),
    "too few bytes are expected": (
        "EXPECT(landed, 8192 + 2048);", "EXPECT(landed, 8192);",
        r"copies brought 10240 bytes, 2048 more than the 8192 announced",
    ),
    "nobody announces": (
        "EXPECT(landed, 8192 + 2048);", "", r"lacks 1 of 1 arrivals; copies brought 10240 bytes",
    ),
    "the producer's parity is wrong": (
        "wait(empty + step % 2 * 8, step / 2 % 2 ^ 1);", "wait(empty + step % 2 * 8, step / 2 % 2);",
        r"of barriers is in phase 0 \(parity 0\) and lacks 1 of 1 arrivals and no bytes",
    ),
    "more arrivals are counted than come": (
        "INIT(full, 1); INIT(full + 8, 1);", "INIT(full, 2); INIT(full + 8, 2);", r"lacks 1 of 2 arrivals",
    ),
    "the consumer's parity does not change": (
        "wait(full + step % 2 * 8, step / 2 % 2);", "wait(full + step % 2 * 8, 0);",
        r"of barriers is in phase 2 \(parity 0\) .* If phase 1 was meant, the parity to wait for is 1",
    ),
    "a stage is never freed": (
        "if (thread == 0) ARRIVE(empty + step % 2 * 8);", "if (thread == 128) ARRIVE(empty + step % 2 * 8);",
        r"byte 16 of barriers is in phase 0 \(parity 0\) and lacks 1 of 1 arrivals",
    ),
    "a warp of the warpgroup stays away": (
        "WGMMA_FENCE();  // before products", "if (thread < 96) WGMMA_FENCE();  // before products",
        r"warp 3, lanes 0-31: PTX line \d+: wgmma.mma_async",
    ),
}  # fmt: skip


def test_an_announcement_before_its_turn_is_an_error():
    source = planted(
        PIPELINE, "wait(empty + step % 2 * 8, step / 2 % 2 ^ 1);  // stage is free", ""
    )
    with pytest.raises(
        emulator.ExecutionError,
        match=r"1 more arrivals .*byte 0 of barriers.* waits for 10240 bytes",
    ):
        run_pipeline(source)


@pytest.mark.parametrize("name", DEADLOCKS)
def test_a_planted_deadlock_says_what_is_missing(name):
    old, new, words = DEADLOCKS[name]
    with pytest.raises(emulator.Deadlock, match=words) as caught:
        run_pipeline(planted(PIPELINE, old, new))
    assert caught.value.source is not None


# --- Clusters ---------------------------------------------------------------------------------------

CLUSTER = (
    HEAD
    + r"""
__device__ unsigned rank() { unsigned r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ unsigned mapped(unsigned a, unsigned r) {
    unsigned m; asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(m) : "r"(a), "r"(r)); return m;
}
#define SYNC() asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory")
#define PUT(at, value) asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(at), "r"(value) : "memory")
#define ARRIVE_AT(b) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(b) : "memory")
extern "C" __global__ void exchange(int* out) {
    __shared__ int box[32];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned full = shared_address(&barrier), t = threadIdx.x;
    box[t] = -1;
    if (t == 0) { INIT(full, 32); INIT_FENCE(); }
    SYNC();  // boxes are empty
    PUT(mapped(shared_address(box + t), rank() ^ 1), rank() * 100 + t);  // into the box
    ARRIVE_AT(mapped(full, rank() ^ 1));  // box is full
    wait(full, 0);  // for the box
    out[blockIdx.x * 32 + t] = box[31 - t];  // look
    SYNC();  // all are done
}
"""
)
CLUSTER_HAZARDS = {
    "the box is read before it is full": (
        "wait(full, 0);  // for the box", "", ("read-after-write",), ("look", "into the box"),
    ),
    "the box is written before it is empty": (
        "SYNC();  // boxes are empty", "__syncthreads();", ("write-after-write",), ("into the box", "box[t] = -1"),
    ),
    "a block ends while its neighbour still arrives": (
        "    wait(full, 0);  // for the box\n    out[blockIdx.x * 32 + t] = box[31 - t];  // look\n"
        "    SYNC();  // all are done\n",
        "", ("exited-block",), ("box is full", "into the box"),
    ),
}  # fmt: skip


def test_the_right_exchange_is_quiet():
    out = np.zeros((4, 32), np.int32)
    trace = emulator.Module(compile_ptx(CLUSTER, "90a")).launch("exchange", 4, 32, [out], cluster=2)
    t = np.arange(31, -1, -1)
    assert (out == np.stack([(b % 2 ^ 1) * 100 + t for b in range(4)])).all()
    assert trace.hazards == []


@pytest.mark.parametrize("name", CLUSTER_HAZARDS)
def test_a_planted_mistake_in_a_cluster_is_named(name):
    old, new, kinds, marks = CLUSTER_HAZARDS[name]
    source = planted(CLUSTER, old, new)
    out = np.zeros((4, 32), np.int32)
    trace = emulator.Module(compile_ptx(source, "90a")).launch("exchange", 4, 32, [out], cluster=2)
    found = [h for h in trace.hazards if h.kind in kinds]
    assert found, trace.hazards
    lines = {line for mark in marks for line in lines_of(source, mark)}
    assert any({at[1] for at in (h.source, h.other_source) if at} <= lines for h in found), found


def test_there_are_thirty():
    assert len(HAZARDS) + len(DEADLOCKS) + len(CLUSTER_HAZARDS) >= 30
    assert line_of(PIPELINE, "// the tile")
