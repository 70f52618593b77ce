"""How exact and how fast the ladder's Hopper rungs are here, and what libcu++ makes of TMA."""

import time

import numpy as np
from cuda_source import compile_ptx

import emulator
from emulator import TensorMap
from kernels import find, gemm, random_inputs


def test_real_numbers_are_within_the_documented_accumulation():
    """A wgmma keeps 25 bits below its largest term, and truncates: 2 ** -24 of |A||B| per instruction."""
    A, B, _ = random_inputs(find("wgmma").types(), 128, 128, 256)
    want = A.astype(np.float64) @ B
    error = np.abs(gemm("wgmma", A, B, machine="emulator").C - want).max()
    assert 0 < error < 256 / 16 * 2.0**-22 * np.abs(want).max()


def test_a_tile_kernel_is_fast_enough():
    """128 x 256 x 64 tiles at 256 cubed, counting and watching: below 5 s on one core, with room."""
    how = {"macros": {"BM": 128, "BN": 256}, "machine": "emulator"}
    A, B, _ = random_inputs(find("wgmma_pipelined").types(), 256, 256, 256)
    gemm("wgmma_pipelined", A[:8, :8], B[:8, :8], **how)  # compiles
    started = time.process_time()  # of this process alone, however busy the machine is
    trace = gemm("wgmma_pipelined", A, B, **how).trace
    assert trace.total("shared_wavefronts") > 0
    assert time.process_time() - started < 15  # with room for a machine that does other work too


LIBCUXX = r"""
#include <cuda/barrier>
#include <cuda/ptx>
namespace ptx = cuda::ptx;
using barrier = cuda::barrier<cuda::thread_scope_block>;
struct __align__(64) Map { unsigned char opaque[128]; };

extern "C" __global__ void add_one(const __grid_constant__ Map map, int x, int y) {
    __shared__ __align__(128) int tile[8][64];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        const int at[2] = {x + (int)blockIdx.x * 64, y};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &tile, &map, at,
                                  cuda::device::barrier_native_handle(bar));
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    for (int i = threadIdx.x; i < 512; i += blockDim.x) (&tile[0][0])[i] += 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        const int at[2] = {x + (int)blockIdx.x * 64, y};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, at, &tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}
extern "C" __global__ void copy(const int* in, int* out) {
    __shared__ __align__(16) int tile[1024];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0)
        cuda::memcpy_async(tile, in, cuda::aligned_size_t<16>(sizeof(tile)), bar);
    bar.arrive_and_wait();
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) out[i] = tile[1023 - i];
}
"""


def test_what_libcuxx_makes_of_tma():
    """The CUDA programming guide's first TMA kernel, and cuda::memcpy_async, which copies in bulk."""
    module = emulator.Module(compile_ptx(LIBCUXX, "90a"))
    data = np.random.default_rng(1).integers(0, 1000, (32, 200)).astype(np.int32)
    before = data.copy()
    trace = module.launch("add_one", 2, 64, [TensorMap(data, (8, 64)), np.int32(64), np.int32(20)])
    before[20:28, 64:192] += 1
    assert (data == before).all() and trace.hazards == []
    out = np.zeros(1024, np.int32)
    source = np.arange(1024, dtype=np.int32)
    trace = module.launch("copy", 1, 64, [source, out])
    assert (out == source[::-1]).all() and trace.hazards == []
    assert trace.rows("cp.async.bulk")
