"""Which granules of shared memory an access touches, and for whom."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

WARP = 1 << 16  # a granule's readers: a thread, `WARP + warp` for lanes of one warp, or `SEVERAL`
SEVERAL = 1 << 20


@dataclass(frozen=True)
class Lanes:
    """One access by granule: flat arrays over (active lane, granule of it)."""

    index: np.ndarray  # block * granules + granule
    block: np.ndarray
    thread: np.ndarray

    @cached_property
    def distinct(self):
        """Whether no granule is there twice."""
        return len(self.index) < 2 or bool((np.diff(np.sort(self.index)) > 0).all())


@dataclass(frozen=True)
class Readers:
    """The distinct granules of a read with who reads each; with `by_warp`, once for each warp."""

    index: np.ndarray
    block: np.ndarray
    code: np.ndarray
    warp: np.ndarray
    several: bool  # whether every code is `SEVERAL`


class Pattern:
    """Offsets of lanes, an int64 array that broadcasts to (blocks, threads), and what is known of them."""

    def __init__(self, array):
        self.array = array
        self.facts = {}

    def remember(self, key, value):
        if len(self.facts) > 64:
            self.facts.clear()
        self.facts[key] = value
        return value


@dataclass(frozen=True)
class Shifted:
    """Addresses `pattern.array + offset`."""

    pattern: Pattern
    offset: int


class Granules:
    """The granules of the shared memory of resident blocks: `count` for each, of `1 << shift` bytes.

    blocks: how many; threads: of a block; size: bytes of a block's shared memory. by_warp: readers are
    told apart by their warps.
    """

    def __init__(self, blocks, threads, size, by_warp):
        self.blocks, self.threads, self.by_warp = blocks, threads, by_warp
        self.shift = 2
        self.count = (size >> 2) + 4
        self.nowhere = Pattern(np.zeros((1, 1), np.int64))

    def refine(self, width):
        """Halves the granule until `width` bytes are a whole number of them. Returns how often."""
        times = 0
        while width < 1 << self.shift:
            self.shift -= 1
            self.count *= 2
            times += 1
        return times

    def lanes(self, address, mask, width):
        """(Lanes, their granules) of an access."""
        found, base = self._cached("lanes", address, mask, width, self._lanes_at)
        return found, found.index + base

    def readers(self, address, mask, width):
        """(Readers, their granules) of a read."""
        found, base = self._cached("readers", address, mask, width, self._readers_at)
        return found, found.index + base

    def _cached(self, name, address, mask, width, compute):
        """`compute`'s result for an address's pattern, remembered there, and the granule to add."""
        if isinstance(address, (int, np.integer)):
            pattern, offset = self.nowhere, int(address)
        elif hasattr(address, "pattern"):
            pattern, offset = address.pattern, address.offset
        else:
            return compute(np.asarray(address, np.int64), mask, width), 0
        rest = offset & 15
        key = ("shadow", name, self.shift, width, rest)
        known = pattern.facts.get(key)
        if known is None or known[0] is not mask or known[1] is not self:
            known = (mask, self, compute(pattern.array + rest, mask, width))
            pattern.remember(key, known)
        return known[2], (offset - rest) >> self.shift

    def _lanes_at(self, offsets, mask, width):
        shape = (self.blocks, self.threads)
        block = np.broadcast_to(np.arange(self.blocks, dtype=np.int32)[:, None], shape)
        thread = np.broadcast_to(np.arange(self.threads, dtype=np.int16), shape)
        offsets = np.broadcast_to(offsets, shape)
        if mask is None:
            mask = Ellipsis
        offsets, block, thread = (x[mask].reshape(-1) for x in (offsets, block, thread))
        index = (offsets >> self.shift) + block.astype(np.int64) * self.count
        count = width >> self.shift
        if count > 1:
            index = (index[:, None] + np.arange(count)).reshape(-1)
            block, thread = np.repeat(block, count), np.repeat(thread, count)
        return Lanes(index, block, thread)

    def _readers_at(self, offsets, mask, width):
        if mask is None and offsets.shape[0] == 1 and self.blocks > 1:
            one = self._distinct(self._lanes_of_one_block(offsets, width))
            at = np.arange(self.blocks)
            return Readers(
                (at[:, None] * self.count + one.index).reshape(-1),
                np.repeat(at, len(one.index)),
                np.tile(one.code, self.blocks),
                np.tile(one.warp, self.blocks),
                one.several,
            )
        return self._distinct(self._lanes_at(offsets, mask, width))

    def _lanes_of_one_block(self, offsets, width):
        offsets = np.broadcast_to(offsets, (1, self.threads)).reshape(-1)
        count = width >> self.shift
        index = ((offsets >> self.shift)[:, None] + np.arange(count)).reshape(-1)
        thread = np.repeat(np.arange(self.threads, dtype=np.int16), count)
        return Lanes(index, np.zeros(len(index), np.int32), thread)

    def _distinct(self, lanes):
        if not len(lanes.index):
            return Readers(lanes.index, lanes.block, lanes.block, lanes.block, False)
        thread = lanes.thread.astype(np.int32)
        order = np.lexsort((thread, lanes.index))
        index, thread, block = lanes.index[order], thread[order], lanes.block[order]
        new = np.concatenate([[True], index[1:] != index[:-1]])
        if self.by_warp:
            new[1:] |= thread[1:] >> 5 != thread[:-1] >> 5
        first = np.flatnonzero(new)
        low, high = thread[first], np.maximum.reduceat(thread, first)
        code = np.where(low >> 5 == high >> 5, WARP + (low >> 5), SEVERAL)
        code = np.where(low == high, low, code).astype(np.int32)
        return Readers(index[first], block[first], code, low >> 5, bool((code == SEVERAL).all()))


def warp_of(code):
    return np.where(code >= WARP, code - WARP, code >> 5)
