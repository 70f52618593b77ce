"""Registers that nobody wrote: found where they matter, and nowhere else."""

import numpy as np
import pytest
from cuda_source import launch, line_of
from fragments_of_ptx import run
from probed import load

import emulator

KIND = "uninitialised-register"
products = load("products")
WRONG = r"""
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void sum(const float *x, float *y, int n) {
    float sum;
    for (int i = 0; i < n; ++i) sum += x[i];     // reads sum
    y[threadIdx.x] = sum;                        // stores sum
}
extern "C" __global__ void largest(const float *x, float *y, int n) {
    float best;
    for (int i = 0; i < n; ++i) if (i > 0 && x[i] > best) best = x[i];   // compares best
    y[threadIdx.x] = n > 1 ? best : 0;
}
extern "C" __global__ void some(const float *x, float *y, int n) {
    float value;
    if (threadIdx.x % 3) value = x[threadIdx.x];
    y[threadIdx.x] = value;                      // stores value
}
extern "C" __global__ void index(const float *x, float *y, int n) {
    int at;
    for (int i = 0; i < n; ++i) at = 2 * at + i;
    y[threadIdx.x] = x[at & 15];                 // addresses
}
extern "C" __global__ void accumulator(const half *x, float *y, int n) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    for (int i = 0; i < n; ++i) {
        wmma::load_matrix_sync(a, x + 256 * i, 16);
        wmma::load_matrix_sync(b, x + 256 * i, 16);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);   // stores c
}
extern "C" __global__ void array(const float *x, float *y, int n) {
    float kept[8];
    for (int i = 1; i < n; ++i) kept[(i * 5) & 7] = x[i];
    y[threadIdx.x] = kept[(n + threadIdx.x) & 7];   // stores kept
}
__device__ __noinline__ void give(float *to, const float *x, bool often) { if (often) *to = x[0]; }
extern "C" __global__ void called(const float *x, float *y, int n) {
    float got;
    give(&got, x, threadIdx.x & 1);
    y[threadIdx.x] = got;                           // stores got
}
"""


def _hazards(source, entry, n, block=32, dtype=np.float32, **more):
    x = np.random.default_rng(1).standard_normal(4096).astype(dtype)
    y = np.zeros(1024, np.float32)
    found = launch(source, entry, 1, block, [x, y, np.int32(n)], **more).hazards
    return [hazard for hazard in found if hazard.kind != "global-race"]


@pytest.mark.parametrize(
    ("entry", "n", "dtype", "line", "count"),
    [
        ("sum", 7, "f4", "stores sum", 32),
        ("largest", 7, "f4", "compares best", 32),
        ("some", 7, "f4", "stores value", 11),
        ("index", 7, "f4", "addresses", 32),
        ("accumulator", 2, "f2", "stores c", None),
        ("array", 8, "f4", "stores kept", 4),
        ("called", 7, "f4", "stores got", 16),
    ],
)
def test_what_nobody_wrote_is_found_at_its_line(entry, n, dtype, line, count):
    found = _hazards(WRONG, entry, n, dtype=dtype)
    assert [h.kind for h in found] == [KIND], [str(h) for h in found]
    assert found[0].source[1] == line_of(WRONG, line), str(found[0])
    assert count in (None, found[0].count)


def test_the_message_names_the_first_read():
    (found,) = _hazards(WRONG, "sum", 7)
    assert found.other_source[1] == line_of(WRONG, "reads sum")
    assert "stores" in str(found) and "nothing has set" in str(found)


