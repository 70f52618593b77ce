"""Shared-memory loads read from machine code."""

import pytest

import kernels
from measure import machine_code, published
from measure.machine_code import (
    loads_in_a_row,
    multiply_adds,
    register_reads,
    same_code,
    shared_loads,
)

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


COPIES = """
extern "C" __global__ void copies(const float* __restrict__ in, float* out) {
  __shared__ float tile[32][8];
  float first[3], second[5];
  for (int i = 0; i < 3; ++i) first[i] = in[threadIdx.x + i * 64];
  for (int i = 0; i < 3; ++i) tile[threadIdx.x][i] = first[i];
  __syncthreads();
  for (int i = 0; i < 5; ++i) second[i] = in[threadIdx.x + i * 64 + 1000];
  for (int i = 0; i < 5; ++i) tile[threadIdx.x][7 - i] = second[i];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x / 2][threadIdx.x % 8];
}
"""


@pytest.mark.parametrize("arch", kernels.rungs.ARCHITECTURES)
def test_loads_in_a_row(arch):
    built = kernels.build(COPIES, arch=arch, name="copies")
    assert sum(loads_in_a_row(built)) == 8
    assert loads_in_a_row(kernels.build("tiled", arch=arch))


def test_an_entry_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match=r"no section \.text\.other"):
        shared_loads(kernels.build("naive", arch=80), "other")


CHAIN = """
extern "C" __global__ void chain(const float* in, float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  float a = in[64], b = in[65], c = in[66], d = in[67];
  __syncthreads();
  float late = tile[63 - threadIdx.x];
  for (int i = 0; i < 8; ++i) { a = a * b + c; c = c * d + b; }
  out[threadIdx.x] = a * late + c;
}
"""


def test_multiply_adds_are_found_and_read_two_or_three_registers():
    built = kernels.build(CHAIN, arch=90, name="chain")
    assert sum(map(len, multiply_adds(built))) == 17
    assert 2 <= register_reads(built) <= 3


def test_an_operand_that_was_kept_is_not_read_again(monkeypatch):
    def ffma(a, b, c, kept=0):
        return 0x223 | a << 24 | b << 32, c | kept << 58

    chain = [ffma(2, 4, 6, kept=1), ffma(2, 4, 8), ffma(2, 4, 9), (0x984, 0), ffma(2, 4, 255)]
    monkeypatch.setattr(machine_code, "words", lambda build, entry: chain)
    assert register_reads(None) == (3 + 2 + 3 + 2) / 4


def test_without_multiply_adds_there_is_nothing_to_count():
    built = kernels.build(SOURCE.replace("TYPE", "float"), arch=90, name="probe")
    with pytest.raises(ValueError, match="no multiply-adds"):
        register_reads(built)


def test_code_is_the_same_only_if_every_instruction_is():
    one = kernels.build(CHAIN, arch=90, name="chain")
    assert same_code(one, kernels.build(CHAIN + "\n// a comment", arch=90, name="other"))
    changed = CHAIN.replace("in[67]", "in[68]")
    assert not same_code(one, kernels.build(changed, arch=90, name="chain"))


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("bytes_", [2, 4, 16])
def test_asynchronous_copies_are_found_where_the_ptx_has_them(bytes_, arch):
    build = published.NAMED[f"{bytes_} bytes at a time"].build(arch)
    asked = build.ptx.count("cp.async.ca.") + build.ptx.count("cp.async.cg.")
    found = machine_code.fills_of_shared(build)
    assert found["LDGSTS"] == asked and (found["STS"] == 0) == (bytes_ > 2)
    assert found["LDG"] == found["STS"]
