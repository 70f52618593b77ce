"""Barriers of shared memory and named ones, and the pipelines that CUDA C++ builds of them, compiled by NVRTC and run."""

import numpy as np
import pytest
from cuda_source import launch, line_of

import emulator

PIPELINE = r"""
#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ float weigh(float4 v) { return v.x + 2 * v.y + 3 * v.z + 4 * v.w; }
extern "C" __global__ void by_block(const float4* in, float* out, int n) {
    __shared__ float4 buffer[3][128];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 3> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    in += blockIdx.x * n * 128;
    float sum = 0;
    for (int i = 0, fetch = 0; i < n; ++i) {
        for (; fetch < n && fetch < i + 3; ++fetch) {
            pipe.producer_acquire();
            cuda::memcpy_async(&buffer[fetch % 3][threadIdx.x], &in[fetch * 128 + threadIdx.x],
                               cuda::aligned_size_t<16>(16), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += weigh(buffer[i % 3][127 - threadIdx.x]) * (i + 1);
        pipe.consumer_release();
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
extern "C" __global__ void by_thread(const float4* in, float* out, int n) {
    __shared__ float4 buffer[2][128];
    auto pipe = cuda::make_pipeline();
    in += blockIdx.x * n * 128;
    float sum = 0;
    for (int i = 0, fetch = 0; i < n; ++i) {
        for (; fetch < n && fetch < i + 2; ++fetch) {
            pipe.producer_acquire();
            cuda::memcpy_async(&buffer[fetch % 2][threadIdx.x], &in[fetch * 128 + threadIdx.x],
                               cuda::aligned_size_t<16>(16), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        __syncthreads();
        sum += weigh(buffer[i % 2][127 - threadIdx.x]) * (i + 1);
        __syncthreads();
        pipe.consumer_release();
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
extern "C" __global__ void specialised(const float4* in, float* out, int n) {
    __shared__ float4 buffer[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    in += blockIdx.x * n * 64;
    if (role == cuda::pipeline_role::producer) {
        for (int i = 0; i < n; ++i) {
            pipe.producer_acquire();
            for (int j = threadIdx.x; j < 64; j += 32)
                cuda::memcpy_async(&buffer[i % 2][j], &in[i * 64 + j], cuda::aligned_size_t<16>(16), pipe);
            pipe.producer_commit();
        }
    } else {
        float sum = 0;
        int t = threadIdx.x - 32;
        for (int i = 0; i < n; ++i) {
            pipe.consumer_wait();
            sum += weigh(buffer[i % 2][63 - t]) * (i + 1);
            pipe.consumer_release();
        }
        out[blockIdx.x * 64 + t] = sum;
    }
}
"""


@pytest.mark.parametrize("arch", [75, 80])
@pytest.mark.parametrize(
    ("entry", "threads", "width"),
    [("by_block", 128, 128), ("by_thread", 128, 128), ("specialised", 96, 64)],
)
def test_cuda_pipelines(entry, threads, width, arch):
    n = 5
    data = np.random.default_rng(3).integers(-9, 9, (3, n, width, 4)).astype(np.float32)
    out = np.zeros((3, width), np.float32)
    trace = launch(PIPELINE, entry, 3, threads, [data, out, np.int32(n)], arch)
    weights = np.arange(1, 5)[None, None, None] * np.arange(1, n + 1)[None, :, None, None]
    assert (out == (data * weights).sum(axis=(1, 3))[:, ::-1]).all()
    assert [str(h) for h in trace.hazards] == []


