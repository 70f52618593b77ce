"""Launches of one warp's tiles: fragments of mma and how they are loaded, and the outputs that their usual mistakes give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .answers import a_element
from .cases import poisoned, product
from .exercise import Case


def _tile(rng, rows: int, K: int) -> np.ndarray:
    return rng.standard_normal((rows, K)).astype(np.float16)


def tiles(shape, rearrange, dtype=np.float16):
    """Launches for the first 32 columns of a (16, K) matrix of halves; `rearrange` gives the output."""

    def cases(rng) -> tuple[Case, ...]:
        made = []
        for K in (32, 96, 32 * int(rng.integers(2, 9))):
            A = _tile(rng, 16, K)
            made.append(
                Case(
                    f"K={K}", (A, poisoned(shape, dtype), np.int32(K)), 1,
                    np.ascontiguousarray(rearrange(A[:, :32])), (1,), (32,),
                    special="the rows lie further apart than the tile is wide" if K > 32 else "",
                )
            )  # fmt: skip
        return tuple(made)

    return cases


def by_chunks(tile) -> np.ndarray:
    """(4, 16, 8): the tile's columns of chunks."""
    return tile.reshape(16, 4, 8).swapaxes(0, 1)


def fragments(
    tile, order=(0, 1, 2, 3), chunk=lambda row, c: c, turned=False, rows=lambda row: row
) -> np.ndarray:
    """(2, 32, 4) int32: what each lane's registers hold of the two 16 x 16 halves, by PTX's lane map.

    order: which register's matrix stands in each; chunk: which chunk is read in place of another; turned: each
    matrix of 8 x 8 is transposed; rows: which row is read in place of another.
    """
    halves = np.zeros((2, 32, 8), np.float16)
    for step in range(2):
        for lane in range(32):
            for half in range(8):
                row, col = a_element(lane, 2 * order[half // 2] + half % 2)
                if turned:
                    row, col = row // 8 * 8 + col % 8, col // 8 * 8 + row % 8
                row = rows(row)
                which = chunk(row, 2 * step + col // 8)
                halves[step, lane, half] = tile[row, 8 * which + col % 8]
    return halves.view(np.int32)


def pointed_at(case, out) -> str | None:
    """Which row of the tile a lane pointed at, where it should have been another one; None if that cannot be told."""
    rows = (
        np.ascontiguousarray(case.args[0][:, :32]).view(np.int32).reshape(64, 4)
    )  # row by row, 4 chunks each
    for step, matrix, row in np.ndindex(2, 4, 8):
        held = out[step, 4 * row : 4 * row + 4, matrix]
        found = np.flatnonzero((rows == held).all(1))
        right = 8 * (matrix % 2) + row, 2 * step + matrix // 2
        if len(found) == 1 and divmod(int(found[0]), 4) != right:
            there, chunk = divmod(int(found[0]), 4)
            return (
                f"In step {step} lane {8 * matrix + row} points at row {there}, chunk {chunk} of the tile. "
                f"It should point at row {right[0]}, chunk {right[1]}."
            )
    return None


def _of_tile(**how):
    return lambda case: fragments(case.args[0][:, :32], **how)


FRAGMENT_SUSPECTS = {
    "Registers 1 and 2 are the other way round: matrices 0 and 1 are rows 0-7 and 8-15 of one chunk": (
        _of_tile(order=(0, 2, 1, 3))
    ),
    "The chunk is read where it would lie without the swizzle": _of_tile(
        chunk=lambda row, c: c ^ row // 2 % 4
    ),
    "Each 8 x 8 matrix is transposed: these are the registers that ldmatrix loads with .trans": _of_tile(
        turned=True
    ),
    "Each 8 x 8 matrix is transposed by .trans, and registers 1 and 2 are the other way round": _of_tile(
        turned=True, order=(0, 2, 1, 3)
    ),
    "Each register holds rows 0-7: lanes 8 to 15 have to point at rows 8 to 15": _of_tile(
        rows=lambda row: row % 8
    ),
    "Rows 0-7 and rows 8-15 are the other way round": _of_tile(rows=lambda row: row ^ 8),
    "Both steps read the last 16 columns": _of_tile(chunk=lambda row, c: 2 + c % 2),
    "The two steps are the other way round": _of_tile(chunk=lambda row, c: c ^ 2),
    "Both chunks of a step are its left one: lanes 16 and up have to point at the chunk to the right": _of_tile(
        chunk=lambda row, c: c // 2 * 2
    ),
    "Both steps read the first 16 columns": _of_tile(chunk=lambda row, c: c % 2),
    "The two chunks of a step are the other way round": _of_tile(chunk=lambda row, c: c ^ 1),
    "Step 1 begins one chunk after step 0, not two": _of_tile(
        chunk=lambda row, c: c if c < 2 else c - 1
    ),
    "Each register holds matrix 0: all lanes point at the rows of one matrix": _of_tile(
        order=(0, 0, 0, 0)
    ),
}


def transposed_products(sizes, one_tile: bool):
    """Launches `(A, Bt, C[, M, N], K)` with B given column by column; of one tile, only the first 32 terms are wanted."""

    def cases(rng) -> tuple[Case, ...]:
        drawn = (16, 16, 32 * int(rng.integers(2, 6))) if one_tile else (
            *(16 * rng.integers(1, 4, 2)).tolist(), 32 * int(rng.integers(3, 8))
        )  # fmt: skip
        made = []
        for M, N, K in (*sizes, drawn):
            case = product(rng, (M, N, 32 if one_tile else K), (16, 16), (32,), dtype=np.float16)
            A, Bt = case.args[0], np.ascontiguousarray(case.args[1].T)
            if one_tile:  # what lies beyond the tile belongs to the tiles that follow
                A, Bt = (np.hstack([x, _tile(rng, 16, K - 32)]) for x in (A, Bt))
            wanted = [np.int32(n) for n in ((K,) if one_tile else (M, N, K))]
            special = "K is more than a tile" if K > 32 else ""
            label = f"K={K}" if one_tile else f"M={M}, N={N}, K={K}"
            made.append(
                replace(case, label=label, args=(A, Bt, case.args[2], *wanted), special=special)
            )
        return tuple(made)

    return cases


def _b_halves(case, swap) -> np.ndarray:
    """The product if mma gets other registers of B: swap(k, n) gives where each element is taken from."""
    B = case.product.B
    k, n = np.indices(B.shape)
    return case.product.A @ B[swap(k, n)]


B_SUSPECTS = {
    "b[0] and b[1] are taken for one half of C: they are columns 0-7 and 8-15 of B, at the same k": (
        lambda case: _b_halves(case, lambda k, n: (k // 16 * 16 + n // 8 * 8 + k % 8, k % 16 // 8 * 8 + n % 8))
    ),
    "The two halves of C are the other way round": lambda case: case.expected[:, np.arange(16) ^ 8],
    "Both halves of C are columns 0-7": lambda case: case.expected[:, np.arange(16) % 8],
    "b[0] and b[2] are swapped: terms 0-7 of each 16 of k go with terms 8-15": lambda case: _b_halves(
        case, lambda k, n: (k ^ 8, n)
    ),
    "Only columns 0-7 of C are summed": lambda case: np.where(np.arange(16) < 8, case.expected, 0),
}  # fmt: skip


def products_of_blocks(case, out) -> str | None:
    """Which 8 x 8 blocks of B each half of C is made with, for the four groups of 8 terms, where one is not the right one."""
    if not out.any():
        return None
    A, B = case.product.A, case.product.B
    blocks = [B[8 * i : 8 * i + 8, 8 * j : 8 * j + 8] for i in range(4) for j in range(2)]
    for half in range(2):
        terms = [(A[:, 8 * k : 8 * k + 8] @ b).reshape(-1) for k in range(4) for b in blocks]
        held = out[:, 8 * half : 8 * half + 8].reshape(-1)
        weights, *_ = np.linalg.lstsq(np.array(terms).T, held, rcond=None)
        whole = np.round(weights)
        if not np.isfinite(held).all() or np.abs(weights - whole).max() > 0.05:
            return None
        for k in range(4):
            used = [(i, int(n)) for i, n in enumerate(whole[8 * k : 8 * k + 8]) if n]
            if used != [(2 * k + half, 1)]:
                place = f"In columns {8 * half}-{8 * half + 7} of C, terms {8 * k}-{8 * k + 7} of A"
                should = f"terms {8 * k}-{8 * k + 7} of B's columns {8 * half}-{8 * half + 7}"
                met = " and with ".join(
                    f"terms {8 * (i // 2)}-{8 * (i // 2) + 7} of B's columns {8 * (i % 2)}-{8 * (i % 2) + 7}"
                    + (f" ({n} times)" if n != 1 else "")
                    for i, n in used
                )
                if not used:
                    return f"{place} are missing. They should be multiplied with {should}, once."
                return f"{place} are multiplied with {met}. It should be {should}, once."
    return None
