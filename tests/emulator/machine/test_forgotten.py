"""What a launch leaves behind: nothing large waits for Python's collector."""

import gc

import numpy as np
import pytest
from cuda_source import compile_ptx

import emulator
from emulator import launch
from emulator.machine.chunk import Chunk

COPY = """
extern "C" __global__ void __cluster_dims__(2) copy(float* out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}
"""


@pytest.mark.parametrize("large", [0, 2**40])
def test_the_shadows_of_a_launch_are_freed_at_its_end_where_they_are_large(monkeypatch, large):
    monkeypatch.setattr(launch, "LARGE", large)
    monkeypatch.setattr(launch.Launch, "left", 0)
    module, out = emulator.Module(compile_ptx(COPY, 90)), np.zeros(256, np.float32)
    gc.collect()
    gc.disable()
    try:
        trace = module.launch("copy", grid=4, block=64, args=[out])
        waiting = [one for one in gc.get_objects() if isinstance(one, Chunk)]
    finally:
        gc.enable()
    assert trace.hazards == [] and out[0] == 63
    assert bool(waiting) == bool(large)
