"""The bound of somebody's kernel, from its trace: counted by hand, and below every recorded time."""

from math import ceil

import numpy as np
import pytest

from kernels.check import random_inputs
from kernels.gemm import gemm
from kernels.rungs import find
from measure.inspection import inspect
from measure.model.of_trace import bound
from measure.model.rates import HIGHEST
from measure.model.recorded import ladder, variants

ADD = """extern "C" __global__ void add(const float* a, float* out) {
    __shared__ float s[32 * 33];
    const int i = blockIdx.x * 32 + threadIdx.x;
    const float own = a[i];
    s[threadIdx.x * STRIDE] = own;
    __syncwarp();
    out[i] = s[(31 - threadIdx.x) * STRIDE] * own + 1.0f;
}"""


@pytest.mark.parametrize(("stride", "wavefronts"), [(32, 32), (33, 1)])
def test_a_part_is_its_work_over_its_rate_by_the_fullest_sm(stride, wavefronts):
    """Per warp: a store and a load of shared memory, a line read and one written; a multiply-add."""
    args = [np.ones(128, "f4"), np.zeros(128, "f4")]
    found = inspect(ADD, 4, 32, args, macros={"STRIDE": stride})
    path, floats = bound(found.trace, 1.0)
    assert (path.resource, path.work) == ("shared memory and L1", 4 * (2 * wavefronts + 2))
    assert path.ms == pytest.approx((2 * wavefronts + 2) / 1e6)  # a block per SM, a clock each
    assert (floats.resource, floats.work) == ("FMA pipe", 4)
    assert "bound on an NVIDIA H200" in found.text() and "no time" in found.text()
    assert "bound on an NVIDIA H200" in found.html()


def test_rows_that_fall_on_many_banks_of_l1_are_not_bound_by_their_lines():
    """K = 4097: recorded three times as fast as with a pass for each line (`check.LINE_ELEMENTS`)."""
    row = next(r for r in variants() if r.rung == "uncoalesced" and r.size[2] == 4097)
    A, B, _ = random_inputs(find(row.rung).types(row.macros), 64, 64, 257)
    trace = gemm(row.rung, A, B, macros=row.macros, machine="emulator", arch=90).trace
    blocks = int(np.prod(trace.grid))
    for part in bound(trace, row.ghz or HIGHEST, merged=False):
        whole = part.ms / 132 * blocks * (row.size[0] / 64) ** 2 * row.size[2] / 257
        assert whole < row.least, part


@pytest.mark.parametrize(
    "name", ["naive", "coarsened_2d", "warp_tiled", "wmma_async", "mma_tf32", "mma_multistage", "wgmma_fp8"]
)  # fmt: skip
def test_a_rungs_bound_lies_below_its_recorded_time(name):
    """Of 256 cubed, scaled to 4096 cubed: as many tiles per SM, each with 16 times the steps."""
    row = next(r for r in ladder() if r.rung == name and r.size == (4096,) * 3)
    A, B, _ = random_inputs(find(name).types(row.macros), 256, 256, 256)
    trace = gemm(name, A, B, macros=row.macros, machine="emulator", arch=90).trace
    works = {part.resource: part for part in bound(trace, row.ghz or HIGHEST, merged=False)}
    blocks = int(np.prod(trace.grid))
    for part in works.values():
        of_block = part.ms * min(132, blocks) / blocks  # by one block of the small launch
        tiles = ceil(blocks * 256 / 132)
        assert 0 < of_block * 16 * tiles < row.least, part
