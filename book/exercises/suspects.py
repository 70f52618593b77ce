"""Mistakes in a matrix product, each with the output that it would give.

A row says, in the kernel's own terms, what was done wrong, and computes what the output would then be.
`diagnose` compares them with the output that a kernel gave.
"""

from dataclasses import replace

import numpy as np

from .exercise import Case, Product

TILES = (4, 8, 16, 32, 64)


def _of_product(change):

    def guess(case: Case):
        return None if case.product is None else change(case.product)

    return guess


def _with(p: Product, **operands) -> np.ndarray:
    return replace(p, **operands).C


def _blocks(X: np.ndarray, size: int = 8) -> np.ndarray:
    """(rows / size, columns / size, size, size) view of the blocks."""
    rows, cols = X.shape
    return X.reshape(rows // size, size, cols // size, size).swapaxes(1, 2)


def _unblocks(blocks: np.ndarray) -> np.ndarray:
    r, c, size, _ = blocks.shape
    return blocks.swapaxes(1, 2).reshape(r * size, c * size)


def _swap_off_diagonal(X):
    """In each 16x16 tile, the upper right 8x8 block and the lower left one change places."""
    b = _blocks(X).copy()
    upper, lower = b[0::2, 1::2].copy(), b[1::2, 0::2].copy()
    b[0::2, 1::2], b[1::2, 0::2] = lower, upper
    return _unblocks(b)


def _transpose_blocks(X, size: int):
    return _unblocks(_blocks(X, size).swapaxes(2, 3))


def _swap(X, axis: int, size: int):
    """Neighbouring groups of `size` rows (axis 0) or columns (axis 1) change places."""
    return np.take(X, np.arange(X.shape[axis]) ^ size, axis)


def _terms(pick, t: int = 0):
    """Where other terms are summed: pick(k, t) names them, for k = 0, 1, 2 ... and tiles of t, of which K has more than one."""

    def change(p: Product):
        k = np.arange(p.A.shape[1])
        if len(k) <= t:
            return None
        return _with(p, A=p.A[:, pick(k, t)], B=p.B[pick(k, t)])

    return change


def _of_tiles(message: str, pick, tiles=TILES) -> list:
    """The rows of such a mistake, for each size of a tile."""
    return [(message.format(t=t), _terms(pick, t)) for t in tiles]


def _last_tile(k, t: int) -> int:
    return t * ((len(k) - 1) // t)


def _repeated(k, t: int):
    """The first tile again and again, of a K of whole tiles. ValueError for another."""
    return (k.reshape(-1, t) % t).reshape(-1)


def _stale_last(k, t: int):
    """The last tile of K was never fetched: its buffer, of two, still holds the tile two before."""
    tiles = k.reshape(-1, t)
    return np.concatenate([*tiles[:-1], tiles[-3]])


def _stale_tail(k, t: int):
    """Beyond K the one tile in shared memory still holds what the turn before left there, in both operands."""
    rest = len(k) % t
    if not rest:
        raise ValueError("K has whole tiles")
    return np.r_[k, len(k) - t : len(k) - rest]


def _row_of_column(p: Product):
    """Each output takes, in its 16x16 tile, the row of A whose number is its column's."""
    rows, columns = np.indices((len(p.A), p.B.shape[1]))
    A = np.vstack([p.A, np.zeros((16, p.A.shape[1]))])
    sums = np.einsum("ijk,kj->ij", A[rows // 16 * 16 + columns % 16], p.B)
    return p.alpha * sums + p.beta * p.old


def _one_stays(operand: str, t: int):
    """One operand's tile is fetched anew in each step, the other's is always the first one."""

    def change(p):
        K = p.A.shape[1]
        if t == K:
            return None
        first = _repeated(np.arange(K), t)
        return _with(p, A=p.A[:, first]) if operand == "A" else _with(p, B=p.B[first])

    return change


def _transpose_tile(tile, block):
    """Each tile of C transposed as a grid of blocks, the blocks themselves left as they are."""

    def change(p):
        tiles = _blocks(p.C, tile)
        r, c = tiles.shape[:2]
        grid = tiles.reshape(r, c, tile // block, block, tile // block, block)
        return _unblocks(grid.transpose(0, 1, 4, 3, 2, 5).reshape(tiles.shape))

    return change


_SWAPPED = (
    "Rows 8-15 of columns 0-7 and rows 0-7 of columns 8-15 are swapped in each 16x16 tile of {}: lanes address matrices 1 and 2 "
    "(registers 1 and 2) in the wrong order"
)
_TRANSPOSED = (
    "Each 8x8 block of {} is transposed: lane and register, or .trans, the wrong way round"
)
_COL_MAJOR = "Each 16x16 tile of {} is transposed: col_major where the tile lies row by row"
_ROWS = [
    ("Alpha is missing", lambda p: p.A @ p.B + p.beta * p.old),
    ("The old C is added without beta", lambda p: p.alpha * p.A @ p.B + p.old),
    ("Alpha scales the old C too", lambda p: p.alpha * (p.A @ p.B + p.beta * p.old)),
    (
        "The output is transposed: what belongs at [row, col] is at [col, row]",
        lambda p: p.C.T.reshape(p.C.shape),
    ),
    ("A is read transposed", lambda p: _with(p, A=p.A.reshape(p.A.shape[::-1]).T)),
    ("B is read transposed", lambda p: _with(p, B=p.B.reshape(p.B.shape[::-1]).T)),
    (
        "Only the last term along K is there: the sum is set (`=`) where it must be added to (`+=`)",
        _terms(lambda k, t: k[-1:], 1),
    ),
    ("The last term along K is missing", _terms(lambda k, t: k[:-1])),
    ("The first term along K is missing", _terms(lambda k, t: k[1:])),
    (
        "In each 16x16 tile the row of A is that of the output's column: tx stands where ty must",
        _row_of_column,
    ),
    (
        "Only the first 64 terms of K are summed: the loop must end at K",
        _terms(lambda k, t: k[:t], 64),
    ),
    *_of_tiles("The last tile of K ({t} terms) is missing", lambda k, t: k[: _last_tile(k, t)]),
    *_of_tiles("The first tile of K ({t} terms) is missing", lambda k, t: k[t:]),
    *_of_tiles("Only the first {t} terms of K are summed", lambda k, t: k[:t], (1, *TILES)),
    *_of_tiles("Only the last tile of K ({t} terms) is summed", lambda k, t: k[_last_tile(k, t) :]),
    *_of_tiles("Every step multiplies the first tile of K ({t} terms) again", _repeated),
    *(
        (
            f"{moving} moves on along K, and {staying} stays at its first tile ({t} terms)",
            _one_stays(staying, t),
        )
        for t in TILES
        for staying, moving in ("AB", "BA")
    ),
    (
        "Both operands are taken from A: the product is that of A and its own transpose",
        lambda p: _with(p, B=p.A.T),
    ),
    ("Everything is added twice", lambda p: 2 * p.A @ p.B * p.alpha + p.beta * p.old),
    (_SWAPPED.format("A"), lambda p: _with(p, A=_swap_off_diagonal(p.A))),
    (_SWAPPED.format("B"), lambda p: _with(p, B=_swap_off_diagonal(p.B))),
    (_TRANSPOSED.format("A"), lambda p: _with(p, A=_transpose_blocks(p.A, 8))),
    (_TRANSPOSED.format("B"), lambda p: _with(p, B=_transpose_blocks(p.B, 8))),
    (_COL_MAJOR.format("A"), lambda p: _with(p, A=_transpose_blocks(p.A, 16))),
    (
        "Each 16x16 tile of A and each of B is transposed: col_major where the tiles lie row by row",
        lambda p: _with(p, A=_transpose_blocks(p.A, 16), B=_transpose_blocks(p.B, 16)),
    ),
    (_COL_MAJOR.format("B"), lambda p: _with(p, B=_transpose_blocks(p.B, 16))),
    *_of_tiles(
        "The last tile of K ({t} terms) is not fetched: the tile two before it, left in the buffer, is used again",
        _stale_last,
    ),
    *_of_tiles(
        "Beyond the end of K the tiles keep what the turn before left there ({t} terms a tile): a thread with nothing "
        "to load must store a 0",
        _stale_tail,
    ),
    (
        "Rows 8-15 of each 16 of A are swapped with rows 0-7",
        lambda p: _with(p, A=_swap(p.A, 0, 8)),
    ),
    (
        "Along K, terms 8-15 of each 16 are swapped with terms 0-7 in one operand and not in the other",
        lambda p: _with(p, A=_swap(p.A, 1, 8)),
    ),
    (
        "Along K, terms 0 and 1, 2 and 3 and so on have changed places in one operand and not in the other (for an "
        "mma: the two halves of each register are the other way round)",
        lambda p: _with(p, A=_swap(p.A, 1, 1)),
    ),
    *(
        (f"Each {t}x{t} tile of the output is transposed", _transpose_tile(t, 1))
        for t in (2, 4, 16, 32, 64)
    ),
    *(
        (
            f"The {b}x{b} blocks of each {t}x{t} tile of the output are transposed: tx and ty the wrong way round",
            _transpose_tile(t, b),
        )
        for t in (16, 32, 64)
        for b in (2, 4, 8)
    ),
    *(
        (
            f"Of every {2 * t} terms along K only the first{f' {t} are' if t > 1 else ' is'} summed",
            _terms(lambda k, t: k[k // t % 2 == 0], t),
        )
        for t in (1, 2, *TILES)
    ),
    *_of_tiles("The last of every {t} terms along K is missing", lambda k, t: k[k % t != t - 1]),
]
SUSPECTS = [(message, _of_product(change)) for message, change in _ROWS]
