"""TMA of sm_100: four rows of a matrix by their numbers, into shared memory and back (tile::gather4, tile::scatter4)."""

import numpy as np
import pytest
from cuda_source import launch

import emulator
from emulator import TensorMap

SOURCE = r"""
struct __align__(128) Map { unsigned char opaque[128]; };
__device__ unsigned shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void rows(const __grid_constant__ Map from, const __grid_constant__ Map to, int column, int4 in,
                                int4 back, uint4* out) {
    __shared__ __align__(1024) uint4 tile[32];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" :: "r"(shared(&bar)));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" :: "r"(shared(&bar)) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];"
                     :: "r"(shared(tile)), "l"(&from), "r"(column), "r"(in.x), "r"(in.y), "r"(in.z), "r"(in.w),
                        "r"(shared(&bar)) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again; }"
                 :: "r"(shared(&bar)) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
                     "[%0, {%1, %2, %3, %4, %5}], [%6];"
                     :: "l"(&to), "r"(column), "r"(back.x), "r"(back.y), "r"(back.z), "r"(back.w), "r"(shared(tile))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
"""


def run(swizzle, rows, back, column=64, box=(1, 64), source=SOURCE):
    """(matrix, what was in shared memory (4, 8, 8), the other matrix, the trace)."""
    matrix = np.arange(32 * 128, dtype=np.uint16).reshape(32, 128)
    other, out = np.zeros((16, 128), np.uint16), np.zeros((4, 8, 8), np.uint16)
    maps = [TensorMap(x, box, swizzle=swizzle) for x in (matrix, other)]
    numbers = [np.array(four, np.int32).tobytes() for four in (rows, back)]
    args = [*maps, np.int32(column), *numbers, out]
    trace = launch(source, "rows", 1, 32, args, "100a")
    return matrix, out, other, trace


@pytest.mark.parametrize("swizzle", [0, 128])
def test_four_rows_go_in_and_out(swizzle):
    rows, back = (17, 3, 30, 3), (9, 0, 15, 4)
    matrix, out, other, trace = run(swizzle, rows, back)
    wanted = matrix[list(rows), 64:].reshape(4, 8, 8)
    chunks = np.arange(8)
    for k in range(4):  # a row's 16-byte chunks change places by its number in the tile
        assert (out[k] == wanted[k][chunks ^ (k if swizzle else 0)]).all()
    assert (other[list(back), 64:] == matrix[list(rows), 64:]).all()
    untouched = [row for row in range(16) if row not in back]
    assert not other[untouched].any() and not other[:, :64].any() and not trace.hazards


def test_rows_outside_are_zeros():
    matrix, out, _, _ = run(0, (5, 32, 100, 6), (0, 1, 2, 3))
    assert (out[[0, 3]].reshape(2, 64) == matrix[[5, 6], 64:]).all() and not out[[1, 2]].any()


def test_what_does_not_fit_is_named():
    with pytest.raises(emulator.ExecutionError, match="boxes have 4 rows; it takes boxes of one"):
        run(0, (0, 1, 2, 3), (0, 1, 2, 3), box=(4, 64))
    with pytest.raises(emulator.PtxError, match="a column and four rows"):
        run(
            0, (0, 1, 2, 3), (0, 1, 2, 3), source=SOURCE.replace("{%2, %3, %4, %5, %6}", "{%2, %3}")
        )
    wrong = SOURCE.replace(
        "expect_tx.shared::cta.b64 _, [%0], 512", "expect_tx.shared::cta.b64 _, [%0], 128"
    )
    with pytest.raises(emulator.ExecutionError):  # four rows' bytes, not one's
        run(0, (0, 1, 2, 3), (0, 1, 2, 3), source=wrong)
