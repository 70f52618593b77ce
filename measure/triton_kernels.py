"""The tiled product in Triton, twice: with pointers, as a first version is written, and persistent with
tensor maps. Imported only where Triton is installed; Triton reads this file's text to compile it.
"""

import triton
import triton.language as tl


@triton.jit
def tiled(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A @ B, row-major: one program computes the BM x BN tile at its place in the grid."""
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a_at = A + rows[:, None] * K + ks[None, :]
    b_at = B + ks[:, None] * N + cols[None, :]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_at, mask=(rows[:, None] < M) & (ks[None, :] < K - k), other=0.0)
        b = tl.load(b_at, mask=(ks[:, None] < K - k) & (cols[None, :] < N), other=0.0)
        sums = tl.dot(a, b, sums)
        a_at += BK
        b_at += BK * N
    c_at = C + rows[:, None] * N + cols[None, :]
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_at, sums.to(C.dtype.element_ty), mask=inside)


@triton.jit
def persistent(
    A, B, C, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """The same with A, B and C as tensor maps, and programs that stay for several tiles, which go up
    and down in groups of GROUP rows of tiles.
    """
    tile_rows, tile_cols = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tile_rows * tile_cols, BLOCKS, flatten=True):
        first = tile // (GROUP * tile_cols) * GROUP
        height = min(tile_rows - first, GROUP)
        row = (first + tile % (GROUP * tile_cols) % height) * BM
        col = tile % (GROUP * tile_cols) // height * BN
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            sums = tl.dot(A.load([row, k]), B.load([k, col]), sums)
        C.store([row, col], sums.to(C.dtype))
