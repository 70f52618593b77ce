"""The launches of the first steps and of the capstone, and the outputs that their usual mistakes give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .answers import a_element
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


def dot_products(rng) -> tuple[Case, ...]:
    """Row-wise dot products of halves, to the accuracy of a float sum."""
    sizes = (
        (64, 256),
        (70, 1000),
        (3, 5),
        (261, 7),
        tuple(map(int, rng.integers((1, 100), (130, 600)))),
    )
    cases = []
    for M, K in sizes:
        A, B = (rng.uniform(0.5, 1.5, (M, K)).astype(np.float16) for _ in range(2))
        wide = A.astype(float) * B.astype(float)
        cases.append(
            Case(
                f"M={M}, K={K}", (A, B, poisoned((M,)), np.int32(M), np.int32(K)), 2, wide.sum(1),
                (ceil_div(M, 64),), (64,), tolerance=3 * K**0.5 * EPSILON, scale=wide.sum(1),
                special="" if M % 64 == 0 else f"M={M} is no multiple of 64, and K is {K}, not 256",
                probe=_one_term_a_row,
            )
        )  # fmt: skip
    return tuple(cases)


def _one_term_a_row() -> Case:
    """Row k of A holds a 1 at place k and zeros elsewhere, B holds ones: the sum is how often term k is counted."""
    A, B = np.eye(64, dtype=np.float16), np.ones((64, 64), np.float16)
    args = (A, B, poisoned((64,)), np.int32(64), np.int32(64))
    return Case("one term a row", args, 2, np.ones(64), (1,), (64,))


def _in_half(products_in_half: bool, sums_in_half: bool, fused: bool = False):
    """The sums with products, sums or both rounded to half, one term after the other."""

    def guess(case):
        A, B = case.args[0], case.args[1]
        kind = np.float16 if sums_in_half else np.float32
        total = np.zeros(len(A), kind)
        for a, b in zip(A.T, B.T, strict=True):
            term = a * b if products_in_half else a.astype(np.float32) * b.astype(np.float32)
            if fused:
                total = (total.astype(float) + a.astype(float) * b.astype(float)).astype(kind)
            else:
                total = (
                    total + term.astype(kind) if sums_in_half else total + term.astype(np.float32)
                )
        return total.astype(float)

    return guess


def _down_a_column(number: int):
    """The sums if one operand is read at k * M + row."""

    def guess(case):
        A, B = (x.astype(float) for x in case.args[:2])
        turned = case.args[number].astype(float).reshape(A.shape[::-1]).T
        return (turned * B if number == 0 else A * turned).sum(1)

    return guess


PRECISION_SUSPECTS = {
    "A and B are added, not multiplied": lambda case: (
        case.args[0].astype(float) + case.args[1].astype(float)
    ).sum(1),
    "The sum of A is multiplied with the sum of B: each pair has to be multiplied before it is added": lambda case: (
        case.args[0].astype(float).sum(1) * case.args[1].astype(float).sum(1)
    ),
    "A is read at k * M + row, as if it were stored column by column": _down_a_column(0),
    "B is read at k * M + row, as if it were stored column by column": _down_a_column(1),
    "Products and sums are both rounded to half: 11 significant bits": _in_half(True, True),
    "The sum is kept in half (fused multiply-add): each step rounds it to 11 significant bits": (
        _in_half(False, True, fused=True)
    ),
    "The sum is kept in half: each step rounds it to 11 significant bits": _in_half(False, True),
    "Each product is rounded to half before it is added": _in_half(True, False),
    "The sum is rounded to half at its end": lambda case: case.expected.astype(np.float16).astype(float),
}  # fmt: skip


def tf32_products(rng) -> tuple[Case, ...]:
    """Products of floats, to more digits than one product of tf32 has."""
    sizes = (16, 8, 8), (32, 16, 24), (16, 24, 64)
    drawn = tuple(int(n * rng.integers(1, 5)) for n in (16, 8, 8))
    return tuple(
        replace(product(rng, size, (16, 8), (32,)), tolerance=2.0**-20) for size in (*sizes, drawn)
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


def tf32(x) -> np.ndarray:
    """Rounded to 10 bits of mantissa, ties away from zero."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def _of_registers(change):
    """A suspect from the right product: change(row, column) gives where each element is taken from."""
    return lambda case: case.expected[change(*np.indices(case.expected.shape))]


