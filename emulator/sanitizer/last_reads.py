"""When each warp last read each granule of shared memory."""

from __future__ import annotations

import numpy as np


class LastReads:
    """Times of last reads, 0 for none: by granule and warp; agents count as warps.

    count: of granules; warps: of them. rank: (count,), which block of a cluster a granule belongs to, or None without
    clusters. Hardly anybody but a block's own warps reads its memory. So each block has columns for those that did, given
    out as they come, and column 0 stays zero for all others: a cluster of eight needs an eighth of the memory.
    """

    def __init__(self, count, warps, rank=None):
        self.rank, self.column, width = rank, None, warps
        if rank is not None:
            ranks = int(rank.max()) + 1
            self.column = np.zeros((ranks, warps), np.intp)
            width = 1 + warps // ranks + 2  # two more than an equal share: the agents of copies
        self.times = np.zeros((count, width), np.int32)

    def put(self, index, warp, time):
        """The warps read these granules at this time, or not at all for 0. index, warp: broadcast to one shape."""
        column = warp if self.column is None else self._columns(index, warp)
        self.times[index, column] = time

    def by(self, index, warp):
        """When these warps read these granules."""
        if self.column is None:
            return self.times[index, warp]
        return self.times[index, self.column[self.rank[index], warp]]

    def of(self, index):
        """(n, warps): when each warp read granules (n,)."""
        times = self.times[index]
        if self.column is None:
            return times
        return np.take_along_axis(times, self.column[self.rank[index]], axis=1)

    def last(self, index):
        """(n,): when somebody last read granules (n,)."""
        return self.times[index].max(axis=1)

    def refine(self, times):
        """Each granule is now so many."""
        self.times = np.repeat(self.times, times, axis=0)
        if self.rank is not None:
            self.rank = np.repeat(self.rank, times)

    def _columns(self, index, warp):
        rank = self.rank[index]
        column = self.column[rank, warp]
        if column.all():
            return column
        fresh = np.zeros(self.column.shape, bool)
        fresh[rank, warp] = column == 0
        for block, one in np.argwhere(fresh).tolist():
            self.column[block, one] = self.column[block].max() + 1
        more = self.column.max() + 1 - self.times.shape[1]
        if more > 0:
            self.times = np.pad(self.times, ((0, 0), (0, more)))
        return self.column[rank, warp]
