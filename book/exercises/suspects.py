"""Mistakes in a matrix product, each with the output that it would give.

A row says, in the kernel's own terms, what was done wrong, and computes what the output would then be.
`diagnose` compares them with the output that a kernel gave.
"""

import numpy as np

from .exercise import Case, Product

TILES = (4, 8, 16, 32, 64)


def _of_product(change):
    """A suspect from a function of the product."""

    def guess(case: Case):
        return None if case.product is None else change(case.product)

    return guess


def _with(p: Product, A=None, B=None) -> np.ndarray:
    other = Product(p.A if A is None else A, p.B if B is None else B, p.old, p.alpha, p.beta)
    return other.C


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


def _transpose_blocks(X):
    return _unblocks(_blocks(X).swapaxes(2, 3))


def _swap(X, axis: int, size: int):
    """Neighbouring groups of `size` rows (axis 0) or columns (axis 1) change places."""
    n = X.shape[axis]
    if n % (2 * size):
        raise ValueError
    return np.take(X, np.arange(n) ^ size, axis)


def _keep_k(p: Product, index) -> np.ndarray:
    return _with(p, p.A[:, index], p.B[index])


def _drop_last(t):
    def change(p):
        K = p.A.shape[1]
        return _keep_k(p, slice(0, t * ((K - 1) // t))) if t < K else None

    return change


def _drop_first(t):
    return lambda p: _keep_k(p, slice(t, None)) if p.A.shape[1] > t else None


def _only_first(t):
    return lambda p: _keep_k(p, slice(0, t)) if p.A.shape[1] > t else None


def _only_last(t):
    def change(p):
        K = p.A.shape[1]
        return _keep_k(p, slice(t * ((K - 1) // t), None)) if t < K else None

    return change


def _stale_last(t):
    """The last tile of K was never fetched: its buffer, of two, still holds the tile two before."""

    def change(p):
        K = p.A.shape[1]
        if K % t or K < 3 * t:
            return None
        return _keep_k(p, np.r_[: K - t, K - 3 * t : K - 2 * t])

    return change


def _stale_tail(t):
    """Beyond K the one tile in shared memory still holds what the turn before left there, in both operands."""

    def change(p):
        K = p.A.shape[1]
        if K < t or not K % t:
            return None
        whole = K - K % t
        return _keep_k(p, np.r_[:K, whole - t + K % t : whole])

    return change


def _row_of_column(t):
    """Each output takes, in its tile, the row of A whose number is its column's."""

    def change(p):
        rows, columns = np.indices((len(p.A), p.B.shape[1]))
        A = np.vstack([p.A, np.zeros((t, p.A.shape[1]))])
        sums = np.einsum("ijk,kj->ij", A[rows // t * t + columns % t], p.B)
        return p.alpha * sums + p.beta * p.old

    return change


def _one_stays(operand: str, t: int):
    """One operand's tile is fetched anew in each step, the other's is always the first one."""

    def change(p):
        K = p.A.shape[1]
        if K % t or t == K:
            return None
        first = np.arange(K) % t
        return _with(p, A=p.A[:, first]) if operand == "A" else _with(p, B=p.B[first])

    return change


def _every_other(t):
    return lambda p: (
        _keep_k(p, np.flatnonzero(np.arange(p.A.shape[1]) // t % 2 == 0))
        if p.A.shape[1] > t
        else None
    )


def _without_last_of_each(t):
    return lambda p: (
        _keep_k(p, np.flatnonzero(np.arange(p.A.shape[1]) % t != t - 1))
        if p.A.shape[1] > t
        else None
    )


def _transpose_tile(tile, block):
    """Each tile of C transposed as a grid of blocks, the blocks themselves left as they are."""

    def change(p):
        tiles = _blocks(p.C, tile)
        r, c = tiles.shape[:2]
        grid = tiles.reshape(r, c, tile // block, block, tile // block, block)
        return _unblocks(grid.transpose(0, 1, 4, 3, 2, 5).reshape(tiles.shape))

    return change


def _repeat_first(t):
    def change(p):
        K = p.A.shape[1]
        if K % t or t == K:
            return None
        reps = K // t
        return _with(p, np.tile(p.A[:, :t], reps), np.tile(p.B[:t], (reps, 1)))

    return change


_BLOCKS = (
    "each 16x16 tile of {}: lanes address matrices 1 and 2 (registers 1 and 2) in the wrong order"
)
SUSPECTS = [
    (message, _of_product(change))
    for message, change in [
        ("Alpha is missing", lambda p: p.A @ p.B + p.beta * p.old),
        ("The old C is added without beta", lambda p: p.alpha * p.A @ p.B + p.old),
        (
            "Alpha scales the old C too",
            lambda p: p.alpha * (p.A @ p.B + p.beta * p.old),
        ),
        (
            "The output is transposed: what belongs at [row, col] is at [col, row]",
            lambda p: p.C.T.reshape(p.C.shape),
        ),
        ("A is read transposed", lambda p: _with(p, p.A.reshape(p.A.shape[::-1]).T)),
        ("B is read transposed", lambda p: _with(p, B=p.B.reshape(p.B.shape[::-1]).T)),
        (
            "Only the last term along K is there: the sum is set (`=`) where it must be added to (`+=`)",
            lambda p: _keep_k(p, slice(-1, None)) if p.A.shape[1] > 1 else None,
        ),
        ("The last term along K is missing", lambda p: _keep_k(p, slice(0, -1))),
        ("The first term along K is missing", lambda p: _keep_k(p, slice(1, None))),
        (
            "In each 16x16 tile the row of A is that of the output's column: tx stands where ty must",
            _row_of_column(16),
        ),
        ("Only the first 64 terms of K are summed: the loop must end at K", _only_first(64)),
        *((f"The last tile of K ({t} terms) is missing", _drop_last(t)) for t in TILES),
        *((f"The first tile of K ({t} terms) is missing", _drop_first(t)) for t in TILES),
        *((f"Only the first {t} terms of K are summed", _only_first(t)) for t in (1, *TILES)),
        *((f"Only the last tile of K ({t} terms) is summed", _only_last(t)) for t in TILES),
        *(
            (
                f"Every step multiplies the first tile of K ({t} terms) again",
                _repeat_first(t),
            )
            for t in TILES
        ),
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
            lambda p: _with(p, B=p.A.T) if p.A.shape[0] == p.B.shape[1] else None,
        ),
        (
            "Everything is added twice",
            lambda p: 2 * p.A @ p.B * p.alpha + p.beta * p.old,
        ),
        (
            "Rows 8-15 of columns 0-7 and rows 0-7 of columns 8-15 are swapped in "
            + _BLOCKS.format("A"),
            lambda p: _with(p, _swap_off_diagonal(p.A)),
        ),
        (
            "Rows 8-15 of columns 0-7 and rows 0-7 of columns 8-15 are swapped in "
            + _BLOCKS.format("B"),
            lambda p: _with(p, B=_swap_off_diagonal(p.B)),
        ),
        (
            "Each 8x8 block of A is transposed: lane and register, or .trans, the wrong way round",
            lambda p: _with(p, _transpose_blocks(p.A)),
        ),
        (
            "Each 8x8 block of B is transposed: lane and register, or .trans, the wrong way round",
            lambda p: _with(p, B=_transpose_blocks(p.B)),
        ),
        (
            "Each 16x16 tile of A is transposed: col_major where the tile lies row by row",
            lambda p: _with(p, _unblocks(_blocks(p.A, 16).swapaxes(2, 3))),
        ),
        (
            "Each 16x16 tile of A and each of B is transposed: col_major where the tiles lie row by row",
            lambda p: _with(
                p,
                _unblocks(_blocks(p.A, 16).swapaxes(2, 3)),
                _unblocks(_blocks(p.B, 16).swapaxes(2, 3)),
            ),
        ),
        (
            "Each 16x16 tile of B is transposed: col_major where the tile lies row by row",
            lambda p: _with(p, B=_unblocks(_blocks(p.B, 16).swapaxes(2, 3))),
        ),
        *(
            (
                f"The last tile of K ({t} terms) is not fetched: the tile two before it, left in the buffer, is used again",
                _stale_last(t),
            )
            for t in TILES
        ),
        *(
            (
                f"Beyond the end of K the tiles keep what the turn before left there ({t} terms a tile): a thread with nothing "
                "to load must store a 0",
                _stale_tail(t),
            )
            for t in TILES
        ),
        (
            "Rows 8-15 of each 16 of A are swapped with rows 0-7",
            lambda p: _with(p, _swap(p.A, 0, 8)),
        ),
        (
            "Along K, terms 8-15 of each 16 are swapped with terms 0-7 in one operand and not in the other",
            lambda p: _with(p, _swap(p.A, 1, 8)),
        ),
        (
            "Along K, terms 0 and 1, 2 and 3 and so on have changed places in one operand and not in the other (for an "
            "mma: the two halves of each register are the other way round)",
            lambda p: _with(p, _swap(p.A, 1, 1)),
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
            if b < t
        ),
        *(
            (
                f"Of every {2 * t} terms along K only the first{f' {t} are' if t > 1 else ' is'} summed",
                _every_other(t),
            )
            for t in (1, 2, *TILES)
        ),
        *(
            (
                f"The last of every {t} terms along K is missing",
                _without_last_of_each(t),
            )
            for t in TILES
        ),
    ]
]
