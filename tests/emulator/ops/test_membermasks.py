"""Parts of one warp that execute a collective at once, each with a membermask of its own."""

import numpy as np
import pytest
from cuda_source import launch

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

template <int SIZE>
__device__ void tiles(const int *x, int *out, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    auto tile = cg::tiled_partition<SIZE>(cg::this_thread_block());
    out[i] = cg::reduce(tile, x[i], cg::plus<int>());
    out[n + i] = tile.any(x[i] > 90) + 2 * tile.all(x[i] > -50);
    out[2 * n + i] = tile.ballot(x[i] & 1);
    out[3 * n + i] = tile.match_any(x[i] & 3);
    out[4 * n + i] = tile.shfl(x[i], 3) - tile.shfl_down(x[i], 1);
}
extern "C" __global__ void tiles16(const int *x, int *out, int n) { tiles<16>(x, out, n); }
extern "C" __global__ void tiles8(const int *x, int *out, int n) { tiles<8>(x, out, n); }

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void halves(const int *x, int *out, int n) {
    int i = threadIdx.x;
    unsigned half = 0xffffu << (i & 16);
    out[i] = __reduce_add_sync(half, x[i]);
    out[n + i] = __reduce_max_sync(half, x[i]);
    int same;
    unsigned all = __match_all_sync(half, x[i] >> 20, &same);
    out[2 * n + i] = all; out[3 * n + i] = same;
}

extern "C" __global__ void by_sign(const int *x, int *out, int n) {  // masks that no pattern has
    int i = threadIdx.x;
    unsigned negative = __ballot_sync(~0u, x[i] < 0);
    unsigned mine = x[i] < 0 ? negative : ~negative;
    out[i] = __reduce_add_sync(mine, x[i]);
    out[n + i] = __any_sync(mine, x[i] == 7);
    __syncwarp(mine);
    unsigned leader, is;
    asm("{ .reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p; }" : "=r"(leader), "=r"(is) : "r"(mine));
    out[2 * n + i] = leader; out[3 * n + i] = is;
}

extern "C" __global__ void coalesced(const int *x, int *out, int n) {
    int i = threadIdx.x;
    out[i] = -1;
    if (x[i] % 3 == 0) {
        auto active = cg::coalesced_threads();
        out[i] = active.size();
        out[n + i] = cg::reduce(active, x[i], cg::plus<int>());
    } else {
        auto active = cg::coalesced_threads();
        auto parts = cg::labeled_partition(active, x[i] & 3);
        out[i] = parts.size();
        out[n + i] = cg::reduce(parts, x[i], cg::plus<int>());
    }
}

extern "C" __global__ void at_different_times(const int *x, int *out, int n) {
    __shared__ volatile int flag;
    int i = threadIdx.x;
    if (i == 0) flag = 0;
    __syncthreads();
    unsigned half = 0xffffu << (i & 16);
    if (i & 16) while (!flag) ;             // the upper half waits for what the lower does afterwards
    out[i] = __reduce_add_sync(half, x[i]);
    if (i == 3) { __threadfence_block(); flag = 1; }
}
#endif
"""
N = 128


def _run(entry, x, arch=90, **options):
    out = np.zeros((5, len(x)), np.int32)
    launch(SOURCE, entry, 1, len(x), [x, out, np.int32(len(x))], arch, **options)
    return out


@pytest.mark.parametrize("arch", [75, 80, 90])
@pytest.mark.parametrize("size", [8, 16])
def test_tiles_of_cooperative_groups(size, arch):
    x = np.random.default_rng(size).integers(-100, 100, N).astype(np.int32)
    got = _run(f"tiles{size}", x, arch)
    tiles = x.reshape(-1, size)
    weights = 1 << np.arange(size)

    def spread(per_tile):
        return np.repeat(per_tile, size)

    assert (got[0] == spread(tiles.sum(1))).all()
    assert (got[1] == spread((tiles > 90).any(1) + 2 * (tiles > -50).all(1))).all()
    assert (got[2] == spread((weights * (tiles & 1)).sum(1))).all()
    same = (tiles[:, :, None] & 3) == (tiles[:, None, :] & 3)
    assert (got[3] == (same * weights).sum(2).reshape(-1)).all()
    after = np.concatenate([tiles[:, 1:], tiles[:, -1:]], 1)
    assert (got[4] == (tiles[:, 3:4] - after).reshape(-1)).all()


def test_halves_with_a_mask_each():
    x = np.random.default_rng(1).integers(-(1 << 26), 1 << 26, N).astype(np.int32)
    x[16:32] = 5
    got, parts = _run("halves", x), x.reshape(-1, 16)
    assert (got[0] == np.repeat(parts.sum(1, dtype=np.int32), 16)).all()
    assert (got[1] == np.repeat(parts.max(1), 16)).all()
    agreed = np.repeat((parts >> 20 == parts[:, :1] >> 20).all(1), 16)
    assert agreed.any() and not agreed.all()
    own = np.where(np.arange(N) & 16, 0xFFFF0000, 0xFFFF).astype(np.uint32)
    assert (got[2].view(np.uint32) == np.where(agreed, own, 0)).all() and (got[3] == agreed).all()


def test_masks_that_differ_from_warp_to_warp():
    x = np.random.default_rng(2).integers(-9, 9, N).astype(np.int32)
    x[32:64] = 7  # one warp with one mask beside warps with two
    got = _run("by_sign", x)
    for warp in range(0, N, 32):
        lanes = x[warp : warp + 32]
        for part in (lanes < 0, lanes >= 0):
            if part.any():
                there, first = warp + np.flatnonzero(part), int(part.argmax())
                assert (got[0, there] == lanes[part].sum()).all()
                assert (got[1, there] == (lanes[part] == 7).any()).all()
                assert (got[2, there] == first).all()
                assert (got[3, there] == (there == warp + first)).all()


def test_coalesced_threads_and_labels():
    x = np.random.default_rng(3).integers(0, 100, N).astype(np.int32)
    got = _run("coalesced", x)
    for warp in range(0, N, 32):
        lanes = x[warp : warp + 32]
        for lane, value in enumerate(lanes):
            labelled = (lanes % 3 != 0) & (lanes & 3 == value & 3)
            group = labelled if value % 3 else lanes % 3 == 0
            assert got[0, warp + lane] == group.sum(), (warp, lane)
            assert got[1, warp + lane] == lanes[group].sum()


def test_a_group_that_is_complete_does_not_wait_for_the_others():
    x = np.random.default_rng(4).integers(-9, 9, 32).astype(np.int32)
    assert (_run("at_different_times", x)[0] == np.repeat(x.reshape(2, 16).sum(1), 16)).all()
