"""How many 32-byte sectors of global memory one warp-wide instruction touches, from its addresses."""

import numpy as np

from emulator.counts.packets import copy_packets
from emulator.counts.patterns import one_pattern

SECTOR_BYTES = 32


def global_sectors(addresses, active, width=4, kind="load", destinations=None):
    """Distinct 32-byte sectors of global memory that each of W warps' accesses touches, (W,) int64.

    addresses: (W, 32) int64, aligned to `width` (at most 32 bytes). For `cp.async.cg` give the
    shared `destinations`: a sector that goes to two lines or rotations (see `packets`) is read
    once for each. That last clause is inferred from the wavefront rule and from reading more
    sectors on misaligned destinations, not from measured rows.
    """
    addresses = np.asarray(addresses, np.int64)
    active = np.asarray(active, bool)
    if kind == "cp.async.cg" and destinations is not None:
        return copy_packets(np.asarray(destinations, np.int64), active, addresses)[1]
    if len(addresses) > 1 and one_pattern(addresses, active, SECTOR_BYTES):
        return np.full(len(addresses), global_sectors(addresses[:1], active[:1], width)[0])
    sectors = addresses >> 5
    if not active.all():
        present = active.any(axis=1)
        first = np.take_along_axis(sectors, active.argmax(axis=1)[:, None], axis=1)
        sectors = np.where(active, sectors, first)
        return np.where(present, _distinct(sectors), 0)
    return _distinct(sectors)


def _distinct(values):
    """Distinct values in each row of (R, L)."""
    steps = np.diff(values, axis=1)
    if not (steps >= 0).all():
        steps = np.diff(np.sort(values, axis=1), axis=1)
    return np.count_nonzero(steps, axis=1) + 1
