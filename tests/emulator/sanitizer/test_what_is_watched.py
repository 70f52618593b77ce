"""Which arrays are watched: those that the kernel may write, and no others."""

import numpy as np
import pytest
from cuda_source import compile_ptx

import emulator
from emulator import TensorMap

KERNELS = r"""
struct __align__(64) Map { unsigned char bytes[128]; };

extern "C" __global__ void copy(const int* in, int* out) {
    __shared__ int tile[64];
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(in + threadIdx.x));
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}

__device__ void store(const Map* map) {
    __shared__ __align__(128) int tile[8 * 8];
    if (threadIdx.x < 64) tile[threadIdx.x] = threadIdx.x;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x) return;
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %1}], [%2];" ::"l"(map), "r"(0), "r"(from)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" __global__ void by_value(const __grid_constant__ Map map) { store(&map); }

extern "C" __global__ void moved(const __grid_constant__ Map map, Map* there) {
    for (int i = threadIdx.x; i < 128; i += blockDim.x) there[blockIdx.x].bytes[i] = map.bytes[i];
    __syncthreads();
    store(there + blockIdx.x);
}
"""


@pytest.fixture(scope="module")
def module():
    return emulator.Module(compile_ptx(KERNELS, "90a"))


def test_a_copy_into_shared_memory_writes_nothing_global(module):
    found = module.entry("copy").pointers
    assert [found.of(sources) for sources in found.writes.values()] == [[1]]
    assert [found.of(sources) for sources in found.reads.values()] == [[0]]


@pytest.mark.parametrize("entry", ["by_value", "moved"])
def test_two_blocks_store_one_tile_through_a_map_wherever_it_stands(module, entry):
    out = np.zeros((8, 8), np.int32)
    held = [np.zeros(256, np.uint8)] if entry == "moved" else []
    trace = module.launch(entry, 2, 64, [TensorMap(out, (8, 8)), *held])
    assert {hazard.kind for hazard in trace.hazards} & {"unfinished-store", "global-race"}
