"""Cluster launch control: every tile is computed once, by whoever takes it over."""

import numpy as np
import pytest
from cuda_source import launch, line_of

import emulator

SOURCE = r"""
using u32 = unsigned; using u64 = unsigned long long;
__device__ u32 shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }
#ifndef SIZE
#define SIZE 1
#endif
extern "C" __global__ void __cluster_dims__(SIZE, 1, 1) take(int* done, int* by) {
    __shared__ __align__(16) u64 response[2];
    __shared__ u64 bar;
    const int t = threadIdx.x, rank = blockIdx.x % SIZE;
    if (t == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;"
                     :: "r"(shared(&bar)) : "memory");
    asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
    u32 x = blockIdx.x, y = blockIdx.y, z = blockIdx.z, phase = 0, more = 1;
    while (more) {
        if (t == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" :: "r"(shared(&bar)) : "memory");
            if (rank == 0)
                asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
                             EVERYWHERE ".b128 [%0], [%1];" :: "r"(shared(response)), "r"(shared(&bar)) : "memory");
            const int tile = (z * gridDim.y + y) * gridDim.x + x;
            atomicAdd(done + tile, 1);
            by[tile] = blockIdx.x;
        }
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }"
                     :: "r"(shared(&bar)), "r"(phase) : "memory");
        phase ^= 1;
        asm volatile("{ .reg .pred p; .reg .b128 r; ld.shared.b128 r, [%4];\n"
                     "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r;\n"
                     "selp.u32 %3, 1, 0, p;\n"
                     "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, %2, _}, r; }"
                     : "+r"(x), "+r"(y), "+r"(z), "=r"(more) : "r"(shared(response)) : "memory");
        x += rank;  // the first block's
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
    }
}
"""


@pytest.mark.parametrize(("size", "grid"), [(1, 7), (1, (3, 2, 4)), (2, 12), (2, (4, 3))])
def test_every_tile_is_computed_once(size, grid):
    tiles = int(np.prod(grid))
    done, by = np.zeros(tiles, np.int32), np.zeros(tiles, np.int32)
    source = SOURCE.replace("SIZE 1", f"SIZE {size}")
    source = source.replace("EVERYWHERE", '".multicast::cluster::all"' if size > 1 else "")
    trace = launch(source, "take", grid, 32, [done, by], "100a")
    assert (done == 1).all() and not trace.hazards
    width = grid if type(grid) is int else grid[0]
    took = by != np.arange(tiles) % width
    if grid in (7, 12):  # a third began at once, and they took all others over
        assert took.sum() == tiles - -(-tiles // 3) // size * size


def test_a_response_on_the_way_is_not_there_yet():
    wait = "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again;"
    assert wait in SOURCE
    done, by = np.zeros(7, np.int32), np.zeros(7, np.int32)
    source = SOURCE.replace("EVERYWHERE", "").replace(wait, "")
    trace = launch(source, "take", 7, 32, [done, by], "100a")
    assert "unfinished-copy" in {hazard.kind for hazard in trace.hazards}


def test_an_answer_is_read_before_the_next_one_comes():
    fence = '        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");\n'
    assert fence in SOURCE
    done, by = np.zeros(7, np.int32), np.zeros(7, np.int32)
    source = SOURCE.replace("EVERYWHERE", "").replace(fence, "")
    (hazard,) = launch(source, "take", 7, 32, [done, by], "100a").hazards
    assert hazard.kind == "missing-proxy-fence" and "read the one before" in str(hazard)
    assert hazard.source[1] == line_of(source, "try_cancel.async")
    assert hazard.other_source[1] == line_of(source, "ld.shared.b128")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("while (more)", "while (phase < 9 || more)", "has seen that none was left"),
        ('"@p clusterlaunch', '"clusterlaunch', "where none was cancelled"),
        ("[%0], 16;", "[%0], 32;", "polling"),
    ],
)
def test_what_is_undefined_is_an_error(old, new, why):
    assert old in SOURCE
    out = [np.zeros(7, np.int32) for _ in range(2)]
    source = SOURCE.replace("EVERYWHERE", "").replace(old, new)
    with pytest.raises(emulator.ExecutionError, match=why):
        launch(source, "take", 7, 32, out, "100a")
