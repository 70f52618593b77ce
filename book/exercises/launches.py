"""The launches of the exercises on tiles, copies and layouts, what some of their mistakes give, and two extra checks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from kernels.shapes import ceil_div

from .cases import poisoned, product
from .exercise import Case


def last_drawn(cases) -> tuple[Case, ...]:
    """The same cases, the last one marked: its sizes are drawn anew each time."""
    *fixed, last = cases
    return (*fixed, replace(last, drawn=True))


def products(sizes, tile, block, *, drawn=((1, 80), (1, 80), (65, 120)), step=1, **options):
    """`cases` for a GEMM kernel: one launch per size, and one of a size drawn anew each time.

    drawn: the least and the largest M, N and K of that one, each in units of `step`; None for no such launch.
    """

    def cases(rng):
        more = drawn and (tuple(int(step * rng.integers(a, b + 1)) for a, b in drawn),)
        made = tuple(product(rng, size, tile, block, **options) for size in (*sizes, *(more or ())))
        return last_drawn(made) if more else made

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


def scale_rows(rng):
    alpha = np.float32(rng.uniform(1, 2))
    return tuple(
        mapping(
            rng, (M, N), (M, N), lambda x: alpha * x, (1, M), (64,),
            extra=(np.int32(M), np.int32(N), alpha), label=f"M={M}, N={N}",
            special=f"N={N} is no multiple of 4" if N % 4 else "N ends within a step of the block" if N % 256 else "",
        )
        for M, N in (
            (4, 512), (3, 300), (4, 301), (2, 130), (5, 3), tuple(map(int, rng.integers((2, 1), (7, 400)))),
        )
    )  # fmt: skip


def chunks(columns):
    """Launches for a kernel that reads a 32-row tile of halves back chunk by chunk."""

    def cases(rng):
        chunks = columns // 8
        return tuple(
            mapping(
                rng, (32, columns), (chunks, 32, 8),
                lambda x: np.ascontiguousarray(x.reshape(32, chunks, 8).swapaxes(0, 1)),
                (1,), (32,), dtype=np.float16, label=f"one 32 x {columns} tile",
            )
        for _ in range(1))  # fmt: skip

    return cases


def reverse(rng):
    return tuple(
        mapping(
            rng, (blocks, 512), (blocks, 512), lambda x: np.ascontiguousarray(x[:, ::-1]), (blocks,), (128,),
            label=f"{blocks} blocks of 512",
        )
        for blocks in (3, int(rng.integers(4, 12)))
    )  # fmt: skip


def warp_meets(built, trace):
    """Does the warp meet between its stores to shared memory and its first ldmatrix?"""
    meets = False
    for row in trace.instructions:
        if row.opcode.startswith("bar"):
            meets = True
        elif row.shared_wavefronts and row.opcode.startswith("st"):
            meets = False
        elif row.opcode.startswith("ldmatrix"):
            break
    if meets:
        return []
    return [
        "The lanes store the tiles, and ldmatrix reads what other lanes have stored, with no __syncwarp() between: only "
        "that makes the stores of one lane visible to the others."
    ]


def no_spare_room(built, trace):
    """Does the tile take no more shared memory than its elements?"""
    room, tile = built.reports["swizzle_rows"].shared_bytes, 32 * 32 * 2
    return (
        []
        if room <= tile
        else [
            f"{room:,} bytes of shared memory: the tile has {tile:,}, and no padding is allowed here."
        ]
    )


def row_sums(rng):
    cases = []
    tall, wide_ = (int(rng.integers(1, n)) for n in (4, 20))
    for M, K in ((64, 16), (128, 48), (64, 176), (64, 512), (64 * tall, 16 * wide_)):
        x = rng.standard_normal((M, K)).astype(np.float32)
        wide = x.astype(float)
        cases.append(
            Case(
                f"M={M}, K={K}", (x, poisoned((M,)), np.int32(K)), 1, wide.sum(1), (M // 64,), (64,),
                tolerance=(K + 4) * 2.0**-23, scale=np.abs(wide).sum(1),
                special="there are fewer tiles than stages" if K < 64 else "slots are used again",
            )
        )  # fmt: skip
    return tuple(cases)


def transposes(rng):
    return tuple(
        mapping(
            rng, (M, N), (N, M), lambda x: np.ascontiguousarray(x.T), (ceil_div(N, 32), ceil_div(M, 32)), (32, 8),
            extra=(np.int32(M), np.int32(N)), label=f"{M} x {N}",
            special="the tiles at the edges are not whole" if M % 32 or N % 32 else "",
        )
        for M, N in ((32, 32), (64, 96), (33, 70), (1, 65), tuple(map(int, rng.integers(1, 130, 2))))
    )  # fmt: skip


def orders(rng):
    def right(tiles_m, tiles_n, group=4):
        visits = [
            (m, n)
            for top in range(0, tiles_m, group)
            for n in range(tiles_n)
            for m in range(top, min(top + group, tiles_m))
        ]
        order = np.empty((tiles_m, tiles_n), np.int32)
        for block, place in enumerate(visits):
            order[place] = block
        return order

    return tuple(
        Case(
            f"{m} x {n} tiles",
            (poisoned((m, n), np.int32), np.int32(m), np.int32(n)),
            0,
            right(m, n),
            (m * n,),
            (32,),
            special=f"the last band has {m % 4} row{'s' if m % 4 > 1 else ''} of tiles, not 4"
            if m % 4
            else "",
        )
        for m, n in (
            (8, 6),
            (10, 3),
            (3, 5),
            (1, 7),
            (9, 1),
            (22, 3),
            tuple(map(int, rng.integers(1, 20, 2))),
        )
    )


def epilogues(rng):
    tried = (
        ((32, 64, 8), (1.0, 0.0)),
        ((33, 36, 5), (1.5, 0.0)),
        ((40, 44, 7), (0.7, 1.6)),  # no two of a, b, a + b, a * b, a * a, b * b are equal
        ((17, 35, 4), (-1.0, 0.25)),
        ((1, 2, 3), (2.0, 0.0)),
        (tuple(map(int, rng.integers(1, 70, 3))), (1.25, -0.5)),
    )
    made = []
    for size, scalars in tried:
        case = product(rng, size, (32, 32), (256,), scalars=scalars)
        if size[1] % 4:
            rows = f"N={size[1]} is no multiple of 4, so rows of C begin at addresses that are no multiple of 16"
            case = replace(case, special=f"{rows}, and a thread may have fewer than four columns")
        made.append(case)
    return tuple(made)


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x * math.sqrt(0.5)))


def layers(rng):
    """Launches of gelu(A @ B + bias), N in fours."""
    cases = []
    drawn = (int(rng.integers(1, 40)), 4 * int(rng.integers(1, 20)), int(rng.integers(1, 40)))
    for M, N, K in ((32, 64, 8), (33, 36, 5), (5, 100, 16), drawn):
        A, B = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((M, K), (K, N)))
        bias = rng.uniform(-2, 2, N).astype(np.float32)
        args = (A, B, bias, poisoned((M, N)), np.int32(M), np.int32(N), np.int32(K))
        scale = np.abs(A.astype(float)) @ np.abs(B.astype(float)) + np.abs(bias) + 1
        cases.append(
            Case(
                f"M={M}, N={N}, K={K}", args, 3, gelu(A.astype(float) @ B + bias),
                (ceil_div(N, 32), ceil_div(M, 32)), (256,), tolerance=(K + 8) * 2.0**-23, scale=scale,
                special="" if M % 32 == N % 32 == 0 else "the tiles at the edges are not whole",
            )
        )  # fmt: skip
    return tuple(cases)


def with_bias_of_rows(c, bias):
    """gelu of the product and four numbers of the bias that begin at the row's, where the bias has so many."""
    row, col = np.indices(c.shape)
    return gelu(c + bias[(row // 4 * 4 + col % 4) % len(bias)])


def end_of_layer(end):
    """The output if the layer ended so: a function of the product and the bias."""

    def guess(case):
        A, B, bias = (x.astype(float) for x in case.args[:3])
        return end(A @ B, bias)

    return guess


def rows_of_order(case):
    m, n = case.expected.shape
    return np.arange(m * n, dtype=np.int32).reshape(m, n)


def columns_of_order(case):
    m, n = case.expected.shape
    return np.arange(m * n, dtype=np.int32).reshape(n, m).T


def one_row_of_b(row):
    """The product if all lanes of ldmatrix.trans point at this row of B, column 0: each 8x8 matrix repeats it."""

    def guess(case):
        B = case.product.B
        return case.product.A @ np.tile(B[row, :8], (16, 2))

    return guess


def tile_stride(operand):
    """The product if fragments of this operand are loaded with the tile's stride, 16, from the right corners."""

    def guess(case):
        p = case.product
        X = getattr(p, operand)
        rows, cols = np.indices(X.shape)
        corner = rows // 16 * 16 * X.shape[1] + cols // 16 * 16
        read = X.ravel()[corner + rows % 16 * 16 + cols % 16]
        return read @ p.B if operand == "A" else p.A @ read

    return guess


def turned_order(case):
    m, n = case.expected.shape
    return np.ascontiguousarray(case.expected.T).reshape(m, n)


def first_tile_astray(case, out) -> str | None:
    """The first block that visits another tile than it should."""
    visits = {int(block): tuple(map(int, at)) for at, block in np.ndenumerate(out)}
    for block in range(out.size):
        right = tuple(int(i) for i in np.argwhere(case.expected == block)[0])
        if block in visits and visits[block] != right:
            return (
                f"Block {block} visits tile {visits[block]} of {out.shape[0]} x {out.shape[1]}, and should visit tile {right}: "
                "in each band, m counts up first, and then n."
            )
    return None


def four_rows_in_one(case):
    """The output of `coarsen` where a thread adds its four outputs up in the first of its sums."""
    p = case.product
    rows = np.pad(p.C, ((0, -len(p.C) % 32), (0, 0))).reshape(-1, 4, 8, p.C.shape[1])
    sums = np.zeros_like(rows)
    sums[:, 0] = rows.sum(1)
    return sums.reshape(-1, p.C.shape[1])[: len(p.C)]


def some_of_four(places):
    """The scaled matrix where only some elements of each float4 are multiplied, in rows that float4s fit."""

    def guess(case):
        X, N = case.args[0], case.expected.shape[1]
        if N % 4:
            return case.expected.astype(X.dtype)
        return np.where(np.isin(np.arange(N) % 4, places), case.expected, X)

    return guess
