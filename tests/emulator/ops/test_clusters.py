"""Clusters: shared memory of other blocks, barriers, multicast, remote arrivals; registers moved."""

import numpy as np
import pytest
from cuda_source import compile_ptx, launch

import emulator
from emulator import TensorMap

COOPERATIVE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void histogram(const int* in, int* out, int n) {
    __shared__ int bins[64];
    auto cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < 64; i += blockDim.x) bins[i] = 0;
    cluster.sync();
    const int rank = cluster.block_rank(), blocks = cluster.num_blocks();
    const int first = blockIdx.x / blocks * blocks * n + rank * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {  // each block holds its part of all bins
        const int value = in[first + i];
        int* theirs = cluster.map_shared_rank(bins, value / 64 % blocks);
        atomicAdd(theirs + value % 64, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < 64; i += blockDim.x) out[blockIdx.x * 64 + i] = bins[i];
}
extern "C" __global__ void ring(int* out) {
    __shared__ int mine[32];
    auto cluster = cg::this_cluster();
    mine[threadIdx.x] = 1000 * blockIdx.x + threadIdx.x;
    cluster.sync();
    const int* next = cluster.map_shared_rank(mine, (cluster.block_rank() + 1) % cluster.num_blocks());
    out[blockIdx.x * 32 + threadIdx.x] = next[31 - threadIdx.x];
    if (cg::cluster_group::query_shared_rank(next) != (cluster.block_rank() + 1) % cluster.num_blocks())
        out[blockIdx.x * 32 + threadIdx.x] = -1;
    cluster.sync();
}
"""


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_atomics_on_the_bins_of_a_cluster(blocks):
    rng = np.random.default_rng(blocks)
    data = rng.integers(0, 64 * blocks, (2, blocks, 100)).astype(np.int32)
    out = np.zeros((2, blocks, 64), np.int32)
    trace = launch(
        COOPERATIVE, "histogram", 2 * blocks, 64, [data, out, np.int32(100)], 90, cluster=blocks
    )
    for cluster in range(2):
        want = np.bincount(data[cluster].reshape(-1), minlength=64 * blocks)
        assert (out[cluster].reshape(-1) == want).all()
    assert trace.hazards == []


def test_a_block_reads_its_neighbours_memory():
    out = np.zeros((6, 32), np.int32)
    trace = launch(COOPERATIVE, "ring", 6, 32, [out], 90, cluster=3)
    for block in range(6):
        after = block // 3 * 3 + (block + 1) % 3
        assert out[block].tolist() == [1000 * after + 31 - i for i in range(32)]
    assert trace.hazards == []
    with pytest.raises(ValueError, match="not whole clusters"):
        launch(COOPERATIVE, "ring", 6, 32, [out], 90, cluster=3, blocks=[(0, 0, 0), (1, 0, 0)])
    out[:] = 0
    launch(
        COOPERATIVE, "ring", 6, 32, [out], 90, cluster=3, blocks=[(3, 0, 0), (4, 0, 0), (5, 0, 0)]
    )
    assert not out[:3].any() and out[3:].all()


SPECIALS = r"""
#define GET(i, name) asm("mov.u32 %0, %%" name ";" : "=r"(v)); o[i] = v
extern "C" __global__ void specials(unsigned* out) {
    unsigned v;
    unsigned* o = out + 16 * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    GET(0, "clusterid.x"); GET(1, "clusterid.y"); GET(2, "clusterid.z");
    GET(3, "nclusterid.x"); GET(4, "nclusterid.y"); GET(5, "nclusterid.z");
    GET(6, "cluster_ctaid.x"); GET(7, "cluster_ctaid.y"); GET(8, "cluster_ctaid.z");
    GET(9, "cluster_nctaid.x"); GET(10, "cluster_nctaid.y"); GET(11, "cluster_nctaid.z");
    GET(12, "cluster_ctarank"); GET(13, "cluster_nctarank");
    asm("{.reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p;}" : "=r"(v));
    o[14] = v;
}
"""


@pytest.mark.parametrize("cluster", [None, (2, 1, 1), (2, 3, 2)])
def test_special_registers_of_clusters(cluster):
    grid = (4, 6, 2)
    out = np.zeros((*reversed(grid), 16), np.uint32)
    launch(SPECIALS, "specials", grid, 1, [out], 90, cluster=cluster)
    cx, cy, cz = cluster or (1, 1, 1)
    for z, y, x in np.ndindex(*reversed(grid)):
        inside = (x % cx, y % cy, z % cz)
        want = [x // cx, y // cy, z // cz, 4 // cx, 6 // cy, 2 // cz, *inside, cx, cy, cz]
        want += [
            inside[0] + cx * (inside[1] + cy * inside[2]),
            cx * cy * cz,
            int(cluster is not None),
        ]
        assert out[z, y, x, :15].tolist() == want


BARRIERS = r"""
__device__ unsigned shared_address(const void* p) { return __cvta_generic_to_shared(p); }
__device__ unsigned rank() { unsigned r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ unsigned map(unsigned a, unsigned r) {
    unsigned m; asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(m) : "r"(a), "r"(r)); return m;
}
__device__ void wait(unsigned barrier, unsigned parity) {
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2, 1000;"
                     " selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}
#define SYNC() asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory")
#define INIT(b, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster;" :: "r"(b), "r"(n))
struct __align__(128) Map { unsigned char opaque[128]; };

extern "C" __global__ void async_stores(int* out) {
    __shared__ __align__(16) int inbox[4 * 64];
    __shared__ int sum[64];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned full = shared_address(&barrier), t = threadIdx.x, next = rank() ^ 1;
    sum[t] = t;
    if (t == 0) { INIT(full, 1); asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1536;" :: "r"(full)); }
    SYNC();
    const unsigned theirs = map(shared_address(inbox + 4 * t), next), at = map(full, next);
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];"
                 :: "r"(theirs), "r"(t), "r"(t + 1000), "r"(t * t), "r"(next), "r"(at) : "memory");
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
                 :: "r"(map(shared_address(sum + t), next)), "r"(7), "r"(at) : "memory");
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
                 :: "r"(map(shared_address(sum + t), next)), "r"(next), "r"(at) : "memory");
    wait(full, 0);
    for (int i = 0; i < 4; ++i) out[(blockIdx.x * 64 + t) * 5 + i] = inbox[4 * t + i];
    out[(blockIdx.x * 64 + t) * 5 + 4] = sum[t];
    SYNC();
}
extern "C" __global__ void multicast(const __grid_constant__ Map map_, float* out, int mask) {
    __shared__ __align__(128) float tile[4][8][32];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned full = shared_address(&barrier);
    if (threadIdx.x == 0) {
        INIT(full, 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(full), "r"(4096));
    }
    SYNC();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%2, %3}], [%4], %5;" :: "r"(shared_address(tile[rank()])), "l"(&map_), "r"(0),
                     "r"(8 * (int)rank()), "r"(full), "h"((short)mask) : "memory");
    wait(full, 0);
    for (int i = threadIdx.x; i < 1024; i += 32) out[blockIdx.x * 1024 + i] = (&tile[0][0][0])[i];
    SYNC();
}
extern "C" __global__ void copies_between_blocks(const int* in, int* out) {
    __shared__ __align__(16) int mine[64], theirs[64];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned full = shared_address(&barrier), t = threadIdx.x, next = rank() ^ 1;
    if (t == 0) { INIT(full, 1); asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(full)); }
    mine[t] = in[blockIdx.x * 64 + t];
    theirs[t] = 3;
    asm volatile("fence.proxy.async;" ::: "memory");
    SYNC();
    if (t == 0) {
        const unsigned to = map(shared_address(theirs), next), at = map(full, next);
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                     :: "r"(to), "r"(shared_address(mine)), "r"(at) : "memory");
    }
    wait(full, 0);
    if (t == 0) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" :: "r"(full));
    SYNC();
    if (t < 2) {
        const unsigned to = map(shared_address(theirs), next), at = map(full, next);
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32 "
                     "[%0], [%1], 256, [%2];" :: "r"(to), "r"(shared_address(mine)), "r"(at) : "memory");
    }
    wait(full, 1);
    out[blockIdx.x * 64 + t] = theirs[t];
    SYNC();
}
extern "C" __global__ void remote_arrivals(int* out) {
    __shared__ int value;
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned full = shared_address(&barrier), t = threadIdx.x;
    if (t == 0) INIT(full, 32 * 4);
    SYNC();
    if (t == 0 && rank() == 0) value = 42;
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(map(full, 2)) : "memory");
    if (rank() == 2) {
        wait(full, 0);
        int v;
        asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(v) : "r"(map(shared_address(&value), 0)) : "memory");
        out[t] = v;
    }
    SYNC();
}
extern "C" __global__ void split_barrier(int* out) {
    __shared__ int value;
    value = -1;
    SYNC();
    if (threadIdx.x == 0)
        asm volatile("st.shared::cluster.s32 [%0], %1;"
                     :: "r"(map(shared_address(&value), rank() ^ 1)), "r"(rank() + 10) : "memory");
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    int sum = 0;
    for (int i = 0; i < threadIdx.x; ++i) sum += i;
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    out[blockIdx.x * 32 + threadIdx.x] = value * 1000 + sum;
}
extern "C" __global__ void rounds(int* out) {
    __shared__ int value;
    const int cluster = blockIdx.x / 2, count = 3 - 2 * cluster;
    value = 0;
    SYNC();
    int seen = 0;
    for (int round = 1; round <= count; ++round) {
        if (rank() == 1 && cluster == 1)
            _Pragma("unroll 1") for (int i = 0; i < 50; ++i) asm volatile("nanosleep.u32 10;");  // the others go ahead
        asm volatile("st.shared::cluster.s32 [%0], %1;"
                     :: "r"(map(shared_address(&value), rank() ^ 1)), "r"(round + 10 * (int)rank()) : "memory");
        asm volatile("barrier.cluster.arrive.release;" ::: "memory");
        if (rank() == 0 && cluster == 1)
            _Pragma("unroll 1") for (int i = 0; i < 20; ++i) asm volatile("nanosleep.u32 10;");  // the others meet
        asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
        seen = seen * 100 + value;
        SYNC();
    }
    out[blockIdx.x] = seen;
}
extern "C" __global__ void wrong(int what) {
    __shared__ int value;
    if (what == 0) asm volatile("barrier.cluster.wait;");
    if (what == 1) asm volatile("barrier.cluster.arrive; barrier.cluster.arrive;");
    if (what == 2) asm volatile("st.shared::cluster.s32 [%0], 1;" :: "r"(map(shared_address(&value), 2)));
    if (what == 3 && blockIdx.x == 0) SYNC();
    if (what == 3 && blockIdx.x == 1) while (true) asm volatile("nanosleep.u32 10;");
}
"""


@pytest.fixture(scope="module")
def barriers():
    return emulator.Module(compile_ptx(BARRIERS, "90a"))


def test_asynchronous_stores_and_reductions(barriers):
    out = np.zeros((4, 64, 5), np.int32)
    trace = barriers.launch("async_stores", 4, 64, [out], cluster=2)
    t = np.arange(64)
    for block in range(4):
        own = np.full(64, block % 2)
        want = np.stack([t, t + 1000, t * t, own, t + 7 + own], 1)
        assert (out[block] == want).all()
    assert trace.hazards == []


@pytest.mark.parametrize("mask", [15, 5])
def test_multicast_reaches_the_blocks_of_its_mask(barriers, mask):
    data = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    out = np.full((4, 4, 8, 32), -1, np.float32)
    one = TensorMap(data, (8, 32))
    if mask == 15:
        trace = barriers.launch("multicast", 4, 32, [one, out, np.int32(mask)], cluster=4)
        assert (out == data.reshape(4, 8, 32)).all()
        assert trace.hazards == []
        (row,) = trace.rows("cp.async.bulk.tensor")
        assert (row.global_requests, row.global_sectors) == (4 * 8, 4 * 32)
    else:  # blocks 1 and 3 are not reached, and wait in vain
        with pytest.raises(emulator.Deadlock, match="4096 were announced, copies brought 0"):
            barriers.launch("multicast", 4, 32, [one, out, np.int32(mask)], cluster=4)
    with pytest.raises(emulator.ExecutionError, match=r"multicast to blocks .* of a cluster of 2"):
        barriers.launch("multicast", 4, 32, [one, out, np.int32(15)], cluster=2)


def test_copies_between_the_blocks_of_a_cluster(barriers):
    data = np.random.default_rng(3).integers(0, 99, (4, 64)).astype(np.int32)
    out = np.zeros_like(data)
    trace = barriers.launch("copies_between_blocks", 4, 64, [data, out], cluster=2)
    assert (out == 3 * data[[1, 0, 3, 2]]).all()
    assert trace.hazards == []


def test_arrivals_from_afar_complete_a_phase(barriers):
    out = np.zeros(32, np.int32)
    trace = barriers.launch("remote_arrivals", 4, 32, [out], cluster=4)
    assert (out == 42).all() and trace.hazards == []


def test_clusters_go_round_by_themselves(barriers):
    """The first cluster meets more often than the second, of which one block comes late."""
    out = np.zeros(4, np.int32)
    trace = barriers.launch("rounds", 4, 1, [out], cluster=2)
    assert out.tolist() == [111213, 10203, 11, 1]
    assert trace.hazards == []


def test_a_barrier_that_arrives_and_waits_apart(barriers):
    out = np.zeros((4, 32), np.int32)
    trace = barriers.launch("split_barrier", 4, 32, [out], cluster=2)
    t = np.arange(32)
    want = np.stack([(10 + (b % 2 ^ 1)) * 1000 + t * (t - 1) // 2 for b in range(4)])
    assert (out == want).all() and trace.hazards == []


@pytest.mark.parametrize("what, error, words", [
    (0, emulator.ExecutionError, "wait without a barrier.cluster.arrive"),
    (1, emulator.ExecutionError, "arrives at barrier.cluster twice"),
    (2, emulator.ExecutionError, "no block 2 in a cluster of 2"),
    (3, emulator.Deadlock, "every warp that can run is polling"),
])  # fmt: skip
def test_wrong_uses_are_errors(barriers, what, error, words):
    with pytest.raises(error, match=words):
        barriers.launch("wrong", 2, 32, [np.int32(what)], cluster=2)


THROUGH_GLOBAL = r"""
#include <cooperative_groups.h>
extern "C" __global__ void through_global(int* data, int* out, int meets) {
    auto cluster = cooperative_groups::this_cluster();
    const int block = blockIdx.x, t = threadIdx.x;
    data[block * 64 + t] = block * 64 + t;
    if (meets) cluster.sync();
    out[block * 64 + t] = data[(block ^ 1) * 64 + 63 - t];
    if (t == 0) atomicAdd(out + 256, 1);
    cluster.sync();
}
"""


def test_blocks_that_meet_may_pass_on_through_global_memory():
    module = emulator.Module(compile_ptx(THROUGH_GLOBAL, 90))
    for meets in (1, 0):
        data, out = np.zeros(256, np.int32), np.zeros(257, np.int32)
        trace = module.launch("through_global", 4, 64, [data, out, np.int32(meets)], cluster=2)
        assert out[256] == 4
        assert [h.kind for h in trace.hazards] == ([] if meets else ["global-race"])


# --- Registers --------------------------------------------------------------------------------------

REGISTERS = r"""
extern "C" __global__ void __launch_bounds__(384, 1) moved(int* out, int what) {
    if (threadIdx.x < 128) asm volatile("setmaxnreg.dec.sync.aligned.u32 GIVEN;");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 TAKEN;");
    out[threadIdx.x] = threadIdx.x;
}
extern "C" __global__ void __launch_bounds__(384, 1) divided(int* out) {
    if (threadIdx.x < 96) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    out[threadIdx.x] = threadIdx.x;
}
"""


def registers(given, taken, entry="moved"):
    text = REGISTERS.replace("GIVEN", str(given)).replace("TAKEN", str(taken))
    out = np.zeros(384, np.int32)
    args = [out, np.int32(0)] if entry == "moved" else [out]
    launch(text, entry, 1, 384, args, "90a")
    assert (out == np.arange(384)).all()


def test_two_blocks_on_a_multiprocessor_share_its_registers():
    halved = REGISTERS.replace("(384, 1) moved", "(256, 2) moved")

    def moved(given, taken):
        text = halved.replace("GIVEN", str(given)).replace("TAKEN", str(taken))
        launch(text, "moved", 1, 256, [np.zeros(256, np.int32), np.int32(0)], "90a")

    moved(24, 232)
    with pytest.raises(emulator.Deadlock, match=r"would hold 33792 registers, and it has 32768"):
        moved(24, 240)
    with pytest.raises(
        emulator.ExecutionError, match=r"dec to 136 registers by a warp that has 128"
    ):
        moved(136, 232)


def test_registers_move_between_warpgroups():
    registers(40, 232)
    registers(24, 240)
    with pytest.raises(emulator.Deadlock, match=r"would hold 65536 registers, and it has 64512"):
        registers(32, 240)
    registers(40, 160)  # ptxas then begins with 160
    with pytest.raises(
        emulator.ExecutionError, match=r"dec to 200 registers by a warp that has 168"
    ):
        registers(200, 232)


@pytest.mark.parametrize("count", [20, 36, 264])
def test_counts_of_registers_that_do_not_exist_are_refused(count):
    with pytest.raises(emulator.PtxError, match="a multiple of 8 from 24 to 256"):
        registers(count, 232)


def test_a_whole_warpgroup_changes_its_registers():
    with pytest.raises(emulator.BarrierDivergence, match="all 128 threads of a warpgroup"):
        registers(40, 232, "divided")


PEER = r"""
extern "C" __global__ void __cluster_dims__(4, 1, 1) arrive(int* out) {
    __shared__ __align__(1024) unsigned long long bars[4];
    const unsigned bar = (unsigned)__cvta_generic_to_shared(&bars[2]);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" :: "r"(bar));
    asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
    unsigned leaders;
    asm("and.b32 %0, %1, MASK;" : "=r"(leaders) : "r"(bar));
    if (threadIdx.x == 0)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(leaders) : "memory");
    asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(bar));
    if (threadIdx.x == 0) out[blockIdx.x] = done;
}
"""


@pytest.mark.parametrize("mask", ["0xFEFFFFFF", "0xFEFFFFF8", "0xFEFFFC18"])
def test_an_address_without_its_peer_bit_is_the_even_blocks(mask):
    """0xFEFFFFFF in published kernels; compilers also clear low bits that they know to be 0."""
    out = np.zeros(4, np.int32)
    launch(PEER.replace("MASK", mask), "arrive", 4, 32, [out], 90)
    assert out.tolist() == [1, 0, 1, 0]
