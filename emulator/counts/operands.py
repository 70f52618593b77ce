"""What wgmma's operands cost in shared memory.

An operand is read one core matrix at a time, 8 chunks of 16 bytes, which is one wavefront where they
lie in eight different groups of four banks; else as many as the fullest group holds.
"""

from __future__ import annotations

import numpy as np


def operand_wavefronts(chunks: np.ndarray, mn_major: bool) -> tuple[int, int]:
    """(wavefronts, ideal) of one operand. chunks: byte addresses, (rows, 2) K-major, (rows // 8, 16) else."""
    if mn_major:
        sets = chunks.reshape(-1, 8)  # eight places along k of the same eight rows
    else:
        sets = chunks.reshape(-1, 8, 2).transpose(0, 2, 1).reshape(-1, 8)
    fullest = np.zeros(len(sets), np.int64)
    order = np.sort(sets >> 4, axis=1)
    new = np.ones(order.shape, bool)
    new[:, 1:] = order[:, 1:] != order[:, :-1]  # chunks read twice are read once
    for b in range(8):
        fullest = np.maximum(fullest, ((order & 7 == b) & new).sum(axis=1))
    return int(fullest.sum()), len(sets)
