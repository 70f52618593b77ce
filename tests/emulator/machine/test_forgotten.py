"""What a launch leaves behind: nothing waits for Python's collector, whether the launch ended well or not."""

import gc
import tracemalloc

import numpy as np
import pytest
from cuda_source import compile_ptx

import emulator
from emulator.launch import Launch
from emulator.machine.chunk import Chunk
from emulator.sanitizer import DeviceMemory, Shadow
from emulator.sanitizer.device import DeviceShadow

COPY = """
extern "C" __global__ void CLUSTER copy(float* out, int last) {
    __shared__ float tile[LENGTH];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[last - threadIdx.x];
}
"""


def launched(cluster: str, last: int, length: int = 64, grid: int = 4):
    source = COPY.replace("CLUSTER", cluster).replace("LENGTH", str(length))
    module, out = emulator.Module(compile_ptx(source, 90)), np.zeros(64 * grid, np.float32)
    return lambda: (module.launch("copy", grid=grid, block=64, args=[out, last]), out)


@pytest.fixture
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("last", [63, 1 << 20])
@pytest.mark.parametrize("cluster", ["", "__cluster_dims__(2)"])
def test_nothing_of_a_launch_waits_for_the_collector(without_collector, cluster, last):
    launch = launched(cluster, last)
    try:
        trace, out = launch()
        assert last == 63 and trace.hazards == [] and out[0] == 63
    except emulator.ExecutionError as problem:
        assert last > 63 and "shared" in str(problem)
    kinds = (Launch, Chunk, Shadow, DeviceShadow, DeviceMemory)
    assert [type(one) for one in gc.get_objects() if isinstance(one, kinds) and vars(one)] == []


def test_the_readers_of_a_cluster_are_held_once():
    launch = launched("__cluster_dims__(8)", 63, 8192, 8)
    launch()
    tracemalloc.start()
    try:
        launch()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    warps, agents = 8 * 64 // 32, 2 + 8
    assert most / (8 * 8192) < 4 * (warps + agents) + 4 * agents + 40  # for each word of memory
