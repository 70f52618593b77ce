"""Occupancy, against NVIDIA's calculator."""

import pytest

from kernels import occupancy


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "limited_by"),
    [
        (80, 256, 32, 0, 8, "warps"),
        (80, 256, 64, 0, 4, "registers"),
        (80, 32, 64, 0, 32, "blocks"),  # a lone warp takes one warp's registers, not four's
        (90, 160, 168, 0, 2, "registers"),  # 5 warps: 12 fit, 3 a quarter
        (90, 160, 176, 0, 1, "registers"),  # 8 fit
        (90, 288, 176, 0, 0, "registers"),  # 9 warps ask for room for 12
        (80, 256, 33, 0, 6, "registers"),  # 33 registers are allocated as 40
        (80, 128, 16, 48 * 1024, 3, "shared memory"),
        (80, 32, 16, 0, 32, "blocks"),
        (75, 1024, 64, 0, 1, "warps"),
        (75, 256, 32, 32 * 1024, 2, "shared memory"),
        (86, 256, 64, 0, 4, "registers"),
        (90, 256, 168, 100 * 1024, 1, "registers"),
        (90, 128, 128, 113 * 1024, 2, "shared memory"),
        (120, 512, 40, 0, 3, "warps"),
        (90, 128, 32, 228 * 1024, 0, "shared memory"),
    ],
)
def test_blocks_per_multiprocessor(arch, threads, registers, shared, blocks, limited_by):
    found = occupancy(arch, threads, registers, shared)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)
    assert found.fraction == found.blocks * -(-threads // 32) / found.max_warps


def test_an_unknown_architecture_is_named():
    with pytest.raises(ValueError, match=r"sm_61.*75"):
        occupancy(61, 32, 32, 0)
