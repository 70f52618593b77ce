"""The distance from a load to its use is counted in mma."""

import kernels
from book.cells import lookahead

PTX = """
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r9];
mma.sync.aligned.x {%f1}, {%r1, %r9}, {%r7}, {%f1};
mma.sync.aligned.x {%f1}, {%r1, %r9}, {%r2}, {%f1};
ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r9];
"""


def test_first_use_counts_and_the_address_does_not():
    assert lookahead.mma_before_use(PTX) == [0, 1]


def test_the_pipelined_rung_loads_earlier():
    plain, ahead = (
        sorted(lookahead.mma_before_use(kernels.build(name, arch=90).ptx))
        for name in ("mma_swizzled", "mma_multistage")
    )
    assert ahead[len(ahead) // 2] > 2 * plain[len(plain) // 2]
