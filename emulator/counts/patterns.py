"""What the counts share: 32 lanes of addresses, many warps of which make the same access."""

import numpy as np

LANES = 32

# Random odd multipliers: rows with equal products are taken for the same pattern.
HASH = np.random.default_rng(3).integers(1 << 62, size=LANES, dtype=np.int64) * 2 + 1


def tally(numbers, least):
    """How often each of 0, 1, ... is among `numbers`, (least,) or more: `np.bincount`, which takes no int64 where
    an index of NumPy has 32 bits (WebAssembly).
    """
    return np.bincount(numbers.astype(np.intp, copy=False), minlength=least)


def one_pattern(addresses, active, grain):
    """Whether every warp makes the first warp's access, moved by a multiple of `grain` bytes."""
    base = addresses[:, :1]
    moved = base - base[0]
    if (moved & (grain - 1)).any() or not active.all():
        return False
    return bool((addresses == addresses[0] + moved).all())
