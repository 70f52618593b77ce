"""The verbs of CuTe, MoYe and Tilus in a few lines each, so that a page can work them out.

A thread-value layout maps (thread, value) to an element's number in its tile, counted down the columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

import numpy as np
from tensor_layouts import Layout, compose, mode, raked_product, right_inverse, size, zipped_divide

import figures


@dataclass(frozen=True)
class TiledCopy:
    """What `make_tiled_copy` gives: the tile that all threads cover together, and who holds what of it."""

    layout: Layout  # (thread, value) -> element of the tile
    tile: tuple[int, int]

    def partition(self, tensor: Layout) -> Partition:
        """`partition_S` or `partition_D` for all threads: the tensor's places by (thread, value) and copy."""
        divided = zipped_divide(tensor, self.tile)
        return Partition(compose(mode(divided, 0), self.layout), mode(divided, 1))


@dataclass(frozen=True)
class Partition:
    """inner: (thread, value) -> place; outer: which repetition -> place. Their sum is an address in elements."""

    inner: Layout
    outer: Layout

    def __call__(self, thread: int, value: int, repetition: int = 0) -> int:
        return self.inner(thread, value) + self.outer(repetition)

    def __str__(self) -> str:
        return f"(thread, value): {self.inner}   repetitions: {self.outer}"


def make_tiled_copy(threads: Layout, values: Layout) -> TiledCopy:
    """A thread layout and a value layout, each (rows, columns), raked: every thread's values side by side."""
    numbers = raked_product(threads, values)  # element of the tile -> thread + threads * value
    inverse = right_inverse(numbers)
    layout = compose(inverse, Layout((size(threads), size(values))))
    tile = tuple(size(mode(numbers, dimension)) for dimension in (0, 1))
    return TiledCopy(layout, tile)


def by_warp(place, kind: str = "load"):
    """The access of the first warp, 16 bytes a thread, at `place(thread, 0)`, in elements of 2 bytes."""
    return figures.Access(tuple(2 * place(lane, 0) for lane in range(32)), width=16, kind=kind)


@dataclass(frozen=True)
class Tilus:
    """A register layout of Tilus: `local(2, 1) * spatial(8, 4) * local(1, 2)`, outermost factor first."""

    shape: tuple[int, int]
    held: np.ndarray  # (rows, columns, 2): thread and value of each element

    def __mul__(self, inner: Tilus) -> Tilus:
        rows, columns = (a * b for a, b in zip(self.shape, inner.shape, strict=True))
        counts = inner.held.reshape(-1, 2).max(0) + 1
        held = np.zeros((rows, columns, 2), int)
        for r, c in product(range(rows), range(columns)):
            outside = self.held[r // inner.shape[0], c // inner.shape[1]]
            inside = inner.held[r % inner.shape[0], c % inner.shape[1]]
            held[r, c] = outside * counts + inside
        return Tilus((rows, columns), held)


def spatial(rows: int, columns: int) -> Tilus:
    """One element for each of rows x columns threads, numbered along the rows."""
    numbers = np.arange(rows * columns).reshape(rows, columns)
    return Tilus((rows, columns), np.stack([numbers, np.zeros_like(numbers)], -1))


def local(rows: int, columns: int) -> Tilus:
    """All rows x columns elements in one thread, numbered along the rows."""
    numbers = np.arange(rows * columns).reshape(rows, columns)
    return Tilus((rows, columns), np.stack([np.zeros_like(numbers), numbers], -1))


def same_owners(tilus: Tilus, layout: Layout) -> bool:
    """Whether a thread-value layout puts the same thread and value at every element."""
    rows, columns = tilus.shape
    threads, values = tilus.held.reshape(-1, 2).max(0) + 1
    return size(layout) == rows * columns and all(
        tuple(tilus.held[layout(t, v) % rows, layout(t, v) // rows]) == (t, v)
        for t, v in product(range(threads), range(values))
    )


def registers_of_b(ptx: str) -> tuple[list[tuple[str, ...]], set[tuple[str, ...]]]:
    """The four registers that each `ldmatrix.x4.trans` of a text fills, and the pairs that its `mma` take as B."""

    def names(words: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in words.split(","))

    filled = re.findall(r"ldmatrix\.sync\.aligned\.m8n8\.x4\.trans\.shared\.b16\s*\{([^}]*)\}", ptx)
    taken = re.findall(r"mma\.sync\.aligned\.m16n8k16\S*(?:\s*\{[^}]*\},){2}\s*\{([^}]*)\}", ptx)
    return [names(four) for four in filled], {names(two) for two in taken}
