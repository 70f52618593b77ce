"""What a k-step of Blackwell's rungs asks of an SM is what the rungs themselves ask on the emulator."""

import numpy as np
import pytest

import figures
from book.cells import blackwell_limits
from kernels.gemm import gemm


@pytest.mark.parametrize(
    ("rung", "rows", "pair"), [("tcgen05_pipelined", 128, False), ("tcgen05_pair", 256, True)]
)
def test_reads_and_loads_are_those_of_the_rung(rung, rows, pair):
    A, B = np.ones((rows, 128), np.float16), np.ones((128, 256), np.float16)
    trace = gemm(rung, A, B, machine="emulator").trace
    found, blocks = figures.pair_loads(256, pair), rows // 128
    read = sum(row.shared_wavefronts for row in trace.rows("tcgen05.mma"))
    assert read == 2 * blocks * found["reads"]  # of two k-steps
    copied = sum(row.bytes for row in trace.rows("cp.async.bulk.tensor"))
    assert copied == 2 * blocks * (found["a"] + found["b"])


def test_bounds_are_those_of_the_chapters():
    shares = [blackwell_limits.share(*tile) for tile in ((128, False), (256, False), (256, True))]
    assert shares == pytest.approx([1 / 2, 2 / 3, 1])
    assert blackwell_limits.bytes_per_clock(256, False) == 96
    assert blackwell_limits.bytes_per_clock(256, True) == 64
