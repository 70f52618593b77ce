"""Builds the launches that a kernel is tried on: fresh random asymmetric inputs, poisoned outputs, awkward sizes."""

import numpy as np

from book.exercises.exercise import Case, Product
from kernels.shapes import ceil_div

# A quiet NaN that no arithmetic makes: an element that still holds it was never written.
POISON_BITS = 0x7FC0DEAD
POISON_INT = -559038737
EPSILON = 2.0**-23  # of a float


def poisoned(shape, dtype=np.float32) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype == np.float32:
        return np.full(shape, POISON_BITS, np.uint32).view(np.float32)
    if dtype == np.float16:
        return np.full(shape, 0x7EAD, np.uint16).view(np.float16)
    return np.full(shape, POISON_INT, dtype)


def unwritten(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "f":
        bits = np.dtype(f"u{array.dtype.itemsize}")
        return array.view(bits) == poisoned((1,), array.dtype).view(bits)[0]
    return array == POISON_INT


def product(
    rng: np.random.Generator,
    size: tuple[int, int, int],
    tile: tuple[int, int],
    block: tuple[int, ...],
    *,
    dtype=np.float32,
    scalars: tuple[float, float] | None = None,
    sizes_passed: bool = True,
) -> Case:
    """A GEMM launch `(A, B, C[, M, N, K][, alpha, beta])`: one block per (rows, columns) `tile` of C, x along N.

    `scalars` are (alpha, beta), when the kernel takes them. C is poisoned unless beta needs it.
    """
    M, N, K = size
    A = rng.standard_normal((M, K)).astype(dtype)
    B = rng.standard_normal((K, N)).astype(dtype)
    alpha, beta = scalars or (1.0, 0.0)
    C = rng.standard_normal((M, N)).astype(np.float32) if beta else poisoned((M, N))
    wide = Product(A.astype(float), B.astype(float), np.where(np.isnan(C), 0, C), alpha, beta)
    magnitude = abs(alpha) * np.abs(wide.A) @ np.abs(wide.B) + abs(beta) * np.abs(wide.old)
    extra = [np.int32(n) for n in size] if sizes_passed else []
    extra += [np.float32(x) for x in scalars or ()]
    label = f"M={M}, N={N}, K={K}"
    if scalars:
        label += f", alpha={alpha:g}, beta={beta:g}"
    return Case(
        label=label,
        args=(A, B, C, *extra),
        output=2,
        expected=wide.C,
        grid=(ceil_div(N, tile[1]), ceil_div(M, tile[0])),
        block=block,
        tolerance=(K + 4) * EPSILON,
        scale=magnitude,
        product=wide,
        special=_special(size, tile),
    )


def _special(size, tile) -> str:
    """What no tile of its own size has: edges along M and N."""
    rest = [
        f"{name}={n} is no multiple of {t}"
        for name, n, t in zip("MN", size, tile, strict=False)
        if n % t
    ]
    return " and ".join(rest)


def row_sums(rng, size, sizes, rows: int, threads: tuple[int, ...], special: str = "") -> Case:
    """y = the sum of each row of x (M, K), `rows` of them for a block. sizes: what the kernel takes of M and K."""
    M, K = size
    x = rng.standard_normal(size).astype(np.float32)
    wide = x.astype(float)
    return Case(
        f"M={M}, K={K}", (x, poisoned((M,)), *map(np.int32, sizes)), 1, wide.sum(1), (ceil_div(M, rows),), threads,
        tolerance=(K + 4) * EPSILON, scale=np.abs(wide).sum(1), special=special,
    )  # fmt: skip


def _one_row(change):
    """A suspect from what would be summed of each row of x."""
    return lambda case: change(case.args[0].astype(float))


ROW_SUSPECTS = {
    "A tile of 16 columns is left out, the last one: the loop makes a turn too few": _one_row(
        lambda x: x[:, : (x.shape[1] - 1) // 16 * 16].sum(1)
    ),
    "Only the first M columns are summed: M and K are the wrong way round": _one_row(
        lambda x: x[:, : len(x)].sum(1)
    ),
    "What stands in the tile beyond the last column of X is not 0, and is summed too": _one_row(
        lambda x: x.sum(1) + -x.shape[1] % 16
    ),
    "The last K % 16 columns are left out": _one_row(
        lambda x: x[:, : x.shape[1] // 16 * 16].sum(1)
    ),
    "The last column of each tile is left out": _one_row(
        lambda x: x[:, np.arange(x.shape[1]) % 16 < 15].sum(1)
    ),
    "The first column of each tile is summed 16 times": _one_row(lambda x: 16 * x[:, ::16].sum(1)),
    "The first tile is summed in every turn": _one_row(
        lambda x: x[:, :16].sum(1) * ceil_div(x.shape[1], 16)
    ),
}


def products(sizes, tile, block, *, drawn=((1, 80), (1, 80), (65, 120)), step=1, **options):
    """`cases` for a GEMM kernel: one launch per size, and one of a size drawn anew each time.

    drawn: the least and the largest M, N and K of that one, each in units of `step`; None for no such launch.
    """

    def cases(rng):
        more = [tuple(int(step * rng.integers(a, b + 1)) for a, b in drawn)] if drawn else []
        return tuple(product(rng, size, tile, block, **options) for size in (*sizes, *more))

    return cases


def mapping(
    rng,
    shape,
    output,
    rearrange,
    grid,
    block,
    *,
    dtype=np.float32,
    extra=(),
    label=None,
    special="",
):
    """A launch that moves or scales its one input of this shape; `rearrange` gives the right output."""
    x = rng.standard_normal(shape).astype(dtype)
    expected = rearrange(x)
    label = label or " x ".join(map(str, shape))
    return Case(
        label, (x, poisoned(output, dtype), *extra), 1, expected, grid, block, special=special
    )
