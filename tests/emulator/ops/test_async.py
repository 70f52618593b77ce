"""cp.async, compiled by NVRTC and run."""

import numpy as np
import pytest
from cuda_source import launch, line_of

import emulator

COPY = r"""
__device__ unsigned shared_address(const void* p) { return __cvta_generic_to_shared(p); }
#define CP(kind, bytes, dst, src) \
    asm volatile("cp.async." kind ".shared.global [%0], [%1], " #bytes ";" :: "r"(shared_address(dst)), "l"(src) : "memory")
"""

WIDTHS = (
    COPY
    + r"""
extern "C" __global__ void copies(const int4* in, int4* out, int early) {
    __shared__ int4 a[64];
    __shared__ int2 b[64];
    __shared__ int c[64];
    int t = threadIdx.x;
    a[t] = make_int4(-1, -1, -1, -1); b[t] = make_int2(-2, -2); c[t] = -3;
    __syncthreads();
    CP("cg", 16, &a[t], &in[t]);
    asm volatile("cp.async.commit_group;");
    CP("ca", 8, &b[t], &in[t]);
    asm volatile("cp.async.commit_group;");
    CP("ca", 4, &c[t], &in[t]);
    asm volatile("cp.async.commit_group;");
    if (early == 0) asm volatile("cp.async.wait_all;");
    if (early == 1) asm volatile("cp.async.wait_group 1;");
    if (early == 2) asm volatile("cp.async.wait_group 3;");
    __syncthreads();
    int u = 63 - t;
    out[2 * t] = a[u];
    out[2 * t + 1] = make_int4(b[u].x, b[u].y, c[u], 0);
}
"""
)


@pytest.mark.parametrize("early", [0, 1, 2])
def test_copies_land_when_their_group_is_waited_for(early):
    data = np.arange(256, dtype=np.int32).reshape(64, 4) + 7
    out = np.zeros((64, 8), np.int32)
    trace = launch(WIDTHS, "copies", 1, 64, [data, out, np.int32(early)])
    turned = data[::-1]
    expected = np.zeros_like(out)
    expected[:, :4] = turned if early < 2 else -1
    expected[:, 4:6] = turned[:, :2] if early < 2 else -2
    expected[:, 6] = turned[:, 0] if early < 1 else -3
    assert (out == expected).all()
    late = [h for h in trace.hazards if h.kind == "unfinished-copy"]
    assert len(late) == {0: 0, 1: 1, 2: 3}[early]
    if early == 1:
        assert late[0].source[1] == line_of(WIDTHS, "out[2 * t + 1]")
        assert late[0].other_source[1] == line_of(WIDTHS, 'CP("ca", 4')
    for opcode, width, waves in (("cp.async.cg", 16, 8), ("cp.async.ca", None, None)):
        rows = trace.rows(opcode)
        if width:
            (row,) = rows
            assert (row.shared_wavefronts, row.global_sectors, row.bytes) == (waves, 32, 64 * 16)


ZERO_FILL = (
    COPY
    + r"""
extern "C" __global__ void fill(const float* in, float* out, int n) {
    __shared__ float4 buffer[64];
    int t = threadIdx.x, left = 4 * max(0, min(4, n - 4 * t));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(&buffer[t])), "l"(in + 4 * t), "r"(left) : "memory");
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    reinterpret_cast<float4*>(out)[t] = buffer[t];
}
extern "C" __global__ void skip(const float* in, float* out, int n) {
    __shared__ float buffer[64];
    int t = threadIdx.x;
    asm volatile("{.reg .pred p; setp.ge.s32 p, %2, %3;\n"
                 "cp.async.ca.shared.global [%0], [%1], 4, p;}"
                 :: "r"(shared_address(&buffer[t])), "l"(in + t), "r"(t), "r"(n) : "memory");
    asm volatile("cp.async.wait_all;");
    out[t] = buffer[t];
}
"""
)


def test_bytes_past_the_source_size_are_zero_and_not_read():
    for n in (256, 100, 97, 3, 0):
        data = np.arange(1, n + 1, dtype=np.float32)  # nothing is mapped behind its end
        out = np.full(256, np.nan, np.float32)
        trace = launch(ZERO_FILL, "fill", 1, 64, [data, out, np.int32(n)])
        assert (out[:n] == data).all() and (out[n:] == 0).all()
        assert not trace.hazards
        (row,) = trace.rows("cp.async.cg")
        assert row.global_sectors == -(-n * 4 // 32)


def test_a_predicate_can_ignore_the_source():
    data, out = np.arange(1, 41, dtype=np.float32), np.full(64, np.nan, np.float32)
    launch(ZERO_FILL, "skip", 1, 64, [data, out, np.int32(40)])
    assert (out[:40] == data).all() and (out[40:] == 0).all()


def test_reading_past_the_buffer_is_out_of_bounds():
    out = np.zeros(256, np.float32)
    with pytest.raises(emulator.OutOfBounds, match="argument 0"):
        launch(ZERO_FILL, "fill", 1, 64, [np.zeros(250, np.float32), out, np.int32(256)])


PADDED = (
    COPY
    + r"""
extern "C" __global__ void padded(const float* in, float* out) {
    __shared__ __align__(16) float tile[8][33];
    int t = threadIdx.x, row = t / 8, col = t % 8 * 4;
    CP("cg", 16, &tile[row][col], in + row * 32 + col);
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[t] = tile[row][col];
}
"""
)


def test_a_vector_copy_into_odd_padding_is_misaligned():
    with pytest.raises(emulator.Misaligned, match="not a multiple of 16") as caught:
        launch(PADDED, "padded", 1, 64, [np.zeros(256, np.float32), np.zeros(64, np.float32)])
    assert caught.value.source[1] == line_of(PADDED, 'CP("cg", 16, &tile')
    assert caught.value.thread == (8, 0, 0)


STAGES = (
    COPY
    + r"""
extern "C" __global__ void stages(const int4* in, int4* out, int n) {
    __shared__ int4 buffer[2][128];
    int t = threadIdx.x;
    CP("cg", 16, &buffer[0][t], &in[t]);
    asm volatile("cp.async.commit_group;");
    for (int i = 0; i < n; ++i) {
        if (i + 1 < n) CP("cg", 16, &buffer[(i + 1) % 2][t], &in[(i + 1) * 128 + t]);
        asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;");
        BARRIER_A
        out[i * 128 + t] = buffer[i % 2][127 - t];
        BARRIER_B
    }
}
"""
)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(True, True, set()), (False, True, {"read-after-write"}), (True, False, {"write-after-read"})],
)
def test_double_buffering_needs_both_barriers(first, second, expected):
    source = STAGES.replace("BARRIER_A", "__syncthreads();" * first)
    source = source.replace("BARRIER_B", "__syncthreads();" * second)
    data = np.arange(3 * 2 * 512, dtype=np.int32).reshape(6, 128, 4)
    out = np.zeros_like(data)
    trace = launch(source, "stages", 1, 128, [data, out, np.int32(6)])
    assert {h.kind for h in trace.hazards} == expected
    if not expected:
        assert (out == data[:, ::-1]).all()
    for hazard in trace.hazards:
        reads, copies = line_of(source, "127 - t"), line_of(source, "(i + 1) % 2")
        lines = {hazard.source[1], hazard.other_source[1]}
        assert reads in lines and lines & {copies, line_of(source, "&buffer[0][t]")}
        assert hazard.thread[0] // 32 != hazard.other_thread[0] // 32