RIGHT = r"""
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
struct Pair { char tag; int value; float more[3]; };
extern "C" __global__ void first_turn(const float *x, float *y, int n) {
    float last;
    for (int i = 0; i < n; ++i) {
        if (i == 0) last = x[0]; else last = last * 0.5f + x[i];
    }
    if (n > 0) y[threadIdx.x] = last;
}
extern "C" __global__ void same_condition(const float *x, float *y, int n) {
    float value, other;
    bool mine = threadIdx.x < n;
    if (mine) { value = x[threadIdx.x]; other = value * 2; }
    __syncthreads();
    if (mine) y[threadIdx.x] = value + other;
}
extern "C" __global__ void half_of_a_pair(const half *x, half *y, int n) {
    half2 both;
    both.x = x[threadIdx.x];
    if (n > 100) both.y = x[threadIdx.x + 1];
    both = __hadd2(both, both);
    y[threadIdx.x] = both.x;
}
extern "C" __global__ void a_struct(const float *x, float *y, int n) {
    Pair p, q[4];
    p.tag = threadIdx.x; p.value = n; p.more[n & 1] = x[1];
    for (int i = 0; i < 4; ++i) q[i] = p;
    y[threadIdx.x] = q[threadIdx.x & 3].value + q[n & 3].more[n & 1];
}
extern "C" __global__ void some_lanes_shuffle(const float *x, float *y, int n) {
    float value;
    if (threadIdx.x < 16) value = x[threadIdx.x];
    float got = __shfl_xor_sync(~0u, value, 3);
    if (threadIdx.x < 16) y[threadIdx.x] = got;
}
extern "C" __global__ void masked_bits(const unsigned *x, unsigned *y, int n) {
    unsigned low, high;
    asm volatile("{ .reg .b16 l, h, u; cvt.u16.u32 l, %2; mov.b32 %0, {l, u}; mov.b32 %1, {u, l}; }"
                 : "=r"(low), "=r"(high) : "r"(x[threadIdx.x]));
    y[threadIdx.x] = (low & 0xffffu) + (high >> 16) + (__byte_perm(low, high, 0x7610));
}
extern "C" __global__ void a_row_of_a(const half *x, float *y, int n) {
    unsigned a[4], b[2]; float c[4] = {0, 0, 0, 0};
    for (int i = 0; i < 2; ++i) { b[i] = ((const unsigned *)x)[threadIdx.x + 32 * i]; }
    a[0] = ((const unsigned *)x)[threadIdx.x]; a[2] = a[0];   // rows 8 to 15 of A are nobody's
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    y[2 * threadIdx.x] = c[0]; y[2 * threadIdx.x + 1] = c[1];
    if (n > 100) { y[0] = c[2] + c[3]; }
}
__device__ __noinline__ int depth(int a, float *out, const float *x) { *out = x[a]; return a + 1; }
extern "C" __global__ void through_a_call(const float *x, float *y, int n) {
    float got;
    int next = depth(threadIdx.x, &got, x);
    y[threadIdx.x] = got + next;
}
"""


@pytest.mark.parametrize(
    ("entry", "dtype"),
    [("first_turn", "f4"), ("same_condition", "f4"), ("half_of_a_pair", "f2"), ("a_struct", "f4"),
     ("some_lanes_shuffle", "f4"), ("masked_bits", "f4"), ("a_row_of_a", "f2"), ("through_a_call", "f4")],
)  # fmt: skip
def test_code_that_is_right_is_left_in_peace(entry, dtype):
    assert not _hazards(RIGHT, entry, 9, dtype=np.dtype(dtype))
    assert not _hazards(RIGHT, entry, 9, dtype=np.dtype(dtype), arch=90)


PREFIX = "{ .reg .pred p, q, u; .reg .b32 x, y, z; .reg .b16 h, k; .reg .b64 w; mov.u32 z, 0; "


@pytest.mark.parametrize(
    "code",
    [
        "mov.b32 %d, x;",
        "add.u32 %d, %a, x;",
        "@u add.u32 %d, %a, 1; mov.u32 %d, %a;",
        "setp.eq.u32 p, x, 5; selp.u32 %d, 1, 2, p;",
        "selp.u32 %d, x, %a, q; ",
        "and.b32 %d, x, 4;",
        "setp.ne.u32 q, z, 1; and.pred p, q, u; selp.u32 %d, 1, 2, p;",
        "mov.b32 {h, k}, x; cvt.u32.u16 %d, k;",
        "shfl.sync.bfly.b32 %d, x, 1, 0x1f, -1;",
        "vote.sync.any.pred p, u, -1; selp.u32 %d, 1, 0, p;",
        "shr.u32 %d, %a, x;",
        "setp.lt.u32 q, %a, 5; @q mov.u32 x, 1; mov.u32 %d, x;",
        "cvt.rn.f16x2.f32 %d, %a, x;",
        "mad.lo.cc.u32 y, %a, 1, 0; addc.u32 %d, x, 0;",
        "addc.u32 %d, %a, 0;",
        "bfi.b32 %d, x, %a, 8, 4;",
        "prmt.b32 %d, x, %a, 0x7650;",
        "setp.lt.and.u32 p, %a, x, q; setp.lt.or.u32 p, %a, x, p; selp.u32 %d, 1, 0, p;",
        "@u bra A; mov.u32 %d, 1; bra B; A: mov.u32 %d, 2; B:",
    ],
)
def test_each_way_to_matter(code):
    code = PREFIX + ("setp.ne.u32 q, z, 0; " if "u, " not in code[:4] else "") + code + " }"
    if "selp.u32 %d, x, %a, q" in code:
        code = code.replace("setp.ne.u32 q, z, 0", "setp.eq.u32 q, z, 0")
    assert _found(code) == [KIND]


