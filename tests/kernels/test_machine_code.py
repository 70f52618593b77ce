"""Shared-memory loads read from machine code."""

import pytest

import kernels
from kernels.machine_code import shared_loads

SOURCE = """
extern "C" __global__ void probe(const TYPE* in, TYPE* out) {
  __shared__ TYPE tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
"""


@pytest.mark.parametrize("arch", kernels.rungs.ARCHITECTURES)
@pytest.mark.parametrize(
    ("type_", "width"), [("char", 1), ("short", 2), ("float", 4), ("double", 8), ("float4", 16)]
)
def test_a_load_is_as_wide_as_its_type(arch, type_, width):
    built = kernels.build(SOURCE.replace("TYPE", type_), arch=arch, name="probe")
    assert shared_loads(built) == {width: 1}


def test_a_kernel_without_shared_memory_has_none():
    assert not shared_loads(kernels.build("naive", arch=80))


def test_an_entry_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match=r"no section \.text\.other"):
        shared_loads(kernels.build("naive", arch=80), "other")