def _in_tf32(*pairs, cut=False, low=None):
    """The sum of these products, each "a" or "A" (what tf32 keeps, and what it loses) times "b" or "B".

    With registers of B swapped these are "x" and "X", with the first one for both "p" and "P".

    cut: high is not rounded. low: what stands for the rest, from x and high.
    """

    def guess(case):
        parts = {}
        for name, x in zip("ab", (case.product.A, case.product.B), strict=True):
            exact = x.astype(np.float32)
            high = (
                (exact.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
                if cut
                else tf32(exact)
            )
            rest = tf32(low(exact, high)) if low else tf32(exact - high)
            parts |= {name: high.astype(float), name.upper(): rest.astype(float)}
        turned = np.arange(len(parts["b"])) ^ 4  # a lane's two registers of B, the other way round
        parts |= {"x": parts["b"][turned], "X": parts["B"][turned]}
        second = (np.arange(len(turned)) & 4 > 0)[
            :, None
        ]  # the rows of a lane's second register of B
        parts |= {"m": np.where(second, parts["B"], parts["b"])}
        parts |= {"n": np.where(second, parts["b"], parts["B"])}
        first = np.arange(len(turned)) & ~4  # the first register for both
        parts |= {"p": parts["b"][first], "P": parts["B"][first]}
        return sum(parts[a] @ parts[b] for a, b in pairs)

    return guess


TF32_SUSPECTS = {
    "The terms a * b_low and a_low * b are missing, or low is 0: 10 bits of mantissa are left of each number": _in_tf32("ab"),
    "What tf32 loses of B is nowhere: a * b_low is missing, or a and a_low are the other way round": _in_tf32("ab", "Ab"),
    "What tf32 loses of A is nowhere: a_low * b is missing, or b and b_low are the other way round": _in_tf32("ab", "aB"),
    "b_low[0] and b_low[1] are the other way round": _in_tf32("ab", "Ab", "aX"),
    "b[0] and b[1] are the other way round": _in_tf32("ax", "Ax", "aB"),
    "b[0] and b[1] are the other way round, and b_low[0] and b_low[1] too": _in_tf32("ax", "Ax", "aX"),
    "The product of what tf32 keeps is missing": _in_tf32("Ab", "aB"),
    "The product of what tf32 keeps is added twice": _in_tf32("ab", "ab", "Ab", "aB"),
    "The product of what tf32 keeps is added twice, and a * b_low is missing": _in_tf32("ab", "ab", "Ab"),
    "The product of what tf32 keeps is added twice, and a_low * b is missing": _in_tf32("ab", "ab", "aB"),
    "b[0] and b[1] are the other way round where a_low is multiplied": _in_tf32("ab", "Ax", "aB"),
    "b_low[0] is given twice: b_low[1] is the register of rows 4 to 7": _in_tf32("ab", "Ab", "aP"),
    "b[0] is given twice: b[1] is the register of rows 4 to 7": _in_tf32("ap", "Ap", "aB"),
    "low is x itself, rounded, and not what high loses: everything is added three times": _in_tf32("ab", "ab", "ab"),
    "One product takes b[0] with b_low[1]: both registers have to be of the same part of B": _in_tf32("ab", "Ab", "am"),
    "One product takes b_low[0] with b[1]: both registers have to be of the same part of B": _in_tf32("ab", "Ab", "an"),
    "low is x minus the bits of high taken as a whole number: __uint_as_float(high) gives the number that they stand for": (
        _in_tf32("ab", "Ab", "aB", low=lambda x, high: x - high.view(np.uint32).astype(np.float32))
    ),
    "low has the wrong sign. It should be x - high": _in_tf32("ab", "Ab", "aB", low=lambda x, high: high - x),
    "high is x, not rounded. mma ignores the 13 low bits, and low, which should hold them, is 0": _in_tf32("ab", cut=True),
    "acc[1] and acc[2] are stored at the other's place: acc[2] is eight rows down, acc[1] the next column": (
        _of_registers(lambda row, col: (row // 16 * 16 + row % 8 + col % 2 * 8, col // 2 * 2 + row // 8 % 2))
    ),
    "a_low * b is added twice, and a * b_low is missing": _in_tf32("ab", "Ab", "Ab"),
    "a * b_low is added twice, and a_low * b is missing": _in_tf32("ab", "aB", "aB"),
    "a * b_low is missing: only a_low is used, twice": _in_tf32("ab", "Ab", "AB"),
    "a_low * b is missing: only b_low is used, twice": _in_tf32("ab", "aB", "AB"),
}  # fmt: skip


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