@pytest.mark.parametrize(
    "code",
    [
        "selp.u32 %d, x, %a, q;",
        "and.b32 y, x, 4; and.b32 %d, y, 3;",
        "or.b32 y, x, 4; and.b32 %d, y, 4;",
        "and.pred p, q, u; selp.u32 %d, 1, 2, p;",
        "setp.eq.u32 p, x, 5; and.pred p, p, q; selp.u32 %d, 1, 2, p;",
        "setp.eq.and.u32 p, x, 5, q; selp.u32 %d, 1, 2, p;",
        "mov.b32 y, {h, 5}; mov.b32 {k, h}, y; cvt.u32.u16 %d, h;",
        "shl.b32 y, x, 16; and.b32 %d, y, 0xffff;",
        "mov.u32 y, x; mov.u32 %d, %a;",
        "@q mov.u32 %d, x; mov.u32 %d, %a;",
        "cvt.u16.u32 h, %a; mov.b32 y, {h, k}; cvt.u32.u16 %d, h; cvt.u16.u32 h, y; cvt.u32.u16 %d, h;",
        "prmt.b32 %d, x, %a, 0x7654;",
        "bfe.u32 y, x, 3, 5; and.b32 %d, y, 0xe0;",
        "cvt.rn.f16x2.f32 y, x, %a; and.b32 %d, y, 0xffff;",
        "add.rn.f16x2 y, %a, %a; mov.b32 {h, k}, y; mov.b32 y, {h, _};  mov.u32 %d, %a;".replace(
            "{h, _}", "{h, h}"
        ),
    ],
)
def test_what_does_not_matter(code):
    assert _found(PREFIX + "setp.ne.u32 q, z, 0; " + code + " }") == []


def _found(code):
    a = np.arange(64, dtype="u4")
    kinds = []
    run(code, {"%a": ("u32", a)}, {"%d": "u32"}, hazards=kinds)
    return kinds


def test_the_result_of_a_barrier_is_written():
    code = PREFIX + "@q bra A; bar.red.popc.u32 x, 0, q; A: bar.sync 0; selp.u32 %d, x, %a, q; }"
    assert _found(code.replace("mov.u32 z, 0;", "setp.eq.u32 q, %a, 1000;")) == []


def test_a_launch_that_is_not_watched_computes_the_same():
    x, y = np.ones(64, np.float32), np.zeros((2, 32), np.float32)
    for out, sanitize in zip(y, (True, False), strict=True):
        launch(WRONG, "sum", 1, 32, [x, out, np.int32(7)], sanitize=sanitize)
    assert (y == 7).all()


def test_ordinary_code_costs_nothing(monkeypatch):
    """Of kernels that write what they read, no instruction is watched."""
    from emulator.ops import watching

    def refuse(*_):
        raise AssertionError("nothing is to be watched here")

    monkeypatch.setattr(watching.Watch, "step", refuse)
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    launch(
        RIGHT.replace("float last;", "float last = 0;"), "first_turn", 1, 32, [x, y, np.int32(7)]
    )
    with pytest.raises(AssertionError, match="nothing is to be watched"):
        launch(RIGHT, "first_turn", 1, 32, [x, y, np.int32(7)])


def test_only_the_rows_of_what_nobody_wrote_are_undefined():
    (found,) = _hazards(RIGHT, "a_row_of_a", 101, dtype=np.float16)
    assert found.source[1] == line_of(RIGHT, "y[0] = c[2] + c[3]")


@pytest.mark.parametrize("kind", ["wgmma_ss", "wgmma_rs"])
def test_an_accumulator_of_wgmma_counts_as_read_where_scale_d_adds_it(kind):
    """products.py's PTX, its loads of D left out; a warp's fragment of A left out too."""
    entry = products.Entry(kind, 64, 8, 16, "f16", "f16", "f32", "f32")
    text = products.module([entry])
    loads = {
        role: [line for line in text.splitlines() if f"ld.global.b32 %{role}" in line]
        for role in "ad"
    }
    empty = text
    for line in loads["d"]:
        empty = empty.replace(line + "\n", "")
    leaves_out = ("setp.eq.u32 p, 0, 0", "setp.ne.u32 p, 0, 0")

    def hazards(code):
        a, b, d = (np.zeros(n, np.uint32) for n in (1024, 1024, 4096))
        trace = emulator.Module(code).launch(entry.name, 1, 128, [a, b, d, d])
        return [hazard.kind for hazard in trace.hazards]

    assert hazards(text) == [] == hazards(empty.replace(*leaves_out))
    assert set(hazards(empty)) == {KIND}
    partly = text.replace(loads["d"][2] + "\n", "")
    assert set(hazards(partly)) == {KIND} and len(hazards(partly)) == 1
    if kind == "wgmma_rs":
        no_fragment = text.replace(loads["a"][1] + "\n", "").replace(*leaves_out)
        assert set(hazards(no_fragment)) == {KIND}
