"""What the sanitizer knows of tensor memory: one right kernel, and what each mistake in it is called."""

import numpy as np
import pytest
import tcgen05_source
from cuda_source import launch

import emulator

# A product of ones by a thread of warp 0; every warp reads its lanes, then thread 32 multiplies once more.
RIGHT = (
    tcgen05_source.WRAPPERS
    + r"""
__device__ void multiply(u32 d, u64 a, u64 b, u32 add) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0;"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }"
        :: "r"(d), "l"(a), "l"(b), "r"(1 << 4 | 32 >> 3 << 17 | 128 >> 4 << 24), "r"(add) : "memory"); }
extern "C" __global__ void __launch_bounds__(128) k(float* out) {
    __shared__ __align__(1024) unsigned short tiles[128 * 16 + 32 * 16];
    __shared__ u64 bar[2];
    __shared__ u32 base_;
    const int t = threadIdx.x, warp = t / 32;
    for (int i = t; i < 128 * 16 + 32 * 16; i += 128) tiles[i] = 0x3C00;
    fence_proxy();
    if (warp == 0) alloc(&base_, 64);
    if (t == 0) { init(&bar[0], 1); init(&bar[1], 1); }
    __syncthreads();
    const u32 d = base_, lanes = d + (warp << 21);
    const u64 none = 1ull << 46 | 8ull << 32;
    const u64 a = shared(tiles) >> 4 | none | 128ull << 16, b = shared(tiles + 128 * 16) >> 4 | none | 32ull << 16;
    if (t == 0) {
        multiply(d, a, b, 0);  // first
        commit(&bar[0]);       // first
    }
    wait(&bar[0], 0);
    after();  // of the load
    u32 x = load(lanes);
    wait_ld();
    out[t] = __uint_as_float(x);
    before();  // of the load
    __syncthreads();
    after();  // of the product
    if (t == 32) {
        multiply(d, a, b, 1);
        commit(&bar[1]);
    }
    wait(&bar[1], 0);
    after();
    x = load(lanes + 1);
    wait_ld();
    out[128 + t] = __uint_as_float(x);
    before();
    __syncthreads();  // of the end
    if (warp == 0) dealloc(d, 64);
}"""
)


def run(source):
    out = np.full(256, -1, np.float32)
    return launch(source, "k", 1, 128, [out], "100a"), out


def test_the_right_kernel():
    trace, out = run(RIGHT)
    assert not trace.hazards
    assert (out[:128] == 16).all() and (out[128:] == 32).all()


MISTAKES = {
    "no wait": ("    wait(&bar[0], 0);\n", "", "unfinished-product"),
    "no commit": ("        commit(&bar[0]);       // first\n    }\n    wait(&bar[0], 0);\n", "    }\n", "unfinished-product"),
    "no fence after": ("    after();  // of the load\n", "", "missing-tcgen05-fence"),
    "no fence before": ("    before();  // of the load\n", "", "missing-tcgen05-fence"),
    "no fence at the product": ("    after();  // of the product\n", "", "missing-tcgen05-fence"),
    "no wait::ld": ("    u32 x = load(lanes);\n    wait_ld();\n", "    u32 x = load(lanes);\n", "unfinished-tensor-load"),
    "no barrier": ("    before();  // of the load\n    __syncthreads();\n", "    before();\n", "unordered-columns"),
    "no dealloc": ("    if (warp == 0) dealloc(d, 64);\n", "", "leaked-columns"),
    "dealloc too early": ("    __syncthreads();  // of the end\n", "", "early-dealloc"),
    "adds to nothing": ("multiply(d, a, b, 0);  // first", "multiply(d, a, b, 1);", "uninitialised-column"),
    "two writers": (
        "    if (t == 0) {\n        multiply(d, a, b, 0);",
        "    if (t == 64) multiply(d, a, b, 0);\n    __syncthreads();\n    if (t == 0) {\n        multiply(d, a, b, 0);",
        "two-writers",
    ),
    "nobody waits at the end": (
        "    wait(&bar[1], 0);\n    after();\n    x = load(lanes + 1);\n    wait_ld();\n",
        "",
        "uncommitted-product",
    ),
    "every warp names the first lanes": ("load(lanes);", "load(d);", "foreign-lanes"),
    "operands by threads without a fence": ("    fence_proxy();\n", "", "missing-proxy-fence"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_called_by_its_name(name):
    old, new, kind = MISTAKES[name]
    assert old in RIGHT
    trace, _ = run(RIGHT.replace(old, new))
    assert kind in {hazard.kind for hazard in trace.hazards}, [str(h) for h in trace.hazards]


def test_products_land_no_earlier_than_they_are_waited_for():
    """Without the wait the load finds what was there: nothing that anybody wrote."""
    _, out = run(RIGHT.replace("    wait(&bar[0], 0);\n", ""))
    assert not (out[:128] == 16).any()


ERRORS = {
    "columns nobody allocated": ("alloc(&base_, 64)", "alloc(&base_, 32)", "dealloc of 64 columns"),
    "beyond them": ("load(lanes);", "load(lanes + 100);", "nobody has allocated"),
    "beyond tensor memory": ("load(lanes);", "load(lanes + 512);", "which has 512"),
    "used after dealloc": (
        "    x = load(lanes + 1);",
        "    if (warp == 0) dealloc(d, 64);\n    __syncthreads();\n    x = load(lanes + 1);",
        "deallocated before",
    ),
    "another warp's lanes": ("load(lanes);", "load(d + (1 << 21));", "reaches lanes"),
    "no power of two": ("alloc(&base_, 64)", "alloc(&base_, 48)", "power of two"),
    "a group of two among those of one": ("tcgen05.dealloc.cta_group::1", "tcgen05.dealloc.cta_group::2", "one cta_group"),
    "a pair without a peer": ("cta_group::1", "cta_group::2", "is for pairs of blocks"),
    "a commit to a peer that is not there": (
        'cluster.b64 [%0];"\n                 :: "r"(shared(b))',
        'cluster.multicast::cluster.b64 [%0], %1;" :: "r"(shared(b)), "h"((short)3)',
        "of a cluster of 1",
    ),
    "another swizzle's number": ("1ull << 46 |", "1ull << 46 | 3ull << 61 |", "bits 61 to 63"),
    "a descriptor past the end": ("128ull << 16", "16000ull << 16", "reaches byte"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_what_hardware_leaves_undefined_is_an_error(name):
    old, new, why = ERRORS[name]
    assert old in RIGHT
    with pytest.raises(emulator.ExecutionError, match=why):
        run(RIGHT.replace(old, new))


def test_where_the_columns_are_may_be_told_by_a_generic_address():
    """As ThunderKittens gives it."""
    source = RIGHT.replace('[%0], %1;" :: "r"(shared(to))', '[%0], %1;" :: "l"(to)', 1)
    assert source != RIGHT
    trace, out = run(source)
    assert (out[:128] == 16).all() and not trace.hazards


def test_a_warp_that_names_the_first_lanes_gets_its_own():
    """As on a B200, where DeepGEMM's epilogues rely on it."""
    trace, out = run(RIGHT.replace("load(lanes);", "load(d);"))
    assert (out[:128] == 16).all()
    assert {hazard.kind for hazard in trace.hazards} == {"foreign-lanes"}