BARRIERS = r"""
#include <cuda/barrier>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void ring(const float* in, float* out, int n, int release) {
    __shared__ float buffer[2][64];
    __shared__ barrier bars[4];  // full[2], empty[2]
    if (threadIdx.x < 4) init(&bars[threadIdx.x], 128);
    __syncthreads();
    if (threadIdx.x < 64) {
        for (int i = 0; i < n; ++i) {
            bars[2 + i % 2].arrive_and_wait();
            buffer[i % 2][threadIdx.x] = in[i * 64 + threadIdx.x];
            (void)bars[i % 2].arrive();
        }
    } else {
        float sum = 0;
        (void)bars[2].arrive();
        (void)bars[3].arrive();
        for (int i = 0; i < n; ++i) {
            bars[i % 2].arrive_and_wait();
            sum += buffer[i % 2][127 - threadIdx.x] * (i + 1);
            if (release) (void)bars[2 + i % 2].arrive();
        }
        out[threadIdx.x - 64] = sum;
    }
}
extern "C" __global__ void copy(const int4* in, int4* out) {
    __shared__ int4 buffer[128];
    __shared__ barrier bar;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&bar, block.size());
    block.sync();
    cuda::memcpy_async(&buffer[threadIdx.x], &in[threadIdx.x], cuda::aligned_size_t<16>(16), bar);
    bar.arrive_and_wait();
    out[threadIdx.x] = buffer[127 - threadIdx.x];
}
"""


@pytest.mark.parametrize("arch", [75, 80])
def test_cuda_barriers_hand_stages_to_and_fro(arch):
    data = np.random.default_rng(4).integers(-9, 9, (7, 64)).astype(np.float32)
    out = np.zeros(64, np.float32)
    trace = launch(BARRIERS, "ring", 1, 128, [data, out, np.int32(7), np.int32(1)], arch)
    assert (out == (data * np.arange(1, 8)[:, None]).sum(axis=0)[::-1]).all()
    assert [str(h) for h in trace.hazards] == []


@pytest.mark.parametrize("arch", [75, 80])
def test_a_consumer_that_never_releases_is_a_deadlock(arch):
    data, out = np.zeros((7, 64), np.float32), np.zeros(64, np.float32)
    with pytest.raises(emulator.Deadlock):
        launch(BARRIERS, "ring", 1, 128, [data, out, np.int32(7), np.int32(0)], arch)


def test_copies_arrive_at_a_barrier():
    data = np.arange(512, dtype=np.int32).reshape(128, 4)
    out = np.zeros_like(data)
    trace = launch(BARRIERS, "copy", 2, 128, [data, out])
    assert (out == data[::-1]).all() and not trace.hazards


NAMED = r"""
__device__ void meet(int id, int threads) { asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory"); }
__device__ void announce(int id, int threads) { asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(threads) : "memory"); }
extern "C" __global__ void named(const float* in, float* out, int n) {
    __shared__ float buffer[2][64];
    int t = threadIdx.x;
    if (t < 64) {
        for (int i = 0; i < n; ++i) {
            if (i >= 2) meet(3 + i % 2, 128);
            buffer[i % 2][t] = in[(blockIdx.x * n + i) * 64 + t];
            announce(1 + i % 2, 128);
        }
    } else {
        float sum = 0;
        for (int i = 0; i < n; ++i) {
            meet(1 + i % 2, 128);
            sum += buffer[i % 2][127 - t] * (i + 1);
            if (FREE) announce(3 + i % 2, 128);
        }
        out[blockIdx.x * 64 + t - 64] = sum;
    }
}
"""


def test_named_barriers_between_producer_and_consumer_warps():
    data = np.random.default_rng(4).integers(-9, 9, (3, 7, 64)).astype(np.float32)
    out = np.zeros((3, 64), np.float32)
    source = NAMED.replace("FREE", "i + 2 < n")
    trace = launch(source, "named", 3, 128, [data, out, np.int32(7)])
    assert (out == (data * np.arange(1, 8)[:, None]).sum(axis=1)[:, ::-1]).all()
    assert [str(h) for h in trace.hazards] == []


def test_a_consumer_that_does_not_meet_its_producer_reads_too_early():
    data, out = np.zeros((1, 7, 64), np.float32), np.zeros((1, 64), np.float32)
    source = NAMED.replace("FREE", "i + 2 < n").replace("meet(1 + i % 2, 128);", "", 1)
    source = source.replace("announce(1 + i % 2, 128);", "")
    trace = launch(source, "named", 1, 128, [data, out, np.int32(7)])
    assert {"read-after-write", "uninitialised-read"} & {h.kind for h in trace.hazards}


