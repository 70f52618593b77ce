"""What lanes of a warp get wrong together; and the idioms of synchronising that are right."""

import numpy as np
import pytest
from cuda_source import launch, line_of

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void from_an_exited_lane(const int *x, int *y, int n) {
    int v = x[threadIdx.x];
    if (threadIdx.x % 32 >= 20) return;
    y[threadIdx.x] = __shfl_down_sync(0xfffff, v, 1);       // lane 19 gets what nobody gives
}
extern "C" __global__ void outside_the_mask(const int *x, int *y, int n) {
    int v = x[threadIdx.x], got = 0;
    if (threadIdx.x % 32 < 16) got = __shfl_xor_sync(0xffff, v, 16);
    y[threadIdx.x] = got;                                   // of the other half
}
extern "C" __global__ void in_another_mask(const int *x, int *y, int n) {
    int v = x[threadIdx.x];
    y[threadIdx.x] = __shfl_xor_sync(0xffffu << (threadIdx.x & 16), v, 16);   // each half its own
}
extern "C" __global__ void not_in_its_mask(const int *x, int *y, int n) {
    y[threadIdx.x] = __any_sync(0xffff, x[threadIdx.x] > 50);   // the upper half too
}
extern "C" __global__ void sum_of_half_a_warp(const int *x, int *y, int n) {
    int v = x[threadIdx.x];
    if (threadIdx.x % 32 < 16) {
        for (int o = 8; o; o >>= 1) v += __shfl_down_sync(0xffff, v, o);
        if (threadIdx.x % 32 == 0) y[threadIdx.x / 32] = v;
    }
}
extern "C" __global__ void sum_of_too_few(const int *x, int *y, int n) {
    int v = x[threadIdx.x];
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) y[threadIdx.x / 32] = v;     // the last warp is not whole
}
extern "C" __global__ void scan(const int *x, int *y, int n) {
    int v = x[threadIdx.x], lane = threadIdx.x % 32;
    for (int o = 1; o < 32; o *= 2) {
        int up = __shfl_up_sync(~0u, v, o);
        if (lane >= o) v += up;
    }
    y[threadIdx.x] = v;
}
template <bool SYNC> __device__ void in_step(const int *x, int *y) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 32) {
        for (int o = 32; o; o >>= 1) {
            int other = s[t + o];                           // as if lanes went in step
            if (SYNC) __syncwarp();
            if (t < o) s[t] = s[t] + other;
            if (SYNC) __syncwarp();
        }
        if (t == 0) y[0] = s[0];
    }
}
extern "C" __global__ void warp_synchronous(const int *x, int *y, int n) { in_step<false>(x, y); }
extern "C" __global__ void warp_synchronised(const int *x, int *y, int n) { in_step<true>(x, y); }
extern "C" __global__ void polled(const int *x, int *y, int n) {
    __shared__ volatile int flag;
    __shared__ int value;
    int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 40) { value = x[0]; __threadfence_block(); flag = 1; }
    if (t == 3 || t == 50) { while (flag == 0) ; __threadfence_block(); y[t] = value; }
}
extern "C" __global__ void different_values(const int *x, int *y, int n) {
    __shared__ int s[4];
    s[0] = threadIdx.x;                                     // everybody writes its own
    __syncthreads();
    y[threadIdx.x] = s[0];
}
extern "C" __global__ void two_lanes(const int *x, int *y, int n) {
    __shared__ short s[32];
    if (threadIdx.x < 32) s[threadIdx.x / 2] = threadIdx.x / (n - 61);   // two lanes each
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x & 15];
}
extern "C" __global__ void the_same_value(const int *x, int *y, int n) {
    __shared__ int s[1];
    s[0] = n;
    __syncthreads();
    y[threadIdx.x] = s[0];
}
template <bool FENCE> __device__ void hand_over(const int *x, int *y, int *flag) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t == 0) *flag = 0;
    __syncthreads();
    if (t < 32) {
        s[t] = x[t];
        __syncwarp();
        if (t == 0) { if (FENCE) __threadfence(); atomicExch(flag, 1); }
    } else {
        if (t == 32) { while (atomicAdd(flag, 0) == 0) ; if (FENCE) __threadfence(); }
        __syncwarp();
        y[t] = s[t - 32];                                   // takes it over
    }
}
extern "C" __global__ void flag_in_shared(const int *x, int *y, int n) { __shared__ int f; hand_over<true>(x, y, &f); }
extern "C" __global__ void flag_in_global(const int *x, int *y, int n) { hand_over<true>(x, y, y + 512); }

