"""What one product costs on tensor cores, and the limits that follow: counts by hand beside the emulator's."""

import numpy as np
import pytest

from book.cells import line_limits, tensor_rungs
from kernels.gemm import gemm

TILES = {"BM": 128, "BN": 128, "WM": 64, "WN": 64}


def test_a_product_of_mma_tiled_costs_what_its_tiles_say():
    found = tensor_rungs.cost("mma_tiled", TILES)
    # per k-step of 16 and warp: 4 + 4 ldmatrix of 16 wavefronts (4 without conflicts) for 32 mma
    assert found.loads == 8 / 32
    # chunks of a k-step, 32 to a copy, 8 wavefronts per copy; 128 mma in the block
    copies = 2 * 16 * 128 / 8 / 32 * 8 / 128
    assert found.wavefronts == 8 * 16 / 32 + copies
    assert found.least == 8 * 4 / 32 + copies
    assert found.operations == 4096


def test_a_product_of_wmma_counts_fragments():
    found = tensor_rungs.cost("wmma", TILES)
    assert (found.loads, found.wavefronts, found.operations) == (0.5, 0, 8192)
    assert found.sectors == 16  # half a load of 32 sectors


def test_a_limit_is_operations_per_wavefront_at_the_clock():
    found = tensor_rungs.Cost(0.25, 2.0, 5.0, 2.0, 4096)
    assert found.limit(1e12) == pytest.approx(4096 / 5)
    assert found.limit(1e12, found.least) == pytest.approx(2048)


def test_tiles_that_a_file_fixes_are_named():
    assert tensor_rungs._tile("mma_sync", {"BM": 64, "BN": 64}, "BM", "BN", "BK") == "64x64x32"
    assert tensor_rungs._tile("mma_atoms", {}, "WM", "WN") == "16x8"


@pytest.mark.parametrize(
    ("rung", "opcode", "lines"), [("uncoalesced", "fma", 33), ("naive", "fma", 2)]
)
def test_lines_touched_per_multiply_add(rung, opcode, lines):
    A, B = np.ones((2, 64, 64), np.float32)
    trace = gemm(rung, A, B, machine="emulator").trace
    assert line_limits.touched(trace, opcode) == lines