MBARRIER = r"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry counts(.param .u64 out) {
    .reg .pred %p<4>;
    .reg .b32 %r<20>;
    .reg .b64 %rd<20>;
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 33;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %rd2, [bar];
    mbarrier.pending_count.b64 %r2, %rd2;
    mbarrier.test_wait.shared.b64 %p2, [bar], %rd2;
    selp.b32 %r3, 1, 0, %p2;
    bar.sync 0;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [bar], 64;
    bar.sync 0;
    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
    selp.b32 %r4, 1, 0, %p2;
    bar.sync 0;
    @%p1 mbarrier.complete_tx.shared.b64 [bar], 64;
    bar.sync 0;
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    selp.b32 %r5, 1, 0, %p2;
    mbarrier.test_wait.shared.b64 %p2, [bar], %rd2;
    selp.b32 %r6, 1, 0, %p2;
    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 1;
    selp.b32 %r7, 1, 0, %p2;
    bar.sync 0;
    @%p1 mbarrier.arrive_drop.shared.b64 %rd5, [bar];
    bar.sync 0;
    mbarrier.arrive.shared.b64 %rd6, [bar];
    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 1;
    selp.b32 %r8, 1, 0, %p2;
    mbarrier.arrive.shared.b64 %rd7, [bar];
    mbarrier.test_wait.shared.b64 %p2, [bar], %rd7;
    selp.b32 %r9, 1, 0, %p2;
    mul.wide.u32 %rd8, %r1, 32;
    add.u64 %rd9, %rd1, %rd8;
    st.global.v4.b32 [%rd9], {%r2, %r3, %r4, %r5};
    st.global.v4.b32 [%rd9+16], {%r6, %r7, %r8, %r9};
    ret;
}
"""


def test_mbarrier_counts_phases_and_transactions():
    out = np.full((32, 8), -1, np.int32)
    emulator.Module(MBARRIER).launch("counts", 1, 32, [out])
    pending, early, with_bytes_out, completed, by_token, next_phase, second, third = out.T
    assert pending.tolist() == list(range(33, 1, -1))  # lanes arrive one after the other
    assert not early.any()
    assert not with_bytes_out.any()  # all have arrived, but 64 bytes are outstanding
    assert completed.all() and by_token.all() and not next_phase.any()
    assert second.all()  # 33 arrivals, one of them for good
    assert third.all()  # 32 are enough from now on


UNINITIALISED = MBARRIER.replace("@%p1 mbarrier.init.shared.b64 [bar], 33;", "")


def test_an_mbarrier_must_be_initialised():
    with pytest.raises(emulator.EmulatorError, match="not initialised"):
        emulator.Module(UNINITIALISED).launch("counts", 1, 32, [np.zeros((32, 8), np.int32)])


NEVER_RELEASED = r"""
#include <cooperative_groups.h>
#include <cuda/pipeline>
#pragma nv_diag_suppress static_var_with_dynamic_init
extern "C" __global__ void never_released(const int* in, int* out, int steps) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ int tile[2][32];
    auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state, 32);
    for (int step = 0; step < steps; ++step) {
        if (threadIdx.x >= 32) {
            pipe.producer_acquire();
            cuda::memcpy_async(&tile[step % 2][threadIdx.x - 32], in + threadIdx.x - 32, cuda::aligned_size_t<4>(4), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            out[threadIdx.x] = tile[step % 2][threadIdx.x];
        }
    }
}
"""


def test_a_deadlock_inside_a_header_names_the_kernels_own_line():
    data = [np.arange(32, dtype=np.int32), np.zeros(32, np.int32)]
    launch(
        NEVER_RELEASED, "never_released", 1, 64, [*data, np.int32(2)]
    )  # two stages: nobody waits
    with pytest.raises(emulator.Deadlock) as caught:
        launch(NEVER_RELEASED, "never_released", 1, 64, [*data, np.int32(3)])
    (producers,) = caught.value.waiting
    assert "warp 1" in producers and "called from" in producers
    assert f":{line_of(NEVER_RELEASED, 'producer_acquire')})" in producers
