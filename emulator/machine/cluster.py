"""Clusters: blocks that reach each other's shared memory (PTX ISA 5.1.6, `.shared::cluster`).

A chunk holds whole clusters, the blocks of one side by side: block b is number `b % size` of cluster
`b // size`. An address of `.shared::cluster` below `REMOTE` is in the block's own shared memory; one
that `mapa` has made says in its upper bits in whose.
"""

from __future__ import annotations

import numpy as np

from emulator.errors import ExecutionError
from emulator.machine.memory import Place, as_index, misaligned, out_of_bounds
from emulator.machine.values import Affine, Pattern

RANK_BITS = 24
REMOTE = 1 << RANK_BITS  # of `mapa` for rank r: (r + 1) * REMOTE + the byte in that block
MAX_BLOCKS = 16  # of a cluster; more than 8 is not portable


def coordinates(grid, cluster) -> np.ndarray:
    """(blocks, 3): the coordinates of a grid's blocks, cluster after cluster, x fastest in both."""
    counts = [g // c for g, c in zip(grid, cluster, strict=True)]
    outer = _walk(counts)[:, None] * np.array(cluster)
    return (outer + _walk(cluster)).reshape(-1, 3)


def _walk(extents) -> np.ndarray:
    x, y, z = extents
    index = np.arange(x * y * z)
    return np.stack([index % x, index // x % y, index // (x * y)], axis=1)


def owners(m, address) -> np.ndarray:
    """(B, T): the block of the chunk in whose shared memory each lane's address lies."""
    lanes = m.addresses(address) >> RANK_BITS
    own = np.arange(m.B)[:, None]
    return np.where(lanes == 0, own, own // m.cluster * m.cluster + lanes - 1)


def offsets(address):
    """The same addresses without the rank: int or Affine."""
    if type(address) is int:
        return address & (REMOTE - 1)
    array = (address.pattern.array + address.offset) & (REMOTE - 1)
    return Affine(Pattern(array, int(array.min()), int(array.max())))


def is_remote(address) -> bool:
    """Whether any lane's address carries a rank."""
    if type(address) is int:
        return address >= REMOTE
    if address.hi < REMOTE:
        return False
    address.pattern.tighten()
    return address.hi >= REMOTE


class ClusterShared:
    """The shared memory of all blocks of a cluster, seen by lane through addresses with a rank."""

    name = "shared"

    def __init__(self, m):
        self.rows = m.shared

    def places(self, m, address, mask, element: int, total: int, instruction) -> list[Place]:
        lanes = m.lanes_of(mask)
        where = m.addresses(address)
        inside = where & (REMOTE - 1)
        rank = (where >> RANK_BITS) - 1
        beyond = lanes & (rank >= m.cluster)
        if beyond.any():
            at = np.unravel_index(int(beyond.argmax()), beyond.shape)
            text = f"block {int(rank[at])} of a cluster of {m.cluster}"
            m.fail(ExecutionError, f"there is no {text}", instruction, int(at[0]), int(at[1]))
        if (lanes & (inside + total > self.rows.size)).any():
            out_of_bounds(m, offsets(address), mask, total, instruction, self.rows)
        if (lanes & (inside % total != 0)).any():
            misaligned(m, offsets(address), mask, total, instruction)
        block = np.where(lanes, owners(m, address), 0)
        index = np.where(lanes, inside + block * self.rows.stride, 0) // element
        return [Place(self.rows.buffer, 0, as_index(index), lanes)]