template <int SIZE> __device__ void tiles(const int *x, int *y, int n) {
    __shared__ int s[256];
#if __CUDA_ARCH__ >= 800
    auto block = cg::this_thread_block();
#else
    __shared__ cg::block_tile_memory<256> scratch;
    auto block = cg::this_thread_block(scratch);
#endif
    auto tile = cg::tiled_partition<SIZE>(block);
    int i = threadIdx.x;
    s[i] = x[i];
    tile.sync();
    int other = s[i ^ (SIZE / 2)];
    tile.sync();
    s[i] = other;
    y[i] = cg::reduce(tile, x[i], cg::plus<int>());
    y[n + i] = tile.any(x[i] > 95);
    y[2 * n + i] = tile.shfl(x[i], 35);
    y[3 * n + i] = s[i];
}
extern "C" __global__ void tiles64(const int *x, int *y, int n) { tiles<64>(x, y, n); }
extern "C" __global__ void tiles128(const int *x, int *y, int n) { tiles<128>(x, y, n); }
"""


def _run(entry, block=64, n=64, arch=80, **more):
    x = np.random.default_rng(5).integers(0, 100, 1024).astype(np.int32)
    y = np.zeros(1024, np.int32)
    return launch(SOURCE, entry, 1, block, [x, y, np.int32(n)], arch, **more).hazards, x, y


@pytest.mark.parametrize(
    ("entry", "block", "kind", "text", "count"),
    [
        ("from_an_exited_lane", 64, "undefined-shuffle", "lane 19 gets", 2),
        ("outside_the_mask", 64, "undefined-shuffle", "of the other half", 32),
        ("in_another_mask", 64, "undefined-shuffle", "each half its own", 64),
        ("sum_of_too_few", 48, "undefined-shuffle", "the last warp is not whole", 1),
        ("not_in_its_mask", 64, "membermask", "the upper half too", 32),
        ("warp_synchronous", 64, None, "as if lanes went in step", None),
        ("different_values", 64, "write-after-write", "everybody writes its own", 63),
        ("two_lanes", 64, "write-after-write", "two lanes each", None),
    ],
)
def test_what_is_wrong_is_named_at_its_line(entry, block, kind, text, count):
    hazards, *_ = _run(entry, block)
    line = line_of(SOURCE, text)
    found = [h for h in hazards if line in {at for _, at in (*h.frames, *h.other_frames)}]
    assert found and kind in (None, found[0].kind), [str(h) for h in hazards]
    assert count in (None, found[0].count), str(found[0])
    if kind:
        assert {h.kind for h in hazards} == {kind}


@pytest.mark.parametrize(
    ("entry", "block"),
    [("sum_of_half_a_warp", 64), ("sum_of_too_few", 64), ("scan", 64), ("scan", 48), ("warp_synchronised", 64),
     ("polled", 64), ("the_same_value", 64), ("flag_in_shared", 64), ("flag_in_global", 64)],
)  # fmt: skip
@pytest.mark.parametrize("arch", [75, 90])
def test_what_is_right_is_left_in_peace(entry, block, arch):
    hazards, x, y = _run(entry, block, arch=arch)
    assert not hazards, [str(h) for h in hazards]
    if entry == "sum_of_half_a_warp":
        assert (y[:2] == x[:64].reshape(2, 32)[:, :16].sum(1)).all()
    if entry.startswith("flag"):
        assert (y[32:64] == x[:32]).all()


@pytest.mark.parametrize("arch", [75, 80, 90])
@pytest.mark.parametrize("size", [64, 128])
def test_tiles_of_several_warps(size, arch):
    """Their barriers lie in the system's part of shared memory, behind the user's, since sm_80."""
    hazards, x, y = _run(f"tiles{size}", 256, 256, arch)
    x, y = x[:256], y.reshape(4, 256)
    tiles = x.reshape(-1, size)
    assert (y[0] == np.repeat(tiles.sum(1), size)).all()
    assert (y[1] == np.repeat((tiles > 95).any(1), size)).all()
    assert (y[2] == np.repeat(tiles[:, 35], size)).all()
    assert (y[3] == x[np.arange(256) ^ (size // 2)]).all()
    assert not hazards, [str(h) for h in hazards]
