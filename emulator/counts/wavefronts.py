"""How many wavefronts of shared memory one warp-wide instruction costs, from its addresses.

Shared memory has 32 banks of 4 bytes. A *set* of lanes that is served together costs, over the
banks, the largest number of distinct 4-byte words in one bank: its *wavefronts*. Accesses are
aligned to their own width, so a set of 32 lanes of up to 4 bytes, 16 lanes of 8 bytes or 8 lanes of
16 bytes meets 32, 16 or 8 banks of its own width, and the same count serves all three. The rules
below, with those of `sectors` and `packets`, reproduce every access measured on an H100 that
`results/accesses/h100_single_accesses.json` holds (483 of 483):

- up to 4 bytes: one set of all active lanes; stores to the same word merge as loads do;
- 8 bytes: lanes 0-15 and 16-31; 16 bytes: four sets of 8 lanes; costs add up;
- loads of 8 and 16 bytes: if `address(n) == address(n ^ 1)` for all active lanes, or `address(n) ==
  address(n ^ 2)` for all, two neighbouring sets are served as one wherever together they cost one
  wavefront;
- `ldmatrix`, `stmatrix`: one set of 8 lanes for each 8x8 matrix (lanes 0-7 address matrix 0, and so
  on);
- atomics count as stores do; what the hardware adds for lanes that collide was not measured;
- `cp.async.ca`: the shared side counts as a store of that width;
- `cp.async.cg`, 16 bytes: packets of source sectors, see `counts.packets`.
"""

import numpy as np

from emulator.counts.packets import copy_packets
from emulator.counts.patterns import HASH, LANES, one_pattern, tally

# Lanes in a set, by access width in bytes; also the number of banks of that width.
_SET_LANES = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}
_SHIFT = {1: 2, 2: 2, 4: 2, 8: 3, 16: 4}
_MATRIX_KINDS = ("ldmatrix", "stmatrix")
KINDS = ("load", "store", "atomic", *_MATRIX_KINDS, "cp.async.ca", "cp.async.cg")


def shared_wavefronts(addresses, active, width, kind="load", matrices=4, sources=None):
    """Wavefronts of shared memory that each of W warps' accesses costs.

    addresses: (W, 32) int64 byte addresses, aligned to `width`; for `ldmatrix` and `stmatrix` the
    row addresses. active: (W, 32) bool. width: bytes that a lane accesses (1, 2, 4, 8, 16). kind: one of
    `KINDS`. matrices: 1, 2 or 4, for `ldmatrix` and `stmatrix`. sources: (W, 32) int64 global
    addresses, for `cp.async.cg`; contiguous ones are assumed when left out. Returns (W,) int64; 0
    for a warp without active lanes.
    """
    addresses, active, width = _checked(addresses, active, width, kind, matrices)
    if kind == "cp.async.cg":
        return copy_packets(addresses, active, sources)[0]
    if len(addresses) > 1 and one_pattern(addresses, active, 4):
        one = shared_wavefronts(addresses[:1], active[:1], width, kind, matrices)
        return np.full(len(addresses), one[0])
    lanes = _SET_LANES[width]
    used = _used_lanes(kind, matrices)
    warps = len(addresses)
    units = (addresses[:, :used] >> _SHIFT[width]).reshape(-1, lanes)
    mask = active[:, :used].reshape(-1, lanes)
    cost = _set_cost(units, mask, lanes).reshape(warps, -1)
    total = cost.sum(axis=1)
    if kind == "load" and lanes < LANES:
        total -= _merged_neighbours(addresses, active, cost, units, mask, lanes)
    return total


def shared_wavefronts_ideal(active, width, kind="load", matrices=4):
    """Wavefronts that the same lanes cost at conflict-free, distinct addresses: the sets with an
    active lane, (W,).

    A broadcast of 8 or 16 bytes may cost less; a caller that subtracts takes the smaller of the
    two.
    """
    active = np.asarray(active, bool)
    lanes = _SET_LANES[16 if kind in _MATRIX_KINDS else width]
    sets = active[:, : _used_lanes(kind, matrices)].reshape(len(active), -1, lanes)
    return sets.any(axis=2).sum(axis=1)


def _checked(addresses, active, width, kind, matrices):
    if kind not in KINDS:
        raise ValueError(f"unknown kind of access {kind!r}; one of {', '.join(KINDS)}")
    if kind in _MATRIX_KINDS:
        width = 16
        if matrices not in (1, 2, 4):
            raise ValueError(f"{kind} moves 1, 2 or 4 matrices, not {matrices}")
    if width not in _SET_LANES:
        raise ValueError(f"access width {width}: 1, 2, 4, 8 or 16 bytes")
    return np.asarray(addresses, np.int64), np.asarray(active, bool), width


def _used_lanes(kind, matrices):
    return 8 * matrices if kind in _MATRIX_KINDS else LANES


def _set_cost(units, mask, banks):
    """Largest number of distinct units in one of `banks` banks, for each row of (R, L); 0 where no
    lane is active.

    A shift of a whole row by one unit only rotates the banks, so rows are measured from their
    smallest unit and each pattern is costed once.
    """
    if mask.all():
        present = None
        base = units.min(axis=1, keepdims=True)
        offsets = units - base
    else:
        present = mask.any(axis=1)
        base = np.where(mask, units, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
        offsets = np.where(mask, units - base, 0)  # an idle lane repeats the smallest unit
    cost = np.ones(len(units), np.int64)
    wide = np.flatnonzero(
        offsets.max(axis=1) >= banks
    )  # a row within one span of the banks has no conflict
    if len(wide):
        rows = offsets[wide]
        if (rows == rows[0]).all():
            cost[wide] = _conflicts(rows[:1], banks)[0]
        else:
            pattern = rows @ HASH[: rows.shape[1]]
            _, first, inverse = np.unique(pattern, return_index=True, return_inverse=True)
            cost[wide] = _conflicts(rows[first], banks)[inverse]
    return cost if present is None else np.where(present, cost, 0)


def _conflicts(units, banks):
    """The cost of each row of (R, L) non-negative units, by sorting: bank first, then unit."""
    rows, lanes = units.shape
    shift = banks.bit_length() - 1
    key = np.sort(((units & (banks - 1)) << 48) | (units >> shift), axis=1)
    new = np.ones((rows, lanes), bool)
    new[:, 1:] = key[:, 1:] != key[:, :-1]
    slot = (key >> 48) + np.arange(rows)[:, None] * banks
    return tally(slot[new], rows * banks).reshape(rows, banks).max(axis=1)


def _merged_neighbours(addresses, active, cost, units, mask, lanes):
    """Wavefronts that the pair rule saves each warp: (W,)."""
    saved = np.zeros(len(addresses), np.int64)
    paired = np.zeros(len(addresses), bool)
    for step in (1, 2):
        partner = np.arange(LANES) ^ step
        paired |= ((addresses == addresses[:, partner]) | ~active).all(axis=1)
    if not paired.any():
        return saved
    pick = np.flatnonzero(paired)
    both = (len(addresses), -1, 2 * lanes)
    joint = _set_cost(
        units.reshape(both)[pick].reshape(-1, 2 * lanes),
        mask.reshape(both)[pick].reshape(-1, 2 * lanes),
        lanes,
    ).reshape(len(pick), -1)
    single = cost[pick].reshape(len(pick), -1, 2).sum(axis=2)
    saved[pick] = np.where(joint == 1, single - joint, 0).sum(axis=1)
    return saved
