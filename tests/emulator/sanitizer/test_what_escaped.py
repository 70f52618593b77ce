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
"""


@pytest.fixture(scope="module")
def module():
    return emulator.Module(compile_ptx(SOURCE, "90a"))


def kinds(trace):
    return {hazard.kind for hazard in trace.hazards}


@pytest.mark.parametrize(("count", "found"), [(3, set()), (2, {"write-after-read"})])
@pytest.mark.parametrize(("entry", "grid"), [("refill", 1), ("refill_afar", 2)])
def test_an_arrival_too_many_is_of_the_next_phase(module, entry, grid, count, found):
    assert kinds(module.launch(entry, grid, 128, [np.zeros(128, "i4"), np.int32(count)])) == found


@pytest.mark.parametrize(("other", "found"), [(0, set()), (1, {"exited-block"})])
def test_only_another_blocks_memory_can_be_gone(module, other, found):
    assert kinds(module.launch("last_arrival", 2, 32, [np.int32(other)])) == found


@pytest.mark.parametrize(("count", "taken"), [(248, True), (240, False)])
def test_a_thread_has_at_most_248_registers_to_begin_with(count, taken):
    """256 threads: 65536 / 256 registers are more than ptxas can give one."""
    text = f""".version 9.0\n.target sm_90a\n.address_size 64
    .visible .entry k() .maxntid 256, 1, 1 .minnctapersm 1 {{ setmaxnreg.inc.sync.aligned.u32 {count}; ret; }}"""
    module = emulator.Module(text)
    if taken:
        module.launch("k", 1, 256, [])
    else:
        with pytest.raises(emulator.ExecutionError, match="by a warp that has 248"):
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
