"""How many wavefronts and sectors one warp-wide memory instruction costs, from its addresses.

Shared memory has 32 banks of 4 bytes. A *set* of lanes that is served together costs, over the
banks, the largest number of distinct 4-byte words in one bank: its *wavefronts*. Accesses are
aligned to their own width, so a set of 32 lanes of up to 4 bytes, 16 lanes of 8 bytes or 8 lanes of
16 bytes meets 32, 16 or 8 banks of its own width, and the same count serves all three. The rules
below reproduce every shared and global access measured on an H100 that
`tests/data/h100_single_accesses.json` holds (483 of 483):

- up to 4 bytes: one set of all active lanes; stores to the same word merge as loads do;
- 8 bytes: lanes 0-15 and 16-31; 16 bytes: four sets of 8 lanes; costs add up;
- loads of 8 and 16 bytes: if `address(n) == address(n ^ 1)` for all active lanes, or `address(n) ==
  address(n ^ 2)` for all, two neighbouring sets are served as one wherever together they cost one
  wavefront;
- `ldmatrix`, `stmatrix`: one set of 8 lanes for each 8x8 matrix (lanes 0-7 address matrix 0, and so
  on);
- atomics count as stores do; what the hardware adds for lanes that collide was not measured;
- `cp.async.ca`: the shared side counts as a store of that width;
- `cp.async.cg`, 16 bytes: data comes from L2 in *source sectors* (32 bytes, two 16-byte chunks),
  not lane by lane. What one sector sends to one 128-byte destination line at one rotation, rotation
  being `(source chunk XOR destination chunk) mod 4`, is one packet. Packets share a wavefront when
  they agree in source 128-byte line, destination 128-byte line, rotation, and in which chunks of
  their sector they carry (first, second, both). So a destination that is a XOR-swizzled copy of the
  source costs one wavefront for each line. All 43 measured patterns follow, misaligned, padded,
  shuffled and masked ones included. We know of no other description of this rule.
"""

import numpy as np

LANES = 32
SECTOR_BYTES = 32

# Lanes in a set, by access width in bytes; also the number of banks of that width.
_SET_LANES = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}
_SHIFT = {1: 2, 2: 2, 4: 2, 8: 3, 16: 4}
_MATRIX_KINDS = ("ldmatrix", "stmatrix")
KINDS = ("load", "store", "atomic", *_MATRIX_KINDS, "cp.async.ca", "cp.async.cg")

# Random odd multipliers: rows with equal products are taken for the same pattern.
_HASH = np.random.default_rng(3).integers(1 << 62, size=LANES, dtype=np.int64) * 2 + 1


def shared_wavefronts(addresses, active, width, kind="load", matrices=4, sources=None):
    """Wavefronts of shared memory that each of W warps' accesses costs.

    addresses: (W, 32) int64 byte addresses, aligned to `width`; for `ldmatrix` and `stmatrix` the
    row addresses. active: (W, 32) bool. width: bytes a lane accesses (1, 2, 4, 8, 16). kind: one of
    `KINDS`. matrices: 1, 2 or 4, for `ldmatrix` and `stmatrix`. sources: (W, 32) int64 global
    addresses, for `cp.async.cg`; contiguous ones are assumed when left out. Returns (W,) int64; 0
    for a warp without active lanes.
    """
    addresses, active, width = _checked(addresses, active, width, kind, matrices)
    if kind == "cp.async.cg":
        return _copy_packets(addresses, active, sources)[0]
    if len(addresses) > 1 and _one_pattern(addresses, active, 4):
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


def global_sectors(addresses, active, width=4, kind="load", destinations=None):
    """Distinct 32-byte sectors of global memory that each of W warps' accesses touches, (W,) int64.

    addresses: (W, 32) int64, aligned to `width` (at most 32 bytes). For `cp.async.cg` give the
    shared `destinations`: a sector that goes to two lines or rotations (see the module) is read
    once for each. That last clause is inferred from the wavefront rule and from reading more
    sectors on misaligned destinations, not from measured rows.
    """
    addresses = np.asarray(addresses, np.int64)
    active = np.asarray(active, bool)
    if kind == "cp.async.cg" and destinations is not None:
        return _copy_packets(np.asarray(destinations, np.int64), active, addresses)[1]
    if len(addresses) > 1 and _one_pattern(addresses, active, SECTOR_BYTES):
        return np.full(len(addresses), global_sectors(addresses[:1], active[:1], width)[0])
    sectors = addresses >> 5
    if not active.all():
        present = active.any(axis=1)
        first = np.take_along_axis(sectors, active.argmax(axis=1)[:, None], axis=1)
        sectors = np.where(active, sectors, first)
        return np.where(present, _distinct(sectors), 0)
    return _distinct(sectors)


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


def _one_pattern(addresses, active, grain):
    """Whether every warp makes the first warp's access, moved by a multiple of `grain` bytes."""
    base = addresses[:, :1]
    moved = base - base[0]
    if (moved & (grain - 1)).any() or not active.all():
        return False
    return bool((addresses == addresses[0] + moved).all())


def _used_lanes(kind, matrices):
    return 8 * matrices if kind in _MATRIX_KINDS else LANES


def _distinct(values):
    """Distinct values in each row of (R, L)."""
    steps = np.diff(values, axis=1)
    if not (steps >= 0).all():
        steps = np.diff(np.sort(values, axis=1), axis=1)
    return np.count_nonzero(steps, axis=1) + 1


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
            pattern = rows @ _HASH[: rows.shape[1]]
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
    return np.bincount(slot[new], minlength=rows * banks).reshape(rows, banks).max(axis=1)


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


def _copy_packets(destinations, active, sources):
    """`cp.async.cg`: wavefronts and source sectors read, (W,) each, by the packet rule above."""
    warps = len(destinations)
    if sources is None:
        sources = np.broadcast_to(np.arange(LANES, dtype=np.int64) * 16, destinations.shape)
    sources = np.asarray(sources, np.int64)
    zero = np.zeros(warps, np.int64)
    if not active.any():
        return zero, zero.copy()
    # Whole lines moved in whole sectors at one rotation each need no sorting; others do, once for
    # each pattern.
    base_s = np.where(active, sources >> 7, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
    base_d = np.where(active, destinations >> 7, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
    chunk_s = np.where(active, (sources >> 4) - (base_s << 3), -1)
    chunk_d = np.where(active, (destinations >> 4) - (base_d << 3), -1)
    pattern = chunk_s @ _HASH + (chunk_d * 31 + 7) @ _HASH[::-1]
    _, first, inverse = np.unique(pattern, return_index=True, return_inverse=True)
    s, d, on = chunk_s[first], chunk_d[first], active[first]
    row = np.broadcast_to(np.arange(len(first))[:, None], s.shape)[on]
    s, d = s[on], d[on]
    packet = np.stack([row, s >> 3, d >> 3, (s ^ d) & 3, (s >> 1) & 3])
    order = np.lexsort(packet[::-1])
    packet, half = packet[:, order], (1 << (s[order] & 1))
    new = np.ones(len(order), bool)
    new[1:] = (packet[:, 1:] != packet[:, :-1]).any(axis=0)
    starts = np.flatnonzero(new)
    carried = np.bitwise_or.reduceat(half, starts)  # which chunks of its sector a packet carries
    packet = packet[:, starts]
    sectors = np.bincount(packet[0], minlength=len(first))
    wave = np.unique(np.vstack([packet[:4], carried]), axis=1)
    wavefronts = np.bincount(wave[0], minlength=len(first))
    return wavefronts[inverse], sectors[inverse]
