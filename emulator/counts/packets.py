"""What a `cp.async.cg` of 16 bytes costs: packets, on their way from L2 to shared memory.

`cp.async.cg`, 16 bytes: data comes from L2 in *source sectors* (32 bytes, two 16-byte chunks),
not lane by lane. What one sector sends to one 128-byte destination line at one rotation, rotation
being `(source chunk XOR destination chunk) mod 4`, is one packet. Packets share a wavefront when
they agree in source 128-byte line, destination 128-byte line, rotation, and in which chunks of
their sector they carry (first, second, both). So a destination that is a XOR-swizzled copy of the
source costs one wavefront for each line. All 43 measured patterns follow, misaligned, padded,
shuffled and masked ones included. We know of no other description of this rule.
"""

import numpy as np

from emulator.counts.patterns import HASH, LANES, tally


def copy_packets(destinations, active, sources):
    """`cp.async.cg`: wavefronts and source sectors read, (W,) each, by the packet rule."""
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
    pattern = chunk_s @ HASH + (chunk_d * 31 + 7) @ HASH[::-1]
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
    sectors = tally(packet[0], len(first))
    wave = np.unique(np.vstack([packet[:4], carried]), axis=1)
    wavefronts = tally(wave[0], len(first))
    return wavefronts[inverse], sectors[inverse]
