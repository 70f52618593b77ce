"""How many blocks are resident at once: as many as fit a core's cache, or a GPU where blocks wait for each other.

Blocks run in chunks, one chunk after the other. A kernel in which blocks wait for each other (a polling
loop on global memory, a cooperative launch) needs all of those together that a GPU would hold: here
an H100 or H200 (compute capability 9.0: CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability"). How many registers a thread needs only ptxas knows, so it may hold fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CHUNK_THREADS = 16384  # so that an instruction's operands stay in a core's cache
CHUNK_BYTES = 1 << 30  # local and shared memory of a chunk, unless a single block needs more
MOST_BYTES = 8 << 30
MULTIPROCESSORS = 132
_BLOCKS, _THREADS, _SHARED, _RESERVED = (
    32,
    2048,
    228 * 1024,
    1024,
)  # of a multiprocessor; of a block
MOST_BLOCKS = 1 << 31


def resident_blocks(threads: int, shared_bytes: int) -> int:
    """How many blocks of so many threads and bytes of shared memory a GPU holds at once."""
    warps = -(-threads // 32)
    each = min(_BLOCKS, _THREADS // (32 * warps), _SHARED // (shared_bytes + _RESERVED))
    return MULTIPROCESSORS * each


def chunk_blocks(threads: int, shared_bytes: int, local_bytes: int, together: bool) -> int:
    """Blocks of a chunk. together: whether they wait for each other. ValueError for more memory than there can be."""
    lanes = -(-threads // 32) * 32
    each = shared_bytes + lanes * local_bytes
    if each > MOST_BYTES:
        raise ValueError(
            f"a block of {threads} threads with {local_bytes} bytes of local memory each would take {each >> 30} GiB; "
            f"at most {MOST_BYTES >> 30} GiB are given to it here"
        )
    if together:
        return resident_blocks(threads, shared_bytes)
    return max(1, min(CHUNK_THREADS // lanes, CHUNK_BYTES // max(each, 1)))


@dataclass(frozen=True)
class Grid:
    """The blocks of a whole grid, x fastest: `grid[i]` and `grid[a:b]` give (x, y, z) as int64."""

    extents: tuple[int, int, int]

    def __len__(self) -> int:
        x, y, z = self.extents
        return x * y * z

    def __getitem__(self, which) -> np.ndarray:
        x, y, _ = self.extents
        span = which.indices(len(self)) if isinstance(which, slice) else None
        index = np.arange(*span, dtype=np.int64) if span else np.int64(which)
        return np.stack([index % x, index // x % y, index // (x * y)], axis=-1)
