"""The ladder's Hopper rungs at awkward sizes: right, and quiet; and what libcu++ makes of TMA."""

import time

import numpy as np
import pytest
from cuda_source import compile_ptx

import emulator
from emulator import TensorMap

rungs = pytest.importorskip("kernels.rungs")
from kernels import build  # noqa: E402


def stored(x, kind):
    """float64 as a type's array; bfloat16 as uint16."""
    if kind != "bfloat16":
        return x.astype(kind)
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def valued(x, kind):
    if kind != "bfloat16":
        return x.astype(np.float64)
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def run(name, size, macros=None, alpha=1.5, beta=0.5, whole=True, **more):
    """Launches a rung; returns (result, what it should be, Trace, output type)."""
    rung = rungs.find(name)
    macros = {**(macros or {}), **({"BLOCKS": 4} if "BLOCKS" in rung.macros else {})}
    values, types = rung.resolve(macros), rung.types(rung.resolve(macros))
    made = build(rung, macros, arch="90a")
    M, N, K = size
    rng = np.random.default_rng(M + N + K)
    numbers = (lambda *s: rng.integers(-3, 4, s)) if whole else (lambda *s: rng.standard_normal(s))
    a, b = (stored(numbers(*s), types.inputs) for s in ((M, K), (K, N)))
    c = stored(numbers(M, N), types.output)
    want = alpha * (valued(a, types.inputs) @ valued(b, types.inputs))
    want = want + (beta * valued(c, types.output) if beta else 0)
    if not beta:
        c[:] = stored(np.full((M, N), np.nan), types.output)
    boxes = rung.boxes(**values)
    maps = [
        TensorMap(x, boxes[key], format=kind, swizzle=boxes[key][1] * x.itemsize)
        for key, x, kind in (
            ("A", a, types.inputs), ("B", b, types.inputs), ("C", c, types.output)
        ) if key in boxes
    ]  # fmt: skip
    grid, block, shared = rung.geometry(values, M, N, K)
    sizes = [np.int32(n) for n in size]
    trace = emulator.Module(made.ptx).launch(
        made.entry, grid, block, [*maps, c, *sizes, np.float32(alpha), np.float32(beta)],
        shared_bytes=shared, **more,
    )  # fmt: skip
    return valued(c, types.output), want, trace, types.output


HOPPER = [
    name
    for name, rung in rungs.RUNGS.items()
    if rung.min_arch == 90 and rung.boxes and rung.inputs == "float16"
]
CASES = [
    (name, size, macros)
    for name in HOPPER
    for size, macros in (
        ((200, 264, 72), {}),
        ((8, 8, 8), {}),
        ((130, 520, 200), {"BN": 128, "HALF_OUTPUT": 1}),
        ((257, 136, 136), {"BF16_INPUT": 1}),
    )
] + [
    ("wgmma_persistent", (200, 392, 200), {"PINGPONG": 1, "BM": 64, "BN": 128, "STAGES": 3}),
    ("wgmma_cluster", (456, 392, 200), {"CLUSTER_M": 2, "CLUSTER_N": 2, "BN": 128, "STAGES": 3}),
]


@pytest.mark.parametrize("name, size, macros", CASES, ids=str)
def test_a_rung_is_right_and_quiet(name, size, macros):
    if not rungs.find(name).macros.keys() >= macros.keys():
        pytest.skip("no such macro")
    got, want, trace, kind = run(name, size, macros, beta=0.0 if size == (8, 8, 8) else 0.5)
    assert trace.hazards == []
    if kind == "float32":
        assert (got == want).all()
    else:
        assert (got == valued(stored(want, kind), kind)).all()


def test_real_numbers_are_within_the_documented_accumulation():
    """A wgmma keeps 25 bits below its largest term, and truncates: 2 ** -24 of |A||B| per instruction."""
    got, want, _, _ = run("wgmma", (128, 128, 256), alpha=1.0, beta=0.0, whole=False)
    error = np.abs(got - want).max()
    assert 0 < error < 256 / 16 * 2.0**-22 * np.abs(want).max()


def test_a_tile_kernel_is_fast_enough():
    """128 x 256 x 64 tiles at 256 cubed, counting and watching: below 5 s on one core, with room."""
    run("wgmma_pipelined", (8, 8, 8), {"BM": 128, "BN": 256})  # compiles
    started = time.process_time()  # of this process alone, however busy the machine is
    got, want, trace, _ = run("wgmma_pipelined", (256, 256, 256), {"BM": 128, "BN": 256})
    assert (got == want).all()
    assert trace.total("shared_wavefronts") > 0
    assert (
        time.process_time() - started < 15
    )  # seconds of processor time, on a machine that does other work too


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
