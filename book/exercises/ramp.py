"""The launches of the first steps and of the capstone, and the outputs that their usual mistakes give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .cases import ceil_div, poisoned, product
from .diagnose import where
from .exercise import Case

EPSILON = 2.0**-23


def axpy(rng) -> tuple[Case, ...]:
    """y = a * x + y: blocks of 128."""
    cases = []
    for n in (512, 1000, 1, int(rng.integers(2, 3000))):
        x, y = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
        a = np.float32(rng.uniform(2, 3))
        cases.append(
            Case(
                f"n={n}", (x, y, np.int32(n), a), 1, a * x.astype(float) + y, (ceil_div(n, 128),), (128,),
                tolerance=2 * EPSILON, scale=np.abs(a * x) + np.abs(y),
                special="the last block has threads without an element" if n % 128 else "",
            )
        )  # fmt: skip
    return tuple(cases)


AXPY_SUSPECTS = {
    "The old y is not added": lambda case: case.args[3] * case.args[0],
    "x is not multiplied by a": lambda case: case.args[0] + case.args[1],
    "a is added to x, not multiplied by it": lambda case: (
        case.args[3] + case.args[0] + case.args[1]
    ),
    "The old y is multiplied by a too": lambda case: case.args[3] * (case.args[0] + case.args[1]),
    "Nothing is changed: y is what it was. Which threads does the test let through": lambda case: (
        case.args[1].astype(float)
    ),
    "Only the first block's elements are changed: i must count on from block to block": lambda case: (
        np.where(np.arange(len(case.expected)) < 128, case.expected, case.args[1])
    ),
    "x and y are the wrong way round: y is multiplied by a": lambda case: (
        case.args[3] * case.args[1] + case.args[0]
    ),
    "The old y is added twice": lambda case: case.args[3] * case.args[0] + 2 * case.args[1],
    "The old y is subtracted, not added": lambda case: case.args[3] * case.args[0] - case.args[1],
    "a * x is subtracted from y, not added to it": lambda case: (
        case.args[1] - case.args[3] * case.args[0]
    ),
    "The last element is left out": lambda case: np.where(
        np.arange(len(case.expected)) < len(case.expected) - 1, case.expected, case.args[1]
    ),
}


def row_sums_of_tiles(rng) -> tuple[Case, ...]:
    """Sums of the rows of X, 16 rows per block, for any M and K."""
    sizes = (32, 48), (20, 48), (32, 41), (1, 1), tuple(map(int, rng.integers((1, 1), (60, 130))))
    return tuple(
        _sums(
            rng.standard_normal((M, K)).astype(np.float32), (ceil_div(M, 16),), (16, 16), (np.int32(M), np.int32(K)),
            f"M={M}, K={K}",
            " and ".join(f"{name}={n} is no multiple of 16" for name, n in (("M", M), ("K", K)) if n % 16),
        )
        for M, K in sizes
    )  # fmt: skip


def _sums(x, grid, block, sizes, label, special="") -> Case:
    """y = the sum of each row of x."""
    wide = x.astype(float)
    return Case(
        label, (x, poisoned((len(x),)), *sizes), 1, wide.sum(1), grid, block,
        tolerance=(x.shape[1] + 4) * EPSILON, scale=np.abs(wide).sum(1), special=special,
    )  # fmt: skip


def _columns_of_tiles(x) -> np.ndarray:
    rows, columns = (ceil_div(n, 16) for n in x.shape)
    whole = np.pad(x, [(0, -n % 16) for n in x.shape])
    return whole.reshape(rows, 16, columns, 16).sum((1, 2)).reshape(-1)[: len(x)]


def _one_row(change):
    """A suspect from what would be summed of each row of x."""
    return lambda case: change(case.args[0].astype(float))


def kept(case: Case, output) -> str | None:
    """Of y = a * x + y: the elements that still are what they were, where the others are right."""
    old = case.args[1]
    same = output == old
    close = np.abs(output - case.expected) <= 20 * case.tolerance * case.scale
    if not same.any() or not (same | close).all():
        return None
    for name, values in (("x", case.args[0]), ("y", old)):
        for words, marked in (("negative", values < 0), ("positive", values > 0)):
            if 1 < same.sum() < len(same) and (same == marked).all():
                return (
                    f"What is not changed are the elements where {name} is {words}: a value is tested or cut off, where only the "
                    "index may be."
                )
    if same.mean() > 0.97:
        which = "No element is" if same.all() else "Almost no element is"
        return (
            f"{which} changed: hardly any thread gets through the test. Does it compare i with n?"
        )
    return (
        f"{where(same).capitalize()} not changed: no thread has them as its i, or the test keeps their thread from the work. "
        "The others are right."
    )


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
    "Only the first 16 columns are summed": _one_row(lambda x: x[:, :16].sum(1)),
    "The last K % 16 columns are left out": _one_row(
        lambda x: x[:, : x.shape[1] // 16 * 16].sum(1)
    ),
    "Only the last tile of 16 columns is summed": _one_row(
        lambda x: x[:, (x.shape[1] - 1) // 16 * 16 :].sum(1)
    ),
    "The tile's two indices are the wrong way round: columns of each 16 x 16 tile are summed": _one_row(
        lambda x: _columns_of_tiles(x)
    ),
    "Only the last column of each tile is there: the sum is set (`=`) where it must be added to (`+=`)": (
        _one_row(lambda x: x[:, -1])
    ),
    "The first column of each tile is left out": _one_row(
        lambda x: x[:, np.arange(x.shape[1]) % 16 > 0].sum(1)
    ),
    "The last column of each tile is left out": _one_row(
        lambda x: x[:, np.arange(x.shape[1]) % 16 < 15].sum(1)
    ),
    "Of every 2 columns only the first is summed": _one_row(lambda x: x[:, ::2].sum(1)),
    "The sign is wrong": _one_row(lambda x: -x.sum(1)),
    "The first column of each tile is summed 16 times": _one_row(lambda x: 16 * x[:, ::16].sum(1)),
    "Only the first column of each tile is summed": _one_row(lambda x: x[:, ::16].sum(1)),
    "The first tile is summed in every turn": _one_row(
        lambda x: x[:, :16].sum(1) * ceil_div(x.shape[1], 16)
    ),
    "A tile is summed twice, and the one after it not at all": _one_row(
        lambda x: x[:, np.arange(x.shape[1]) // 32 * 32 + np.arange(x.shape[1]) % 16].sum(1)
    ),
}


def pieces(size: int, block: int, counts=(512, 1000, 31, 257)):
    """Launches for a kernel that sums pieces of so many neighbouring floats; a piece at the end may be short."""

    def cases(rng) -> tuple[Case, ...]:
        made = []
        for n in (*counts, int(rng.integers(2, 2000))):
            x = rng.standard_normal(n).astype(np.float32)
            starts = np.arange(0, n, size)
            wide = x.astype(float)
            made.append(
                Case(
                    f"n={n}", (x, poisoned((len(starts),)), np.int32(n)), 1, np.add.reduceat(wide, starts),
                    (ceil_div(n, block),), (block,), tolerance=(size + 4) * EPSILON,
                    scale=np.add.reduceat(np.abs(wide), starts),
                    special=f"n={n} is no multiple of {size}" if n % size else "",
                    probe=lambda: _one_value_a_piece(size, block),
                )
            )  # fmt: skip
        return tuple(made)

    return cases


def _one_value_a_piece(size: int, block: int) -> Case:
    """Piece i holds a 1 at place i and zeros elsewhere: its sum is how often place i is counted."""
    x = np.eye(size, dtype=np.float32).reshape(-1)
    return Case(
        "one value a piece", (x, poisoned((size,)), np.int32(x.size)), 1, np.ones(size),
        (ceil_div(x.size, block),), (block,),
    )  # fmt: skip


def _of_pieces(size: int, pick):
    """A suspect from which of the `size` places of each piece are summed, how often: (size,) weights."""

    def guess(case):
        x = case.args[0].astype(float)
        padded = np.zeros(ceil_div(len(x), size) * size)
        padded[: len(x)] = x
        return padded.reshape(-1, size) @ np.asarray(pick(np.arange(size)), float)

    return guess


def piece_suspects(size: int) -> dict:
    """What is summed of a piece when a step is left out, or taken twice."""
    steps = [1 << i for i in range(size.bit_length() - 1)]
    found = {
        "Only the first of the values is there: nothing is added to the place that is stored": _of_pieces(
            size, lambda t: t == 0
        )
    }
    for step in steps:
        found[
            f"The step over a distance of {step} is missing: half of the values are never added"
        ] = _of_pieces(size, lambda t, step=step: t & step == 0)
    found[
        "Every step adds the thread's own value once more: the values of higher lanes never come down"
    ] = _of_pieces(size, lambda t: np.where(t == 0, size, 0))
    found[
        "Only the last of the values is there: the sum is set (`=`) where it must be added to (`+=`), or what is stored "
        "is not the place where the sum stands"
    ] = _of_pieces(size, lambda t: t == size - 1)
    found[
        "What is stored is the neighbour of the sum: the sum of all is at place 0, not at place 1"
    ] = _of_pieces(size, lambda t: t % 2)
    found[
        "In each step the sum so far is doubled: `sum += a` adds a to it, `sum += sum + a` adds the sum once more"
    ] = _of_pieces(size, lambda t: [2 ** (len(steps) - int(i).bit_count()) for i in t])
    found["The last value of each piece is left out"] = _of_pieces(size, lambda t: t < size - 1)
    found["Everything is added twice"] = _of_pieces(size, lambda t: 2 + 0 * t)
    found["Each step adds the neighbour again: the distance stays 1"] = _of_pieces(
        size, lambda t: [_choose(len(steps), int(i)) for i in t]
    )
    found[
        "The distance goes down by 1 in each step, so values are added many times: it has to halve"
    ] = _of_pieces(size, lambda t: _by_steps(size, range(size // 2, 0, -1)))
    found[
        f"Thread {size - 1} stores its sum: by these steps the sum of all arrives at thread 0 (or what is added is the other "
        "value twice, and not the sum so far)"
    ] = _of_pieces(size, lambda t: np.where(t == size - 1, size, 0))
    if size == 32:
        found[
            "Each step brings the first value of another thread, and not the sum that it has by then: what is added must be what "
            "was summed before"
        ] = _of_pieces(size, lambda t: (t & (t - 1)) == 0)
        for lane in range(1, size - 1):
            found[
                f"Lane {lane} stores its sum: by these steps the sum of all arrives at lane 0"
            ] = _of_pieces(size, lambda t, lane=lane: _by_halves(size)[lane])
    found[f"The distance stays {size // 2} in every step"] = _of_pieces(
        size, lambda t: np.where(t == 0, 1, np.where(t == size // 2, len(steps), 0))
    )
    return found


def _by_halves(size: int) -> np.ndarray:
    """How often each lane counts each value after shuffles over 16, 8, 4, 2 and 1."""
    held = np.eye(size)
    for distance in (size >> n for n in range(1, size.bit_length())):
        from_ = np.arange(size) + distance
        held = held + held[np.where(from_ < size, from_, np.arange(size))]
    return held


def _by_steps(size: int, distances) -> np.ndarray:
    """How often lane 0 counts each value if each lane adds what the lane so far up has; the last lanes add their own."""
    held = np.eye(size)
    for distance in distances:
        from_ = np.arange(size) + distance
        held = held + held[np.where(from_ < size, from_, np.arange(size))]
    return held[0]


def _choose(n: int, k: int) -> int:
    from math import comb

    return comb(n, k)


def slices_of_k(rng) -> tuple[Case, ...]:
    """Products that add to a C of zeros, with four blocks along z for each tile; at last another number of them."""
    sizes = (
        (32, 48, 64), (33, 17, 41), (16, 16, 3), tuple(map(int, rng.integers((1, 1, 1), (60, 60, 90)))),
    )  # fmt: skip
    cases = []
    for size, slices in zip(sizes, (4, 4, 4, int(rng.choice([2, 3, 5]))), strict=True):
        case = product(rng, size, (16, 16), (16, 16))
        args = list(case.args)
        args[2] = np.zeros_like(args[2])
        special = case.special or (
            "there are fewer terms than blocks along z" if size[2] < slices else ""
        )
        if slices != 4:
            special = f"gridDim.z is {slices}, not 4"
        label = f"{case.label}, gridDim.z={slices}" if slices != 4 else case.label
        cases.append(
            replace(case, label=label, args=tuple(args), grid=(*case.grid, slices), special=special)
        )
    return tuple(cases)


def _of_slices(how_often):
    """A suspect from how often each term of K is added: how_often(k, slices) gives the weights."""

    def guess(case):
        A, B = case.product.A, case.product.B
        return A * how_often(np.arange(A.shape[1]), case.grid[2]) @ B

    return guess


SLICE_SUSPECTS = {
    "The running sum is added to C in every turn of the loop, so early terms are added many times: add it once, after the loop": (
        _of_slices(lambda k, n: (k.max() - k) // n + 1)
    ),
    **{
        f"Only the terms of blockIdx.z = {z} arrive": _of_slices(lambda k, n, z=z: k % n == z)
        for z in range(4)
    },
    "Every block along z sums all of K, so everything is added gridDim.z times": _of_slices(
        lambda k, n: n + 0 * k
    ),
    "The step along K is 4, where it should be gridDim.z": _of_slices(
        lambda k, n: sum(((k - z) % 4 == 0) & (k >= z) for z in range(n))
    ),
    "Every block along z begins at term 0, so all of them add the same terms": _of_slices(
        lambda k, n: np.where(k % n == 0, n, 0)
    ),
    "Every block along z begins at term 0 in steps of 4, so all of them add the same terms": _of_slices(
        lambda k, n: np.where(k % 4 == 0, n, 0)
    ),
}


def reversals(rng) -> tuple[Case, ...]:
    """x reversed in place."""
    cases = []
    for n in (512, 1000, 129, 1, 2, int(rng.integers(3, 2000))):
        x = rng.standard_normal(n).astype(np.float32)
        cases.append(
            Case(
                f"n={n}", (x, np.int32(n)), 0, x[::-1].copy(), (ceil_div(n, 128),), (128,),
                special="n is odd: the middle element has no partner" if n % 2 else
                "the last block has threads without an element" if n % 128 else "",
            )
        )  # fmt: skip
    return tuple(cases)


REVERSAL_SUSPECTS = {
    "Nothing has moved: each pair is swapped twice, or not at all": lambda case: case.args[0],
    "One half overwrites the other, whose values are lost: a swap keeps one of the two aside": lambda case: (
        np.where(
            np.arange(len(case.expected)) < len(case.expected) // 2, case.expected, case.args[0]
        )
    ),
}


def left_in_place(case, out) -> str | None:
    """Which elements of an array that should be reversed are what they were."""
    n, old, there = np.arange(len(out)), case.args[0], case.args[0][::-1]
    twice = (out == out[::-1]) & (old != there) & ((out == old) | (out == there))
    if twice.sum() > 0.9 * len(out) - 1:
        i = int(np.flatnonzero(twice)[0])
        kept, lost = (i, len(out) - 1 - i) if out[i] == old[i] else (len(out) - 1 - i, i)
        return (
            f"x[{i}] and x[{len(out) - 1 - i}] both hold the old x[{kept}], and the old x[{lost}] is lost: one of the two is "
            "overwritten before it is read, or only one is stored. A swap keeps one of them in a variable, and stores both."
        )
    stayed = (out == case.args[0]) & (2 * n != len(out) - 1)
    if (stayed != stayed[::-1]).any():
        return None
    if not stayed.any() or stayed.all() or (out != case.expected)[~stayed].any():
        return None
    first = int(np.flatnonzero(stayed)[0])
    return (
        f"{int(stayed.sum())} of {len(out)} elements are what they were: x[{first}] and x[{len(out) - 1 - first}] are a pair "
        "that no thread swaps, or that is swapped twice."
    )


def _exact(number: int):
    """The same launch with an operand that tf32 holds exactly, so that nothing is left for its `low`."""

    def change(case: Case) -> Case:
        args = list(case.args)
        for i in (0, 1) if number == 2 else (number,):
            args[i] = np.rint(64 * args[i]).astype(np.float32) / 64
        wide = replace(case.product, A=args[0].astype(float), B=args[1].astype(float))
        args[case.output] = poisoned(case.expected.shape)
        magnitude = np.abs(wide.A) @ np.abs(wide.B)
        return replace(case, args=tuple(args), expected=wide.C, scale=magnitude, product=wide)

    return change


A_EXACT, B_EXACT, BOTH_EXACT = map(_exact, range(3))
TF32_SETTINGS = (
    (
        "It is right where tf32 holds all of A, and where it holds all of B it is not: the product with a_low is at fault.",
        (A_EXACT,), (B_EXACT,),
    ),
    (
        "It is right where tf32 holds all of B, and where it holds all of A it is not: the product with b_low is at fault.",
        (B_EXACT,), (A_EXACT,),
    ),
    (
        "It is right where tf32 holds all of A and B, so the product of a and b is right: `low` is wrong, or both "
        "products with it.",
        (BOTH_EXACT,), (A_EXACT, B_EXACT),
    ),
)  # fmt: skip
