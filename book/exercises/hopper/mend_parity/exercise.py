"""Mend a wrong parity."""

from dataclasses import replace

import numpy as np

from book.exercises.exercise import Case, Exercise, Goal, Need
from book.exercises.hopper.launches import ARCH
from book.exercises.launches import row_sums
from emulator import TensorMap
from kernels.shapes import ceil_div


def sums_of_rows(rng) -> tuple[Case, ...]:
    """Sums of the rows of X (M, K), 64 rows per block, by a tensor map of tiles of 64 x 32 floats."""
    drawn = int(rng.integers(1, 150)), 4 * int(rng.integers(1, 60))
    cases = []
    for M, K in ((64, 32), (64, 64), (128, 256), (70, 180), drawn):
        special = "the stages are used again" if K > 64 else ""
        if M % 64 or K % 32:
            special += " and " * bool(special) + "the last tile hangs over the edge of X"
        case = row_sums(rng, (M, K), (M, K), 64, (96,), special)
        cases.append(replace(case, args=(TensorMap(case.args[0], (64, 32)), *case.args[1:])))
    return tuple(cases)


def _turned_tiles(case) -> np.ndarray:
    """The sums if tile i of block b is taken from row 32 * i and column 64 * b."""
    x = np.asarray(case.args[0].array, float)
    M, K = x.shape
    blocks, tiles = ceil_div(M, 64), ceil_div(K, 32)
    whole = np.zeros((max(M, 32 * tiles) + 64, max(K, 64 * blocks) + 32))
    whole[:M, :K] = x
    sums = np.zeros((blocks, 64))
    for b in range(blocks):
        for i in range(tiles):
            sums[b] += whole[32 * i : 32 * i + 64, 64 * b : 64 * b + 32].sum(1)
    return sums.reshape(-1)[:M]


EXERCISE = Exercise.read(
    __file__,
    cases=sums_of_rows,
    at="M=128, K=256",
    needs=(Need("bytes copied by TMA", 131_072, "the tiles arrive by TMA"),),
    goals=(Goal("shared_wavefronts", 2_100),),
    suspects={
        "The two coordinates of tma_load are the other way round: x, the column, comes first": _turned_tiles
    },
    arch=ARCH,
    twin=lambda run: 7 // 2 % 2 ^ 1,
)
