"""What a bulk or tensor copy costs: requests to L2 and sectors, from its place in both memories.

The copy engine cuts a copy into the rows of its box (a bulk copy is one row), packed in shared memory
one after the other; each row at every 128-byte line of *shared* memory; each of these pieces at every
128-byte line of *global* memory. Such a segment is one request, and the 32-byte sectors that it touches.

- A load asks for a sector of which it needs only a part by a request of its own; a multicast does not,
  but asks for two sectors at least. Stores and reductions do neither.
- Beyond the array's edges a load still asks: for whole sectors of one line where a piece lies outside
  entirely, else as if all lay inside. A store leaves out what lies outside.
- A swizzle changes nothing, and no wavefront of shared memory is counted. A prefetch is not seen.

The rules were measured: `tests/data/README.md`, `results/accesses/h200_hopper_accesses.json`. Steps between elements
(`element_strides`) were not; they are taken for the sectors of the rows that they leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

LINE, SECTOR = 128, 32
KINDS = ("load", "multicast", "store")


@dataclass(frozen=True)
class Rows:
    """The rows of a box. shared, start: bytes, where the first one begins in shared and global memory.

    width: bytes of a row. first, last: of these, which are inside the array. extents: rows along each
    outer dimension, strides: bytes between them, inside: the (first, last) of them inside the array.
    """

    shared: int
    start: int
    width: int
    first: int
    last: int
    extents: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    inside: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=4096)
def cost(rows: Rows, kind: str) -> tuple[int, int, int]:
    """(requests, sectors, bytes moved) of a copy. kind: one of `KINDS`; reductions are stores."""
    asked = sectors = moved = 0
    load = kind != "store"
    for number, place in enumerate(product(*(range(extent) for extent in rows.extents))):
        shared = rows.shared + number * rows.width
        begin = rows.start + sum(i * step for i, step in zip(place, rows.strides, strict=True))
        there = all(a <= i < b for i, (a, b) in zip(place, rows.inside, strict=True))
        last = rows.last if there else rows.first
        for offset, length in _cut(shared, rows.width, LINE):
            low, high = max(offset, rows.first), min(offset + length, last)
            if low >= high:
                if load:
                    asked += 1
                    sectors += -(-length // SECTOR)
                continue
            if not load:
                offset, length = low, high - low
                moved += length
            for within, step in _cut(begin + offset, length, LINE):
                more = _segment(begin + offset + within, step, kind)
                asked, sectors = asked + more[0], sectors + more[1]
        if load:
            moved += rows.width
    return asked, sectors, moved


def _cut(start: int, length: int, at: int):
    """Ranges (offset within, length) of [start, start + length) between multiples of `at`."""
    offset = 0
    while offset < length:
        step = min(length - offset, at - (start + offset) % at)
        yield offset, step
        offset += step


def _segment(start: int, length: int, kind: str) -> tuple[int, int]:
    """(requests, sectors) of bytes inside one line."""
    sectors = (start + length - 1) // SECTOR - start // SECTOR + 1
    if kind == "multicast":
        return 1, max(2, sectors)
    if kind == "store":
        return 1, sectors
    head, tail = start % SECTOR != 0, (start + length) % SECTOR != 0
    partial = 1 if sectors == 1 and (head or tail) else head + tail
    return partial + (sectors > partial), sectors
